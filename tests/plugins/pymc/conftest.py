from __future__ import annotations

import os
from contextlib import suppress
from importlib import import_module

import numpy as np
import pytest

with suppress(ImportError):
    import_module("jax")  # before any test, since it sets variables of the environment

REASON = "PyMC is an optional library: tox -e adapters"

EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
NAMES = ("Choate", "Deerfield", "Andover", "Exeter", "Hotchkiss", "Lawrence", "Paul", "Hermon")


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    """PyTensor adds a folder to the path when it first compiles, and PyMC devices to JAX."""
    for name in ("PATH", "XLA_FLAGS"):
        monkeypatch.setenv(name, os.environ.get(name, ""))


@pytest.fixture(scope="session")
def pymc():
    return pytest.importorskip("pymc", reason=REASON)


@pytest.fixture(scope="session")
def bambi(pymc):
    return pytest.importorskip("bambi", reason="Bambi is optional: tox -e adapters")


@pytest.fixture
def jax(pymc):
    """JAX in double precision."""
    library = pytest.importorskip("jax", reason="JAX is optional: tox -e adapters")
    before = library.config.jax_enable_x64
    library.config.update("jax_enable_x64", True)
    yield library
    library.config.update("jax_enable_x64", before)


@pytest.fixture(scope="session")
def schools(pymc):
    """The eight schools (Rubin 1981), not centred."""
    with pymc.Model(coords={"school": NAMES}) as model:
        mu = pymc.Normal("mu", 0.0, 5.0)
        tau = pymc.HalfCauchy("tau", 5.0)
        eta = pymc.Normal("eta", 0.0, 1.0, dims="school")
        theta = pymc.Deterministic("theta", mu + tau * eta, dims="school")
        pymc.Normal("effects", theta, ERRORS, observed=EFFECTS, dims="school")
    return model


@pytest.fixture(scope="session")
def varied(pymc):
    """Variables of many kinds, some of whose bounds are others."""
    with pymc.Model(coords={"part": ["a", "b", "c"], "row": range(4)}) as model:
        x = pymc.Data("x", np.arange(4.0), dims="row")
        top = pymc.Gamma("top", 3.0, 1.0, initval=2.5)
        pymc.Uniform("low", lower=0.0, upper=top)
        pymc.Dirichlet("parts", np.ones(3), dims="part")
        pymc.ZeroSumNormal("zero", dims="part")
        _, correlation, _ = pymc.LKJCholeskyCov(
            "factor", n=2, eta=2.0, sd_dist=pymc.HalfNormal.dist(1.0)
        )
        pymc.Deterministic("one", correlation[0, 0])
        slope = pymc.Normal("slope")
        pymc.Deterministic("is_up", slope > 0)
        pymc.Deterministic("line", slope * x, dims="row")
        pymc.Normal("y", slope * x, 1.0, observed=np.arange(4.0), dims="row")
    return model
