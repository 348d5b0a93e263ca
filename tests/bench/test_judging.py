"""How benchmarks judge: which draws are right, and what is said of those that are not."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

import surrokit as sk


@pytest.fixture
def reference():
    return {"a": {"mean": 2.0, "sd": 0.5}, "b": {"mean": -1e6, "sd": 1e3}}


@pytest.fixture
def named(rng, reference):
    """Draws of the reference: chance moves means by 0.03 sd and more once in 300 times."""
    return {
        name: x["mean"] + x["sd"] * rng.standard_normal((4, 2000)) for name, x in reference.items()
    }


def test_draws_of_the_reference_are_right(named, reference):
    from real_posteriors.judging import judge

    found = judge(named, reference)
    assert found.right
    assert found.rhat < 1.01
    assert found.mean < 0.05
    assert found.sd < 0.05
    assert found.ess > 5000


def test_what_is_wrong_is_named(named, reference, rng):
    from real_posteriors.judging import judge

    off = judge({**named, "a": named["a"] + 0.1}, reference)
    assert [text.partition(" is off")[0] for text in off.wrong] == ["mean of a"]
    wide = judge({**named, "b": 1.2 * (named["b"] + 1e6) - 1e6}, reference)
    assert wide.wrong == (f"sd of b is off by {wide.sd:.0%}",)
    apart = judge({**named, "a": named["a"] + np.array([[0.2], [-0.2], [0.2], [-0.2]])}, reference)
    assert apart.wrong[0] == f"R-hat of a is {apart.rhat:.4g}"


def test_chains_that_stand_still_are_wrong(named, reference):
    from real_posteriors.judging import judge

    stuck = judge({**named, "a": np.full((4, 2000), 2.0)}, reference)
    assert stuck.rhat is None
    assert stuck.ess is None
    assert "R-hat of a is nan" in stuck.wrong
    lost = judge({**named, "a": np.full((4, 2000), np.nan)}, reference)
    assert "mean of a is off by nan sd" in lost.wrong


def test_verdicts():
    from real_posteriors.judging import verdict

    fine = {"status": "done", "wrong": [], "warnings": []}
    wrong = {**fine, "wrong": ["R-hat of sigma is 1.5"]}
    assert verdict(fine) == "right"
    assert verdict({**fine, "warnings": ["look"]}) == "right"
    assert verdict(wrong) == "wrong, silent"
    assert verdict({**wrong, "warnings": ["look"]}) == "wrong, warned"
    assert verdict({"status": "over time"}) == "over time"


@pytest.fixture
def normal():
    from user_trials.outcomes import Trial

    return Trial(
        name="normal",
        variant="values",
        target=lambda _: sk.potential(lambda q: 0.5 * q @ q, lambda q: q, dim=2),
        truth=lambda: (np.zeros(2), np.ones(2)),
        settings={"sampler": "hmc", "warmup": 300, "draws": 600},
    )


def test_a_run_is_right_or_wrong_by_its_moments_and_the_errors_that_are_told(normal):
    from user_trials.outcomes import RIGHT, WRONG_SILENT, outcome

    assert outcome(normal.row(1, 60.0)) == RIGHT
    wrong = attrs.evolve(normal, truth=lambda: (np.array([0.0, 1.0]), np.array([1.0, 2.0])))
    row = wrong.row(1, 60.0)
    assert outcome(row) == WRONG_SILENT
    assert [words[:13] for words in row["wrong"]] == ["mean of q[1] ", "sd of q[1] is"]
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
