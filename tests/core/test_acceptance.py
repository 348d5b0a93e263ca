"""The Metropolis rule."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from surrokit.kernel.hamiltonian import metropolis


def test_the_probability_is_the_ratio_cut_at_one(rng):
    _, acceptance = metropolis(np.log([0.25, 1.0, 4.0]), rng)
    assert_allclose(acceptance, [0.25, 1.0, 1.0])


def test_certain_ratios_are_decided(rng):
    ratios = np.array([np.inf, 0.0, 800.0, -np.inf, np.nan])
    for _ in range(50):
        accepted, acceptance = metropolis(ratios, rng)
        assert_array_equal(accepted, [True, True, True, False, False])
        assert_array_equal(acceptance, [1, 1, 1, 0, 0])


@pytest.mark.statistical
def test_the_frequency_is_the_probability(rng):
    accepted, _ = metropolis(np.full(40_000, np.log(0.3)), rng)
    assert abs(accepted.mean() - 0.3) < 5 * np.sqrt(0.3 * 0.7 / 40_000)


def test_one_number_is_drawn_for_every_chain_whatever_the_ratios():
    first, second = np.random.default_rng(5), np.random.default_rng(5)
    metropolis(np.array([-np.inf, np.nan, 3.0]), first)
    second.random(3)
    assert first.random() == second.random()
