"""Runs as data frames, and summaries of some parameters or with intervals."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from surrokit.errors import ConfigurationError, MissingDependencyError


def test_a_data_frame_has_a_row_for_each_draw(run, weighted, monkeypatch):
    pytest.importorskip("pandas", reason="a data frame is pandas'")
    frame = run.to_pandas()
    assert list(frame.columns) == ["chain", "draw", "a", "b", "w[0]", "w[1]"]
    assert frame.shape == (4 * 400, 6)
    second = frame[frame["chain"] == 1]
    assert_array_equal(second["w[1]"], run["w"][1, :, 1])
    assert_array_equal(second["draw"], np.arange(400))
    assert_array_equal(weighted.to_pandas()["log_weight"], weighted.log_weights.ravel())
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingDependencyError, match=r"surrokit\[pandas\]'"):
        run.to_pandas()


def test_a_summary_of_some_parameters_has_their_rows(run):
    whole, some = run.summary(), run.summary(parameters=["w", "a", "w[0]"])
    assert some.labels == ["w[0]", "w[1]", "a"]
    for name, column in whole.columns.items():
        assert_allclose(some[name], column[[2, 3, 0]], rtol=1e-9)
    assert run.summary(parameters="b").labels == ["b"]
    with pytest.raises(ConfigurationError, match=r"no parameter is named 'w\[2\]'; name some of a"):
        run.summary(parameters=["w[2]"])


def test_a_summary_with_an_interval_has_its_ends(run, weighted):
    summary = run.summary(interval=0.8)
    assert list(summary.columns)[5:7] == ["hdi_low", "hdi_high"]
    inside = (run.draws >= summary["hdi_low"]) & (run.draws <= summary["hdi_high"])
    assert_allclose(inside.mean(axis=(0, 1)), 0.8, atol=0.002)
    assert "hdi_low" not in run.summary().columns
    for interval in (0.0, 1.0, 90, "0.9", True, np.nan):
        with pytest.raises(ConfigurationError, match="must be a number between zero and one"):
            run.summary(interval=interval)
    low, high = weighted.highest_density(0.9)[0]
    assert_allclose([low, high], [-1.645, 1.645], atol=0.2)  # of a normal one, from few calls
    assert norm.cdf(high) - norm.cdf(low) == pytest.approx(0.9, abs=0.02)
    # of weighted answers it holds so much by what they know, and is the shortest that does
    known = weighted.answer.distribution
    below = np.interp([low, high], known.points[0], known.below[0])
    assert_allclose(np.diff(below), 0.9, atol=0.005)
    summary = weighted.summary()
    assert high - low <= summary["q95"][0] - summary["q05"][0]
    assert_array_equal(weighted.summary(interval=0.9)["hdi_low"][0], low)
