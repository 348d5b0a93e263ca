"""Exploration by the exact sampler's own burn-in."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import ConfigurationError
from surrokit.interfaces import Start
from surrokit.testing.targets import Gaussian

NORMAL = Gaussian(mean=(0.0, 0.0), covariance=((1.0, 0.0), (0.0, 1.0)))


def explorer(sampler="hmc", **settings):
    return sk.make("explorer", "sampler", sampler=sampler, correction="metropolis", **settings)


def start_at(target, positions, warmup=60):
    return Start(
        potential=target,
        positions=positions,
        warmup=warmup,
        evaluated=target.drain,
        fit=lambda rows: None,
    )


def explored(made, warmup=60, chains=3, seed=1):
    """Drive an explorer as a run does; return its items, the rows of each, and the target."""
    target = RecordingPotential(NORMAL, keep=True)
    rng = np.random.default_rng(seed)
    start = start_at(target, rng.standard_normal((chains, 2)), warmup)
    first, *items = made.explore(start, rng)
    assert first.rows is None
    assert first.step is None
    assert [item.done for item in items] == [False] * (len(items) - 1) + [True]
    return items, [item.rows for item in items], target


# --- how long ---


@pytest.mark.parametrize(
    ("settings", "iterations"),
    [
        ({}, 15),
        ({"sampler": "random-walk"}, 30),
        ({"iterations": 60}, 60),
        ({"evaluations": 10**6}, 60),
        ({"evaluations": 10**6, "iterations": 4}, 4),
    ],
)
def test_the_length_is_a_part_of_the_warm_up_unless_given(settings, iterations):
    assert len(explored(explorer(**settings))[0]) == iterations


@pytest.mark.parametrize("wanted", [1, 10, 40])
def test_exploration_ends_as_soon_as_there_are_enough_rows(wanted):
    _, rows, _ = explored(explorer("random-walk", evaluations=wanted))
    assert sum(map(len, rows)) >= wanted
    assert sum(map(len, rows[:-1])) < wanted


# --- what is learnt from ---


@pytest.mark.parametrize("learn_from", ["all", "accepted", "states"])
def test_rows_are_exact_and_those_asked_for(learn_from):
    items, rows, target = explored(explorer("random-walk", learn_from=learn_from))
    for item, found in zip(items, rows, strict=True):
        chains = item.findings.chains
        assert_allclose(found.values, NORMAL.value(found.positions))
        assert_allclose(chains.values, NORMAL.value(chains.positions))
    n, accepted = sum(map(len, rows)), sum(item.step.accepted.sum() for item in items)
    assert n == {"all": target.calls["value"], "accepted": accepted, "states": 3 * 30}[learn_from]
    assert 0 < accepted < 3 * 30


def test_rows_at_the_start_are_discarded():
    _, rows, _ = explored(explorer(discard=12))
    assert [len(found) for found in rows[:12]] == [0] * 12
    assert len(rows[12]) > 0


# --- what is found ---


def test_findings_are_chains_covariance_and_step_size():
    findings = explored(explorer(iterations=400), warmup=400)[0][-1].findings
    assert_allclose(findings.covariance, np.eye(2), atol=0.35)
    assert 0.1 < findings.step_size < 3.0


def test_the_start_pays_once_for_each_chain():
    target = RecordingPotential(NORMAL, keep=True)
    next(explorer().explore(start_at(target, np.zeros((5, 2))), np.random.default_rng(1)))
    assert target.calls["gradient"] == 5
    assert target.calls["value"] == 0


def test_a_step_size_given_is_kept():
    items, _, _ = explored(explorer(("hmc", {"step_size": 0.2, "n_steps": 3})))
    assert max(item.step.n_steps.max() for item in items) <= 3


# --- what is refused ---


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"iterations": 0}, "iterations must be a whole number of at least 1"),
        ({"evaluations": 2.5}, "evaluations must be a whole number of at least 1"),
        ({"discard": -1}, "discard must be a whole number of at least 0, got"),
        ({"learn_from": "some"}, "learn_from must be one of all, accepted, states"),
    ],
)
def test_settings_out_of_range_are_refused(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        explorer(**settings)


@pytest.mark.parametrize(
    ("warmup", "settings", "message"),
    [
        (
            60,
            {"iterations": 100},
            "asks for 100 iterations, but warmup is 60 and counts",
        ),
        (60, {"discard": 30}, "nothing is left to learn from; raise warmup or"),
        (60, {"iterations": 5, "discard": 5}, "nothing is left to learn from; raise warmup or"),
        (1, {}, "raise warmup"),
    ],
)
def test_what_the_warm_up_has_no_room_for_is_refused(warmup, settings, message):
    with pytest.raises(ConfigurationError, match=message):
        started(warmup, **settings)


def started(warmup, **settings):
    start = start_at(RecordingPotential(NORMAL, keep=True), np.zeros((2, 2)), warmup)
    next(explorer(**settings).explore(start, np.random.default_rng(1)))
