"""An active exploration of one target, as a run drives it."""

from __future__ import annotations

from typing import cast

import attrs
import numpy as np

from surrokit.capabilities import INITIAL
from surrokit.errors import SurrogateFitError
from surrokit.exploring import demand_warmup, evaluate_alone, idle
from surrokit.interfaces import ChainState, Findings, Tuning
from surrokit.kernel.kernel import Binding, warm_up
from surrokit.limits import one_thread
from surrokit.potentials import InitialPotential, Potential
from surrokit.surrogate.whitening import Whitening
from surrokit.types import FloatArray
from surrokit_gp.active.choosing import choose
from surrokit_gp.active.settings import ActiveSettings
from surrokit_gp.active.state import ActiveState
from surrokit_gp.quadratic.heights import flat_from
from surrokit_gp.quadratic.model import Model
from surrokit_gp.quadratic.prior import QuadraticPrior
from surrokit_gp.quadratic.walled import UNSURE, Walled

INITIAL_DRAWS = 500
"""Starting positions that the target is asked for, to learn where it expects itself to be."""

HALF_WIDTH = 3.0**0.5
"""Half the width of the box in standard deviations of those: uniform draws then fill it."""

SCALE = 2.0
"""Half the width of the box about starts, where the target draws none of its own."""

FIRST = 0.5
"""Part of the box's width in which the first points lie: most of its corners are far away."""

NARROWER = 3.0
"""Half the box's width in the standard deviations that are expected first."""

HOTTEST = 3.0
"""Highest temperature at which points are looked for."""

TILT = 0.35
"""Of :func:`~surrokit_gp.active.choosing.choose`, for V / T."""

JUDGING = 1 / 3
"""Part of a batch that are plain draws of the process, by which it is judged."""

SEVERAL, PART = 3, 20
"""Points of a batch at least, and the part of all points that it is."""

LOST, SHRINK = 5.0, 0.7
"""Error in nats above which a process is trusted about the best point only, and by what the
coordinates shrink if nothing better was found."""

MOST_ERROR = 20.0
"""Nats above which errors are all alike."""

TUNED_BY, TUNING, MOBILE = 20, 150, 0.1
"""Chains that the run's sampler is tuned by on its surrogate, their transitions, and the part that
must be accepted."""

UNSURE_OF_ITSELF = 0.6
"""Predicted acceptance below which the run's sampler is not tuned by the surrogate alone."""

MOST_UNSURE = 0.02
"""Part of the draws at which a process may be unsure that is good enough."""

AT_WALL, FARTHER, FARTHEST = 0.001, 1.2, 4.0
"""Part of draws at the wall above which it is moved outwards, by how much, and up to where. Tails
heavier than a normal density's reach it."""


@attrs.frozen(kw_only=True, eq=False)
class ActiveExploration:
    """Evaluations of one target where a process of those so far is least sure.

    Parameters
    ----------
    settings
        What was asked for.
    potential
        The exact one.
    calls
        Evaluations that the run's budget leaves; None for no limit.
    """

    settings: ActiveSettings
    potential: Potential
    calls: int | None

    def start(self, positions: FloatArray, warmup: int) -> ActiveState:
        """Return the state at starting ``positions (n, dim)``, which are evaluated.

        Raises
        ------
        ConfigurationError
            If the warm-up has no iteration for it.
        """
        demand_warmup("active", warmup)
        values = evaluate_alone(self.potential, positions)
        return ActiveState(
            chains=ChainState(positions=positions, values=values, cache={"value": values}),
            positions=positions,
            values=values,
            most_paid=self.settings.most(positions.shape[1], self.calls),
            most_steps=warmup,
            spread=HOTTEST,
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
        state = state.pay(first, evaluate_alone(self.potential, first))
        if state.finite.sum() < 2:  # nowhere to begin yet
            return state
        whitening = Whitening(mean=middle, factor=np.diag(half / NARROWER))
        return state.look(whitening, QuadraticPrior.usual(state.dim))

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
        assert state.whitening is not None
        assert state.prior is not None
        try:
            model = Model.of(state.positions, state.shown, state.whitening, state.prior)
        except SurrogateFitError:
            return self._again(state, rng)
        temperature = float(np.clip(state.spread, 1.0, HOTTEST))
        walled = Walled.of(model.process, reach=state.reach)
        draws = model.draw(walled, temperature, rng)
        draws = draws[np.isfinite(draws).all(axis=1)]
        if temperature == 1.0 and walled.is_at_wall(draws).mean() > AT_WALL:
            state = attrs.evolve(state, reach=min(FARTHER * state.reach, FARTHEST))
        batch = max(SEVERAL, state.dim // 2, state.paid // PART)
        batch = max(min(batch, state.most_paid - state.paid), 1)
        n_judges = int(np.ceil(JUDGING * batch))
        few = rng.choice(len(draws), n_judges, replace=False)
        heights = model.process.mean.value(draws) / temperature
        best = choose(model.process, draws, heights, batch - n_judges, TILT)
        chosen = np.concatenate([draws[few], draws[best]])
        return self._pay(state, model, draws, chosen, n_judges, temperature)

    def _pay(
        self,
        state: ActiveState,
        model: Model,
        draws: FloatArray,
        chosen: FloatArray,
        n_judges: int,
        temperature: float,
    ) -> ActiveState:
        """Evaluate chosen draws, judge the process by the first of them, and refocus."""
        positions = model.whitening.undo(chosen)
        values = evaluate_alone(self.potential, positions)
        before = float(state.values.min())
        foretold = model.process.mean.value(chosen)
        errors = np.where(np.isfinite(values), foretold - values, -np.inf)[:n_judges]
        size = float(np.sqrt(np.mean(np.square(np.clip(errors, -MOST_ERROR, MOST_ERROR)))))
        is_plain = temperature == 1.0
        state = state.pay(positions, values).judge(positions[:n_judges], errors, by_draws=is_plain)
        if size <= LOST:
            whitening = model.refocus(draws, temperature)
        else:
            shrink = 1.0 if values.min() < before - 0.1 else SHRINK
            whitening = model.refocus(draws, temperature, state.best, shrink)
        return attrs.evolve(
            state.look(whitening, model.prior),
            unsure=float(np.mean(model.process.variance(draws) > UNSURE**2)),
            spread=0.5 * (state.spread + size),
        )

    def _again(self, state: ActiveState, rng: np.random.Generator) -> ActiveState:
        """Evaluate points about the best one, where no process could be fitted."""
        assert state.whitening is not None
        moves = rng.standard_normal((SEVERAL, state.dim)) @ state.whitening.factor.T
        positions = state.best + SHRINK * moves
        return state.pay(positions, evaluate_alone(self.potential, positions))

    def _finish(self, state: ActiveState, rng: np.random.Generator) -> ActiveState:
        """Return the state with its chains at draws that were evaluated, or at likely points."""
        n = len(state.chains.values)
        likely = np.flatnonzero(state.values <= state.values.min() + flat_from(state.dim))
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
        likely = state.positions[state.values <= state.values.min() + flat_from(state.dim)]
        starts = likely[rng.choice(len(likely), TUNED_BY)]
        moves = Binding(sampler, surrogate, TUNED_BY)
        covariance = whitening.factor @ whitening.factor.T
        moves.tune(TUNING, covariance=covariance, step_size=None)
        accepted = []
        with one_thread():
            decider = self.settings.correction.bind(surrogate)
            for _, info in warm_up(moves, decider, starts, TUNING, rng):
                accepted.append(info.accepted.mean())
        return moves.tuning if np.mean(accepted[TUNING // 2 :]) >= MOBILE else None
