"""Idle workers evaluate positions ahead (prefetching), and no draw changes."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

import models
import surrokit as sk
from models import gentle, steep
from surrokit.ledger.store import Store
from surrokit.ledger.tape import APART, read_events

pytestmark = pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
SETTINGS = {"sampler": "sub-chain", "warmup": 20, "draws": 60, "seed": 1, "progress": False}


@attrs.frozen
class Round:
    """A surrogate: the standard normal density."""

    dim: int = 2
    capabilities = frozenset({"gradient"})

    def value(self, q):
        return np.sum(q**2, axis=1) / 2

    def value_and_gradient(self, q):
        return self.value(q), q

    def gradient(self, q):
        return q


def draw(target, chains=1, **options):
    settings = {**SETTINGS, "surrogate": Round(target.dim), "initial": np.zeros(target.dim)}
    return sk.sample(target, chains=chains, **{**settings, **options})


def check_same(run, alone):
    np.testing.assert_array_equal(run.draws, alone.draws)
    assert run.calls == alone.calls
    assert run.failure_kinds.keys() == alone.failure_kinds.keys()
    assert run.failures == alone.failures


@pytest.mark.parametrize(
    ("target", "chains", "executor"),
    [
        (sk.potential(steep, dim=2), 1, "threads"),
        (sk.potential(gentle, dim=2), 1, "processes"),
        (sk.potential(gentle, dim=2), 2, "threads"),
        (
            models.mapped(parameters={"a": (-4.0, 4.0), "b": (-2.0, 3.0), "c": None}),
            *(1, "threads"),
        ),
    ],
)
def test_draws_are_the_same(target, chains, executor):
    run = draw(target, chains=chains, compute=sk.Compute(executor=executor, workers=4))
    check_same(run, draw(target, chains=chains))
    assert run.vain_calls > 0 or chains > 1


def test_what_is_evaluated_ahead_is_not_evaluated_again():
    positions = []

    def counted(q):
        positions.append(q.tobytes())
        return gentle(q)

    run = draw(sk.potential(counted, dim=2), compute=sk.Compute(executor="threads", workers=4))
    assert len(positions) == len(set(positions))
    assert len(positions) == run.calls["value"] + run.vain_calls


def test_other_executors_are_asked_ahead_if_the_user_says_how_many(pool):
    target = sk.potential(steep, dim=2)
    run = draw(target, compute=sk.Compute(executor=pool, prefetch=3))
    check_same(run, draw(target))
    assert run.vain_calls > 0
    assert draw(target, compute=sk.Compute(executor=pool)).vain_calls == 0


@pytest.mark.filterwarnings("ignore::surrokit.errors.EvaluationWarning")
def test_failures_are_counted_where_they_are_wanted():
    target = sk.potential(models.fails, dim=2)
    settings = {"initial": np.array([-0.5, 0.0]), "draws": 100}
    run = draw(target, compute=sk.Compute(executor="threads", workers=4), **settings)
    check_same(run, draw(target, **settings))
    assert run.failures > 0


@pytest.mark.long
def test_a_worker_that_dies_ahead_changes_nothing(tmp_path):
    target = sk.potential(models.Deadly(tmp_path, lives=2), dim=2)
    run = draw(target, compute=sk.Compute(workers=3))
    assert len(list(tmp_path.iterdir())) == 2
    check_same(run, draw(target))


def test_a_limit_of_calls_leaves_nothing_to_chance():
    target = sk.potential(steep, dim=2)
    limited = draw(target, compute=sk.Compute(executor="threads", workers=4), max_calls=60)
    assert limited.vain_calls == 0
    asked = draw(
        target, compute=sk.Compute(executor="threads", workers=4, prefetch=4), max_calls=60
    )
    assert asked.vain_calls > 0
    np.testing.assert_array_equal(asked.draws, limited.draws)
    assert (
        draw(target, compute=sk.Compute(executor="threads", workers=4, prefetch=0)).vain_calls == 0
    )


def test_exact_transitions_in_between_leave_nothing_to_foresee():
    target = sk.potential(steep, lambda q: q + 1.2 * q**3, dim=2)
    mixed = {"schedule": sk.Safety(mix=0.2)}
    run = draw(target, compute=sk.Compute(executor="threads", workers=4), **mixed)
    assert run.vain_calls == 0
    check_same(run, draw(target, **mixed))


def test_what_was_not_wanted_is_in_the_file_and_teaches_another_run(tmp_path):
    target = sk.potential(steep, dim=2)
    run = draw(target, compute=sk.Compute(executor="threads", workers=4), path=tmp_path / "a")
    store = Store.open(tmp_path / "a")
    vain = [event for event in read_events(store) if event.outcome == APART]
    store.close()
    assert 0 < len(vain) <= run.vain_calls
    for event in vain:
        assert event.results[0][0] == steep(event.positions[0])
    positions = sk.Ledger(tmp_path / "a").to_arrays()["positions"]
    assert {event.positions.tobytes() for event in vain} <= {row.tobytes() for row in positions}


def test_a_run_is_resumed_without_what_was_not_wanted(tmp_path):
    target = sk.potential(steep, dim=2)
    run = draw(
        target, draws=30, compute=sk.Compute(executor="threads", workers=4), path=tmp_path / "a"
    )
    again = sk.resume(tmp_path / "a", target, draws=60, surrogate=Round(), progress=False)
    check_same(again, draw(target))
    assert again.vain_calls == 0
    assert run.vain_calls > 0
