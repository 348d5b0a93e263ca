"""A process that is killed loses nothing that was paid for but the calls in flight."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from ledgers import HERE, KINDS, Counted, events

import surrokit as sk

pytestmark = pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")

SECONDS = 6e-3
"""Of a call: a batch of them is written as soon as it returns."""


def kill(kind, tmp_path, after, by):
    """Kill a run so many seconds after its first call; return whether it was still running."""
    log = tmp_path / "log"
    command = [sys.executable, str(HERE / "killed.py"), kind, str(tmp_path / "a"), str(log)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
    process = subprocess.Popen([*command, str(SECONDS)], env=environment)
    while process.poll() is None and not (log.exists() and log.read_text()):
        time.sleep(0.01)
    time.sleep(after)
    running = process.poll() is None
    process.send_signal(by)
    process.wait()
    return running


def check(kind, whole, tmp_path, after, by=signal.SIGKILL):
    run, path = whole(kind)
    running = kill(kind, tmp_path, after, by)
    paid = len((tmp_path / "log").read_text())
    # a batch is written when it returns; an output and a Jacobian are calls of their own
    alone = sum(run.calls.values()) + run.calls["jacobian"]
    calls = Counted()
    again = sk.resume(tmp_path / "a", KINDS[kind][0](calls), check=False)
    assert np.array_equal(again.draws, run.draws)
    assert again.calls == run.calls
    in_flight = max(len(event.positions) for event in events(path)) * (
        2 if run.calls["jacobian"] else 1
    )
    assert alone <= paid + calls.n <= alone + in_flight
    return running


@pytest.mark.parametrize(
    ("kind", "after", "by"),
    [("hmc", 0.05, signal.SIGKILL), ("hmc", 1.0, signal.SIGTERM), ("limited", 0.5, signal.SIGKILL)],
)
def test_a_killed_run_goes_on(kind, after, by, whole, tmp_path):
    assert check(kind, whole, tmp_path, after, by)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["hmc", "sub-chain", "while-learning", "limited"])
def test_a_run_goes_on_after_any_of_many_kills(kind, whole, tmp_path):
    rng = np.random.default_rng(4)
    for i in range(25):
        folder = tmp_path / str(i)
        folder.mkdir()
        check(kind, whole, folder, float(rng.random() * 3.0))
