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
from surrokit.exploring import demand_warmup, evaluate_alone, idle
from surrokit.interfaces import (
    ChainState,
    Correction,
    Explored,
    Findings,
    Sampler,
    Start,
    StepInfo,
    Tuning,
)
from surrokit.kernel.kernel import Binding, warm_up
from surrokit.limits import one_thread
from surrokit.potentials import InitialPotential, Potential
from surrokit.surrogate.quality import expected_acceptance
from surrokit.surrogate.whitening import Whitening
from surrokit.types import BoolArray, Capabilities, FloatArray, IntArray
from surrokit_gp.quadratic import QuadraticPrior, QuadraticProcess, flat_from
from surrokit_gp.quadratic_surrogate import UNSURE, Walled, draw, refocus

JUDGED = 8  # latest draws of the process by which it is judged

# the box about the first points, and the coordinates of the first process
INITIAL_DRAWS = 500  # starts that the target is asked for, to learn where it expects itself to be
HALF_WIDTH = 3.0**0.5  # of the box, in standard deviations of those: uniform draws then fill it
SCALE = 2.0  # half the width of the box about starts, where the target draws none of its own
FIRST = 0.5  # part of the width in which the first points lie: most corners are far away
NARROWER = 3.0  # half the width in the standard deviations that are expected first

# batches
HOTTEST = 3.0  # highest temperature at which points are looked for
TILT = 0.35  # of choose, for V / T
NOISE = 1e-4  # of a chosen point, in nats squared: one next to it tells nothing more
JUDGING = 1 / 3  # part of a batch that are plain draws of the process, by which it is judged
SEVERAL, PART = 3, 20  # points of a batch at least, and the part of all points that it is
LOST = 5.0  # error in nats above which a process is trusted about the best point only
SHRINK = 0.7  # of the coordinates, if then nothing better was found
MOST_ERROR = 20.0  # nats above which errors are all alike
MOST_UNSURE = 0.02  # part of the draws at which a process may be unsure that is good enough
AT_WALL = 0.001  # part of draws at the wall, as of heavy tails, above which it is moved outwards
FARTHER, FARTHEST = 1.2, 4.0  # by how much, and up to where

# the run's sampler on the last surrogate
UNSURE_OF_ITSELF = 0.6  # predicted acceptance below which it is not tuned there alone
TUNED_BY, TUNING = 20, 150  # chains, and their transitions
MOBILE = 0.1  # part of these that must be accepted


@attrs.frozen(kw_only=True, eq=False)
class Active:
    """Evaluate where a process of all values so far is least sure of the posterior.

    A process about a :class:`~surrokit_gp.quadratic.QuadraticPrior` is fitted after each batch
    of a few values, chains on it tell where its mass is, and among their draws those are evaluated
    of which it is least sure, with some plain draws to judge it by. Its coordinates follow its own
    draws, and about the best point where it was wrong. It needs no gradient, and far fewer values
    than a search for the mode by differences. It looks in one place alone: about where the target
    expects itself to be (``plausible``), or about the chains' starts. Other modes it misses.

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

    def most(self, dim: int, calls: int | None) -> int:
        """Return the largest number of values, with so many ``calls`` left in the budget."""
        if self.evaluations is not None:
            return self.evaluations
        most = 100 + 25 * dim
        return most if calls is None else max(min(most, calls), 1)

    def explore(self, start: Start, rng: np.random.Generator) -> Iterator[Explored]:
        """Yield after each batch of evaluations; see the protocol."""
        exploration = ActiveExploration(settings=self, potential=start.potential, calls=start.calls)
        state = exploration.start(start.positions, start.warmup)
        yield Explored(findings=exploration.findings(state))
        while not state.finished:
            state, rows = exploration.step(state, rng), start.evaluated()
            if state.finished:
                state = exploration.inform(state, start.fit(rows))
                rows = rows.take(slice(0))
            found = exploration.findings(state)
            yield Explored(findings=found, step=state.info, rows=rows, done=state.finished)


@attrs.frozen(kw_only=True, eq=False)
class ActiveState:
    """All points so far, and where the next ones may lie: plain data.

    Parameters
    ----------
    chains, info
        The chains, and what the last step did to them.
    positions, values : ndarrays of shape (n, dim) and (n,)
        Where the target was evaluated, and U there; infinite where that failed.
    most_paid, most_steps, steps
        Evaluations and steps at most, and steps so far.
    whitening, prior
        Coordinates of the next process, and scales of the last one; None before the first.
    spread
        Root mean square of V - U at draws of late, in nats.
    reach
        How many times as far as draws of a normal target its wall lies.
    unsure
        Part of the latest draws at which the process was not to be believed.
    errors, judges : ndarrays of shape (k,) and (k, dim)
        V - U at the latest draws of V itself, and these draws; -inf where U is infinite.
    finished
        Whether no more is evaluated.
    seed, tuning
        Of chains on the last surrogate, and what the run's own sampler needs on it.
    """

    chains: ChainState
    info: StepInfo | None = None
    positions: FloatArray
    values: FloatArray
    most_paid: int
    most_steps: int
    steps: int = 0
    whitening: Whitening | None = None
    prior: QuadraticPrior | None = None
    spread: float = HOTTEST
    reach: float = 1.0
    unsure: float = 1.0
    errors: FloatArray
    judges: FloatArray
    finished: bool = False
    seed: int = 0
    tuning: Tuning | None = None

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return int(self.positions.shape[1])

    @property
    def paid(self) -> int:
        """Evaluations so far."""
        return len(self.values)

    @property
    def finite(self) -> BoolArray:
        """Which evaluations did not fail, shape (n,)."""
        return np.asarray(np.isfinite(self.values))

    @property
    def best(self) -> FloatArray:
        """Where U is least, shape (dim,)."""
        return np.asarray(self.positions[int(np.argmin(self.values))])

    @property
    def likely(self) -> IntArray:
        """Rows where the density is more than next to nothing."""
        return np.flatnonzero(self.values <= self.values.min() + flat_from(self.dim))

    @property
    def acceptance(self) -> float | None:
        """Predicted acceptance of independent draws by the latest judges; None for too few."""
        if len(self.errors) < JUDGED:
            return None
        fine = np.isfinite(self.errors)
        if np.count_nonzero(fine) < 2:
            return 0.0
        return float(fine.mean()) * expected_acceptance(float(np.var(self.errors[fine])))

    def pay(self, potential: Potential, positions: FloatArray) -> ActiveState:
        """Return the state with evaluations at more positions (m, dim)."""
        values = evaluate_alone(potential, positions)
        return attrs.evolve(
            self,
            positions=np.concatenate([self.positions, positions]),
            values=np.concatenate([self.values, values]),
        )

    def judge(self, judges: FloatArray, errors: FloatArray, *, by_draws: bool) -> ActiveState:
        """Return the state with more draws of a process; such of a flattened one do not count."""
        if not by_draws:
            return attrs.evolve(self, errors=np.empty(0), judges=self.judges[:0])
        return attrs.evolve(
            self,
            errors=np.concatenate([self.errors, errors])[-JUDGED:],
            judges=np.concatenate([self.judges, judges])[-max(JUDGED, len(self.chains.values)) :],
        )

    def fit(self) -> QuadraticProcess:
        """Return the process of the values so far.

        Failed ones are so high that they count among the flattened ones, and that points are not
        sought there.
        """
        assert self.whitening is not None
        assert self.prior is not None
        high = float(self.values.min()) + math.e * flat_from(self.dim)
        shown = np.where(self.finite, self.values, high)
        return QuadraticProcess.fit(self.whitening.apply(self.positions), shown, self.prior)


@attrs.frozen(kw_only=True, eq=False)
class ActiveExploration:
    """Evaluations of one target where a process of those so far is least sure.

    ``calls`` are those that the run's budget leaves; None for no limit.
    """

    settings: Active
    potential: Potential
    calls: int | None

    def start(self, positions: FloatArray, warmup: int) -> ActiveState:
        """Return the state at starting ``positions (n, dim)``, which are evaluated."""
        demand_warmup("active", warmup)
        values = evaluate_alone(self.potential, positions)
        return ActiveState(
            chains=ChainState(positions=positions, values=values, cache={"value": values}),
            positions=positions,
            values=values,
            most_paid=self.settings.most(positions.shape[1], self.calls),
            most_steps=warmup,
            errors=np.empty(0),
            judges=positions[:0],
        )

    def step(self, state: ActiveState, rng: np.random.Generator) -> ActiveState:
        """Return the state after the first points, or one more batch."""
        seed = int(rng.integers(2**62))
        idling = idle(len(state.chains.values))
        state = attrs.evolve(state, steps=state.steps + 1, info=idling, seed=seed)
        with one_thread():
            state = self._begin(state, rng) if state.whitening is None else self._go_on(state, rng)
        acceptance = state.acceptance
        good = acceptance is not None and acceptance >= self.settings.acceptance
        good = good and state.unsure <= MOST_UNSURE
        if good or state.paid >= state.most_paid or state.steps >= state.most_steps:
            return self._finish(state, rng)
        return state

    def inform(self, state: ActiveState, surrogate: Potential | None) -> ActiveState:
        """Return the state with what the run's sampler needs on its surrogate."""
        # a warm-up of its own does better where next to nothing would be accepted
        if surrogate is None or (state.acceptance or 0.0) < UNSURE_OF_ITSELF:
            return state
        return attrs.evolve(state, tuning=self._tune(state, surrogate))

    def findings(self, state: ActiveState) -> Findings:
        """Return chains at likely points, and the covariance of the process's draws."""
        whitening = state.whitening
        return Findings(
            chains=state.chains,
            covariance=None if whitening is None else whitening.factor @ whitening.factor.T,
            step_size=None,
            mode=state.best if state.finite.any() else None,
            tuning=state.tuning,
            acceptance=state.acceptance,
        )

    # --- steps ---

    def _begin(self, state: ActiveState, rng: np.random.Generator) -> ActiveState:
        """Evaluate the middle of a box, and points spread about it."""
        lower, upper = self._box(state, rng)
        middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
        n = max(min(state.dim + 2, state.most_paid) - state.paid, 2) - 1
        strata = rng.permuted(np.tile(np.arange(n)[:, None], state.dim), axis=0)
        spread = (strata + rng.random(strata.shape)) / n
        first = np.vstack([middle, middle + FIRST * half * (2.0 * spread - 1.0)])
        state = state.pay(self.potential, first)
        if state.finite.sum() < 2:  # nowhere to begin yet
            return state
        whitening = Whitening(mean=middle, factor=np.diag(half / NARROWER))
        return attrs.evolve(state, whitening=whitening, prior=QuadraticPrior.usual(state.dim))

    def _box(self, state: ActiveState, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        if INITIAL in self.potential.capabilities:
            draws = cast(InitialPotential, self.potential).initial(rng, INITIAL_DRAWS)
            centre, half = draws.mean(axis=0), HALF_WIDTH * draws.std(axis=0)
            if (half > 0.0).all():
                return centre - half, centre + half
        centre = state.chains.positions.mean(axis=0)
        return centre - SCALE, centre + SCALE

    def _go_on(self, state: ActiveState, rng: np.random.Generator) -> ActiveState:
        """Evaluate points that a process of those so far is least sure of, and some draws."""
        whitening = state.whitening
        assert whitening is not None
        try:
            process = state.fit()
        except SurrogateFitError:  # about the best point
            moves = rng.standard_normal((SEVERAL, state.dim)) @ whitening.factor.T
            return state.pay(self.potential, state.best + SHRINK * moves)
        temperature = float(np.clip(state.spread, 1.0, HOTTEST))
        walled = Walled.of(process, reach=state.reach)
        draws = draw(walled, temperature, rng)
        draws = draws[np.isfinite(draws).all(axis=1)]
        if temperature == 1.0 and walled.is_at_wall(draws).mean() > AT_WALL:
            state = attrs.evolve(state, reach=min(FARTHER * state.reach, FARTHEST))
        batch = max(SEVERAL, state.dim // 2, state.paid // PART)
        batch = max(min(batch, state.most_paid - state.paid), 1)
        n_judges = int(np.ceil(JUDGING * batch))
        few = rng.choice(len(draws), n_judges, replace=False)
        heights = process.mean.value(draws) / temperature
        best = choose(process, draws, heights, batch - n_judges, TILT)
        chosen = draws[np.concatenate([few, best])]
        after = state.pay(self.potential, whitening.undo(chosen))
        values = after.values[state.paid :]
        errors = process.mean.value(chosen[:n_judges]) - values[:n_judges]
        size = float(np.sqrt(np.mean(np.square(np.clip(errors, -MOST_ERROR, MOST_ERROR)))))
        centre, shrink = None, 1.0
        if size > LOST:
            centre = after.best
            shrink = 1.0 if values.min() < state.values.min() - 0.1 else SHRINK
        return attrs.evolve(
            after.judge(
                after.positions[state.paid :][:n_judges], errors, by_draws=temperature == 1.0
            ),
            whitening=refocus(whitening, draws, temperature, centre, shrink),
            prior=process.prior,
            unsure=float(np.mean(process.variance(draws) > UNSURE**2)),
            spread=0.5 * (state.spread + size),
        )

    def _finish(self, state: ActiveState, rng: np.random.Generator) -> ActiveState:
        """Return the state with its chains at draws that were evaluated, or at likely points."""
        n, likely = len(state.chains.values), state.likely
        judged = [
            row
            for row in likely
            if len(state.judges) and (state.positions[row] == state.judges).all(axis=1).any()
        ]
        others = np.setdiff1d(likely, judged)
        noise = rng.gumbel(size=len(others))  # draws without replacement
        order = others[np.argsort(state.values[others] - noise, kind="stable")]
        rows = np.resize(np.concatenate([judged[::-1], order]).astype(np.int64), n)
        if not np.isfinite(state.values[rows]).all():  # nothing was finite
            return attrs.evolve(state, finished=True)
        at = ChainState(positions=state.positions[rows], values=state.values[rows], cache={})
        return attrs.evolve(state, chains=at, info=idle(n, n), finished=True)

    def _tune(self, state: ActiveState, surrogate: Potential) -> Tuning | None:
        """Return what the run's sampler needs, by chains on its surrogate."""
        sampler, whitening = self.settings.tuned, state.whitening
        if whitening is None or not sampler.needs <= surrogate.capabilities:
            return None
        rng = np.random.default_rng(state.seed)
        starts = state.positions[rng.choice(state.likely, TUNED_BY)]
        moves = Binding(sampler, surrogate, TUNED_BY)
        covariance = whitening.factor @ whitening.factor.T
        moves.tune(TUNING, covariance=covariance, step_size=None)
        accepted = []
        with one_thread():
            decider = self.settings.correction.bind(surrogate)
            for _, info in warm_up(moves, decider, starts, TUNING, rng):
                accepted.append(info.accepted.mean())
        return moves.tuning if np.mean(accepted[TUNING // 2 :]) >= MOBILE else None


def choose(
    process: QuadraticProcess, z: FloatArray, heights: FloatArray, n: int, tilt: float
) -> IntArray:
    """Return which of ``z (m, dim)`` a process is least sure of, one after the other, shape (n,).

    The variance of U given the values so far, and those of points chosen before, times
    exp(-2 tilt V): each step is one of a pivoted Cholesky factorisation.

    ``heights (m,)`` are its mean V there. With ``tilt=0`` it is the least sure, wherever it lies;
    with more, one of higher density.
    """
    covariance = process.covariance(z)
    counts = np.exp(-2.0 * tilt * (heights - heights.min()))
    left = np.diag(covariance).copy()
    rows = np.empty((0, len(z)))
    chosen: list[int] = []
    for _ in range(min(n, len(z))):
        j = int(np.argmax(counts * left))
        row = (covariance[j] - rows[:, j] @ rows) / np.sqrt(max(left[j], 0.0) + NOISE)
        rows = np.vstack([rows, row])
        left = np.maximum(left - np.square(row), 0.0)
        left[j] = 0.0
        chosen.append(j)
    return np.array(chosen, dtype=np.int64)
