"""Who is told what, and when."""

from __future__ import annotations

import types

import numpy as np
import pytest

import surrokit as sk
from surrokit import sessions
from surrokit.errors import ConfigurationError, StopRun
from surrokit.registry.discovery import make_plugins
from surrokit.run.book import EVENTS, Observers

SMALL = {"chains": 2, "warmup": 30, "draws": 10, "seed": 4, "progress": False}
pytestmark = pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")


def target():
    return sk.potential(lambda q: 0.5 * q @ q, lambda q: q, dim=2)


class Recorder:
    """Writes down each event with its arguments, and that states are not changed later."""

    def __init__(self):
        self.events, self.states = [], []

    def surrokit_run_started(self, run):
        self.events.append(("started", run))

    def surrokit_transition_done(self, run, state, info):
        self.states.append((state.positions, state.positions.copy()))
        self.events.append((info.stage, info))

    def surrokit_surrogate_deployed(self, run, surrogate, evaluations, reason):
        self.events.append(("deployed", (surrogate, evaluations, reason)))

    def surrokit_run_finished(self, run, outcome):
        self.events.append(("finished", outcome))

    @property
    def stages(self):
        """Names of events, each once in a row."""
        names = [name for name, _ in self.events]
        return [name for i, name in enumerate(names) if i == 0 or names[i - 1] != name]


def test_events_of_a_run_on_a_surrogate():
    recorder = Recorder()
    surrogate = sk.batch_surrogate(lambda evaluations, rng: target())
    run = sk.sample(target(), surrogate=surrogate, observers=[recorder], **SMALL)
    stages = ["started", "exploration", "deployed", "warmup", "sampling", "finished"]
    assert recorder.stages == stages
    begun = recorder.events[0][1]
    assert (begun.dim, begun.chains, begun.warmup, begun.draws) == (2, 2, 30, 10)
    assert (begun.parts["sampler"], begun.parts["surrogate"]) == ("hmc", "BatchSurrogate")
    infos = [event for _, event in recorder.events if hasattr(event, "iteration")]
    assert [info.iteration for info in infos] == list(range(1, 41))
    assert [info.stage for info in infos].count("sampling") == 10
    for figures in ([sum(info.calls.values()) for info in infos], [info.seconds for info in infos]):
        assert figures == sorted(figures)
    deployed, evaluations, reason = dict(recorder.events)["deployed"]
    assert deployed is run.surrogate
    assert evaluations == run.adaptation.training_rows > 0
    assert "iteration 7" in reason
    assert recorder.events[-1][1] is run
    assert all(np.array_equal(now, then) for now, then in recorder.states)


@pytest.mark.parametrize("thing", [3, "surrokit_run_started", types.SimpleNamespace(a=1)])
def test_an_object_without_any_method_is_refused(thing):
    with pytest.raises(ConfigurationError, match="must have at least one of the methods surrokit_"):
        sk.sample(target(), observers=[thing], **SMALL)
    with pytest.raises(ConfigurationError, match="has none"):
        Observers([types.SimpleNamespace(surrokit_run_started=True)])


def test_plugins_are_told_too_and_may_take_fewer_arguments(monkeypatch):
    told = []

    def surrokit_run_started(run):
        told.append(run.chains)

    plugin = types.ModuleType("listening")
    plugin.surrokit_run_started = sk.hookimpl(surrokit_run_started)
    monkeypatch.setattr(sessions, "default_plugins", lambda: make_plugins(plugin))
    sk.sample(target(), **SMALL)
    assert told == [2]
    Observers().tell(EVENTS[0], run=None)  # which nobody wants


def test_several_observers_are_told_in_order_and_one_that_raises_stops_the_run():
    order = []

    def observer(name):
        return types.SimpleNamespace(surrokit_run_started=lambda run: order.append(name))

    def fails(run):
        raise ArithmeticError("in the observer")

    failing = types.SimpleNamespace(surrokit_run_started=fails)
    with pytest.raises(ArithmeticError, match="in the observer"):
        sk.sample(target(), observers=[observer("a"), observer("b"), failing], **SMALL)
    assert order == ["a", "b"]


@pytest.mark.parametrize(("iteration", "kept"), [(20, 0), (34, 4)])
def test_an_observer_may_stop_a_run(tmp_path, iteration, kept):
    class StopsAfter:
        def surrokit_transition_done(self, run, state, info):
            if info.iteration == iteration:
                raise StopRun

    settings = {**SMALL, "sampler": "hmc", "surrogate": "none"}
    path = tmp_path / "run.surrokit"
    whole = sk.sample(target(), **settings)
    run = sk.sample(target(), path=path, observers=[StopsAfter()], **settings)
    assert run.stopped == "observer"
    assert run.complete
    assert np.array_equal(run.draws, whole.draws[:, :kept])
    assert kept == 0 or "stopped the run" in run.verdict.named("stopped")[0].message
    gone_on = sk.resume(path, target(), progress=False)
    assert np.array_equal(gone_on.draws, whole.draws)
