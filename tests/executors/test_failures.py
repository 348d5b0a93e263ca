"""What fails in a worker fails as it does without: by kind, message and number of tries."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import models
import surrokit as sk
from models import SIZES
from surrokit.errors import EvaluationWarning, TargetError

OPTIONS = {**SIZES, "sampler": ("random-walk", {"step_size": 1.0})}
pytestmark = pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")


def told(**options):
    """Return what a run tells of failures, and what was warned of."""
    target = sk.potential(models.fails, dim=2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = sk.sample(target, initial=np.zeros(2), **{**OPTIONS, **options})
    kinds = {
        name: (kind.count, kind.cured, kind.message, kind.position.tolist())
        for name, kind in run.failure_kinds.items()
    }
    failures = [str(w.message) for w in caught if w.category is EvaluationWarning]
    return kinds, failures, run.calls, run.draws.tolist()


@pytest.fixture(scope="module")
def alone():
    return told()


@pytest.mark.parametrize(
    "compute", [sk.Compute(executor="threads", workers=2), sk.Compute(workers=2), None]
)
def test_failures_are_those_of_a_run_without_workers(alone, compute, pool):
    assert set(alone[0]) == {
        *("exception Choked", "time-out", "NaN", "wrong shape"),
    }
    assert "models.py, line" in alone[0]["exception Choked"][2]
    assert told(compute=compute or sk.Compute(executor=pool)) == alone


def test_an_exception_that_stops_the_run(pool):
    messages = []
    for executor in (None, pool):
        with pytest.raises(TargetError) as caught:
            told(compute=sk.Compute(executor=executor, on_error="raise"))
        messages.append((str(caught.value), type(caught.value.__cause__).__name__))
        assert caught.value.partial.draws.shape[2] == 2
    assert messages[0] == messages[1]


def test_floating_point_errors_are_treated_alike(pool):
    """A run ignores them; outside a run they are what NumPy was told."""
    target = sk.potential(models.noisy, dim=2)
    with sk.Compute(executor=pool).spread(target) as spread:
        with np.errstate(all="ignore"):
            assert np.isfinite(spread.value(np.ones((1, 2)))).all()
        with np.errstate(all="raise"), pytest.raises(sk.errors.EvaluationError, match="divide"):
            spread.value(np.ones((1, 2)))


@pytest.mark.filterwarnings("ignore::surrokit.errors.EvaluationWarning")
def test_a_model_that_exits_in_a_worker_has_failed_there():
    target, options = sk.potential(models.leave, dim=2), {**OPTIONS, "initial": np.zeros(2)}
    runs = [sk.sample(target, compute=sk.Compute(workers=n), **options) for n in (None, 1)]
    assert runs[0].draws.tolist() == runs[1].draws.tolist()
    assert runs[0].failures == runs[1].failures > 0
    for run in runs:
        assert "called sys.exit(3)" in run.failure_kinds["exception RuntimeError"].message
