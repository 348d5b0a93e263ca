"""Models that exit, interrupts, and warnings that are errors: what is left of a run."""

from __future__ import annotations

import os
import signal
import sys
import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import surrokit as sk
from surrokit.errors import EvaluationWarning, SamplingWarning

pytestmark = pytest.mark.filterwarnings(
    "ignore::surrokit.errors.SamplingWarning", "ignore::surrokit.errors.EvaluationWarning"
)
SIZES = {"chains": 2, "warmup": 30, "draws": 30, "seed": 1, "progress": False}
PATHS = {**SIZES, "sampler": ("hmc", {"step_size": 0.4, "n_steps": 3})}
WALK = {**SIZES, "sampler": ("random-walk", {"step_size": 1.0})}
DATA = {"data": [0.3, -0.2], "noise_sd": 0.7}
THREADS = sk.Compute(executor="threads", workers=2)


def value(q):
    return 0.5 * (q**2).sum(axis=-1)


def gradient(q):
    return 1.0 * q


EXITS = {
    "one": lambda fail: sk.potential(lambda q: fail(q) or value(q), gradient, dim=2),
    "rows": lambda fail: sk.potential(
        lambda q: [fail(row) or value(row) for row in q], gradient, dim=2, batched=True
    ),
    "map": lambda fail: sk.forward_potential(
        lambda q: fail(q) or q, lambda q: np.eye(2), dim=2, **DATA
    ),
}


def leave(q):
    if q[0] > 1.0:
        sys.exit()


def complain(q):
    if q[0] > 1.0:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("door", "compute"), [("one", None), ("rows", None), ("map", None), ("one", THREADS)]
)
def test_a_model_that_exits_has_failed_there(door, compute):
    run = sk.sample(EXITS[door](leave), **PATHS, compute=compute)
    other = sk.sample(EXITS[door](complain), **PATHS, compute=compute)
    assert_array_equal(run.draws, other.draws)
    assert run.failures == other.failures > 0
    (kind,) = (kind for kind in run.failure_kinds.values() if kind.count)
    assert "a function called sys.exit()" in kind.message
    assert kind.position is not None


def test_an_exit_outside_of_single_calls_carries_the_run():
    class Observer:
        def surrokit_transition_done(self, info, **_):
            if info.stage == "sampling" and info.iteration == 45:
                sys.exit()

    with pytest.raises(RuntimeError, match=r"a function called sys.exit\(\)") as caught:
        sk.sample(sk.potential(value, dim=2), observers=[Observer()], **WALK)
    assert caught.value.partial.draws.shape == (2, 15, 2)


def at_call(n, do):
    """Return a target that does something at its call n, and at all later ones."""
    calls = []

    def model(q):
        calls.append(q)
        return (do() if len(calls) >= n else None) or value(q)

    return sk.potential(model, dim=2), calls


def test_a_handler_of_signals_ends_the_process_from_within_a_model():
    target, calls = at_call(50, lambda: os.kill(os.getpid(), signal.SIGTERM))
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
    try:
        with pytest.raises(SystemExit) as caught:
            sk.sample(target, **WALK)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert caught.value.code == 3
    assert len(calls) == 50


def unfinished():
    """A run whose verdict warns."""
    return sk.sample(
        sk.potential(value, gradient, dim=2),
        **{**PATHS, "sampler": ("hmc", {"step_size": 30.0, "n_steps": 1}), "chains": 4},
    )


def failing():
    """A run of a target that failed before its draws and near them, which is told at the end."""
    n = 0

    def fails(q):
        nonlocal n
        n += 1
        return np.nan if 20 < n < 30 else value(q)

    return sk.sample(sk.potential(fails, dim=2), **WALK)


@pytest.mark.parametrize(
    ("sample", "category"), [(unfinished, SamplingWarning), (failing, EvaluationWarning)]
)
def test_a_warning_that_is_an_error_carries_the_run(sample, category):
    whole = sample()
    with warnings.catch_warnings():
        warnings.simplefilter("error", category)
        with pytest.raises(category) as caught:
            sample()
    assert_array_equal(caught.value.partial.draws, whole.draws)
