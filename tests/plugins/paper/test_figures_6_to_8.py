"""Figures 6 to 8: marginals, learning on the way, errors over time, and their reports."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit.errors import SurrogateFitError, TargetError
from surrokit_paper import chains
from surrokit_paper.chains import largest_by_chance
from surrokit_paper.figure_6 import Figure6, differences
from surrokit_paper.figure_7 import Figure7, binned, passed, summaries
from surrokit_paper.figure_8 import (
    Figure8,
    comparison,
    errors,
    means_at,
    panels,
    part_below,
    relative_errors,
    with_gradients,
)
from surrokit_paper.harness import Conditions, reproduce

SMALL = {"problems": "simulated", "n_rows": 300, "dim": 2, "burn_in": 5, "n_nodes": 20}

# --- figure 6 ---

OF_FIGURE_6 = {"n_rows": 500, "dim": 3, "parameters": (1, 3), "n_nodes": 60, "n_shown": 100}
OF_FIGURE_6 |= {"burn_in": 120, "discard": 20, "draws": 300}


@pytest.fixture
def of_figure_6(finished):
    def row(method, means, sds, correlation=0.0):
        result = {
            "means": means,
            "mean_errors": [0.1] * 3,
            "sds": sds,
            "sd_errors": [0.1 * sd for sd in sds],
            "ess": [100.0] * 3,
            "acceptance": 0.75,
            "chains": 1,
            "seconds": {"warmup": 1.0, "training": 2.0, "sampling": 3.0},
            "calls": {"gradient": 70, "value": 7},
            "correlations": [[1.0, correlation], [correlation, 1.0]],
        }
        settings = {"method": method, "label": method.upper(), "parameters": [1, 2]}
        return finished(method, settings, result)

    return [
        row("hmc", [1.0, 2.0, 0.0], [1.0, 1.0, 2.0]),
        row("rns", [1.0, 2.2, 0.0], [1.0, 1.0, 1.9], correlation=-0.04),
    ]


def test_the_report_of_figure_6_gives_the_largest_differences_and_what_chance_would(of_figure_6):
    (found,) = differences(of_figure_6)
    assert (found["mean_parameter"], found["sd_parameter"]) == (2, 3)
    assert_allclose(found["mean_apart"], 0.2 / 0.02**0.5)
    assert_allclose(found["sd_apart"], np.log(2.0 / 1.9) / 0.02**0.5)
    assert_allclose([found["sd_relative"], found["mean_in_sds"]], [0.05, 0.2])
    # relative errors of sds are 0.1 in both: each correlation has an error of 0.1 * sqrt(2)
    assert_allclose([found["correlation"], found["correlation_apart"]], [0.04, 0.04 / 0.2])
    assert_allclose(found["chance"], largest_by_chance(3))
    assert_allclose(found["pairs_chance"], largest_by_chance(1))
    report = Figure6().report(of_figure_6)
    drawn, largest, costs = report.tables.values()
    assert [tuple(line.values())[:3] for line in drawn] == [
        ("beta_1", "HMC", 1.0),
        ("beta_1", "RNS", 1.0),
        ("beta_2", "HMC", 2.0),
        ("beta_2", "RNS", 2.2),
    ]
    assert [line["of"] for line in largest] == ["means, in sds", "sds, relative", "correlations"]
    assert (largest[2]["method"], largest[2]["largest"]) == ("RNS", 0.04)
    assert costs[0]["seconds"] == 6.0
    assert report.printed[1] == ("acceptance, RNS (table 1)", 0.76, 0.75)
    assert differences(of_figure_6[1:]) == []
    alone = Figure6().report(of_figure_6[1:]).tables
    assert list(alone) == ["marginals, in log odds", "runs"]


def test_the_runs_of_figure_6_are_as_in_the_paper_and_agree(tmp_path, sampled):
    experiment = Figure6(**OF_FIGURE_6)
    work = reproduce(experiment, tmp_path, only=["hmc", "rns"])
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
    # exact gradients end with the burn-in; a value for each draw is paid from there on
    assert run.calls["gradient"] == run.warmup.calls["gradient"][-1] < exact.calls["gradient"]
    assert run.calls["value"] >= 300
    # false alarms: 1 % for each of three comparisons; the seed is fixed
    (found,) = differences(work.finished)
    assert max(found["mean_apart"], found["sd_apart"]) < found["chance"]
    assert found["correlation_apart"] < found["pairs_chance"]
    shown = np.array(work.finished[0].result["shown"])
    assert shown.shape == (100, 2)
    axes = np.array(experiment.draw(work.finished).axes).reshape(2, 2)
    assert [ax.get_xlabel() for ax in axes[-1]] == ["β₁ (log odds)", "β₃ (log odds)"]
    assert len(axes[0, 0].lines) == len(axes[1, 0].collections) == 2
    assert not axes[0, 1].axison
    alone = [attrs.evolve(r, settings={**r.settings, "parameters": [2]}) for r in work.finished]
    assert differences(alone)[0]["correlation"] is None
    assert len(experiment.report(alone).tables["largest differences from HMC"]) == 2
    assert len(experiment.draw(alone).axes) == 1


# --- figure 7 ---

OF_FIGURE_7 = {**SMALL, "repeats": 2, "n_bins": 5, "draws": 20}
OF_FIGURE_7 |= {"paper_points": (30, 80), "default_points": (10, 40), "emulator_points": (15, 24)}


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


@pytest.fixture
def of_hmc(finished):
    def row(acceptance, problem="bank"):
        settings = {"method": "hmc", "problem": problem, "label": problem.upper()}
        return finished(f"{problem}/hmc/1", settings, {"acceptance": acceptance})

    return row


@pytest.fixture
def learnt(finished):
    def row(repeat, acceptance, method="paper"):
        numbers = {"starting_points": 50 + repeat, "points": 400, "deployments": 7}
        numbers |= {"seconds": 2.0, "training_seconds": 1.0, "acceptance": acceptance}
        edges = list(range(0, 100 * len(acceptance) + 1, 100))
        settings = {"method": method, "problem": "bank", "label": "BANK", "repeat": repeat}
        return finished(f"bank/{method}/{repeat}", settings, {**numbers, "edges": edges})

    return row


def test_a_curve_is_the_median_over_runs_with_a_90_per_cent_band(learnt):
    runs = [[i / 20, None, 0.5, 0.5, 0.6, None, 0.6, 0.8] for i in range(21)]
    runs[3][1] = 0.8
    (found,) = summaries([learnt(i, acceptance) for i, acceptance in enumerate(runs)])
    curve = found["curve"]
    assert curve["ends"] == list(range(100, 900, 100))
    names = ("low", "median", "high")
    assert_allclose([curve[name][:2] for name in names], [(0.05, 0.8), (0.5, 0.8), (0.95, 0.8)])
    assert curve["median"][5] is None
    assert_allclose(found["last"], 0.7)  # of the last quarter
    assert summaries([learnt(1, [0.3, 0.3, 0.3, None])])[0]["last"] is None


def test_the_report_says_after_how_many_points_nine_tenths_of_hmc_are_reached(of_hmc, learnt):
    runs = [0.1, 0.7, 0.7, 0.8], [0.2, 0.7, 0.73, 0.8], [0.3, 0.74, 0.75, 0.8]
    rows = [of_hmc(0.7), of_hmc(0.9), *(learnt(i + 1, run) for i, run in enumerate(runs))]
    (found,) = summaries(rows)
    assert_allclose([found["hmc"], found["last_ratio"]], [0.8, 1.0])
    assert found["reached"] == found["stays"] == 300
    report = Figure7().report(rows)
    ((line,),) = report.tables.values()
    assert (line["0.9 of HMC's after"], line["starting points"], line["runs"]) == (300, 52, 3)
    assert_allclose(report.printed[0][1:], (0.70, 0.8))
    assert report.printed[1][:2] == (
        "ARNS-HMC's acceptance at the end over HMC's, bank",
        "comparable",
    )
    assert Figure7().report([of_hmc(0.9, "pde")]).printed[0][1:] == (0.91, 0.9)
    (found,) = summaries(rows[2:])
    assert [found[n] for n in ("hmc", "reached", "stays", "last_ratio")] == [None] * 4


@pytest.mark.parametrize(("method", "gradients"), [("paper", "never"), ("defaults", "warmup")])
def test_a_curve_counts_no_exact_transition(sampled, run_row, method, gradients):
    result = run_row(Figure7(**OF_FIGURE_7), f"simulated/{method}/1")
    (burn_in, _), (arguments, run) = sampled
    assert (burn_in["warmup"], burn_in["draws"], arguments["chains"]) == (5, 1, 1)
    paths = {"step_size": 0.045 * np.sqrt(100_000 / 300), "n_steps": 6}
    assert arguments["sampler"] == ("hmc", {"metric": "identity", **paths})
    (_, settings), safety = arguments["schedule"]
    assert (settings["derivatives"], safety.rescues) == (gradients, 0)
    first = run.adaptation.deployments[0]
    paid = run.warmup.calls["value"] + run.warmup.calls["gradient"]
    before, edges = paid[first - 1 : -1], np.array(result["edges"])
    for low, high, mean in zip(edges, edges[1:], result["acceptance"], strict=False):
        chosen = run.warmup.acceptance[0, first:][(low <= before) & (before < high)]
        assert (mean is None) == (chosen.size == 0)
        assert mean is None or mean == pytest.approx(chosen.mean())
    values_alone = run.calls["gradient"] == run.warmup.calls["gradient"][first - 1]
    assert values_alone == (method == "paper")


def test_only_the_emulator_sees_outputs_of_the_forward_map(sampled, run_row):
    experiment = Figure7(**{**OF_FIGURE_7, "problems": "pde", "mesh": 4, "draws": 2})
    starts = []
    for name in ("emulator", "hmc"):
        run_row(experiment, f"pde/{name}/1")
        (_, exact), (arguments, run) = sampled[-2:]
        # one place from which all start: the burn-in is the same for all of them
        assert exact.calls["jacobian"] == 0 < exact.calls["gradient"]
        starts.append(arguments["initial"])
        paid = {kind for kind, count in run.calls.items() if count}
        # the check of the gradient takes two values
        assert paid - {"value"} == ({"forward", "jacobian"} if name == "emulator" else {"gradient"})
    assert_allclose(*starts, rtol=0)


def test_a_surrogate_that_never_came_is_an_error(run_row):
    with pytest.raises(SurrogateFitError, match="no surrogate could be fitted within 2 training"):
        run_row(Figure7(**{**OF_FIGURE_7, "default_points": (1, 2)}), "simulated/defaults/1")


@pytest.mark.parametrize(("name", "file"), [("bank", "bank-additional-full.csv"), ("a9a", "a9a")])
def test_a_missing_file_is_said_and_the_rest_goes_on(tmp_path, name, file):
    experiment = Figure7(**{**OF_FIGURE_7, "problems": ("simulated", name), "repeats": 1})
    work = reproduce(experiment, tmp_path / "out", only=["simulated/hmc", f"{name}/hmc"])
    assert [done.name for done in work.finished] == ["simulated/hmc/1"]
    (reason,) = work.not_run.values()
    assert f"this needs the file {file}; give its folder with --data" in reason
    assert "https://" in reason
    (tmp_path / f"{file}.gz").write_bytes(b"no data")
    with pytest.raises(TargetError, match="could not be read"):
        experiment.run(experiment.rows()[3], Conditions(seed=1, data=tmp_path))


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


@pytest.fixture
def reference(finished):
    def row(rhat=1.0, relative_error=1e-5):
        off = {"relative_error": relative_error, "plain_error": 1e-4}
        result = {"mean": [3.0, 4.0], "rhat": rhat, "acceptance": 0.7, **off}
        settings = {"method": "reference", "problem": "bank", "label": "Bank"}
        return finished("bank/reference", settings, result)

    return row


@pytest.fixture
def of_method(finished):
    def row(method, repeat, offsets, start=None):
        settings = {"method": method, "problem": "bank", "label": "Bank"}
        means = [None if offset is None else [3.0 + offset, 4.0] for offset in offsets]
        result = {
            "times": [1.0, 2.0, 4.0, 10.0],
            "means": means,
            "draws": 100,
            "acceptance": 0.7,
            "training_seconds": 0.5,
            "starting_seconds": start,
            "deployments": 3,
            "rescues": 0,
        }
        scheme = method.partition("-")[2] or None
        return finished(f"bank/{method}/{repeat}", {**settings, "scheme": scheme}, result)

    return row


@pytest.fixture
def of_figure_8(reference, of_method):
    return [
        reference(),
        *(of_method("hmc", i, [None, 2.0, 1.0, 0.5 * i]) for i in (1, 2, 3)),
        of_method("rns-paper", 1, [None, 3.0, 3.0, 0.5], start=5.0),
        of_method("arns-paper", 1, [4.0, 3.0, 0.5, 0.25], start=1.0),
    ]


def test_methods_are_compared_from_twice_the_starting_phase_on(of_figure_8):
    found = errors(of_figure_8)
    hmc, _, arns = found
    assert hmc["runs"] == 3
    assert_allclose(hmc["median"], [np.nan, 0.4, 0.2, 0.2])
    assert_allclose([hmc["low"][-1], hmc["high"][-1]], [0.11, 0.29])
    assert_allclose(arns["median"], [0.8, 0.6, 0.1, 0.05])
    assert comparison(found) == [
        {"problem": "bank", "scheme": "paper", "since": 2.0, "arns": 1.0, "rns": 0.75}
    ]
    report = Figure8().report(of_figure_8)
    lines, known = report.tables.values()
    assert [line["part of the time below HMC's"] for line in lines] == [None, 6 / 8, 1.0]
    assert_allclose([line["error at the end"] for line in lines], [0.2, 0.1, 0.05])
    assert list(known[0].values()) == ["bank", 1.0, 0.7, 1e-5, 1e-4]
    assert report.printed[0][1:] == ("best overall, lowest early", 1.0)


def test_a_reference_that_is_doubtful_coarse_or_missing_is_noted(of_figure_8, reference):
    plain = " ".join(Figure8().report(of_figure_8).notes)
    assert "has R-hat" not in plain
    assert "reference_draws" not in plain
    # the least error at the end is 0.05
    for made, expected in (
        (reference(1.02), "bank has R-hat 1.02, above 1.01"),
        (reference(None), "bank has R-hat None, above 1.01"),
        (reference(relative_error=0.02), "bank is off by about 0.02, and the least error measured"),
    ):
        assert expected in " ".join(Figure8().report([made, *of_figure_8[1:]]).notes)
    report = Figure8().report(of_figure_8[1:])
    assert (report.tables, report.printed) == ({}, [])
    assert "do the row bank/reference" in " ".join(report.notes)


def test_all_draws_since_the_burn_in_count(sampled, run_row, monkeypatch):
    ticks = itertools.count()  # a processor that takes a millisecond for every iteration
    monkeypatch.setattr(chains, "time", SimpleNamespace(process_time=lambda: TICK * next(ticks)))
    result = run_row(Figure8(**OF_FIGURE_8), "simulated/arns-paper/1")
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


@pytest.mark.long
def test_a_reference_is_right_and_its_error_small(run_row):
    found = run_row(Figure8(**OF_FIGURE_8), "simulated/reference")
    assert len(found["mean"]) == 2
    assert found["rhat"] < 1.1
    assert 0.0 < found["relative_error"] < 0.5 * found["plain_error"] < 0.1


def test_a_scheme_has_panels_where_it_applies(of_figure_8, of_method):
    more = of_method("arns-emulator", 1, [4.0, 3.0, 0.5, 0.25], start=1.0)
    pde = [
        attrs.evolve(one, settings={**one.settings, "problem": "pde", "label": "PDE"})
        for one in [*of_figure_8, more]
    ]
    found = errors([*of_figure_8, *pde])
    assert panels(found) == [[("bank", "paper")], [("pde", "paper"), ("pde", "emulator")]]
    without = errors([*of_figure_8, *pde[:-1]])
    assert panels(without) == [[("bank", "paper"), ("pde", "paper")]]
    axes = Figure8().draw([*of_figure_8, *pde]).axes
    assert [ax.axison for ax in axes] == [True, False, True, True]
    assert [bool(ax.get_xlabel()) for ax in axes] == [False, False, True, True]
    assert [bool(ax.get_ylabel()) for ax in axes] == [True, False, True, False]
