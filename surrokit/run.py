"""The loop over iterations, and the only caller of observers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from surrokit.advice import advice
from surrokit.bounds import parameters_of, transform_of
from surrokit.capabilities import FORWARD
from surrokit.clock import Clock
from surrokit.errors import SamplingWarning, SurrogateFitError
from surrokit.exact_moves import ExactMoves
from surrokit.gradient_check import warn_if_gradient_disagrees
from surrokit.history import History
from surrokit.observers import Observers
from surrokit.parts import Parts, uses_derivatives
from surrokit.protocols import Explorer, Potential
from surrokit.recording import RecordingPotential
from surrokit.records import (
    ChainState,
    Decision,
    Evaluations,
    IterationInfo,
    Moment,
    RunInfo,
    Stage,
    StepInfo,
)
from surrokit.result import Adaptation, Run
from surrokit.safety import Rescue, Safety
from surrokit.safety_net import SafetyNet
from surrokit.starting import Began, started
from surrokit.training import training_rows
from surrokit.tuning import Tuner, TunerState
from surrokit.types import FloatArray, IntArray

TUNED_AFTER_RESTART = 100
"""Iterations of warm-up that follow the repair when draws begin again."""


@attrs.frozen(kw_only=True, eq=False)
class Plan:
    """All parts of a run, made and checked.

    Parameters
    ----------
    target
        The exact potential, recorded.
    parts
        What it is made of.
    chains, warmup, draws
        Sizes; ``warmup`` counts the exploration.
    initial : ndarray of shape (chains, dim), optional
        The user's starting positions, in the sampling coordinates.
    evaluations
        Exact evaluations already paid for, in the sampling coordinates.
    safety
        What to do when the surrogate fails.
    """

    target: RecordingPotential
    parts: Parts
    chains: int
    warmup: int
    draws: int
    initial: FloatArray | None
    evaluations: Evaluations | None
    safety: Safety


def run(plan: Plan, rng: np.random.Generator, observers: Observers) -> Run:
    """Carry out a plan.

    An interrupt (Ctrl-C) returns what was drawn, marked as incomplete; any exception carries it
    as its attribute ``partial``.

    Raises
    ------
    TargetError
        If no chain can start, or the target raises and was asked to.
    """
    loop = _Loop(plan, rng, observers)
    complete = True
    try:
        observers.tell("surrokit_run_started", run=loop.info)
        loop.deploy_ready()
        loop.explore()
        loop.warm_up()
        loop.sample()
    except KeyboardInterrupt:
        complete = False
    except Exception as error:
        error.partial = loop.outcome(complete=False)  # type: ignore[attr-defined]
        error.add_note("What was drawn until then is in this exception's attribute 'partial'.")
        raise
    outcome = loop.outcome(complete)
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
        self.correction = plan.parts.correction.with_potential(plan.target)
        self.surrogate: Potential | None = plan.parts.ready
        moves_on = plan.target if self.surrogate is None else self.surrogate
        self.sampler = plan.parts.sampler.with_potential(moves_on)
        self.state: ChainState | None = None
        self.tuner: Tuner | None = None
        self.tuner_state: TunerState | None = None
        self.covariance: FloatArray | None = None
        self.step_size: float | None = None
        self.iteration = 0
        self.n_observed = 0
        self.explored_at: int | None = None
        self.deployments: list[int] = []
        self.frozen = False
        self.kept_under_adaptation = False
        self.rescuing = False
        self.net = self._safety_net()
        self.clock = Clock()
        dim = plan.target.dim
        self.warmup = History(plan.chains, dim)
        self.kept = History(plan.chains, dim)
        self.outputs: FloatArray | None = None
        self.has_outputs = FORWARD in plan.target.capabilities
        self.info = RunInfo(
            dim=dim,
            chains=plan.chains,
            warmup=plan.warmup,
            draws=plan.draws,
            parts=plan.parts.described,
        )

    # --- the three phases ---

    def deploy_ready(self) -> None:
        """Tell observers of a surrogate that has nothing to learn, if the plan has one."""
        if self.surrogate is not None:
            self._tell_deployed(self.surrogate, "ready before the run")

    def explore(self) -> None:
        """Explore, if the plan says so, and hand what was found to learner and sampler."""
        if self.plan.parts.explorer is None:
            return
        with self.clock.phase("warmup"):
            explorer = self.plan.parts.explorer.with_potential(self.target)
            exploration = self._begin_exploration(explorer)
        if self.plan.evaluations is not None:
            self._observe(self.plan.evaluations)
        done = False
        while not done:
            with self.clock.phase("warmup"):
                exploration = explorer.step(exploration, self.rng)
                paid = self._drained(exploration.chains)
                exploration, rows = explorer.learn(exploration, paid)
                done = explorer.done(exploration)
                findings = explorer.findings(exploration)
                self.state, self.covariance = findings.chains, findings.covariance
                self.step_size = findings.step_size
            self._after("exploration", self.warmup, exploration.info, rows, explored=done)

    def warm_up(self) -> None:
        """Tune what was left free, on whatever potential the sampler moves on now."""
        n_iterations = self.plan.warmup - len(self.warmup)
        self._begin_tuning(n_iterations)
        assert self.tuner is not None and self.tuner_state is not None  # noqa: PT018
        with self.clock.phase("warmup"):
            if self.state is None:
                self.state = self._begin_chains()
            elif self.surrogate is None:  # the explorer's sampler need not be this one
                self._move_on(self.target)
            self.sampler = self.tuner.tuned(self.tuner_state, self.sampler)
        self._warm(n_iterations)

    def sample(self) -> None:
        """Draw; from here on nothing is tuned, unless draws are to begin again."""
        while (trouble := self._draw()) is not None:
            self._restart(trouble)

    def _draw(self) -> str | None:
        self.target.derivatives = False
        self.net.draws_begin()
        for _ in range(self.plan.draws):
            with self.clock.phase("sampling"):
                step = self._transition()
            self._after("sampling", self.kept, step, self._paid_rows())
            if (trouble := self.net.late_trouble(self.surrogate)) is not None:
                return trouble
        return None

    def _warm(self, n_iterations: int) -> None:
        done = 0
        while done < n_iterations:
            trouble = self.net.trouble(self.surrogate, n_iterations - done)
            if trouble is not None:
                self.net.rescues.append(Rescue(iteration=self.iteration, reason=trouble))
                done += self._repair(trouble)
                continue
            with self.clock.phase("warmup"):
                step = self._transition(tune=True)
            self._after("warmup", self.warmup, step, self._paid_rows())
            done += 1
        if self.net.exact is not None:
            self.net.exact.freeze()

    def _begin_tuning(self, n_iterations: int) -> None:
        chains, dim = self.plan.chains, self.info.dim
        self.tuner = Tuner.of(self.sampler, n_iterations)
        self.tuner_state = self.tuner.start(
            chains, dim, covariance=self.covariance, step_size=self.step_size
        )
        if self.net.exact is not None:
            self.net.exact.start(
                chains, dim, n_iterations, covariance=self.covariance, step_size=self.step_size
            )

    # --- when the surrogate fails ---

    def _safety_net(self) -> SafetyNet:
        plan, sampler = self.plan, self.plan.parts.exact_sampler
        exact = None
        if sampler is not None:
            exact = ExactMoves(sampler, self.correction, plan.target)
        learns = plan.parts.learner is not None
        return SafetyNet(plan.safety, plan.chains, exact, learns=learns)

    def _repair(self, trouble: str) -> int:
        """Make exact transitions, learn from them, refit; return how many iterations it took."""
        assert self.tuner is not None and self.tuner_state is not None  # noqa: PT018
        assert self.net.exact is not None
        self.net.exact.learn(self.tuner_state.covariance)
        self.rescuing = self.target.keep = True
        for _ in range(self.plan.safety.block):
            with self.clock.phase("warmup"):
                step = self._exact_transition(tune=True)
            self.net.saw_exact(step)
            self._after("warmup", self.warmup, step, self._paid_rows())
        self.rescuing = False
        self._observe(self.net.taken(self.info.dim))
        self._deploy(f"safety net, after iteration {self.iteration}: {trouble}")
        self.tuner_state = self.tuner.restarted(self.tuner_state)
        self.sampler = self.tuner.tuned(self.tuner_state, self.sampler)
        self.net.repaired()
        return self.plan.safety.block

    def _restart(self, trouble: str) -> None:
        self.net.restarts.append(Rescue(iteration=self.iteration, reason=trouble))
        self.warmup.extend(self.kept)
        self.kept = History(self.plan.chains, self.info.dim)
        self.frozen = self.kept_under_adaptation = False
        assert self.tuner_state is not None
        self.covariance = self.tuner_state.covariance
        n_iterations = self.plan.safety.block + TUNED_AFTER_RESTART
        self._begin_tuning(n_iterations)
        self._warm(n_iterations - self._repair(trouble))

    # --- one iteration ---

    def _transition(self, *, tune: bool = False) -> StepInfo:
        if self.net.mixes(self.surrogate, self.rng):
            return self._exact_transition(tune=tune)
        assert self.state is not None
        self.step_size = self.sampler.step
        proposal = self.sampler.propose(self.state, self.rng)
        self.state, step = self.correction.decide(self.state, proposal, self.rng)
        self.net.saw(step)
        if tune:
            assert self.tuner is not None and self.tuner_state is not None  # noqa: PT018
            self.tuner_state = self.tuner.update(self.tuner_state, self.state.positions, step)
            self.sampler = self.tuner.tuned(self.tuner_state, self.sampler)
        return step

    def _exact_transition(self, *, tune: bool) -> StepInfo:
        assert self.state is not None and self.net.exact is not None  # noqa: PT018
        self.step_size = self.net.exact.step
        self.state, step = self.net.exact.transition(self.state, self.rng, tune=tune)
        if tune:
            assert self.tuner is not None and self.tuner_state is not None  # noqa: PT018
            self.tuner_state = self.tuner.passed(self.tuner_state, self.state.positions)
            self.sampler = self.tuner.tuned(self.tuner_state, self.sampler)
        cache = self.sampler.cache(self.state.positions)
        self.state = attrs.evolve(self.state, cache=cache)
        return step

    def _after(
        self,
        stage: Stage,
        history: History,
        step: StepInfo | None,
        rows: Evaluations | None,
        explored: bool = False,
    ) -> None:
        assert self.state is not None
        self.iteration += 1
        seconds, calls = self.clock.elapsed(), self.target.calls
        if step is not None:
            history.add(
                self.state,
                step,
                step_size=self.step_size if self.step_size is not None else float("nan"),
                seconds=seconds,
                calls=calls,
                outputs=self.outputs,
            )
        info = IterationInfo(
            stage=stage,
            iteration=self.iteration,
            step=step,
            calls=calls,
            seconds=seconds,
        )
        self.observers.tell("surrokit_transition_done", run=self.info, state=self.state, info=info)
        if explored:
            self.explored_at = self.iteration
        moment = Moment(
            stage=stage,
            iteration=self.iteration,
            explored=explored,
            since_explored=-1 if self.explored_at is None else self.iteration - self.explored_at,
            draws_follow=stage == "warmup" and self.iteration == self.plan.warmup,
        )
        self._learn(moment, step, rows)

    def _learn(self, moment: Moment, step: StepInfo | None, rows: Evaluations | None) -> None:
        decision: Decision = self.plan.parts.schedule.decide(moment, self.rng)
        if rows is not None and len(rows):
            if decision.observe or self.rescuing:
                self._observe(self._chosen(rows, moment, step, decision))
            elif self.net.listens(self.surrogate, moment.stage):
                self.net.keep(rows)
        if decision.deploy:
            self._deploy(f"schedule, after iteration {self.iteration}")
        self.frozen = self.frozen or decision.frozen
        self.kept_under_adaptation |= moment.stage == "sampling" and not self.frozen
        self._record(moment, decision)

    def _chosen(
        self, rows: Evaluations, moment: Moment, step: StepInfo | None, decision: Decision
    ) -> Evaluations:
        if moment.stage == "exploration" or self.rescuing or step is None:
            return rows  # the explorer has chosen, or all are wanted
        assert self.state is not None
        return training_rows(decision.learn_from, rows, self.state, step)

    def _record(self, moment: Moment, decision: Decision) -> None:
        """Set what the target keeps and evaluates from here on."""
        listens = self.net.listens(self.surrogate, moment.stage)
        self.target.keep = self.has_outputs or self.rescuing or listens or not self.frozen
        learner = self.plan.parts.learner
        self.target.derivatives = (
            decision.derivatives
            and moment.stage != "sampling"
            and learner is not None
            and uses_derivatives(learner)
        )

    def _observe(self, rows: Evaluations) -> None:
        assert self.plan.parts.learner is not None
        with self.clock.phase("training"):
            self.plan.parts.learner.observe(rows)
        self.n_observed += len(rows)

    def _deploy(self, reason: str) -> None:
        assert self.plan.parts.learner is not None
        try:
            with self.clock.phase("training"):
                surrogate = self.plan.parts.learner.fitted()
        except SurrogateFitError as error:
            if self.surrogate is None and not self.sampler.needs <= self.target.capabilities:
                raise  # without a surrogate there is nothing to move on
            warnings.warn(
                f"no surrogate could be fitted, and the run goes on without a new one: {error}",
                SamplingWarning,
                stacklevel=2,
            )
            return
        self.surrogate = surrogate
        self.deployments.append(self.iteration)
        self._move_on(surrogate)
        self._tell_deployed(surrogate, reason)

    def _tell_deployed(self, surrogate: Potential, reason: str) -> None:
        self.observers.tell(
            "surrokit_surrogate_deployed",
            run=self.info,
            surrogate=surrogate,
            evaluations=self.n_observed,
            reason=reason,
        )

    def _move_on(self, potential: Potential) -> None:
        assert self.state is not None
        self.sampler = self.sampler.with_potential(potential)
        cache = self.sampler.cache(self.state.positions)
        self.state = attrs.evolve(self.state, cache=cache)

    # --- what was paid ---

    def _paid_rows(self) -> Evaluations | None:
        assert self.state is not None
        return self._drained(self.state) if self.target.keep else None

    def _drained(self, state: ChainState) -> Evaluations:
        paid = self.target.drain()
        if self.has_outputs and paid.outputs is not None:
            self._keep_outputs(paid.outputs, paid.find(state.positions))
        return paid

    def _keep_outputs(self, paid: FloatArray, found: IntArray) -> None:
        if self.outputs is None:
            self.outputs = np.full((self.plan.chains, paid.shape[1]), np.nan)
        fresh = found >= 0
        self.outputs = np.where(fresh[:, None], paid[found], self.outputs)

    # --- how chains begin ---

    def _begin_exploration(self, explorer: Explorer) -> Any:
        def begin(positions: FloatArray) -> tuple[Any, ChainState]:
            exploration = explorer.start(positions, self.plan.warmup)
            return exploration, exploration.chains

        exploration = self._started(begin)
        self._check_gradient(exploration.chains)
        return exploration

    def _begin_chains(self) -> ChainState:
        def begin(positions: FloatArray) -> tuple[ChainState, ChainState]:
            cache = self.sampler.cache(positions)
            state = self.correction.start(positions, cache, self.sampler.potential)
            return state, state

        state = self._started(begin)
        if self.surrogate is None:  # else the gradient at hand is the surrogate's
            self._check_gradient(state)
        return state

    def _started(self, begin: Callable[[FloatArray], tuple[Began, ChainState]]) -> Began:
        plan = self.plan
        return started(begin, plan.target.target, plan.initial, plan.chains, self.rng)

    def _check_gradient(self, state: ChainState) -> None:
        gradient = state.cache.get("gradient")
        if gradient is not None:
            warn_if_gradient_disagrees(self.target, state.positions[0], gradient[0])

    # --- what comes of it ---

    def outcome(self, complete: bool) -> Run:
        """Return the result, of whatever was drawn."""
        transform = transform_of(self.target.target)
        return Run(
            parameters=parameters_of(self.target.target),
            kept=self.kept.trace(transform),
            warmup=self.warmup.trace(transform),
            calls=self.target.calls,
            failures=self.target.failures,
            seconds=dict(self.clock.seconds),
            adaptation=Adaptation(
                deployments=tuple(self.deployments),
                training_rows=self.n_observed,
                frozen_before_draws=not self.kept_under_adaptation,
                rescues=tuple(self.net.rescues),
                restarts=tuple(self.net.restarts),
                mix=self.plan.safety.mix,
            ),
            complete=complete,
            parts=self.plan.parts.described,
            surrogate=self.surrogate,
            sampler=self.sampler,
        )
