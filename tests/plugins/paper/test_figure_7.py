"""Figure 7: bins, curves, what the report says of them, and tiny runs."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from surrokit.errors import SurrogateFitError, TargetError
from surrokit_paper.figure_7 import Figure7, binned, passed, summaries
from surrokit_paper.harness import Conditions, Finished, reproduce
from surrokit_paper.problems import PROBLEMS

TINY = {
    "problems": "simulated",
    "repeats": 2,
    "paper_points": (30, 80),
    "default_points": (10, 40),
    "n_bins": 5,
    "burn_in": 5,
    "draws": 20,
    "n_nodes": 20,
    "n_rows": 300,
    "dim": 2,
}


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    return reproduce(Figure7(**TINY), tmp_path_factory.mktemp("figure-7"))


# --- bins and curves ---


def test_bins_hold_their_left_edge_and_average_what_falls_into_them():
    found = binned([9, 10, 15, 20, 29, 40, 55], [0, 0.2, 0.4, 1, 0, 0.7, 1], [10, 20, 30, 40, 50])
    assert_allclose(found[:2], [0.3, 0.5])
    assert found[2] is None
    assert found[3] == 0.7


def test_where_a_level_is_reached_at_first_and_for_good():
    def at(level, *medians):
        return passed(
            {"ends": [100 * (i + 1) for i in range(len(medians))], "median": medians}, level
        )

    wavering = 0.1, None, 0.7, 0.5, 0.7, 0.8
    assert at(0.7, *wavering) == (300, 500)
    assert at(0.9, *wavering) == (None, None)
    assert at(0.7, 0.9, 0.1) == (100, None)
    assert at(0.7, 0.7, None) == (100, 100)


# --- report ---


def row(method, repeat, problem="bank", **result):
    settings = {"method": method, "problem": problem, "label": problem.upper(), "repeat": repeat}
    return Finished(
        name=f"{problem}/{method}/{repeat}", settings=settings, result=result, seconds=1
    )


def learnt(method, repeat, acceptance, edges=(0, 100, 200, 300, 400)):
    numbers = {"starting_points": 50 + repeat, "points": 400, "deployments": 7}
    seconds = {"seconds": 2.0, "training_seconds": 1.0}
    return row(method, repeat, acceptance=acceptance, edges=list(edges), **numbers, **seconds)


ROWS = [
    row("hmc", 1, acceptance=0.7),
    row("hmc", 2, acceptance=0.9),
    learnt("paper", 1, [0.1, 0.7, 0.7, 0.8]),
    learnt("paper", 2, [0.2, 0.7, 0.73, 0.8]),
    learnt("paper", 3, [0.3, 0.74, 0.75, 0.8]),
]


def test_a_curve_is_the_median_over_runs_with_a_90_per_cent_band():
    runs = [[i / 20, None, 0.5, 0.5, 0.6, None, 0.6, 0.8] for i in range(21)]
    runs[3][1] = 0.8
    rows = [learnt("paper", i, acceptance, range(0, 900, 100)) for i, acceptance in enumerate(runs)]
    (found,) = summaries(rows)
    curve = found["curve"]
    assert curve["ends"] == list(range(100, 900, 100))
    assert_allclose([curve[name][0] for name in ("low", "median", "high")], [0.05, 0.5, 0.95])
    assert [curve[name][1] for name in ("low", "median", "high")] == [0.8, 0.8, 0.8]
    assert curve["median"][5] is None
    assert_allclose(found["last"], 0.7)  # of the last quarter
    assert summaries([learnt("paper", 1, [0.3, 0.3, 0.3, None])])[0]["last"] is None


def test_the_report_says_after_how_many_points_nine_tenths_of_hmc_are_reached():
    (found,) = summaries(ROWS)
    assert_allclose(found["hmc"], 0.8)
    assert_allclose(found["curve"]["median"], [0.2, 0.7, 0.73, 0.8])
    assert found["reached"] == found["stays"] == 300
    assert_allclose(found["last_ratio"], 1.0)
    told = Figure7().report(ROWS)
    (cells,) = told.tables[0].lines
    assert cells["0.9 of HMC's after"] == 300
    assert cells["starting points"] == 52
    assert cells["runs"] == 3
    figures = {figure.what: (figure.printed, figure.ours) for figure in told.printed}
    assert_allclose(figures["acceptance of HMC, bank (table 1)"], (0.70, 0.8))
    assert "acceptance of HMC, pde (table 1)" not in figures
    (pde,) = Figure7().report([row("hmc", 1, "pde", acceptance=0.9)]).printed
    assert (pde.printed, pde.ours) == (0.91, 0.9)
    assert figures["ARNS-HMC's acceptance at the end over HMC's, bank"][0] == "comparable"
    assert json.loads(json.dumps(told.figures))["curves"][0]["reached"] == 300


def test_without_hmc_nothing_is_said_to_be_reached():
    (found,) = summaries(ROWS[2:])
    assert [found[n] for n in ("hmc", "reached", "stays", "last_ratio")] == [None] * 4
    assert Figure7().report(ROWS[2:]).tables[0].lines[0]["0.9 of HMC's after"] is None


# --- runs ---


@pytest.mark.long
def test_rows_are_done_and_hold_what_the_picture_needs(outcome):
    methods = ("hmc", "paper", "defaults")
    assert {r.name for r in outcome.finished} == {
        f"simulated/{method}/{repeat}" for method in methods for repeat in (1, 2)
    }
    for done in outcome.finished:
        result = done.result
        if done.settings["method"] == "hmc":
            assert 0.5 < result["acceptance"] <= 1.0
            continue
        first, last = done.settings["points"]
        assert result["edges"] == np.linspace(first, last, 6).tolist()
        assert first <= result["starting_points"] < last <= result["points"]
        assert result["deployments"] >= 1
        assert len(result["acceptance"]) == 5
        known = [number for number in result["acceptance"] if number is not None]
        assert known
        assert all(0.0 <= number <= 1.0 for number in known)


@pytest.mark.long
@pytest.mark.parametrize(("method", "gradients"), [("paper", "never"), ("defaults", "warmup")])
def test_a_curve_counts_no_exact_transition(sampled, method, gradients):
    experiment = Figure7(**TINY)
    (one,) = [r for r in experiment.rows() if r.name == f"simulated/{method}/1"]
    result = experiment.run(one, Conditions(seed=1))
    (burn_in, _), (arguments, run) = sampled
    assert (burn_in["warmup"], burn_in["draws"]) == (5, 1)
    paths = {"step_size": 0.045 * np.sqrt(100_000 / 300), "n_steps": 6}
    assert arguments["sampler"] == ("hmc", {"metric": "identity", **paths})
    assert arguments["chains"] == 1
    (_, settings), safety = arguments["schedule"]
    assert settings["derivatives"] == gradients
    assert safety.rescues == 0
    first = run.adaptation.deployments[0]
    paid = run.warmup.calls["value"] + run.warmup.calls["gradient"]
    before, edges = paid[first - 1 : -1], np.array(result["edges"])
    for low, high, mean in zip(edges, edges[1:], result["acceptance"], strict=False):
        chosen = run.warmup.acceptance[0, first:][(low <= before) & (before < high)]
        assert (mean is None) == (chosen.size == 0)
        if mean is not None:
            assert_allclose(mean, chosen.mean())
    values_alone = run.calls["gradient"] == run.warmup.calls["gradient"][first - 1]
    assert values_alone == (method == "paper")


def test_the_schemes_are_as_they_are_called():
    by_name = {r.name: r.settings for r in Figure7().rows()}
    paper, defaults = by_name["simulated/paper/1"], by_name["simulated/defaults/1"]
    assert paper["surrogate_settings"] == {
        "trend": "constant",
        "train_on": "values",
        "learns": "potential",
        "n_nodes": 2000,
        "updates": "auto",
    }
    assert by_name["bank/paper/1"]["surrogate_settings"]["n_nodes"] == 1000
    assert by_name["a9a/paper/1"]["surrogate_settings"]["n_nodes"] == 2500
    assert (paper["points"], defaults["points"]) == ((500, 6000), (50, 600))
    assert defaults["surrogate_settings"] == {}
    sizes = {
        name: (by_name[f"{name}/hmc/1"]["step_size"], by_name[f"{name}/hmc/1"]["n_steps"])
        for name in PROBLEMS
    }
    logistic = {"simulated": (0.045, 6), "bank": (0.012, 45), "a9a": (0.012, 10)}
    assert sizes == {**logistic, "pde": (0.16, 10)}
    assert by_name["pde/paper/1"]["surrogate_settings"]["n_nodes"] == 1000
    assert [name for name in by_name if "emulator" in name and name.endswith("/1")] == [
        "pde/emulator/1"
    ]
    assert by_name["pde/emulator/1"]["points"] == (20, 200)


@pytest.mark.long
def test_only_the_emulator_sees_outputs_of_the_forward_map(sampled):
    experiment = Figure7(
        **{**TINY, "problems": "pde", "mesh": 4, "emulator_points": (15, 24), "draws": 2}
    )
    for name in ("emulator", "defaults"):
        (one,) = [r for r in experiment.rows() if r.name == f"pde/{name}/1"]
        result = experiment.run(one, Conditions(seed=1))
        (burn_in, exact), (arguments, run) = sampled[-2:]
        # one place from which all start: the burn-in is the same for all of them
        assert exact.calls["jacobian"] == 0 < exact.calls["gradient"]
        assert (burn_in["warmup"], arguments["sampler"][1]["step_size"]) == (5, 0.16)
        paid = {kind for kind, count in run.calls.items() if count}
        # the check of the gradient takes two values
        assert paid - {"value"} == ({"forward", "jacobian"} if name == "emulator" else {"gradient"})
        assert result["points"] >= one.settings["points"][1]
        assert one.settings["points"][0] <= result["starting_points"] < result["points"]


@pytest.mark.long
def test_methods_of_a_repeat_start_from_one_place(sampled):
    experiment = Figure7(**TINY)
    for one in experiment.rows():
        experiment.run(one, Conditions(seed=1))
    starts = [tuple(arguments["initial"]) for arguments, _ in sampled[1::2]]
    assert len(starts) == 6
    assert len(set(starts[:3])) == len(set(starts[3:])) == 1
    assert starts[0] != starts[3]


def test_a_surrogate_that_never_came_is_an_error():
    experiment = Figure7(**{**TINY, "default_points": (1, 2)})
    (one,) = [r for r in experiment.rows() if r.name == "simulated/defaults/1"]
    with pytest.raises(SurrogateFitError, match="no surrogate could be fitted within 2 training"):
        experiment.run(one, Conditions(seed=1))


@pytest.mark.parametrize(("name", "file"), [("bank", "bank-additional-full.csv"), ("a9a", "a9a")])
def test_a_missing_file_is_said_and_the_rest_goes_on(tmp_path, name, file):
    experiment = Figure7(**{**TINY, "problems": ("simulated", name), "repeats": 1})
    outcome = reproduce(experiment, tmp_path / "out", only=["simulated/hmc", f"{name}/hmc"])
    assert [done.name for done in outcome.finished] == ["simulated/hmc/1"]
    (reason,) = outcome.not_run.values()
    assert f"this needs the file {file}; give its folder with --data" in reason
    assert "https://" in reason
    with pytest.raises(TargetError, match=f"{file}, which is not in"):
        experiment.run(experiment.rows()[3], Conditions(seed=1, data=tmp_path))
    (tmp_path / f"{file}.gz").write_bytes(b"no data")
    with pytest.raises(TargetError, match="could not be read"):
        experiment.run(experiment.rows()[3], Conditions(seed=1, data=tmp_path))


@pytest.mark.long
@pytest.mark.parametrize("chosen", [slice(0, 1), slice(1, 2), slice(None)])
def test_a_picture_is_drawn_of_whatever_is_finished(outcome, chosen):
    figure = Figure7(**TINY).draw(outcome.finished[chosen])
    figure.draw_without_rendering()
    (ax,) = figure.axes
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("training points", "acceptance probability")


def test_four_problems_have_four_panels():
    found = [
        row("hmc", 1, problem, acceptance=0.7) for problem in ("simulated", "bank", "a9a", "pde")
    ]
    figure = Figure7().draw([*found, learnt("emulator", 1, [0.1, 0.7, 0.7, 0.8])])
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["SIMULATED", "BANK", "A9A", "PDE"]
    rows = [ax.get_subplotspec().rowspan.start for ax in figure.axes]
    assert rows == [0, 0, 1, 1]
    three = Figure7().draw(found[:3])
    assert [ax.axison for ax in three.axes] == [True, True, True, False]
