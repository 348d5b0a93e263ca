"""The length of sub-chains: warm-up tries powers of two.

A sub-chain costs one exact call at any length, so its end should be nearly independent of its
start. Where the surrogate is poor, however, a farther end is accepted more rarely. A length is
therefore judged by how much accepted proposals forget, in positions and in V. V forgets more
slowly: one Hamiltonian path may reverse positions, but renews only a part of the energy.
"""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.contracts.sampler import Excursion, StepInfo
from surrokit.types import BoolArray, FloatArray

FIRST_LENGTH = 4
"""Transitions in a sub-chain while nothing is known."""

MAX_LENGTH = 512
"""Longest sub-chain that tuning asks for."""

_FORGOTTEN = 0.9  # 1 minus a correlation that is low enough
_AS_GOOD = 0.9  # share of the best gain that counts as equally good
_TRIES = 5  # iterations at a length before a longer one is considered
_CLEARLY = 2.5  # standard errors by which forgetting must fall short
_KEPT = 0.25  # weight of observations under an earlier covariance
_NO_DECISION = 1e-300  # makes 0 accepted of 0 decided a rate of 0


def _zeros() -> FloatArray:
    return np.zeros(MAX_LENGTH.bit_length())


def _add_at(array: FloatArray, power: int, by: float) -> FloatArray:
    raised = array.copy()
    raised[power] += by
    return raised


@attrs.frozen(kw_only=True, eq=False)
class LengthSearch:
    """Statistics of sub-chains of 1, 2, 4, ... transitions.

    Parameters
    ----------
    tries, decisions, acceptances : ndarray
        For each length: the number of iterations with it, and sums over these iterations of the
        share of chains with a decision and of the acceptance per chain, 0 without a decision.
    seen, jumps, changes : ndarray
        For each number of transitions: the number of chains seen after it (a longer sub-chain
        shows shorter ones too), and sums over these chains of the jump and of (V' - V)^2 / 2.
    values, squares
        Sums over ``seen[0]`` chains of V - ``level`` at the start and of its square.
    level
        A value of V, subtracted so that squares do not cancel.
    normal_variance
        Variance of V for a normal distribution: dim / 2.
    top
        Exponent of the longest length to try.
    """

    normal_variance: float

    tries: FloatArray = attrs.field(factory=_zeros)
    decisions: FloatArray = attrs.field(factory=_zeros)
    acceptances: FloatArray = attrs.field(factory=_zeros)
    seen: FloatArray = attrs.field(factory=_zeros)
    jumps: FloatArray = attrs.field(factory=_zeros)
    changes: FloatArray = attrs.field(factory=_zeros)
    values: float = 0.0
    squares: float = 0.0
    level: float = 0.0
    top: int = 1

    def upcoming(self) -> int:
        """Return the length to try next: the one least tried, and the longest of several."""
        return int(2 ** (self.top - int(np.argmin(self.tries[self.top :: -1]))))

    def update(self, info: StepInfo, moving: BoolArray) -> LengthSearch:
        """Return the statistics after an iteration with the :meth:`upcoming` length.

        Parameters
        ----------
        info
            What happened; without an ``excursion`` nothing changes.
        moving : ndarray of bool, shape (chains,)
            Chains that are not stuck.
        """
        excursion = info.excursion
        if excursion is None or not np.isfinite(excursion.values[moving]).all():
            return self
        power = self.upcoming().bit_length() - 1
        acceptance = info.acceptance[moving]
        found = attrs.evolve(
            self,
            tries=_add_at(self.tries, power, 1.0),
            decisions=_add_at(self.decisions, power, float((~np.isnan(acceptance)).mean())),
            acceptances=_add_at(
                self.acceptances, power, float(np.nansum(acceptance) / len(acceptance))
            ),
        )._saw(excursion, moving)
        return attrs.evolve(found, top=found.top + 1) if found._too_short() else found

    def _saw(self, excursion: Excursion, moving: BoolArray) -> LengthSearch:
        jumps, values = excursion.jumps[moving], excursion.values[moving]
        level = self.level if self.seen[0] else float(values[:, 0].mean())
        n, m = jumps.shape
        found = {name: getattr(self, name).copy() for name in ("seen", "jumps", "changes")}
        found["seen"][:m] += n
        found["jumps"][:m] += jumps.sum(axis=0)
        found["changes"][:m] += 0.5 * np.square(values[:, 1:] - values[:, :1]).sum(axis=0)
        return attrs.evolve(
            self,
            values=self.values + float((values[:, 0] - level).sum()),
            squares=self.squares + float(np.square(values[:, 0] - level).sum()),
            level=level,
            **found,
        )

    def forgotten(self) -> FloatArray:
        """Return the forgetting after 1, 2, 4, ... transitions: 1 is complete, NaN is unseen.

        It is 1 minus the correlation with the start, of positions or of V, whichever is smaller.
        """
        count = self.seen[0]
        with np.errstate(invalid="ignore", divide="ignore"):
            variance = self.squares / count - (self.values / count) ** 2
            # a variance above the normal one mostly means that chains still come in from the tails
            of_values = self.changes / self.seen / min(variance, self.normal_variance)
            return np.asarray(np.fmin(np.fmin(self.jumps / self.seen, of_values), 1.0))

    def _too_short(self) -> bool:
        """Return whether half of the longest length clearly does not forget enough.

        The test is repeated after every iteration, so it must not pass by chance.
        """
        half = self.top - 1
        if self.tries[half : self.top + 1].min() < _TRIES or self.top + 1 == len(self.tries):
            return False
        error = np.sqrt(2.0 / self.seen[half])  # relative error of a mean of squared normal numbers
        return bool(self.forgotten()[half] * (1.0 + _CLEARLY * error) < _FORGOTTEN)

    def age(self) -> LengthSearch:
        """Return the statistics with less weight, after a change of the covariance."""
        return attrs.evolve(
            self,
            tries=_KEPT * self.tries,
            decisions=_KEPT * self.decisions,
            acceptances=_KEPT * self.acceptances,
            seen=_KEPT * self.seen,
            jumps=_KEPT * self.jumps,
            changes=_KEPT * self.changes,
            values=_KEPT * self.values,
            squares=_KEPT * self.squares,
        )

    def best(self) -> int:
        """Return the length to keep.

        It is the shortest that gains nearly as much as the best, or twice that length if this gains
        nearly as much too: a correlation of 0.1 then becomes 0.01.
        """
        tried = np.flatnonzero(self.tries)
        if not tried.size:
            return FIRST_LENGTH
        # chains that stayed already count as jumps of 0, so acceptance is that of moves alone
        accepted = self.acceptances[tried] / np.maximum(self.decisions[tried], _NO_DECISION)
        gains = accepted * self.forgotten()[tried]
        good = tried[gains >= _AS_GOOD * gains.max()]
        if not good.size:
            return FIRST_LENGTH
        power = int(good[0])
        return int(2 ** (power + 1 if power + 1 in good else power))
