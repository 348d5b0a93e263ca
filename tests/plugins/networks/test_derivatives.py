"""Every closed-form derivative against differences of what it is the derivative of."""

from itertools import pairwise

import numpy as np
import pytest

from surrokit.errors import ConfigurationError
from surrokit.surrogate.whitening import Whitening
from surrokit_networks.nodes import row_blocks
from surrokit_networks.nodes.activations import (
    BUILT_IN,
    HALF_SQUARE,
    LINEAR,
    Activation,
    find_activation,
)
from surrokit_networks.nodes.additive import AdditiveNodes
from surrokit_networks.nodes.outer import bilinear_forms, quadratic_forms, weighted_outer
from surrokit_networks.nodes.rbf import RbfNodes

DIM, NODES = 4, 9
SINE = Activation(
    name="sine",
    value=np.sin,
    first=np.cos,
    second=lambda x: -np.sin(x),
    third=lambda x: -np.cos(x),
)
ACTIVATIONS = [*BUILT_IN.values(), LINEAR, HALF_SQUARE, SINE]


def whitening(rng):
    positions = rng.standard_normal((50, DIM)) @ rng.standard_normal((DIM, DIM)) + 3.0
    return Whitening.of(positions, np.ones(50))


def additive(activation, rng):
    return AdditiveNodes(
        directions=rng.standard_normal((NODES, DIM)),
        biases=rng.standard_normal(NODES),
        activation=activation,
    )


def rbf(rng):
    return RbfNodes(
        centres=rng.standard_normal((NODES, DIM)), square_widths=rng.uniform(0.5, 4.0, NODES)
    )


def all_nodes(rng):
    return [*(additive(activation, rng) for activation in ACTIVATIONS), rbf(rng)]


NAMES = [*(activation.name for activation in ACTIVATIONS), "rbf"]


@pytest.fixture(params=range(len(NAMES)), ids=NAMES)
def nodes(request):
    return all_nodes(np.random.default_rng(3))[request.param]


def differences(function, positions, step=1e-5):
    """Central differences in each coordinate, as the axis after the first."""
    return np.stack(
        [
            (function(positions + step * unit) - function(positions - step * unit)) / (2 * step)
            for unit in np.eye(positions.shape[1])
        ],
        axis=1,
    )


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=lambda a: a.name)
def test_derivatives_of_activations(activation):
    x = np.linspace(-6.0, 6.0, 49)
    step = 1e-5
    chain = [activation.value, activation.first, activation.second, activation.third]
    for function, derivative in pairwise(chain):
        numerical = (function(x + step) - function(x - step)) / (2 * step)
        np.testing.assert_allclose(derivative(x), numerical, atol=1e-9)


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=lambda a: a.name)
def test_core_is_the_activation(activation):
    x = np.linspace(-40.0, 40.0, 81)
    core = activation.core
    value, slope = core.both(core.rate * x)
    np.testing.assert_allclose(core.tilt * x + value, activation.value(x), atol=1e-14)
    np.testing.assert_allclose(core.tilt + core.rate * slope, activation.first(x), atol=1e-15)
    np.testing.assert_array_equal(core.value(core.rate * x), value)
    np.testing.assert_array_equal(core.slope(core.rate * x), slope)


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=lambda a: a.name)
def test_activations_leave_their_argument_alone(activation):
    x = np.linspace(-1.0, 1.0, 5)
    x.setflags(write=False)
    for function in (activation.value, activation.first, activation.second, activation.third):
        assert np.isfinite(function(x)).all()


def test_softplus_far_out():
    softplus = BUILT_IN["softplus"]
    x = np.array([-1e5, -800.0, 800.0, 1e5])
    np.testing.assert_array_equal(softplus.value(x), [0.0, 0.0, 800.0, 1e5])
    np.testing.assert_array_equal(softplus.first(x), [0.0, 0.0, 1.0, 1.0])
    np.testing.assert_array_equal(softplus.second(x), np.zeros(4))
    np.testing.assert_array_equal(softplus.third(x), np.zeros(4))


def test_weighted_sum_is_features_times_weights(nodes):
    rng = np.random.default_rng(0)
    positions, weights = rng.standard_normal((7, DIM)), rng.standard_normal(NODES)
    to_whitened = whitening(rng)
    expected = nodes.features(to_whitened.apply(positions)) @ weights
    np.testing.assert_allclose(
        nodes.with_weights(weights, to_whitened).value(positions), expected, atol=1e-12
    )


def test_features_in_plain_words():
    rng = np.random.default_rng(5)
    z = rng.standard_normal((3, DIM))
    additive_nodes, rbf_nodes = additive(BUILT_IN["tanh"], rng), rbf(rng)
    for n in range(3):
        for i in range(NODES):
            argument = additive_nodes.directions[i] @ z[n] + additive_nodes.biases[i]
            assert additive_nodes.features(z)[n, i] == pytest.approx(np.tanh(argument))
            distance = np.sum((z[n] - rbf_nodes.centres[i]) ** 2)
            height = np.exp(-distance / (2 * rbf_nodes.square_widths[i]))
            assert rbf_nodes.features(z)[n, i] == pytest.approx(height)


def test_gradient_and_hessian_of_weighted_nodes(nodes):
    rng = np.random.default_rng(1)
    total = nodes.with_weights(rng.standard_normal(NODES), whitening(rng))
    positions = rng.standard_normal((6, DIM)) + 3.0
    gradient = total.gradient(positions)
    np.testing.assert_allclose(gradient, differences(total.value, positions), atol=1e-7)
    hessian = total.hessian(positions)
    np.testing.assert_allclose(hessian, differences(total.gradient, positions), atol=1e-7)
    np.testing.assert_allclose(hessian, hessian.transpose(0, 2, 1), atol=1e-12)
    value, same = total.value_and_gradient(positions)
    np.testing.assert_allclose(value, total.value(positions), rtol=1e-13)
    np.testing.assert_allclose(same, gradient, rtol=1e-13)


def factors(rng, n):
    """Symmetric matrices, of both signs, and vectors, one for each of n positions."""
    half = rng.standard_normal((n, DIM, DIM))
    return half + half.transpose(0, 2, 1), rng.standard_normal((n, DIM))


def test_contractions_of_the_derivative_of_the_hessian(nodes):
    rng = np.random.default_rng(6)
    total = nodes.with_weights(rng.standard_normal(NODES), whitening(rng))
    positions = rng.standard_normal((6, DIM)) + 3.0
    matrices, vectors = factors(rng, 6)
    outer = vectors[:, :, None] * vectors[:, None, :]
    for weights, found in (
        (matrices, total.hessian_trace_gradient(positions, matrices)),
        (outer, total.hessian_form_gradient(positions, vectors)),
    ):
        expected = differences(
            lambda q, a=weights: np.einsum("nij,nij->n", a, total.hessian(q)), positions
        )
        np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_allclose(
        total.hessian_trace_gradient(positions, outer),
        total.hessian_form_gradient(positions, vectors),
        rtol=1e-9,
        atol=1e-10,
    )


def test_products_with_the_hessian_and_its_diagonal(nodes):
    rng = np.random.default_rng(11)
    total = nodes.with_weights(rng.standard_normal(NODES), whitening(rng))
    positions = rng.standard_normal((6, DIM)) + 3.0
    _, vectors = factors(rng, 6)
    hessian = total.hessian(positions)
    product = total.hessian_product(positions, vectors)
    np.testing.assert_allclose(product, np.einsum("nij,nj->ni", hessian, vectors), atol=1e-12)
    diagonal = total.hessian_diagonal(positions)
    np.testing.assert_allclose(diagonal, np.einsum("nkk->nk", hessian), atol=1e-12)
    gradient = total.hessian_diagonal_gradient(positions, vectors)
    matrices = vectors[:, :, None] * np.eye(DIM)
    expected = total.hessian_trace_gradient(positions, matrices)
    np.testing.assert_allclose(gradient, expected, rtol=1e-9, atol=1e-11)


def test_contractions_prepared_for_some_rows_are_those_of_all():
    rng = np.random.default_rng(21)
    nodes = additive(ACTIVATIONS[0], rng)
    total = nodes.with_weights(rng.standard_normal(NODES), whitening(rng))
    positions, rows = rng.standard_normal((6, DIM)) + 3.0, np.array([1, 2, 5])
    matrices, vectors = factors(rng, 6)
    for some in (rows, np.arange(6)):
        np.testing.assert_allclose(
            total.hessian_forms_at(positions)(vectors[some], some),
            total.hessian_form_gradient(positions, vectors)[some],
            rtol=1e-12,
        )
        np.testing.assert_allclose(
            total.hessian_traces_at(positions)(matrices[some], some),
            total.hessian_trace_gradient(positions, matrices)[some],
            rtol=1e-12,
        )


def test_contractions_leave_their_arguments_alone(nodes):
    rng = np.random.default_rng(7)
    total = nodes.with_weights(rng.standard_normal(NODES), whitening(rng))
    positions = rng.standard_normal((6, DIM))
    matrices, vectors = factors(rng, 6)
    for array in (positions, matrices, vectors):
        array.setflags(write=False)
    first = total.hessian_trace_gradient(positions, matrices)
    kept = first.copy()
    total.hessian_form_gradient(positions, vectors)
    np.testing.assert_array_equal(total.hessian_trace_gradient(positions, matrices), kept)
    np.testing.assert_array_equal(first, kept)


def test_contractions_at_the_centre_of_a_radial_node():
    rng = np.random.default_rng(8)
    nodes, to_whitened = rbf(rng), whitening(rng)
    total = nodes.with_weights(rng.standard_normal(NODES), to_whitened)
    positions = nodes.centres @ to_whitened.factor.T + to_whitened.mean
    matrices, _ = factors(rng, NODES)
    expected = differences(lambda q: np.einsum("nij,nij->n", matrices, total.hessian(q)), positions)
    found = total.hessian_trace_gradient(positions, matrices)
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=lambda a: a.name)
def test_slopes_of_features(activation):
    rng = np.random.default_rng(9)
    nodes = additive(activation, rng)
    whitened = rng.standard_normal((7, DIM))
    whitened.setflags(write=False)
    features, slopes = nodes.features_and_slopes(whitened)
    np.testing.assert_allclose(features, nodes.features(whitened), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(slopes, nodes.slopes(whitened), rtol=1e-13, atol=1e-15)
    arguments = whitened @ nodes.directions.T + nodes.biases
    np.testing.assert_allclose(slopes, activation.first(arguments), rtol=1e-12, atol=1e-14)
    assert features.shape == slopes.shape == (7, NODES)


def test_trends_are_made_of_linear_and_half_square_nodes():
    # z^T H z / 2 + g . z, with the off-diagonal part of H in nodes of direction e_k + e_l
    rng = np.random.default_rng(10)
    half = rng.standard_normal((DIM, DIM))
    hessian, slope = half + half.T, rng.standard_normal(DIM)
    first, second = np.triu_indices(DIM, 1)
    units = np.eye(DIM)
    pairs = hessian[first, second]
    own = 2 * np.diag(hessian) - hessian.sum(axis=1)
    square = AdditiveNodes(
        directions=np.concatenate([units, units[first] + units[second]]),
        biases=np.zeros(DIM + len(first)),
        activation=HALF_SQUARE,
    ).with_weights(np.concatenate([own, pairs]), Whitening.identity(DIM))
    linear = AdditiveNodes(directions=units, biases=np.zeros(DIM), activation=LINEAR).with_weights(
        slope, Whitening.identity(DIM)
    )
    z = rng.standard_normal((5, DIM))
    expected = 0.5 * np.einsum("ni,ij,nj->n", z, hessian, z) + z @ slope
    np.testing.assert_allclose(square.value(z) + linear.value(z), expected, rtol=1e-12)
    np.testing.assert_allclose(square.hessian(z), np.tile(hessian, (5, 1, 1)), atol=1e-12)
    np.testing.assert_array_equal(linear.hessian(z), np.zeros((5, DIM, DIM)))


@pytest.mark.parametrize("name", ["linear", "half-square"])
def test_activations_of_trends_are_none_for_a_network(name):
    with pytest.raises(ConfigurationError, match=f"must be one of softplus, .*, got '{name}'"):
        find_activation(name)


def test_one_row_and_many_agree(nodes):
    rng = np.random.default_rng(2)
    total = nodes.with_weights(rng.standard_normal(NODES), whitening(rng))
    positions = rng.standard_normal((5, DIM))
    matrices, vectors = factors(rng, 5)
    for name, *rest in (
        ("value",),
        ("gradient",),
        ("hessian",),
        ("hessian_trace_gradient", matrices),
        ("hessian_form_gradient", vectors),
        ("hessian_product", vectors),
        ("hessian_diagonal",),
        ("hessian_diagonal_gradient", vectors),
    ):
        method = getattr(total, name)
        rows = np.concatenate(
            [method(positions[i : i + 1], *(a[i : i + 1] for a in rest)) for i in range(5)]
        )
        np.testing.assert_allclose(method(positions, *rest), rows, rtol=1e-10, atol=1e-12)


def test_sums_and_forms_in_blocks(monkeypatch):
    rng = np.random.default_rng(4)
    factors, vectors = rng.standard_normal((7, 5)), rng.standard_normal((3, 5))
    expected = np.einsum("ni,ai,bi->nab", factors, vectors, vectors)
    np.testing.assert_allclose(weighted_outer(factors, vectors), expected, atol=1e-13)
    half = rng.standard_normal((7, 3, 3))
    matrices = half + half.transpose(0, 2, 1)
    forms = np.einsum("nab,ai,bi->ni", matrices, vectors, vectors)
    np.testing.assert_allclose(quadratic_forms(matrices, vectors), forms, atol=1e-13)
    monkeypatch.setattr(row_blocks, "_SCRATCH", 1)
    np.testing.assert_allclose(quadratic_forms(matrices, vectors), forms, atol=1e-13)
    np.testing.assert_allclose(weighted_outer(factors, vectors), expected, atol=1e-13)


@pytest.mark.parametrize("m", [2, 6])
def test_bilinear_forms_in_blocks(m, monkeypatch):
    rng = np.random.default_rng(12)
    weights, vectors = rng.standard_normal((7, m, 3)), rng.standard_normal((3, 5))
    coefficients = rng.standard_normal((5, m))
    expected = np.einsum("nma,im,ai->ni", weights, coefficients, vectors)
    found = bilinear_forms(weights, coefficients, vectors)
    np.testing.assert_allclose(found, expected, atol=1e-13)
    monkeypatch.setattr(row_blocks, "_SCRATCH", 1)
    found = bilinear_forms(weights, coefficients, vectors)
    np.testing.assert_allclose(found, expected, atol=1e-13)
