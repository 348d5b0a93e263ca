"""The way down where a potential falls exponentially."""

from __future__ import annotations

import numpy as np
import pytest

import surrokit as sk
from surrokit.mode.descent import MOST, Height, rate_between, slide
from surrokit.mode.search import find_mode


def along(value, slope):
    """Return a line that keeps the heights that it was asked for."""
    seen = []

    def line(way):
        seen.append(Height(way=way, value=value(way), slope=slope(way)))
        return seen[-1]

    return line, seen


def exponential(rate=2.0, height=1e9, rising=0.0):
    return along(
        lambda t: height * np.exp(-rate * t) + rising * t,
        lambda t: -rate * height * np.exp(-rate * t) + rising,
    )


def start_of(line, seen):
    start = line(0.0)
    seen.clear()
    return start


def test_the_rate_of_an_exponential_is_found_whatever_is_added():
    for constant in (0.0, -1e6):
        line, _ = along(lambda t: 7.0 * np.exp(-3 * t) + constant, lambda t: -21.0 * np.exp(-3 * t))  # noqa: B023
        assert rate_between(line(0.0), line(0.5)) == pytest.approx(3.0)


@pytest.mark.parametrize(
    "slope_at_end",
    [-10.0, -19.0, 1.0],  # of a quadratic; too much alike; past the least
)
def test_a_line_that_is_no_exponential_has_no_rate(slope_at_end):
    start = Height(way=0.0, value=100.0, slope=-30.0)
    drop = 0.5 * (30.0 - slope_at_end)
    end = Height(way=1.0, value=100.0 - drop, slope=slope_at_end)
    assert rate_between(start, end) is None


@pytest.mark.parametrize("end", [(np.inf, np.inf), (5.0, np.nan)])
def test_where_a_line_cannot_be_evaluated_it_has_no_rate(end):
    start = Height(way=0.0, value=100.0, slope=-30.0)
    assert rate_between(start, Height(way=1.0, value=end[0], slope=end[1])) is None


def test_an_exponential_is_followed_to_its_end_at_once():
    line, seen = exponential()
    assert slide(line, start_of(line, seen), level=1.0) == len(seen) == 2
    assert seen[-1].value == pytest.approx(1.0)


def test_what_rises_ends_the_way():
    line, seen = exponential(rising=500.0)
    assert slide(line, start_of(line, seen), level=1.0) <= 5
    least = 0.5 * np.log(2e9 / 500.0)
    assert min(height.value for height in seen) < 250.0 + 500.0 * least + 3.0


def test_a_wall_is_kept_away_from():
    value, slope = (lambda t: 1e9 * np.exp(-2 * t)), (lambda t: -2e9 * np.exp(-2 * t))
    line, seen = along(
        lambda t: value(t) if t < 6.0 else np.inf, lambda t: slope(t) if t < 6.0 else np.inf
    )
    assert slide(line, start_of(line, seen), level=1.0) == MOST
    assert 5.5 < max(height.way for height in seen if np.isfinite(height.value)) < 6.0


def test_a_quadratic_costs_one_evaluation():
    line, seen = along(lambda t: 50.0 * (t - 1.1) ** 2, lambda t: 100.0 * (t - 1.1))
    assert slide(line, start_of(line, seen), level=1.0) == len(seen) == 1


def test_a_search_that_begins_very_high_takes_few_more_evaluations():
    """With the logarithm of a scale that is far too small, at heights that differ by 10^8."""

    def value_and_gradient(q):
        spread = 1e4 * np.exp(-2.0 * q[:, 0]) * (1.0 + np.square(q[:, 1] - 3.0))
        slopes = np.stack([100.0 - 2.0 * spread, 2e4 * np.exp(-2.0 * q[:, 0]) * (q[:, 1] - 3.0)])
        return 100.0 * q[:, 0] + spread, slopes.T

    target = sk.potential(value_and_gradient=value_and_gradient, dim=2, batched=True)
    near, far = (find_mode(target, np.array([at, 2.9])) for at in (0.0, -9.2))
    assert near.converged
    assert far.converged
    np.testing.assert_allclose(far.position, [0.5 * np.log(200.0), 3.0], atol=0.05)
    assert far.calls <= near.calls + MOST
