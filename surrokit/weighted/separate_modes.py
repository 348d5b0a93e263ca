"""Modes by draws: whether chains go between them, their masses, and draws weighed by these."""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from surrokit.diagnostics import mean_error, r_hat
from surrokit.errors import BudgetSpent, NumericalError
from surrokit.kernel.jumps import StudentT
from surrokit.modes import Evidences, Modes
from surrokit.potentials import Potential
from surrokit.types import BoolArray, FloatArray, IntArray
from surrokit.weighted.answer import Answer, Answering, Figures, Function, quantile_of, ratio
from surrokit.weighted.round import Estimate, reshaped, shares

if TYPE_CHECKING:
    from surrokit.weighted.normalizer import ValueOf

ENOUGH = 40
"""Moves of chains between modes from which on the modes' shares of the draws mean something."""

PRECISE, CALLS = 0.05, 200
"""Error of a logarithm of an evidence with which no call is made, and calls for one mode where U is
not known at its draws."""

VISITED = 0.01
"""Part of the draws from which on a mode is looked at, though it has hardly any mass."""

FEWEST = 16
"""Draws of a chain at a mode that say anything of it."""

LEFT_OUT = 0.01
"""Mass of modes without chains, by Laplace approximations, up to which the others are weighed."""


@attrs.frozen(kw_only=True, eq=False)
class ModeVisits:
    """Draws by mode.

    A mode is missed if no draw has come near it, and hardly any is nearest to it. In many
    dimensions draws may all be far from where the normal approximation at a mode has its mass.
    """

    found: Modes  # all of them
    rows: IntArray  # those that matter, or that chains are at
    modes: Modes  # these
    visited: IntArray  # the one of these that each draw is nearest to, shape (chains, draws)
    shares: FloatArray  # part of the draws at each of these, shape (k,)
    missed: BoolArray  # whether each of these is, shape (k,)
    moves: int  # how often a chain went from one mode to another
    groups: IntArray  # which of them chains go between often enough, from 0 on, shape (k,)

    @classmethod
    def of(cls, found: Modes, positions: FloatArray) -> ModeVisits:
        """Return where draws lie, from ``positions (chains, draws, dim)``."""
        chains, draws, dim = positions.shape
        rows = positions.reshape(-1, dim)
        usual = np.bincount(found.nearest(rows), minlength=len(found)) > VISITED * len(rows)
        taken = np.flatnonzero(found.matters | usual)
        modes = found.take(taken)
        visited: IntArray = modes.nearest(rows).reshape(chains, draws)
        shares = np.bincount(visited.ravel(), minlength=len(modes)) / visited.size
        # no draw is where nearly all of the mode's normal approximation lies
        far = [modes.squares(k, rows).min() > (np.sqrt(dim) + 2.0) ** 2 for k in range(len(modes))]
        missed = (shares < 0.01) & far
        went = np.zeros((len(modes), len(modes)))
        np.add.at(went, (visited[:, :-1], visited[:, 1:]), 1)
        return cls(
            found=found,
            rows=taken,
            modes=modes,
            visited=visited,
            shares=shares,
            missed=missed,
            moves=int(went.sum() - np.trace(went)),
            groups=_groups(modes, went, shares, missed),
        )

    @property
    def joined(self) -> bool:
        """Whether draws come near every mode, and chains go between modes often enough."""
        return not self.groups.any()

    @property
    def first(self) -> IntArray:
        """The first mode of each group, among all."""
        return np.asarray(self.rows[np.unique(self.groups, return_index=True)[1]])

    @property
    def at(self) -> IntArray:
        """The group of modes that each draw is at, shape (chains, draws)."""
        return np.asarray(self.groups[self.visited])

    def tell(self, labels: list[str], draws: FloatArray) -> str:
        """Return each mode's place, height and share of the draws (chains, draws, n), in words."""
        modes = self.modes
        reported = []
        for k, place in enumerate(modes.name_places(labels, spreads(draws))):
            higher = f"{round(modes.values[k] - modes.values[0], 1):g} nats higher"
            height = higher if k else f"potential {modes.values[0]:.6g}"
            reported.append(
                f"{place} ({height}, {modes.ended[k]} of "
                f"{self.found.searches} searches, {100 * self.shares[k]:.3g} % of the draws)"
            )
        return "; ".join(reported)


def _groups(modes: Modes, went: FloatArray, shares: FloatArray, missed: BoolArray) -> IntArray:
    """Return a number for each mode, the same for those that chains go between often enough.

    That is a tenth as often as independent draws would, or :data:`ENOUGH` times. Ends of searches
    along one valley are one. A mode near which draws are, though none is nearest to it, goes with
    another one. A mode that is missed is by itself.

    Parameters
    ----------
    went : ndarray of shape (k, k)
        How often chains went from one to another, or stayed.
    """
    from scipy.sparse.csgraph import connected_components  # late: importing the package stays fast

    often = np.minimum(ENOUGH, 0.2 * went.sum() * np.outer(shares, shares))
    linked = (went + went.T >= often) & (often > 0.0)
    seen = np.flatnonzero(shares > 0.0)
    for k in np.flatnonzero((shares == 0.0) & ~missed):
        linked[k, seen[modes.take(seen).nearest(modes.positions[k : k + 1])]] = True
    linked[missed] = linked[:, missed] = False
    return np.asarray(connected_components(linked, directed=False)[1], dtype=np.int64)


def spreads(draws: FloatArray) -> FloatArray:
    """Return the median over chains of their standard deviations (n,): most stay at one mode."""
    return np.asarray(np.median(draws.std(axis=1), axis=0))


@attrs.frozen(kw_only=True, eq=False, slots=False)
class SeparateModes(Answering):
    """Answers of chains that stay at their modes, each mode weighed by its evidence.

    Among the draws nearest to a mode, chains are exact; how much mass is there they cannot tell.
    So the mean of a function is the sum of the means at modes times the masses p_k, which are
    independent of the draws' shares. With errors s_k of the logarithms of the evidences, these
    add p_k s_k (mean at k - mean) to its error.

    Parameters
    ----------
    draws : ndarray of shape (chains, n, dim)
        In the user's coordinates.
    visited : ndarray of shape (chains, n)
        The mode that each draw is at.
    logs, errors : ndarray of shape (k,)
        Logarithms of evidences, and their errors.
    calls
        Exact calls of the whole run.
    """

    draws: FloatArray
    visited: IntArray
    logs: FloatArray
    errors: FloatArray
    calls: float

    @property
    def masses(self) -> FloatArray:
        """Share of the probability at each mode, shape (k,)."""
        return shares(self.logs)

    @property
    def log_evidence(self) -> Estimate:
        """Logarithm of the integral of exp(-U), the sum over modes."""
        squared = np.asarray(np.square(self.masses) @ np.square(self.errors))
        return Estimate(
            value=np.asarray(np.logaddexp.reduce(self.logs)),
            error=np.sqrt(squared),
            effective=ratio(np.asarray(1.0), squared),
            degrees=np.asarray(np.inf),
            calls=self.calls,
        )

    @functools.cached_property
    def weights(self) -> FloatArray:
        """What each draw counts for, of mean one, shape (chains, n)."""
        counts = np.bincount(self.visited.ravel(), minlength=len(self.logs))
        with np.errstate(divide="ignore"):
            each = np.where(counts > 0, self.masses * self.visited.size / counts, 0.0)
        weights = each[self.visited]
        return np.asarray(weights / weights.mean())

    @functools.cached_property
    def figures(self) -> Figures:
        """Mean, sd and quantiles of each number."""
        return Figures.of(self)

    @functools.cached_property
    def rhat(self) -> FloatArray:
        """The largest R-hat among chains at one mode that is more than negligible, shape (dim,)."""
        at = [self.visited == k for k in np.flatnonzero(self.masses > LEFT_OUT)]
        each = [r_hat(_draws_at(here, self.draws)[0]) for here in at if len(_chains_at(here))]
        return np.asarray(np.max(each, axis=0))

    def expectation(self, function: Function) -> Estimate:
        """Return the means of functions under the target."""
        flat = np.asarray(function(self.draws.reshape(-1, self.draws.shape[2])), np.float64)
        return self._mean_of(flat.reshape(*self.visited.shape, -1))

    def mean_of(self, values: FloatArray) -> Estimate:
        """Return the mean of values (chains, n, ...) at the draws, as :meth:`expectation` does."""
        return reshaped(self._mean_of(values.reshape(*self.visited.shape, -1)), values.shape[2:])

    def _mean_of(self, values: FloatArray) -> Estimate:
        weights = self.weights[..., None] / self.weights.size
        mean = (weights * values).sum(axis=(0, 1))
        variance = (weights * np.square(values - mean)).sum(axis=(0, 1))
        squared = np.zeros_like(mean)
        for k in range(len(self.logs)):
            here = self.visited == k
            chosen = _chains_at(here)
            if not len(chosen):
                continue
            at = values[here].mean(axis=0)
            # deviations of a ratio of means, in chains that are at this mode
            away = ((values - at) * here[..., None])[chosen] / here[chosen].mean()
            of_chains = self.masses[k] * np.nan_to_num(mean_error(away))
            of_mass = self.masses[k] * self.errors[k] * (at - mean)
            squared += np.square(of_chains) + np.square(of_mass)
        return Estimate(
            value=mean,
            error=np.sqrt(squared),
            effective=ratio(variance, squared),
            degrees=np.full(len(mean), np.inf),
            calls=self.calls,
        )

    def quantile(self, probability: float) -> Estimate:
        """Return a quantile of each number of a position; see :func:`quantile_of`."""
        return quantile_of(self.distribution, probability, self.expectation)

    @property
    def with_masses(self) -> tuple[FloatArray, FloatArray]:
        """All draws by their weights."""
        return self.draws.reshape(-1, self.draws.shape[2]), self.weights.ravel() / self.weights.size


def _chains_at(here: BoolArray) -> IntArray:
    """Return the chains that have enough of their draws ``here (chains, n)``; none perhaps."""
    counts = here.sum(axis=1)
    return np.flatnonzero(counts >= max(FEWEST, counts.max() // 4))


def _draws_at(here: BoolArray, *arrays: FloatArray) -> list[FloatArray]:
    """Return the first so many draws ``here (chains, n)`` of each chain that has enough of them."""
    chosen = _chains_at(here)
    n = int(here[chosen].sum(axis=1).min())
    return [np.stack([array[i][here[i]][:n] for i in chosen]) for array in arrays]


def weigh_modes(
    found: Modes,
    positions: FloatArray,
    values: FloatArray,
    rng: np.random.Generator,
    surrogate: Potential | None = None,
    exact: ValueOf | None = None,
    most: int = CALLS,
) -> Evidences | None:
    """Return evidences and masses of modes by draws of chains; None where there is one mode.

    Where chains go between modes often, masses are the modes' parts of the draws. Where they do
    not, the evidence of each mode is bridged from the draws that are nearest to it, without a call
    where these are precise. Draws are weighed by these unless a mode without chains may have mass,
    an evidence is not known, or modes overlap, which is a ``doubt``.

    Parameters
    ----------
    found
        The modes, by searches.
    positions : ndarray of shape (chains, n, dim)
        Draws in the sampling coordinates.
    values : ndarray of shape (chains, n)
        U there; NaN where it is not known.
    surrogate
        A potential near U.
    exact
        Evaluates U at positions (n, dim).
    most
        Calls of it for each mode at most.
    """
    if len(positions[0]) < FEWEST or len(found) < 2:
        return None
    visits = ModeVisits.of(found, positions)
    if len(visits.modes) < 2:
        return None
    if visits.joined:
        return _of_shares(visits, positions, values, rng, surrogate)
    first = visits.first
    logs = found.laplace[first]
    errors, doubt = np.full(len(first), np.nan), None
    alone = np.array([not len(_chains_at(visits.at == k)) for k in range(len(first))])
    for k in map(int, np.flatnonzero(~alone)):
        try:
            each = _evidence(visits, k, positions, values, rng, surrogate, exact, most)
        except NumericalError:
            doubt = "the evidence of one is not known from its draws"
        else:
            logs[k], errors[k] = each.value, each.error
    masses = shares(logs)
    if masses[alone].sum() > LEFT_OUT:
        doubt = f"one without chains may have {masses[alone].max():.2g} of the mass"
    elif doubt is None and _overlap(visits, positions, masses) > LEFT_OUT:
        doubt = "modes overlap"
    parts = (logs, errors, masses, _errors_of_masses(masses, errors))
    return _of_all(found, first, parts, separate=doubt is None, doubt=doubt)


def weigh_answer(
    found: Modes, answer: Answer, total: Estimate, to_unbounded: ValueOf
) -> Evidences | None:
    """Return evidences and masses of modes by weighted answers; None where there is one mode.

    Parameters
    ----------
    total
        Logarithm of the integral of exp(-U).
    to_unbounded
        From the user's coordinates to those of the modes.
    """
    modes = found.take(found.matters)
    if len(modes) < 2:
        return None

    def nearest(places: FloatArray) -> FloatArray:
        at = modes.nearest(to_unbounded(places))
        return np.asarray(at[:, None] == np.arange(len(modes)), dtype=np.float64)

    mass = answer.expectation(nearest)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = total.value + np.log(mass.value)
        errors = np.sqrt(np.square(total.error) + np.square(mass.error / mass.value))
    return _of_all(found, np.flatnonzero(found.matters), (logs, errors, mass.value, mass.error))


def evidence_of_modes(known: Evidences) -> Estimate | None:
    """Return the logarithm of the integral of exp(-U) by that of the heaviest mode, and its share.

    The error of a mode's logarithm has that of its share. None where draws do not tell either.
    """
    k = int(np.argmax(known.masses))
    error = np.asarray(known.errors[k])
    if known.doubt is not None or not np.isfinite(error):
        return None
    return Estimate(
        value=np.asarray(known.logs[k] - np.log(known.masses[k])),
        error=error,
        effective=ratio(np.asarray(1.0), np.square(error)),
        degrees=np.asarray(np.inf),
        calls=0.0,
    )


def _errors_of_masses(masses: FloatArray, errors: FloatArray) -> FloatArray:
    """Return errors of shares from those of the logarithms that are shared out, shape (k,)."""
    squares = np.square(np.nan_to_num(errors) * masses)
    own = np.square(1.0 - masses) - np.square(masses)
    found = np.sqrt(own * squares + np.square(masses) * squares.sum())
    return np.where(np.isnan(errors), np.nan, found)


def _of_all(
    found: Modes,
    rows: IntArray,
    parts: tuple[FloatArray, ...],
    *,
    separate: bool = False,
    doubt: str | None = None,
) -> Evidences:
    """Return the evidences of all modes, from parts (k,) of some ``rows (k,)``."""
    none = np.full(len(found), np.nan)
    columns = [none.copy(), none.copy(), np.zeros(len(found)), none.copy()]
    for whole, part in zip(columns, parts, strict=True):
        whole[rows] = part
    names = ("logs", "errors", "masses", "mass_errors")
    return Evidences(**dict(zip(names, columns, strict=True)), separate=separate, doubt=doubt)


def _of_shares(
    visits: ModeVisits,
    positions: FloatArray,
    values: FloatArray,
    rng: np.random.Generator,
    surrogate: Potential | None,
) -> Evidences:
    """Return evidences where the modes' parts of the draws are their masses."""
    visits = attrs.evolve(visits, groups=np.arange(len(visits.modes)))
    at = visits.visited[..., None] == visits.groups
    shares, errors = visits.shares, np.nan_to_num(mean_error(at.astype(float)))
    largest, logs = int(np.argmax(shares)), np.full(len(shares), np.nan)
    of_logs = logs
    with np.errstate(divide="ignore", invalid="ignore"), contextlib.suppress(NumericalError):
        one = _evidence(visits, largest, positions, values, rng, surrogate)
        logs = one.value + np.log(shares / shares[largest])
        of_logs = np.sqrt(np.square(one.error) + np.square(errors / shares))
    return _of_all(visits.found, visits.rows, (logs, of_logs, shares, errors))


def _evidence(
    visits: ModeVisits,
    k: int,
    positions: FloatArray,
    values: FloatArray,
    rng: np.random.Generator,
    surrogate: Potential | None,
    exact: ValueOf | None = None,
    most: int = CALLS,
) -> Estimate:
    """Return the logarithm of the integral of exp(-U) over what is nearest to a group of modes."""
    # imported late, so that importing the package stays fast
    from surrokit.weighted.normalizer import bridge, evidence_of_chains

    def within(potential: ValueOf) -> ValueOf:
        def value(places: FloatArray) -> FloatArray:
            near = visits.groups[visits.modes.nearest(places)] == k
            found = np.full(len(places), np.inf)
            if near.any():
                found[near] = potential(places[near])
            return found

        return value

    here = visits.at == k
    if not len(_chains_at(here)):
        raise NumericalError("no chain has enough draws at a mode for its evidence; draw more")
    draws, known = _draws_at(here, positions, values)
    found: list[Estimate] = []
    is_known = bool(np.isfinite(known).all())
    if is_known:
        with contextlib.suppress(ArithmeticError, ValueError):
            found.append(evidence_of_chains(draws, known, rng, surrogate, within))
    if exact is not None and not (found and found[0].error <= PRECISE):
        options: dict[str, Any] = (
            {"values": known, "most": most} if is_known else {"most": most // 2}
        )
        with contextlib.suppress(ArithmeticError, ValueError, BudgetSpent):
            found.append(bridge(within(exact), draws, rng, **options))
    if not found:
        raise NumericalError("the evidence of a mode is not known from its draws; draw more there")
    return min(found, key=lambda each: float(each.error))


def _overlap(visits: ModeVisits, positions: FloatArray, masses: FloatArray) -> float:
    """Return which part of the draws may as well be of another mode, by t distributions fitted."""
    most, logs = 2000, []
    flat, of = positions.reshape(-1, positions.shape[2]), visits.at.ravel()
    for k, mass in enumerate(masses):
        ours = flat[of == k]
        if len(np.unique(ours, axis=0)) < 10 * flat.shape[1]:
            logs.append(np.full(len(flat), -np.inf))
            continue
        law = StudentT.fit(ours[:: -(-len(ours) // most)])
        with np.errstate(divide="ignore"):
            logs.append(np.log(mass) + law.log_density(flat))
    at = np.array(logs)
    with np.errstate(invalid="ignore"):
        own = at[of, np.arange(len(of))] - np.logaddexp.reduce(at, axis=0)
    return float(np.mean(-np.expm1(own[np.isfinite(own)])))
