"""Runs on programs: the draws are those of the same target in this process, and failures count."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import surrokit as sk
from waiting import is_alive, wait_until

SIZES = {"warmup": 0, "seed": 1, "progress": False}
HMC = {
    **SIZES,
    "sampler": ("hmc", {"step_size": 0.3, "n_steps": 3}),
    "chains": 2,
    "draws": 4,
    "initial": [[0.5, 1.0], [-0.5, 0.3]],
}
DATA = {"data": [0.5, 1.0, 0.2], "noise_sd": 0.3, "prior": sk.gaussian_prior(0, 1)}

pytestmark = pytest.mark.filterwarnings("ignore::surrokit.errors.EvaluationWarning")


def log_density(q):
    x, y = q.tolist()
    return -((x * x / 2 + x**4 / 10) + (y * y / 2 + y**4 / 10))


def slope(q):
    return np.array([-(x + 0.4 * x**3) for x in q.tolist()])


def outputs(q):
    x, y = q.tolist()
    return [x * y, x + y**2, float(np.sin(x))]


def jacobian(q):
    x, y = q.tolist()
    return [[y, x], [1.0, 2.0 * y], [float(np.cos(x)), 0.0]]


def pulled(q, weights):
    rows = jacobian(q)
    return [sum(w * row[k] for w, row in zip(weights.tolist(), rows, strict=True)) for k in (0, 1)]


def twins(model):
    """Yield a target of a program, and the same in this process."""
    yield (
        sk.command_potential(model, gradient=True, dim=2),
        sk.potential(log_density=log_density, gradient=slope, dim=2),
    )
    yield (
        sk.command_potential(model, jacobian=True, dim=2, **DATA),
        sk.forward_potential(outputs, jacobian, dim=2, **DATA),
    )
    yield (
        sk.command_potential([*model, "{input}", "{output}"], vjp=True, dim=2, **DATA),
        sk.forward_potential(outputs, vjp=pulled, dim=2, **DATA),
    )


@pytest.mark.parametrize(
    ("which", "former"),
    [(0, {"executor": "threads", "workers": 2}), (1, {"workers": 1}), (2, {})],
    ids=["log-density by threads", "outputs by processes", "adjoint"],
)
def test_draws_are_those_of_the_target_in_this_process_to_the_bit(model, which, former):
    program, inside = list(twins(model))[which]
    run = sk.sample(program, compute=sk.Compute(**former), **HMC)
    known = sk.sample(inside, **HMC)
    assert np.array_equal(run.draws, known.draws)
    assert run.failures == 0
    assert run.calls == known.calls


RUN = """
import signal
import sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent may ignore it
import surrokit as sk
target = sk.command_potential(["sh", "-c", "echo $$ > {here}/$$; exec sleep 60"], dim=2,
                              folder=sys.argv[1])
made = {"none": {}, "threads": {"executor": "threads", "workers": 2}, "processes": {"workers": 2}}
run = sk.sample(target, sampler="random-walk", draws=10**5, compute=sk.Compute(**made[sys.argv[2]]))
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
@pytest.mark.parametrize("former", ["none", "processes"])
def test_programs_end_with_an_interrupted_run(tmp_path, former):
    run = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", RUN, str(tmp_path), former],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    wait_until(lambda: len(_pids(tmp_path)) == (1 if former == "none" else 2))
    time.sleep(0.3)  # a program may run before the process that starts it goes on
    os.killpg(run.pid, signal.SIGINT)
    run.communicate(timeout=30)
    wait_until(lambda: not any(is_alive(pid) for pid in _pids(tmp_path)), seconds=10.0)


def _pids(folder):
    return [file.read_text().strip() for file in folder.iterdir() if file.read_text().strip()]
