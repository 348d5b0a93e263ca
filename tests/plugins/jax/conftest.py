from __future__ import annotations

from contextlib import suppress
from importlib import import_module

import numpy as np
import pytest

for name in ("jax", "numpyro"):
    with suppress(ImportError):
        import_module(name)  # before any test, since it sets variables of the environment

REASON = "JAX is an optional library: tox -e adapters"


@pytest.fixture
def jax():
    """JAX in double precision, as a user has it."""
    library = pytest.importorskip("jax", reason=REASON)
    before = library.config.jax_enable_x64
    library.config.update("jax_enable_x64", True)
    yield library
    library.config.update("jax_enable_x64", before)


@pytest.fixture
def numpyro(jax):
    return pytest.importorskip("numpyro", reason="NumPyro is optional: tox -e adapters")


@pytest.fixture
def schools(numpyro):
    """The eight schools (Rubin 1981), not centred, with their data."""
    effects = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
    errors = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
    normal = numpyro.distributions.Normal

    def model(errors, effects=None):
        mu = numpyro.sample("mu", normal(0.0, 5.0))
        tau = numpyro.sample("tau", numpyro.distributions.HalfCauchy(5.0))
        with numpyro.plate("schools", len(errors)):
            eta = numpyro.sample("eta", normal(0.0, 1.0))
            theta = numpyro.deterministic("theta", mu + tau * eta)
            numpyro.sample("effects", normal(theta, errors), obs=effects)

    return model, errors, effects
