"""Outputs as sums of a few combinations."""

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit.contracts.learner import Evaluations, LearningProblem
from surrokit.surrogate.whitening import Whitening
from surrokit.targets.gaussian import GaussianEnergy, gaussian_prior
from surrokit_networks.equations import Equations
from surrokit_networks.network import Mixing, Network
from surrokit_networks.outputs import leading_directions
from surrokit_networks.trend import Polynomial

DIM, FEW, MANY = 3, 4, 30


def equations_of(n, weights, *, gradients, noise=0.0):
    """Return rows whose outputs go along a few directions, and with noise along all."""
    rng = np.random.default_rng(5)
    mixing = rng.standard_normal((FEW, MANY))
    targets = rng.standard_normal((n, FEW)) @ mixing
    targets += noise * rng.standard_normal(targets.shape)
    slopes = mixing.T @ rng.standard_normal((n, FEW, DIM)) if gradients else None
    return Equations(
        whitened=rng.standard_normal((n, DIM)),
        targets=targets,
        gradients=slopes,
        value_weights=weights,
        gradient_weights=weights * gradients,
        count=float(n),
        trains_level=True,
    )


@pytest.mark.parametrize("n", [10, 100])  # fewer rows than outputs, and more
@pytest.mark.parametrize("gradients", [False, True])
def test_directions_hold_all_that_varies(n, gradients):
    equations = equations_of(n, np.ones(n), gradients=gradients)
    directions = leading_directions(equations, 1e-12)
    assert directions.shape == (MANY, FEW)
    assert_allclose(directions.T @ directions, np.eye(FEW), atol=1e-9)
    along = equations.along(directions)
    assert_allclose(along.targets @ directions.T, equations.targets, atol=1e-9)
    if gradients:
        back = directions @ along.gradients
        assert_allclose(back, equations.gradients, atol=1e-9)


def test_no_more_is_left_out_than_allowed():
    equations = equations_of(200, np.ones(200), gradients=False, noise=0.01)
    directions = leading_directions(equations, 0.004)
    left = equations.targets - (equations.targets @ directions) @ directions.T
    assert np.square(left).sum() / 200 < 0.004  # of noise there are 26 times 1e-4
    assert FEW <= directions.shape[1] < 10
    # and one direction fewer would leave out more
    less = directions[:, 1:]
    left = equations.targets - (equations.targets @ less) @ less.T
    assert np.square(left).sum() / 200 > 0.004


def test_rows_without_weight_have_no_say():
    weights = np.r_[np.ones(50), np.zeros(50)]
    equations = equations_of(100, weights, gradients=True)
    strange = equations.targets.copy()
    strange[50:] = np.random.default_rng(0).standard_normal((50, MANY))
    assert leading_directions(attrs.evolve(equations, targets=strange), 1e-12).shape[1] == FEW


def test_where_outputs_go_many_ways_they_are_left_alone():
    assert leading_directions(
        equations_of(100, np.ones(100), gradients=False, noise=1.0), 1e-3
    ) is (None)
    equations = equations_of(100, np.ones(100), gradients=False)
    assert (
        leading_directions(attrs.evolve(equations, targets=equations.targets * np.inf), 1) is None
    )
    nothing = attrs.evolve(equations, targets=np.zeros((100, MANY)))
    assert leading_directions(nothing, 1e-3) is None


@pytest.mark.parametrize("kind", ["additive", "rbf", "none"])
@pytest.mark.parametrize("quadratic", [False, True])
def test_a_network_of_combinations_is_one_of_outputs(kind, quadratic, make_nodes):
    rng = np.random.default_rng(1)
    size = 0 if kind == "none" else 6
    nodes = make_nodes(None if kind == "none" else kind, DIM, 6)
    matrices = rng.standard_normal((FEW, DIM, DIM))
    matrices += matrices.transpose(0, 2, 1)
    weights, linear = rng.standard_normal((size, FEW)), rng.standard_normal((DIM, FEW))
    constant = rng.standard_normal(FEW)
    mixing = Mixing(offset=rng.standard_normal(MANY), matrix=rng.standard_normal((FEW, MANY)))
    whitening = Whitening.of(rng.standard_normal((50, DIM)) @ np.diag([1, 2, 3]), np.ones(50))
    mixed = np.einsum("rij,rm->mij", matrices, mixing.matrix)
    one, other = (
        Network(
            whitening=whitening,
            nodes=nodes,
            trend=Polynomial(constant=c, linear=slope, matrices=p if quadratic else None),
            weights=v,
            mixing=how,
        )
        for c, slope, p, v, how in (
            (constant, linear, matrices, weights, mixing),
            (
                constant @ mixing.matrix + mixing.offset,
                linear @ mixing.matrix,
                mixed,
                weights @ mixing.matrix,
                None,
            ),
        )
    )
    q, u = rng.standard_normal((2, 7, DIM))
    b, w = rng.standard_normal((7, MANY)), rng.standard_normal((7, MANY, DIM))
    assert_allclose(one.value(q), other.value(q), rtol=1e-9, atol=1e-10)
    at, there = one.at(q), other.at(q)
    for found, expected in (
        (at.outputs, there.outputs),
        (at.pull_back(b), there.pull_back(b)),
        (at.push(u), there.push(u)),
        (at.jacobian(), there.jacobian()),
        (at.hessian_product(w), there.hessian_product(w)),
        (at.hessian_form(b, u), there.hessian_form(b, u)),
    ):
        assert_allclose(found, expected, rtol=1e-8, atol=1e-9)


ENERGY = GaussianEnergy(
    data=np.linspace(-1.0, 1.0, MANY), noise_sd=0.5, prior=gaussian_prior(0.0, 1.0)
)


def observed():
    """Return outputs that are many sums of few functions, with their Jacobians."""
    rng = np.random.default_rng(2)
    q, mixing = rng.standard_normal((40, DIM)), rng.standard_normal((FEW, MANY)) / 4
    steep = rng.standard_normal((DIM, FEW))
    outputs = np.sin(q @ steep) @ mixing
    jacobians = np.einsum("nr,ir,rm->nmi", np.cos(q @ steep), steep, mixing)
    values = ENERGY.value(outputs, q)
    return Evaluations(positions=q, values=values, outputs=outputs, jacobians=jacobians)


def test_what_is_left_out_hardly_changes_a_fit():
    """Outputs that are twice as many, and the same, go as few ways; half of them alone do not."""
    rows = observed()

    def fitted(columns):
        energy = GaussianEnergy(
            data=ENERGY.data[columns], noise_sd=0.5, prior=gaussian_prior(0.0, 1.0)
        )
        problem = LearningProblem(dim=DIM, capabilities=frozenset(), energy=energy)
        learner = sk.make("surrogate", "additive").learner(problem, np.random.default_rng(0))
        outputs, jacobians = rows.outputs[:, columns], rows.jacobians[:, columns]
        learner.observe(attrs.evolve(rows, outputs=outputs, jacobians=jacobians))
        return learner.fit()

    short, whole = fitted(np.arange(MANY)), fitted(np.arange(FEW))
    assert short.network.mixing.matrix.shape == (FEW, MANY)
    assert whole.network.mixing is None
    error = short.forward(rows.positions) - rows.outputs
    assert np.abs(error).max() < 0.05 * np.abs(rows.outputs).max()
    alone = whole.forward(rows.positions) - rows.outputs[:, :FEW]
    assert_allclose(error[:, :FEW], alone, atol=0.02 * np.abs(rows.outputs).max())
