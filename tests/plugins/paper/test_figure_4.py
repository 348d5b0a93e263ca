"""Figure 4 and what it shares with figure 5: trials of surrogates, grids, report and picture."""

from __future__ import annotations

import json
import warnings

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit.output.files import plain, write_pictures
from surrokit_paper import acceptance
from surrokit_paper.acceptance import Grid, coefficients, section
from surrokit_paper.figure_4 import Figure4
from surrokit_paper.harness import Conditions, Finished, reproduce

TINY = {
    "dims": (2, 3),
    "n_nodes": (5, 20),
    "n_points": 40,
    "gradient_points": 10,
    "repeats": 2,
    "n_rows": 200,
    "burn_in": 20,
    "chains": 6,
    "iterations": 6,
}


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    return reproduce(Figure4(**TINY), tmp_path_factory.mktemp("figure-4"))


@pytest.fixture(scope="module")
def trial():
    experiment = Figure4(n_rows=200, burn_in=30, chains=20, iterations=10)
    return experiment.trial(3, np.random.default_rng(3))


# --- trials ---


def test_the_step_size_is_the_one_at_which_exact_hmc_accepts_so_much(trial):
    assert abs(trial.acceptance() - 0.7) < 0.01
    assert abs(trial.accepting(0.85).acceptance() - 0.85) < 0.01
    assert trial.accepting(0.85).step_size < trial.step_size


def test_proposals_on_the_target_itself_are_accepted_as_exact_hmc_accepts(trial):
    assert_allclose(trial.acceptance(trial.target), trial.acceptance(), rtol=1e-9)


def test_a_wrong_surrogate_is_hardly_ever_accepted_and_nobody_is_warned(trial):
    wrong = sk.make("potential", "gaussian", mean=np.full(3, 30.0), covariance=np.eye(3))
    longer = attrs.evolve(trial, iterations=50)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert longer.acceptance(wrong) < 0.05


@pytest.mark.long
def test_training_points_are_new_states_of_one_chain(trial, sampled, monkeypatch):
    monkeypatch.setattr(acceptance, "BLOCK", 20)
    points = trial.training_points(30, np.random.default_rng(1))
    assert len(points) == len(np.unique(points.positions, axis=0)) == 30
    values, gradients = trial.target.value_and_gradient(points.positions)
    assert_allclose(points.values, values)
    assert_allclose(points.gradients, gradients)
    assert len(sampled) >= 2
    draws = np.concatenate([run.draws[0] for _, run in sampled])
    accepted = np.concatenate([run.kept.accepted[0] for _, run in sampled])
    assert_allclose(points.positions, draws[accepted][:30])
    assert_allclose(sampled[1][0]["initial"], sampled[0][1].draws[:, -1])
    for arguments, _ in sampled:
        paths = {"step_size": trial.step_size, "n_steps": 6}
        assert arguments["sampler"] == ("hmc", {"metric": "identity", **paths})


# --- rows ---


@pytest.mark.long
def test_all_surrogates_of_a_row_are_tried_alike(sampled, monkeypatch):
    seen = []
    real = acceptance.train

    def watched(surrogate, settings, evaluations, rng):
        shown = evaluations.gradients is not None
        seen.append((surrogate, dict(settings), len(evaluations), shown))
        return real(surrogate, settings, evaluations, rng)

    monkeypatch.setattr(acceptance, "train", watched)
    experiment = Figure4(**TINY)
    result = experiment.run(experiment.rows()[0], Conditions(seed=1))
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
        assert arguments["draws"] == 6
        assert arguments["schedule"].rescues == 0
        assert_allclose(arguments["initial"], exact["initial"])
    assert len(exact["initial"]) == 6


def test_more_repeats_and_sizes_use_the_same_rows():
    rows = Figure4(**TINY).rows()
    assert [row.name for row in rows] == ["2/1", "3/1", "2/2", "3/2"]
    more = Figure4(**{**TINY, "repeats": 5, "dims": (2, 3, 4)}).rows()
    known = {row.name: row.settings for row in more}
    assert all(known[row.name] == row.settings for row in rows)


@pytest.mark.long
def test_rows_are_done_and_hold_what_the_picture_needs(outcome):
    assert len(outcome.finished) == 4
    for done in outcome.finished:
        assert 0.5 < done.result["hmc_acceptance"] < 0.9
        cells = done.result["cells"]
        assert [(c["method"], c["n_nodes"], c["n_points"]) for c in cells] == [
            ("paper", 5, 40),
            ("paper", 20, 40),
            ("additive-default", None, 40),
            ("additive-gradients", None, 10),
        ]
        assert all(0.0 <= cell["acceptance"] <= 1.0 for cell in cells)
        assert [cell["nodes_used"] for cell in cells[:2]] == [5, 20]
        # five nodes cannot bend as a posterior in two or three dimensions does
        assert cells[0]["acceptance"] < cells[3]["acceptance"]


# --- report ---


def cell(method, n_nodes, n_points, acceptance):
    return {
        "method": method,
        "n_nodes": n_nodes,
        "n_points": n_points,
        "nodes_used": n_nodes or 7,
        "acceptance": acceptance,
        "training_seconds": 3.0,
    }


def row(dim, repeat, *acceptances):
    few, many, values, gradients = acceptances
    cells = [
        cell("paper", 1000, 4000, few),
        cell("paper", 2000, 4000, many),
        cell("additive-default", None, 4000, values),
        cell("additive-gradients", None, 200, gradients),
    ]
    return Finished(
        name=f"{dim}/{repeat}",
        settings={"dim": dim, "repeat": repeat},
        result={"hmc_acceptance": 0.7, "step_size": 0.1 * repeat, "cells": cells},
        seconds=1.0,
    )


ROWS = [
    row(32, 1, 0.5, 0.69, 0.70, 0.71),
    row(32, 2, 0.6, 0.69, 0.70, 0.71),
    row(32, 3, 0.2, 0.69, 0.70, 0.71),
    row(48, 1, 0.3, 0.65, 0.66, 0.70),
    row(64, 1, 0.1, 0.40, 0.50, 0.70),
    row(80, 1, 0.1, 0.69, 0.50, 0.70),
]


def test_the_report_holds_medians_over_runs():
    told = Figure4().report(ROWS)
    first, second, third, fourth = told.tables[0].lines
    assert (first["d"], first["runs"], first["HMC"]) == (32, 3, 0.7)
    assert (first["s = 1000"], first["s = 2000"]) == (0.5, 0.69)
    assert first["coefficients of a quadratic"] == 561
    assert (second["s = 2000"], third["s = 1000"], fourth["d"]) == (0.65, 0.1, 80)
    by_dim = told.tables[1].lines
    assert [line["d"] for line in by_dim] == [32, 48, 64, 80] * 3
    assert {line["s"] for line in by_dim if line["N"] == 200} == {7}
    assert {line["s"] for line in by_dim[:4]} == {2000}
    assert json.loads(json.dumps(plain(told.figures)))["hmc"]["32"]["runs"] == 3


def test_the_papers_words_stand_beside_our_numbers():
    ours = [(figure.printed, figure.ours) for figure in Figure4().report(ROWS).printed]
    assert ours == [
        ("around 0.7", 0.7),
        ("relatively high up to d of about 50", 0.65),
        ("about 50", 48),  # what comes again after a fall does not count
        ("a few", 3.0),
    ]
    assert [figure.ours for figure in Figure4().report(ROWS[4:5]).printed] == [
        0.7,
        None,
        None,
        None,
    ]


def test_quantiles_are_over_runs():
    found = Grid.of(ROWS).curve("paper", dim=32, n_nodes=1000)[0]["acceptance"]
    assert_allclose([found[name] for name in ("low", "median", "high")], [0.26, 0.5, 0.58])
    assert_allclose(found["mean"], 1.3 / 3)
    assert Grid.of(ROWS).step_sizes[32] == 0.2


def test_a_quadratic_has_so_many_coefficients():
    assert [coefficients(dim) for dim in (1, 2, 32)] == [3, 6, 561]


def test_a_section_is_the_papers_or_the_largest():
    assert section([8, 32, 64], 32) == 32
    assert section([8, 16], 32) == 16


# --- picture and settings ---


def test_the_picture_shows_the_numbers():
    figure = Figure4().draw(ROWS)
    left, middle, right, _ = figure.axes
    assert [text.get_text() for text in left.texts] == [
        *("0.50", "0.69"),
        *("0.30", "0.65"),
        *("0.10", "0.40"),
        *("0.10", "0.69"),
    ]
    assert (left.get_xlabel(), left.get_ylabel()) == ("hidden nodes s", "parameters d")
    assert (middle.get_ylabel(), right.get_xlabel()) == ("acceptance probability", "parameters d")
    # 1000 nodes are enough for 561 coefficients; 2000 for 1225, and not for 2145
    drawn = {tuple(map(tuple, line.get_xydata())) for line in left.lines}
    assert drawn == {
        ((-0.5, 0.5), (0.5, 0.5)),
        ((0.5, 0.5), (0.5, 1.5)),
        ((0.5, 1.5), (1.5, 1.5)),
    }


@pytest.mark.long
def test_a_picture_is_drawn_of_whatever_is_finished(outcome, tmp_path):
    figure = Figure4(**TINY).draw(outcome.finished[:1])
    for path in write_pictures(figure, tmp_path / "picture"):
        assert path.stat().st_size > 5000
    assert len(Figure4(**TINY).draw(outcome.finished).axes) == len(figure.axes) == 4
