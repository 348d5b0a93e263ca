"""Processes of our own: they start, die, hang, and end with the run."""

from __future__ import annotations

import os
import time

import numpy as np
import pytest

import models
import surrokit as sk
from models import SIZES
from surrokit.errors import ConfigurationError, EvaluationWarning, TargetError, WorkerError
from surrokit.executors import pools
from surrokit.executors.pools import Processes
from waiting import is_alive

OPTIONS = {**SIZES, "sampler": ("random-walk", {"step_size": 0.7}), "initial": np.zeros(2)}
pytestmark = pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")


def test_calls_are_made_elsewhere_by_all_and_processes_end_with_the_run(tmp_path):
    target = sk.potential(models.Noted(tmp_path, seconds=0.02), dim=2)
    sk.sample(target, compute=sk.Compute(workers=2), **{**OPTIONS, "warmup": 4, "draws": 4})
    pids = [file.name for file in tmp_path.iterdir()]
    assert len(pids) == 2
    assert str(os.getpid()) not in pids
    time.sleep(0.1)
    assert not any(is_alive(pid) for pid in pids)


def test_workers_end_while_calls_are_on_their_way_to_them(monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    processes = Processes(workers=2)
    processes.take(sk.potential(models.value, dim=2))
    monkeypatch.setattr(pools.connection, "wait", interrupt)
    with pytest.raises(KeyboardInterrupt):
        processes.evaluate("value", np.eye(2))
    processes.close()
    assert processes.closed


def test_a_position_whose_worker_dies_is_given_to_another(tmp_path):
    deadly = sk.potential(models.Deadly(tmp_path, lives=1), dim=2)
    run = sk.sample(deadly, compute=sk.Compute(workers=2), **OPTIONS)
    assert len(list(tmp_path.iterdir())) == 1
    np.testing.assert_array_equal(run.draws, sk.sample(deadly, **OPTIONS).draws)


def test_workers_that_die_time_and_again_end_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(pools, "DEATHS", 2)
    deadly = sk.potential(models.Deadly(tmp_path, lives=1000), dim=2)
    with pytest.raises(
        WorkerError,
        match=r"worker processes died 2 times at work on the position \(0\.\d+, .*, without "
        r"compute=; if memory ran out, pass fewer",
    ) as caught:
        sk.sample(deadly, compute=sk.Compute(workers=1), **OPTIONS)
    assert isinstance(caught.value, TargetError)
    assert caught.value.partial.draws.shape[0] == 3


def test_a_call_that_hangs_is_given_up_and_counted(tmp_path):
    target = sk.potential(models.HangsOnce(tmp_path), dim=2)
    options = {**OPTIONS, "warmup": 3, "draws": 4}
    with pytest.warns(EvaluationWarning, match="took longer than timeout=0.4 seconds"):
        run = sk.sample(target, compute=sk.Compute(workers=1, timeout=0.4), **options)
    kind = run.failure_kinds["time-out"]
    assert kind.count == run.failures == 1
    assert kind.message == "raised TimeoutError: the call took longer than timeout=0.4 seconds"


def test_all_workers_may_hang_at_once_and_all_rows_have_a_reply():
    target = sk.potential(models.hangs, dim=1)
    with sk.Compute(workers=2, timeout=1.0).spread(target) as spread:
        began = time.monotonic()
        with pytest.raises(sk.errors.EvaluationError) as caught:
            spread.value(np.array([[2.0], [2.0], [1.0]]))
    assert sorted(caught.value.causes) == [0, 1]
    assert all(isinstance(cause, TimeoutError) for cause in caught.value.causes.values())
    assert caught.value.results[0][2] == 0.5
    assert time.monotonic() - began < 60.0


def test_slow_calls_that_end_in_time_are_no_failures():
    """Those that wait for a worker are not on the clock, and neither is the start of workers."""
    target = sk.potential(lambda q: time.sleep(0.1) or float(q @ q / 2), dim=1)
    with sk.Compute(workers=1, timeout=0.4).spread(target) as spread:
        assert np.isfinite(spread.value(np.zeros((6, 1)))).all()


def test_linear_algebra_has_one_thread():
    def threads(_):
        from threadpoolctl import threadpool_info

        return float(
            max(lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas")
        )

    with sk.Compute(workers=1).spread(sk.potential(threads, dim=1)) as spread:
        assert spread.value(np.zeros((1, 1))) == 1.0


def test_a_target_that_cannot_be_pickled_says_what_to_do(tmp_path):
    calls, file = [], (tmp_path / "log").open("w")

    def value(q):
        calls.append(1)
        file.write("called")
        return float(q @ q / 2)

    path = tmp_path / "run.surrokit"
    with pytest.raises(
        ConfigurationError,
        match=r"worker processes need a copy of the target, and it cannot be pickled: .*Open "
        r"files, sockets, .* at their first call, or pass "
        r"compute=sk\.Compute\(executor='threads'\)",
    ):
        sk.sample(sk.potential(value, dim=2), path=path, compute=sk.Compute(workers=2), **OPTIONS)
    assert calls == []
    assert not path.exists()
    file.close()


def test_a_target_that_a_worker_cannot_load_says_so(pool):
    target, why = sk.potential(models.Unloadable(), dim=2), "load the target: OSError: no such data"
    with pytest.raises(ConfigurationError, match=f"{why} here. Install what it imports where"):
        sk.sample(target, compute=sk.Compute(workers=2), **OPTIONS)
    with pytest.raises(WorkerError, match=f"executor that was given failed: RuntimeError: .*{why}"):
        sk.sample(target, compute=sk.Compute(executor=pool), **OPTIONS)


def test_workers_that_die_with_the_target_say_so():
    class Bomb:
        def __call__(self, q):
            return 0.0

        def __reduce__(self):
            return os._exit, (1,)

    with pytest.raises(WorkerError, match="worker processes die as soon as they have the target"):
        sk.sample(sk.potential(Bomb(), dim=2), compute=sk.Compute(workers=1), **OPTIONS)
