"""The trials' own bookkeeping: what is right, what is warned, and what the table says."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

import surrokit as sk


@pytest.fixture
def normal():
    from user_trials.outcomes import Trial

    return Trial(
        name="normal",
        variant="values",
        target=lambda _: sk.potential(lambda q: 0.5 * q @ q, lambda q: q, dim=2),
        truth=lambda: (np.zeros(2), np.ones(2)),
        settings={"sampler": "hmc", "warmup": 300, "draws": 1000},
    )


def test_a_run_is_right_or_wrong_by_its_moments(normal):
    from user_trials.outcomes import RIGHT, WRONG_SILENT, outcome

    assert outcome(normal.row(1, 60.0)) == RIGHT
    wrong = attrs.evolve(normal, truth=lambda: (np.array([0.0, 1.0]), np.array([1.0, 2.0])))
    row = wrong.row(1, 60.0)
    assert outcome(row) == WRONG_SILENT
    assert [words[:13] for words in row["wrong"]] == ["mean of q[1] ", "sd of q[1] is"]


def test_a_mean_may_be_off_by_the_errors_that_are_told(normal):
    strict = attrs.evolve(normal, off_mean=1e-9)
    assert strict.row(1, 60.0)["wrong"]
    assert not attrs.evolve(strict, errors=6.0).row(1, 60.0)["wrong"]


def test_a_sign_that_is_turned_is_refused_and_not_asked_for_more(normal):
    from user_trials.outcomes import RIGHT_WARNED, WRONG_SILENT, outcome

    fine = attrs.evolve(normal, truth=None)
    assert outcome(fine.row(1, 60.0)) == WRONG_SILENT
    turned = sk.potential(lambda q: -0.5 * q @ q, lambda q: -q, dim=2)
    assert outcome(attrs.evolve(fine, target=lambda _: turned).row(1, 60.0)) == RIGHT_WARNED


def test_a_target_that_does_not_return_has_no_end(normal, monkeypatch):
    from user_trials import outcomes

    def stuck(q):
        while True:
            pass

    monkeypatch.setattr(outcomes, "GRACE", 0.0)
    trial = attrs.evolve(normal, target=lambda _: sk.potential(stuck, dim=2), settings={})
    row = trial.row(1, 0.2)
    assert outcomes.outcome(row) == outcomes.NO_END


def test_the_table_has_what_was_wrong_in_bold(normal):
    from trials import report

    row = {"status": "done", "warnings": [], "calls": 300.0, "seconds": 1.0, "stopped": "draws"}
    rows = {
        ("normal", "values", 1): {**row, "seed": 1, "wrong": []},
        ("normal", "values", 2): {**row, "seed": 2, "wrong": ["R-hat of a is 3"], "calls": 20.0},
    }
    last = report([normal], rows).splitlines()[-1]
    assert last == (
        "| normal, values | 1 |  |  | **1** |  | 20 to 300 | 1.0 | seed 2: R-hat of a is 3 |"
    )


@pytest.mark.long
def test_the_truth_of_the_epidemic_is_that_of_its_density():
    from user_trials import densities, references

    mean, sd = references.sir()
    best = densities.sir(mean)
    for i in range(3):
        away = mean + 6.0 * sd * np.eye(3)[i]
        assert densities.sir(away) < best - 10.0
    columns = references._solved(mean[:, None])[:, 0]
    np.testing.assert_allclose(columns, densities.in_bed(mean), rtol=1e-4)
