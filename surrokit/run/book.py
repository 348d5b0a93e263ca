"""The book of a run: its clock, its recorder, its limits and its observers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from surrokit.capabilities import ROWS
from surrokit.cost.budget import Clock
from surrokit.cost.probes import (
    Exchange,
    endless_along,
    evaluate_again,
    find_exchange,
    look_at_noise,
)
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import BudgetSpent, ConfigurationError
from surrokit.failures import FailureKind
from surrokit.history import LOST, History, lost_part
from surrokit.interfaces import ChainState, Evaluations, Moment, Stage, StepInfo
from surrokit.kernel.kernel import Moves
from surrokit.ledger.file import INTERVAL, RunFile
from surrokit.limits import SAMPLING, STARTING, WARMING, WEIGHING
from surrokit.model.calls import NoJournal
from surrokit.model.model import model_of
from surrokit.modes import Modes
from surrokit.plan.plan import Plan, estimate_of
from surrokit.plan.recipe import Extension, ModeWeights, Recipe, arguments_of, ending
from surrokit.plan.stopping import Stopping
from surrokit.potentials import Potential, observed_data_of, predictor_of, unnormalized_of
from surrokit.progress import IterationInfo, Progress, RoundInfo, RunInfo
from surrokit.result.records import Adaptation, Weights
from surrokit.result.run import Run
from surrokit.result.verdict import judge
from surrokit.run.approximate import Approximation
from surrokit.targets.bounds import parameters_of
from surrokit.targets.summed import pointwise_of
from surrokit.types import FloatArray
from surrokit.weighted.separate_modes import CALLS, weigh_answer, weigh_modes

EVENTS = (
    "surrokit_run_started",
    "surrokit_transition_done",
    "surrokit_surrogate_deployed",
    "surrokit_round_weighed",
    "surrokit_run_finished",
)
"""Names of the observation hooks."""


def list_observers(observers: Iterable[object]) -> list[object]:
    """Return observers as a list, if each listens to something.

    Raises
    ------
    ConfigurationError
        If ``observers`` is not iterable, or one of them has none of the methods.
    """
    if not isinstance(observers, Iterable):
        raise ConfigurationError(
            f"observers must be a list of objects, got {observers!r}; pass observers=[...]"
        )
    found = list(observers)
    Observers(found)
    return found


class Observers:
    """The plugins and objects that listen, by event; an event without listeners costs nothing.

    Parameters
    ----------
    objects
        Observers of one run: objects with one or more methods that have the name and arguments of
        a hook.

    Raises
    ------
    ConfigurationError
        If an object has none of the methods.
    """

    def __init__(self, objects: Iterable[object] = ()) -> None:
        self._listeners: dict[str, list[Callable[..., Any]]] = {event: [] for event in EVENTS}
        for observer in objects:
            found = [event for event in EVENTS if callable(getattr(observer, event, None))]
            if not found:
                raise ConfigurationError(
                    f"an observer must have at least one of the methods {', '.join(EVENTS)}; "
                    f"{observer!r} has none"
                )
            for event in found:
                self._listeners[event].append(getattr(observer, event))

    def add_hooks(self, hooks: Any) -> None:
        """Let plugins listen, through the hook relay of a plugin manager."""
        for event in EVENTS:
            caller = getattr(hooks, event)
            if caller.get_hookimpls():
                self._listeners[event].append(caller)

    def hear_of(self, event: str) -> bool:
        """Return whether anybody listens to an event."""
        return bool(self._listeners[event])

    def tell(self, event: str, **arguments: object) -> None:
        """Call everybody who listens to an event."""
        for listener in self._listeners[event]:
            listener(**arguments)


ENDS = (BudgetSpent, KeyboardInterrupt, Exception)
"""Exceptions that end a run."""

PART_OF_CALLS, FEW = 0.05, 20
"""Part of a run's calls that evidences of modes may cost beside, and fewest that tell of one."""

_ENOUGH = 5  # iterations of a stage, or calls, from which on they say how long the others take
_UNSURE, _UNTUNED = 1.3, 2.0  # times as long, or as short, in which later ones may differ


class Book:
    """The book of a run, which outlives its attempts.

    The budget guards exact calls until the book is closed.

    Parameters
    ----------
    file
        Keeps what happens; None for no file.
    extensions
        Sessions of a run that does again what it did before, with the one that begins now; none for
        the recipe's sizes and limits.

    Attributes
    ----------
    target
        The exact potential, recorded; all evaluations are kept.
    clock, recorder, stopping
        Seconds, iterations, and what is spent.
    plan, info
        The plan in use, and what observers know of it; None before there is one.
    warmup_ends
        The last iteration of the warm-up, as far as is known.
    weights, modes
        What came of weighted answers so far, and the modes that were found; None without.
    """

    def __init__(
        self,
        asked: Recipe,
        observers: Observers,
        file: RunFile | None = None,
        extensions: Sequence[Extension] = (),
    ) -> None:
        self._asked, self._file = asked, file
        journal = NoJournal() if file is None else file.journal
        self.clock = Clock(journal, model_of(asked.exact).memo)
        self.target = RecordingPotential(
            asked.exact, keep=True, on_error=asked.on_error, retries=asked.retries
        )
        self.iteration = 0
        self.deployments: list[int] = []
        self.warmup = History(asked.chains, self.target.dim)
        self.kept = History(asked.chains, self.target.dim)
        self.stopping = Stopping(asked, self.target, self.clock, extensions, journal)
        self._adaptation: Callable[[], Adaptation] = _nothing_changed
        self.target.guard(self.stopping.guard, journal)
        self.warmup_ends = asked.most_warmup
        self._hurry = asked.hurry if asked.warmup is None else None
        self._explored_at: int | None = None
        self.weights: Weights | None = None
        self.modes: Modes | None = None
        self._chains_decide = False
        self._endless: tuple[str, ...] = ()
        self._exchange: Exchange | None = None
        self.plan: Plan | None = None
        self.info: RunInfo | None = None
        self._observers = observers
        self._meter = self.target.calls_made.meter
        self._meter.workers = asked.workers
        self._at: tuple[str, int, float] = (STARTING, 0, 0.0)
        self._expected_calls = math.inf
        self._meter.read = self.progress
        if file is not None:
            file.tell(self._account, lambda: self.weights)
            self._meter.every(INTERVAL, lambda: file.write_progress(self.progress()))

    def begin(self, plan: Plan) -> None:
        """Go by a plan from here on; the first one starts the run."""
        self.plan, recipe = plan, plan.recipe
        self.stopping.hold_back(plan.learner is not None)
        if self.info is not None:
            self.info = attrs.evolve(self.info, parts=plan.described)
            return
        self.info = RunInfo(
            dim=self.target.dim,
            chains=recipe.chains,
            warmup=recipe.most_warmup,
            draws=recipe.most_draws,
            parts=plan.described,
            estimate=estimate_of(plan, self._asked),
        )
        self._tell("surrokit_run_started")

    def enter(self, stage: str) -> None:
        """Note what the run does from here on."""
        self._meter.stage = stage
        self._at = stage, self.iteration, self.clock.now()

    def progress(self) -> Progress:
        """Return how far the run is; it leaves no trace, and another thread may ask for it."""
        meter, budget, seconds = self._meter, self.stopping.budget, self.clock.now()
        calls = max(self.target.n_calls - meter.not_back, 0.0)
        return Progress(
            stage=meter.stage,
            calls=calls,
            in_flight=meter.in_flight,
            seconds_a_call=meter.seconds_a_call,
            failures=self.target.failures,
            seconds=seconds,
            most_calls=budget.calls,
            most_seconds=budget.max_seconds,
            left=self._left(calls, seconds),
        )

    def _left(self, calls: float, seconds: float) -> tuple[float, float]:
        """Return the fewest and the most seconds that are left.

        While chains move, the iterations that are left take about as long as those of the stage so
        far, and while answers are weighted the calls that are left do. Before that only limits say
        something: seconds are sure, and calls are taken to last as long as those so far, fits of
        the surrogate included.
        """
        (stage, first, since), iteration, limits = self._at, self.iteration, [math.inf]
        budget, done = self.stopping.budget, iteration - first
        if budget.max_seconds is not None:
            limits.append(budget.max_seconds - seconds)
        wide = _UNSURE if stage in (SAMPLING, WEIGHING) else _UNTUNED
        if budget.calls is not None and calls >= _ENOUGH:
            limits.append(wide * (budget.calls - calls) * seconds / calls)
        likely = 0.0
        if stage == WEIGHING and calls < self._expected_calls < math.inf:
            likely = (self._expected_calls - calls) * seconds / calls
        elif stage in (WARMING, SAMPLING) and done >= _ENOUGH and self.info is not None:
            rest = self.info.draws - len(self.kept)
            rest += self.room if stage == WARMING else 0
            likely = max(rest, 0) * (seconds - since) / done
        if likely:
            limits.append(wide * likely)
        most = max(min(limits), 0.0)
        return min(likely / wide, most), most

    def _places(self, history: History) -> FloatArray:
        return history.positions().reshape(-1, self.target.dim)

    @property
    def _chains_were(self) -> FloatArray:
        """The draws, or else the second half of the warm-up, shape (n, dim)."""
        before = self.warmup.positions()
        late = before[:, before.shape[1] // 2 :].reshape(-1, self.target.dim)
        return self._places(self.kept) if len(self.kept) else late

    @property
    def known(self) -> Evaluations | None:
        """Evaluations of before the run, without those that its policy made."""
        return self._asked.evaluations

    @property
    def room(self) -> int:
        """Iterations left in the warm-up."""
        return self.warmup_ends - self.iteration

    @property
    def since_explored(self) -> int:
        """Iterations since the exploration ended, or since the run began if there was none."""
        return self.iteration - (self._explored_at or 0)

    @property
    def most_draws(self) -> int:
        """Most draws of each chain, by the sizes and limits that hold now."""
        return self.stopping.now.most_draws

    @property
    def wanted(self) -> int | None:
        """Draws asked for of each chain; None where left open."""
        return self.stopping.now.draws

    def keep_first(self, n: int) -> None:
        """Turn draws after the first n of each chain into warm-up."""
        self.kept, later = self.kept.split(n)
        self.warmup.extend(later)
        if self._file is not None:
            self._file.begin_again()

    def begin_again(self) -> None:
        """Turn the draws so far into warm-up."""
        self.warmup.extend(self.kept)
        self.kept = History(self._asked.chains, self.target.dim)
        if self._file is not None:
            self._file.begin_again()

    def begin_chains(self) -> None:
        """Count from here on: on the draws before nothing decided."""
        self._explored_at = self.iteration
        self._chains_decide = True

    @property
    def has_draws(self) -> bool:
        """Whether draws are kept, or weighted answers are there."""
        answered = self.weights is not None and self.weights.answer is not None
        return answered or len(self.kept) > 0

    def warm_up_for(self, iterations: int) -> None:
        """End the warm-up after so many more iterations."""
        self.warmup_ends = self.iteration + iterations

    def expect(self, *, warmup: int | None = None, draws: int | None = None) -> None:
        """Update the expected length of the run, and notify observers."""
        info = self.info
        assert info is not None
        warmup, draws = warmup or info.warmup, draws or info.draws
        if (warmup, draws) != (info.warmup, info.draws):
            self.info = attrs.evolve(info, warmup=warmup, draws=draws)

    def add(
        self,
        stage: Stage,
        state: ChainState,
        step: StepInfo | None,
        step_size: float | None,
        *,
        explored: bool,
    ) -> Moment:
        """Record one iteration, tell observers, and return the moment after it."""
        self.iteration += 1
        seconds, calls = self.clock.elapsed(), self.target.calls
        if step is not None:
            (self.kept if stage == "sampling" else self.warmup).add(
                state,
                step,
                step_size=math.nan if step_size is None else step_size,
                seconds=seconds,
                failures=self.target.failures,
                calls=calls,
                beside=self.target.calls_made.recent.at(state.positions),
            )
        info = IterationInfo(
            stage=stage, iteration=self.iteration, step=step, calls=calls, seconds=seconds
        )
        self._meter.left(0)
        if self._file is not None:
            self._file.iteration_done(stage, info.iteration, state, self._histories)
        self._tell_transition(state, info)
        if explored:
            self._explored_at = info.iteration
        if stage == "warmup" and self._hurry is not None and self.stopping.is_used_up(self._hurry):
            self.warmup_ends = min(self.warmup_ends, ending(info.iteration))
        return Moment(
            stage=stage,
            iteration=info.iteration,
            explored=explored,
            since_explored=-1 if self._explored_at is None else self.since_explored,
            draws_follow=stage == "warmup" and info.iteration >= self.warmup_ends,
        )

    def add_surrogate(self, surrogate: Potential, evaluations: int, reason: str) -> None:
        """Tell observers that a surrogate of so many evaluations is in use."""
        reported = {"surrogate": surrogate, "evaluations": evaluations, "reason": reason}
        self._tell("surrokit_surrogate_deployed", **reported)

    def add_round(self, aim: float | None) -> None:
        """Tell observers how good weighted answers are so far, and how good they are to be."""
        event, weights = "surrokit_round_weighed", self.weights
        if weights is None or not self._observers.hear_of(event):
            return
        rounds = () if weights.answer is None else weights.answer.rounds
        info = RoundInfo(
            error=float(np.max(weights.figures.relative_error)) if rounds else math.inf,
            draws=sum(map(len, rounds)),
            aim=aim,
            calls=self.target.n_calls,
            most_calls=self.stopping.budget.calls,
        )
        self._expected_calls = info.expected_calls if rounds else math.inf
        self._tell(event, info=info)

    def outcome(
        self,
        plan: Plan,
        exact: RecordingPotential,
        moves: Moves,
        surrogate: Potential | None,
        adaptation: Adaptation,
        unchecked: Approximation | None = None,
    ) -> Run:
        """Return the result, with its verdict.

        Parameters
        ----------
        plan
            What the last attempt went by.
        exact
            The exact potential, as this attempt recorded it.
        surrogate
            The last one; None where there was none.
        unchecked
            Draws that are not exact, where there are no others; None where there are, or not even
            such ones.
        """
        transform = exact.transform
        kept = self.kept if unchecked is None else unchecked.kept
        run = Run(
            parameters=parameters_of(exact.target),
            kept=kept.trace(transform),
            unchecked=None if unchecked is None else unchecked.what,
            warmup=self.warmup.trace(transform),
            calls=exact.calls,
            n_rows=exact.n_rows if ROWS in exact.capabilities else None,
            failures=exact.failures,
            failure_kinds=self._kinds(),
            recheck=exact.recheck,
            broken_gradients=exact.broken_gradients,
            seconds=dict(self.clock.seconds),
            adaptation=adaptation,
            stopped=self.stopping.stopped,
            length=self.stopping.length,
            chosen=plan.recipe.chosen,
            noticed=(*plan.recipe.noticed, *self._remarks()),
            endless=self._endless,
            exchange=self._exchange,
            parts=plan.described,
            surrogate=surrogate,
            sampler=moves.tuned_sampler,
            kernel=moves.bound,
            modes=self.modes,
            weights=self.weights,
            observed_data=observed_data_of(exact.target),
            predictor=predictor_of(exact.target),
            pointwise=pointwise_of(exact.target),
            unnormalized=unnormalized_of(exact.target),
            asked=arguments_of(self._asked),
        )
        return attrs.evolve(run, verdict=judge(run, self.stopping.effective))

    def look_again(self) -> None:
        """Evaluate positions once more at which the target failed near the chains, if any."""
        with self.clock.phase("sampling" if len(self.kept) else "warmup"):
            evaluate_again(self.target, self._chains_were)

    def note_failures(self) -> None:
        """Count the latest failures near the chains, where none can be evaluated once more."""
        self.target.rejections.account.take_near(self._chains_were)

    def look_at_noise(self, surrogate: Potential | None) -> None:
        """Note how large the noise of values is, if they have noise."""
        look_at_noise(self.target, surrogate)

    def look_beyond(self) -> None:
        """Look where chains have not been: far away if they disagree, and across exchanges."""
        kept = self.kept if self.has_draws else self.warmup
        self._exchange = find_exchange(self.target, self._places(self.kept))
        if self.weights is None or self.weights.answer is None:
            self._endless = endless_along(self.target, kept.positions())

    def weigh_modes(
        self,
        modes: Modes | None,
        surrogate: Potential | None,
        modes_are: ModeWeights,
        *,
        calls: bool,
    ) -> None:
        """Note the evidences and masses of modes, by the draws, and by some calls if allowed."""
        if modes is None:
            return
        self.modes = named = modes.tell(self.target.transform)
        if not modes.reliable or not self.has_draws:
            return
        if self.weights is not None and self.weights.answer is not None:
            to_unbounded = self.target.transform.to_unbounded
            answer, total = self.weights.answer, self.weights.log_evidence
            known = weigh_answer(modes, answer, total, to_unbounded)
        else:
            late = self.kept.columns()
            positions, values = (np.swapaxes(late[n], 0, 1) for n in ("positions", "values"))
            moves = (late[name] for name in ("acceptance", "path_acceptance", "status"))
            if lost_part(*moves) > LOST:  # so that modes are evaluated where that is allowed
                values = np.full_like(values, np.nan)
            is_known = bool(np.isfinite(values).all())
            most = int(PART_OF_CALLS * self.target.n_calls / max(modes.matters.sum(), 1))
            allowed = calls and modes_are == "weighted"
            exact = self._value_beside if allowed and (most >= FEW or not is_known) else None
            most = most if is_known else CALLS
            known = weigh_modes(
                modes, positions, values, np.random.default_rng(0), surrogate, exact, most
            )
            if known is not None and known.separate and modes_are == "as found":
                known = attrs.evolve(known, separate=False, doubt="modes='as found' was given")
        self.modes = attrs.evolve(named, evidences=known)

    def _value_beside(self, positions: FloatArray) -> FloatArray:
        """Return U, with calls on which no draw depends."""
        with self.target.rejections.excluded(), np.errstate(all="ignore"):
            return self.target.fork(keep=False).value(positions)

    def close(self) -> None:
        """Remove the budget's guard, and close the file; calls from here on are in no file."""
        self.target.guard(None, NoJournal())
        self._meter.stop()
        if self._file is not None and self.plan is None:
            self._file.discard()
        elif self._file is not None:
            self._file.close(self._histories)

    def finish(self, outcome: Run) -> None:
        """Tell observers the outcome of the run."""
        self._tell("surrokit_run_finished", outcome=outcome)

    @property
    def _histories(self) -> tuple[History, History]:
        return self.warmup, self.kept

    def attend(self, adaptation: Callable[[], Adaptation]) -> None:
        """Ask an attempt for what changed, from here on."""
        self._adaptation = adaptation

    def _account(self) -> dict[str, Any]:
        """Return what the run has done so far, as plain data."""
        plan, target = self.plan, self.target
        chosen = None if plan is None else plan.recipe.chosen
        return {
            "calls": target.calls,
            "n_rows": target.n_rows if ROWS in target.capabilities else None,
            "failures": target.failures,
            "failure_kinds": {name: kind.to_dict() for name, kind in self._kinds().items()},
            "recheck": attrs.asdict(target.recheck),
            "seconds": dict(self.clock.seconds),
            "iteration": self.iteration,
            "adaptation": attrs.asdict(self._adaptation()),
            "sampler": {
                "needs": [] if plan is None else sorted(plan.sampler.needs),
                "tunes": [] if plan is None else sorted(plan.sampler.tunes),
            },
            "stopped": self.stopping.stopped,
            "length": self.stopping.length,
            "chosen": None if chosen is None else attrs.asdict(chosen),
            "parts": {} if plan is None else dict(plan.described),
            "kept": self._n_kept,
            "weights": None if self.weights is None else self.weights.account(),
            "modes": None if self.modes is None else attrs.asdict(self.modes),
        }

    @property
    def _n_kept(self) -> int:
        """Draws of each chain so far, without those of a round that has not come to its end."""
        answer = None if self.weights is None else self.weights.answer
        if self.weights is None or self._chains_decide:
            return len(self.kept)
        rounds = () if answer is None else answer.rounds
        return sum(map(len, rounds)) // self._asked.chains

    def _remarks(self) -> Iterator[str]:
        """Yield what is remarkable of calls, in sentences."""
        if (cause := self.target.calls_made.as_a_whole) is not None:
            yield (
                f"the target {cause.report}, given several positions at once, and was evaluated at "
                "each alone, so that calls were made twice; leave batched=True out"
            )

    def _kinds(self) -> Mapping[str, FailureKind]:
        return self.target.rejections.account.tell(self.target.transform, self.target.dim)

    def _tell_transition(self, state: ChainState, info: IterationInfo) -> None:
        event = "surrokit_transition_done"
        if self._observers.hear_of(event):  # what an observer changes is its own
            at, values = state.positions.copy(), state.values.copy()
            self._tell(event, state=attrs.evolve(state, positions=at, values=values), info=info)

    def _tell(self, event: str, **what: object) -> None:
        self._observers.tell(event, run=self.info, **what)


def _nothing_changed() -> Adaptation:
    return Adaptation(deployments=(), training_rows=0, frozen_before_draws=True)
