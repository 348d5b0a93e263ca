"""Who is told what, and when."""

from __future__ import annotations

import logging
import types

import numpy as np
import pytest

import surrokit as sk
from surrokit import sessions
from surrokit.errors import ConfigurationError, StopRun
from surrokit.interfaces import Hamiltonian
from surrokit.output.progress import RunLog
from surrokit.progress import IterationInfo
from surrokit.registry.discovery import make_plugins
from surrokit.run.book import EVENTS, Observers
from surrokit.testing.fixtures import HookCalls

SMALL = {"chains": 2, "warmup": 30, "draws": 10, "seed": 4, "progress": False}


def target():
    return sk.potential(lambda q: 0.5 * q @ q, lambda q: q, dim=2)


class Recorder:
    """Writes down each event with its arguments."""

    def __init__(self):
        self.events = []

    def surrokit_run_started(self, run):
        self.events.append(("started", run))

    def surrokit_transition_done(self, run, state, info):
        self.events.append((info.stage, info))

    def surrokit_surrogate_deployed(self, run, surrogate, evaluations, reason):
        self.events.append(("deployed", (surrogate, evaluations, reason)))

    def surrokit_run_finished(self, run, outcome):
        self.events.append(("finished", outcome))

    @property
    def names(self):
        return [name for name, _ in self.events]


@pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
def test_rounds_of_weighted_answers_are_told():
    hook_calls = HookCalls()
    run = sk.sample(
        target(),
        surrogate=("additive", {"n_nodes": 20}),
        explorer="rounds",
        correction=("weights", {"chains": 16, "warmup": 100, "effective": 1000}),
        observers=[hook_calls],
        max_calls=150,
        chains=2,
        seed=1,
        budget=sk.Budget(target_mcse=1e-6),
    )
    told = [call.arguments["info"] for call in hook_calls.of("surrokit_round_weighed")]
    assert [each.draws for each in told] == list(np.cumsum([*map(len, run.answer.rounds)]))
    assert told[-1].error == run.weights.figures.relative_error.max()
    assert {(each.aim, each.most_calls) for each in told} == {(1e-6, 150)}
    assert told[-1].calls == run.total_calls


def compressed(names):
    return [name for i, name in enumerate(names) if i == 0 or names[i - 1] != name]


@pytest.fixture
def surrogate_run():
    recorder = Recorder()
    run = sk.sample(target(), surrogate=exact_surrogate(), observers=[recorder], **SMALL)
    return run, recorder


def exact_surrogate():
    """A surrogate that happens to be right."""
    return sk.batch_surrogate(lambda evaluations, rng: target())


def test_the_order_of_events_without_a_surrogate():
    recorder = Recorder()
    sk.sample(target(), observers=[recorder], **SMALL)
    assert compressed(recorder.names) == [
        "started", "exploration", "warmup", "sampling", "finished"
    ]  # fmt: skip


def test_the_order_of_events_with_a_surrogate(surrogate_run):
    _, recorder = surrogate_run
    assert compressed(recorder.names) == [
        *("started", "exploration", "deployed", "warmup", "sampling", "finished")
    ]


def test_every_iteration_is_told_once(surrogate_run):
    _, recorder = surrogate_run
    told = [event.iteration for _, event in recorder.events if hasattr(event, "iteration")]
    assert told == list(range(1, 41))
    assert recorder.names.count("sampling") == 10


def test_calls_and_seconds_told_never_fall(surrogate_run):
    _, recorder = surrogate_run
    infos = [event for _, event in recorder.events if hasattr(event, "iteration")]
    totals = [sum(info.calls.values()) for info in infos]
    assert totals == sorted(totals)
    assert [info.seconds for info in infos] == sorted(info.seconds for info in infos)


def test_sizes_and_parts_are_told(surrogate_run):
    _, recorder = surrogate_run
    info = recorder.events[0][1]
    assert (info.dim, info.chains, info.warmup, info.draws) == (2, 2, 30, 10)
    assert info.parts["sampler"] == "hmc"
    assert info.parts["surrogate"] == "BatchSurrogate"


def test_the_deployment_is_told_with_its_rows_and_reason(surrogate_run):
    run, recorder = surrogate_run
    surrogate, evaluations, reason = dict(recorder.events)["deployed"]
    assert surrogate is run.surrogate
    assert evaluations == run.adaptation.training_rows > 0
    assert "iteration 7" in reason


def test_the_outcome_told_is_the_one_returned(surrogate_run):
    run, recorder = surrogate_run
    assert recorder.events[-1][1] is run


def test_nothing_is_told_inside_a_trajectory(monkeypatch):
    inside = []
    recorder = Recorder()

    class Watching(type(sk.make("integrator", "leapfrog"))):
        def advance(self, hamiltonian: Hamiltonian, *args):
            before = len(recorder.events)
            result = super().advance(hamiltonian, *args)
            inside.append(len(recorder.events) - before)
            return result

    sk.sample(target(), sampler=("hmc", {"integrator": Watching()}), observers=[recorder], **SMALL)
    assert len(inside) == 39  # the first iteration of 40 looks for the mode
    assert not any(inside)


def test_an_object_may_have_one_method_only():
    class Finished:
        outcome = None

        def surrokit_run_finished(self, run, outcome):
            self.outcome = outcome

    observer = Finished()
    assert sk.sample(target(), observers=[observer], **SMALL) is observer.outcome


@pytest.mark.parametrize("thing", [object(), 3, "surrokit_run_started", types.SimpleNamespace(a=1)])
def test_an_object_without_any_method_is_refused(thing):
    with pytest.raises(ConfigurationError, match="must have at least one of the methods surrokit_"):
        sk.sample(target(), observers=[thing], **SMALL)


def test_an_attribute_that_is_no_method_does_not_count():
    with pytest.raises(ConfigurationError, match="has none"):
        Observers([types.SimpleNamespace(surrokit_run_started=True)])


def test_plugins_are_told_too_and_may_take_fewer_arguments():
    told = []

    def surrokit_transition_done(info):
        told.append(info)

    plugin = types.ModuleType("listening")
    plugin.surrokit_transition_done = sk.hookimpl(surrokit_transition_done)
    observers = Observers()
    observers.add_hooks(make_plugins(plugin).manager.hook)
    observers.tell("surrokit_transition_done", run=1, state=2, info=3)
    assert told == [3]


def test_plugins_are_told_by_a_run(monkeypatch):
    told = []

    def surrokit_run_started(run):
        told.append(run)

    plugin = types.ModuleType("listening")
    plugin.surrokit_run_started = sk.hookimpl(surrokit_run_started)
    monkeypatch.setattr(sessions, "default_plugins", lambda: make_plugins(plugin))
    sk.sample(target(), **SMALL)
    assert [run.chains for run in told] == [2]


def test_several_observers_are_told_in_order():
    order = []

    def observer(name):
        return types.SimpleNamespace(surrokit_run_started=lambda run: order.append(name))

    sk.sample(target(), observers=[observer("a"), observer("b")], **SMALL)
    assert order == ["a", "b"]


def test_an_event_that_nobody_wants_calls_nobody():
    Observers().tell(EVENTS[0], run=None)


def test_an_observer_that_raises_stops_the_run():
    def fails(run):
        raise ArithmeticError("in the observer")

    with pytest.raises(ArithmeticError, match="in the observer"):
        sk.sample(target(), observers=[types.SimpleNamespace(surrokit_run_started=fails)], **SMALL)


def test_states_told_are_not_changed_later():
    seen = []
    observer = types.SimpleNamespace(
        surrokit_transition_done=lambda run, state, info: seen.append(
            (state.positions, state.positions.copy())
        )
    )
    sk.sample(target(), observers=[observer], **SMALL)
    assert all(np.array_equal(now, then) for now, then in seen)


class StopsAfter:
    """Stops a run at an iteration."""

    def __init__(self, iteration):
        self.iteration = iteration

    def surrokit_transition_done(self, run, state, info):
        if info.iteration == self.iteration:
            raise StopRun


@pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
@pytest.mark.parametrize(("iteration", "kept"), [(20, 0), (34, 4)])
def test_an_observer_may_stop_a_run(tmp_path, iteration, kept):
    settings = {**SMALL, "sampler": "hmc", "surrogate": "none"}
    path = tmp_path / "run.surrokit"
    whole = sk.sample(target(), **settings)
    run = sk.sample(target(), path=path, observers=[StopsAfter(iteration)], **settings)
    assert run.stopped == "observer"
    assert run.complete
    assert np.array_equal(run.draws, whole.draws[:, :kept])
    finding = next(each for each in run.verdict if each.name == "stopped")
    assert "stopped the run" in finding.message or kept == 0
    gone_on = sk.resume(path, target(), progress=False)
    assert np.array_equal(gone_on.draws, whole.draws)


@pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
def test_a_run_is_logged_where_somebody_reads(caplog):
    settings = {**SMALL, "surrogate": "quadratic", "sampler": "hmc"}
    sk.sample(target(), **settings)
    assert caplog.records == []
    with caplog.at_level(logging.INFO, logger="surrokit"):
        run = sk.sample(target(), **settings)
    said = [record.getMessage() for record in caplog.records]
    assert said[0].startswith("run of 2 chains in 2 dimensions: ")
    assert any(line.startswith("surrogate of ") for line in said)
    assert f"run ended (draws) after {run.total_calls} exact calls" in said
    findings = [f"{finding.name}: {finding.message}" for finding in run.verdict]
    assert findings
    assert said[-len(findings) :] == findings


def test_a_long_run_says_how_far_it_is_every_ten_seconds(caplog):
    def info(seconds):
        return IterationInfo(
            stage="sampling", iteration=7, step=None, calls={"value": 3, "rows": 0}, seconds=seconds
        )

    log = RunLog()
    with caplog.at_level(logging.INFO, logger="surrokit"):
        for seconds in (1.0, 10.5, 11.0, 20.0, 20.6):
            log.surrokit_transition_done(info=info(seconds))
    assert [record.getMessage() for record in caplog.records] == [
        "sampling, iteration 7: 3 value calls"
    ] * 2
