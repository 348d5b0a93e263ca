"""What a run says of its adaptation is what happened, whatever its schedule says."""

from __future__ import annotations

import attrs
import pytest

import surrokit as sk
from surrokit.errors import SamplingWarning
from surrokit.interfaces import Decision
from surrokit.result.advice import advice
from surrokit.result.verdict import judge
from surrokit.testing.targets import Gaussian

SIZES = {"chains": 2, "warmup": 40, "draws": 100, "seed": 3, "progress": False}
EXPLORED, DRAWS_BEGIN = 10, 40


@attrs.frozen
class Refits:
    """Deploys when the exploration ends and after some iterations; says that it is frozen."""

    after: tuple[int, ...] = ()
    frozen_from: int = EXPLORED

    learns = True
    deployment_rate = 0.1

    def exploration(self, gradients):
        return None

    def decide(self, moment, rng):
        return Decision(
            observe=True,
            deploy=moment.explored or moment.iteration in self.after,
            frozen=moment.iteration >= self.frozen_from,
        )


class WaitsForRejections(Refits):
    """Leaves open that it might deploy, and never does."""

    def decide(self, moment, rng):
        return Decision(observe=True, deploy=moment.explored, frozen=False)


class Unfreezes(Refits):
    """Says that it is frozen, and among the draws that it is not, without deploying."""

    def decide(self, moment, rng):
        frozen = moment.explored or moment.stage == "warmup"
        return Decision(observe=True, deploy=moment.explored, frozen=frozen)


def fit(evaluations, rng):
    return Gaussian()


def ran(schedule, surrogate=fit, **settings):
    return sk.sample(
        Gaussian(),
        sampler="hmc",
        surrogate=sk.batch_surrogate(surrogate),
        schedule=schedule,
        **{**SIZES, **settings},
    )


def test_a_schedule_that_deploys_among_draws_and_says_frozen_is_not_believed():
    late = tuple(range(50, 150, 10))
    with pytest.warns(SamplingWarning, match=r"schedule 'Refits' deployed \d+ more .* frozen"):
        run = ran(Refits(late))
    assert run.adaptation.deployments == (EXPLORED, *late)
    assert not run.adaptation.frozen_before_draws
    assert run.adaptation.deployed_though_frozen == late
    assert any(
        "10 more surrogates after it was frozen, the first after iteration 50" in note
        for note in judge(run).messages
    )
    assert any("exact only in the limit" in note for note in judge(run).messages)
    figures = run.to_dict()["adaptation"]
    assert figures["frozen_before_draws"] is False
    assert tuple(figures["deployed_though_frozen"]) == late


def test_one_deployment_is_enough_and_the_first_draw_counts():
    with pytest.warns(SamplingWarning, match="deployed 1 more surrogates .* kept under adaptation"):
        run = ran(Refits((DRAWS_BEGIN + 1,)))
    assert not run.adaptation.frozen_before_draws


def test_a_word_broken_in_warm_up_is_told_though_draws_are_not_touched():
    with pytest.warns(SamplingWarning, match="after iteration 40: kept draws are not touched"):
        run = ran(Refits((DRAWS_BEGIN,)))
    assert run.adaptation.frozen_before_draws


@pytest.mark.parametrize("schedule", [WaitsForRejections(), Unfreezes()])
def test_what_was_left_open_counts_though_nothing_was_deployed(schedule):
    run = ran(schedule)
    assert run.adaptation.deployments == (EXPLORED,)
    assert not run.adaptation.frozen_before_draws
    assert advice(run) == []


@pytest.mark.parametrize("after", [(), (30,)])
def test_a_schedule_that_keeps_its_word_is_believed(after):
    run = ran(Refits(after, frozen_from=max(after, default=EXPLORED)))
    assert run.adaptation.frozen_before_draws
    assert run.adaptation.deployed_though_frozen == ()
    assert advice(run) == []


def test_a_kernel_that_changes_among_draws_is_seen_though_nobody_says_so(monkeypatch):
    from surrokit.kernel.kernel import Moves

    def retuned(self, rng, **options):
        self.sampler = attrs.evolve(self.sampler)
        return before(self, rng, **options)

    assert sampled().adaptation.frozen_before_draws
    before = Moves.transition
    monkeypatch.setattr(Moves, "transition", retuned)
    assert not sampled().adaptation.frozen_before_draws


def sampled():
    return sk.sample(Gaussian(), sampler="hmc", **SIZES)
