"""Figures 6 to 8: marginals, learning on the way, errors over time, and their reports."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit.errors import SurrogateFitError, TargetError
from surrokit_paper import chains
from surrokit_paper.chains import largest_by_chance
from surrokit_paper.figure_6 import Figure6
from surrokit_paper.figure_7 import Figure7, binned, curve, passed
from surrokit_paper.figure_8 import (
    Figure8,
    errors,
    means_at,
    part_below,
    relative_errors,
    with_gradients,
)
from surrokit_paper.harness import Conditions, reproduce

SMALL = {"n_rows": 300, "dim": 2, "burn_in": 5, "n_nodes": 20}

# --- figure 6 ---


def row_6(method, means, sds, correlation=0.0):
    return {
        "method": method,
        "mean": means,
        "mean_error": [0.1] * 3,
        "sd": sds,
        "sd_error": [0.1 * sd for sd in sds],
        "ess_bulk": [100.0] * 3,
        "acceptance": 0.75,
        "chains": 1,
        "seconds": 6.0,
        "gradients": 70,
        "values": 7,
        "parameters": [1, 2],
        "correlations": [[1.0, correlation], [correlation, 1.0]],
    }


OF_FIGURE_6 = [
    row_6("hmc", [1.0, 2.0, 0.0], [1.0, 1.0, 2.0]),
    row_6("rns", [1.0, 2.2, 0.0], [1.0, 1.0, 1.9], correlation=-0.04),
]
LARGEST = "largest differences from HMC"


def test_the_report_of_figure_6_gives_the_largest_differences_and_what_chance_would():
    report = Figure6().report(OF_FIGURE_6)
    marginals, largest, costs = report.tables.values()
    found = [[line[k] for k in ("largest", "in standard errors", "99% stay under")]
             for line in largest]  # fmt: skip
    # relative errors of sds are 0.1 in both: each correlation has an error of 0.1 * sqrt(2)
    assert_allclose(found[0], [0.2, 0.2 / 0.02**0.5, largest_by_chance(3)])
    assert_allclose(found[1], [0.05, np.log(2.0 / 1.9) / 0.02**0.5, largest_by_chance(3)])
    assert_allclose(found[2], [0.04, 0.04 / 0.2, largest_by_chance(1)])
    assert [line["of"] for line in largest] == ["means, in sds", "sds, relative", "correlations"]
    assert [tuple(line.values())[:3] for line in marginals] == [
        ("beta_1", "HMC", 1.0),
        ("beta_1", "RNS-HMC", 1.0),
        ("beta_2", "HMC", 2.0),
        ("beta_2", "RNS-HMC", 2.2),
    ]
    assert costs[0]["seconds"] == 6.0
    assert report.printed[1] == ("acceptance, RNS-HMC (table 1)", 0.76, 0.75)
    assert not Figure6().report(OF_FIGURE_6[1:]).tables[LARGEST]
    alone = [{**row, "parameters": [2], "correlations": [[1.0]]} for row in OF_FIGURE_6]
    assert len(Figure6().report(alone).tables[LARGEST]) == 2


def test_the_runs_of_figure_6_are_as_in_the_paper_and_agree(tmp_path, sampled):
    sizes = {"n_rows": 500, "dim": 3, "n_nodes": 60, "burn_in": 120, "discard": 20, "draws": 300}
    figure = Figure6(**sizes, parameters=(1, 3), n_shown=100)
    found = reproduce(figure, tmp_path, Conditions(seed=1), only=["hmc", "rns"])
    (hmc, exact), (rns, run) = sampled
    for arguments in (hmc, rns):
        paths = {"step_size": 0.045 * 200**0.5, "n_steps": 6}
        assert arguments["sampler"] == ("hmc", {"metric": "identity", **paths})
        assert [arguments[name] for name in ("chains", "warmup", "draws")] == [1, 120, 300]
        assert_allclose(arguments["initial"], 0.0)
    assert "surrogate" not in hmc
    assert rns["surrogate"] == ("additive-paper", {"n_nodes": 60, "ridge": 1e-6})
    learning = {"iterations": 120, "discard": 20, "learn_from": "states"}
    assert rns["explorer"] == ("sampler", learning)
    assert (rns["schedule"][0], rns["schedule"][1].rescues) == ("once", 0)
    # exact gradients end with the burn-in; a value for each draw is evaluated from there on
    assert run.calls["gradient"] == run.warmup.calls["gradient"][-1] < exact.calls["gradient"]
    assert run.calls["value"] >= 300
    # false alarms: 1 % for each of three comparisons; the seed is fixed
    for line in found.report().tables[LARGEST]:
        assert line["in standard errors"] < line["99% stay under"]
    assert np.shape(found.rows[0]["shown"]) == (100, 2)
    axes = np.array(figure.draw(found.rows).axes).reshape(2, 2)
    assert [ax.get_xlabel() for ax in axes[-1]] == ["β₁ (log odds)", "β₃ (log odds)"]
    assert len(axes[0, 0].lines) == len(axes[1, 0].collections) == 2
    assert not axes[0, 1].axison


# --- figure 7 ---

OF_FIGURE_7 = {**SMALL, "repeats": 2, "n_bins": 5, "draws": 20}
OF_FIGURE_7 |= {"paper_points": (30, 80), "defaults_points": (10, 40), "emulator_points": (15, 24)}


def test_bins_hold_their_left_edge_and_average_what_falls_into_them():
    found = binned([9, 10, 15, 20, 29, 40, 55], [0, 0.2, 0.4, 1, 0, 0.7, 1], [10, 20, 30, 40, 50])
    assert_allclose(found[:2], [0.3, 0.5])
    assert found[2:] == [None, 0.7]


@pytest.mark.parametrize(
    ("level", "medians", "expected"),
    [
        (0.7, (0.1, None, 0.7, 0.5, 0.7, 0.8), (300, 500)),
        (0.9, (0.1, None, 0.7, 0.5, 0.7, 0.8), (None, None)),
        (0.7, (0.9, 0.1), (100, None)),
        (0.7, (0.7, None), (100, 100)),
    ],
)
def test_where_a_level_is_reached_at_first_and_for_good(level, medians, expected):
    ends = [100 * (i + 1) for i in range(len(medians))]
    assert passed({"ends": ends, "median": medians}, level) == expected


def of_hmc(acceptance, problem="bank"):
    return {"method": "hmc", "problem": problem, "acceptance": acceptance}


def learnt(repeat, acceptance):
    edges = list(range(0, 100 * len(acceptance) + 1, 100))
    numbers = {"starting_points": 50 + repeat, "deployments": 7, "seconds": 2.0}
    return {**of_hmc(acceptance), "method": "paper", **numbers, "edges": edges}


def test_a_curve_is_the_median_over_runs_with_a_90_per_cent_band():
    runs = [[i / 20, None, 0.5, 0.5, 0.6, None, 0.6, 0.8] for i in range(21)]
    runs[3][1] = 0.8
    rows = [learnt(i, acceptance) for i, acceptance in enumerate(runs)]
    found = curve(rows)
    assert_allclose(found["ends"], range(100, 900, 100))
    names = ("low", "median", "high")
    assert_allclose([found[name][:2] for name in names], [(0.05, 0.8), (0.5, 0.8), (0.95, 0.8)])
    assert np.isnan(found["median"][5])
    (line,) = Figure7().report(rows).tables[""]
    assert_allclose(line["at the end"], 0.7)  # of the last quarter
    (line,) = Figure7().report([learnt(1, [0.3, 0.3, 0.3, None])]).tables[""]
    names = ("at the end", "HMC's acceptance", "0.9 of HMC's after", "for good after")
    assert [line[name] for name in names] == [None] * 4


def test_the_report_says_after_how_many_points_nine_tenths_of_hmc_are_reached():
    runs = [0.1, 0.7, 0.7, 0.8], [0.2, 0.7, 0.73, 0.8], [0.3, 0.74, 0.75, 0.8]
    rows = [of_hmc(0.7), of_hmc(0.9), *(learnt(i + 1, run) for i, run in enumerate(runs))]
    report = Figure7().report(rows)
    ((line,),) = report.tables.values()
    names = "HMC's acceptance", "0.9 of HMC's after", "for good after", "starting points", "runs"
    assert_allclose([line[name] for name in names], [0.8, 300, 300, 52, 3])
    assert_allclose(report.printed[0][1:], (0.70, 0.8))
    what, paper, ours = report.printed[1]
    assert (what, paper) == ("ARNS-HMC's acceptance at the end over HMC's, bank", "comparable")
    assert_allclose(ours, 1.0)
    assert Figure7().report([of_hmc(0.9, "pde")]).printed[0][1:] == (0.91, 0.9)


@pytest.mark.parametrize(("method", "gradients"), [("paper", "never"), ("defaults", "warmup")])
def test_a_curve_counts_no_exact_transition(sampled, run_case, method, gradients):
    result = run_case(Figure7(**OF_FIGURE_7), f"simulated/{method}/1")
    (burn_in, _), (arguments, run) = sampled
    assert (burn_in["warmup"], burn_in["draws"], arguments["chains"]) == (5, 1, 1)
    paths = {"step_size": 0.045 * np.sqrt(100_000 / 300), "n_steps": 6}
    assert arguments["sampler"] == ("hmc", {"metric": "identity", **paths})
    (_, settings), safety = arguments["schedule"]
    assert (settings["derivatives"], safety.rescues) == (gradients, 0)
    first = run.adaptation.deployments[0]
    evaluated = run.warmup.calls["value"] + run.warmup.calls["gradient"]
    before, edges = evaluated[first - 1 : -1], np.array(result["edges"])
    for low, high, mean in zip(edges, edges[1:], result["acceptance"], strict=False):
        here = run.warmup.acceptance[0, first:][(low <= before) & (before < high)]
        assert (mean is None) == (here.size == 0)
        assert mean is None or mean == pytest.approx(here.mean())
    values_alone = run.calls["gradient"] == run.warmup.calls["gradient"][first - 1]
    assert values_alone == (method == "paper")


def test_only_the_emulator_sees_outputs_of_the_forward_map(sampled, run_case):
    figure = Figure7(**{**OF_FIGURE_7, "mesh": 4, "draws": 2})
    starts = []
    for name in ("emulator", "hmc"):
        run_case(figure, f"pde/{name}/1")
        (_, exact), (arguments, run) = sampled[-2:]
        # one place from which all start: the burn-in is the same for all of them
        assert exact.calls["jacobian"] == 0 < exact.calls["gradient"]
        starts.append(arguments["initial"])
        kinds = {kind for kind, count in run.calls.items() if count}
        # the check of the gradient takes two values
        expected = {"forward", "jacobian"} if name == "emulator" else {"gradient"}
        assert kinds - {"value"} == expected
    assert_allclose(*starts, rtol=0)


def test_a_surrogate_that_never_came_is_an_error(run_case):
    with pytest.raises(SurrogateFitError, match="no surrogate could be fitted within 2 training"):
        run_case(Figure7(**{**OF_FIGURE_7, "defaults_points": (1, 2)}), "simulated/defaults/1")


@pytest.mark.parametrize(("name", "file"), [("bank", "bank-additional-full.csv"), ("a9a", "a9a")])
def test_a_missing_file_is_said_and_the_rest_goes_on(tmp_path, name, file):
    figure, out = Figure7(**{**OF_FIGURE_7, "repeats": 1}), tmp_path / "out"
    found = reproduce(figure, out, Conditions(), [f"{name}/hmc", "simulated/hmc"])
    assert [row["problem"] for row in found.rows] == ["simulated"]
    (reason,) = found.reasons.values()
    assert f"this needs the file {file}; give its folder with --data" in reason
    assert "https://" in reason
    (tmp_path / f"{file}.gz").write_bytes(b"no data")
    case = {"problem": name, "method": "hmc", "repeat": 1}
    with pytest.raises(TargetError, match="could not be read"):
        figure.run(case, Conditions(data=tmp_path))


# --- figure 8 ---

TICK = 1e-3
OF_FIGURE_8 = {**SMALL, "repeats": 1, "seconds": 0.3, "n_times": 6, "rns_values": 40}
OF_FIGURE_8 |= {"reference_draws": 200}


def test_means_are_of_the_draws_that_were_there_and_errors_relative_to_the_norm():
    draws = [[2.0, 0.0], [4.0, 2.0], [6.0, 7.0]]
    found = means_at(draws, [1.0, 2.0, 4.0], [0.5, 1.0, 3.0, 4.0, 4.5])
    assert found == [None, [2.0, 0.0], [3.0, 1.0], [4.0, 3.0], None]
    assert_allclose(relative_errors([None, [3, 4], [3, 9]], [3.0, 4.0]), [np.nan, 0.0, 1.0])
    rng = np.random.default_rng(1)
    many, truth = rng.standard_normal((50, 3)) + 2.0, np.full(3, 2.0)
    seconds = np.arange(1.0, 51.0)
    found = relative_errors(means_at(many, seconds, seconds), truth)
    assert_allclose(found, sk.relative_error_of_mean(many[None], truth)[0])


def test_times_count_by_their_length():
    times, theirs = [1.0, 2.0, 4.0, 8.0], [1.0, 1.0, 1.0, 1.0]
    assert_allclose(part_below(times, [0.5, 2.0, 0.5, 0.5], theirs, 0.0), 7 / 8)
    assert_allclose(part_below(times, [0.5, 2.0, 0.5, 2.0], theirs, 3.0), 1 / 5)
    assert_allclose(part_below(times, [0.5, 2.0, np.nan, 0.5], theirs, 0.0), 5 / 6)
    assert part_below(times, [1.0] * 4, theirs, 0.0) == 0.0
    assert part_below(times, [0.5] * 4, theirs, 9.0) is None
    assert part_below(times, [np.nan] * 4, theirs, 0.0) is None


def test_control_variates_keep_the_mean_and_leave_nothing_else_of_a_normal_target():
    rng = np.random.default_rng(2)
    mean, factor = np.array([1.0, -2.0, 0.5]), np.tril(rng.standard_normal((3, 3))) + 2 * np.eye(3)
    draws = mean + rng.standard_normal((2, 30, 3)) @ factor.T
    gradients = (draws - mean) @ np.linalg.inv(factor @ factor.T)
    controlled = with_gradients(draws, gradients)
    assert_allclose(controlled, np.broadcast_to(mean, draws.shape), atol=1e-12)
    # q = log of a gamma variable of shape 3: U = exp(q) - 3 q, E q = digamma(3); over so many
    # independent draws five standard errors are passed once in two million times
    draws = np.log(np.random.default_rng(3).gamma(3.0, size=(4, 5000, 1)))
    controlled = with_gradients(draws, np.exp(draws) - 3.0)
    error = controlled.std() / np.sqrt(controlled.size)
    assert abs(controlled.mean() - (1.5 - np.euler_gamma)) < 5 * error
    assert error < 0.5 * draws.std() / np.sqrt(draws.size)


def reference(rhat=1.0, relative_error=1e-5, problem="bank"):
    off = {"relative_error": relative_error, "plain_error": 1e-4}
    of = {"method": "reference", "problem": problem, "repeat": 1}
    return {**of, "mean": [3.0, 4.0], "rhat": rhat, "acceptance": 0.7, **off}


def of_method(method, repeat, offsets, start=None):
    means = [None if offset is None else [3.0 + offset, 4.0] for offset in offsets]
    return {
        "method": method,
        "problem": "bank",
        "repeat": repeat,
        "times": [1.0, 2.0, 4.0, 10.0],
        "means": means,
        "draws": 100,
        "acceptance": 0.7,
        "training_seconds": 0.5,
        "starting_seconds": start,
    }


OF_METHODS = [
    *(of_method("hmc", i, [None, 2.0, 1.0, 0.5 * i]) for i in (1, 2, 3)),
    of_method("rns-paper", 1, [None, 3.0, 3.0, 0.5], start=5.0),
    of_method("arns-paper", 1, [4.0, 3.0, 0.5, 0.25], start=1.0),
]


def test_methods_are_compared_from_twice_the_starting_phase_on():
    rows = [reference(), *OF_METHODS]
    hmc, _, arns = errors(rows).values()
    assert len(hmc["runs"]) == 3
    assert_allclose(hmc["median"], [np.nan, 0.4, 0.2, 0.2])
    assert_allclose([hmc["low"][-1], hmc["high"][-1]], [0.11, 0.29])
    assert_allclose(arns["median"], [0.8, 0.6, 0.1, 0.05])
    report = Figure8().report(rows)
    lines, known = report.tables.values()
    assert [line["part of the time below HMC's"] for line in lines] == [None, 6 / 8, 1.0]
    assert_allclose([line["error at the end"] for line in lines], [0.2, 0.1, 0.05])
    assert list(known[0].values()) == ["Bank Marketing", 1.0, 0.7, 1e-5, 1e-4]
    assert report.printed[0][1:] == ("best overall, lowest early", 1.0)


def test_a_reference_that_is_doubtful_coarse_or_missing_is_noted():
    def noted(*references):
        return " ".join(Figure8().report([*references, *OF_METHODS]).notes)

    assert "raise reference_draws" not in noted(reference())
    # the least error at the end is 0.05
    assert "bank has R-hat 1.02 and is off by about 1e-05, where" in noted(reference(1.02))
    assert "bank has R-hat None" in noted(reference(None))
    assert "is off by about 0.02, where the least error is 0.05" in noted(reference(1.0, 0.02))
    assert "no errors are known without bank/reference/1" in noted()


def test_all_draws_since_the_burn_in_count(sampled, run_case, monkeypatch):
    ticks = itertools.count()  # a processor that takes a millisecond for every iteration
    monkeypatch.setattr(chains, "time", SimpleNamespace(process_time=lambda: TICK * next(ticks)))
    monkeypatch.setattr(chains.Clock, "surrokit_surrogate_deployed", lambda self, **_: None)
    result = run_case(Figure8(**OF_FIGURE_8), "simulated/arns-paper/1")
    (burn_in, _), (arguments, run) = sampled
    assert (burn_in["warmup"], burn_in["draws"], "surrogate" in burn_in) == (5, 1, False)
    schedule, safety = arguments["schedule"]
    settings = {"kappa": 0.6, "freeze_after": None, "derivatives": "never"}
    assert (schedule, safety.rescues) == (("greville", settings), 0)
    assert arguments["explorer"] == ("sampler", {"evaluations": 500})
    draws = np.concatenate([run.warmup.draws[0], run.kept.draws[0]])
    assert result["draws"] == len(draws)
    assert abs(len(draws) - 0.3 / TICK) < 2
    seconds = TICK * (1 + np.arange(len(draws)))
    assert_allclose(result["times"], np.geomspace(0.0003, 0.3, 6))
    assert result["means"] == means_at(draws, seconds, result["times"])
    assert_allclose(result["means"][-1], draws.mean(axis=0), rtol=0.01)
    first = run.adaptation.deployments[0]
    assert_allclose(result["starting_seconds"], seconds[first - 1])
    accepted = np.concatenate([run.warmup.accepted[0], run.kept.accepted[0]])
    assert_allclose(result["acceptance"], accepted[first:].mean())


@pytest.mark.parametrize(("scheme", "rescues"), [("paper", 0), ("defaults", None)])
def test_an_algorithm_of_the_paper_has_no_fallback_and_the_defaults_are_as_they_come(
    scheme, rescues
):
    figure = Figure8(**OF_FIGURE_8)
    parts = figure._learning("rns", scheme, figure.problem("simulated"))
    assert (parts["warmup"], parts["explorer"]) == (
        (1000, None) if scheme == "defaults" else (40, ("sampler", {"evaluations": 40}))
    )
    schedule = parts["schedule"]
    assert (schedule[1].rescues if rescues == 0 else None) == rescues


@pytest.mark.long
def test_a_reference_is_right_and_its_error_small(run_case):
    found = run_case(Figure8(**OF_FIGURE_8), "simulated/reference")
    assert len(found["mean"]) == 2
    assert found["rhat"] < 1.1
    assert 0.0 < found["relative_error"] < 0.5 * found["plain_error"] < 0.1


def test_a_scheme_has_panels_where_it_applies():
    more = of_method("arns-emulator", 1, [4.0, 3.0, 0.5, 0.25], start=1.0)
    pde = [{**one, "problem": "pde"} for one in (reference(), *OF_METHODS, more)]
    axes = Figure8().draw([reference(), *OF_METHODS, *pde]).axes
    assert [ax.axison for ax in axes] == [True, True, False, True]
    assert [len(ax.lines) for ax in axes if ax.axison] == [5, 5, 3]
