"""Exploration by values alone, where a process of those so far is least sure of the posterior."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import cast

import attrs
import numpy as np

from surrokit.arguments import fraction, optional_positive_integer
from surrokit.capabilities import INITIAL
from surrokit.errors import SurrogateFitError
from surrokit.exploring import demand_warmup, evaluate_alone, idle, noise_at
from surrokit.interfaces import (
    ChainState,
    Correction,
    Evaluations,
    Explored,
    Findings,
    Sampler,
    Start,
    Tuning,
)
from surrokit.kernel.kernel import Binding, warm_up
from surrokit.limits import one_thread
from surrokit.mode.starts import SPREAD, spread_positions
from surrokit.modes import Modes
from surrokit.potentials import FullPotential, Potential
from surrokit.surrogate.quality import expected_acceptance
from surrokit.surrogate.whitening import Whitening
from surrokit.targets.bounds import between_of
from surrokit.targets.scaling import is_undeclared
from surrokit.types import BoolArray, Capabilities, FloatArray, IntArray
from surrokit_gp.bend import Bend
from surrokit_gp.coordinates import (
    PREDICTS,
    about_lowest,
    flat_from,
    follow_bent_quadratic,
    follow_quadratic,
    refocus,
    straighten,
)
from surrokit_gp.elsewhere import MOST, PART, are_lower, box_about, find_modes
from surrokit_gp.fitted import FittedProcess
from surrokit_gp.quadratic import (
    QuadraticProcess,
    fit_bent_by_values,
    fit_likelier,
    kept_up_to,
    typical_noise,
)
from surrokit_gp.rows import TrainingRows

JUDGED = 8  # latest draws of the process by which it is judged
HOTTEST = 3.0  # highest temperature at which points are looked for
WARM = 2.0  # temperature of every second batch at least: plain draws do not reach tails
SHRINK = 0.7  # of the coordinates about the best point, where no process could be fitted
LEAST_PART = 0.3  # of them, where the last points were far too high
FARTHER = 8.0 * SPREAD  # reach of half of the values far away, where nothing is declared
SEVERAL = 3  # points of a batch at least


@attrs.frozen(kw_only=True, eq=False)
class Active:
    """Evaluate where a process of all values so far is least sure of the posterior.

    A process about a random quadratic is fitted after each batch of a few values, and chains on it
    show where its mass is. The draws that reduce its predictive variance most are evaluated, with
    some plain draws to judge it by. Its coordinates follow its own draws, or the points of high
    density where it was wrong, or a quadratic that predicts all values. It needs no gradient, and
    far fewer values than a search for the mode by differences. It looks about where the target
    expects itself to be (``plausible``), or about the chains' starts. A few values farther out say
    whether the target is denser there than the process expects, and another process looks there.

    It serves up to about twelve dimensions. Active learning of log densities: Kandasamy, Schneider
    and Poczos (2017, Artificial Intelligence 243); by a process about a quadratic: Acerbi (2018,
    arXiv:1810.05558); by variances weighted with powers of the density: El Gammal, Schöneberg,
    Torrado and Fidler (2023, arXiv:2211.02045).

    Parameters
    ----------
    tuned, correction
        The sampler to tune on the last surrogate, the run's own, and what decides there.
    evaluations
        Exact values at most; None for 100 + 25 dim, or all that the run's budget leaves to
        explorations if that is less.
    acceptance
        Predicted acceptance of independent draws of the process that is good enough.

    Raises
    ------
    ConfigurationError
        If a setting is out of range.
    """

    tuned: Sampler
    correction: Correction
    evaluations: int | None = attrs.field(default=None, validator=optional_positive_integer)
    acceptance: float = attrs.field(default=0.9, validator=fraction)

    @property
    def needs(self) -> Capabilities:
        """Nothing but values."""
        return frozenset()

    def explore(self, start: Start, rng: np.random.Generator) -> Iterator[Explored]:
        """Yield after each batch of evaluations; see the protocol."""
        demand_warmup("active", start.warmup)
        values = evaluate_alone(start.potential, start.positions)
        n, dim = start.positions.shape
        chains = ChainState(positions=start.positions, values=values, cache={"value": values})
        search = _Search(start.potential, start.positions, values)
        most = self.evaluations
        if most is None:
            most = 100 + 25 * dim
            most = most if start.calls is None else max(min(most, start.calls), 1)
        others = _Elsewhere(search, most)
        yield Explored(findings=search.findings(chains))
        for step in range(1, start.warmup + 1):
            seed, info, tuning = int(rng.integers(2**62)), idle(n), None
            with one_thread():
                now = others.searches[-1]
                now.go_on(most - others.beside, rng)
                over = now.is_good(self.acceptance) or others.n_evaluated >= most - others.spare
                done = step == start.warmup or ((over or others.is_known) and not others.look(rng))
            known, rows = search.acceptance or 0.0, start.evaluated()
            if done:
                with one_thread():
                    others.find_modes()
                ends = others.choose_ends(n, rng)
                if ends is not None:
                    chains, info = ends, idle(n, n)
                rows = Evaluations.join([rows, start.evaluated()], dim)
                surrogate = start.fit(rows, others.several)
                # a warm-up of its own does better where next to nothing would be accepted, and none
                # follows where few calls are left
                chains_follow = start.calls is None or start.calls > 2 * most
                if surrogate is not None and known >= 0.6 and chains_follow:
                    tuning = self._tune(search, surrogate, np.random.default_rng(seed))
                rows = rows.take(slice(0))
            findings = attrs.evolve(search.findings(chains, tuning), modes=others.modes)
            yield Explored(findings=findings, step=info, rows=rows, done=done)
            if done:
                return

    def _tune(
        self, search: _Search, surrogate: Potential, rng: np.random.Generator
    ) -> Tuning | None:
        """Return what the run's sampler needs, by 20 chains on its surrogate, if these move."""
        covariance, transitions = search.covariance, 150
        if covariance is None or not self.tuned.needs <= surrogate.capabilities:
            return None
        starts = search.positions[rng.choice(search.likely, 20)]
        moves = Binding(self.tuned, surrogate, 20)
        moves.tune(transitions, covariance=covariance, step_size=None)
        with one_thread():
            decider = self.correction.bind(surrogate)
            steps = warm_up(moves, decider, starts, transitions, rng)
            accepted = [info.accepted.mean() for _, info in steps]
        return moves.tuning if np.mean(accepted[transitions // 2 :]) >= 0.1 else None


class _Elsewhere:
    """Searches for modes, one after another, and values far away that say where to begin.

    Where the target is as the processes so far expect, or higher, a further search would end at a
    mode that is known.
    """

    def __init__(self, first: _Search, most: int) -> None:
        self.searches = [first]
        self.modes: Modes | None = None
        self.probes, self.probed = first.positions[:0], first.values[:0]
        self._most, self._n_probes = most, 2 * (min(most // PART, MOST) // 2)
        self._led = 0  # further searches that came to what was known

    @property
    def n_evaluated(self) -> int:
        """Values so far."""
        return sum(len(each.values) for each in self.searches) + len(self.probes)

    @property
    def beside(self) -> int:
        """Values that are not for the latest search."""
        return self.n_evaluated - len(self.searches[-1].values) + self.spare

    @property
    def spare(self) -> int:
        """Values that are kept for a look far away, once there is a process to compare with."""
        return 0 if self.searches[0].fitted is None else self._n_probes - len(self.probes)

    @property
    def is_known(self) -> bool:
        """Whether the latest search has come to what the ones before it know."""
        now, before = self.searches[-1], self.searches[:-1]
        best = now.best[None], now.values[[int(np.argmin(now.values))]]
        return bool(before) and now.fitted is not None and not self._are_lower(before, *best)[0]

    def look(self, rng: np.random.Generator) -> bool:
        """Begin another search where the target is denser than expected; return whether it is."""
        first = self.searches[0]
        if self.is_known:
            self._led += 1
            self.searches.pop()
        elif self.searches[-1].fitted is None:
            return False
        if not len(self.probes) and self._n_probes:
            at, exact = first.positions[: first.n_starts], first.potential
            reaches = (None, FARTHER) if is_undeclared(exact) else (None,)
            n = self._n_probes // len(reaches)
            sets = [spread_positions(exact, rng, n, at, reach) for reach in reaches]
            self.probes = np.concatenate(sets)
            self.probed = evaluate_alone(exact, self.probes)
        if self._led or self._most - self.n_evaluated < 3 * len(first.best) + 4:
            return False
        lower = np.flatnonzero(self._are_lower(self.searches, self.probes, self.probed))
        if not lower.size or first.covariance is None:
            return False
        k = lower[int(np.argmin(self.probed[lower]))]
        self.searches.append(_Search(first.potential, self.probes[[k]], self.probed[[k]]))
        self.searches[-1].box = box_about(self.probes[k], first.covariance)
        return True

    def _are_lower(
        self, searches: list[_Search], positions: FloatArray, values: FloatArray
    ) -> BoolArray:
        processes = [each.fitted for each in searches if each.fitted is not None]
        least = min(float(each.values.min()) for each in searches)
        return are_lower(processes, least, positions, values)

    def find_modes(self) -> None:
        """Find the modes of all processes, and where starts and values far away lead to."""
        found: list[Modes] = []
        for search in self.searches:
            if search.fitted is not None:
                few = search.likely[np.argsort(search.values[search.likely], kind="stable")[:32]]
                found.append(find_modes(search.fitted, search.positions[few]))
        if not found:
            return
        modes = Modes.join(found)
        first = self.searches[0]
        if len(modes) > 1:  # a process may have a mode that is none
            values = evaluate_alone(first.potential, modes.positions)
            modes = attrs.evolve(modes, values=values).take(values < modes.values + 2.0)
        else:  # the lowest value is known
            lowest = first.values[[int(np.argmin(first.values))]]
            modes = attrs.evolve(modes, positions=first.best[None], values=lowest)
        if not len(modes):
            return
        modes = modes.take(np.argsort(modes.values, kind="stable"))
        starts = np.concatenate([first.positions[: first.n_starts], self.probes])
        values = np.concatenate([first.values[: first.n_starts], self.probed])
        lower = self._are_lower(self.searches, starts, values)
        ended = np.bincount(modes.nearest(starts[~lower]), minlength=len(modes))
        ended[0] += self._led
        self.modes = attrs.evolve(
            modes, ended=np.maximum(ended, 1), unfinished=max(int(lower.sum()) - self._led, 0)
        )

    @property
    def several(self) -> Modes | None:
        """The modes that matter, if these are two or more."""
        modes = self.modes
        several = modes is not None and modes.matters.sum() > 1
        return modes.take(modes.matters) if modes is not None and several else None

    def choose_ends(self, n: int, rng: np.random.Generator) -> ChainState | None:
        """Return chains at modes, if there are several, or at ends of the search."""
        modes = self.several
        if modes is None:
            return self.searches[0].choose_ends(n, rng)
        rows = np.resize(np.arange(len(modes)), n)
        return ChainState(positions=modes.positions[rows], values=modes.values[rows], cache={})


class _Search:
    """All points so far, with U infinite where it failed, and where the next ones may lie."""

    def __init__(self, potential: Potential, positions: FloatArray, values: FloatArray) -> None:
        self.potential, self.positions, self.values = potential, positions, values
        self.noise_sd = noise_at(potential, positions)
        self.between = between_of(potential)
        self.n_starts = len(positions)
        self.box = positions[:0]  # where mass is expected, (2, dim)
        self.fitted: QuadraticProcess | None = None  # the last process
        self.bend = Bend.none(positions.shape[1])  # of the next process, as is its whitening
        self.whitening: Whitening | None = None  # None before there is one
        self.curved: tuple[Bend, Whitening] | None = None  # others that are tried
        self.turned: Whitening | None = None  # the same
        self.n_tried = 0  # values when coordinates were last sought by them
        self.logs: FloatArray | None = None  # log scales of the last process
        self.looked_about = False  # by the last batch
        self.spread = HOTTEST  # root mean square of V - U at draws of late
        self.reach = 1.0  # how many times as far as draws of a normal target the wall lies
        self.unsure = 1.0  # part of the latest draws at which the process was not trusted
        # V - U at the latest draws of V itself, the judges; -inf where U is infinite
        self.errors, self.judges, self.noise = np.empty(0), positions[:0], np.empty(0)
        self.variance = 0.0  # of the last process, mean over its draws

    @property
    def best(self) -> FloatArray:
        """Where U is least, shape (dim,)."""
        return np.asarray(self.positions[int(np.argmin(self.values))])

    @property
    def likely(self) -> IntArray:
        """Rows where the density is more than next to nothing."""
        return np.flatnonzero(self.values <= self.values.min() + flat_from(len(self.best)))

    @property
    def covariance(self) -> FloatArray | None:
        """That of the process's draws, (dim, dim)."""
        return None if self.whitening is None else self.bend.covariance(self.whitening)

    @property
    def acceptance(self) -> float | None:
        """Predicted acceptance of independent draws by the latest judges; None for too few."""
        fine = np.isfinite(self.errors)
        if len(fine) < JUDGED:
            return None
        if np.count_nonzero(fine) < 2:
            return 0.0
        variance = float(np.var(self.errors[fine]))
        if self.noise.any():  # which makes up a part of it, and leaves the process unsure
            variance = max(variance - float(np.square(self.noise[fine]).mean()), self.variance)
        return float(fine.mean()) * expected_acceptance(variance)

    def is_good(self, acceptance: float) -> bool:
        """Return whether draws of the process would be accepted so often."""
        return (self.acceptance or 0.0) >= acceptance and self.unsure <= 0.02

    def findings(self, chains: ChainState, tuning: Tuning | None = None) -> Findings:
        """Return chains at likely points, and what is known of the target."""
        return Findings(
            chains=chains,
            covariance=self.covariance,
            step_size=None,
            mode=self.best if np.isfinite(self.values).any() else None,
            tuning=tuning,
            acceptance=self.acceptance,
        )

    def go_on(self, most: int, rng: np.random.Generator) -> None:
        """Evaluate points that a process of those so far is least sure of, and some draws."""
        if self.whitening is None:
            self._begin(most, rng)
            return
        if not self.noise_sd.any():  # with noise values say too little of curvature
            self._follow_quadratic()
        try:
            fitted = self.fitted = self._fit(self.whitening)
        except SurrogateFitError:  # about the best point
            moves = rng.standard_normal((SEVERAL, len(self.best))) @ self.whitening.factor.T
            at = self.bend.apply(self.best[None]) + SHRINK * moves
            self._evaluate(self.bend.undo(at))
            return
        temperature = float(np.clip(self.spread, 1.0, HOTTEST))
        self.looked_about = temperature < WARM and not self.looked_about
        if self.looked_about:
            temperature = WARM
        draws = fitted.draw(rng, temperature)
        draws = self._within_reach(draws[np.isfinite(draws).all(axis=1)])
        # tails are heavy where more than one draw in a thousand is at the wall
        if temperature == 1.0 and fitted.is_at_wall(draws).mean() > 0.001:
            self.reach = min(1.2 * self.reach, 4.0)
        evaluated = len(self.values)
        batch = max(min(max(SEVERAL, len(self.best) // 2, evaluated // 20), most - evaluated), 1)
        # two thirds every second time, where the other batches have none
        part = 0.0 if self.looked_about else 2.0 / 3.0 if temperature < WARM else 1.0 / 3.0
        n_judges = math.ceil(part * batch)
        few = rng.choice(len(draws), n_judges, replace=False)
        noise = typical_noise(self.noise_sd, fitted.process.hyperparameters)
        ends = self._within_reach(self._scout(fitted, rng))
        among = np.concatenate([draws, ends])
        # draws of exp(-V / T) stand for those of exp(-V), but the hottest for themselves
        hot = temperature > WARM
        parts = [0.7 / temperature] * 2 if hot else [1.0 - 1.0 / temperature, 1.0]
        powers, z = np.repeat(parts, [len(draws), len(ends)]), fitted.whiten(among)
        best = choose(fitted.process, z, powers, batch - n_judges, noise, by_mean=not hot)
        chosen = among[np.concatenate([few, best])]
        values = self._evaluate(chosen)
        errors = fitted.process.value(fitted.whiten(chosen[:n_judges])) - values[:n_judges]
        size = _size_beside(noise, errors) if n_judges else self.spread
        if temperature == 1.0:
            self._judge(chosen[:n_judges], errors, noise)
        elif n_judges:  # draws of a flattened process do not count
            self.errors, self.judges, self.noise = np.empty(0), self.judges[:0], np.empty(0)
        self._follow(draws, temperature, size, values)
        self.logs = fitted.logs
        variances = fitted.variance(draws)
        self.unsure = float(np.mean(variances > fitted.unsure**2))
        self.variance = float(variances.mean())
        self.spread = 0.5 * (self.spread + size)

    def _follow_quadratic(self) -> None:
        """Take coordinates of a quadratic through all values, straight ones if it is one there."""
        assert self.whitening is not None
        fine = np.isfinite(self.values)
        at, values = self.positions[fine], self.values[fine]
        if not self.bend.changes_nothing:  # far from the mass a bend may be likelier by chance
            straight, known = follow_quadratic(about_lowest(at, values), at, values, PREDICTS)
            if known:
                self.bend, self.whitening = Bend.none(at.shape[1]), straight
                return
        self.whitening, known = follow_quadratic(self.whitening, *self._finite)
        curved = None if known else follow_bent_quadratic(at, values, self.between)
        if curved is not None:
            self.bend, self.whitening = curved

    def _follow(
        self, draws: FloatArray, temperature: float, size: float, values: FloatArray
    ) -> None:
        """Take coordinates of draws (n, dim) of a process whose errors have a size, in nats.

        ``values (m,)`` are those of its last points. Where the target is next to nothing at most of
        these, the next ones lie nearer to the best, as if U were a quadratic about that.
        """
        assert self.whitening is not None
        top = kept_up_to(len(self.best), self.noise_sd)
        height = float(np.median(values) - self.values.min())
        if height > 2.0 * top:
            part = max(math.sqrt(top / height), LEAST_PART)
            middle = self.bend.apply(self.best[None])[0]
            self.whitening = Whitening(mean=middle, factor=part * self.whitening.factor)
            return
        if size > 5.0:  # then its draws tell less than the points do
            self.whitening = about_lowest(*self._finite)
            return
        bent = self.bend.apply(draws)
        self.turned = refocus(self.whitening, bent, temperature, turns=0.0)
        self.whitening = refocus(self.whitening, bent, temperature)
        self.curved = straighten(draws, temperature)

    def _judge(self, draws: FloatArray, errors: FloatArray, noise: float) -> None:
        """Judge the process by its errors (n,) at its latest draws (n, dim), beside noise."""
        self.errors = np.concatenate([self.errors, errors])[-JUDGED:]
        self.noise = np.append(self.noise, np.full(len(draws), noise))[-JUDGED:]
        self.judges = np.concatenate([self.judges, draws])[-max(JUDGED, self.n_starts) :]

    @property
    def _finite(self) -> tuple[FloatArray, FloatArray]:
        """Bent positions (n, dim) where U is finite, and U there (n,)."""
        fine = np.isfinite(self.values)
        return self.bend.carry(self.positions[fine], self.values[fine])

    def _fit(self, whitening: Whitening) -> QuadraticProcess:
        """Return the process of all values; failures count among the flattened ones.

        So points are not sought there.
        """
        high = float(self.values.min()) + math.e * flat_from(len(self.best))
        shown = np.where(np.isfinite(self.values), self.values, high)
        found = Evaluations(positions=self.positions, values=shown, noise_sd=self.noise_sd)
        rows = TrainingRows.of(found, "full")
        fitted = QuadraticProcess.fit(rows, whitening, self.logs, bend=self.bend, reach=self.reach)
        fitted = fit_likelier(fitted, rows, [self.curved], self.logs, reach=self.reach)
        if len(rows) >= 1.1 * self.n_tried:
            self.n_tried = len(rows)
            fitted = fit_bent_by_values(fitted, rows, self.logs, reach=self.reach)
            if self.turned is not None and fitted.bend is self.bend:
                turned = [(self.bend, self.turned)]
                fitted = fit_likelier(fitted, rows, turned, self.logs, reach=self.reach)
        self.bend, self.whitening = fitted.bend, fitted.whitening
        return fitted

    def _within_reach(self, draws: FloatArray) -> FloatArray:
        """Return draws, moved to within a quarter of the box of all that is expected or found."""
        known = np.concatenate([self.box, self.positions[self.likely]])
        low, high = known.min(axis=0), known.max(axis=0)
        return np.clip(draws, low - 0.25 * (high - low), high + 0.25 * (high - low))

    def _scout(self, fitted: QuadraticProcess, rng: np.random.Generator) -> FloatArray:
        """Return where chains come to rest that begin far away: false modes, if there are any."""
        wide = attrs.evolve(fitted, radius=2.0 * fitted.radius)
        ends = wide.draw(rng, spread=2.0)[-64:]
        return ends[np.isfinite(ends).all(axis=1)]

    def _begin(self, most: int, rng: np.random.Generator) -> None:
        """Evaluate the middle of a box, and points spread about it: most corners are far away."""
        dim = self.positions.shape[1]
        middle, half = self.positions[: self.n_starts].mean(axis=0), np.full(dim, 2.0)
        if len(self.box):
            middle, half = self.box.mean(axis=0), 0.5 * np.ptp(self.box, axis=0)
        elif INITIAL in self.potential.capabilities:
            draws = cast(FullPotential, self.potential).initial(rng, 500)
            sds = draws.std(axis=0)
            if (sds > 0.0).all():  # a box that uniform draws fill
                middle, half = draws.mean(axis=0), 3.0**0.5 * sds
        n = max(min(dim + 2, most) - len(self.values), 2) - 1
        strata = rng.permuted(np.tile(np.arange(n)[:, None], dim), axis=0)
        spread = (strata + rng.random(strata.shape)) / n
        self.box = np.array([middle - half, middle + half])
        self._evaluate(np.vstack([middle, middle + 0.5 * half * (2.0 * spread - 1.0)]))
        if np.isfinite(self.values).sum() >= 2:  # else there is nowhere to begin yet
            self.whitening = Whitening(mean=middle, factor=np.diag(half / 3.0))

    def _evaluate(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (m,), at more positions (m, dim)."""
        values = evaluate_alone(self.potential, positions)
        self.noise_sd = np.concatenate([self.noise_sd, noise_at(self.potential, positions)])
        self.positions = np.concatenate([self.positions, positions])
        self.values = np.concatenate([self.values, values])
        return values

    def choose_ends(self, n: int, rng: np.random.Generator) -> ChainState | None:
        """Return chains at draws that were evaluated, or at likely points; None if all failed."""
        among = (self.positions[:, None] == self.judges).all(axis=2).any(axis=1)
        judged = self.likely[among[self.likely]]
        others = np.setdiff1d(self.likely, judged)
        noise = rng.gumbel(size=len(others))  # draws without replacement
        order = others[np.argsort(self.values[others] - noise, kind="stable")]
        rows = np.resize(np.concatenate([judged[::-1], order]), n)
        if not np.isfinite(self.values[rows]).all():
            return None
        return ChainState(positions=self.positions[rows], values=self.values[rows], cache={})


def _size_beside(noise: float, errors: FloatArray) -> float:
    """Return the root mean square of errors (n,), less what noise makes of it."""
    square = float(np.mean(np.square(np.clip(errors, -20.0, 20.0))))
    return math.sqrt(max(square - noise**2, 0.0))


def choose(
    process: FittedProcess,
    z: FloatArray,
    powers: FloatArray,
    n: int,
    noise_sd: float = 0.0,
    *,
    by_mean: bool = False,
) -> IntArray:
    """Return which of ``z (m, dim)`` reduce the variance of U most, one by one, shape (n,).

    The variance is summed over all positions, given the values so far and those at points chosen
    before. They count as exp(-V)^``powers (m,)``, and where ``by_mean`` as much more as the mean of
    exp(-U) is above exp(-V), since U may be lower. The point of the largest variance of its own
    lies at an edge, and reduces that of the mass by little.
    """
    heights, left = process.value(z), process.posterior.covariance(z, z)
    logs = powers * (np.median(heights) - heights)
    if by_mean:  # but where next to nothing is known
        logs += 0.5 * np.minimum(np.diag(left), 2.0)
    counts = np.exp(logs - logs.max())
    chosen: list[int] = []
    for _ in range(min(n, len(z))):
        # with noise of 0.01 nats at least: a point next to a chosen one tells nothing more
        own = np.maximum(np.diag(left), 0.0) + max(noise_sd**2, 1e-4)
        gains = counts @ np.square(left) / own
        gains[chosen] = -1.0
        j = int(np.argmax(gains))
        left = left - np.outer(left[:, j], left[j] / own[j])
        chosen.append(j)
    return np.array(chosen, dtype=np.int64)
