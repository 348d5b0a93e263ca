"""Plausible ranges: where runs start, and what is no such range."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit.capabilities import INITIAL
from surrokit.errors import ConfigurationError
from surrokit.mode.starts import draw_positions

PARAMETERS = {"rate": (0, None), "share": (0, 1), "w": sk.real(2)}
RANGES = {"rate": (1.0, 3.0), "share": (0.2, 0.4), "w": ([5.0, -2.0], [6.0, -1.0])}
LOWER, UPPER = np.array([1.0, 0.2, 5.0, -2.0]), np.array([3.0, 0.4, 6.0, -1.0])


def by_value(plausible=RANGES, **more):
    return sk.potential(lambda q: 0.5 * q @ q, parameters=PARAMETERS, plausible=plausible, **more)


def by_outputs(plausible=RANGES, **more):
    return sk.forward_potential(
        lambda q: q,
        data=np.zeros(4),
        noise_sd=1.0,
        parameters=PARAMETERS,
        plausible=plausible,
        **more,
    )


@pytest.mark.parametrize("make", [by_value, by_outputs])
@pytest.mark.parametrize("more", [{}, {"batched": True}])
def test_starts_are_uniform_in_the_ranges(make, more):
    target = make(**more)
    drawn = target.transform.to_bounded(draw_positions(target, np.random.default_rng(1), 4000))
    assert (drawn > LOWER).all()
    assert (drawn < UPPER).all()
    # a mean of 4000 is off by 0.0046 widths: five of these are a false alarm in a million
    assert_allclose((drawn.mean(axis=0) - LOWER) / (UPPER - LOWER), 0.5, atol=0.023)


@pytest.mark.parametrize("make", [by_value, by_outputs])
def test_the_density_is_what_it_is_without_them(make):
    positions = np.random.default_rng(2).standard_normal((5, 4))
    assert_allclose(make().value(positions), make(None).value(positions))
    assert make().capabilities - make(None).capabilities == {INITIAL}


def test_differences_start_there_too():
    target = by_value(gradient="differences")
    drawn = target.transform.to_bounded(draw_positions(target, np.random.default_rng(1), 100))
    assert ((drawn > LOWER) & (drawn < UPPER)).all()


def test_numbers_without_names_are_called_q():
    target = sk.potential(lambda q: q @ q, dim=2, plausible={"q": (7.0, [8.0, 9.0])})
    drawn = draw_positions(target, np.random.default_rng(1), 100)
    assert ((drawn > 7.0) & (drawn < [8.0, 9.0])).all()


@pytest.mark.long
def test_a_run_finds_what_lies_far_from_where_it_would_start():
    """The mean within five standard errors: a false alarm in a million."""

    def value(q):
        return 0.5 * np.square((q[0] - 3000.0) / 0.3)

    run = sk.sample(
        sk.potential(value, parameters={"a": None}, plausible={"a": (2900.0, 3100.0)}),
        seed=1,
        progress=False,
    )
    assert run.verdict.sound, run.verdict
    assert abs(run["a"].mean() - 3000.0) < 5 * 0.3 / np.sqrt(run.ess()[0])


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ({"rate": (1, 2)}, "for each of the parameters rate, share, w, got rate"),
        ({**RANGES, "slope": (0, 1)}, "got rate, share, w, slope"),
        ([(1, 2)], r"got \[\(1, 2\)\]"),
        ({}, "got none"),
        ({**RANGES, "rate": 2.0}, r"'rate' must be a pair \(low, high\), got 2.0"),
        ({**RANGES, "rate": (1, 2, 3)}, "'rate' must be a pair"),
        ({**RANGES, "rate": (2.0, 1.0)}, r"'rate' must be finite .* low < high, got \(2.0, 1.0\)"),
        ({**RANGES, "rate": (1.0, 1.0)}, "low < high"),
        ({**RANGES, "rate": (1.0, np.inf)}, "must be finite"),
        ({**RANGES, "rate": (np.nan, 1.0)}, "must be finite"),
        ({**RANGES, "share": (0.5, 1.5)}, r"'share' is \(0.5, 1.5\), which reaches beyond"),
        ({**RANGES, "rate": (-1.0, 2.0)}, r"bounds \(0, inf\); leave out"),
        (
            {**RANGES, "w": ([1.0, 2.0, 3.0], 4.0)},
            r"'w' must be numbers, or arrays of shape \(2,\)",
        ),
        ({**RANGES, "rate": ("low", "high")}, "'rate' must be numbers"),
    ],
)
@pytest.mark.parametrize("make", [by_value, by_outputs])
def test_what_is_no_range_is_refused(make, ranges, message):
    with pytest.raises(ConfigurationError, match=message):
        make(ranges)


def test_numbers_that_are_tied_have_no_range_even_where_another_is_missing():
    parameters = {"places": sk.ordered(2), "width": sk.positive()}
    with pytest.raises(ConfigurationError, match="which has no range; leave plausible"):
        sk.potential(
            log_density=lambda places, width: -width,
            parameters=parameters,
            plausible={"width": (1.0, 2.0)},
        )
