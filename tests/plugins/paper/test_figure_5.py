"""Figure 5: what its report says, its picture, and a tiny run."""

from __future__ import annotations

import numpy as np
import pytest

from surrokit_paper.figure_5 import Figure5
from surrokit_paper.harness import Conditions, Finished


def row(repeat, by_points, gradients, dim=32, hmc=0.7):
    cells = [
        {
            "method": method,
            "n_nodes": n_nodes,
            "n_points": n,
            "nodes_used": n_nodes or 0,
            "acceptance": acceptance,
            "training_seconds": 1.0,
        }
        for method, n_nodes, curve in (
            ("paper", 500, dict.fromkeys(by_points, 0.2)),
            ("paper", 1000, by_points),
            ("additive-default", None, by_points),
            ("additive-gradients", None, gradients),
        )
        for n, acceptance in curve.items()
    ]
    return Finished(
        name=f"{dim}/{repeat}",
        settings={"dim": dim, "repeat": repeat},
        result={"hmc_acceptance": hmc, "step_size": 0.1, "cells": cells},
        seconds=1.0,
    )


ROWS = [
    row(1, {500: 0.1, 1000: 0.65, 1600: 0.5, 2000: 0.66}, {10: 0.6, 50: 0.7}),
    row(2, {500: 0.2, 1000: 0.65, 1600: 0.5, 2000: 0.70}, {10: 0.6, 50: 0.7}),
]


def test_the_report_holds_medians_over_runs():
    first, second = Figure5().report(ROWS).tables
    assert "d = 32, HMC 0.70" in first.title
    assert "runs: 2" in first.title
    assert tuple(first.lines[0]) == ("N", "s = 500", "s = 1000")
    assert [tuple(np.round(list(line.values()), 6)) for line in first.lines] == [
        (500, 0.2, 0.15),
        (1000, 0.2, 0.65),
        (1600, 0.2, 0.5),
        (2000, 0.2, 0.68),
    ]
    needed = {line["surrogate"]: line["0.9 of HMC's from N"] for line in second.lines}
    assert needed == {
        "the paper's network, values alone": 2000,
        "surrokit's defaults, values alone": 2000,
        "surrokit's defaults, gradients too": 50,
    }
    assert [line["N"] for line in second.lines] == [500, 1000, 1600, 2000] * 2 + [10, 50]


def test_the_papers_words_stand_beside_our_numbers():
    figures = Figure5().report(ROWS).printed
    assert [figure.printed for figure in figures] == ["around 0.1", "comparable", "around 2000"]
    few, many, needed = [figure.ours for figure in figures]
    np.testing.assert_allclose([few, many], [0.15, 0.68 / 0.7])
    assert needed == 2000
    short = Figure5().report([row(1, {300: 0.1}, {10: 0.6})])
    assert [figure.ours for figure in short.printed] == [None, None, None]


def test_the_picture_shows_the_numbers():
    figure = Figure5().draw(ROWS)
    left, middle, right, _ = figure.axes
    assert [text.get_text() for text in left.texts] == [
        *("0.20", "0.15", "0.20", "0.65"),
        *("0.20", "0.50", "0.20", "0.68"),
    ]
    assert (left.get_xlabel(), left.get_ylabel()) == ("hidden nodes s", "training points N")
    assert middle.get_xlabel() == "training points N"
    assert middle.get_xscale() == "log"
    assert right.get_xlabel() == "hidden nodes s of the paper's network"
    # 561 coefficients: more than 500 points or nodes, fewer than 1000
    drawn = {tuple(map(tuple, line.get_xydata())) for line in left.lines}
    assert ((0.5, 0.5), (1.5, 0.5)) in drawn
    assert ((0.5, 0.5), (0.5, 1.5)) in drawn
    assert len(drawn) == 4


def test_a_tiny_run_is_drawn_and_reported():
    experiment = Figure5(
        dims=2,
        n_nodes=(5, 20),
        n_points=(10, 40),
        gradient_points=(3, 10),
        repeats=1,
        n_rows=200,
        burn_in=20,
        chains=5,
        iterations=5,
    )
    (one,) = experiment.rows()
    result = experiment.run(one, Conditions(seed=1))
    found = [(c["method"], c["n_nodes"], c["n_points"]) for c in result["cells"]]
    assert found == [
        ("paper", 5, 10),
        ("paper", 20, 10),
        ("additive-default", None, 10),
        ("paper", 5, 40),
        ("paper", 20, 40),
        ("additive-default", None, 40),
        ("additive-gradients", None, 3),
        ("additive-gradients", None, 10),
    ]
    done = Finished(name=one.name, settings=one.settings, result=result, seconds=1.0)
    assert len(experiment.report([done]).tables[0].lines) == 2
    assert len(experiment.draw([done]).axes) == 4


@pytest.mark.long
def test_gradients_are_worth_more_than_ten_times_as_many_values():
    experiment = Figure5(
        dims=16, n_nodes=500, n_points=(100, 600), gradient_points=20, repeats=1, n_rows=2000
    )
    (one,) = experiment.rows()
    result = experiment.run(one, Conditions(seed=1))
    found = {
        (c["method"], c["n_points"]): c["acceptance"] / result["hmc_acceptance"]
        for c in result["cells"]
    }
    assert found["paper", 100] < 0.9 < found["paper", 600]
    assert found["additive-gradients", 20] > 0.9
