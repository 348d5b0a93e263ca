"""A model that is written down with NumPyro."""

from __future__ import annotations

import numpy as np
import pytest

import surrokit as sk


def test_a_model_of_numpyro(account):
    numpyro = pytest.importorskip("numpyro")
    dist = numpyro.distributions
    from_numpyro = pytest.importorskip("surrokit_jax").from_numpyro
    numpyro.enable_x64()
    heights = np.array([1.62, 1.75, 1.81, 1.69, 1.77, 1.58])

    def model(heights):
        mean = numpyro.sample("mean", dist.Normal(1.7, 0.5))
        sd = numpyro.sample("sd", dist.HalfNormal(0.2))
        numpyro.sample("heights", dist.Normal(mean, sd), obs=heights)

    run = account(sk.sample(from_numpyro(model, heights), seed=1))
    assert abs(run["mean"].mean() - heights.mean()) < 0.01
    assert 0.07 < run["sd"].mean() < 0.14
