"""Schedules: never, once, and ever more rarely."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit.errors import ConfigurationError
from surrokit.interfaces import Decision, LearningProblem, Moment
from surrokit.result.verdict import judge
from surrokit.testing.targets import Banana, Gaussian

# --- When a run learns and deploys ---


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


def test_once_deploys_when_the_exploration_ends_and_is_frozen_from_then_on():
    once, never = sk.make("schedule", "once"), sk.make("schedule", "never")
    assert once.learns
    assert not never.learns
    nothing = Decision(observe=False, deploy=False, frozen=True)
    assert set(decisions(never, moments())) == {nothing}
    decided = decisions(once, moments())
    assert [d.observe for d in decided] == [True] * 5 + [False] * 7
    assert [d.deploy for d in decided] == [False] * 4 + [True] + [False] * 7
    assert [d.frozen for d in decided] == [False] * 4 + [True] * 8
    assert decided == decisions(once, moments())
    assert once == sk.make("schedule", "once")


# --- Learning all along, deploying ever more rarely: Algorithm 4 ---


SMALL = {"chains": 3, "warmup": 60, "draws": 40, "seed": 4, "progress": False}


def greville(**settings):
    return sk.make("schedule", "greville", **settings)


def moment(t, stage="warmup", explored_at=10):
    return Moment(stage=stage, iteration=explored_at + t, explored=t == 0, since_explored=t)


def exploring():
    return Moment(stage="exploration", iteration=3, explored=False, since_explored=-1)


def share_deployed(schedule, t, n=4000, stage="warmup"):
    rng = np.random.default_rng(8)
    return np.mean([schedule.decide(moment(t, stage), rng).deploy for _ in range(n)])


# --- what it decides ---


def test_it_observes_while_exploring_and_deploys_when_the_exploration_ends():
    rng = np.random.default_rng(1)
    made = greville()
    assert made.learns
    assert made.decide(exploring(), rng) == Decision(observe=True, deploy=False, frozen=False)
    ended = Moment(stage="exploration", iteration=10, explored=True, since_explored=0)
    assert made.decide(ended, rng) == Decision(
        observe=True, deploy=True, frozen=False, derivatives=True
    )


@pytest.mark.parametrize(
    ("settings", "rate"),
    [
        ({"kappa": 0.5}, lambda t: (1 + t) ** -0.5),
        ({"kappa": 1.0}, lambda t: 1 / (1 + t)),
        ({"rate": "logarithmic"}, lambda t: 1 / (1 + math.log(1 + t))),
    ],
)
@pytest.mark.parametrize("t", [1, 20])
@pytest.mark.statistical
def test_it_deploys_with_its_rate(settings, rate, t):
    """Five standard errors: fewer than one false alarm in 10^6 for each."""
    p = min(rate(t), 1.0)
    assert abs(share_deployed(greville(**settings), t) - p) <= 5 * math.sqrt(p * (1 - p) / 4000)


@pytest.mark.parametrize("stage", ["warmup", "sampling"])
@pytest.mark.parametrize(
    ("freeze_after", "t", "frozen"),
    [("warmup", 5, {"sampling"}), (8, 8, set()), (8, 9, {"warmup", "sampling"}), (None, 9, set())],
)
def test_it_freezes_when_asked(freeze_after, t, frozen, stage):
    made = greville(freeze_after=freeze_after)
    decision = made.decide(moment(t, stage), np.random.default_rng(1))
    assert decision.frozen == (stage in frozen)
    assert decision.observe != decision.frozen
    if decision.frozen:
        assert share_deployed(made, t, n=200, stage=stage) == 0


def test_what_was_learnt_last_is_deployed_at_the_freeze():
    rng = np.random.default_rng(1)
    last = Moment(
        stage="warmup", iteration=10**6, explored=False, since_explored=10**5, draws_follow=True
    )
    assert greville().decide(last, rng).deploy
    assert not greville(freeze_after=None).decide(last, rng).deploy
    assert greville(freeze_after=10**5).decide(last, rng).deploy


@pytest.mark.parametrize(("setting", "on"), [("warmup", True), ("never", False)])
def test_gradients_are_asked_for_in_warm_up_only(setting, on):
    made, rng = greville(derivatives=setting, freeze_after=None), np.random.default_rng(1)
    assert made.decide(moment(3), rng).derivatives == on
    assert not made.decide(moment(3, "sampling"), rng).derivatives


def test_deployments_expected_of_it():
    rates = [(1 + t) ** -0.6 for t in range(1, 1001)]
    assert_allclose(greville().deployment_rate, np.mean(rates))
    assert_allclose(greville(freeze_after=10).deployment_rate, np.mean(rates[:10]))
    assert greville(freeze_after=0).deployment_rate == 0
    assert greville(kappa=1.0).deployment_rate < greville(kappa=0.5).deployment_rate


def test_the_exact_phase_is_shorter_with_gradients():
    assert greville().exploration(True) == 50
    assert greville().exploration(False) == 500


# --- what is refused ---


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rate": "often"}, "rate must be one of 'power', 'logarithmic', got 'often'"),
        ({"kappa": 0}, "kappa must be a number above 0 and at most 1.*got 0"),
        ({"kappa": 1.1}, "kappa must be a number above 0 and at most 1.*got 1.1"),
        ({"freeze_after": 2.5}, "freeze_after must be 'warmup', a whole number .* or None"),
        ({"freeze_after": "draws"}, "freeze_after must be 'warmup', a whole number .* or None"),
        ({"derivatives": "always"}, "derivatives must be one of 'warmup', 'never', got 'always'"),
        ({"learn_from": "none"}, "learn_from must be one of all, accepted, states"),
    ],
)
def test_settings_out_of_range_are_refused(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        greville(**settings)


def test_it_needs_a_surrogate_that_learns():
    with pytest.raises(ConfigurationError, match="deploys a surrogate, but none is named"):
        sk.sample(Gaussian(), sampler="hmc", schedule="greville", **SMALL)


# --- whole runs ---


class Counting:
    """A surrogate that is always right, and keeps what it was fitted to."""

    def __init__(self, uses=frozenset({"value", "gradient"})):
        self.uses = uses
        self.fits = []
        self.problem = None

    needs = frozenset({"value"})
    provides = Gaussian().capabilities

    def learner(self, problem: LearningProblem, rng):
        self.problem = problem
        self.rows = []
        return self

    def observe(self, evaluations):
        self.rows.append(evaluations)

    def fit(self):
        self.fits.append(sk.Evaluations.join(self.rows, 2))
        return Gaussian()

    def state(self):
        return {}

    def restore(self, state):
        return self


def ran(surrogate=None, schedule="greville", **settings):
    surrogate = Counting() if surrogate is None else surrogate
    run = sk.sample(Gaussian(), surrogate=surrogate, schedule=schedule, **{**SMALL, **settings})
    return run, surrogate


def test_a_run_deploys_all_along_the_warm_up_and_not_later():
    run, surrogate = ran()
    deployments = run.adaptation.deployments
    assert len(deployments) == len(surrogate.fits) > 5
    assert deployments[-1] == 60  # what was learnt last
    assert run.adaptation.frozen_before_draws
    assert run.adaptation.last_deployment == deployments[-1]
    assert_allclose(surrogate.problem.deployment_rate, greville().deployment_rate / 3)
    assert not any("still adapted" in note for note in judge(run).messages)


def test_the_exact_phase_ends_at_its_rows():
    run, surrogate = ran(warmup=200)
    first = run.adaptation.deployments[0]
    gradients = run.warmup.calls["gradient"][:first]
    rows = gradients + run.warmup.calls["value"][:first]
    assert rows[-1] >= 50 > rows[-2]
    assert len(surrogate.fits[0]) == rows[-1]
    assert ran(warmup=20)[0].adaptation.deployments[0] <= 10  # half of a short warm-up is left


@pytest.mark.parametrize("derivatives", ["warmup", "never"])
def test_gradients_are_paid_for_in_warm_up_if_asked(derivatives):
    run, surrogate = ran(schedule=("greville", {"derivatives": derivatives}))
    first = run.adaptation.deployments[0]
    gradient, value = run.warmup.calls["gradient"], run.warmup.calls["value"]
    if derivatives == "warmup":
        assert gradient[-1] - gradient[first - 1] > 3 * 30
        assert value[-1] == value[first - 1]
    else:
        assert gradient[-1] == gradient[first - 1]
        assert value[-1] - value[first - 1] > 3 * 30
    assert run.kept.calls["gradient"][-1] == gradient[-1]
    with_gradient = np.isfinite(surrogate.fits[-1].gradients).all(axis=1)
    assert with_gradient.mean() > 0.9 if derivatives == "warmup" else with_gradient.mean() < 0.6


def test_a_forward_target_pays_for_jacobians():
    class Outputs(Counting):
        provides = Banana().capabilities

        def fit(self):
            self.fits.append(sk.Evaluations.join(self.rows, 2))
            return Banana()

    surrogate = Outputs(uses=frozenset({"outputs", "jacobian"}))
    run = sk.sample(Banana(), surrogate=surrogate, schedule="greville", **SMALL)
    first = run.adaptation.deployments[0]
    assert run.warmup.calls["jacobian"][-1] > run.warmup.calls["jacobian"][first - 1]
    assert run.warmup.calls["forward"][-1] == run.warmup.calls["forward"][first - 1]
    assert np.isfinite(surrogate.fits[-1].jacobians).mean() > 0.9
    assert run.outputs.shape == (3, 40, 2)


@pytest.mark.parametrize("learn_from", ["all", "states", "accepted"])
def test_rows_after_the_exploration_are_those_asked_for(learn_from):
    run, surrogate = ran(schedule=("greville", {"learn_from": learn_from}))
    first, last = run.adaptation.deployments[0], run.adaptation.deployments[-1]
    rows = len(surrogate.fits[-1]) - len(surrogate.fits[0])
    warm = slice(first, last)
    expected = {
        "states": 3 * (last - first),
        "accepted": run.warmup.accepted[:, warm].sum(),
        "all": run.warmup.calls["gradient"][last - 1] - run.warmup.calls["gradient"][first - 1],
    }
    assert rows == expected[learn_from]


@pytest.mark.parametrize("freeze_after", [None, 70])
def test_draws_kept_under_adaptation_are_said_to_be(freeze_after):
    schedule = ("greville", {"freeze_after": freeze_after, "kappa": 0.3})
    run, surrogate = ran(schedule=schedule)
    assert run.adaptation.deployments[-1] > 60
    assert not run.adaptation.frozen_before_draws
    assert any("exact only in the limit" in note for note in judge(run).messages)
    assert run.to_dict()["adaptation"]["frozen_before_draws"] is False
    if freeze_after is None:
        assert len(surrogate.fits[-1]) > len(surrogate.fits[0]) + 3 * 60
    else:
        assert run.adaptation.deployments[-1] <= run.adaptation.deployments[0] + 70
    gradients = run.kept.calls["gradient"]
    assert gradients[-1] == gradients[0]  # values alone, once draws are kept
