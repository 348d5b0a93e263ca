"""A finite U without a finite gradient is counted, and told where draws might have reached it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import surrokit as sk
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import SamplingWarning
from surrokit.result.advice import advice

BROKEN = "the gradient is not finite at"
SHORT = {"chains": 2, "warmup": 100, "draws": 100, "seed": 1, "progress": False}


def both(q):
    """A normal's U, and its gradient as ``where`` of automatic differentiation may leave it."""
    return 0.5 * q @ q, np.where(q[0] > 1, np.nan, q)


def complaints(function=both, **settings):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = sk.sample(sk.potential(value_and_gradient=function, dim=2), **SHORT, **settings)
    return run, [str(one.message) for one in caught if one.category is SamplingWarning]


@pytest.mark.parametrize("sampler", ["hmc", "nuts"])
def test_a_region_that_paths_cannot_enter_is_told_with_a_position(sampler):
    run, said = complaints(sampler=sampler)
    assert run.failures >= run.broken_gradients.count > 0
    assert run.draws[..., 0].max() <= 1
    assert run.broken_gradients.position[0] > 1
    told = [complaint for complaint in said if BROKEN in complaint]
    assert len(told) == 1
    assert f"q[0] = {run.broken_gradients.position[0]:.6g}" in told[0]


def test_a_random_walk_goes_on_without_the_gradient():
    run, said = complaints(sampler="random-walk")
    assert not any(BROKEN in complaint for complaint in said)
    assert run.draws[..., 0].max() > 1


def funnel(q):
    u = 0.5 * (q[0] ** 2 / 9 + q[1] ** 2 * np.exp(-q[0]) + q[0])
    g = [q[0] / 9 - 0.5 * q[1] ** 2 * np.exp(-q[0]) + 0.5, q[1] * np.exp(-q[0])]
    return u, np.array(g)


STEPS = {"randomize": False, "step_size": 0.3, "n_steps": 10}


@pytest.mark.parametrize(
    ("function", "sampler", "message"),
    [
        (both, ("hmc", STEPS), "kept paths ended where the target has no density or gradient"),
        (funnel, ("nuts", {"step_size": 0.6}), "kept paths diverged: the potential bends"),
    ],
)
def test_paths_that_went_wrong_are_told(function, sampler, message):
    run, said = complaints(function, sampler=sampler)
    assert any(message in complaint for complaint in said)
    assert function is both or run.divergences.sum() > 0.001 * 200


@pytest.mark.parametrize("alone", [False, True])
def test_only_positions_where_the_potential_is_finite_have_a_broken_gradient(alone):
    def inside(q):
        return np.where(q[:, 0] > 0, q[:, 0], np.inf)

    def slope(q):
        return np.where(q[:, :1] > 1, np.nan, np.where(q[:, :1] > 0, 1.0, np.nan))

    target = sk.potential(inside, slope, dim=1, batched=True)
    recording = RecordingPotential(target, keep=False)
    q = np.array([[-1.0], [0.5], [3.0], [2.0]])
    (recording.gradient if alone else recording.value_and_gradient)(q)
    assert recording.broken_gradients.count == recording.failures == 2
    assert recording.broken_gradients.value == 2.0
    assert recording.broken_gradients.position == [2.0]
    assert recording.calls["gradient"] == 4
    assert recording.calls["value"] == (3 if alone else 0)  # outside the support it need not be


def test_a_jacobian_that_is_not_finite_counts():
    target = sk.forward_potential(
        lambda q: q, lambda q: np.array([[np.nan]]), data=[0.0], noise_sd=1.0, dim=1
    )
    recording = RecordingPotential(target, keep=False)
    recording.value_and_gradient(np.ones((2, 1)))
    assert recording.broken_gradients.count == 2


@pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
def test_an_overflow_far_out_is_counted_and_not_complained_of():
    def steep(q):
        with np.errstate(over="ignore", invalid="ignore"):
            far = abs(q[0]) > 30  # U is there, and nobody cares for its gradient
            return 0.5 * q @ q, np.where(far, np.nan, q)

    target = sk.potential(value_and_gradient=steep, dim=1)
    short = {"draws": 50, "seed": 2, "progress": False}
    run = sk.sample(target, sampler="hmc", initial=[25.0], chains=1, warmup=200, **short)
    wild = ("hmc", {"step_size": 40.0, "n_steps": 1})
    again = sk.sample(target, sampler=wild, warmup=0, **short)
    assert again.broken_gradients.count > 0
    assert not any(BROKEN in one for one in [*advice(run), *advice(again)])
