"""How much each output counts in one regression for all."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from surrokit.targets.gaussian import GaussianEnergy
from surrokit_networks.outputs import output_scales

NOISE = np.array([1e-3, 1.0, 50.0])
ENERGY = GaussianEnergy(data=[0.0, 10.0, -300.0], noise_sd=NOISE)


@pytest.fixture
def outputs(rng):
    return ENERGY.data + NOISE * rng.standard_normal((400, 3))


def scales(outputs, weights=None, energy=ENERGY):
    n = len(outputs)
    return output_scales(
        energy, outputs, np.zeros((n, 2)), np.ones(n) if weights is None else weights
    )


def test_they_are_the_noise_where_residuals_are_like_it(outputs):
    assert_allclose(scales(outputs), NOISE, rtol=0.1)


def test_an_error_of_that_size_changes_the_energy_by_a_nat(outputs):
    for output, scale in enumerate(scales(outputs)):
        error = np.zeros(3)
        error[output] = 1e-3 * scale
        change = ENERGY.value(outputs + error, outputs) - ENERGY.value(outputs, outputs)
        assert np.sqrt(np.mean(np.square(change))) == pytest.approx(1e-3, rel=1e-2)


def test_rows_count_by_their_weight(outputs):
    far = np.concatenate([outputs, ENERGY.data + 1e4 * NOISE * np.ones((5, 1))])
    weights = np.ones(405)
    assert (scales(far, weights) < 0.01 * NOISE).all()
    weights[400:] = 1e-16
    assert_allclose(scales(far, weights), scales(outputs), rtol=1e-3)
    twice = np.concatenate([outputs[:100], outputs[:200]])
    weights = np.where(np.arange(200) < 100, 2.0, 1.0)
    assert_allclose(scales(outputs[:200], weights), scales(twice))


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e303])
def test_rows_that_cannot_count_do_not(outputs, bad):
    failed = np.concatenate([outputs, np.full((2, 3), bad)])
    weights = np.ones(402)
    weights[400:] = 0.0 if bad == 1e303 else 1.0
    assert_allclose(scales(failed, weights), scales(outputs))


def test_rows_that_ran_away_do_not_overflow(outputs):
    found = scales(np.concatenate([outputs, np.full((2, 3), 1e290)]))
    assert (found > 0).all()
    assert np.isfinite(found).all()


class First:
    """An energy of the first output alone."""

    def value_and_gradients(self, outputs, positions):
        by_outputs = np.zeros_like(outputs)
        by_outputs[:, 0] = outputs[:, 0]
        return 0.5 * np.square(outputs[:, 0]), by_outputs, np.zeros_like(positions)


def test_outputs_that_do_not_matter_have_no_say(outputs):
    outputs[:, 2] = 7.0
    found = scales(outputs, energy=First())
    assert found[0] == pytest.approx(1 / np.sqrt(np.mean(np.square(outputs[:, 0]))))
    assert found[1] == pytest.approx(1e6 * outputs[:, 1].std())
    assert found[2] == 1.0


def test_without_a_row_that_counts_all_count_alike(outputs):
    assert_allclose(scales(outputs * np.nan), 1.0)
    assert_allclose(scales(outputs, np.zeros(400)), 1.0)
    assert_allclose(scales(outputs[:0]), 1.0)
