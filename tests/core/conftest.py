from __future__ import annotations

import io
import sys

import pytest

import surrokit as sk


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """Make standard error a terminal; called in the test, since pytest swaps it until then."""

    def make():
        stream = Terminal()
        monkeypatch.setattr(sys, "stderr", stream)
        for name, value in {"TERM": "xterm", "COLUMNS": "120"}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.delenv("NO_COLOR", raising=False)
        return stream

    return make


@pytest.fixture(scope="session")
def bounded_run():
    """A short run of a target with bounds and shapes, exact throughout."""
    target = sk.potential(
        log_density=lambda q: -q[0] + 2 * _log(q[0]) - 0.5 * q[1] ** 2 + _log(q[2:] * (1 - q[2:])),
        parameters={"rate": (0, None), "slope": None, "w": sk.interval(0, 1, 2)},
    )
    return sk.sample(
        target, sampler="random-walk", chains=3, warmup=60, draws=50, seed=11, progress=False
    )


def _log(x):
    import numpy as np

    return float(np.log(x).sum())


@pytest.fixture(scope="session")
def forward_run():
    """A short run of a target with a forward map and a surrogate that happens to be right."""

    def target():
        return sk.forward_potential(
            lambda q: [q[0] + q[1], q[0] ** 2, 3.0],
            lambda q: [[1.0, 1.0], [2 * q[0], 0.0], [0.0, 0.0]],
            data=[1.0, 1.0, 3.0],
            noise_sd=0.5,
            prior=sk.gaussian_prior(),
            parameters={"a": (0, None), "b": None},
        )

    run = sk.sample(
        target(),
        surrogate=sk.batch_surrogate(lambda evaluations, rng: target()),
        chains=2,
        warmup=60,
        draws=40,
        seed=5,
        progress=False,
    )
    return run, target()
