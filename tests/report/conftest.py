"""Runs to look at."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from pages import HOSTILE

import surrokit as sk
from surrokit.errors import SamplingWarning


def bent(q):
    """Return a normal density, bent, and its gradient."""
    away = q[1] - 0.3 * q[0] ** 2
    others = q[2:]
    slope = np.concatenate([[q[0] - 0.6 * q[0] * away / 0.5, away / 0.5], others])
    return 0.5 * q[0] ** 2 + 0.5 * away**2 / 0.5 + 0.5 * others @ others, slope


def bent_target(parameters):
    return sk.potential(value_and_gradient=bent, parameters=parameters)


def draw(target, **settings):
    """Return a short run, whatever its verdict, which another machine may see otherwise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)
        return sk.sample(target, progress=False, **settings)


@pytest.fixture(scope="session")
def target():
    return bent_target({"a": None, "b": None, "w": sk.real(2)})


@pytest.fixture(scope="session")
def run(target):
    """A run on a learnt surrogate."""
    return draw(
        target,
        sampler="hmc",
        surrogate="additive",
        warmup=200,
        draws=400,
        seed=3,
    )


@pytest.fixture(scope="session")
def exact_run(target):
    """A run without a surrogate."""
    return draw(target, sampler="hmc", warmup=200, draws=100, seed=4)


@pytest.fixture(scope="session")
def weighted(tmp_path_factory):
    """Weighted answers, in a file."""
    target = bent_target({"a": None, "b": None})
    path = tmp_path_factory.mktemp("runs") / "weighted.surrokit"
    found = draw(
        target,
        sampler="hmc",
        surrogate="additive",
        correction=("weights", {"chains": 16, "warmup": 60, "effective": 800}),
        explorer="rounds",
        max_calls=150,
        seed=1,
        path=path,
    )
    assert found.answer is not None
    return found


@pytest.fixture(scope="session")
def hostile():
    """A run whose parameters have names that break pages."""
    target = bent_target(dict(HOSTILE))
    return draw(target, sampler="hmc", warmup=60, draws=40, seed=2)
