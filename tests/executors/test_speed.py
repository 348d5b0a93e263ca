"""Calls of one batch are made side by side."""

from __future__ import annotations

import time

import numpy as np
import pytest

import models
import surrokit as sk
from surrokit.cost.measuring import measure_starts
from surrokit.cost.recording import RecordingPotential
from surrokit.executors.terms import Terms

OPTIONS = {"sampler": ("random-walk", {"step_size": 0.5}), "seed": 1, "progress": False}
OPTIONS |= {"warmup": 2, "draws": 20}
pytestmark = pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")

SECONDS = 0.05


def times_as_fast(executor, folder):
    """Return how much faster eight workers are on eight chains."""
    target = sk.potential(models.Noted(folder, seconds=SECONDS), dim=2)
    run = sk.sample(target, chains=8, compute=sk.Compute(executor=executor, workers=8), **OPTIONS)
    # the fastest iteration is one that other programs on the machine did not disturb
    return 8 * SECONDS / np.diff(run.kept.seconds).min()


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_eight_workers_make_the_calls_of_eight_chains_at_once(tmp_path, executor):
    model = models.Together(tmp_path, 8)
    sk.sample(
        sk.potential(model, dim=2),
        chains=8,
        compute=sk.Compute(executor=executor, workers=8),
        **OPTIONS,
    )
    assert model.met()


@pytest.mark.long  # it takes a machine that nobody else uses
def test_eight_threads_are_seven_times_as_fast_on_calls_that_wait(tmp_path):
    assert times_as_fast("threads", tmp_path) >= 7.0


@pytest.mark.long  # it takes a machine that nobody else uses
def test_eight_processes_are_seven_times_as_fast_on_calls_that_wait(tmp_path):
    assert times_as_fast("processes", tmp_path) >= 7.0


@pytest.mark.long  # it takes a machine that nobody else uses
def test_measured_costs_are_those_of_batches_that_are_spread(tmp_path, rng):
    """By them parts are picked: a call for each chain takes about as long as one call does."""
    target = sk.potential(models.Noted(tmp_path, seconds=SECONDS), dim=2)
    with Terms.check("threads", 8, None).spread(target) as (spread, _):
        recorded = RecordingPotential(spread, keep=True)
        _, costs = measure_starts(recorded, np.zeros((8, 2)), 8, rng)
    assert SECONDS <= costs.value < 3.0 * SECONDS
    assert SECONDS <= costs.values < 3.0 * SECONDS


@pytest.mark.long  # it takes two cores that nobody else uses
def test_two_processes_do_twice_the_work():
    def at_work(q):
        end = time.process_time() + SECONDS
        while time.process_time() < end:
            pass
        return float(q @ q / 2)

    seconds, rows = [], np.zeros((8, 1))
    for workers in (1, 2):
        with Terms.check(None, workers, 5.0).spread(sk.potential(at_work, dim=1)) as (spread, _):
            seconds.append(min(_timed(lambda: spread.value(rows)) for _ in range(8)))
    assert seconds[0] / seconds[1] >= 1.9


def _timed(call):
    began = time.perf_counter()
    call()
    return time.perf_counter() - began
