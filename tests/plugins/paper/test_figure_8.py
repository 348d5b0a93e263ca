"""Figure 8: running means, what the report says of them, and tiny runs."""

from __future__ import annotations

import itertools
import json
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit_paper import chains
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
from surrokit_paper.harness import Conditions, Finished, reproduce

TINY = {
    "problems": "simulated",
    "repeats": 1,
    "seconds": 0.3,
    "n_times": 6,
    "burn_in": 5,
    "rns_values": 40,
    "n_nodes": 20,
    "reference_draws": 200,
    "n_rows": 300,
    "dim": 2,
}


TICK = 1e-3


@pytest.fixture(scope="module", autouse=True)
def clock():
    """A processor that takes a millisecond for every iteration."""
    ticks = itertools.count()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chains, "time", SimpleNamespace(process_time=lambda: TICK * next(ticks)))
        yield


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    return reproduce(Figure8(**TINY), tmp_path_factory.mktemp("figure-8"))


# --- means and errors ---


def test_means_are_of_the_draws_that_were_there():
    draws = [[2.0, 0.0], [4.0, 2.0], [6.0, 7.0]]
    found = means_at(draws, [1.0, 2.0, 4.0], [0.5, 1.0, 3.0, 4.0, 4.5])
    assert found[0] is None
    assert found[1:4] == [[2.0, 0.0], [3.0, 1.0], [4.0, 3.0]]
    assert found[4] is None


def test_errors_are_relative_to_the_norm_of_the_mean():
    found = relative_errors([None, [3.0, 4.0], [3.0, 9.0]], [3.0, 4.0])
    assert np.isnan(found[0])
    assert_allclose(found[1:], [0.0, 1.0])


def test_errors_agree_with_the_diagnostic():
    rng = np.random.default_rng(1)
    draws, truth = rng.standard_normal((50, 3)) + 2.0, np.full(3, 2.0)
    seconds = np.arange(1.0, 51.0)
    found = relative_errors(means_at(draws, seconds, seconds), truth)
    assert_allclose(found, sk.relative_error_of_mean(draws[None], truth)[0])


def test_times_count_by_their_length():
    times, theirs = [1.0, 2.0, 4.0, 8.0], [1.0, 1.0, 1.0, 1.0]
    assert_allclose(part_below(times, [0.5, 2.0, 0.5, 0.5], theirs, 0.0), 7 / 8)
    assert_allclose(part_below(times, [0.5, 2.0, 0.5, 2.0], theirs, 3.0), 1 / 5)
    assert_allclose(part_below(times, [0.5, 2.0, np.nan, 0.5], theirs, 0.0), 5 / 6)
    assert part_below(times, [1.0] * 4, theirs, 0.0) == 0.0
    assert part_below(times, [0.5] * 4, theirs, 9.0) is None
    assert part_below(times, [np.nan] * 4, theirs, 0.0) is None


# --- E q ---


def test_of_a_normal_target_the_gradient_leaves_nothing_but_the_mean():
    rng = np.random.default_rng(2)
    mean, factor = np.array([1.0, -2.0, 0.5]), np.tril(rng.standard_normal((3, 3))) + 2 * np.eye(3)
    draws = mean + rng.standard_normal((2, 30, 3)) @ factor.T
    gradients = (draws - mean) @ np.linalg.inv(factor @ factor.T)
    controlled = with_gradients(draws, gradients)
    assert_allclose(controlled, np.broadcast_to(mean, draws.shape), atol=1e-12)


def test_control_variates_keep_the_mean_where_the_target_is_skew():
    # q = log of a gamma variable of shape 3: U = exp(q) - 3 q, E q = digamma(3); over so many
    # independent draws five standard errors are passed once in two million times
    rng = np.random.default_rng(3)
    draws = np.log(rng.gamma(3.0, size=(4, 5000, 1)))
    controlled = with_gradients(draws, np.exp(draws) - 3.0)
    expected = 1.5 - np.euler_gamma
    error = controlled.std() / np.sqrt(controlled.size)
    assert abs(controlled.mean() - expected) < 5 * error
    assert error < 0.5 * draws.std() / np.sqrt(draws.size)


# --- report ---

TIMES = [1.0, 2.0, 4.0, 10.0]


def row(method, repeat, offsets, start=None):
    scheme = method.partition("-")[2] or None
    numbers = {"draws": 100, "acceptance": 0.7, "training_seconds": 0.5, "starting_seconds": start}
    return Finished(
        name=f"bank/{method}/{repeat}",
        settings={"method": method, "problem": "bank", "label": "Bank", "scheme": scheme},
        result={
            "times": TIMES,
            "means": [None if offset is None else [3.0 + offset, 4.0] for offset in offsets],
            **numbers,
            "deployments": 3,
            "rescues": 0,
        },
        seconds=10.0,
    )


def reference(rhat=1.0, relative_error=1e-5):
    off = {"relative_error": relative_error, "plain_error": 1e-4}
    return Finished(
        name="bank/reference",
        settings={"method": "reference", "problem": "bank", "label": "Bank"},
        result={"mean": [3.0, 4.0], "rhat": rhat, "acceptance": 0.7, **off},
        seconds=10.0,
    )


ROWS = [
    reference(),
    *(row("hmc", i, [None, 2.0, 1.0, 0.5 * i]) for i in (1, 2, 3)),
    row("rns-paper", 1, [None, 3.0, 3.0, 0.5], start=5.0),
    row("arns-paper", 1, [4.0, 3.0, 0.5, 0.25], start=1.0),
]


def test_errors_are_medians_over_runs():
    by_method = {e["method"]: e for e in errors(ROWS)}
    hmc = by_method["hmc"]
    assert hmc["runs"] == 3
    assert_allclose(hmc["median"], [np.nan, 0.4, 0.2, 0.2])
    assert_allclose([hmc["low"][-1], hmc["high"][-1]], [0.11, 0.29])
    assert_allclose(by_method["arns-paper"]["median"], [0.8, 0.6, 0.1, 0.05])
    assert by_method["arns-paper"]["numbers"]["starting_seconds"] == 1.0


def test_methods_are_compared_from_twice_the_starting_phase_on():
    (line,) = comparison(errors(ROWS))
    assert (line["problem"], line["scheme"], line["since"]) == ("bank", "paper", 2.0)
    assert_allclose(line["arns"], 1.0)
    assert_allclose(line["rns"], 6 / 8)
    told = Figure8().report(ROWS)
    lines = told.tables[0].lines
    parts = [cells["part of the time below HMC's"] for cells in lines]
    assert parts[0] is None
    assert_allclose(parts[1:], [6 / 8, 1.0])
    assert [cells["error at the end"] for cells in lines] == [
        pytest.approx(e) for e in (0.2, 0.1, 0.05)
    ]
    (figure,) = told.printed
    assert_allclose(figure.ours, 1.0)
    assert figure.printed == "best overall, lowest early"


def test_a_doubtful_reference_is_noted():
    assert not any("R-hat" in note for note in Figure8().report(ROWS).notes)
    for rhat in (1.02, None):
        notes = Figure8().report([reference(rhat), *ROWS[1:]]).notes
        assert any(f"bank has R-hat {rhat}, above 1.01" in note for note in notes)


def test_a_coarse_reference_is_noted():
    # the least error at the end is 0.05
    assert not any("reference_draws" in note for note in Figure8().report(ROWS).notes)
    notes = Figure8().report([reference(relative_error=0.02), *ROWS[1:]]).notes
    expected = "the reference of bank is off by about 0.02, and the least error measured with it is"
    assert any(expected in note for note in notes)
    (cells,) = Figure8().report(ROWS).tables[1].lines
    assert tuple(cells.values()) == ("bank", 1.0, 0.7, 1e-5, 1e-4)


def test_without_a_reference_no_error_is_known():
    told = Figure8().report(ROWS[1:])
    assert told.tables == told.printed == []
    assert any("do the row bank/reference" in note for note in told.notes)


# --- runs ---


def run_accepted(run):
    return np.concatenate([run.warmup.accepted[0], run.kept.accepted[0]])


@pytest.mark.long
def test_rows_are_done_and_hold_what_the_picture_needs(outcome):
    methods = ("hmc", "rns-paper", "arns-paper", "rns-defaults", "arns-defaults")
    expected = {"simulated/reference", *(f"simulated/{method}/1" for method in methods)}
    assert {done.name for done in outcome.finished} == expected
    for done in outcome.finished:
        result = done.result
        if done.settings["method"] == "reference":
            assert len(result["mean"]) == 2
            assert result["rhat"] < 1.1
            assert 0.0 < result["relative_error"] < 0.5 * result["plain_error"] < 0.1
            continue
        assert_allclose(result["times"], np.geomspace(0.0003, 0.3, 6))
        assert len(result["means"][-1]) == 2
        if done.settings["method"] == "hmc":
            assert result["deployments"] == 0
            assert result["starting_seconds"] is None
        else:
            assert result["deployments"] >= 1
            assert 0.0 < result["starting_seconds"] < 0.3
            assert 0.0 <= result["acceptance"] <= 1.0


@pytest.mark.long
def test_hmc_converges_to_the_reference(outcome):
    by_method = {e["method"]: e for e in errors(outcome.finished)}
    assert by_method["hmc"]["median"][-1] < 0.5


@pytest.mark.long
def test_all_draws_since_the_burn_in_count(sampled):
    experiment = Figure8(**TINY)
    (one,) = [r for r in experiment.rows() if r.name == "simulated/arns-paper/1"]
    result = experiment.run(one, Conditions(seed=1))
    (burn_in, _), (arguments, run) = sampled
    assert (burn_in["warmup"], burn_in["draws"]) == (5, 1)
    assert "surrogate" not in burn_in
    schedule, safety = arguments["schedule"]
    settings = {"kappa": 0.6, "freeze_after": None, "derivatives": "never"}
    assert schedule == ("greville", settings)
    assert safety.rescues == 0
    assert arguments["explorer"] == ("sampler", {"evaluations": 500})
    draws = np.concatenate([run.warmup.draws[0], run.kept.draws[0]])
    assert result["draws"] == len(draws)
    assert abs(len(draws) - 0.3 / TICK) < 2
    seconds = TICK * (1 + np.arange(len(draws)))
    assert result["means"] == means_at(draws, seconds, result["times"])
    assert_allclose(result["means"][-1], draws.mean(axis=0), rtol=0.01)
    first = run.adaptation.deployments[0]
    assert_allclose(result["starting_seconds"], seconds[first - 1])
    assert_allclose(result["acceptance"], run_accepted(run)[first:].mean())


def test_the_settings_of_each_method():
    by_name = {r.name: r.settings for r in Figure8().rows()}
    assert len(by_name) == 4 * (1 + 10 * 5) + 10 * 2
    assert [name for name in by_name if "emulator" in name and name.endswith("/1")] == [
        "pde/rns-emulator/1",
        "pde/arns-emulator/1",
    ]
    emulator = by_name["pde/arns-emulator/1"]
    assert (emulator["points"], emulator["warmup"], emulator["rescues"]) == (50, 1000, True)
    rns, arns = by_name["bank/rns-paper/1"], by_name["bank/arns-paper/1"]
    assert (rns["schedule"], rns["points"], rns["warmup"]) == ("once", 4000, 4000)
    assert rns["surrogate_settings"] == arns["surrogate_settings"]
    assert arns["surrogate_settings"]["n_nodes"] == 1000
    assert arns["surrogate_settings"]["updates"] == "auto"
    assert (arns["points"], arns["schedule_settings"]["freeze_after"]) == (500, None)
    defaults = by_name["bank/arns-defaults/1"]
    assert (defaults["points"], defaults["warmup"], defaults["rescues"]) == (50, 1000, True)
    assert defaults["schedule_settings"]["freeze_after"] == "warmup"
    assert by_name["bank/rns-defaults/1"]["points"] is None


@pytest.mark.long
@pytest.mark.parametrize("chosen", [slice(0, 1), slice(1, 2), slice(0, 2), slice(None)])
def test_a_picture_is_drawn_of_whatever_is_finished(outcome, chosen):
    figure = Figure8(**TINY).draw(outcome.finished[chosen])
    figure.draw_without_rendering()
    assert figure.axes[0].get_ylabel() == "relative error of the mean"
    assert figure.axes[-1].get_xlabel() == "processor seconds, training included"


def test_a_scheme_has_panels_where_it_applies():
    pde = [
        Finished(
            name=one.name.replace("bank", "pde"),
            settings={**one.settings, "problem": "pde", "label": "PDE"},
            result=one.result,
            seconds=1.0,
        )
        for one in [*ROWS, row("arns-emulator", 1, [4.0, 3.0, 0.5, 0.25], start=1.0)]
    ]
    found = errors([*ROWS, *pde])
    assert panels(found) == [[("bank", "paper")], [("pde", "paper"), ("pde", "emulator")]]
    assert panels(errors([*ROWS, *pde[:-1]])) == [[("bank", "paper"), ("pde", "paper")]]
    axes = Figure8().draw([*ROWS, *pde]).axes
    assert [ax.axison for ax in axes] == [True, False, True, True]
    assert [bool(ax.get_xlabel()) for ax in axes] == [False, False, True, True]
    assert [bool(ax.get_ylabel()) for ax in axes] == [True, False, True, False]


@pytest.mark.long
def test_the_outcome_is_plain_data(outcome):
    figures = json.loads(json.dumps(outcome.to_dict()))["figures"]
    assert {line["scheme"] for line in figures["below_hmc"]} == {"paper", "defaults"}
    assert set(figures["references"]) == {"simulated"}
