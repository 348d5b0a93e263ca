"""A scheduler and worker processes on the loopback: rows in their memory, calls spread by them."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import surrokit as sk

distributed = pytest.importorskip("distributed", reason="workers are Dask's")
da = pytest.importorskip("dask.array", reason="partitions are Dask's")

# what workers leave behind when they are killed is no leak of ours
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")

QUICK = {"chains": 4, "warmup": 40, "draws": 60, "seed": 1, "progress": False}
BY_ROWS = {
    "sampler": "gaussian",
    "surrogate": "quadratic",
    "explorer": "rounds",
    "correction": "subsampled",
}


@pytest.fixture
def cluster(monkeypatch):
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.setenv(name, "1")
    for name in ("MALLOC_TRIM_THRESHOLD_", "PYTHONHASHSEED", "__DASK_PARENT_PID"):
        monkeypatch.setenv(name, "0")  # which are set where a worker is started
    with distributed.LocalCluster(
        n_workers=4,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address=None,
        memory_limit=0,
    ) as made:
        yield made


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as made:
        yield made


def rows(n=40_000, dim=5):
    rng = np.random.default_rng(0)
    x = 0.5 * rng.standard_normal((n, dim))
    x[:, 0] = 1.0
    return x, rng.poisson(np.exp(x @ np.full(dim, 0.2))).astype(float)


def in_partitions(x, y, size=5000):
    return da.from_array(x, chunks=(size, x.shape[1])), da.from_array(y, chunks=size)


def kill_one_and_add_one(cluster, client, after):
    """Have a worker process killed after some seconds, and another begin."""

    pids = client.run(os.getpid)

    def act():
        time.sleep(after)
        os.kill(next(iter(pids.values())), signal.SIGKILL)
        cluster.loop.add_callback(cluster.scale, 5)

    thread = threading.Thread(target=act)
    thread.start()
    return thread


def slow_target():
    """Return a target whose functions workers get by their code, for they cannot import tests."""

    def value(q):
        time.sleep(0.01)
        return float(q @ q / 2 + 0.1 * np.sum(q**4))

    def gradient(q):
        return q + 0.4 * q**3

    return sk.potential(value, gradient, dim=3)


def test_calls_are_spread_and_a_killed_worker_changes_nothing(cluster, client):
    target = slow_target()
    options = {**QUICK, "sampler": ("hmc", {"n_steps": 3}), "chains": 8, "draws": 120}
    alone = sk.sample(target, **options)
    thread = kill_one_and_add_one(cluster, client, after=2.0)
    spread = sk.sample(target, compute=sk.Compute(executor=client.get_executor()), **options)
    thread.join()
    assert_array_equal(spread.draws, alone.draws)
    assert spread.failures == alone.failures == 0
    assert spread.calls == alone.calls
    assert sum(spread.seconds.values()) > 2.5  # so that it happened halfway


def test_rows_in_workers_give_the_draws_of_rows_in_this_process(cluster, client):
    from dask import config

    x, y = rows()
    spread = sk.rows_potential("poisson", *in_partitions(x, y), prior=2.0)
    run = sk.sample(spread, **BY_ROWS, **QUICK)
    with config.set(scheduler="synchronous"):
        local = sk.rows_potential("poisson", *in_partitions(x, y), prior=2.0, persist=False)
        here = sk.sample(local, **BY_ROWS, **QUICK)
    assert_array_equal(run.draws, here.draws)


def test_rows_of_a_killed_worker_are_read_again(cluster, client):
    x, y = rows()
    options = {**QUICK, "sampler": ("hmc", {"n_steps": 4}), "surrogate": "none"}
    target = sk.rows_potential("poisson", *in_partitions(x, y), prior=2.0)
    calm = sk.sample(target, **options)
    thread = kill_one_and_add_one(cluster, client, after=1.0)
    shaken = sk.sample(target, **options)
    thread.join()
    assert_array_equal(shaken.draws, calm.draws)
    assert shaken.failures == 0
