"""What is the same of all figures, and figures 1 to 5: data, fits, chains, reports."""

from __future__ import annotations

import json
import re
import warnings
from functools import partial
from importlib import import_module

import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit.errors import ConfigurationError
from surrokit.interfaces import Hamiltonian, Phase
from surrokit_paper import (
    chains,
    figure_1,
    figure_2,
    figure_3,
    figure_4,
    figure_5,
    figure_6,
    table_1,
)
from surrokit_paper.command import FIGURES
from surrokit_paper.figure_1 import GRID, curve_errors
from surrokit_paper.figure_3 import DIM, growth, noisy_evaluations

BANANA = sk.make("potential", "banana")
GAUSSIAN = sk.make("potential", "gaussian-32")


@pytest.fixture
def fitted(monkeypatch):
    """The settings of each surrogate, what it was fitted to, and the fit."""
    calls, real = [], chains.train

    def train(data, rng, surrogate="additive", *, gradients=False, **settings):
        found = real(data, rng, surrogate, gradients=gradients, **settings)
        calls.append((surrogate, settings, data, gradients, found[0]))
        return found

    for figure in (figure_1, figure_2, figure_3, figure_4):
        monkeypatch.setattr(figure, "train", train)
    return calls


# --- all figures ---

SOME = {"n_nodes": (20,), "repeats": 1, "n_rows": 300, "burn_in": 20, "chains": 5, "iterations": 5}
SOME |= {"dims": (2,), "n_points": (40,), "gradient_points": (20,)}
FEW_ROWS = {"n_rows": 500, "dim": 3}

TINY = {
    "figure-1": {"n_refits": 2, "n_data_sets": 2},
    "figure-2": {"repeats": 1, "burn_in": 5, "n_states": 50, "draws": 10, "n_nodes": 10},
    "figure-3": {"n_points": (60,), "repeats": 1, "burn_in": 5, "draws": 10},
    "figure-4": SOME,
    "figure-5": SOME,
    "figure-6": {**FEW_ROWS, "parameters": (1, 3), "n_nodes": 20, "burn_in": 60, "draws": 50},
    "figure-7": {**FEW_ROWS, "burn_in": 5, "draws": 20},
    "figure-8": {**FEW_ROWS, "reference_draws": 50, "seconds": 0.1},
    "table-1": {**FEW_ROWS, "burn_in": 100, "discard": 20, "draws": 50},
}


@pytest.mark.parametrize("name", FIGURES)
def test_cases_have_names_of_their_own_and_small_sizes_are_settings(name, sizes_of):
    figure = import_module(FIGURES[name])
    assert figure.QUICK.keys() <= figure.FULL.keys()
    for settings in ({}, figure.QUICK, TINY[name]):
        cases = figure.cases(sizes_of(figure, **settings))
        names = ["/".join(map(str, case.values())) for case in cases]
        assert len(set(names)) == len(names) > 0
        assert all(re.fullmatch(r"[a-z0-9-]+(/[a-z0-9-]+)*", each) for each in names)


@pytest.mark.parametrize("name", FIGURES)
def test_one_row_is_enough_for_a_report_and_a_picture(name, run_case, sizes_of):
    figure = import_module(FIGURES[name])
    sizes = sizes_of(figure, **TINY[name])
    row = run_case(figure, "/".join(map(str, figure.cases(sizes)[0].values())), **TINY[name])
    tables, printed = figure.report([row], sizes)
    assert tables or printed
    for table in tables.values():
        assert len({tuple(line) for line in table}) <= 1
    json.dumps(row, allow_nan=False)
    figure.draw([row], sizes).draw_without_rendering()


@pytest.mark.parametrize(
    ("figure", "settings", "message"),
    [
        (figure_6, {"parameters": (0, 1)}, "parameters must be numbers from 1 to dim, which is 50"),
        (figure_6, {"dim": 20}, "parameters must be numbers from 1 to dim, which is 20"),
        (table_1, {"convex_metric": "fisher"}, "convex_metric must be 'hessian' or 'softabs', got"),
    ],
)
def test_settings_that_make_no_sense_are_refused(figure, settings, message, sizes_of):
    with pytest.raises(ConfigurationError, match=message):
        figure.cases(sizes_of(figure, **settings))


# --- figure 1 ---


def test_data_sets_are_nested_and_noisy(sizes_of):
    potentials = (sk.make("potential", "gaussian", mean=[0.0], covariance=[[1.0]]), GAUSSIAN)
    for exact, seen in zip(
        potentials,
        (
            lambda n, number=0: figure_1.data_set(number, n, sizes_of(figure_1)),
            lambda n, number=0: noisy_evaluations(
                GAUSSIAN, n, 0.1, np.random.default_rng(5 + number)
            ),
        ),
        strict=True,
    ):
        few, many = seen(10), seen(2000)
        for name in ("positions", "values", "gradients"):
            assert_allclose(getattr(few, name), getattr(many, name)[:10])
        values, gradients = exact.value_and_gradient(many.positions)
        assert 0.09 < (many.values - values).std() < 0.11
        assert 0.09 < (many.gradients - gradients).std() < 0.11
        assert not np.any(seen(10, 1).positions == few.positions)


def test_errors_are_measured_about_the_level():
    exact = 0.5 * GRID**2
    assert_allclose(list(curve_errors(exact[None] + 7.0).values()), 0.0, atol=1e-12)
    # V - U = x^2 / 2 has variance 1/2 under N(0, 1)
    errors = curve_errors(2.0 * exact[None])
    assert_allclose(errors["near"], np.sqrt(0.5), rtol=5e-3)
    far = GRID[np.abs(GRID) >= 2.0]
    assert_allclose(errors["far"], np.sqrt(np.mean((far**2 / 2 - 0.5) ** 2)), rtol=5e-3)


def test_curves_have_a_spread_where_something_is_random_and_gradients_follow_the_truth(run_case):
    sizes = {"n_points": (10,), "n_refits": 3, "n_data_sets": 2}
    for name, spreads in (("gp", False), ("additive", True)):
        found = run_case(figure_1, f"{name}/10", **sizes)
        assert (np.ptp([found["low"], found["high"]], axis=0).max() > 0.0) == spreads
        assert len(found["mean"]) == len(GRID)
    assert run_case(figure_1, "additive-gradients/10", **sizes)["one fit"]["near"] < 0.05


def test_radial_nodes_take_their_width_from_fitc(fitted, run_case):
    run_case(figure_1, "rbf/10", n_points=(10,), n_refits=2, n_data_sets=1)
    names = [call[0] for call in fitted]
    assert names == ["fitc", "rbf-paper", "rbf-paper", "fitc", "rbf-paper"]
    widths = [settings["width_scale"] for name, settings, *_ in fitted if name == "rbf-paper"]
    assert widths[0] == widths[1] > 0
    assert widths[2] != widths[0]


# --- figure 2 ---

OF_FIGURE_2 = {"repeats": 2, "burn_in": 5, "n_states": 60, "draws": 20, "n_nodes": 10, "n_steps": 5}


def test_all_methods_of_a_repeat_have_one_training_chain_and_one_start(sampled, fitted, run_case):
    names = "hmc/1", "paper/1", "defaults/2"
    found = {name: run_case(figure_2, name, **OF_FIGURE_2) for name in names}
    (before, training), (after, chain) = sampled[2:4]
    assert [before[name] for name in ("warmup", "draws", "surrogate")] == [5, 60, None]
    assert [after[name] for name in ("warmup", "draws")] == [0, 20]
    for arguments, _ in sampled:
        paths = {"step_size": 0.065, "n_steps": 5, "randomize": False}
        assert arguments["sampler"] == ("hmc", {"metric": "identity", **paths})
    states = training.draws[0]
    assert_allclose(before["initial"], 0.0)
    assert_allclose([sampled[1][0]["initial"], after["initial"]], [states[-1]] * 2)
    (name, settings, values_alone, no, potential), (other, _, with_gradients, yes, _) = fitted
    assert (name, settings) == ("additive-paper", {"n_nodes": 10, "ridge": 1e-6})
    assert (other, after["surrogate"] is potential, no, yes) == ("additive", True, False, True)
    assert_allclose(values_alone.positions, states)
    assert_allclose(values_alone.values, BANANA.value(states))
    assert not np.array_equal(with_gradients.positions, states)  # of another repeat
    gradients = BANANA.value_and_gradient(with_gradients.positions)[1]
    assert_allclose(with_gradients.gradients, gradients)
    assert_allclose(found["paper/1"]["acceptance"], chain.kept.acceptance.mean())
    assert ["drawn" in result for result in found.values()] == [True, True, False]
    for row, followed in (("hmc/1", BANANA), ("paper/1", potential)):
        kept = found[row]["drawn"]
        gradients = followed.value_and_gradient(np.array(kept["points"]))[1]
        assert_allclose(kept["forces"], -gradients)
        assert_allclose(np.array(kept["paths"])[:, 0], [kept["states"][-1]] * 3)


def test_paths_of_figure_2_end_where_the_integrator_ends(sizes_of):
    start, momenta = np.array([0.3, -0.4]), np.random.default_rng(1).standard_normal((3, 2))
    sizes = sizes_of(figure_2, step_size=0.1, n_steps=4)
    leapfrog, metric = sk.make("integrator", "leapfrog"), sk.make("metric", "identity")
    hamiltonian, starts = Hamiltonian(potential=BANANA, metric=metric), np.tile(start, (3, 1))
    cache = leapfrog.cache(hamiltonian, starts)
    phase = Phase(positions=starts, momenta=momenta, cache=cache)
    for place in range(1, 5):
        phase, _ = leapfrog.advance(hamiltonian, phase, np.full(3, 0.1), np.ones(3, dtype=int))
        found = figure_2.leapfrog(BANANA, start, momenta, sizes)[:, place]
        assert_allclose(found, phase.positions, rtol=1e-10)


def test_the_report_of_figure_2_averages_over_repeats_and_says_how_well_it_knows():
    def row(method, repeat, acceptance):
        ess = {"ess_per_draw": 0.25 * repeat}
        return {"method": method, "repeat": repeat, "acceptance": acceptance, **ess}

    rows = [row("hmc", 1, 0.96), row("hmc", 2, 0.98)]
    rows += [row("paper", i, acceptance) for i, acceptance in enumerate((0.9, 0.8, 0.94), 1)]
    tables, printed = figure_2.report(rows, None)
    hmc, paper = tables["acceptance"]
    assert_allclose([hmc["mean"], paper["mean"]], [0.97, 0.88])
    assert_allclose([hmc["standard error"], paper["standard error"]], [0.01, 0.0416333], rtol=1e-5)
    assert_allclose([paper["10% of repeats below"], paper["10% above"]], [0.82, 0.932])
    assert_allclose([hmc["min ESS a draw"], paper["min ESS a draw"]], [0.375, 0.5])
    assert_allclose([line[1:] for line in printed], [(0.97, 0.97), (0.88, 0.88)])
    assert figure_2.report(rows[:1], None)[0]["acceptance"][0]["standard error"] is None


@pytest.mark.long
def test_hmc_and_surrogates_have_about_the_papers_acceptance_on_the_banana(run_case):
    # the mean over 500 draws has a standard deviation of 0.004, that over 150 one of 0.007
    few = {"repeats": 1, "n_states": 200, "draws": 150}
    for name in ("hmc/1", "defaults/1"):
        assert abs(run_case(figure_2, name, **few)["acceptance"] - 0.97) < 0.02
    # thirty chains had a mean of 0.887 and went from 0.62 to 0.96; the mean of ten scatters by 0.02
    rows = [run_case(figure_2, f"paper/{i}", repeats=10) for i in range(1, 11)]
    found = [row["acceptance"] for row in rows]
    assert abs(np.mean(found) - 0.88) < 0.1


# --- figure 3 ---

OF_FIGURE_3 = {"n_points": (100,), "repeats": 1, "burn_in": 3, "draws": 12}


def test_draws_of_figure_3_have_the_covariance_of_the_target():
    found = noisy_evaluations(GAUSSIAN, 20_000, 0.0, np.random.default_rng(5))
    assert_allclose(found.values, GAUSSIAN.value(found.positions))
    whitened = np.linalg.solve(np.linalg.cholesky(GAUSSIAN.covariance), found.positions.T)
    # each of 1024 entries has a standard deviation of at most 0.01: more than 6 of them
    assert np.abs(np.cov(whitened) - np.eye(DIM)).max() < 0.065


def test_chains_of_figure_3_are_run_as_the_paper_says(sampled, run_case):
    run_case(figure_3, "hmc/0/1", **OF_FIGURE_3)
    ((asked, _),) = sampled
    paths = {"step_size": 0.108, "n_steps": 30, "randomize": False}
    assert asked["sampler"] == ("hmc", {"metric": "identity", **paths})
    assert [asked[n] for n in ("chains", "warmup", "draws", "surrogate")] == [1, 3, 12, None]
    assert_allclose(asked["initial"], np.zeros(DIM))


@pytest.mark.long
def test_hmc_accepts_about_as_often_as_the_paper_says(run_case):
    sizes = {"n_points": (60,), "repeats": 1, "burn_in": 50, "draws": 600}
    found = run_case(figure_3, "hmc/0/1", **sizes)
    assert 0.62 < found["acceptance"] < 0.82


def test_processes_are_timed_again_with_hyperparameters_given(monkeypatch, fitted, run_case):
    known = {"hyperparameters": {"length_scales": 2.0, "signal_sd": 10.0, "noise_sd": 0.1}}
    for name in ("gp", "fitc"):
        monkeypatch.setitem(figure_3.METHODS, name, {**figure_3.METHODS[name], **known})
        found = run_case(figure_3, f"{name}/100/1", **OF_FIGURE_3)
        assert min(found["solve_seconds"], found["training_seconds"]) > 0
    assert [settings.get("n_inducing") for _, settings, *_ in fitted] == [None, None, 90, 90]
    assert fitted[1][1]["hyperparameters"]["signal_sd"] == 10.0


def test_a_chain_that_never_moves_has_no_effective_draw(monkeypatch, run_case):
    wrong = sk.potential(lambda q: -1e3 * q.sum(), lambda q: np.full(DIM, -1e3), dim=DIM)
    monkeypatch.setattr(figure_3, "train", lambda *_, **__: (wrong, 1.0))
    found = run_case(figure_3, "additive-default/100/1", **OF_FIGURE_3)
    assert found["acceptance"] == found["mean_ess_per_second"] == found["min_ess_per_second"] == 0.0


def test_powers_of_growth_are_of_medians_over_the_larger_half():
    def row(method, n, repeat=1, **result):
        of = {"method": method, "n_points": n, "repeat": repeat}
        return {**of, "acceptance": 0.1, **result}

    sizes = (100, 200, 400, 800)
    rows = [row("gp", n, i, training_seconds=1e-6 * n**3 * i) for n in sizes for i in range(1, 12)]
    rows += [row("fitc", n, training_seconds=5.0 if n < 400 else 0.1 * n) for n in sizes]
    rows += [row("rbf", 100, training_seconds=1.0), row("hmc", 0, acceptance=0.7)]
    of = {name: [row for row in rows if row["method"] == name] for name in ("gp", "fitc", "rbf")}
    assert_allclose([growth(of["gp"]), growth(of["fitc"])], [3.0, 1.0])
    assert growth(of["rbf"]) is None
    tables, printed = figure_3.report(rows, None)
    assert printed[0][2] == 0.7
    first = tables[""][0]
    assert [first[n] for n in ("surrogate", "N", "repeats", "solving, s")] == ["GP", 100, 11, None]
    assert_allclose([first["training, s"], first["power of N"]], [6.0, 3.0])


# --- figures 4 and 5: trials ---


@pytest.fixture(scope="module")
def trial(sizes_of):
    """What is tried: draws of a target, and how often exact HMC is accepted by its step size."""
    sizes = sizes_of(figure_4, n_rows=200, chains=20, iterations=10)
    target = sk.make("potential", "simulated-logistic", n_rows=200, dim=3)
    start = {"initial": np.zeros(3), "chains": 20, "warmup": 30, "draws": 1, "seed": 3}
    starts = sk.sample(target, sampler="hmc", surrogate=None, progress=False, **start).draws[:, -1]
    return target, starts, partial(figure_4.acceptance, target, starts, 7, sizes)


def test_the_step_size_is_the_one_at_which_exact_hmc_accepts_so_much(trial):
    target, _, accepts = trial
    steps = [figure_4.step_size(accepts, 1.5, wanted) for wanted in (0.7, 0.85)]
    assert_allclose([accepts(step) for step in steps], [0.7, 0.85], atol=0.01)
    assert steps[1] < steps[0]
    assert_allclose(accepts(steps[0], target), accepts(steps[0]), rtol=1e-9)


def test_a_wrong_surrogate_is_hardly_ever_accepted_and_nobody_is_warned(trial):
    wrong = sk.make("potential", "gaussian", mean=np.full(3, 30.0), covariance=np.eye(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert trial[2](0.4, wrong) < 0.05


def test_training_points_are_new_states_of_one_chain(trial, sampled, monkeypatch):
    target, starts, _ = trial
    monkeypatch.setattr(figure_4, "BLOCK", 20)
    rng = np.random.default_rng(1)
    points = figure_4.training_points(target, starts[:1], 0.3, 30, 6, rng)
    assert len(np.unique(points.positions, axis=0)) == 30
    values, gradients = target.value_and_gradient(points.positions)
    assert_allclose(points.values, values)
    assert_allclose(points.gradients, gradients)
    draws = np.concatenate([run.draws[0] for _, run in sampled])
    accepted = np.concatenate([run.kept.accepted[0] for _, run in sampled])
    assert_allclose(points.positions, draws[accepted][:30])
    assert_allclose(sampled[1][0]["initial"], sampled[0][1].draws[:, -1])


def test_all_surrogates_of_a_case_are_tried_alike(sampled, fitted, run_case):
    sizes = {"dims": (2, 3), "n_nodes": (5, 20), "n_points": (40,), "gradient_points": (10,)}
    chains = {"repeats": 2, "n_rows": 200, "burn_in": 20, "chains": 6, "iterations": 6}
    result = run_case(figure_4, "2/1", **sizes, **chains)
    assert [(n, s, len(shown), gradients) for n, s, shown, gradients, _ in fitted] == [
        ("additive-paper", {"n_nodes": 5, "ridge": 1e-6}, 40, False),
        ("additive-paper", {"n_nodes": 20, "ridge": 1e-6}, 40, False),
        ("additive", {}, 40, False),
        ("additive", {}, 10, True),
    ]
    exact, *tried = [arguments for arguments, _ in sampled[-5:]]
    assert exact["surrogate"] == "none"
    assert len({id(arguments["surrogate"]) for arguments in tried}) == 4
    for arguments in (exact, *tried):
        paths = {"step_size": result["step_size"], "n_steps": 6}
        assert arguments["sampler"] == ("hmc", {"metric": "identity", **paths})
        assert (arguments["draws"], arguments["schedule"].repairs) == (6, 0)
        assert_allclose(arguments["initial"], exact["initial"])
    cells = result["tried"]
    assert [(c["method"], c["n_nodes"], c["n_points"]) for c in cells] == [
        ("hmc", None, 0),
        ("paper", 5, 40),
        ("paper", 20, 40),
        ("values", None, 40),
        ("defaults", None, 10),
    ]
    # five nodes cannot bend as a posterior in two dimensions does
    assert 0.0 <= cells[1]["acceptance"] < cells[4]["acceptance"] <= 1.0


# --- figures 4 and 5: reports and pictures ---


def row(dim, repeat, *tried):
    """Return a row of d, a repeat, and (method, nodes, points, acceptance) of each surrogate."""
    names = ("method", "n_nodes", "n_points", "acceptance")
    cells = [dict(zip(names, each, strict=True)) for each in (("hmc", None, 0, 0.7), *tried)]
    tried = [{"training_seconds": 3.0, **each} for each in cells]
    return {"dim": dim, "repeat": repeat, "tried": tried}


def by_dim(dim, repeat, few, many, values, gradients):
    paper = ("paper", 1000, 4000, few), ("paper", 2000, 4000, many)
    ours = ("values", None, 4000, values), ("defaults", None, 200, gradients)
    return row(dim, repeat, *paper, *ours)


OF_FIGURE_4 = [
    *(by_dim(32, i, few, 0.69, 0.70, 0.71) for i, few in ((1, 0.5), (2, 0.6), (3, 0.2))),
    by_dim(48, 1, 0.3, 0.65, 0.66, 0.70),
    by_dim(64, 1, 0.1, 0.40, 0.50, 0.70),
    by_dim(80, 1, 0.1, 0.69, 0.50, 0.70),
]


def by_points(repeat, points, gradients):
    curves = (
        ("paper", 500, dict.fromkeys(points, 0.2)),
        ("paper", 1000, points),
        ("values", None, points),
        ("defaults", None, gradients),
    )
    return row(32, repeat, *((m, s, n, a) for m, s, curve in curves for n, a in curve.items()))


OF_FIGURE_5 = [
    by_points(1, {500: 0.1, 1000: 0.65, 1600: 0.5, 2000: 0.66}, {10: 0.6, 50: 0.7}),
    by_points(2, {500: 0.2, 1000: 0.65, 1600: 0.5, 2000: 0.70}, {10: 0.6, 50: 0.7}),
]


def test_the_report_of_figure_4_holds_medians_over_runs_beside_the_papers_words(sizes_of):
    sizes = sizes_of(figure_4)
    tables, printed = figure_4.report(OF_FIGURE_4, sizes)
    (lines,) = tables.values()
    found = {(line["surrogate"][:5], line["s"], line["d"]): line["acceptance"] for line in lines}
    assert [found["the p", 2000, d] for d in (32, 48, 64, 80)] == [0.69, 0.65, 0.40, 0.69]
    assert (found["the p", 1000, 32], found["HMC, ", None, 64]) == (0.5, 0.7)
    assert len(lines) == 4 * 5
    assert [each[1:] for each in printed] == [
        ("around 0.7", 0.7),
        ("relatively high up to d of about 50", 0.65),
        ("about 50", 48),  # what comes again after a fall does not count
        ("a few", 3.0),
    ]
    low = figure_4.report(OF_FIGURE_4[4:5], sizes)[1]
    assert [ours for *_, ours in low] == [0.7, None, None, None]


def test_the_report_of_figure_5_holds_medians_over_runs_beside_the_papers_words(sizes_of):
    tables, printed = figure_5.report(OF_FIGURE_5, sizes_of(figure_5))
    (lines,) = tables.values()
    found = {(line["N"], line["s"]): line["acceptance"] for line in lines if line["s"]}
    medians = {500: 0.15, 1000: 0.65, 1600: 0.5, 2000: 0.68}
    assert_allclose([found[n, 1000] for n in medians], list(medians.values()))
    words, ours = zip(*(each[1:] for each in printed), strict=True)
    assert words == ("around 0.1", "comparable", "around 2000")
    assert_allclose(ours, [0.15, 0.68 / 0.7, 2000])
    low = [(name, s, 300, 0.1) for name, s in (("paper", 1000), ("values", None))]
    low += [("defaults", None, 50, 0.1)]
    found = figure_5.report([row(32, 1, *low)], sizes_of(figure_5))[1]
    assert [each[2] for each in found] == [None] * 3


def test_pictures_show_the_numbers(sizes_of):
    left, middle, right, _ = figure_4.draw(OF_FIGURE_4, sizes_of(figure_4)).axes
    numbers = " ".join(text.get_text() for text in left.texts)
    assert numbers == "0.50 0.69 0.30 0.65 0.10 0.40 0.10 0.69"
    assert (left.get_xlabel(), left.get_ylabel()) == ("hidden nodes s", "parameters d")
    assert (middle.get_xlabel(), right.get_ylabel()) == ("parameters d", "acceptance probability")
    left, middle, right, _ = figure_5.draw(OF_FIGURE_5, sizes_of(figure_5)).axes
    numbers = " ".join(text.get_text() for text in left.texts)
    assert numbers == "0.20 0.15 0.20 0.65 0.20 0.50 0.20 0.68"
    assert (middle.get_xlabel(), middle.get_xscale()) == ("training points N", "log")
    assert right.get_title(loc="left") == "training points N = 1600"
