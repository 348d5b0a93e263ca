"""x coth(x), its slope and its divided differences, against many digits."""

from __future__ import annotations

from decimal import Decimal, getcontext

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from surrokit_riemannian.softabs import (
    CERTAIN,
    divided_differences,
    softabs,
    softabs_slope,
)

getcontext().prec = 60

POINTS = [0.0, 1e-9, 1e-4, 0.05, 0.19, 0.21, 0.4, 1.0, 3.0, 12.0, 19.0, 19.2, 40.0, 3e4]


def exact_slope(x):
    h = Decimal("1e-18")
    low, high = (exact_at(Decimal(float(x)) + sign * h) for sign in (-1, 1))
    return float((high - low) / (2 * h))


def exact_at(x):
    if x == 0:
        return Decimal(1)
    up, down = x.exp(), (-x).exp()
    return x * (up + down) / (up - down)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("x", POINTS)
def test_value_and_slope(x, sign):
    x = np.array([sign * x])
    assert_allclose(softabs(x), [float(exact_at(Decimal(float(x[0]))))], rtol=1e-15)
    assert_allclose(softabs_slope(x), [exact_slope(x[0])], rtol=0, atol=4e-15)


@pytest.mark.parametrize("gap", [0.0, 1e-12, 1e-6, 1e-3, 0.1, 0.49, 0.51, 5.0])
@pytest.mark.parametrize("x", [-30.0, -1.0, -0.2, 0.0, 1e-7, 0.1, 0.3, 2.0, 19.0, 500.0])
def test_divided_differences(x, gap):
    pair = np.array([[x, x + gap]])
    found = divided_differences(pair)[0]
    first, second = (Decimal(float(value)) for value in pair[0])
    if first == second:
        expected = exact_slope(x)
    else:
        expected = float((exact_at(second) - exact_at(first)) / (second - first))
    assert_allclose(found[0, 1], expected, rtol=0, atol=2e-13)
    assert_allclose(found, found.T, rtol=0, atol=1e-15)


def test_beyond_the_threshold_it_is_the_absolute_value_to_the_last_digit():
    x = np.linspace(CERTAIN, 4 * CERTAIN, 1000)
    assert_array_equal(softabs(x), x)
    assert_array_equal(softabs_slope(x[1:]), np.ones(999))


def test_nan_stays_nan():
    assert np.isnan(softabs(np.array([np.nan]))).all()
    assert np.isnan(softabs_slope(np.array([np.nan]))).all()
