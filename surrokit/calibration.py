"""Simulation-based calibration: whether posteriors are right for data that a model has made.

True parameters theta are drawn from the prior, and data y from the model at theta. Then theta is a
draw of the posterior given y, and its ranks among other draws are uniform (Cook, Gelman and Rubin
2006, doi:10.1198/106186006X136976; Talts et al. 2018, arXiv:1804.06788).

**Exact ranks from few calls.** A surrogate V of the posterior given y, which knows nothing of theta
but by y, has draws x_1..x_m, at which U is evaluated. Let x_0 = theta. Given y and the set of all
m + 1 positions, the one that came from the prior is x_j with probability w_j / sum w, where
w = exp(V - U). So with v uniform on (0, 1)

    r = (sum of w_j over x_j below theta, and v w_0) / (sum of all w_j)

is uniform whatever V is. A bad surrogate makes weights uneven: ranks are still uniform, and have
less power. V learns from what was evaluated for all earlier data sets, so each needs few calls.

A part of the draws is evaluated first, and decides by its weights whether V is accepted. Else V
learns from them, and there is another round. As theta has passed no such test, each w_j is to be
multiplied by the number of parts of that size, of all positions but x_j, that pass it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, cached_property
from itertools import combinations
from typing import Any, TypeAlias

import attrs
import numpy as np

from surrokit.arguments import is_number, is_whole, numbers, read_seed
from surrokit.capabilities import JACOBIAN
from surrokit.compute import Compute, check_compute
from surrokit.cost.recording import RecordingPotential
from surrokit.diagnostics import check_probability
from surrokit.errors import (
    ConfigurationError,
    NumericalError,
    SurrogateFitError,
    TargetError,
)
from surrokit.interfaces import Evaluations, LearningProblem, Surrogate
from surrokit.kernel.jumps import StudentT
from surrokit.limits import one_thread
from surrokit.mode.descent import Mode, descend
from surrokit.potentials import Energy, Potential, check_target
from surrokit.registry.catalogue import Composer, Spec, default_catalogue
from surrokit.result.records import Finding, Verdict, note, warning
from surrokit.result.run import Run
from surrokit.surrogate.training import near_least
from surrokit.targets.bounds import LiftedEnergy, parameters_of, transform_of
from surrokit.targets.energies import JointEnergy
from surrokit.targets.simulated import observed_energy, prior_laws
from surrokit.types import BoolArray, FloatArray, IntArray
from surrokit.weighted.round import effective, resampled_rows, shares

TESTED, RANKED = 3, 8
"""Draws of a surrogate that decide whether it is accepted, and all that ranks are taken among."""

LARGEST_SPREAD = 1.0
"""Standard deviation of log weights, in nats, up to which a surrogate is accepted."""

MOST_ROUNDS, MOST_FAILURES, MOST_ROWS = 6, 100, 150
"""Rounds for one data set, draws of the prior at which the model fails, and evaluations that a
surrogate learns from, at most."""

POOL, FEWEST_EFFECTIVE, DEGREES = 2000, 100, 5.0
"""Draws of a t distribution, from which those of a surrogate are resampled; how many of them have
to be effective; and its degrees of freedom."""

FEWEST_SETS, FEWEST_DRAWS = 50, 3.0
"""Data sets, and effective draws of each rank, with fewer than which little is detected."""

FALSE_ALARMS = 0.01
"""Probability of a warning that some ranks are not uniform, where all are."""

LOG_DENSITY = "log density"
"""What is ranked beside the parameters: it depends on the data, and so detects a posterior that
ignores them (Modrak et al. 2023, doi:10.1214/23-BA1404)."""

Simulate: TypeAlias = Callable[[np.random.Generator, FloatArray, FloatArray], Any]
"""From a generator, outputs (m,) and a position (dim,) to data (m,)."""


def calibrate(
    target: Potential | Spec,
    prior: Run | Mapping[str, Any] | None = None,
    n: int = 200,
    *,
    simulate: Simulate | None = None,
    surrogate: Surrogate | Spec | None = None,
    max_calls: float | None = None,
    compute: Compute | None = None,
    seed: int | np.random.Generator | None = None,
) -> Calibration:
    """Check by simulated data whether posteriors of a forward map are calibrated.

    For each data set true parameters are drawn from the prior, and data from the map with errors.
    The ranks of the true parameters among draws of the posterior are uniform if prior, errors and
    data belong together. All data sets share what the model evaluates, and a surrogate of the map;
    ranks are exact whatever that is worth.

    Parameters
    ----------
    target
        A posterior, such as ``model.posterior(data=..., noise_sd=...)``. Where its model has a
        file, a calibration with the same seed finds in it what was evaluated before.
    prior
        What true parameters are drawn from: distributions of ``scipy.stats`` by name, in place of
        the target's own; or a run of the target. Each posterior is then that of the data of the
        run and the simulated ones together (Sailynoja et al. 2025, arXiv:2502.03279), so that
        parameters that the data exclude play no part. None for the priors of the target.
    n
        Data sets.
    simulate
        Makes data (m,) from a generator, outputs (m,) and a position (dim,); None for the errors of
        the target.
    surrogate
        As for :func:`surrokit.sample`; None for a quadratic one, which is fitted in milliseconds,
        and the usual one where that is not accepted.
    max_calls
        Limit of all calls; 15 for each data set by default.
    compute
        Where calls are made.
    seed
        Whole number or generator.

    Returns
    -------
    Calibration
        Ranks, tests of uniformity, a picture and a verdict.

    Raises
    ------
    CapabilityError
        If the target has no forward map with data.
    ConfigurationError
        If a prior cannot be drawn from, or something is not of its kind.
    TargetError
        If the model fails at a hundred draws of the prior in a row.
    """
    if not is_whole(n, 1) or not (max_calls is None or (is_number(max_calls) and max_calls >= 1)):
        raise ConfigurationError(
            f"n and max_calls must be numbers of at least 1, got {n!r} and {max_calls!r}"
        )
    exact = check_target(Composer(default_catalogue()).make("potential", target))
    most = 15.0 * n if max_calls is None else float(max_calls)
    with check_compute(compute).spread(exact) as spread, one_thread():
        series = _Series(spread, prior, simulate, _surrogates(surrogate), most, read_seed(seed))
        found = [*series.ranks(n)]
    labels, ranks = series.labels, [each for each in found if each is not None]
    return Calibration(
        labels=labels,
        ranks=np.reshape([each[0] for each in ranks], (-1, len(labels))),
        effective=np.array([each[1] for each in ranks]),
        requested=n,
        rejected=len(found) - len(ranks),
        failures=series.failures,
        calls=series.target.calls,
    )


class _Series:
    """Posteriors of one data set after another, by one model and what it has evaluated so far."""

    def __init__(
        self,
        exact: Potential,
        prior: Run | Mapping[str, Any] | None,
        simulate: Simulate | None,
        surrogates: list[Surrogate],
        most: float,
        rng: np.random.Generator,
    ) -> None:
        self.target, self.failures = RecordingPotential(exact, keep=True), 0
        self.labels = (*parameters_of(exact).labels, LOG_DENSITY)
        self._energy, self._transform = observed_energy(exact), transform_of(exact)
        self._run = prior if isinstance(prior, Run) else None
        self._laws = []
        if not isinstance(prior, Run):
            self._laws = prior_laws(parameters_of(exact), self._energy, prior or {})
        self._simulate, self._most, self._rng = simulate, most, rng
        self._with_jacobians = JACOBIAN in exact.capabilities
        self._surrogates = surrogates
        self._rows: list[Evaluations] = []

    def ranks(self, n: int) -> Iterator[tuple[FloatArray, float] | None]:
        """Yield ranks (k,) for n data sets, with effective draws; None where none are accepted."""
        each = 10 if self._with_jacobians else 30
        size = max(int(min(each * self.target.dim, 0.2 * self._most)), 1)
        self._rows.append(self._evaluate(self._draw(size), learns=True))
        for i in range(n):
            left = self._most - self.target.n_calls
            if left < 1 + RANKED:
                return
            true = self._true()
            # some data sets take more than their share, as others take less
            share = max(3.0 * left / (n - i), RANKED)
            yield self._rank(true, min(left - 1.0, share))
            self._rows.append(true)

    def _draw(self, size: int) -> FloatArray:
        """Return draws of the prior, shape (size, dim), in the sampling coordinates."""
        if self._run is not None:
            positions = self._run.resampled(size, self._rng)
        else:
            positions = np.hstack([law(self._rng, size) for law in self._laws])
        return self._transform.to_unbounded(positions)

    def _evaluate(self, positions: FloatArray, *, learns: bool) -> Evaluations:
        """Return evaluations at positions (n, dim), with Jacobians if they are learnt from."""
        of_jacobians = learns and self._with_jacobians
        self.target.keep_evaluations(True, jacobians=of_jacobians)
        (self.target.value_and_gradient if of_jacobians else self.target.value)(positions)
        return attrs.evolve(self.target.drain(), gradients=None)

    def _true(self) -> Evaluations:
        """Return an evaluation at true parameters, where the model has outputs.

        A posterior has no mass where the model fails, and so must the prior have none.
        """
        for _ in range(MOST_FAILURES):
            true = self._evaluate(self._draw(1), learns=True)
            if true.outputs is not None and np.isfinite(true.outputs).all():
                return true
            self.failures += 1
        raise TargetError(
            f"the model failed at {MOST_FAILURES} draws of the prior in a row; give a prior under "
            "which it can be evaluated"
        )

    def _rank(self, true: Evaluations, most: float) -> tuple[FloatArray, float] | None:
        """Return the ranks of true parameters, by so many calls at most."""
        energy, before = self._energy_of(true), self.target.n_calls
        for i in range(MOST_ROUNDS):
            if self.target.n_calls - before + RANKED > most:
                break
            learnt = self._rows_under(energy)
            part = self._surrogates[i * len(self._surrogates) // MOST_ROUNDS]
            surrogate = self._fit(part, energy, learnt)
            drawn = None if surrogate is None else self._resample(surrogate, learnt)
            if surrogate is None or drawn is None:
                self._rows.append(self._evaluate(self._nearby(learnt), learns=True))
                continue
            tested = self._evaluate(drawn[:TESTED], learns=True)
            self._rows.append(tested)
            if not are_accepted(_log_weights(surrogate, energy, tested)):
                continue
            ranked = self._evaluate(drawn[TESTED:], learns=False)
            self._rows.append(ranked)
            rows = Evaluations.join([true, tested, ranked], self.target.dim)
            weights = chances(_log_weights(surrogate, energy, rows))
            quantities = self._transform.to_bounded(rows.positions)
            densities = -_values(energy.inner, rows, quantities)
            quantities = np.column_stack([quantities, densities])
            return ranks_of(quantities, weights, self._rng), effective(weights)
        return None

    def _energy_of(self, true: Evaluations) -> LiftedEnergy:
        """Return the energy of data that true parameters make, in the sampling coordinates."""
        assert true.outputs is not None
        position = self._transform.to_bounded(true.positions)
        if self._simulate is None:
            data = self._energy.draw_data(self._rng, true.outputs, position)[0]
        else:
            found = self._simulate(self._rng, true.outputs[0].copy(), position[0])
            data = numbers("simulated data", found)
        energy: Energy = self._energy.with_data(data)
        if self._run is not None:
            likelihood = attrs.evolve(self._energy.with_data(data), prior=None)
            energy = JointEnergy((self._energy, likelihood))
        return LiftedEnergy(energy, self._transform)

    def _rows_under(self, energy: Energy) -> Evaluations:
        """Return what was evaluated, as evaluations under other data; those of least energy."""
        rows = Evaluations.join(self._rows, self.target.dim)
        rows = attrs.evolve(rows, values=_values(energy, rows, rows.positions))
        rows = near_least(rows.take(np.isfinite(rows.values)))
        return rows.take(np.argsort(rows.values, kind="stable")[:MOST_ROWS])

    def _fit(self, part: Surrogate, energy: Energy, rows: Evaluations) -> Potential | None:
        capabilities = self.target.capabilities
        problem = LearningProblem(
            dim=self.target.dim, capabilities=capabilities, energy=energy, is_density=True
        )
        learner = part.learner(problem, self._rng)
        try:
            learner.observe(rows)
            return learner.fit()
        except SurrogateFitError:
            return None

    def _resample(self, surrogate: Potential, rows: Evaluations) -> FloatArray | None:
        """Return draws of a surrogate, shape (RANKED, dim); None where too few are effective.

        They are those of a t distribution at its mode, resampled by their weights.
        """
        rng = self._rng
        start = rows.positions[np.argmin(surrogate.value(rows.positions))]
        try:
            law = _law_at(descend(surrogate, start), rows)
            for _ in range(MOST_ROUNDS):
                pool = law.draw(POOL, rng)
                logs = -surrogate.value(pool) - law.log_density(pool)
                if effective(logs) > 0.5 * POOL:
                    break
                law, _ = law.adapt(pool, logs)
        except (NumericalError, np.linalg.LinAlgError):
            return None
        if not effective(logs) >= FEWEST_EFFECTIVE:
            return None
        return pool[resampled_rows(logs, rng)[:RANKED]]

    def _nearby(self, rows: Evaluations) -> FloatArray:
        """Return positions (n, dim) about the lowest one, where no surrogate can be used yet."""
        if not len(rows):
            return self._draw(TESTED)
        moves = self._rng.standard_normal((TESTED, self.target.dim)) * rows.positions.std(axis=0)
        return np.asarray(rows.positions[0] + moves / 3.0)


def _surrogates(given: Surrogate | Spec | None) -> list[Surrogate]:
    """Return surrogates to learn with, those of earlier rounds first."""
    composer = Composer(default_catalogue())
    quick = composer.catalogue.serving("surrogate", "normal")
    names = [given] if given is not None else [composer.catalogue.pick("surrogate")]
    if given is None and quick is not None:
        names.insert(0, quick.name)
    found = [composer.make("surrogate", name) for name in names]
    if not all(hasattr(each, "learner") for each in found):
        raise ConfigurationError(
            f"calibration needs a surrogate that learns, got a {type(given).__name__}; name "
            "another, or leave it out"
        )
    return found


def _law_at(mode: Mode, rows: Evaluations) -> StudentT:
    """Return a t distribution at a mode, by second derivatives or else by evaluations."""
    dim = len(mode.position)
    hessian = mode.hessian
    if hessian is None:
        law = StudentT.about(rows.positions[: 10 * dim], 1.0)
        return attrs.evolve(law, centre=mode.position, degrees=DEGREES)
    values, vectors = np.linalg.eigh(hessian)
    values = np.maximum(values, 1e-10 * values.max())
    factor = np.linalg.cholesky((vectors / values) @ vectors.T)
    return StudentT(centre=mode.position, factor=factor, degrees=DEGREES)


def _values(energy: Energy, rows: Evaluations, positions: FloatArray) -> FloatArray:
    """Return U of rows at positions, shape (n,); infinite where there are no outputs."""
    if rows.outputs is None:
        return np.full(len(rows), np.inf)
    with np.errstate(all="ignore"):
        values = energy.value(rows.outputs, positions)
    return np.where(np.isnan(values), np.inf, values)


def _log_weights(surrogate: Potential, energy: Energy, rows: Evaluations) -> FloatArray:
    """Return V - U, shape (n,); -inf where the target is zero."""
    exact = _values(energy, rows, rows.positions)
    with np.errstate(all="ignore"):
        logs = surrogate.value(rows.positions) - exact
    return np.where(np.isinf(exact), -np.inf, np.minimum(logs, 1e6))  # where V is infinite


def are_accepted(log_weights: FloatArray) -> BoolArray:
    """Return whether log weights (..., TESTED) of draws of a surrogate are even enough."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.std(log_weights, axis=-1) <= LARGEST_SPREAD)


def chances(log_weights: FloatArray) -> FloatArray:
    """Return log w (m + 1,) and the log of how many parts of the others pass the test.

    Of a set of positions that is the log of the probability that theta is a certain one.
    """
    n = len(log_weights)
    parts = np.array([*combinations(range(n), TESTED)])
    passing = parts[are_accepted(log_weights[parts])]
    counts = len(passing) - np.bincount(passing.ravel(), minlength=n)
    with np.errstate(divide="ignore"):
        return np.asarray(log_weights + np.log(counts))


def ranks_of(
    quantities: FloatArray, log_weights: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Return ranks in (0, 1) of the first of quantities (m + 1, k) among all, shape (k,).

    Where the first is among several that are equal, its rank is drawn from theirs.
    """
    weights = shares(log_weights)
    below, equal = quantities < quantities[0], quantities == quantities[0]
    part = rng.random(quantities.shape[1])
    return np.asarray(weights @ below + part * (weights @ equal))


# --- tests of uniformity ---


@attrs.frozen(kw_only=True, eq=False, slots=False)
class Calibration:
    """Ranks of true parameters among draws of posteriors, for simulated data.

    Parameters
    ----------
    labels
        Names of what is ranked: all numbers of a position, and the log density.
    ranks : ndarray of shape (sets, k)
        Of the data sets whose posteriors are accepted; uniform on (0, 1) if all is right. High ones
        are of true parameters above the draws.
    effective : ndarray of shape (sets,)
        Draws of equal weight that each rank is worth; at most 9.
    requested
        Data sets that were asked for.
    rejected
        Those for which no surrogate was accepted, so that there are no ranks.
    failures
        Draws of the prior at which the model failed, in whose place there were others.
    calls
        Evaluations of the model by kind.
    """

    labels: tuple[str, ...]
    ranks: FloatArray
    effective: FloatArray
    requested: int
    rejected: int
    failures: int
    calls: Mapping[str, int]

    @property
    def total_calls(self) -> int:
        """Evaluations of the model."""
        return sum(self.calls.values())

    @cached_property
    def p_values(self) -> FloatArray:
        """Probability of ranks at least as far from uniform, for each label, shape (k,)."""
        if not len(self.ranks):
            return np.ones(len(self.labels))
        levels = _Levels.of(len(self.ranks))
        return np.array([levels.p_value(each) for each in self.ranks.T])

    @cached_property
    def verdict(self) -> Verdict:
        """What is wrong, if anything, and in which way."""
        return Verdict(tuple(sorted(_judge(self), key=lambda each: not each.warns)))

    def bands(self, probability: float = 0.95) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return places, and ends of a band that holds the whole ECDF of uniform ranks.

        Bands are simultaneous (Sailynoja, Buerkner and Vehtari 2022,
        doi:10.1007/s11222-022-10090-6): all of an ECDF lies within with the probability, of one
        parameter.

        Raises
        ------
        ConfigurationError
            If the probability is none, or there are no ranks.
        """
        check_probability(probability)
        if not len(self.ranks):
            raise ConfigurationError("there are no ranks to show; give more calls")
        return _Levels.of(len(self.ranks)).bands(probability)

    def plot(self) -> Any:
        """Return a figure of the ECDF of each label's ranks, less that of uniform ones.

        Raises
        ------
        ConfigurationError
            If there are no ranks.
        MissingDependencyError
            If Matplotlib is not installed.
        """
        from surrokit.plots.plots import calibration_figure

        return calibration_figure(self)

    def to_dict(self) -> dict[str, Any]:
        """Return all as plain data."""
        arrays = {name: getattr(self, name).tolist() for name in ("ranks", "effective", "p_values")}
        counts = {name: getattr(self, name) for name in ("requested", "rejected", "failures")}
        found = {"labels": [*self.labels], **arrays, **counts, "calls": dict(self.calls)}
        return {**found, "verdict": self.verdict.to_dict()}

    def __str__(self) -> str:
        size = max(map(len, self.labels))
        lines = [f"{'':{size}}  mean rank  sd    p"]
        for label, ranks, p in zip(self.labels, self.ranks.T, self.p_values, strict=True):
            mean, sd = (ranks.mean(), ranks.std()) if len(ranks) else (np.nan, np.nan)
            lines.append(f"{label:{size}}  {mean:9.3f}  {sd:.3f} {p:.2g}")
        uniform = "uniform ranks have mean 0.5 and sd 0.289"
        calls = ", ".join(f"{n} {kind}" for kind, n in self.calls.items() if n)
        lines += [f"{len(self.ranks)} data sets; {uniform}; exact calls: {calls}"]
        return "\n".join([*lines, str(self.verdict)])


SIMULATIONS = 20_000
"""Samples of uniform numbers that levels are found by."""


@attrs.frozen(eq=False)
class _Levels:
    """The distribution of n uniform numbers' ECDF, at equidistant places.

    The count of numbers below a place is binomial. The level of a sample is twice the least of the
    probabilities of both sides, over all places.
    """

    n: int
    places: FloatArray
    below: FloatArray
    """Binomial distribution functions, shape (places, n + 2), of -1, 0, ..., n."""
    levels: FloatArray
    """Of samples of uniform numbers, in order."""

    @classmethod
    @cache
    def of(cls, n: int) -> _Levels:
        """Return that of n numbers."""
        from scipy.stats import binom  # late: importing the package stays fast

        parts = int(np.clip(n, 2, 100))
        places = np.arange(1, parts) / parts
        below = binom.cdf(np.arange(-1, n + 1), n, places[:, None])
        counts = np.random.default_rng(0).multinomial(n, np.full(parts, 1.0 / parts), SIMULATIONS)
        found = cls(n, places, below, np.empty(0))
        levels = np.sort(found._level(np.cumsum(counts, axis=1)[:, :-1]))
        return cls(n, places, below, levels)

    def p_value(self, ranks: FloatArray) -> float:
        """Return the probability of a level that is at most that of ranks (n,)."""
        level = self._level((ranks <= self.places[:, None]).sum(axis=1)[None])[0]
        least = np.searchsorted(self.levels, level * (1.0 + 1e-9), side="right")
        return float((1.0 + least) / (1.0 + SIMULATIONS))

    def bands(self, probability: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return places, and the ends of a band at them."""
        from scipy.stats import binom

        level = float(np.quantile(self.levels, 1.0 - probability))
        low, high = (binom.ppf(part, self.n, self.places) for part in (level / 2, 1 - level / 2))
        return self.places, low / self.n, high / self.n

    def _level(self, counts: IntArray) -> FloatArray:
        """Return the level of counts (k, places), shape (k,)."""
        at = np.arange(len(self.places))
        sides = np.minimum(self.below[at, counts + 1], 1.0 - self.below[at, counts])
        return np.asarray(2.0 * sides.min(axis=1))


def _judge(found: Calibration) -> Iterator[Finding]:
    """Yield what is wrong, and what else there is to know."""
    n, k = found.ranks.shape
    wrong = np.flatnonzero(found.p_values * k < FALSE_ALARMS)
    for i in wrong:
        p = found.p_values[i]
        how = _how(found.ranks[:, i], is_density=found.labels[i] == LOG_DENSITY)
        yield warning("ranks", f"ranks of {found.labels[i]!r} are not uniform (p = {p:.2g}): {how}")
    if n and not len(wrong):
        yield note(
            "ranks",
            f"ranks of all parameters and of the log density are uniform as far as {n} data sets "
            f"detect, with p = {found.p_values.min():.2g} at the least",
        )
    if n < FEWEST_SETS:
        yield warning(
            "few",
            f"{n} data sets detect gross errors alone; raise n, or max_calls where that ended",
        )
    if n and (worth := float(found.effective.mean())) < FEWEST_DRAWS:
        yield warning(
            "effective",
            f"ranks are worth {worth:.1f} draws on average, as surrogates are bad, and detect "
            "little; give a run as prior, or another surrogate",
        )
    tried = n + found.rejected
    if found.rejected:
        message = (
            f"no surrogate was accepted for {found.rejected} of {tried} data sets, which are left "
            "out; raise max_calls, or give a run as prior, so that posteriors are nearer together"
        )
        yield (warning if found.rejected > 0.5 * tried else note)("rejected", message)
    if tried < found.requested:
        yield note("stopped", f"max_calls ended the calibration after {tried} data sets")
    if found.failures:
        yield note(
            "failures",
            f"draws of the prior at which the model failed ({found.failures}) were drawn anew: "
            "ranks are those under the prior where the model works",
        )


def _how(ranks: FloatArray, *, is_density: bool) -> str:
    """Return in which way ranks are not uniform, by their mean and spread."""
    n, away = len(ranks), ranks - 0.5
    shift = away.mean() * np.sqrt(12.0 * n)
    spread = (np.square(away).mean() - 1.0 / 12.0) * np.sqrt(180.0 * n)
    outside = f"{np.mean(np.abs(away) > 0.45):.0%} of true values are outside of 90 % intervals"
    if is_density:
        side = "higher" if shift > 0.0 else "lower"
        return (
            f"it is {side} at true parameters than at draws; compare the errors and the prior of "
            "the target with what simulates data"
        )
    if abs(shift) > abs(spread):
        side = "low" if shift > 0.0 else "high"
        return f"posteriors are shifted, too {side}; look for a bias in the data or the prior"
    if spread > 0.0:
        return f"posteriors are too narrow, {outside}; errors or prior are too narrow"
    return f"posteriors are too wide, {outside}; errors or prior are too wide"
