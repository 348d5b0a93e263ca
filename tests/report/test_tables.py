"""Runs as tables: data frames, and summaries of some parameters with intervals."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import surrokit as sk
from surrokit.diagnostics import highest_density
from surrokit.errors import ConfigurationError, MissingDependencyError, ShapeError
from surrokit.weighted.round import Distribution


def test_a_data_frame_has_a_row_for_each_draw(run):
    pytest.importorskip("pandas", reason="a data frame is pandas'")
    frame = run.to_pandas()
    assert list(frame.columns) == ["chain", "draw", "a", "b", "w[0]", "w[1]"]
    assert frame.shape == (4 * 400, 6)
    second = frame[frame["chain"] == 1]
    assert_array_equal(second["w[1]"], run["w"][1, :, 1])
    assert_array_equal(second["draw"], np.arange(400))


def test_a_data_frame_of_weighted_draws_has_their_weights(weighted):
    pytest.importorskip("pandas", reason="a data frame is pandas'")
    assert_array_equal(weighted.to_pandas()["log_weight"], weighted.log_weights.ravel())


def test_without_pandas_the_message_says_what_to_install(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingDependencyError, match=r"surrokit\[pandas\]', or use run.draws"):
        run.to_pandas()


def test_a_summary_of_some_parameters_has_their_rows(run):
    whole, some = run.summary(), run.summary(parameters=["w", "a", "w[0]"])
    assert some.labels == ["w[0]", "w[1]", "a"]
    for name, column in whole.columns.items():
        assert_allclose(some[name], column[[2, 3, 0]], rtol=1e-9)
    assert run.summary(parameters="b").labels == ["b"]


def test_an_unknown_parameter_is_refused(run):
    with pytest.raises(ConfigurationError, match=r"no parameter is named 'w\[2\]'; name some of a"):
        run.summary(parameters=["w[2]"])


def test_a_summary_with_an_interval_has_its_ends(run):
    summary = run.summary(interval=0.8)
    assert list(summary.columns)[5:7] == ["hdi_low", "hdi_high"]
    inside = (run.draws >= summary["hdi_low"]) & (run.draws <= summary["hdi_high"])
    assert_allclose(inside.mean(axis=(0, 1)), 0.8, atol=0.002)
    assert "hdi_low" not in run.summary().columns


@pytest.mark.parametrize("interval", [0.0, 1.0, 90, "0.9", True, np.nan])
def test_an_interval_that_is_no_probability_is_refused(run, interval):
    with pytest.raises(ConfigurationError, match="interval must be a number between zero and one"):
        run.summary(interval=interval)


def test_the_interval_is_the_shortest_one(rng):
    draws = rng.exponential(size=(4, 500, 1)) * 1e300
    low, high = highest_density(draws, 0.9)[0]
    ordered = np.sort(draws.ravel())
    widths = ordered[1800:] - ordered[:200]
    assert_allclose(high - low, widths.min())
    assert low == ordered[widths.argmin()]


@pytest.mark.parametrize("n", [0, 1])
def test_hardly_any_draws_have_an_interval_or_nan(n):
    found = highest_density(np.ones((1, n, 2)), 0.9)
    assert_array_equal(found, np.full((2, 2), np.nan if n == 0 else 1.0))


def test_draws_must_have_three_axes():
    with pytest.raises(ShapeError, match="shape"):
        highest_density(np.ones(3), 0.9)


def test_an_interval_of_masses_is_that_of_as_many_draws(rng):
    draws = rng.normal(size=(2000, 1))
    masses = rng.integers(1, 4, size=2000).astype(float)
    repeated = np.repeat(draws, masses.astype(int), axis=0)
    found = Distribution.of(draws, masses / masses.sum()).shortest(0.9)
    assert_allclose(found, highest_density(repeated[None], 0.9), atol=0.05)


def test_the_interval_of_weighted_answers_is_by_all_their_draws(weighted):
    low, high = weighted.highest_density(0.9)[0]
    assert_allclose([low, high], [-1.645, 1.645], atol=0.1)  # of a normal one, from few calls
    assert_array_equal(weighted.summary(interval=0.9)["hdi_low"][0], low)


@pytest.mark.long
def test_the_interval_of_sharpened_answers_is_by_all_their_draws(target):
    parts = {"sampler": "sub-chain", "surrogate": "additive", "explorer": "rounds"}
    run = sk.sample(target, **parts, draws=100, seed=1, progress=False)
    sharp = sk.sharpen(run, seed=1)
    assert_array_equal(sharp.highest_density(0.9), sharp.sharpened.distribution.shortest(0.9))
