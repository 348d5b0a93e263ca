"""Rounds of exact evaluations on one target, as a run drives them."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.capabilities import CONVEX, GRADIENT, require
from surrokit.contracts.explorer import Exploration, Findings, Past
from surrokit.errors import SurrogateFitError
from surrokit.exploring.standing import demand_warmup, evaluate_alone, evaluate_with_gradients, idle
from surrokit.interfaces import ChainState, Evaluations, Sampler
from surrokit.kernel.kernel import mover
from surrokit.model.model import calls_per_gradient
from surrokit.potentials import Potential
from surrokit.types import FloatArray
from surrokit_learning.region.independence import predicted_acceptance, resample
from surrokit_learning.region.region import Region, find_region
from surrokit_learning.region.surrogate_draws import SurrogateDraws, surrogate_draws
from surrokit_learning.region.tempered import OFFERED, Tempered, cautious
from surrokit_learning.rounds.allowance import Allowance
from surrokit_learning.rounds.descent import design_below, mode_of
from surrokit_learning.rounds.first_points import FirstPoints, with_design
from surrokit_learning.rounds.judgement import (
    Judgement,
    difference,
    foretold,
    is_clear,
    is_no_gain,
)
from surrokit_learning.rounds.queue import JUDGES, Queue
from surrokit_learning.rounds.settings import RoundsSettings, Start
from surrokit_learning.rounds.state import RoundsState, Stage
from surrokit_learning.rounds.steering import promising, steer, with_failures
from surrokit_learning.rounds.values import evaluate_sparingly

LAST_TRANSITIONS = 150
"""Transitions on the last surrogate, on which the run's own sampler is tuned."""

TELLING = 0.1
"""Predicted acceptance from which on the covariance of a surrogate's draws is believed."""

MOBILE, FREE = 0.1, 0.5
"""Parts of the moves on a surrogate that must be accepted if its draws are to say anything, and to
judge it. Where most would leave the region of the points seen, the mass is elsewhere."""

WITHIN, OUTER = 0.5, 0.6
"""Predicted acceptance from which on rounds look about the surrogate's mass as well, and the part
of a batch that they spend on it. At first, and once V is good, few draws go with them."""

UNSURE = 0.6
"""Predicted acceptance below which sub-chains find their length alone, and modes are in doubt."""


@attrs.frozen(kw_only=True, eq=False)
class RoundsExploration:
    """Rounds on one target.

    Parameters
    ----------
    settings
        What was asked for.
    potential
        The exact one.
    pays_gradients
        Whether points are evaluated with their gradients.
    start_by
        How the first points are found.
    allowance
        How many evaluations may be paid.
    past
        Draws of earlier runs, to go on from; None without.
    """

    settings: RoundsSettings
    potential: Potential
    pays_gradients: bool
    start_by: Start
    allowance: Allowance
    past: Past | None = None

    @property
    def burst(self) -> Exploration:
        """What finds the first points with ``start="burst"``."""
        return self.settings.burst.bind(self.potential)

    # --- what a run drives ---

    def start(self, positions: FloatArray, warmup: int) -> RoundsState:
        """Return the state at starting ``positions (n, dim)``.

        Raises
        ------
        ConfigurationError
            If the warm-up has no iteration for it.
        """
        demand_warmup("rounds", warmup)
        chains, dim = positions.shape
        most = self.allowance.most(dim, chains)
        bounds = {"steps": warmup, "paid": most, "spare": self.allowance.spare(most)}
        if self.past is not None:
            return RoundsState.recalling(self.past, chains, **bounds)
        if self.start_by == "burst":
            burst = self.burst.start(positions, max(warmup // 2, 1))  # half, as of evaluations
            return RoundsState.at(burst.chains, stage="burst", burst=burst, **bounds)
        # where a gradient is made of values, starts alone are not worth it
        values, gradients = self._evaluate(positions, gradients=not self._by_differences)
        cache = {"value": values} if gradients is None else {"value": values, "gradient": gradients}
        state = ChainState(positions=positions, values=values, cache=cache)
        stage: Stage = "mode" if self.start_by == "mode" else "design"
        return RoundsState.at(state, stage=stage, burst=None, **bounds)

    def step(self, state: RoundsState, rng: np.random.Generator) -> RoundsState:
        """Return the state after a part of the search, of the first points, or a round."""
        seed = int(rng.integers(2**62))
        state = attrs.evolve(state, seed=seed, bill=state.bill.step())
        if state.stage == "recall":
            return attrs.evolve(state, info=idle(len(state.chains.values)))
        if state.stage == "burst":
            return self._burst(state, rng)
        if state.stage == "mode":
            return self._search(state, np.random.default_rng(seed))
        if state.stage == "design":
            return self._design(state, rng)
        return self._round(state, rng)

    def learn(self, state: RoundsState, paid: Evaluations) -> tuple[RoundsState, Evaluations]:
        """Return the state that has seen what was paid for, and the rows to learn from.

        All of them, but for those from the way to modes that lie far above or far away. They say
        nothing of where the target has its mass, and the outputs of a forward map may be so large
        there that no weight makes up for it.
        """
        dim = paid.positions.shape[1]
        rows = paid
        if state.stage == "burst":
            burst, rows = self.burst.learn(state.burst, paid)
            state = attrs.evolve(state, burst=burst, bill=state.bill.pay(len(paid)))
            if self.burst.done(burst) or state.bill.is_half_spent:
                state = self._end(attrs.evolve(state, stage="rounds", unfitted=True))
        finite = np.isfinite(paid.values)
        state = with_failures(state, paid.positions[~finite])
        seen = Evaluations(
            positions=paid.positions[finite],
            values=paid.values[finite],
            gradients=None if paid.gradients is None else paid.gradients[finite],
        )
        return attrs.evolve(state, seen=Evaluations.join([state.seen, seen], dim)).release(rows)

    def wants_fit(self, state: RoundsState) -> bool:
        """Return whether there are points that no surrogate shown has learnt from."""
        return state.unfitted

    def inform(self, state: RoundsState, surrogate: Potential | None) -> RoundsState:
        """Return the state that knows where to look next, or what was found."""
        if not state.unfitted:
            return state
        if state.stage == "recall" and self.past is not None:
            state = state.recall(self.past, surrogate, self.settings.acceptance)
        state = attrs.evolve(state, unfitted=False, settled=state.finished)
        if surrogate is None or not len(state.seen):
            return state
        rng = np.random.default_rng(state.seed)
        try:
            look = self._settle if state.finished else self._aim
            return look(state, surrogate, rng)
        except SurrogateFitError:  # the points lie too far apart to say where to draw
            return state

    def done(self, state: RoundsState) -> bool:
        """Return whether the last surrogate has been looked at."""
        return state.settled

    def findings(self, state: RoundsState) -> Findings:
        """Return chains at draws of the target, nearly, and what was found on the surrogate."""
        return Findings(
            chains=state.chains,
            covariance=state.covariance,
            step_size=None if state.tuning is None else state.tuning.step_size,
            mode=state.mode,
            tuning=state.tuning,
            acceptance=foretold(state.judgements),
            missed=state.judgements[-1].missed or 0 if state.judgements else 0,
            modes=state.modes,
            at_draws=state.at_draws,
        )

    # --- the first points ---

    def _burst(self, state: RoundsState, rng: np.random.Generator) -> RoundsState:
        burst = self.burst.step(state.burst, rng)
        return attrs.evolve(
            state,
            burst=burst,
            chains=burst.chains,
            info=burst.info,
            covariance=self.burst.findings(burst).covariance,
        )

    def _search(self, state: RoundsState, rng: np.random.Generator) -> RoundsState:
        assert state.search is not None
        before = state.search.paid
        limits = self.allowance.search(state.bill, len(state.best), before)
        search = state.search.step(self.potential, limits, rng)
        free = self.settings.evaluations is None
        if 2 * state.bill.steps >= state.bill.most_steps:
            search = search.stop()
        state = attrs.evolve(
            state,
            bill=state.bill.pay(search.paid - before, extra=free),
            search=search,
            mode=search.best,
            hessian=search.hessian,
            info=idle(len(state.chains.values)),
        )
        return self._end(attrs.evolve(state, stage="design") if search.over else state)

    def _design(self, state: RoundsState, rng: np.random.Generator) -> RoundsState:
        first = self._first()
        if not len(state.queue):
            state = first.queue(state, rng)
        state = self._pay_for_batch(state, rng)
        if state.n_design >= first.enough(state.several):
            state = attrs.evolve(state, stage="rounds", unfitted=True)
        return self._end(state)

    def _first(self) -> FirstPoints:
        return FirstPoints(
            exact=self.potential,
            in_box=self.start_by == "sobol",
            with_gradients=self.pays_gradients,
            batch=self.settings.batch,
            box=self.settings.box,
            scale=self.settings.scale,
        )

    # --- rounds ---

    def _round(self, state: RoundsState, rng: np.random.Generator) -> RoundsState:
        if not len(state.queue):  # there was no surrogate, or none to draw from
            state = self._first().queue_nearby(state, rng)
        state = attrs.evolve(self._pay_for_batch(state, rng), unfitted=True)
        return self._end(state)

    def _pay_for_batch(self, state: RoundsState, rng: np.random.Generator) -> RoundsState:
        """Evaluate the next batch of the queue, judge what it was drawn from, move the chains."""
        n = max(min(self.settings.batch, state.bill.most_paid - state.bill.paid), 1)
        now, later = steer(state).split(n)
        if self._by_differences:
            good = self.settings.acceptance
            values = evaluate_sparingly(self.potential, now, state.hessian, good)
        else:
            values = self._evaluate(now.positions)[0]
        moves = not (state.stage == "design" and self.start_by == "sobol")
        log_weights = difference(now.expected, values) if moves else np.full(len(now), -np.inf)
        state = attrs.evolve(state, queue=later, bill=state.bill.pay(len(now)))
        if state.stage == "design":
            approximated = predicted_acceptance(log_weights) if moves else None
            n_design = state.n_design + len(now)
            state = attrs.evolve(state, n_design=n_design, approximated=approximated)
        if now.judges:
            judgement = Judgement.of(now, values)
            tells = judgement.acceptance >= TELLING
            state = attrs.evolve(
                state,
                judgements=(*state.judgements, judgement),
                bill=state.bill.extend(len(now)) if judgement.missed else state.bill,
                covariance=now.covariance if tells else state.covariance,
            )
        return state.move(now.positions, values, log_weights, rng)

    def _end(self, state: RoundsState) -> RoundsState:
        """Return the state, finished if it is time."""
        # one batch of points may be lucky, and without gradients often is
        rounds = 1 if self.pays_gradients else 3
        judgements, trusted = state.judgements, state.queue.trusted
        last = [each.acceptance for each in judgements[-rounds:]]
        good = len(last) == rounds and bool(np.mean(last) >= self.settings.acceptance) and trusted
        convex = CONVEX in self.potential.capabilities
        good = good and (is_clear(judgements, convex=convex) or not self._n_outer)
        patience = self.settings.patience or (3 if self.pays_gradients else 10)
        if state.bill.is_spent or good or (trusted and is_no_gain(judgements, patience)):
            return attrs.evolve(state.doubt(self.potential, UNSURE), finished=True, unfitted=True)
        return state

    @property
    def _n_outer(self) -> int:
        """Points of a round that lie about the mass of a surrogate that is good within.

        None where it learns from values alone, which say nothing of what lies beyond.
        """
        looks = self.pays_gradients and mover(self.settings.sampler).needs <= {GRADIENT}
        n = self.settings.batch
        return max(min(int(OUTER * n), n - JUDGES), 0) if looks else 0

    def _show(self, state: RoundsState, surrogate: Potential) -> Potential:
        """Return the surrogate, or what is to be drawn from as long as it is not to be trusted."""
        if self.pays_gradients or not self.settings.sampler.needs <= OFFERED:
            return surrogate
        error = state.judgements[-1].spread if state.judgements else None
        return cautious(surrogate, self._region(state), state.seen, error, state.queue.temperature)

    def _region(self, state: RoundsState) -> Region:
        return find_region(state.seen, state.covariance, by_values=not self.pays_gradients)

    def _draw(
        self,
        state: RoundsState,
        surrogate: Potential,
        sampler: Sampler,
        n_transitions: int,
        rng: np.random.Generator,
        n_outer: int = 0,
    ) -> SurrogateDraws:
        require(
            "the sampler of explorer 'rounds'",
            sampler.needs,
            surrogate.capabilities,
            "the surrogate",
            "use another sampler, or another surrogate",
        )
        seen, region = state.seen, self._region(state)
        inside = region.holds(seen.positions) & np.isfinite(surrogate.value(seen.positions))
        order = resample(np.where(inside, -seen.values, -np.inf), len(seen), rng)
        rows = state.share_out(order, seen.positions, self.settings.batch)
        return surrogate_draws(
            surrogate,
            sampler,
            self.settings.correction,
            region=region,
            starts=seen.positions[np.resize(rows, self.settings.batch)],
            covariance=region.covariance,
            step_size=None,
            n_transitions=n_transitions,
            rng=rng,
            n_outer=n_outer,
        )

    def _aim(
        self, state: RoundsState, surrogate: Potential, rng: np.random.Generator
    ) -> RoundsState:
        """Return the state with draws from the surrogate in its queue."""
        shown = self._show(state, surrogate)
        settings, good = self.settings, state.expected
        n_outer = self._n_outer if good >= WITHIN else 0
        draws = self._draw(state, shown, settings.sampler, settings.transitions, rng, n_outer)
        if draws.accepted < MOBILE:  # most of them were evaluated before
            if not self.pays_gradients:
                return state
            below = design_below(surrogate, state.seen, settings.batch, rng)
            return state if below is None else with_design(state, below)
        inner = np.arange(settings.batch)
        if draws.outer is not None:
            first = not state.judgements and state.several is None
            few = JUDGES if first or good >= settings.acceptance else settings.batch
            few = min(few, settings.batch - len(draws.outer))
            # a round that lost one of its few judges on the way would not be judged
            likely = np.flatnonzero(promising(state, draws.positions))
            inner = state.share_out(likely, draws.positions, few)
        queue = attrs.evolve(
            Queue.of(draws, surrogate, inner),
            covariance=state.covariance if draws.covariance is None else draws.covariance,
            temperature=shown.temperature if isinstance(shown, Tempered) else 1.0,
            trusted=shown is surrogate and draws.accepted >= FREE,
        )
        return attrs.evolve(state, queue=queue)

    def _settle(
        self, state: RoundsState, surrogate: Potential, rng: np.random.Generator
    ) -> RoundsState:
        """Return the state with what the last surrogate tells."""
        draws = self._draw(state, surrogate, self.settings.tuned, LAST_TRANSITIONS, rng)
        tuning = draws.tuning
        if draws.covariance is not None:
            tuning = attrs.evolve(tuning, covariance=draws.covariance)
        acceptance = foretold(state.judgements)
        if acceptance is None or acceptance < UNSURE:
            tuning = attrs.evolve(tuning, length=None)
        return attrs.evolve(
            state,
            mode=mode_of(surrogate, state.best) if state.mode is None else state.mode,
            covariance=state.covariance if draws.covariance is None else draws.covariance,
            tuning=tuning if draws.accepted >= MOBILE else None,
        )

    # --- what it costs ---

    @property
    def _by_differences(self) -> bool:
        """Whether gradients are paid for and made of differences of values."""
        return self.pays_gradients and calls_per_gradient(self.potential) > 1

    def _evaluate(
        self, positions: FloatArray, *, gradients: bool = True
    ) -> tuple[FloatArray, FloatArray | None]:
        """Return U at positions (n, dim), infinite where anything failed, and its gradients."""
        if self.pays_gradients and gradients:
            return evaluate_with_gradients(self.potential, positions)
        return evaluate_alone(self.potential, positions), None
