"""Table 1: accounting, agreement, tables and tiny runs."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit_paper.chains import largest_by_chance
from surrokit_paper.harness import Conditions, Finished, reproduce
from surrokit_paper.table_1 import (
    PRINTED,
    Table1,
    agreement,
    agreements,
    ceilings,
    charged_seconds,
    measure,
    seconds_by_sensitivities,
    seconds_of_calls,
    summaries,
)
from surrokit_paper.table_1_methods import METHODS

TINY = {
    "problems": "simulated",
    "methods": ("hmc", "rmhmc", "rns-hmc", "rns-rmhmc", "gradients", "subsampled", "hmc-tuned"),
    "burn_in": 200,
    "discard": 40,
    "draws": 120,
    "settling": 10,
    "riemannian_burn_in": 2,
    "riemannian_draws": 20,
    "surrogate_riemannian_draws": 20,
    "warmup": 80,
    "n_nodes": 60,
    "convex_metric": "softabs",
    "n_rows": 400,
    "dim": 2,
}


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    return reproduce(Table1(**TINY), tmp_path_factory.mktemp("table-1"))


# --- accounting ---

HMC_ROW = {
    "seconds": {"sampling": 40.0, "all": 100.0},
    "steps": 300,
    "draws": 100,
    "sampling_calls": {"value": 2, "gradient": 290},
    "call_seconds": {"value": 0.02, "gradient": 0.1},
    "mean": [0.0] * 20,
}


def test_hmc_is_charged_two_gradients_a_step_and_a_value_a_draw():
    assert_allclose(charged_seconds(HMC_ROW), 40.0 + (600 - 290) * 0.1 + (100 - 2) * 0.02)


def test_no_surrogate_can_do_better_than_one_value_a_draw():
    as_run, charged = ceilings(HMC_ROW)
    assert_allclose(as_run, 2.9 * 0.1 / 0.02)
    assert_allclose(charged, (6 * 0.1 + 0.02) / 0.02)


def test_sensitivities_cost_a_solve_for_each_parameter():
    assert_allclose(seconds_by_sensitivities(HMC_ROW, 0.02, hmc=True), 700 * 21 * 0.02)
    surrogate = {**HMC_ROW, "sampling_calls": {"value": 95, "gradient": 0}}
    assert_allclose(seconds_by_sensitivities(surrogate, 0.02, hmc=False), 40.0 + 95 * 20 * 0.02)


def test_calls_are_timed_one_position_at_a_time(monkeypatch):
    clock = [0.0]
    seen = []

    def slow(seconds):
        def function(positions):
            clock[0] += seconds
            seen.append(positions[:, 0].tolist())

        return function

    target = type("Target", (), {})()
    target.value, target.value_and_gradient = slow(0.5), slow(2.0)
    monkeypatch.setattr(time, "process_time", lambda: clock[0])
    positions = np.arange(300.0).reshape(100, 3)
    assert seconds_of_calls(target, positions) == {"value": 0.5, "gradient": 2.0}
    assert all(len(batch) == 1 for batch in seen)
    assert (seen[0], seen[-1]) == ([0.0], [297.0])


# --- agreement ---


def result_of(mean, sd, mean_error=0.1, sd_error=0.1):
    n = len(mean)
    return {
        "mean": mean,
        "sd": sd,
        "mean_error": [mean_error] * n,
        "sd_error": [sd_error] * n,
    }


def test_differences_are_in_standard_errors_of_both():
    found = agreement(
        result_of([1.0, 2.0], [1.0, 2.2], 0.3, 0.03), result_of([1.0, 1.0], [1.0, 2.0], 0.4, 0.04)
    )
    assert_allclose((found["means"], found["sds"]), (1.0 / 0.5, 0.2 / 0.05))
    assert_allclose((found["sds_relative"], found["sds_error"]), (0.1, 0.05))
    assert found["chance"] == largest_by_chance(2)


def test_a_chain_that_never_moved_agrees_with_nothing():
    stuck = {**result_of([0.0], [0.0]), "mean_error": [None], "sd_error": [None]}
    found = agreement(stuck, result_of([0.0], [1.0]))
    assert (found["means"], found["sds"], found["sds_relative"]) == (None, None, 1.0)


@pytest.mark.long
def test_standard_errors_of_a_run_are_those_of_independent_draws():
    run = sk.sample(
        "gaussian",
        sampler="gaussian",
        surrogate="quadratic",
        explorer="rounds",
        draws=1500,
        seed=2,
        progress=False,
    )
    found = measure(run)
    n = found["draws"]
    assert n == 6000
    assert_allclose(found["mean_error"] / found["sd"], np.sqrt(1 / n), rtol=0.3)
    assert_allclose(found["sd_error"] / found["sd"], np.sqrt(0.5 / n), rtol=0.3)
    assert found["ess_paper"].max() <= n


# --- tables ---


def row(method, problem="simulated", seconds=10.0, ess=(50.0, 80.0, 100.0), **more):
    result = {
        "acceptance": 0.7,
        "chains": 1,
        "draws": 100,
        "ess_paper": list(ess),
        "ess_bulk": [60.0, 90.0, 120.0],
        **result_of([1.0, 2.0, 3.0], [1.0, 1.0, 1.0]),
        "rhat": 1.0,
        "calls": {"value": 10, "gradient": 290, "rows": 0, "jacobian": 3},
        "sampling_calls": {"value": 0, "gradient": 200},
        "steps": 200,
        "training_rows": 0,
        "failed_paths": 0,
        "choice": None,
        "seconds": {"sampling": seconds, "training": 1.0, "all": 100.0},
        "call_seconds": {"value": 0.05, "gradient": 0.1},
        **more,
    }
    arguments = {"surrogate": "additive"} if method.startswith("rns") else {}
    settings = {"problem": problem, "label": problem, "method": method, "arguments": arguments}
    return Finished(name=f"{problem}/{method}", settings=settings, result=result, seconds=1.0)


def cells(table, line):
    return table.lines[line]


def report(rows):
    return Table1().report(rows)


ROWS = [
    row("hmc"),
    row("rns-hmc", seconds=2.0, sampling_calls={"value": 100, "gradient": 0}, acceptance=0.6),
]


def test_speed_ups_are_ratios_of_effective_draws_a_second():
    hmc, rns = summaries(ROWS).values()
    assert_allclose((hmc["rate"], rns["rate"]), (5.0, 25.0))
    assert_allclose(hmc["charged_rate"], 50.0 / (10.0 + 200 * 0.1 + 100 * 0.05))
    assert rns["charged_rate"] is None
    told = report(ROWS)
    assert_allclose(cells(told.tables[0], 1)["over HMC's"], 5.0)
    speed = cells(told.tables[1], 0)
    assert (speed["method"], speed["paper"]) == ("RNS-HMC", 8.72)
    assert_allclose((speed["as the authors count"], speed["as run"]), (17.5, 5.0))
    assert_allclose((speed["at most"], speed["at most "]), (9.0, 4.0))
    assert speed["all sensitivities solved for"] is None
    printed = {figure.what: (figure.printed, figure.ours) for figure in told.printed}
    assert printed["AP, RNS-HMC, simulated"] == (0.76, 0.6)
    assert_allclose(printed["speed-up, RNS-HMC, simulated"], (8.72, 17.5))
    json.dumps(told.figures, allow_nan=False)


def test_the_elliptic_problem_is_also_charged_for_all_sensitivities():
    rows = [
        row("hmc", "pde"),
        row("rns-hmc", "pde", 2.0, sampling_calls={"value": 100, "gradient": 0}),
    ]
    hmc, rns = summaries(rows).values()  # three parameters
    assert_allclose(hmc["sensitivity_seconds"], (400 + 100) * 4 * 0.05 / 100)
    assert_allclose(rns["sensitivity_seconds"], (2.0 + 100 * 3 * 0.05) / 100)
    found = cells(report(rows).tables[1], 0)["all sensitivities solved for"]
    assert_allclose(found, hmc["sensitivity_seconds"] / rns["sensitivity_seconds"])


def test_costs_count_everything_and_list_what_is_not_value_or_gradient():
    line = cells(report(ROWS).tables[3], 0)
    assert_allclose(line["calls for each effective draw"], 303 / 60)
    assert_allclose(line["effective draws a second"], 0.6)
    assert (line["other calls"], line["data rows"]) == ("3 jacobian", None)


def test_the_paper_stands_beside_ours():
    line = cells(report(ROWS).tables[2], 0)
    assert (line["AP: paper"], line["here"]) == (0.76, 0.7)
    assert (line["ESS: paper"], line["here "]) == ("87, 100, 100", "50, 80, 100")
    assert len(PRINTED) == 16


def test_posteriors_are_compared_with_tuned_hmc_where_it_is_there():
    others = [*ROWS, row("hmc-tuned", mean=[1.0, 2.0, 4.0])]
    alone = agreements(summaries(ROWS))
    assert [(a["method"], b["method"]) for a, b, _ in alone] == [("rns-hmc", "hmc")]
    compared = agreements(summaries(others))
    assert [(a["method"], b["method"]) for a, b, _ in compared] == [
        ("hmc", "hmc-tuned"),
        ("rns-hmc", "hmc-tuned"),
    ]
    assert_allclose(compared[0][2]["means"], 1.0 / np.hypot(0.1, 0.1))


def test_repeats_are_averaged():
    (found,) = summaries([row("hmc"), row("hmc", ess=(70.0, 90.0, 100.0), seconds=20.0)]).values()
    assert (found["runs"], found["ess"]) == (2, [60.0, 85.0, 100.0])
    assert_allclose(found["seconds"], 0.15)


def test_a_chain_that_never_moved_has_no_speed():
    told = report([row("hmc"), row("rns-hmc", ess=(None, None, None), acceptance=0.0)])
    line = cells(told.tables[0], 1)
    assert (line["AP"], line["ESS: least"], line["min(ESS)/s"]) == (0.0, None, None)


def test_what_a_reader_must_know_is_noted():
    notes = " ".join(report([row("hmc"), row("automatic", choice="sampler='hmc'")]).notes)
    assert "two gradients a step" in notes
    assert "projection is lost" in notes
    assert "picked on simulated: sampler='hmc'" in notes
    assert "learns from a burn-in of exact HMC" in notes


# --- rows ---


def test_rows_have_the_papers_settings():
    rows = {r.name: r.settings for r in Table1().rows()}
    assert len(rows) == 4 * len(METHODS) - 4
    assert "pde/subsampled" not in rows
    assert "a9a/emulator" not in rows
    explorer = rows["bank/rns-hmc"]["arguments"]["explorer"][1]
    assert (explorer["iterations"], explorer["discard"]) == (5000, 1000)
    assert explorer["learn_from"] == "states"
    networks = {
        name: rows[f"{name}/{method}"]["arguments"]["surrogate"][1]
        for name in ("simulated", "bank", "a9a", "pde")
        for method in ("rns-hmc",)
    }
    assert networks == {
        "simulated": {"n_nodes": 2000, "ridge": 1e-6},
        "bank": {"n_nodes": 1000, "ridge": 1e-7},
        "a9a": {"n_nodes": 2500, "ridge": 1e-9},
        "pde": {"n_nodes": 1000, "ridge": 1e-7},
    }
    steps = {
        name: tuple(
            rows[f"{name}/rmhmc"]["arguments"]["sampler"][1][k] for k in ("step_size", "n_steps")
        )
        for name in ("simulated", "bank", "a9a", "pde")
    }
    assert steps == {"simulated": (0.54, 2), "bank": (0.4, 6), "a9a": (0.4, 4), "pde": (0.8, 3)}
    assert rows["a9a/hmc"]["potential_settings"] == {"projected": 60, "directions": "orthonormal"}
    assert rows["a9a/hmc"]["arguments"]["sampler"][1]["step_size"] == 0.012
    metrics = {n: rows[f"{n}/rns-rmhmc"]["arguments"]["sampler"][1]["metric"] for n in networks}
    assert metrics["pde"] == "hessian-diagonal"
    assert metrics["bank"] == ("hessian", {"trusted": True})


def test_repeats_are_in_the_names():
    names = [r.name for r in Table1(problems="pde", methods="hmc", repeats=2).rows()]
    assert names == ["pde/hmc/1", "pde/hmc/2"]


# --- runs ---


@pytest.mark.long
def test_all_rows_are_done_and_told(outcome):
    assert not outcome.not_run
    found = {method: one for (_, method), one in summaries(outcome.finished).items()}
    assert set(found) == set(TINY["methods"])
    assert 0.5 < found["hmc"]["acceptance"] <= 1.0
    assert found["hmc"]["draws"] == 120
    assert found["rmhmc"]["draws"] == 20
    assert found["subsampled"]["calls"]["rows"] > 0
    assert len(outcome.report.tables) == 5
    # the explorer learns from 160 states
    assert found["rns-hmc"]["training_rows"] == 160
    assert found["hmc"]["charged_seconds"] > found["hmc"]["seconds"]


@pytest.mark.long
def test_calls_before_rmhmc_are_counted(sampled):
    experiment = Table1(**{**TINY, "methods": "rmhmc"})
    (one,) = experiment.rows()
    result = experiment.run(one, Conditions(seed=1))
    (settling, settled), (arguments, run) = sampled
    assert (settling["warmup"], settling["draws"]) == (0, 10)
    assert_allclose(arguments["initial"], settled.draws[0, -1])
    for kind, n in result["calls"].items():
        assert n == settled.calls[kind] + run.calls[kind]


@pytest.mark.long
def test_an_algorithm_of_the_paper_has_no_net_and_a_default_has(sampled):
    experiment = Table1(**{**TINY, "methods": ("rns-hmc", "gradients")})
    for one in experiment.rows():
        experiment.run(one, Conditions(seed=1))
    (paper, run), (ours, _) = sampled
    assert paper["schedule"][1].rescues == 0
    assert_allclose(paper["initial"], 0.0)
    assert "schedule" not in ours
    assert run.calls["gradient"] == run.warmup.calls["gradient"][-1]
    assert len(run.warmup) == 200


@pytest.mark.long
@pytest.mark.parametrize("chosen", [slice(0, 1), slice(1, 3), slice(None)])
def test_a_picture_is_drawn_of_whatever_is_finished(outcome, chosen):
    figure = Table1(**TINY).draw(outcome.finished[chosen])
    figure.draw_without_rendering()
    (ax,) = figure.axes
    assert ax.get_xlabel() == "min(ESS) a second of sampling"


def test_a_missing_file_is_said_and_the_rest_goes_on(tmp_path):
    experiment = Table1(**{**TINY, "problems": ("simulated", "bank"), "methods": "hmc"})
    done = reproduce(experiment, tmp_path)
    assert [one.name for one in done.finished] == ["simulated/hmc"]
    assert "bank-additional-full.csv" in done.not_run["bank/hmc"]
