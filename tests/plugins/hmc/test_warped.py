"""HMC in warped coordinates: what it learns, where its paths go, and what they cost."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import surrokit as sk
from surrokit.interfaces import ChainState, Status, Tuning
from surrokit.marginals import Warp
from surrokit.testing import CountingPotential
from surrokit.testing.targets import Banana
from surrokit.warping import WarpedKernel
from surrokit_hmc.hmc import HMC
from surrokit_hmc.leapfrog import Leapfrog
from surrokit_hmc.metrics import DenseMetric

PLAIN = Warp(
    centre=np.zeros(2),
    scale=np.ones(2),
    lean=np.zeros(2),
    tail=np.ones(2),
    covariance=np.array([[1.0, 0.3], [0.3, 2.0]]),
)
BENT = attrs.evolve(PLAIN, lean=np.array([0.8, -0.4]), tail=np.array([0.7, 1.4]))


def hmc(**settings):
    fixed = {"n_steps": 5, "randomize": False, "warp": True}
    return HMC(integrator=Leapfrog(), metric=DenseMetric(), **{**fixed, **settings})


def tuning(warp):
    return Tuning(step_size=0.3, covariance=PLAIN.covariance, warp=warp)


def state_of(kernel, positions):
    cache = kernel.cache(positions)
    return ChainState(positions=positions, values=cache["value"], cache=cache)


def proposed(kernel, positions):
    return kernel.propose(state_of(kernel, positions), np.random.default_rng(5))


@pytest.fixture
def positions(rng):
    return Banana().sample(rng, 6)


def test_it_is_tuned_only_if_asked_for():
    assert "warp" in hmc().tunes
    assert "warp" not in hmc(warp=False).tunes


def test_mass_and_path_length_are_those_of_its_own_covariance():
    wide = attrs.evolve(BENT, covariance=np.diag([9.0, 4.0]))
    kernel = hmc(n_steps=None, randomize=True).bind(Banana(), tuning(wide))
    assert kernel.step == 0.3
    assert (kernel.inner.lengths, kernel.inner.max_steps) == (None, 11)
    assert_allclose(kernel.inner.metric.velocity(np.ones((1, 2))), [[9.0, 4.0]])


def test_a_straight_warp_changes_nothing(positions):
    plain = proposed(hmc(warp=False).bind(Banana(), tuning(None)), positions)
    warped = proposed(hmc().bind(Banana(), tuning(PLAIN)), positions)
    assert_allclose(warped.positions, plain.positions, rtol=1e-9, atol=1e-11)
    assert_allclose(warped.log_correction, plain.log_correction, rtol=1e-8, atol=1e-9)


def test_the_correction_counts_the_volume(positions):
    """On its own potential the ratio is that of the Hamiltonian in z."""
    kernel = hmc().bind(Banana(), tuning(BENT))
    proposal = proposed(kernel, positions)
    assert isinstance(kernel, WarpedKernel)
    assert proposal.source is kernel.potential
    change = Banana().value(positions) - Banana().value(proposal.positions)
    assert_allclose(change + proposal.log_correction, proposal.log_path_ratio, atol=1e-9)
    volumes = [
        np.log(BENT.slopes(BENT.straighten(x))[0]).sum(axis=1)
        for x in (positions, proposal.positions)
    ]
    assert np.abs(volumes[1] - volumes[0]).max() > 0.1


def test_values_and_gradients_at_the_end_are_kept(positions):
    proposal = proposed(hmc().bind(Banana(), tuning(BENT)), positions)
    value, gradient = Banana().value_and_gradient(proposal.positions)
    assert_allclose(proposal.cache["value"], value, rtol=1e-9)
    assert_allclose(proposal.cache["gradient"], gradient, rtol=1e-7, atol=1e-8)


def test_a_path_costs_as_many_gradients_as_without(positions):
    counting = CountingPotential(Banana())
    kernel = hmc().bind(counting, tuning(BENT))
    state = state_of(kernel, positions)
    before = counting.gradients()
    kernel.propose(state, np.random.default_rng(5))
    assert counting.gradients() - before == 6 * 5


def test_a_lost_path_is_a_status():
    kernel = hmc(step_size=80.0).bind(Banana(), tuning(BENT))
    proposal = proposed(kernel, np.array([[0.1, 0.2], [3.0, 9.0]]))
    assert_array_equal(proposal.status, Status.NOT_FINITE)
    assert not proposal.moved.any()


# --- in a run ---


RUN = {"draws": 20, "seed": 3, "progress": False}

LEFT = sk.potential(lambda q: (np.exp(q) - 0.5 * q).sum(), lambda q: np.exp(q) - 0.5, dim=2)
"""Logarithms of two gamma variables, with long tails towards the left."""


@pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
@pytest.mark.parametrize(
    "sampler", [("hmc", {"warp": True}), ("sub-chain", {"kernel": ("hmc", {"warp": True})})]
)
def test_a_run_learns_it_and_a_later_one_keeps_it(sampler):
    parts = {} if sampler[0] == "hmc" else {"surrogate": "additive"}
    run = sk.sample(LEFT, sampler=sampler, warmup=400, **parts, **RUN)
    learnt = run.sampler.tuning.warp
    assert (learnt.lean < -0.1).all()
    later = sk.sample(LEFT, sampler=run.sampler, warmup=0, initial=run.draws[:, -1], **RUN)
    assert later.sampler.tuning.warp is learnt
