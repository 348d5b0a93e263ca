"""Figure 1: data, fits, errors, and the picture, at tiny sizes."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from surrokit.errors import SurrogateFitError
from surrokit_paper import figure_1
from surrokit_paper.figure_1 import GRID, METHODS, Figure1, curve_errors
from surrokit_paper.harness import Conditions, reproduce

TINY = {"n_points": (10, 20), "n_refits": 3, "n_data_sets": 2}


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    return reproduce(Figure1(**TINY), tmp_path_factory.mktemp("figure-1"))


def finished(outcome, name):
    (row,) = [row for row in outcome.finished if row.name == name]
    return row.result


@pytest.mark.long
def test_every_surrogate_is_fitted_at_every_size(outcome):
    expected = {f"{method.name}/{n}" for method in METHODS for n in (10, 20)}
    assert {row.name for row in outcome.finished} == expected
    assert not outcome.not_run


def test_the_settings_are_those_of_the_paper():
    by_name = {method.name: method for method in METHODS}
    assert by_name["fitc"].settings["n_inducing"] == 5
    assert by_name["additive"].settings["n_nodes"] == by_name["rbf"].settings["n_nodes"] == 5
    assert by_name["additive"].surrogate == "additive-paper"
    assert by_name["rbf"].surrogate == "rbf-paper"
    assert not by_name["additive-default"].settings
    assert Figure1().n_points == (10, 20, 40)
    assert (Figure1().n_refits, Figure1().noise_sd) == (100, 0.1)


def test_data_sets_are_nested_and_noisy():
    conditions = Conditions(seed=3)
    few, many = (Figure1().data(0, n, conditions) for n in (10, 1000))
    assert_allclose(few.positions, many.positions[:10])
    assert_allclose(few.values, many.values[:10])
    noise = many.values - 0.5 * many.positions[:, 0] ** 2
    assert 0.09 < noise.std() < 0.11
    assert 0.09 < (many.gradients - many.positions).std() < 0.11
    other = Figure1().data(1, 10, conditions)
    assert not np.any(other.positions == few.positions)


@pytest.mark.long
def test_curves_are_kept_with_their_spread(outcome):
    for row in outcome.finished:
        low, mean, high = (np.array(row.result[name]) for name in ("low", "mean", "high"))
        assert low.shape == mean.shape == high.shape == GRID.shape
        assert np.all(low <= high)
        spread = np.ptp(np.stack([low, high]), axis=0).max()
        if row.settings["method"] not in ("additive-default", "additive-gradients"):
            # those may be their trend alone, which has nothing random
            assert (spread == 0.0) == (row.settings["method"] == "gp"), row.name


def test_errors_are_measured_about_the_level():
    exact = 0.5 * GRID**2
    assert_allclose(list(curve_errors(exact[None] + 7.0).values()), 0.0, atol=1e-12)
    # V - U = x^2 / 2 has variance 1/2 under N(0, 1)
    errors = curve_errors(2.0 * exact[None])
    assert_allclose(errors["near"], np.sqrt(0.5), rtol=5e-3)
    far = GRID[np.abs(GRID) >= 2.0]
    assert_allclose(errors["far"], np.sqrt(np.mean((far**2 / 2 - 0.5) ** 2)), rtol=5e-3)


@pytest.mark.long
def test_gradients_make_a_surrogate_follow_the_truth(outcome):
    for n in (10, 20):
        assert finished(outcome, f"additive-gradients/{n}")["error_one_fit"]["near"] < 0.05


def test_radial_nodes_take_their_width_from_fitc(monkeypatch):
    asked = []
    real = figure_1.train

    def watched(surrogate, settings, evaluations, rng):
        asked.append((surrogate, dict(settings)))
        return real(surrogate, settings, evaluations, rng)

    monkeypatch.setattr(figure_1, "train", watched)
    experiment = Figure1(**{**TINY, "n_points": 10, "n_refits": 2, "n_data_sets": 1})
    (row,) = [row for row in experiment.rows() if row.name == "rbf/10"]
    experiment.run(row, Conditions(seed=1))
    assert [surrogate for surrogate, _ in asked] == [
        "fitc",
        *2 * ["rbf-paper"],
        "fitc",
        "rbf-paper",
    ]
    widths = [settings["width_scale"] for surrogate, settings in asked if surrogate == "rbf-paper"]
    assert widths[0] == widths[1] > 0
    assert widths[2] != widths[0]


def test_fits_that_fail_are_counted_and_if_all_do_it_is_an_error(monkeypatch):
    real = figure_1.train
    calls = []

    def sometimes(*arguments):
        calls.append(arguments)
        if len(calls) % 2:
            raise SurrogateFitError("not today")
        return real(*arguments)

    experiment = Figure1(n_points=10, n_refits=4, n_data_sets=2)
    (row,) = [row for row in experiment.rows() if row.name == "additive/10"]
    monkeypatch.setattr(figure_1, "train", sometimes)
    assert experiment.run(row, Conditions(seed=1))["failures"] == 3

    def never(*arguments):
        raise SurrogateFitError("not today")

    monkeypatch.setattr(figure_1, "train", never)
    with pytest.raises(SurrogateFitError, match="additive nodes could be fitted to none of 4"):
        experiment.run(row, Conditions(seed=1))


@pytest.mark.long
def test_the_report_has_a_line_for_each_row(outcome):
    report = outcome.report
    assert len(report.tables[0].lines) == len(outcome.finished)
    assert report.tables[0].lines[0]["N"] == 10
    assert json.loads(json.dumps(outcome.to_dict()))["figures"]["grid"][0] == -4.0


@pytest.mark.long
@pytest.mark.parametrize("n_rows", [1, 12])
def test_a_picture_is_drawn_of_whatever_is_finished(outcome, n_rows):
    figure = Figure1(**TINY).draw(outcome.finished[:n_rows])
    figure.draw_without_rendering()
    sizes = {row.settings["n_points"] for row in outcome.finished[:n_rows]}
    assert len(figure.axes) == 2 * len(sizes)
    assert figure.axes[-1].get_xlabel() == "x"
    assert "in nats" in figure.axes[0].get_ylabel()
