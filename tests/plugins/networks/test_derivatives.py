"""Every closed-form derivative against differences of what it is the derivative of."""

from itertools import pairwise

import numpy as np
import pytest

from surrokit_networks.activations import BUILT_IN, Activation
from surrokit_networks.additive_nodes import AdditiveNodes
from surrokit_networks.outer import weighted_outer
from surrokit_networks.rbf_nodes import RbfNodes
from surrokit_networks.whitening import Whitening

DIM, NODES = 4, 9
SINE = Activation(
    name="sine",
    value=np.sin,
    first=np.cos,
    second=lambda x: -np.sin(x),
    third=lambda x: -np.cos(x),
)
ACTIVATIONS = [*BUILT_IN.values(), SINE]


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
        nodes.weighted(weights, to_whitened).value(positions), expected, atol=1e-12
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
    total = nodes.weighted(rng.standard_normal(NODES), whitening(rng))
    positions = rng.standard_normal((6, DIM)) + 3.0
    gradient = total.gradient(positions)
    np.testing.assert_allclose(gradient, differences(total.value, positions), atol=1e-7)
    hessian = total.hessian(positions)
    np.testing.assert_allclose(hessian, differences(total.gradient, positions), atol=1e-7)
    np.testing.assert_allclose(hessian, hessian.transpose(0, 2, 1), atol=1e-12)
    value, same = total.value_and_gradient(positions)
    np.testing.assert_allclose(value, total.value(positions), rtol=1e-13)
    np.testing.assert_allclose(same, gradient, rtol=1e-13)


def test_one_row_and_many_agree(nodes):
    rng = np.random.default_rng(2)
    total = nodes.weighted(rng.standard_normal(NODES), whitening(rng))
    positions = rng.standard_normal((5, DIM))
    for name in ("value", "gradient", "hessian"):
        method = getattr(total, name)
        rows = np.concatenate([method(positions[i : i + 1]) for i in range(5)])
        np.testing.assert_allclose(method(positions), rows, rtol=1e-10, atol=1e-12)


def test_weighted_outer_in_blocks(monkeypatch):
    rng = np.random.default_rng(4)
    factors, vectors = rng.standard_normal((7, 5)), rng.standard_normal((3, 5))
    expected = np.einsum("ni,ai,bi->nab", factors, vectors, vectors)
    np.testing.assert_allclose(weighted_outer(factors, vectors), expected, atol=1e-13)
    monkeypatch.setattr("surrokit_networks.outer._SCRATCH", 1)
    np.testing.assert_allclose(weighted_outer(factors, vectors), expected, atol=1e-13)
