"""Rounds of exact evaluations on one target, as a run drives them."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.capabilities import require
from surrokit.contracts.counting import calls_per_gradient
from surrokit.contracts.explorer import Exploration, Findings
from surrokit.contracts.learner import Evaluations
from surrokit.contracts.potential import Potential
from surrokit.contracts.sampler import ChainState, Sampler
from surrokit.errors import SurrogateFitError
from surrokit.types import FloatArray
from surrokit_learning.modes.search import Limits
from surrokit_learning.region.independence import predicted_acceptance, resample, spread
from surrokit_learning.region.region import Region, find_region
from surrokit_learning.region.surrogate_draws import SurrogateDraws, surrogate_draws
from surrokit_learning.region.tempered import OFFERED, Tempered, cautious
from surrokit_learning.rounds.descent import design_below, mode_of
from surrokit_learning.rounds.first_points import FirstPoints, with_design
from surrokit_learning.rounds.queue import Queue
from surrokit_learning.rounds.settings import RoundsSettings, Start
from surrokit_learning.rounds.state import RoundsState, Stage
from surrokit_learning.rounds.steering import steer, with_failures
from surrokit_learning.rounds.values import difference, evaluate_sparingly
from surrokit_learning.standing import demand_warmup, evaluate_alone, evaluate_with_gradients, idle

LAST_TRANSITIONS = 150
"""Transitions on the last surrogate, on which the run's own sampler is tuned."""

RISE, FALL = 0.02, 0.9
"""Rounds are a gain if their mean acceptance is so much above that of those before, or the spread
falls to such a part."""

TELLING = 0.1
"""Predicted acceptance from which on the covariance of a surrogate's draws is believed."""

MOBILE, FREE = 0.1, 0.5
"""Parts of the moves on a surrogate that must be accepted if its draws are to say anything, and to
judge it. Where most would leave the region of the points seen, the mass is elsewhere."""

SEARCHED = 0.1
"""Part of the evaluations that may be paid to look for other modes than the first one found."""

UNSURE = 0.6
"""Predicted acceptance below which the run finds the length of its sub-chains by itself."""


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
    calls
        Exact calls that a run's budget leaves to it; None for no budget.
    """

    settings: RoundsSettings
    potential: Potential
    pays_gradients: bool
    start_by: Start
    calls: int | None

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
        bounds = {"steps": warmup, "paid": self._most(dim, chains)}
        if self.start_by == "burst":
            # half of the warm-up at most, as of the evaluations
            burst = self.burst.start(positions, max(warmup // 2, 1))
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
            acceptance=state.acceptances[-1] if state.acceptances else None,
            modes=state.modes,
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
        limits = self._limits(state, before)
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

    def _limits(self, state: RoundsState, paid: int) -> Limits:
        # a search is not an exploration: unless told, its cost does not shorten what follows
        most = self._most(len(state.best), 0)
        limit = state.bill.most_paid // 2
        if self.settings.evaluations is None:
            limit = 2 * most if self._affordable is None else min(2 * most, self._affordable // 2)
        return Limits(
            total=limit - state.bill.paid + paid,
            later=SEARCHED * (most if self._affordable is None else self._affordable),
            searches=self.settings.searches,
        )

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
        state = attrs.evolve(
            state,
            queue=later,
            bill=state.bill.pay(len(now)),
            n_design=state.n_design + (state.stage == "design") * len(now),
        )
        if now.judges:
            errors = difference(now.predicted, values)
            acceptance = predicted_acceptance(errors)
            state = attrs.evolve(
                state,
                acceptances=(*state.acceptances, acceptance),
                spreads=(*state.spreads, spread(errors)),
                covariance=now.covariance if acceptance >= TELLING else state.covariance,
            )
        return state.move(now.positions, values, log_weights, rng)

    def _end(self, state: RoundsState) -> RoundsState:
        """Return the state, finished if it is time."""
        # one batch of points may be lucky, and without gradients often is
        rounds = 1 if self.pays_gradients else 3
        good = len(state.acceptances) >= rounds and state.queue.trusted
        good = good and bool(np.mean(state.acceptances[-rounds:]) >= self.settings.acceptance)
        if state.bill.is_spent or good or self._no_gain(state):
            return attrs.evolve(state, finished=True, unfitted=True)
        return state

    def _no_gain(self, state: RoundsState) -> bool:
        patience = self.settings.patience or (3 if self.pays_gradients else 10)
        if len(state.acceptances) < 2 * patience or not state.queue.trusted:
            return False
        # means, as each round has but a batch of points to tell
        before = np.mean(state.acceptances[-2 * patience : -patience])
        since = np.mean(state.acceptances[-patience:])
        wide = np.median(state.spreads[-2 * patience : -patience])
        narrow = np.median(state.spreads[-patience:])
        return bool(since < before + RISE and narrow > FALL * wide)

    def _show(self, state: RoundsState, surrogate: Potential) -> Potential:
        """Return the surrogate, or what is to be drawn from as long as it is not to be trusted."""
        if self.pays_gradients or not self.settings.sampler.needs <= OFFERED:
            return surrogate
        error = state.spreads[-1] if state.spreads else None
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
    ) -> SurrogateDraws:
        require(
            "the sampler of explorer 'rounds'",
            sampler.needs,
            surrogate.capabilities,
            "the surrogate",
            "use another sampler, or another surrogate",
        )
        seen = state.seen
        region = self._region(state)
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
        )

    def _aim(
        self, state: RoundsState, surrogate: Potential, rng: np.random.Generator
    ) -> RoundsState:
        """Return the state with draws from the surrogate in its queue."""
        shown = self._show(state, surrogate)
        draws = self._draw(state, shown, self.settings.sampler, self.settings.transitions, rng)
        if draws.accepted < MOBILE:  # most of them were evaluated before
            if not self.pays_gradients:
                return state
            below = design_below(surrogate, state.seen, self.settings.batch, rng)
            return state if below is None else with_design(state, below)
        queue = Queue(
            positions=draws.positions,
            expected=draws.values,
            predicted=surrogate.value(draws.positions),
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
        if not state.acceptances or state.acceptances[-1] < UNSURE:
            tuning = attrs.evolve(tuning, length=None)
        return attrs.evolve(
            state,
            mode=mode_of(surrogate, state.best) if state.mode is None else state.mode,
            covariance=state.covariance if draws.covariance is None else draws.covariance,
            tuning=tuning if draws.accepted >= MOBILE else None,
        )

    # --- what it costs ---

    def _most(self, dim: int, chains: int) -> int:
        if self.settings.evaluations is not None:
            return max(self.settings.evaluations, chains + 1)
        most = 100 + 10 * dim if self.pays_gradients else 200 + 20 * dim
        if self._affordable is None or self.start_by != "mode":
            return most
        return min(most, max(self._affordable // 2, chains + 1))

    @property
    def _affordable(self) -> int | None:
        """Evaluations that the calls left pay for; None for no limit."""
        if self.calls is None or not self.pays_gradients:
            return self.calls
        return max(self.calls // calls_per_gradient(self.potential), 1)

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
