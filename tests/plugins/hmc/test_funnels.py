"""Funnels: scales that depend on another parameter are learnt in warm-up, and draws are right."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk

V, QUANTILES = 3.0, (0.01, 0.05, 0.5, 0.95)


def neal(q):
    """Return U of Neal's funnel of ten dimensions, v first, and its gradient."""
    v, x = q[:, 0], q[:, 1:]
    squares = np.square(x).sum(axis=1) * np.exp(-v)
    by_v = v / V**2 + 0.5 * (x.shape[1] - squares)
    value = 0.5 * (v**2 / V**2 + x.shape[1] * v + squares)
    return value, np.column_stack([by_v, x * np.exp(-v)[:, None]])


FUNNEL = sk.potential(lambda q: neal(q)[0], lambda q: neal(q)[1], dim=10, batched=True)


def drawn(sampler, **settings):
    with np.errstate(all="ignore"):
        return sk.sample(FUNNEL, sampler=sampler, seed=3, progress=False, **settings)


def shares(run):
    """Return which shares of draws of v lie below quantiles of its distribution."""
    scores = np.array([-2.3263, -1.6449, 0.0, 1.6449])
    return (run.draws[..., 0, None] < V * scores).mean(axis=(0, 1))


@pytest.mark.parametrize("sampler", ["hmc", pytest.param("nuts", marks=pytest.mark.long)])
def test_all_of_a_funnel_is_drawn(sampler):
    """Each share is off by 4.5 of its standard errors once in 10^5 times."""
    run = drawn(sampler)
    assert not run.verdict.warnings
    assert_allclose(run.sampler.tuning.warp.scales.logs[0, 1:], 0.5, atol=1e-4)
    effective = run.ess("least").min()
    assert effective > 1000
    assert run.total_calls < 15 * effective
    expected = np.array(QUANTILES)
    error = np.sqrt(expected * (1.0 - expected) / effective)
    assert (np.abs(shares(run) - expected) < 4.5 * error).all()


@pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
def test_without_a_warp_its_narrow_end_is_missed_and_that_is_warned_of():
    run = drawn(("hmc", {"warp": False}), warmup=400, draws=500)
    assert shares(run)[0] < 0.002
    assert run.verdict.warnings
