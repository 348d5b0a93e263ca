"""Rounds: their weights, what these are worth, and rounds that cannot be."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from known_rounds import tilted
from numpy.testing import assert_allclose

from surrokit.errors import ConfigurationError, ShapeError
from surrokit.weighted.round import Round, thin_as


def of(logs):
    draws = np.arange(12.0).reshape(2, 6, 1)
    logs = np.array(logs)
    return Round(draws=draws, paid=draws[0, : len(logs)], log_weights=logs, learnt=10)


def test_weights_have_mean_one_and_are_worth_what_kish_says():
    found = of([-2000.0, -2000.0, -np.inf, -2000.0 + np.log(2.0)])
    assert_allclose(found.weights, [1.0, 1.0, 0.0, 2.0])
    assert_allclose(found.effective, 16.0 / 6.0)
    assert_allclose(found.variance, 2.0 / 3.0)
    assert len(found) == 4
    assert np.isnan(of([3.0]).variance)


@pytest.mark.parametrize(
    "change",
    [
        {"draws": np.zeros((4, 3))},
        {"log_weights": np.zeros(3)},
        {"log_evens": np.zeros(3)},
        {"paid": np.zeros((40, 2))},
        {"paid": np.zeros((0, 1)), "log_weights": np.zeros(0), "log_evens": np.zeros(0)},
    ],
)
def test_shapes_that_do_not_fit_are_told(rng, change):
    with pytest.raises(ShapeError, match="and n positions, log weights and evens"):
        attrs.evolve(tilted(rng), **change)


@pytest.mark.parametrize("shape", [(4, 70), (3, 100), (4, 101), (4, 0)])
def test_hindsight_of_other_draws_is_told(rng, shape):
    for name in ("hindsight", "tilt"):
        message = f"the {name} of a round must have a number for every k-th draw of each chain"
        with pytest.raises(ShapeError, match=message):
            attrs.evolve(tilted(rng), **{name: np.zeros(shape)})


@pytest.mark.parametrize(("m", "every"), [(100, 1), (50, 2), (34, 3), (1, 100)])
def test_numbers_are_of_every_kth_draw(rng, m, every):
    found = attrs.evolve(tilted(rng), hindsight=np.zeros((4, m)), tilt=np.ones((4, m)))
    np.testing.assert_array_equal(thin_as(found.hindsight, found.draws), found.draws[:, ::every])


@pytest.mark.parametrize("log", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["log_weights", "log_evens"])
def test_a_log_weight_that_is_no_number_is_told(rng, name, log):
    with pytest.raises(ConfigurationError, match="log weights must be finite, or -inf"):
        attrs.evolve(tilted(rng, n=1), **{name: np.array([log])})


def test_weights_and_evenings_are_over_what_was_paid_for(rng):
    """Positions of twice the surrogate's scale: both are means under another density."""
    draws, paid = rng.standard_normal((4, 5000, 1)), 2.0 * rng.standard_normal((20_000, 1))
    x = paid[:, 0]
    even = np.log(2.0) - 0.5 * np.square(x) + np.square(x) / 8.0
    found = Round(draws=draws, paid=paid, log_weights=even + 0.3 * x, log_evens=even, learnt=10)
    assert_allclose(np.average(np.square(x), weights=found.evenings), 1.0, atol=0.05)
    assert_allclose(np.average(x, weights=found.weights), 0.3, atol=0.05)
    assert_allclose(found.log_ratios, 0.3 * x)
