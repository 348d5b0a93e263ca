"""The UM-Bridge package on the other side: as a server that may die, and as a client."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import surrokit as sk
import surrokit_umbridge
from surrokit.errors import ConfigurationError

umbridge = pytest.importorskip("umbridge", reason="run by the tox environment umbridge")

MODEL = """
import sys, time
import umbridge

class Model(umbridge.Model):
    def get_input_sizes(self, config):
        return [2]

    def get_output_sizes(self, config):
        return [1]

    def __call__(self, parameters, config={}):
        x, y = parameters[0]
        time.sleep(config.get("seconds", 0.0))
        return [[-((x * x / 2 + x**4 / 10) + (y * y / 2 + y**4 / 10))]]

    def gradient(self, out_wrt, in_wrt, parameters, sens, config={}):
        return [-(x + 0.4 * x**3) * sens[0] for x in parameters[0]]

    def supports_evaluate(self):
        return True

    def supports_gradient(self):
        return True

umbridge.serve_models([Model("posterior")], int(sys.argv[1]), max_workers=2)
"""

HMC = {"sampler": ("hmc", {"step_size": 0.3, "n_steps": 5}), "chains": 2, "warmup": 0, "seed": 1}
HMC = {**HMC, "initial": [[0.1, 0.2], [-0.3, 0.4]], "progress": False}


def log_density(q):
    x, y = q.tolist()
    return -((x * x / 2 + x**4 / 10) + (y * y / 2 + y**4 / 10))


def slope(q):
    return np.array([-(x + 0.4 * x**3) for x in q.tolist()])


class Host:
    """A server process at one port, which can be killed and started again."""

    def __init__(self, file):
        file.write_text(MODEL)
        self.file = file
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = None

    def start(self):
        self.process = subprocess.Popen(
            [sys.executable, self.file, str(self.port)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def kill(self):
        self.process.kill()
        self.process.wait()

    def connect(self, **settings):
        end = time.monotonic() + 60.0
        while True:
            try:
                return surrokit_umbridge.connect(self.url, **settings)
            except ConfigurationError:
                assert time.monotonic() < end
                time.sleep(0.1)


@pytest.fixture
def host(tmp_path):
    host = Host(tmp_path / "model.py")
    host.start()
    yield host
    host.kill()


def test_a_server_that_dies_and_comes_back_costs_nothing_but_time(host):
    model = host.connect(config={"seconds": 0.002})
    served = surrokit_umbridge.potential(model)
    done, killed = threading.Event(), []

    def kill_twice():
        for _ in range(2):
            if done.wait(0.5):
                return
            host.kill()
            killed.append(host.process)
            time.sleep(0.3)
            host.start()
            host.connect()

    killer = threading.Thread(target=kill_twice)
    killer.start()
    try:
        run = sk.sample(served, draws=250, compute=sk.Compute(executor="threads", workers=2), **HMC)
    finally:
        done.set()
        killer.join()
    inside = sk.potential(log_density=log_density, gradient=slope, dim=2)
    known = sk.sample(inside, draws=250, **HMC)
    assert np.array_equal(run.draws, known.draws)
    assert killed
    assert run.failures == 0


def test_the_package_asks_a_target_that_is_served():
    target = sk.potential(log_density=log_density, gradient=slope, dim=2)
    with surrokit_umbridge.Server(target, port=0) as server:
        model = umbridge.HTTPModel(server.url, "posterior")
        x, at = [0.3, -0.7], np.array([0.3, -0.7])
        assert (model.get_input_sizes(), model.get_output_sizes()) == ([2], [1])
        assert model([x]) == [[log_density(at)]]
        assert model.gradient(0, 0, [x], [1.0]) == slope(at).tolist()
        assert model.apply_jacobian(0, 0, [x], [1.0, 0.0]) == [slope(at)[0]]
        assert not model.supports_apply_hessian()
