"""Figure 3: data, chains, report and picture, at tiny sizes."""

from __future__ import annotations

import json

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit_paper import figure_3
from surrokit_paper.figure_3 import (
    DIM,
    METHODS,
    Figure3,
    exact_evaluations,
    growth,
    growth_power,
    noisy_evaluations,
    over_repeats,
    square_root,
)
from surrokit_paper.harness import Conditions, Finished, reproduce

TINY = {"n_points": (100, 130), "repeats": 1, "burn_in": 3, "draws": 12}


@pytest.fixture(scope="module")
def small_networks():
    """The same surrogates with fewer nodes, so that tests take seconds."""
    patch = pytest.MonkeyPatch()
    small = []
    for method in METHODS:
        settings = {**method.settings}
        if method.surrogate in ("additive", "additive-paper", "rbf"):
            settings["n_nodes"] = 30
        if "n_inducing" in settings:
            settings["n_inducing"] = 20
        if method.surrogate in ("gp", "fitc"):
            settings["hyperparameters"] = {
                "length_scales": 2.0,
                "signal_sd": 10.0,
                "noise_sd": 0.1,
            }
        small.append(attrs.evolve(method, settings=settings))
    patch.setattr(figure_3, "METHODS", tuple(small))
    yield
    patch.undo()


@pytest.fixture(scope="module")
def outcome(tmp_path_factory, small_networks):
    return reproduce(Figure3(**TINY), tmp_path_factory.mktemp("figure-3"))


@pytest.mark.long
def test_every_surrogate_is_sampled_at_every_size(outcome):
    expected = {f"{method.name}/{n}/1" for method in METHODS for n in (100, 130)}
    assert {row.name for row in outcome.finished} == expected | {"hmc/exact/1"}
    assert not outcome.not_run


@pytest.mark.long
def test_results_hold_what_the_picture_needs(outcome):
    for row in outcome.finished:
        result = row.result
        assert 0.0 <= result["acceptance"] <= 1.0
        assert result["sampling_seconds"] > 0
        ess = result["ess"]
        assert 0.0 <= ess["min"] <= ess["mean"] <= ess["max"] <= 12
        assert_allclose(
            result["mean_ess_per_second"], ess["mean"] / result["sampling_seconds"], rtol=1e-9
        )
        assert ("training_seconds" in result) == (row.settings["method"] != "hmc")
        is_process = row.settings["method"] in ("gp", "fitc")
        assert (result.get("solve_seconds") is not None) == is_process


@pytest.mark.long
def test_gradients_make_the_better_surrogate(outcome):
    errors = {row.name: row.result.get("gradient_error") for row in outcome.finished}
    assert errors["additive-gradients/130/1"] < 0.2 < errors["additive-default/130/1"]


def test_the_settings_are_those_of_the_paper():
    by_name = {method.name: method for method in METHODS}
    assert by_name["fitc"].settings["n_inducing"] == 1000
    assert by_name["additive"].settings["n_nodes"] == by_name["rbf"].settings["n_nodes"] == 1000
    experiment = Figure3()
    assert experiment.n_points == (300, 600, 900, 1500, 2100, 3000)
    assert experiment.repeats == 10
    assert (experiment.burn_in, experiment.draws) == (400, 1600)
    assert (figure_3.STEP_SIZE, figure_3.N_STEPS) == (0.108, 30)


def test_no_more_points_are_inducing_than_can_be_drawn(monkeypatch):
    monkeypatch.setattr(figure_3, "METHODS", METHODS)
    rows = {row.name: row.settings for row in Figure3(n_points=(60, 3000), repeats=1).rows()}
    found = [rows[f"fitc/{n}/1"]["surrogate_settings"]["n_inducing"] for n in (60, 3000)]
    assert found == [54, 1000]


def test_chains_are_run_as_the_paper_says(monkeypatch):
    asked = {}
    real = sk.sample

    def watched(target, **arguments):
        asked.update(arguments)
        return real(target, **arguments)

    monkeypatch.setattr(sk, "sample", watched)
    experiment = Figure3(**TINY)
    (row,) = [row for row in experiment.rows() if row.name == "hmc/exact/1"]
    experiment.run(row, Conditions(seed=1))
    paths = {"step_size": 0.108, "n_steps": 30, "randomize": False}
    assert asked["sampler"] == ("hmc", {"metric": "identity", **paths})
    assert asked["chains"] == 1
    assert (asked["warmup"], asked["draws"], asked["surrogate"]) == (3, 12, None)
    assert_allclose(asked["initial"], np.zeros(DIM))


@pytest.mark.long
def test_hmc_accepts_about_as_often_as_the_paper_says():
    experiment = Figure3(n_points=60, repeats=1, burn_in=50, draws=600)
    result = experiment.run(experiment.rows()[0], Conditions(seed=1))
    assert 0.62 < result["acceptance"] < 0.82


# --- data ---


def test_draws_have_the_covariance_of_the_target():
    target = sk.make("potential", "gaussian-32")
    assert_allclose(square_root() @ square_root(), target.covariance, atol=1e-12)


def test_data_are_nested_and_noisy():
    target = sk.make("potential", "gaussian-32")

    def seen(n):
        return noisy_evaluations(target, n, 0.1, np.random.default_rng(5))

    few, many = seen(10), seen(2000)
    assert_allclose(few.positions, many.positions[:10])
    assert_allclose(few.values, many.values[:10])
    assert_allclose(few.gradients, many.gradients[:10])
    values, gradients = target.value_and_gradient(many.positions)
    assert 0.09 < (many.values - values).std() < 0.11
    assert 0.098 < (many.gradients - gradients).std() < 0.102


def test_exact_evaluations_have_no_noise():
    target = sk.make("potential", "gaussian-32")
    found = exact_evaluations(target, 20, np.random.default_rng(5))
    assert_allclose(found.values, target.value(found.positions))


def test_a_chain_that_never_moves_has_no_effective_draw(monkeypatch, small_networks):
    wrong = sk.potential(lambda q: -1e3 * q.sum(), lambda q: np.full(DIM, -1e3), dim=DIM)
    real = figure_3.train

    def badly(*given):
        return attrs.evolve(real(*given), potential=wrong)

    monkeypatch.setattr(figure_3, "train", badly)
    experiment = Figure3(**TINY)
    (row,) = [row for row in experiment.rows() if row.name == "additive-default/100/1"]
    result = experiment.run(row, Conditions(seed=1))
    assert result["acceptance"] == 0.0
    assert result["ess"] == {"min": 0.0, "mean": 0.0, "max": 0.0}
    assert result["mean_ess_per_second"] == 0.0


# --- report and picture ---


def row(method, n, repeat, **result):
    settings = {"method": method, "label": method.upper(), "n_points": n, "repeat": repeat}
    return Finished(name=f"{method}/{n}/{repeat}", settings=settings, result=result, seconds=1.0)


def test_medians_and_intervals_over_repeats():
    rows = [row("gp", 100, i, training_seconds=float(i), acceptance=0.5) for i in range(1, 12)]
    (group,) = over_repeats(rows)
    assert group["training_seconds"] == {"low": 2.0, "median": 6.0, "high": 10.0}
    assert group["acceptance"] == {"low": 0.5, "median": 0.5, "high": 0.5}
    assert group["repeats"] == 11
    assert "error" not in group


def test_powers_of_growth():
    sizes = (100, 200, 400, 800)
    rows = [row("gp", n, 1, training_seconds=1e-6 * n**3, acceptance=0.1) for n in sizes]
    rows += [row("fitc", n, 1, training_seconds=5.0 + 0.1 * n, acceptance=0.1) for n in sizes]
    rows += [row("rbf", 100, 1, training_seconds=1.0, acceptance=0.1)]
    rows += [row("hmc", 0, 1, acceptance=0.7)]
    powers = growth(over_repeats(rows), "training_seconds")
    assert_allclose([powers["gp"]["all"], powers["gp"]["upper_half"]], 3.0)
    assert powers["fitc"]["all"] < powers["fitc"]["upper_half"] < 1.0
    assert powers["rbf"] == {"all": None, "upper_half": None}
    assert "hmc" not in powers
    found = Figure3().report(rows)
    assert found.printed[0].ours == 0.7
    assert found.figures["power_of_training_time"] == powers


@pytest.mark.parametrize("power", [0.0, 1.0, 3.0])
def test_a_power_is_found(power):
    n = np.array([10.0, 30.0, 100.0])
    assert_allclose(growth_power(n, 2.0 * n**power), power, atol=1e-12)


def test_costs_that_are_unknown_are_left_out():
    assert_allclose(growth_power([1, 2, 4, 8], [1.0, np.nan, 4.0, 0.0]), 1.0)
    assert growth_power([1, 2], [1.0, np.nan]) is None
    assert growth_power([3, 3], [1.0, 2.0]) is None
    assert growth_power([], []) is None


@pytest.mark.long
def test_the_outcome_says_that_hyperparameters_are_counted(outcome):
    figures = json.loads(json.dumps(outcome.to_dict()))
    assert any("optimisation of hyperparameters; the paper's do" in n for n in figures["notes"])
    assert set(figures["figures"]["power_of_solving_time"]) == {"gp", "fitc"}
    assert set(figures["figures"]["power_of_training_time"]) == {m.name for m in METHODS}


@pytest.mark.long
@pytest.mark.parametrize("n_rows", [1, 13])
def test_a_picture_is_drawn_of_whatever_is_finished(outcome, n_rows):
    figure = Figure3(**TINY).draw(outcome.finished[:n_rows])
    figure.draw_without_rendering()
    labels = [ax.get_ylabel() for ax in figure.axes]
    assert labels[0] == "training time, in processor seconds"
    assert [ax.get_xlabel() for ax in figure.axes] == ["training points N"] * 3
