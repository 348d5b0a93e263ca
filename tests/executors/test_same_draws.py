"""Draws are the same to the bit, wherever calls are made and whoever makes them first."""

from __future__ import annotations

import pickle
import threading
from concurrent.futures import Executor, Future

import numpy as np
import pytest

import models
import surrokit as sk
from models import SIZES
from surrokit.model.source import one_after_another

pytestmark = pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")  # runs are short

NAMES = {"parameters": {"a": (0, None), "b": None, "c": (0, 2)}}
TARGETS = {
    "values": (lambda: sk.potential(models.value, dim=2), {"sampler": "random-walk"}),
    "gradients": (lambda: sk.potential(models.value, models.gradient, dim=4), {"sampler": "hmc"}),
    "jacobian": (
        lambda: models.mapped(models.jacobian, models.second, **NAMES),
        {"sampler": ("rmhmc", {"step_size": 0.1, "n_steps": 2}), "warmup": 3, "draws": 3},
    ),
    "adjoint": (lambda: models.mapped(vjp=models.pulled), {"sampler": "hmc", "warmup": 10}),
    "weights": (
        lambda: models.mapped(models.jacobian),
        {
            "sampler": "sub-chain",
            "surrogate": "quadratic",
            "explorer": "rounds",
            "correction": "weights",
            "max_calls": 120,
            "draws": None,
            "warmup": None,
        },
    ),
}


class Backwards(Executor):
    """Makes the calls of a batch in another order than they came in."""

    def __init__(self):
        self.waiting = []
        self.lock = threading.Lock()

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        with self.lock:
            self.waiting.append((future, fn, args, kwargs))
        threading.Timer(0.003, self.work).start()  # others come in meanwhile
        return future

    def work(self):
        with self.lock:
            future, function, args, kwargs = self.waiting.pop()
        future.set_result(function(*args, **kwargs))


def drawn(name, **options):
    build, settings = TARGETS[name]
    return sk.sample(build(), **{**SIZES, **settings, **options})


@pytest.fixture(scope="module")
def alone():
    """Runs without workers, each made once."""
    made = {}
    return lambda name: made.get(name) or made.setdefault(name, drawn(name))


def assert_same(run, other):
    np.testing.assert_array_equal(run.draws, other.draws)
    assert run.calls == other.calls
    assert run.failures == other.failures


@pytest.mark.parametrize(
    ("name", "executor"),
    [
        *[("adjoint", "threads"), ("jacobian", "given")],
        *[("gradients", "processes"), ("values", Backwards())],
        pytest.param("weights", "given", marks=pytest.mark.long),
    ],
)
def test_draws_are_those_of_a_run_without_workers(alone, name, executor, pool):
    """Each kind of call is spread, by threads or by processes, and completed in any order."""
    workers = 2 if executor in ("threads", "processes") else None
    compute = sk.Compute(executor=pool if executor == "given" else executor, workers=workers)
    assert_same(drawn(name, compute=compute), alone(name))


def test_functions_of_a_script_travel_by_their_code(pool):
    shift = 0.5

    def value(q):
        return float((q - shift) @ (q - shift) / 2)

    target = sk.potential(value, lambda q: q - shift, dim=2)
    options = {**SIZES, "sampler": "hmc"}
    here = sk.sample(target, **options)
    assert_same(sk.sample(target, compute=sk.Compute(executor=pool), **options), here)
    assert_same(sk.sample(target, compute=sk.Compute(workers=2), **options), here)


def test_single_precision_is_noticed_in_workers(pool):
    options = {**SIZES, "sampler": "random-walk"}

    def told(**more):
        run = sk.sample(sk.potential(models.single, dim=2), **options, **more)
        return [finding.name for finding in run.verdict.findings]

    assert told(compute=sk.Compute(executor=pool)) == told()


def test_a_target_works_once_its_workers_have_gone():
    target = sk.potential(models.value, dim=2)
    with sk.Compute(executor="threads", workers=2).spread(target) as spread:
        before = spread.value(np.ones((3, 2)))
    np.testing.assert_array_equal(spread.value(np.ones((3, 2))), before)


def test_a_copy_goes_without_workers():
    target = sk.potential(models.value, dim=2)
    with sk.Compute(executor="threads", workers=2).spread(target) as spread:
        other = pickle.loads(pickle.dumps(spread))
    assert other.model.each_row is one_after_another


@pytest.mark.parametrize(("executor", "n"), [("threads", 8), ("processes", 3)])
def test_as_many_workers_make_the_calls_of_as_many_chains_at_once(tmp_path, executor, n):
    model = models.Together(tmp_path, n)
    compute = sk.Compute(executor=executor, workers=n)
    options = {**SIZES, "chains": n, "warmup": 2, "sampler": "random-walk"}
    sk.sample(sk.potential(model, dim=2), compute=compute, **options)
    assert model.met()
