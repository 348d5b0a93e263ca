"""An attempt at a run: the phases of one plan, from its exploration to its draws."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from functools import partial

import attrs
import numpy as np

from surrokit.capabilities import ROWS
from surrokit.cheap import CheapLearner
from surrokit.cost.budget import Budget
from surrokit.errors import SamplingWarning, SurrogateFitError
from surrokit.exploring import next_of
from surrokit.interfaces import (
    ChainState,
    Decision,
    Evaluations,
    Explored,
    Explorer,
    Findings,
    Stage,
    Start,
    StepInfo,
    Tuning,
    weighs,
)
from surrokit.kernel.jumps import Jumps
from surrokit.kernel.kernel import AHEAD, ExactMoves, Moves
from surrokit.kernel.tuning import LAST
from surrokit.limits import EXPLORING, SAMPLING, WARMING, one_thread, users_threads
from surrokit.mode.starts import start
from surrokit.plan.plan import SHORTEST, Plan
from surrokit.plan.recipe import JUDGED
from surrokit.plan.repair import MIXED, POOR, REPAIR_LENGTH, REPAIR_LENGTHS, SURE, Repairs, in_words
from surrokit.potentials import Potential
from surrokit.result.records import Adaptation, Repair, Weights
from surrokit.result.run import Run
from surrokit.run.approximate import Approximation, of_evaluations, of_warmup
from surrokit.run.book import Book
from surrokit.run.learning import InUse, Learning
from surrokit.surrogate.training import training_rows
from surrokit.targets.check import check_start
from surrokit.types import FloatArray

JUMPING, SPREADING = 0.5, 40
"""Probability that an iteration is a jump between modes, independently of the past, and iterations
after which chains are in each mode in proportion to its mass."""

Steps = tuple[Iterator[Explored], ChainState]
"""Iterations of an exploration, and the chains at their starts."""


class Attempt:
    """The changing state of a run that goes by one plan."""

    def __init__(self, plan: Plan, book: Book, rng: np.random.Generator) -> None:
        self.plan, recipe = plan, plan.recipe
        self._book = book
        self._rng = rng
        self._learning = Learning(plan, book.clock)
        learns = self._learning.learns
        if isinstance(plan.learner, CheapLearner):
            book.target.cheap.append(plan.learner.cheap)
        self._target = book.target.fork(
            keep=learns,
            jacobians=self._learning.uses_jacobians,
        )
        parts = plan.sampler, plan.correction, self._target, recipe.chains
        self._moves = Moves(*parts, surrogate=plan.surrogate)
        self._exact: ExactMoves | None = None
        if plan.exact_sampler is not None:
            decider = self._moves.decider
            self._exact = ExactMoves(plan.exact_sampler, decider, self._target, recipe.chains)
        repairs = learns and self._exact is not None
        self._net = Repairs(recipe.safety, recipe.chains, repairs=repairs)
        self._found: Findings | None = None
        self._jumps: Jumps | None = None
        self._evaluations: list[Evaluations] = []  # of the exploration
        self._wants_gradients = False
        self._begin_with = partial(
            start,
            target=recipe.exact,
            initial=recipe.initial,
            chains=recipe.chains,
            rng=rng,
            failures=self._target.rejections.account,
            value=self._target.value,
        )
        book.attend(self.adaptation)

    @property
    def surrogate(self) -> Potential | None:
        """The surrogate in use; None where there is none."""
        return self._learning.surrogate

    def explore(self) -> Findings | None:
        """Explore and learn, if the plan has an explorer; return the findings, or None."""
        recipe, book, learning = self.plan.recipe, self._book, self._learning
        if learning.surrogate is not None:
            book.add_surrogate(learning.surrogate, 0, "ready before the run")
        if self.plan.explorer is None:
            return None
        book.enter(EXPLORING)
        with book.clock.phase("warmup"):
            steps, begun = self._begin_with(partial(self._begin_exploring, self.plan.explorer))
            check_start(self._target, begun)
        if recipe.evaluations is not None:
            learning.observe(recipe.evaluations)
            self._evaluations.append(recipe.evaluations)
        ended = done = False
        while not ended:
            book.stopping.check_before_iteration(exact=False)
            with book.clock.phase("warmup"):
                explored = next_of(steps)
            found, done = explored.findings, explored.done
            self._evaluated()
            ended = done or book.stopping.is_used_up(self.plan.exploration_limit)
            self._moves.take_in(found)
            self._after("exploration", explored.step, explored.rows, explored=ended)
        limit, seconds = recipe.exploration.max_seconds, book.clock.elapsed()
        if not (done or limit is None or seconds <= limit or recipe.chosen is None):
            why = f"the exploration was ended at its limit of {in_words(limit)}"
            recipe = attrs.evolve(recipe, chosen=recipe.chosen.because(why))
            self.plan = attrs.evolve(self.plan, recipe=recipe)
        book.begin(self.plan)
        return found

    def _begin_exploring(
        self, explorer: Explorer, positions: FloatArray
    ) -> tuple[Steps, ChainState]:
        """Begin an exploration at positions (n, dim), with the calls that are left to it."""
        recipe, most = self.plan.recipe, self.plan.recipe.hurry.calls
        begun = Start(
            potential=self._target,
            positions=positions,
            warmup=recipe.most_warmup,
            evaluated=self._evaluated,
            fit=self._learning.fit_with,
            calls=None if most is None else max(most - math.ceil(self._target.n_calls), 1),
            past=recipe.past,
            known=self._book.known,
        )
        steps = iter(explorer.explore(begun, self._rng))
        chains = next_of(steps).findings.chains
        return (steps, chains), chains

    def _evaluated(self) -> Evaluations:
        """Return the evaluations since the last call, and remember them."""
        self._evaluations.append(self._target.drain())
        return self._evaluations[-1]

    def weigh(self, found: Findings | None) -> bool:
        """Return whether there are weighted answers that are reliable or all there is."""
        correction = self.plan.correction
        if found is None or not weighs(correction):
            return False
        if self._learning.surrogate is None:
            self._book.weights = Weights(reason="no surrogate could be fitted")
            return False
        from surrokit.run.weighing import Weighing  # late: runs of chains never need it

        self._found, parts = found, (self._book, self._learning, self._target, self._rng)
        return Weighing(self.plan, correction, *parts).run(found, self._deploy)

    def begin_warmup(self, found: Findings | None) -> str | None:
        """Begin to move chains by the run's own kernel.

        Parameters
        ----------
        found
            Findings of the exploration, or of an attempt before; None without either.

        Returns
        -------
        str or None
            Why the surrogate is not worth its cost; None to go on with it.
        """
        self._found = found
        fallback = self.plan.recipe.fallback
        if fallback is not None and found is not None:
            if self._learning.surrogate is None:
                return "no surrogate could be fitted"
            complaint = None if found.acceptance is None else fallback.complaint(found.acceptance)
            if complaint is not None:
                return complaint
        replaces = found is not None and self._moves.chains is None
        n_iterations = self.plan.warmup_left(found, self._book.iteration, replaces=replaces)
        with (
            self._book.clock.phase("warmup"),
            self._target.evaluating_gradients(self._wants_gradients),
        ):
            if found is not None:
                if replaces:
                    self._moves.load_state(found)
                self._prepare(found.mode)
            arrived, tuning = self.plan.begins_about_modes(found), found.tuning if found else None
            self._begin_tuning(n_iterations, tuning, arrived=arrived)
            if found is None:
                self._begin_chains()
                self._prepare(None)
            elif self._learning.surrogate is None and not replaces:
                self._moves.move_on(self._target)  # the explorer's sampler need not be this one
        self._book.warm_up_for(n_iterations)
        if found is not None and found.acceptance is not None:
            self._learn_on_paths(found.acceptance)
        return None

    def draw(self) -> None:
        """Keep draws; nothing is tuned from here on."""
        book, stopping = self._book, self._book.stopping
        self._net.draws_begin()
        book.enter(SAMPLING)
        self._learning.begin_draws(self._in_use)
        stopping.draws_begin(book.most_draws)
        while stopping.allows(len(book.kept), book.most_draws):
            book.expect(draws=stopping.expected)
            stopping.check()
            with book.clock.phase("sampling"):
                step = self._transition(tune=False)
            stopping.check()  # an iteration that a limit falls into is dropped
            self._after("sampling", step, self._take_evaluated_rows())
            if stopping.reached(book.kept):
                break

    def weigh_modes(self, *, calls: bool) -> None:
        """Find the masses of the modes that were found, by the draws, and perhaps by some calls."""
        modes = None if self._found is None else self._found.modes
        recipe, surrogate = self.plan.recipe, self._learning.surrogate
        with one_thread():  # no limit on seconds cuts off what comes after the last draw
            self._book.weigh_modes(modes, surrogate, recipe.modes, calls=calls)

    def export_state(self) -> Findings:
        """Return the findings that the next attempt starts from, with the chains as they are."""
        assert self._found is not None
        return self._moves.export_state(self._found)

    # --- warm-up ---

    def warm_up(self) -> str | None:
        """Tune what is left free; return why the surrogate is not worth its cost, or None."""
        book, stopping = self._book, self._book.stopping
        book.enter(WARMING)
        book.expect(warmup=book.warmup_ends)
        stopping.warmup_begins()
        while (room := book.room) > 0:
            trouble = self._net.trouble(self._learning.surrogate, room)
            if trouble is not None:
                self._repair(trouble, self.plan.recipe.safety.block)
                stopping.warmup_begins()
                continue
            stopping.check_before_iteration(exact=ROWS not in self._moves.correction.needs)
            with (
                book.clock.phase("warmup"),
                self._target.evaluating_gradients(self._wants_gradients),
            ):
                step = self._transition(tune=True, ahead=min(room, AHEAD))
            self._after("warmup", step, self._take_evaluated_rows())
            stopping.iteration_done()
            self._end_soon()
        self._moves.end_tuning()
        if self._exact is not None:
            self._exact.freeze()
        self._learn_to_jump()
        return self._complaint_after_warm_up()

    def _learn_to_jump(self) -> None:
        """Fit jumps between modes to the second half of the warm-up, and let chains spread."""
        book, modes = self._book, None if self._found is None else self._found.modes
        if modes is None or not modes.reliable or self._learning.learns or len(book.warmup) < 2:
            return
        late = book.warmup.columns(len(book.warmup) // 2)
        positions, values = late["positions"].reshape(-1, self._target.dim), late["values"].ravel()
        known = np.isfinite(values)
        if not known.all():  # the correction does not know U
            return
        self._jumps = Jumps.between(modes, positions, values)
        for _ in range(SPREADING if self._jumps is not None else 0):
            book.stopping.check_before_iteration(exact=True)
            with book.clock.phase("warmup"):
                step = self._transition(tune=False)
            self._after("warmup", step, self._take_evaluated_rows())

    def _transition(self, *, tune: bool, ahead: int = AHEAD) -> StepInfo:
        """Move all chains once, on the surrogate or, at random, by the exact kernel."""
        if self._jumps is not None and self._rng.random() < JUMPING:
            with users_threads():
                return self._moves.jump(self._jumps, self._rng)
        if self._net.mixes(self._learning.surrogate, self._rng):
            return self._exact_transition(tune=tune)
        if self._learning.surrogate is None:  # each step is a call: threads are set once
            with users_threads():
                step = self._moves.transition(self._rng, tune=tune, ahead=ahead)
        else:
            step = self._moves.transition(self._rng, tune=tune, ahead=ahead)
        self._net.saw(step)
        return step

    def _exact_transition(self, *, tune: bool) -> StepInfo:
        assert self._exact is not None
        self._moves.step_size = self._exact.step
        with users_threads():
            state, step = self._exact.transition(self._moves.state, self._rng, tune=tune)
        self._moves.move_to(state, tune=tune)
        return step

    def _begin_tuning(
        self, n_iterations: int, tuning: Tuning | None, *, arrived: bool = False
    ) -> None:
        moves = self._moves
        if self._exact is not None:
            self._exact.tune(n_iterations, covariance=moves.covariance, step_size=moves.step_size)
        moves.start_tuning(n_iterations, tuning, arrived=arrived)

    def _prepare(self, mode: FloatArray | None) -> None:
        """Let the correction prepare itself near a mode, or near the chains without one."""
        near = self._moves.positions.mean(axis=0) if mode is None else mode
        if self._moves.prepare(near) and self._exact is not None:
            self._exact.decide_by(self._moves.decider)

    @property
    def _in_use(self) -> InUse:
        exact = () if self._exact is None else self._exact.identity
        return (*self._moves.identity, *exact)

    def _end_soon(self) -> None:
        """End a warm-up of open length once windows agree."""
        is_open = self.plan.recipe.warmup is None and self.plan.begins_about_modes(self._found)
        if is_open and self._moves.has_converged and self._book.room > LAST:
            self._book.warm_up_for(LAST)
            self._book.expect(warmup=self._book.warmup_ends)

    def _learn_on_paths(self, predicted: float) -> None:
        """Learn along exact paths while a poor acceptance is predicted; V's may miss tails."""
        book, exact, net = self._book, self._exact, self._net
        least = REPAIR_LENGTH + self.plan.recipe.safety.patience
        if exact is None or self._learning.surrogate is None or not exact.moves_by_gradients:
            return
        for _ in range(REPAIR_LENGTHS):
            room = book.room
            if self.plan.recipe.warmup is None:
                room = max(room + REPAIR_LENGTH, least)
            hurries = book.stopping.is_used_up(self.plan.recipe.hurry)
            if predicted >= POOR or hurries or not net.may_repair(room, REPAIR_LENGTH):
                return
            book.warm_up_for(room)
            exact.tune(REPAIR_LENGTH, covariance=self._moves.covariance, step_size=exact.step)
            reason = f"an acceptance of {predicted:.2f} was predicted"
            self._repair(reason, REPAIR_LENGTH, self.plan.recipe.hurry)
            # a poor surrogate has little information about scales
            self._moves.learn(exact.tuning.covariance)
            predicted = self._learning.predicted(predicted)
            net.mix_in(0.0 if predicted >= SURE else MIXED)

    def _complaint_after_warm_up(self) -> str | None:
        fallback, seen = self.plan.recipe.fallback, self._book.since_explored
        if fallback is None or self._learning.surrogate is None or seen < SHORTEST:
            return None
        enough, warmup = min(seen, JUDGED), self._book.warmup
        acceptance, seconds, steps = warmup.last(enough)
        forgotten = self._moves.forgotten(warmup.positions()[:, -enough:])
        return fallback.complaint(min(acceptance, forgotten), seconds, steps)

    def _repair(self, trouble: str, transitions: int, limit: Budget | None = None) -> None:
        """Repair the surrogate in warm-up, and note it."""
        self._net.repairs.append(Repair(iteration=self._book.iteration, reason=trouble))
        self._learn_exactly(transitions, limit, trouble)

    def _learn_exactly(self, transitions: int, limit: Budget | None, trouble: str) -> None:
        """Make so many exact transitions, or fewer at a limit, learn from them, and refit."""
        book, net, exact = self._book, self._net, self._exact
        assert exact is not None
        exact.learn(self._moves.covariance)
        for _ in range(transitions):
            if limit is not None and book.stopping.is_used_up(limit):
                break
            book.stopping.check_before_iteration(exact=True)
            with (
                book.clock.phase("warmup"),
                self._target.evaluating_gradients(self._wants_gradients),
            ):
                step = self._exact_transition(tune=True)
            net.saw_exact(step)
            self._after("warmup", step, self._take_evaluated_rows(), repairs=True)
        self._learning.observe(net.take(self._target.dim))
        self._deploy(f"repair, after iteration {book.iteration}: {trouble}")
        self._moves.tune_afresh()
        net.note_repair()

    def _after(
        self,
        stage: Stage,
        step: StepInfo | None,
        rows: Evaluations | None,
        *,
        explored: bool = False,
        repairs: bool = False,
    ) -> None:
        """Record an iteration, learn from it, and do what the schedule decides."""
        moves, learning = self._moves, self._learning
        moment = self._book.add(stage, moves.state, step, moves.step_size, explored=explored)
        decision = self.plan.schedule.decide(moment, self._rng)
        if rows is not None and len(rows):
            if learning.learns and (decision.observe or repairs):
                # an explorer has chosen its rows, and a repair wants all of them
                if stage != "exploration" and not repairs and step is not None:
                    rows = training_rows(decision.learn_from, rows, moves.state, step)
                learning.observe(rows)
            elif self._net.listens(learning.surrogate, stage):
                self._net.keep(rows)
        if decision.deploy:
            self._deploy(f"schedule, after iteration {moment.iteration}")
        learning.note(moment, decision, self._in_use)
        self._choose_records(stage, decision, repairs=repairs)

    def _choose_records(self, stage: Stage, decision: Decision, *, repairs: bool) -> None:
        """Decide which exact calls are kept from here on, and whether proposals have gradients."""
        learning = self._learning
        listens = self._net.listens(learning.surrogate, stage)
        for_learner = repairs or listens or not learning.frozen
        jacobians = for_learner and learning.uses_jacobians
        self._target.keep_evaluations(for_learner, jacobians=jacobians)
        wanted = decision.derivatives and stage != "sampling"
        self._wants_gradients = wanted and learning.uses_derivatives

    def _deploy(self, reason: str) -> None:
        """Fit a surrogate, and use it from here on."""
        learning = self._learning
        try:
            surrogate = learning.fit()
        except SurrogateFitError as error:
            can_go_on = self._moves.sampler.needs <= self._target.capabilities
            if learning.surrogate is None and self.plan.recipe.fallback is None and not can_go_on:
                raise  # without a surrogate there is nothing to move on
            warnings.warn(
                f"no surrogate could be fitted, and the run goes on without a new one: {error}",
                SamplingWarning,
                stacklevel=2,
            )
            return
        learning.surrogate = surrogate
        self._book.deployments.append(self._book.iteration)
        self._moves.move_on(surrogate)
        self._book.add_surrogate(surrogate, learning.n_observed, reason)

    def _take_evaluated_rows(self) -> Evaluations | None:
        """Return the evaluations since the last call, where they are kept."""
        return self._target.drain() if self._target.keeps else None

    def _begin_chains(self) -> None:
        self._moves.chains = self._begin_with(lambda at: (self._moves.start(at),) * 2)
        if self._learning.surrogate is None:  # else the gradient at hand is the surrogate's
            check_start(self._target, self._moves.state)

    def adaptation(self) -> Adaptation:
        """Return what changed so far."""
        learning, net, found = self._learning, self._net, self._found
        return Adaptation(
            deployments=tuple(self._book.deployments),
            training_rows=learning.n_observed,
            frozen_before_draws=not learning.under_adaptation,
            repairs=tuple(net.repairs),
            mix=net.mix,
            jumps=0 if self._jumps is None else len(self._jumps.laws),
            missed=found.missed if found else 0,
            recalled=found is not None and found.at_draws,
            deployed_though_frozen=tuple(learning.though_frozen),
            searches=found.modes.count() if found and found.modes else None,
        )

    def approximate(self) -> Approximation | None:
        """Return draws of a surrogate, else of the warm-up, else what evaluations tell."""
        target, warmup = self._target, self._book.warmup
        rows = Evaluations.join([*self._evaluations, target.drain()], target.dim)
        found = self._learning.approximate(self.plan, rows, self._moves.covariance, self._rng)
        if found is None and (found := of_warmup(warmup)) is None:
            chains, transform = self.plan.recipe.chains, target.transform
            found = of_evaluations(target.lowest(), chains, transform, self._rng)
        return found

    def outcome(self, unchecked: Approximation | None = None) -> Run:
        """Return the result, with the draws so far."""
        parts = self._target, self._moves, self._learning.surrogate
        return self._book.outcome(self.plan, *parts, self.adaptation(), unchecked)
