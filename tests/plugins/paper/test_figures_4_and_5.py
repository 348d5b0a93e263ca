"""Figures 4 and 5: trials of surrogates, rows, reports and pictures of grids."""

from __future__ import annotations

import itertools
import warnings

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit_paper import figure_4
from surrokit_paper.figure_4 import Figure4, Figure5, Grid

LABELS = {
    "paper": "the paper's network, values alone",
    "additive-default": "surrokit's defaults, values alone",
    "additive-gradients": "surrokit's defaults, gradients too",
}


# --- trials and rows ---


@pytest.fixture(scope="module")
def trial():
    experiment = Figure4(n_rows=200, burn_in=30, chains=20, iterations=10)
    return experiment.trial(3, np.random.default_rng(3))


def test_the_step_size_is_the_one_at_which_exact_hmc_accepts_so_much(trial):
    assert abs(trial.acceptance() - 0.7) < 0.01
    assert abs(trial.accepting(0.85).acceptance() - 0.85) < 0.01
    assert trial.accepting(0.85).step_size < trial.step_size
    assert_allclose(trial.acceptance(trial.target), trial.acceptance(), rtol=1e-9)


def test_a_wrong_surrogate_is_hardly_ever_accepted_and_nobody_is_warned(trial):
    wrong = sk.make("potential", "gaussian", mean=np.full(3, 30.0), covariance=np.eye(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert attrs.evolve(trial, iterations=50).acceptance(wrong) < 0.05


def test_training_points_are_new_states_of_one_chain(trial, sampled, monkeypatch):
    monkeypatch.setattr(figure_4, "BLOCK", 20)
    points = trial.training_points(30, np.random.default_rng(1))
    assert len(np.unique(points.positions, axis=0)) == 30
    values, gradients = trial.target.value_and_gradient(points.positions)
    assert_allclose(points.values, values)
    assert_allclose(points.gradients, gradients)
    draws = np.concatenate([run.draws[0] for _, run in sampled])
    accepted = np.concatenate([run.kept.accepted[0] for _, run in sampled])
    assert_allclose(points.positions, draws[accepted][:30])
    assert_allclose(sampled[1][0]["initial"], sampled[0][1].draws[:, -1])


def test_all_surrogates_of_a_row_are_tried_alike(sampled, monkeypatch, run_row):
    seen, real = [], figure_4.train

    def watched(surrogate, settings, evaluations, rng, gradients):
        seen.append((surrogate, dict(settings), len(evaluations), gradients))
        return real(surrogate, settings, evaluations, rng, gradients)

    monkeypatch.setattr(figure_4, "train", watched)
    sizes = {"dims": (2, 3), "n_nodes": (5, 20), "n_points": 40, "gradient_points": 10}
    chains = {"repeats": 2, "n_rows": 200, "burn_in": 20, "chains": 6, "iterations": 6}
    experiment = Figure4(**sizes, **chains)
    result = run_row(experiment, "2/1")
    assert seen == [
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
        assert (arguments["draws"], arguments["schedule"].rescues) == (6, 0)
        assert_allclose(arguments["initial"], exact["initial"])
    cells = result["cells"]
    assert [(c["method"], c["n_nodes"], c["n_points"]) for c in cells] == [
        ("paper", 5, 40),
        ("paper", 20, 40),
        ("additive-default", None, 40),
        ("additive-gradients", None, 10),
    ]
    # five nodes cannot bend as a posterior in two dimensions does
    assert 0.0 <= cells[0]["acceptance"] < cells[3]["acceptance"] <= 1.0
    rows = {row.name: row.settings for row in experiment.rows()}
    assert list(rows) == ["2/1", "3/1", "2/2", "3/2"]
    more = attrs.evolve(experiment, repeats=5, dims=(2, 3, 4)).rows()
    assert rows.items() <= {row.name: row.settings for row in more}.items()


@pytest.mark.long
def test_gradients_are_worth_more_than_ten_times_as_many_values(run_row):
    sizes = {"n_nodes": 500, "n_points": (100, 600), "gradient_points": 20, "n_rows": 2000}
    result = run_row(Figure5(dims=16, repeats=1, **sizes), "16/1")
    found = {
        (c["method"], c["n_points"]): c["acceptance"] / result["hmc_acceptance"]
        for c in result["cells"]
    }
    assert found["paper", 100] < 0.9 < found["paper", 600]
    assert found["additive-gradients", 20] > 0.9


# --- reports and pictures ---


@pytest.fixture
def row(finished):
    """Make a row of d, a repeat, and (method, nodes, points, acceptance) of each surrogate."""

    def make(dim, repeat, *tried):
        names = ("method", "n_nodes", "n_points", "acceptance")
        cells = [dict(zip(names, each, strict=True)) for each in tried]
        cells = [{**c, "nodes_used": c["n_nodes"] or 7, "training_seconds": 3.0} for c in cells]
        result = {"hmc_acceptance": 0.7, "step_size": 0.1 * repeat, "cells": cells}
        return finished(f"{dim}/{repeat}", {"dim": dim, "repeat": repeat}, result)

    return make


@pytest.fixture
def of_figure_4(row):
    def by_dim(dim, repeat, few, many, values, gradients):
        paper = ("paper", 1000, 4000, few), ("paper", 2000, 4000, many)
        ours = ("additive-default", None, 4000, values)
        return row(dim, repeat, *paper, ours, ("additive-gradients", None, 200, gradients))

    return [
        *(by_dim(32, i, few, 0.69, 0.70, 0.71) for i, few in ((1, 0.5), (2, 0.6), (3, 0.2))),
        by_dim(48, 1, 0.3, 0.65, 0.66, 0.70),
        by_dim(64, 1, 0.1, 0.40, 0.50, 0.70),
        by_dim(80, 1, 0.1, 0.69, 0.50, 0.70),
    ]


@pytest.fixture
def of_figure_5(row):
    def by_points(repeat, points, gradients):
        curves = (
            ("paper", 500, dict.fromkeys(points, 0.2)),
            ("paper", 1000, points),
            ("additive-default", None, points),
            ("additive-gradients", None, gradients),
        )
        cells = [(name, s, n, a) for name, s, curve in curves for n, a in curve.items()]
        return row(32, repeat, *cells)

    return [
        by_points(1, {500: 0.1, 1000: 0.65, 1600: 0.5, 2000: 0.66}, {10: 0.6, 50: 0.7}),
        by_points(2, {500: 0.2, 1000: 0.65, 1600: 0.5, 2000: 0.70}, {10: 0.6, 50: 0.7}),
    ]


def test_the_report_of_figure_4_holds_medians_over_runs_beside_the_papers_words(of_figure_4):
    report = Figure4().report(of_figure_4)
    heat_map, by_dim = report.tables.values()
    first = {"d": 32, "runs": 3, "coefficients of a quadratic": 561, "HMC": 0.7}
    assert heat_map[0] == {**first, "s = 1000": 0.5, "s = 2000": 0.69}
    assert [line["s = 2000"] for line in heat_map] == [0.69, 0.65, 0.40, 0.69]
    assert [line["d"] for line in by_dim] == [32, 48, 64, 80] * 3
    assert [line["surrogate"] for line in by_dim[::4]] == list(LABELS.values())
    assert {line["s"] for line in by_dim if line["N"] == 200} == {7}
    assert {line["s"] for line in by_dim[:4]} == {2000}
    assert [each[1:] for each in report.printed] == [
        ("around 0.7", 0.7),
        ("relatively high up to d of about 50", 0.65),
        ("about 50", 48),  # what comes again after a fall does not count
        ("a few", 3.0),
    ]
    low = Figure4().report(of_figure_4[4:5]).printed
    assert [ours for *_, ours in low] == [0.7, None, None, None]
    grid = Grid.of(of_figure_4)
    found = grid.curve("paper", dim=32, n_nodes=1000)[0]["acceptance"]
    assert_allclose([found[name] for name in ("low", "median", "high")], [0.26, 0.5, 0.58])
    assert_allclose([found["mean"], grid.step_sizes[32]], [1.3 / 3, 0.2])


def test_the_report_of_figure_5_holds_medians_over_runs_beside_the_papers_words(of_figure_5, row):
    report = Figure5().report(of_figure_5)
    (title, heat_map), (_, by_points) = report.tables.items()
    assert "d = 32, HMC 0.70, runs: 2" in title
    assert list(heat_map[0]) == ["N", "s = 500", "s = 1000"]
    numbers = [list(line.values()) for line in heat_map]
    medians = {500: 0.15, 1000: 0.65, 1600: 0.5, 2000: 0.68}
    assert_allclose(numbers, [(n, 0.2, median) for n, median in medians.items()])
    needed = {line["surrogate"]: line["0.9 of HMC's from N"] for line in by_points}
    assert needed == dict(zip(LABELS.values(), (2000, 2000, 50), strict=True))
    assert [line["N"] for line in by_points] == [500, 1000, 1600, 2000] * 2 + [10, 50]
    words, ours = zip(*(each[1:] for each in report.printed), strict=True)
    assert words == ("around 0.1", "comparable", "around 2000")
    assert_allclose(ours, [0.15, 0.68 / 0.7, 2000])
    low = [(name, s, 300, 0.1) for name, s in (("paper", 1000), ("additive-gradients", None))]
    assert [each[2] for each in Figure5().report([row(32, 1, *low)]).printed] == [None] * 3


def drawn_map(ax):
    """Return numbers and lines of a heat map."""
    lines = {tuple(map(tuple, line.get_xydata())) for line in ax.lines}
    return " ".join(text.get_text() for text in ax.texts), lines


def test_pictures_show_the_numbers_and_where_a_quadratic_fits(of_figure_4, of_figure_5):
    left, middle, right, _ = Figure4().draw(of_figure_4).axes
    numbers, lines = drawn_map(left)
    assert numbers == "0.50 0.69 0.30 0.65 0.10 0.40 0.10 0.69"
    assert (left.get_xlabel(), left.get_ylabel()) == ("hidden nodes s", "parameters d")
    assert (middle.get_ylabel(), right.get_xlabel()) == ("acceptance probability", "parameters d")
    # 1000 nodes are enough for 561 coefficients; 2000 for 1225, and not for 2145
    corners = (-0.5, 0.5), (0.5, 0.5), (0.5, 1.5), (1.5, 1.5)
    assert lines == set(itertools.pairwise(corners))
    left, middle, right, _ = Figure5().draw(of_figure_5).axes
    numbers, lines = drawn_map(left)
    assert numbers == "0.20 0.15 0.20 0.65 0.20 0.50 0.20 0.68"
    assert (middle.get_xlabel(), middle.get_xscale()) == ("training points N", "log")
    assert right.get_xlabel() == "hidden nodes s of the paper's network"
    # 561 coefficients: more than 500 points or nodes, fewer than 1000
    assert {((0.5, 0.5), (1.5, 0.5)), ((0.5, 0.5), (0.5, 1.5))} <= lines
    assert len(lines) == 4
