"""However a run ends, its workers end with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from waiting import is_alive, processes_with, wait_until

RUN = """
import pathlib, sys, models, surrokit as sk
target = sk.potential(models.Noted(pathlib.Path(sys.argv[1]), seconds=0.2), dim=2)
run = sk.sample(target, sampler="random-walk", warmup=2, draws=10**5, compute=sk.Compute(workers=2))
print(run.stopped)
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_workers_end_with_the_run(tmp_path, end):
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    run = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", RUN, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    wait_until(lambda: len(list(tmp_path.iterdir())) == 2)
    pids = [file.name for file in tmp_path.iterdir()]
    assert all(is_alive(pid) for pid in pids)
    if end == signal.SIGINT:
        os.killpg(run.pid, end)  # as a terminal does: to the workers as well
    else:
        run.kill()
    out, err = run.communicate(timeout=60)
    wait_until(lambda: not any(is_alive(pid) for pid in pids))
    if end == signal.SIGINT:
        assert out == "interrupted\n"
        assert "Traceback" not in err


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="reads /proc")
@pytest.mark.long  # it waits for processes that start, as long as a busy machine takes
def test_workers_end_with_a_run_that_is_killed_while_they_start(tmp_path):
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    mark = f"SURROKIT_TEST_{os.getpid()}"
    run = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", RUN, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": paths, mark: "1"},
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    wait_until(lambda: len(processes_with(mark)) >= 3)  # one of them a worker that begins
    run.kill()
    run.wait()
    wait_until(lambda: not processes_with(mark))
