"""The loop over iterations, and the only caller of observers."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import attrs
import numpy as np

from surrokit.capabilities import ROWS
from surrokit.contracts.explorer import Findings, Modes
from surrokit.contracts.learner import Evaluations
from surrokit.contracts.observation import RunInfo
from surrokit.contracts.potential import Potential
from surrokit.contracts.sampler import ChainState, StepInfo, Tuning
from surrokit.contracts.schedule import Decision, Moment, Stage
from surrokit.cost.budget import BudgetSpent
from surrokit.errors import SamplingWarning, SurrogateFitError
from surrokit.kernel.kernel import ExactMoves, Moves
from surrokit.mode.starts import Began, started
from surrokit.plan.parts import uses_derivatives
from surrokit.plan.plan import Plan, ending
from surrokit.plan.recipe import JUDGED, TUNED_AFTER_DROP, settling
from surrokit.plan.stopping import Stopping
from surrokit.result.advice import advice
from surrokit.result.run import Rescue, Run
from surrokit.run.adapting import Adapting, Kernel
from surrokit.run.explore import Exploring, bound_within
from surrokit.run.learning import Learning
from surrokit.run.net import SafetyNet
from surrokit.run.observers import Observers
from surrokit.run.recorder import Recorder
from surrokit.surrogate.rows import training_rows
from surrokit.targets.bounds import parameters_of, transform_of
from surrokit.targets.check import warn_if_gradient_disagrees
from surrokit.types import FloatArray

TUNED_AFTER_RESTART = 100
"""Iterations of warm-up that follow the repair when draws begin again."""


def run(plan: Plan, rng: np.random.Generator, observers: Observers) -> Run:
    """Carry out a plan.

    A budget that is spent, or an interrupt (Ctrl-C), ends it with what was drawn; any exception
    carries that as its attribute ``partial``.

    Raises
    ------
    TargetError
        If no chain can start, or the target raises and was asked to.
    """
    loop = _Loop(plan, rng, observers)
    plan.target.guarded(loop.stopping.guard)
    try:
        observers.tell("surrokit_run_started", run=loop.info)
        if plan.error is not None:
            raise plan.error
        if plan.over is None:
            loop.deploy_ready()
            loop.explore()
            loop.warm_up()
            loop.sample()
    except BudgetSpent as spent:
        loop.stopping.cut(spent.reason)
    except KeyboardInterrupt:
        loop.stopping.cut("interrupted")
    except Exception as error:
        loop.stopping.cut("error")
        error.partial = loop.outcome()  # type: ignore[attr-defined]
        error.add_note("What was drawn until then is in this exception's attribute 'partial'.")
        raise
    finally:
        plan.target.guarded(None)
        plan.target.failure_log.settle(*loop.recorder.places(), plan.target.target)
    outcome = loop.outcome()
    observers.tell("surrokit_run_finished", run=loop.info, outcome=outcome)
    for complaint in advice(outcome):
        warnings.warn(complaint, SamplingWarning, stacklevel=4)  # the caller of sample
    return outcome


class _Loop:
    """What changes while a plan is carried out."""

    def __init__(self, plan: Plan, rng: np.random.Generator, observers: Observers) -> None:
        self.plan = plan
        self.rng = rng
        self.observers = observers
        self.target = plan.target
        self.parts = plan.parts
        self.safety = plan.safety
        self.choice = plan.choice
        self.surrogate: Potential | None = plan.parts.ready
        self.moves = Moves(
            plan.parts.sampler,
            plan.parts.correction,
            plan.target,
            plan.chains,
            surrogate=self.surrogate,
        )
        self.clock = plan.clock
        learner = plan.parts.learner
        self.learning = None if learner is None else Learning(learner, self.clock)
        self.recorder = Recorder(plan.target, plan.chains, self.clock)
        self.stopping = Stopping(
            plan.budget, plan.target, self.clock, transform_of(plan.target.target), plan.chains
        )
        self.hurry = plan.hurry
        if plan.over is not None:
            self.stopping.cut(plan.over)
        self.tuning: Tuning | None = None
        self.foretold: float | None = None
        self.modes: Modes | None = None
        self.warmup_ends = plan.most_warmup
        self.explored_at: int | None = None
        self.adapting = Adapting()
        self.rescuing = False
        self.net = self._safety_net()
        self.info = RunInfo(
            dim=plan.target.dim,
            chains=plan.chains,
            warmup=plan.most_warmup,
            draws=plan.draws,
            parts=plan.parts.described,
        )

    @property
    def dropped(self) -> bool:
        """Whether the run goes on without the surrogate that it was planned with."""
        return self.parts is not self.plan.parts

    def deploy_ready(self) -> None:
        """Tell observers of a surrogate that has nothing to learn, if the plan has one."""
        if self.surrogate is not None:
            self._tell_deployed(self.surrogate, "ready before the run")

    def explore(self) -> None:
        """Explore, if the plan says so, and hand what was found to learner and sampler."""
        if self.parts.explorer is None:
            return
        assert self.learning is not None
        explorer = bound_within(self.parts.explorer, self.target, self.hurry)
        exploring = Exploring(explorer, self.learning, self.recorder)
        with self.clock.phase("warmup"):
            begun = self._started(lambda at: (exploring.begin(at, self.plan.most_warmup),) * 2)
            self._check_gradient(begun)
        if self.plan.evaluations is not None:
            self.learning.observe(self.plan.evaluations)
        done = False
        while not done:
            self.stopping.check_before_iteration(exact=False)
            rows = exploring.step(self.rng)
            done = exploring.done() or self.stopping.used(self.plan.exploration)
            findings = exploring.findings()
            self.moves.found(findings)
            self._after("exploration", exploring.info, rows, explored=done)
        self.tuning, self.foretold = findings.tuning, findings.acceptance
        self.modes = findings.modes
        self._judge(findings)

    def warm_up(self) -> None:
        """Tune what was left free, on whatever potential the sampler moves on now."""
        rest = self.plan.most_warmup - self.recorder.iteration
        if self.tuning is not None and self.plan.warmup is None:
            rest = settling(self.foretold)
        elif self.dropped:
            rest = self._rest_after_drop()
        self._begin_tuning(max(rest, 0), self.tuning)
        with self.clock.phase("warmup"):
            if self.moves.chains is None:
                self._begin_chains()
            elif self.surrogate is None and not self.dropped:
                self.moves.move_on(self.target)  # the explorer's sampler need not be this one
        self._warm(max(rest, 0))
        self._judge_warm_up()

    def sample(self) -> None:
        """Draw; from here on nothing is tuned, unless draws are to begin again."""
        while (trouble := self._draw()) is not None:
            self._restart(trouble)

    def _draw(self) -> str | None:
        self.target.derivatives = False
        self.target.failure_log.draws_begin(self.recorder.lately())
        self.net.draws_begin()
        self.adapting.draws_begin(self._kernel)
        for _ in range(self.stopping.draws_begin(self.plan.draws)):
            self._expect()
            self.stopping.check()
            with self.clock.phase("sampling"):
                step = self._transition()
            self.stopping.check()  # an iteration that a limit falls into is dropped
            self._after("sampling", step, self._paid_rows())
            if (trouble := self.net.late_trouble(self.surrogate)) is not None:
                return trouble
            with self.clock.phase("sampling"):
                if self.stopping.reached(self.recorder.kept):
                    break
        return None

    def _expect(self) -> None:
        """Tell observers how many draws there will be, as far as that is known."""
        if self.stopping.expected != self.info.draws:
            self.info = attrs.evolve(self.info, draws=self.stopping.expected)

    def _warm(self, n_iterations: int) -> None:
        self.warmup_ends = self.recorder.iteration + n_iterations
        self.info = attrs.evolve(self.info, warmup=self.warmup_ends)
        self.stopping.warmup_begins()
        while (room := self.warmup_ends - self.recorder.iteration) > 0:
            trouble = self.net.trouble(self.surrogate, room)
            if trouble is not None:
                self.net.rescues.append(Rescue(iteration=self.recorder.iteration, reason=trouble))
                self._repair(trouble)
                self.stopping.warmup_begins()
                continue
            self.stopping.check_before_iteration(exact=self._pays_whole_positions)
            with self.clock.phase("warmup"):
                step = self._transition(tune=True)
            self._after("warmup", step, self._paid_rows())
            self.stopping.iteration_done()
        self.moves.settle()
        if self.net.exact is not None:
            self.net.exact.freeze()

    def _begin_tuning(self, n_iterations: int, tuning: Tuning | None) -> None:
        moves = self.moves
        if self.net.exact is not None:
            self.net.exact.tune(
                n_iterations, covariance=moves.covariance, step_size=moves.step_size
            )
        moves.start_tuning(n_iterations, tuning)

    # --- whether the surrogate is worth it ---

    def _judge(self, findings: Findings) -> None:
        """Drop a surrogate that is not worth its cost, or prepare the decisions on it."""
        fallback = self.plan.fallback
        if fallback is not None and self.surrogate is None:
            self._drop("no surrogate could be fitted")
        elif fallback is not None and findings.acceptance is not None:
            reason = fallback.complaint(findings.acceptance)
            if reason is not None:
                self._drop(reason)
        with self.clock.phase("warmup"):
            self._prepare(findings.mode)

    def _judge_warm_up(self) -> None:
        """Drop a surrogate of which the warm-up has shown that it is not worth its cost."""
        fallback = self.plan.fallback
        seen = self.recorder.iteration - (self.explored_at or 0)
        if fallback is None or self.surrogate is None or seen < JUDGED // 2:
            return
        enough = min(seen, JUDGED)
        acceptance, seconds, steps = self.recorder.warmup.last(enough)
        forgotten = self.moves.forgotten(self.recorder.warmup.positions()[:, -enough:])
        reason = fallback.complaint(min(acceptance, forgotten), seconds, steps)
        if reason is not None:
            self._drop(reason)
            self.warm_up()

    def _drop(self, reason: str) -> None:
        """Go on with the exact kernel of the plan; what was found so far is kept."""
        fallback = self.plan.fallback
        assert fallback is not None
        self.parts = fallback.instead_of(self.parts)
        self.safety = attrs.evolve(self.safety, mix=0.0, restart=False)
        self.surrogate, self.learning = None, None
        self.tuning = None
        self.adapting.surrogate_dropped()
        self.moves.switched(fallback.sampler, fallback.correction)
        self.net = self._safety_net()
        self.info = attrs.evolve(self.info, parts=self.parts.described)
        self.choice = f"{self.choice}; then {fallback.name} instead: {reason}"

    def _rest_after_drop(self) -> int:
        if self.plan.warmup is None:
            return TUNED_AFTER_DROP
        return max(self.plan.warmup - self.recorder.iteration, TUNED_AFTER_RESTART)

    # --- when the surrogate fails ---

    def _safety_net(self) -> SafetyNet:
        sampler = self.parts.exact_sampler
        exact = None
        if sampler is not None:
            exact = ExactMoves(sampler, self.moves.decider, self.target, self.plan.chains)
        return SafetyNet(self.safety, self.plan.chains, exact, learns=self.learning is not None)

    def _repair(self, trouble: str) -> None:
        """Make exact transitions, learn from them, and refit."""
        assert self.net.exact is not None and self.learning is not None  # noqa: PT018
        self.net.exact.learn(self.moves.covariance)
        self.rescuing = self.target.keep = True
        for _ in range(self.safety.block):
            self.stopping.check_before_iteration(exact=True)
            with self.clock.phase("warmup"):
                step = self._exact_transition(tune=True)
            self.net.saw_exact(step)
            self._after("warmup", step, self._paid_rows())
        self.rescuing = False
        self.learning.observe(self.net.taken(self.info.dim))
        self._deploy(f"safety net, after iteration {self.recorder.iteration}: {trouble}")
        self.moves.tune_afresh()
        self.net.repaired()

    def _restart(self, trouble: str) -> None:
        self.net.restarts.append(Rescue(iteration=self.recorder.iteration, reason=trouble))
        self.recorder.begin_again()
        self.adapting.begin_again()
        n_iterations = self.safety.block + TUNED_AFTER_RESTART
        self._begin_tuning(n_iterations, None)
        self.warmup_ends = self.recorder.iteration + n_iterations
        self._repair(trouble)
        self._warm(self.warmup_ends - self.recorder.iteration)

    # --- one iteration ---

    @property
    def _kernel(self) -> Kernel:
        return (*self.moves.identity, *(() if self.net.exact is None else self.net.exact.identity))

    @property
    def _pays_whole_positions(self) -> bool:
        return ROWS not in self.moves.correction.needs  # else single rows, and perhaps very few

    def _transition(self, *, tune: bool = False) -> StepInfo:
        if self.net.mixes(self.surrogate, self.rng):
            return self._exact_transition(tune=tune)
        step = self.moves.transition(self.rng, tune=tune)
        self.net.saw(step)
        return step

    def _exact_transition(self, *, tune: bool) -> StepInfo:
        assert self.net.exact is not None
        self.moves.step_size = self.net.exact.step
        state, step = self.net.exact.transition(self.moves.state, self.rng, tune=tune)
        self.moves.moved_to(state, tune=tune)
        return step

    def _after(
        self,
        stage: Stage,
        step: StepInfo | None,
        rows: Evaluations | None,
        explored: bool = False,
    ) -> None:
        state = self.moves.state
        info = self.recorder.add(stage, state, step, self.moves.step_size)
        self.observers.tell("surrokit_transition_done", run=self.info, state=state, info=info)
        if explored:
            self.explored_at = info.iteration
        if stage == "warmup" and self._hurries():
            self.warmup_ends = min(self.warmup_ends, ending(info.iteration))
        moment = Moment(
            stage=stage,
            iteration=info.iteration,
            explored=explored,
            since_explored=-1 if self.explored_at is None else info.iteration - self.explored_at,
            draws_follow=stage == "warmup" and info.iteration >= self.warmup_ends,
        )
        self._learn(moment, step, rows)

    def _hurries(self) -> bool:
        """Return whether the warm-up, if its length is open, has to leave the rest to draws."""
        return self.plan.warmup is None and self.stopping.used(self.hurry)

    def _learn(self, moment: Moment, step: StepInfo | None, rows: Evaluations | None) -> None:
        decision = self.parts.schedule.decide(moment, self.rng)
        if rows is not None and len(rows):
            if self.learning is not None and (decision.observe or self.rescuing):
                self.learning.observe(self._chosen(rows, moment, step, decision))
            elif self.net.listens(self.surrogate, moment.stage):
                self.net.keep(rows)
        if decision.deploy:
            self._deploy(f"schedule, after iteration {moment.iteration}")
        self.adapting.decided(moment, decision, self._kernel)
        self._record(moment, decision)

    def _chosen(
        self, rows: Evaluations, moment: Moment, step: StepInfo | None, decision: Decision
    ) -> Evaluations:
        if moment.stage == "exploration" or self.rescuing or step is None:
            return rows  # the explorer has chosen, or all are wanted
        return training_rows(decision.learn_from, rows, self.moves.state, step)

    def _record(self, moment: Moment, decision: Decision) -> None:
        """Set what the target keeps and evaluates from here on."""
        listens = self.net.listens(self.surrogate, moment.stage)
        has_outputs = self.recorder.has_outputs
        self.target.keep = has_outputs or self.rescuing or listens or not self.adapting.frozen
        learner = self.parts.learner
        self.target.derivatives = (
            decision.derivatives
            and moment.stage != "sampling"
            and learner is not None
            and uses_derivatives(learner)
        )

    def _deploy(self, reason: str) -> None:
        assert self.learning is not None
        try:
            surrogate = self.learning.fitted()
        except SurrogateFitError as error:
            can_go_on = self.moves.sampler.needs <= self.target.capabilities
            if self.surrogate is None and self.plan.fallback is None and not can_go_on:
                raise  # without a surrogate there is nothing to move on
            warnings.warn(
                f"no surrogate could be fitted, and the run goes on without a new one: {error}",
                SamplingWarning,
                stacklevel=2,
            )
            return
        self.surrogate = surrogate
        self.adapting.deployed(self.recorder.iteration)
        self.moves.move_on(surrogate)
        self._tell_deployed(surrogate, reason)

    @property
    def n_observed(self) -> int:
        """Exact evaluations that the learner observed."""
        return 0 if self.learning is None else self.learning.n_observed

    def _tell_deployed(self, surrogate: Potential, reason: str) -> None:
        self.observers.tell(
            "surrokit_surrogate_deployed",
            run=self.info,
            surrogate=surrogate,
            evaluations=self.n_observed,
            reason=reason,
        )

    def _paid_rows(self) -> Evaluations | None:
        return self.recorder.paid(self.moves.state) if self.target.keep else None

    # --- how chains begin ---

    def _begin_chains(self) -> None:
        state = self._started(lambda at: (self.moves.start(at),) * 2)
        self.moves.chains = state
        if self.surrogate is None:  # else the gradient at hand is the surrogate's
            self._check_gradient(state)
        self._prepare(None)

    def _prepare(self, mode: FloatArray | None) -> None:
        """Let the correction find out, near the mode or the chains, what it must know."""
        near = self.moves.positions.mean(axis=0) if mode is None else mode
        if self.moves.prepare(near) and self.net.exact is not None:
            self.net.exact.decide_by(self.moves.decider)

    def _started(self, begin: Callable[[FloatArray], tuple[Began, ChainState]]) -> Began:
        plan = self.plan
        return started(begin, plan.target.target, plan.initial, plan.chains, self.rng)

    def _check_gradient(self, state: ChainState) -> None:
        gradient = state.cache.get("gradient")
        if gradient is not None:
            warn_if_gradient_disagrees(self.target, state.positions[0], gradient[0])

    def outcome(self) -> Run:
        """Return the result, of whatever was drawn."""
        transform = transform_of(self.target.target)
        return Run(
            parameters=parameters_of(self.target.target),
            kept=self.recorder.kept.trace(transform),
            warmup=self.recorder.warmup.trace(transform),
            calls=self.target.calls,
            n_rows=self.target.n_rows if ROWS in self.target.capabilities else None,
            failures=self.target.failures,
            broken_gradients=self.target.broken_gradients,
            seconds=dict(self.clock.seconds),
            adaptation=self.adapting.told(self.n_observed, self.net),
            stopped=self.stopping.stopped,
            length=self.stopping.length,
            choice=self.choice,
            parts=self.parts.described,
            surrogate=self.surrogate,
            sampler=self.moves.tuned_sampler,
            kernel=self.moves.bound,
            modes=None if self.modes is None else self.modes.told(transform),
        )
