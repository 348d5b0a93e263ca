"""What experiments measure with: growth, processor time, fits outside a run."""

from __future__ import annotations

import time

import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit.errors import UnknownComponentError
from surrokit_paper.chains.processor_time import SamplingTime
from surrokit_paper.figure_1.experiment import METHODS as OF_FIGURE_1
from surrokit_paper.figure_3.experiment import EXACT
from surrokit_paper.figure_3.experiment import METHODS as OF_FIGURE_3
from surrokit_paper.measures.growth import growth_power
from surrokit_paper.style import LOOKS
from surrokit_paper.surrogates.methods import squared_length_scale, train


@pytest.mark.parametrize("power", [0.0, 1.0, 3.0])
def test_a_power_is_found(power):
    sizes = np.array([10.0, 30.0, 100.0])
    assert_allclose(growth_power(sizes, 2.0 * sizes**power), power, atol=1e-12)


def test_costs_that_are_unknown_are_left_out():
    assert_allclose(growth_power([1, 2, 4, 8], [1.0, np.nan, 4.0, 0.0]), 1.0)
    assert growth_power([1, 2], [1.0, np.nan]) is None
    assert growth_power([3, 3], [1.0, 2.0]) is None
    assert growth_power([], []) is None


# --- fits outside a run ---


def evaluations(n=40, gradients=False):
    positions = np.random.default_rng(2).standard_normal((n, 2))
    return sk.Evaluations(
        positions=positions,
        values=0.5 * np.square(positions).sum(axis=1),
        gradients=positions if gradients else None,
    )


@pytest.mark.parametrize("gradients", [False, True])
def test_a_surrogate_is_fitted_to_given_evaluations(gradients):
    data = evaluations(gradients=gradients)
    fit = train("additive", {}, data, np.random.default_rng(1))
    assert_allclose(fit.potential.value(data.positions), data.values, atol=0.1)
    assert fit.seconds > 0
    assert fit.wall_seconds > 0


def test_a_learner_is_told_of_gradients_only_if_there_are_any(monkeypatch):
    told = []
    real = sk.make("surrogate", "additive")

    class Watched:
        def learner(self, problem, rng):
            told.append(problem.capabilities)
            return real.learner(problem, rng)

    monkeypatch.setattr(sk, "make", lambda kind, name, **settings: Watched())
    for gradients in (False, True):
        train("additive", {}, evaluations(gradients=gradients), np.random.default_rng(1))
    assert told == [frozenset(), frozenset({"gradient"})]


def test_a_surrogate_that_is_not_there_is_said():
    with pytest.raises(UnknownComponentError, match="no surrogate is named 'crystal-ball'"):
        train("crystal-ball", {}, evaluations(), np.random.default_rng(1))


def test_the_length_scale_of_a_process_is_found():
    hyperparameters = {"length_scales": 3.0, "signal_sd": 2.0, "noise_sd": 0.1}
    settings = {"whiten": False, "hyperparameters": hyperparameters}
    fit = train("gp", settings, evaluations(), np.random.default_rng(1))
    assert squared_length_scale(fit.potential) == 9.0


# --- processor time ---


def test_only_the_kept_draws_are_timed(monkeypatch):
    clock = iter(range(1000))
    timed = SamplingTime()
    monkeypatch.setattr(time, "process_time", lambda: next(clock))
    sk.sample("gaussian", warmup=30, draws=20, seed=1, progress=False, observers=[timed])
    assert timed.seconds == 20


def test_a_run_without_warm_up_is_timed_from_its_start(monkeypatch):
    clock = iter(range(1000))
    timed = SamplingTime()
    monkeypatch.setattr(time, "process_time", lambda: next(clock))
    sampler = ("hmc", {"metric": "identity"})
    settings = {"step_size": 0.5, "n_steps": 3, "warmup": 0, "draws": 20, "seed": 1}
    sk.sample("gaussian", sampler=sampler, progress=False, observers=[timed], **settings)
    assert timed.seconds == 20


# --- looks ---


@pytest.mark.parametrize("methods", [OF_FIGURE_1, (*OF_FIGURE_3, EXACT)])
def test_no_two_methods_look_alike_in_any_way(methods):
    looks = [LOOKS[method.name] for method in methods]
    assert len({look.colour for look in looks}) == len(looks)
    assert len({look.marker for look in looks}) == len(looks)
