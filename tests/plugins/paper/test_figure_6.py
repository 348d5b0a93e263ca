"""Figure 6: marginals and their errors, what the report says of them, and tiny runs."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from surrokit.output.files import write_pictures
from surrokit_paper.chains import Marginals, largest_by_chance
from surrokit_paper.figure_6 import Figure6, differences
from surrokit_paper.harness import Conditions, Finished, reproduce

TINY = {
    "n_rows": 500,
    "dim": 3,
    "parameters": (1, 3),
    "burn_in": 120,
    "discard": 20,
    "draws": 300,
    "n_nodes": 60,
    "n_shown": 100,
}


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    return reproduce(Figure6(**TINY), tmp_path_factory.mktemp("figure-6"))


def one(experiment, name):
    (found,) = [row for row in experiment.rows() if row.name == name]
    return found


def marginals(means, sds, errors=0.1):
    size = len(means)
    return Marginals(
        means=np.array(means),
        mean_errors=np.full(size, errors),
        sds=np.array(sds),
        sd_errors=errors * np.array(sds),
        ess=np.full(size, 100.0),
    )


# --- report ---


def row(method, found, correlation=0.0):
    settings = {"method": method, "label": method.upper(), "parameters": [1, 2]}
    result = {
        **found.to_dict(),
        "acceptance": 0.75,
        "chains": 1,
        "seconds": {"warmup": 1.0, "training": 2.0, "sampling": 3.0},
        "calls": {"gradient": 70, "value": 7},
        "correlations": [[1.0, correlation], [correlation, 1.0]],
        "shown": [],
    }
    return Finished(name=method, settings=settings, result=result, seconds=6)


ROWS = [
    row("hmc", marginals([1.0, 2.0, 0.0], [1.0, 1.0, 2.0])),
    row("rns", marginals([1.0, 2.2, 0.0], [1.0, 1.0, 1.9]), correlation=-0.04),
]


def test_the_report_gives_the_largest_differences_and_what_chance_would():
    (found,) = differences(ROWS)
    assert (found["mean_parameter"], found["sd_parameter"]) == (2, 3)
    assert_allclose(found["mean_apart"], 0.2 / 0.02**0.5)
    assert_allclose(found["sd_apart"], np.log(2.0 / 1.9) / 0.02**0.5)
    assert_allclose(found["sd_relative"], 0.05)
    assert_allclose(found["correlation"], 0.04)
    assert_allclose(found["mean_in_sds"], 0.2)
    # relative errors of sds are 0.1 in both: each correlation has an error of 0.1 * sqrt(2)
    assert_allclose(found["correlation_apart"], 0.04 / 0.2)
    assert_allclose(found["chance"], largest_by_chance(3))
    assert_allclose(found["pairs_chance"], largest_by_chance(1))
    told = Figure6().report(ROWS)
    drawn, largest, costs = told.tables
    assert [tuple(line.values())[:3] for line in drawn.lines] == [
        ("beta_1", "HMC", 1.0),
        ("beta_1", "RNS", 1.0),
        ("beta_2", "HMC", 2.0),
        ("beta_2", "RNS", 2.2),
    ]
    assert [line["of"] for line in largest.lines] == [
        "means, in sds",
        "sds, relative",
        "correlations",
    ]
    assert (largest.lines[2]["method"], largest.lines[2]["largest"]) == ("RNS", 0.04)
    assert costs.lines[0]["seconds"] == 6.0
    printed = {figure.what: (figure.printed, figure.ours) for figure in told.printed}
    assert printed["acceptance, RNS (table 1)"] == (0.76, 0.75)
    json.dumps(told.figures)


def test_without_hmc_there_is_nothing_to_compare_with():
    assert differences(ROWS[1:]) == []
    assert [table.title for table in Figure6().report(ROWS[1:]).tables] == [
        "marginals, in log odds",
        "runs",
    ]


# --- runs ---


@pytest.mark.long
def test_rows_are_done_and_hold_what_the_picture_needs(outcome):
    assert [done.name for done in outcome.finished] == ["hmc", "rns", "defaults"]
    for done in outcome.finished:
        shown = np.array(done.result["shown"])
        assert shown.shape[1] == 2
        assert 100 <= len(shown) < 200
        means, sds = (np.array(done.result[name])[[0, 2]] for name in ("means", "sds"))
        assert_allclose(shown.mean(axis=0), means, atol=0.5 * sds.max())
        assert np.shape(done.result["correlations"]) == (2, 2)
        assert len(done.result["means"]) == len(done.result["sd_errors"]) == 3
        assert max(len(str(abs(number))) for number in shown.ravel()) <= 9


@pytest.mark.long
def test_the_three_agree(outcome):
    # false alarms: 1 % for each of six comparisons; the seed is fixed
    compared = differences(outcome.finished)
    assert [found["method"] for found in compared] == ["rns", "defaults"]
    for found in compared:
        assert found["mean_apart"] < found["chance"]
        assert found["sd_apart"] < found["chance"]
        assert found["correlation_apart"] < found["pairs_chance"]
        assert found["sd_relative"] < 0.35


@pytest.mark.long
def test_hmc_and_rns_run_as_in_the_paper(sampled):
    experiment = Figure6(**TINY)
    for name in ("hmc", "rns"):
        experiment.run(one(experiment, name), Conditions(seed=1))
    (hmc, exact), (rns, run) = sampled
    for arguments in (hmc, rns):
        paths = {"step_size": 0.045 * 200**0.5, "n_steps": 6}
        assert arguments["sampler"] == ("hmc", {"metric": "identity", **paths})
        assert arguments["chains"] == 1
        assert (arguments["warmup"], arguments["draws"]) == (120, 300)
        assert_allclose(arguments["initial"], 0.0)
    assert "surrogate" not in hmc
    assert rns["surrogate"] == ("additive-paper", {"n_nodes": 60, "ridge": 1e-6})
    assert rns["explorer"] == (
        "sampler",
        {"iterations": 120, "discard": 20, "learn_from": "states"},
    )
    schedule, safety = rns["schedule"]
    assert schedule == "once"
    assert safety.rescues == 0
    # exact gradients end with the burn-in; a value for each draw is paid from there on
    assert run.calls["gradient"] == run.warmup.calls["gradient"][-1]
    assert run.calls["value"] >= 300
    assert exact.calls["gradient"] > run.calls["gradient"]
    assert not np.allclose(exact.draws[0, 0], run.draws[0, 0])


def test_full_sizes_are_those_of_the_paper():
    by_name = {r.name: r.settings for r in Figure6().rows()}
    hmc, rns = by_name["hmc"], by_name["rns"]
    assert (hmc["step_size"], hmc["n_steps"], hmc["burn_in"], hmc["draws"]) == (
        0.045,
        6,
        5000,
        5000,
    )
    assert hmc["potential_settings"] == {"n_rows": 100_000, "dim": 50}
    assert rns["surrogate_settings"] == {"n_nodes": 2000, "ridge": 1e-6}
    assert rns["discard"] == 1000
    assert rns["parameters"] == (1, 11, 21, 31, 41)
    assert "burn_in" not in by_name["defaults"]


@pytest.mark.long
@pytest.mark.parametrize("chosen", [slice(0, 1), slice(1, 2), slice(None)])
def test_a_picture_is_drawn_of_whatever_is_finished(outcome, tmp_path, chosen):
    figure = Figure6(**TINY).draw(outcome.finished[chosen])
    if chosen == slice(None):
        for path in write_pictures(figure, tmp_path / "picture"):
            assert path.stat().st_size > 5000
    axes = np.array(figure.axes).reshape(2, 2)
    assert [ax.get_xlabel() for ax in axes[-1]] == ["β₁ (log odds)", "β₃ (log odds)"]
    assert axes[1, 0].get_ylabel() == "β₃ (log odds)"
    n = len(outcome.finished[chosen])
    assert len(axes[0, 0].lines) == len(axes[1, 1].lines) == len(axes[1, 0].collections) == n
    assert not axes[0, 1].axison


def test_a_single_parameter_has_no_pairs(tmp_path):
    outcome = reproduce(Figure6(**{**TINY, "parameters": 2}), tmp_path, only=["hmc", "rns"])
    experiment = Figure6(**{**TINY, "parameters": 2})
    assert differences(outcome.finished)[0]["correlation"] is None
    assert len(experiment.report(outcome.finished).tables[1].lines) == 2
    assert len(experiment.draw(outcome.finished).axes) == 1
