"""Outputs that are learnt in coordinates in which they change evenly."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit.contracts.learner import Evaluations, LearningProblem
from surrokit.testing import check_potential
from surrokit_networks.potentials import FittedEmulator
from surrokit_networks.warp import Warp, WarpedNetwork

WARP = Warp(
    origin=np.array([0.0, 1.0, 2.0]),
    centre=np.array([1.0, 30.0, 0.0]),
    width=np.array([0.5, 1.0, np.inf]),
)


@pytest.fixture
def q(rng):
    return 2.0 * rng.standard_normal((6, 3))


def test_first_and_second_are_derivatives(q, differences):
    each = np.arange(3)
    assert_allclose(WARP.slopes(q), differences(WARP.apply, q)[:, each, each], rtol=1e-6, atol=1e-8)
    assert_allclose(
        WARP.seconds(q), differences(WARP.slopes, q)[:, each, each], rtol=1e-6, atol=1e-8
    )


def test_it_is_the_identity_at_its_origin_and_can_be_undone(q):
    assert_allclose(WARP.apply(WARP.origin[None]), 0.0, atol=1e-15)
    assert_allclose(WARP.slopes(WARP.origin[None]), 1.0)
    assert_allclose(WARP.undo(WARP.apply(q)), q, rtol=1e-8, atol=1e-8)
    assert_allclose(WARP.apply(q)[:, 2], q[:, 2] - 2.0)


def test_it_stays_finite_where_positions_run_away():
    far = np.array([[1e4] * 3, [-1e4] * 3])
    assert np.isfinite(WARP.apply(far)[:, [0, 2]]).all()
    assert_allclose(WARP.slopes(far)[:, 0], 0.0)


def test_the_strength_of_the_dependence_is_followed(rng):
    """Slopes of a logistic are found again, and no warp is made of noise or of a constant."""
    q = 1.5 * rng.standard_normal((200, 3)) + 1.0
    bent = (q[:, 0] - 2.0) / 0.75
    strengths = np.column_stack(
        [np.exp(-bent) / (1 + np.exp(-bent)) ** 2, np.ones(200), np.full(200, 3.0)]
    )
    strengths[:, 1] *= np.exp(0.1 * rng.standard_normal(200))
    warp = Warp.of(q, strengths, np.ones(200))
    assert np.isfinite(warp.width).tolist() == [True, False, False]
    relative = warp.slopes(q)[:, 0] / strengths[:, 0]
    assert np.log(relative).std() < 0.1
    assert warp.warps


@pytest.mark.parametrize("n", [0, 5])
def test_few_rows_warp_nothing(n, rng):
    q = rng.standard_normal((n, 3)) if n else np.zeros((1, 3))
    assert not Warp.of(q, np.exp(3 * q), np.ones(len(q))).warps


def saturating():
    """Outputs that saturate in both parameters, as conductivities of blocks do."""
    matrix = np.random.default_rng(3).standard_normal((6, 2))

    def forward(q):
        return np.tanh(q / 2.0) @ matrix.T

    def jacobian(q):
        return matrix / (2.0 * np.cosh(q / 2.0) ** 2)

    return sk.forward_potential(
        forward,
        jacobian,
        data=forward(np.array([1.0, -0.5])),
        noise_sd=1.0,
        prior=sk.gaussian_prior(0.0, 2.0),
        dim=2,
    )


def emulator(warp, n=60, **settings):
    target, rng = saturating(), np.random.default_rng(5)
    q = 2.0 * rng.standard_normal((n, 2))
    outputs, jacobians = target.forward_and_jacobian(q)
    values, gradients = target.value_and_gradient(q)
    problem = LearningProblem(dim=2, capabilities=target.capabilities, energy=target.energy)
    settings = {"warp": warp, "trend": "quadratic", "n_nodes": 1, **settings}
    learner = sk.make("surrogate", "additive", **settings).learner(problem, rng)
    learner.observe(
        Evaluations(
            positions=q, values=values, gradients=gradients, outputs=outputs, jacobians=jacobians
        )
    )
    return learner.fit()


def test_a_quadratic_of_warped_coordinates_follows_what_saturates():
    target, q = saturating(), 2.0 * np.random.default_rng(6).standard_normal((200, 2))
    errors = []
    for warp in (False, True):
        fitted = emulator(warp)
        assert isinstance(fitted, FittedEmulator)
        assert isinstance(fitted.network, WarpedNetwork) == warp
        errors.append(np.square(fitted.forward(q) - target.forward(q)).mean())
    assert errors[1] < errors[0] / 50


@pytest.mark.parametrize("n_nodes", [1, 30])
def test_a_warped_emulator_keeps_to_the_contract(n_nodes):
    fitted = emulator(True, n_nodes=n_nodes)
    results = check_potential(lambda: fitted)
    assert [r.message for r in results if r.outcome != "passed"] == []
    assert {"metric-derivative", "forward-hessian"} <= fitted.capabilities


def test_without_jacobians_nothing_is_warped():
    target, rng = saturating(), np.random.default_rng(5)
    q = 2.0 * rng.standard_normal((60, 2))
    problem = LearningProblem(dim=2, capabilities=frozenset({"forward"}), energy=target.energy)
    learner = sk.make("surrogate", "additive", warp=True).learner(problem, rng)
    learner.observe(Evaluations(positions=q, values=target.value(q), outputs=target.forward(q)))
    assert not isinstance(learner.fit().network, WarpedNetwork)


def test_a_run_on_warped_outputs_is_accepted():
    run = sk.sample(
        saturating(),
        sampler="hmc",
        surrogate=("additive", {"warp": True}),
        explorer="rounds",
        warmup=200,
        draws=100,
        seed=2,
        progress=False,
    )
    assert run.acceptance.mean() > 0.8
    assert isinstance(run.surrogate.network, WarpedNetwork)
