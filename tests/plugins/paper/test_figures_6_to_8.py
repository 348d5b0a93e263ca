"""Figures 6 to 8: marginals, learning on the way, errors over time, and their reports."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

import surrokit as sk
from surrokit.diagnostics import effective_sample_size
from surrokit.errors import SurrogateFitError, TargetError
from surrokit_paper import chains, figure_6, figure_7, figure_8
from surrokit_paper.figure_6 import marginals
from surrokit_paper.figure_7 import binned, curve
from surrokit_paper.figure_8 import errors, means_at, part_below, with_gradients

SMALL = {"n_rows": 300, "dim": 2, "burn_in": 5, "n_nodes": 20}

# --- figure 6 ---


def test_independent_draws_have_the_errors_of_the_textbook():
    draws = np.random.default_rng(1).normal([1.0, -2.0], [0.5, 3.0], (2, 4000, 2))
    found = marginals(draws)
    assert_allclose(found["mean"], draws.reshape(-1, 2).mean(axis=0))
    assert_allclose(found["sd"], draws.reshape(-1, 2).std(axis=0, ddof=1))
    assert_allclose(found["mean_error"], found["sd"] / 8000**0.5, rtol=0.1)
    assert_allclose(found["sd_error"], found["sd"] / 16_000**0.5, rtol=0.1)
    assert_allclose(found["ess_bulk"], effective_sample_size(draws, "bulk"))
    stuck = marginals(np.ones((1, 50, 1)))
    assert np.isnan([stuck["mean_error"], stuck["sd_error"]]).all()


def test_errors_are_as_large_as_the_scatter_of_chains_that_depend_on_their_past():
    # x' = -0.5 x + noise: means are better known than from independent draws, squares worse
    rng = np.random.default_rng(1)
    steps = [rng.standard_normal((40, 8))]
    for _ in range(299):
        steps.append(-0.5 * steps[-1] + 0.75**0.5 * rng.standard_normal((40, 8)))
    found = [marginals(draws[None]) for draws in np.stack(steps, axis=1)]
    for name in ("mean", "sd"):
        scatter = np.std([one[name] for one in found], axis=0, ddof=1)
        claimed = np.mean([one[f"{name}_error"] for one in found], axis=0)
        # 8 standard deviations, each of 40 chains: together good to 4 %
        assert 0.85 < (scatter / claimed).mean() < 1.15


def row_6(method, means, sds):
    return {
        "method": method,
        "mean": means,
        "mean_error": [0.1] * 3,
        "sd": sds,
        "sd_error": [0.1, 0.1, 0.2],
        "ess_bulk": [100.0] * 3,
        "acceptance": 0.75,
        "seconds": 6.0,
        "gradients": 70,
        "values": 7,
    }


OF_FIGURE_6 = [
    row_6("hmc", [1.0, 2.0, 0.0], [1.0, 1.0, 2.0]),
    row_6("rns", [1.0, 2.2, 0.0], [1.0, 1.0, 1.5]),
]
APART = "means from HMC's, in standard errors", "sds from HMC's, in standard errors"


def test_the_report_of_figure_6_gives_the_largest_differences_and_what_chance_would(sizes_of):
    sizes = sizes_of(figure_6, parameters=(1, 2))
    tables, printed = figure_6.report(OF_FIGURE_6, sizes)
    by_parameter, costs = tables.values()
    assert [tuple(line.values())[:3] for line in by_parameter] == [
        ("beta_1", "HMC", 1.0),
        ("beta_1", "RNS-HMC", 1.0),
        ("beta_2", "HMC", 2.0),
        ("beta_2", "RNS-HMC", 2.2),
    ]
    hmc, rns = costs
    assert_allclose(
        [rns[of] for of in APART], [0.2 / 0.02**0.5, np.log(2.0 / 1.5) / np.hypot(0.1, 0.2 / 1.5)]
    )
    assert [hmc[of] for of in APART] == [None, None]
    assert_allclose((2.0 * norm.cdf(hmc["99% stay under"]) - 1.0) ** 3, 0.99)
    assert printed[1] == ("acceptance, RNS-HMC (table 1)", 0.76, 0.75)
    assert figure_6.report(OF_FIGURE_6[1:], sizes)[0]["runs"][0][APART[0]] is None


def test_the_runs_of_figure_6_are_as_in_the_paper_and_agree(sampled, run_case, sizes_of):
    sizes = {"n_rows": 500, "dim": 3, "n_nodes": 60, "burn_in": 120, "discard": 20, "draws": 300}
    sizes |= {"parameters": (1, 3), "n_shown": 100}
    rows = [run_case(figure_6, name, **sizes) for name in ("hmc", "rns")]
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
    assert (rns["schedule"][0], rns["schedule"][1].repairs) == ("once", 0)
    # exact gradients end with the burn-in; a value for each draw is evaluated from there on
    assert run.calls["gradient"] == run.warmup.calls["gradient"][-1] < exact.calls["gradient"]
    assert run.calls["value"] >= 300
    # false alarms: 1 % for each of two comparisons; the seed is fixed
    line = figure_6.report(rows, sizes_of(figure_6, **sizes))[0]["runs"][1]
    assert max(line[of] for of in APART) < line["99% stay under"]
    assert np.shape(rows[0]["shown"]) == (100, 2)
    axes = np.array(figure_6.draw(rows, sizes_of(figure_6, **sizes)).axes).reshape(2, 2)
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


def of_hmc(acceptance, problem="bank"):
    return {"method": "hmc", "problem": problem, "acceptance": acceptance}


def learnt(repeat, acceptance):
    edges = list(range(0, 100 * len(acceptance) + 1, 100))
    numbers = {"starting_points": 50 + repeat, "edges": edges}
    return {**of_hmc(acceptance), "method": "paper", **numbers}


def test_a_curve_is_the_median_over_runs_with_a_90_per_cent_band():
    runs = [[i / 20, None, 0.5, 0.5, 0.6, None, 0.6, 0.8] for i in range(21)]
    runs[3][1] = 0.8
    rows = [learnt(i, acceptance) for i, acceptance in enumerate(runs)]
    ends, found = curve(rows)
    assert_allclose(ends, range(100, 900, 100))
    assert_allclose(found[:, :2].T, [(0.05, 0.5, 0.95), (0.8, 0.8, 0.8)])
    assert np.isnan(found[1, 5])
    (line,) = figure_7.report(rows, None)[0][""]
    assert_allclose(line["at the end"], 0.7)  # of the last quarter
    (line,) = figure_7.report([learnt(1, [0.3, 0.3, 0.3, None])], None)[0][""]
    names = ("at the end", "HMC's acceptance", "0.9 of HMC's after")
    assert [line[name] for name in names] == [None] * 3


def test_the_report_says_after_how_many_points_nine_tenths_of_hmc_are_reached():
    runs = [0.1, 0.7, 0.7, 0.8], [0.2, 0.7, 0.73, 0.8], [0.3, 0.74, 0.75, 0.8]
    rows = [of_hmc(0.7), of_hmc(0.9), *(learnt(i + 1, run) for i, run in enumerate(runs))]
    tables, printed = figure_7.report(rows, None)
    ((line,),) = tables.values()
    names = "HMC's acceptance", "0.9 of HMC's after", "starting points", "runs"
    assert_allclose([line[name] for name in names], [0.8, 300, 52, 3])
    assert_allclose(printed[0][1:], (0.70, 0.8))
    what, paper, ours = printed[1]
    assert (what, paper) == ("ARNS-HMC's acceptance at the end over HMC's, bank", "comparable")
    assert_allclose(ours, 1.0)
    assert figure_7.report([of_hmc(0.9, "pde")], None)[1][0][1:] == (0.91, 0.9)


@pytest.mark.parametrize(("method", "gradients"), [("paper", "never"), ("defaults", "warmup")])
def test_a_curve_counts_no_exact_transition(sampled, run_case, method, gradients):
    result = run_case(figure_7, f"simulated/{method}/1", **OF_FIGURE_7)
    (burn_in, _), (arguments, run) = sampled
    assert (burn_in["warmup"], burn_in["draws"], arguments["chains"]) == (5, 1, 1)
    paths = {"step_size": 0.045 * np.sqrt(100_000 / 300), "n_steps": 6}
    assert arguments["sampler"] == ("hmc", {"metric": "identity", **paths})
    (_, settings), safety = arguments["schedule"]
    assert (settings["derivatives"], safety.repairs) == (gradients, 0)
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
    starts, sizes = [], {**OF_FIGURE_7, "mesh": 4, "draws": 2}
    for name in ("emulator", "hmc"):
        run_case(figure_7, f"pde/{name}/1", **sizes)
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
        run_case(figure_7, "simulated/defaults/1", **{**OF_FIGURE_7, "defaults_points": (1, 2)})


@pytest.mark.parametrize(("name", "file"), [("bank", "bank-additional-full.csv"), ("a9a", "a9a")])
def test_a_missing_file_is_said_with_its_source(tmp_path, run_case, name, file):
    for folder, why in (
        (None, "give its folder with --data"),
        (tmp_path, "which is not in .*; put"),
    ):
        with pytest.raises(TargetError, match=rf"needs the file {file}[;,] {why}.*https://"):
            run_case(figure_7, f"{name}/hmc/1", data=folder)
    for packed in (f"{file}.gz", file):
        (tmp_path / packed).write_text("no data")
        with pytest.raises(TargetError, match=r"could not be read|download"):
            run_case(figure_7, f"{name}/hmc/1", data=tmp_path)
        (tmp_path / packed).unlink()


# --- figure 8 ---

TICK = 1e-3
OF_FIGURE_8 = {**SMALL, "repeats": 1, "seconds": 0.3, "n_times": 6, "rns_values": 40}
OF_FIGURE_8 |= {"reference_draws": 200}


def test_means_are_of_the_draws_that_were_there_and_errors_relative_to_the_norm():
    draws = [[2.0, 0.0], [4.0, 2.0], [6.0, 7.0]]
    found = means_at(draws, [1.0, 2.0, 4.0], [0.5, 1.0, 3.0, 4.0, 4.5])
    assert found == [None, [2.0, 0.0], [3.0, 1.0], [4.0, 3.0], None]
    rng = np.random.default_rng(1)
    many, truth = rng.standard_normal((50, 3)) + 2.0, np.full(3, 2.0)
    seconds = np.arange(1.0, 51.0)
    of = {"problem": "bank", "repeat": 1}
    run = {**of, "method": "hmc", "times": seconds, "means": means_at(many, seconds, seconds)}
    (found,) = errors([{**of, "method": "reference", "mean": truth}, run]).values()
    expected = sk.relative_error_of_mean(many[None], truth)[0]
    assert_allclose(found["curves"], [expected] * 3)


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


def reference(problem="bank"):
    of = {"method": "reference", "problem": problem, "repeat": 1}
    return {**of, "mean": [3.0, 4.0], "rhat": 1.0, "relative_error": 1e-5}


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
    assert_allclose(hmc["curves"][1], [np.nan, 0.4, 0.2, 0.2])
    assert_allclose(hmc["curves"][[0, 2], -1], [0.11, 0.29])
    assert_allclose(arns["curves"][1], [0.8, 0.6, 0.1, 0.05])
    tables, printed = figure_8.report(rows, None)
    lines, known = tables.values()
    assert [line["part of the time below HMC's"] for line in lines] == [None, 6 / 8, 1.0]
    assert_allclose([line["error at the end"] for line in lines], [0.2, 0.1, 0.05])
    assert list(known[0].values()) == ["Bank Marketing", 1.0, 1e-5]
    assert printed[0][1:] == ("best overall, lowest early", 1.0)


def test_all_draws_since_the_burn_in_count(sampled, run_case, monkeypatch):
    ticks = itertools.count()  # a processor that takes a millisecond for every iteration
    monkeypatch.setattr(chains, "time", SimpleNamespace(process_time=lambda: TICK * next(ticks)))
    monkeypatch.setattr(chains.Clock, "surrokit_surrogate_deployed", lambda self, **_: None)
    result = run_case(figure_8, "simulated/arns-paper/1", **OF_FIGURE_8)
    (burn_in, _), (arguments, run) = sampled
    assert (burn_in["warmup"], burn_in["draws"], "surrogate" in burn_in) == (5, 1, False)
    schedule, safety = arguments["schedule"]
    settings = {"kappa": 0.6, "freeze_after": None, "derivatives": "never"}
    assert (schedule, safety.repairs) == (("greville", settings), 0)
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


@pytest.mark.parametrize(("scheme", "repairs"), [("paper", 0), ("defaults", None)])
def test_an_algorithm_of_the_paper_has_no_fallback_and_the_defaults_are_as_they_come(
    scheme, repairs, sizes_of
):
    parts = figure_8._learning("rns", scheme, "simulated", sizes_of(figure_8, **OF_FIGURE_8))
    assert (parts["warmup"], parts["explorer"]) == (
        (1000, None) if scheme == "defaults" else (40, ("sampler", {"evaluations": 40}))
    )
    schedule = parts["schedule"]
    assert (schedule[1].repairs if repairs == 0 else None) == repairs


@pytest.mark.long
def test_a_reference_is_right_and_its_error_small(run_case):
    found = run_case(figure_8, "simulated/reference/1", **OF_FIGURE_8)
    assert len(found["mean"]) == 2
    assert found["rhat"] < 1.1
    assert 0.0 < found["relative_error"] < 0.05


def test_a_scheme_has_panels_where_it_applies():
    more = of_method("arns-emulator", 1, [4.0, 3.0, 0.5, 0.25], start=1.0)
    pde = [{**one, "problem": "pde"} for one in (reference(), *OF_METHODS, more)]
    axes = figure_8.draw([reference(), *OF_METHODS, *pde], None).axes
    assert [ax.axison for ax in axes] == [True, True, False, True]
    assert [len(ax.lines) for ax in axes if ax.axison] == [5, 5, 3]
