"""What sample takes for workers, and what it refuses."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor

import pytest

import models
import surrokit as sk
from models import SIZES
from surrokit.compute import cores
from surrokit.errors import ConfigurationError, WorkerError
from surrokit.testing.targets import Gaussian

OPTIONS = {**SIZES, "sampler": "random-walk"}
TARGET = sk.potential(models.value, dim=2)


def refused(match, target=TARGET, error=ConfigurationError, **settings):
    with pytest.raises(error, match=match):
        sk.sample(target, compute=sk.Compute(**settings), **OPTIONS)


WORD = "executor must be 'processes', 'threads', or a concurrent.futures.Executor, such as Pro"
TIMEOUT = r"compute=sk.Compute\(workers=4, timeout=1\), or raise TimeoutError in the target"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        *(({"executor": odd}, WORD) for odd in ("process", 4, ThreadPoolExecutor, object())),
        *(
            ({"workers": odd}, "workers must be a whole number")
            for odd in (0, -1, 1.5, "two", True)
        ),
        ({"executor": ThreadPoolExecutor(1), "workers": 2}, "an executor, which has workers alrea"),
        *(
            ({"workers": 2, "timeout": odd}, "timeout must be a number of seconds above 0, got")
            for odd in (0, -1.0, float("inf"), "long", True)
        ),
        ({"timeout": 1.0}, TIMEOUT),
        ({"executor": "threads", "timeout": 1.0}, TIMEOUT),
    ],
)
def test_what_cannot_work_is_refused(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        sk.Compute(**settings)


def test_there_are_as_many_calls_at_once_as_workers():
    assert sk.Compute(workers=3).at_once == 3
    assert sk.Compute().at_once == 1
    assert 1 <= cores() <= (os.cpu_count() or 1)


@pytest.mark.parametrize(
    "target", [sk.potential(models.rows, dim=2, batched=True), Gaussian(), "banana"]
)
def test_a_target_of_rows_is_not_parted_unasked(target):
    refused(
        r"evaluates rows of positions together, and may give other last digits .* pass "
        r"surrokit.one_by_one\(target\)",
        target=target,
        executor="threads",
    )


def test_an_executor_that_is_shut_down():
    executor = ProcessPoolExecutor(1)
    executor.shutdown()
    refused(
        "the executor that was given failed: RuntimeError: cannot schedule new futures after "
        "shutdown. Make a new one whose workers can import",
        error=WorkerError,
        executor=executor,
    )


@pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
def test_an_executor_whose_worker_dies_ends_the_run(tmp_path):
    deadly = sk.potential(models.Deadly(tmp_path, lives=1000), dim=2)
    context = multiprocessing.get_context("spawn")
    sampler = ("random-walk", {"step_size": 0.7})
    options = {**OPTIONS, "sampler": sampler, "initial": [0.0, 0.0]}
    with (
        ProcessPoolExecutor(1, mp_context=context) as executor,
        pytest.raises(WorkerError, match=r"failed: BrokenProcessPool: .* can be resumed") as caught,
    ):
        sk.sample(deadly, compute=sk.Compute(executor=executor), **options)
    assert caught.value.partial.draws.shape[0] == 3


class Strangers(Executor):
    """Two workers that take turns, and keep what they were sent apart from one another."""

    def __init__(self):
        self.homes = [{}, {}]
        self.sent = []
        self.turn = 0

    def submit(self, fn, /, *args, **kwargs):
        from surrokit.executors import worker

        self.turn += 1
        self.sent.append(any(isinstance(each, worker.Payload) for each in args))
        future = Future()
        kept, worker._sources = worker._sources, self.homes[self.turn % 2]
        try:
            future.set_result(fn(*args, **kwargs))
        finally:
            worker._sources = kept
        return future


@pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
def test_the_target_travels_once_a_worker():
    strangers = Strangers()
    sk.sample(TARGET, compute=sk.Compute(executor=strangers), **OPTIONS)
    assert len(strangers.sent) > 100
    assert sum(strangers.sent) <= 6
    assert all(len(home) == 1 for home in strangers.homes)
