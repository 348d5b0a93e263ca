"""When a run learns and deploys."""

from __future__ import annotations

import numpy as np
import pytest

import surrokit as sk
from surrokit.interfaces import Decision, Moment

STAGES = ("exploration", "warmup", "sampling")


def decisions(schedule, moments):
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    decided = [schedule.decide(moment, rng) for moment in moments]
    assert rng.bit_generator.state == before
    return decided


def moments(explored=5, warmup=8, draws=4):
    """Every moment of a run whose exploration ends at an iteration."""
    for i in range(1, warmup + draws + 1):
        stage = STAGES[(i > explored) + (i > warmup)]
        yield Moment(stage=stage, iteration=i, explored=i == explored)


@pytest.mark.parametrize("stage", STAGES)
def test_never_does_nothing(stage):
    never = sk.make("schedule", "never")
    assert not never.learns
    (decision,) = decisions(never, [Moment(stage=stage, iteration=1, explored=False)])
    assert decision == Decision(observe=False, deploy=False, frozen=True)


@pytest.fixture
def once():
    return sk.make("schedule", "once")


def test_once_learns(once):
    assert once.learns


def test_once_observes_as_long_as_it_explores(once):
    assert [d.observe for d in decisions(once, moments())] == [True] * 5 + [False] * 7


def test_once_deploys_once_when_the_exploration_ends(once):
    assert [d.deploy for d in decisions(once, moments())] == [False] * 4 + [True] + [False] * 7


def test_once_is_frozen_from_then_on(once):
    assert [d.frozen for d in decisions(once, moments())] == [False] * 4 + [True] * 8


def test_once_is_frozen_before_any_draw_is_kept(once):
    kept = [m for m in moments() if m.stage == "sampling"]
    assert all(decision.frozen for decision in decisions(once, kept))


@pytest.mark.parametrize("name", ["never", "once"])
def test_the_same_moment_gives_the_same_decision(name):
    schedule = sk.make("schedule", name)
    assert decisions(schedule, moments()) == decisions(schedule, moments())
    assert schedule == sk.make("schedule", name)
