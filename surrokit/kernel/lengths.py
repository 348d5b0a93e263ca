"""The length of sub-chains: warm-up tries powers of two.

A sub-chain costs one exact call however long it is, so it should be so long that its end hardly
knows its start; but where the surrogate is poor its end is accepted the less, the farther it is.
So what counts is what is forgotten by proposals that the exact potential accepts. Forgetting is
looked at in positions and in V, which forgets more slowly: paths of Hamiltonian dynamics may turn
positions round in one transition, but draw only a part of the energy anew.
"""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.contracts.sampler import Excursion, StepInfo
from surrokit.types import BoolArray, FloatArray

FIRST_LENGTH = 4
"""Transitions in a sub-chain while nothing is known."""

MAX_LENGTH = 512
"""Tuning never asks for more."""

_FORGOTTEN = 0.9  # 1 less a correlation: enough
_AS_GOOD = 0.9  # part of the best gain that counts as no worse
_TRIES = 5  # iterations after which it is judged whether longer ones are needed
_CLEARLY = 2.5  # standard errors by which it is to be seen that they are
_KEPT = 0.25  # weight of what was seen under an earlier covariance
_NO_DECISION = 1e-300  # so that nothing accepted of nothing decided is 0


def _zeros() -> FloatArray:
    return np.zeros(MAX_LENGTH.bit_length())


def _add_at(array: FloatArray, power: int, by: float) -> FloatArray:
    raised = array.copy()
    raised[power] += by
    return raised


@attrs.frozen(kw_only=True, eq=False)
class LengthSearch:
    """What is known of sub-chains of 1, 2, 4, ... transitions, up to the longest tried.

    Parameters
    ----------
    tries, decisions, acceptances : ndarray
        Iterations with each power of two as length, the part of chains that had moved and were
        decided on, summed over these, and the sum of their acceptances likewise.
    seen, jumps, changes : ndarray
        How many chains were seen after so many transitions (longer lengths show shorter ones,
        too), and sums over these of the jump and of (V' - V)^2 / 2.
    values, squares
        Sums over ``seen[0]`` chains of V at the start and its square, both less ``level``.
    level
        A value of V, so that squares do not cancel.
    normal_variance
        Of V, were it normal: dim / 2.
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
        """Return the length to try next: the one least tried, of several the longest."""
        return int(2 ** (self.top - int(np.argmin(self.tries[self.top :: -1]))))

    def update(self, info: StepInfo, moving: BoolArray) -> LengthSearch:
        """Return what is known after an iteration with the :meth:`upcoming` length.

        Parameters
        ----------
        info
            What happened; without an ``excursion`` nothing is learnt.
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
        """Return what was forgotten after 1, 2, 4, ... transitions: 1 is all; NaN if not seen.

        1 less the correlation with the start, of positions or of V, whichever remembers more.
        """
        count = self.seen[0]
        with np.errstate(invalid="ignore", divide="ignore"):
            variance = self.squares / count - (self.values / count) ** 2
            # more than a normal one's is most often a way in from the tails that is still going on
            of_values = self.changes / self.seen / min(variance, self.normal_variance)
            return np.asarray(np.fmin(np.fmin(self.jumps / self.seen, of_values), 1.0))

    def _too_short(self) -> bool:
        """Return whether half of the longest length clearly does not forget enough.

        It is asked after every iteration, so that chance must not be enough.
        """
        half = self.top - 1
        if self.tries[half : self.top + 1].min() < _TRIES or self.top + 1 == len(self.tries):
            return False
        error = np.sqrt(2.0 / self.seen[half])  # relative, of the mean of a squared normal number
        return bool(self.forgotten()[half] * (1.0 + _CLEARLY * error) < _FORGOTTEN)

    def age(self) -> LengthSearch:
        """Return what is known, with less weight: the covariance has changed."""
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

        The shortest that gains nearly as much as any, and twice that where it gains nearly as much
        too: what is left of a correlation of 0.1 is then 0.01.
        """
        tried = np.flatnonzero(self.tries)
        if not tried.size:
            return FIRST_LENGTH
        # what stayed has jumped nowhere already, so acceptance is that of the moves
        accepted = self.acceptances[tried] / np.maximum(self.decisions[tried], _NO_DECISION)
        gains = accepted * self.forgotten()[tried]
        good = tried[gains >= _AS_GOOD * gains.max()]
        if not good.size:
            return FIRST_LENGTH
        power = int(good[0])
        return int(2 ** (power + 1 if power + 1 in good else power))
