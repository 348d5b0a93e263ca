"""Table 1: accounting, agreement, tables and tiny runs."""

from __future__ import annotations

import time

import numpy as np
from numpy.testing import assert_allclose

from surrokit_paper import table_1
from surrokit_paper.table_1 import PRINTED, charged_seconds, seconds_of_call, summaries

TINY = {
    "burn_in": 200,
    "discard": 40,
    "draws": 120,
    "settling": 10,
    "riemannian_burn_in": 2,
    "riemannian_draws": 20,
    "n_nodes": 60,
    "n_rows": 400,
    "dim": 2,
}

# --- accounting ---

HMC_ROW = {
    "seconds": 40.0,
    "steps": 300,
    "draws": 100,
    "sampling_calls": {"value": 2, "gradient": 290},
    "value_seconds": 0.02,
    "gradient_seconds": 0.1,
}


def test_hmc_is_charged_two_gradients_a_step_and_a_value_a_draw():
    assert_allclose(charged_seconds(HMC_ROW), 40.0 + (600 - 290) * 0.1 + (100 - 2) * 0.02)


def test_calls_are_timed_one_position_at_a_time(monkeypatch):
    clock, seen = [0.0], []

    def slow(positions):
        clock[0] += 0.5
        seen.append(positions[:, 0].tolist())

    monkeypatch.setattr(time, "process_time", lambda: clock[0])
    assert seconds_of_call(slow, np.arange(300.0).reshape(100, 3)) == 0.5
    assert all(len(batch) == 1 for batch in seen)
    assert (seen[0], seen[-1]) == ([0.0], [297.0])


# --- tables ---


def row(method, problem="simulated", ess=(50.0, 80.0, 100.0), **more):
    """Return a finished case."""
    return {
        "problem": problem,
        "method": method,
        "acceptance": 0.7,
        "draws": 100,
        "ess_paper": list(ess),
        "ess_bulk": [60.0, 90.0, 120.0],
        "rhat": 1.0,
        "calls": {"value": 10, "gradient": 290, "rows": 0, "jacobian": 3},
        "sampling_calls": {"value": 0, "gradient": 200},
        "steps": 200,
        "seconds": 10.0,
        "all_seconds": 100.0,
        "value_seconds": 0.05,
        "gradient_seconds": 0.1,
        **more,
    }


SURROGATE = {"seconds": 2.0, "sampling_calls": {"value": 100, "gradient": 0}}
ROWS = [row("hmc"), row("rns-hmc", acceptance=0.6, **SURROGATE)]


def tables(rows):
    return list(table_1.report(rows, None)[0].values())


def test_speed_ups_are_ratios_of_effective_draws_a_second():
    hmc, rns = summaries(ROWS).values()
    assert_allclose((hmc["rate"], rns["rate"]), (5.0, 25.0))
    assert_allclose(hmc["charged_rate"], 50.0 / (10.0 + 200 * 0.1 + 100 * 0.05))
    assert np.isnan(rns["charged_rate"])
    paper, (speed,), everything = tables(ROWS)
    assert (speed["method"], speed["paper"]) == ("RNS-HMC", 8.72)
    assert_allclose((speed["as the authors count"], speed["as run"]), (17.5, 5.0))
    assert (paper[0]["AP: paper"], paper[0]["here"]) == (0.76, 0.7)
    assert paper[0]["ESS of 100 draws: paper"] == "87, 100, 100"
    assert paper[0]["here "] == "50, 80, 100"
    assert_allclose(everything[0]["calls for each effective draw"], 303 / 60)
    assert_allclose(everything[0]["effective draws a second"], 0.6)
    assert everything[0]["calls"] == "10 value, 290 gradient, 3 jacobian"
    assert len(PRINTED) == 16


def test_repeats_are_averaged_and_a_chain_that_never_moved_has_no_speed():
    twice = [row("hmc"), row("hmc", ess=(70.0, 90.0, 100.0), seconds=20.0)]
    (found,) = summaries(twice).values()
    assert_allclose(found["ess"], [60.0, 85.0, 100.0])
    assert_allclose(found["seconds"], 0.15)
    stuck = row("rns-hmc", ess=(None, None, None), acceptance=0.0)
    line = tables([row("hmc"), stuck])[0][1]
    assert (line["here"], line["here "]) == (0.0, None)
    assert np.isnan(line["here   "])


# --- runs ---


def test_calls_before_rmhmc_are_counted(sampled, run_case):
    result = run_case(table_1, "simulated/rmhmc/1", **TINY)
    (settling, fixed), (arguments, run) = sampled
    assert (settling["warmup"], settling["draws"]) == (0, 10)
    assert_allclose(arguments["initial"], fixed.draws[0, -1])
    for kind, n in result["calls"].items():
        assert n == fixed.calls[kind] + run.calls[kind]
    assert result["draws"] == 20


def test_an_algorithm_of_the_paper_has_no_fallback_and_a_default_has(sampled, run_case):
    found = run_case(table_1, "simulated/rns-hmc/1", **TINY)
    run_case(table_1, "simulated/gradients/1", **TINY, warmup=80)
    (paper, run), (ours, _) = sampled
    assert paper["schedule"][1].repairs == 0
    assert_allclose(paper["initial"], 0.0)
    assert "schedule" not in ours
    assert run.calls["gradient"] == run.warmup.calls["gradient"][-1]
    assert len(run.warmup) == 200
    assert run.adaptation.training_rows == 160  # the explorer learns from 160 states
    assert_allclose(found["ess_paper"], run.ess("paper"))
    kept = {kind: calls[-1] - run.warmup.calls[kind][-1] for kind, calls in run.kept.calls.items()}
    assert found["sampling_calls"] == kept
