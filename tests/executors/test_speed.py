"""Calls of one batch are made side by side."""

from __future__ import annotations

import time

import numpy as np
import pytest

import models
import surrokit as sk
from models import SIZES
from surrokit.executors.terms import Terms

OPTIONS = {**SIZES, "sampler": "random-walk", "step_size": 0.5, "draws": 8}
pytestmark = pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")

SECONDS = 0.05
WARMUP = {"threads": 2, "processes": 40}  # iterations by whose end all workers have started


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_eight_workers_are_seven_times_as_fast_on_calls_that_wait(executor, tmp_path):
    target = sk.potential(models.Noted(tmp_path, seconds=SECONDS), dim=2)
    options = {**OPTIONS, "chains": 8, "executor": executor, "warmup": WARMUP[executor]}
    run = sk.sample(target, **options, workers=8)
    # the fastest iteration is one that other programs on the machine did not disturb
    assert np.diff(run.kept.seconds).min() < 8 * SECONDS / 7


@pytest.mark.long  # it takes two cores that nobody else uses
def test_two_processes_do_twice_the_work():
    def at_work(q):
        end = time.process_time() + SECONDS
        while time.process_time() < end:
            pass
        return float(q @ q / 2)

    seconds, rows = [], np.zeros((8, 1))
    for workers in (1, 2):
        with Terms.check(None, workers, 5.0).spread(sk.potential(at_work, dim=1)) as spread:
            seconds.append(min(_timed(lambda: spread.value(rows)) for _ in range(8)))
    assert seconds[0] / seconds[1] >= 1.9


def _timed(call):
    began = time.perf_counter()
    call()
    return time.perf_counter() - began
