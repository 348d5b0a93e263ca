"""Hidden parameters trained by gradient descent: the gradient is that of the loss, and it helps."""

import attrs
import numpy as np
import pytest

from surrokit_networks.nodes.activations import BUILT_IN
from surrokit_networks.nodes.additive import AdditiveNodes
from surrokit_networks.nodes.rbf import RbfNodes
from surrokit_networks.regression.trained_hidden import (
    HiddenLoss,
    pack,
    train_on,
    unpack,
)
from surrokit_networks.solving import normal_equations as normal_equations_module
from surrokit_networks.solving.basis import Basis
from surrokit_networks.solving.equations import Equations
from surrokit_networks.solving.normal_equations import normal_equations
from surrokit_networks.solving.spectrum import Projected
from surrokit_networks.solving.trend import TrendFeatures

KINDS = [*BUILT_IN, "rbf"]


def drawn(kind, n, dim, seed=0):
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((n, dim))
    if kind == "rbf":
        return RbfNodes(centres=vectors, square_widths=rng.uniform(0.5, 4.0, n))
    return AdditiveNodes(
        directions=vectors, biases=rng.standard_normal(n), activation=BUILT_IN[kind]
    )


def wave(z):
    """A function of rows that few random nodes get right, and its gradient."""
    value = np.sin(2.0 * z[:, 0]) + 0.5 * np.square(z).sum(axis=1)
    gradient = z.copy()
    gradient[:, 0] += 2.0 * np.cos(2.0 * z[:, 0])
    return value, gradient


def equations_of(n, dim, n_outputs, *, with_gradients, trains_level=True, seed=1):
    rng = np.random.default_rng(seed)
    gradients = None
    if with_gradients:
        gradients = rng.standard_normal((n, n_outputs, dim))
    known = np.arange(n) % 3 > 0
    return Equations(
        whitened=rng.standard_normal((n, dim)),
        targets=rng.standard_normal((n, n_outputs)),
        gradients=gradients,
        value_weights=rng.uniform(0.2, 1.0, n),
        gradient_weights=rng.uniform(0.2, 1.0, n) * known * with_gradients,
        count=float(n),
        trains_level=trains_level,
    )


def train_nodes(nodes, z, values, gradients, weights, *, ridge, gradient_weight, max_iterations):
    """Train on values and, where they are known, gradients, over a level alone."""
    known = np.zeros(len(values), dtype=bool)
    if gradients is not None:
        known = np.isfinite(gradients).all(axis=1)
        gradients = np.where(known[:, None], gradients, 0.0)[:, None, :]
    equations = Equations(
        whitened=z,
        targets=(values - np.average(values, weights=weights))[:, None],
        gradients=gradients if known.any() else None,
        value_weights=weights,
        gradient_weights=gradient_weight * weights * known,
        count=float(weights.sum()),
        trains_level=True,
    )
    trend = TrendFeatures(dim=nodes.dim, degree=0)
    return train_on(
        nodes, equations, trend, ridge=ridge * len(values), max_iterations=max_iterations
    )


def central(loss, parameters, step=1e-5):
    steps = step * np.eye(len(parameters))
    return np.array(
        [
            (
                loss.value_and_gradient(parameters + e)[0]
                - loss.value_and_gradient(parameters - e)[0]
            )
            / (2 * step)
            for e in steps
        ]
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("with_gradients", [False, True], ids=["values", "gradients"])
@pytest.mark.parametrize(("n_outputs", "degree"), [(1, 0), (1, 2), (2, 1)])
def test_the_gradient_is_that_of_the_loss(kind, with_gradients, n_outputs, degree):
    nodes = drawn(kind, 5, 3)
    equations = equations_of(40, 3, n_outputs, with_gradients=with_gradients)
    loss = HiddenLoss.of(nodes, equations, TrendFeatures(dim=3, degree=degree), ridge=0.1)
    parameters = pack(nodes)
    _, gradient = loss.value_and_gradient(parameters)
    expected = central(loss, parameters)
    np.testing.assert_allclose(gradient, expected, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("kind", ["softplus", "rbf"])
def test_the_gradient_on_gradients_alone(kind):
    nodes = drawn(kind, 5, 3)
    equations = equations_of(40, 3, 1, with_gradients=True, trains_level=False)
    equations = attrs.evolve(equations, value_weights=np.zeros(40))
    loss = HiddenLoss.of(nodes, equations, TrendFeatures(dim=3, degree=1), ridge=0.1)
    expected = central(loss, pack(nodes))
    _, gradient = loss.value_and_gradient(pack(nodes))
    np.testing.assert_allclose(gradient, expected, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("kind", KINDS)
def test_the_loss_in_plain_words(kind):
    nodes = drawn(kind, 4, 2)
    equations = equations_of(20, 2, 1, with_gradients=True)
    trend, ridge = TrendFeatures(dim=2, degree=0), 0.3
    loss = HiddenLoss.of(nodes, equations, trend, ridge)
    normal = normal_equations(Basis(trend=trend, network=nodes), equations)
    solution = Projected.of(normal, 0, True).solution(equations, ridge)
    jacobian = Basis(trend=trend, network=nodes).jacobian(equations.whitened)
    values = nodes.features(equations.whitened) @ solution.weights + solution.level
    slopes = jacobian @ solution.weights
    expected = ridge * np.sum(solution.weights**2)
    expected += equations.value_weights @ np.square(values - equations.targets)[:, 0]
    errors = np.square(slopes[:, :, 0] - equations.gradients[:, 0]).sum(axis=1)
    expected += equations.gradient_weights @ errors
    assert loss.value_and_gradient(pack(nodes))[0] == pytest.approx(expected)


def test_the_loss_does_not_depend_on_the_size_of_blocks(monkeypatch):
    nodes, equations = drawn("tanh", 5, 3), equations_of(150, 3, 1, with_gradients=True)
    loss = HiddenLoss.of(nodes, equations, TrendFeatures(dim=3, degree=1), ridge=0.1)
    value, gradient = loss.value_and_gradient(pack(nodes))
    monkeypatch.setattr(normal_equations_module, "_BLOCK", 1)
    again, same = loss.value_and_gradient(pack(nodes))
    assert again == pytest.approx(value)
    np.testing.assert_allclose(same, gradient, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_packed_and_unpacked(kind):
    nodes = drawn(kind, 6, 3)
    again = unpack(pack(nodes), nodes)
    assert type(again) is type(nodes)
    z = np.random.default_rng(2).standard_normal((4, 3))
    np.testing.assert_allclose(again.features(z), nodes.features(z), rtol=1e-13)


def held_out_error(nodes, z, values, dim):
    """Root mean square error on fresh points once output weights are solved for."""
    fresh = 0.8 * np.random.default_rng(77).standard_normal((400, dim))
    features = np.column_stack([nodes.features(z), np.ones(len(z))])
    found = np.linalg.lstsq(features, values, rcond=1e-10)[0]
    left = np.column_stack([nodes.features(fresh), np.ones(400)]) @ found - wave(fresh)[0]
    return float(np.sqrt(np.mean(left**2)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("dim", "n_nodes"), [(1, 5), (2, 10)])
@pytest.mark.parametrize("with_gradients", [False, True], ids=["values", "gradients"])
def test_training_lowers_the_error_of_a_tiny_network(kind, dim, n_nodes, with_gradients):
    nodes = drawn(kind, n_nodes, dim)
    z = np.random.default_rng(6).standard_normal((80, dim))
    values, gradients = wave(z)
    gradients[::2] = np.nan
    trained = train_nodes(
        nodes,
        z,
        values,
        gradients if with_gradients else None,
        np.ones(80),
        ridge=1e-8,
        gradient_weight=1.0,
        max_iterations=60,
    )
    assert type(trained) is type(nodes)
    assert len(trained) == n_nodes
    before = held_out_error(nodes, z, values, dim)
    after = held_out_error(trained, z, values, dim)
    assert after < 0.5 * before


def settings(**changed):
    return {"ridge": 1e-6, "gradient_weight": 1.0, "max_iterations": 20, **changed}


def test_rows_of_no_weight_do_not_matter():
    nodes, z = drawn("tanh", 4, 2), np.random.default_rng(3).standard_normal((30, 2))
    values, gradients = wave(z)
    weights = np.ones(30)
    spoilt = values.copy()
    spoilt[:5], weights[:5] = 1e3, 0.0
    first, second = (
        train_nodes(nodes, z, t, gradients, weights, **settings()) for t in (values, spoilt)
    )
    np.testing.assert_allclose(pack(first), pack(second), rtol=1e-3)


def test_a_gradient_that_is_not_known_is_left_out():
    nodes, z = drawn("softplus", 4, 2), np.random.default_rng(3).standard_normal((30, 2))
    values, gradients = wave(z)
    unknown = np.full_like(gradients, np.nan)
    without = train_nodes(nodes, z, values, None, np.ones(30), **settings())
    same = train_nodes(nodes, z, values, unknown, np.ones(30), **settings())
    np.testing.assert_array_equal(pack(without), pack(same))
    unknown[3] = gradients[3]
    other = train_nodes(nodes, z, values, unknown, np.ones(30), **settings())
    assert not np.array_equal(pack(without), pack(other))


def test_nothing_given_is_changed():
    nodes, z = drawn("softplus", 4, 2), np.random.default_rng(3).standard_normal((30, 2))
    values, gradients = wave(z)
    gradients[4] = np.nan
    weights = np.ones(30)
    start = pack(nodes)
    for array in (z, values, gradients, weights, nodes.directions, nodes.biases):
        array.setflags(write=False)
    train_nodes(nodes, z, values, gradients, weights, **settings())
    np.testing.assert_array_equal(pack(nodes), start)


def test_iterations_are_limited(monkeypatch):
    nodes, z = drawn("softplus", 8, 2), np.random.default_rng(3).standard_normal((60, 2))
    values, _ = wave(z)

    def trained(most):
        return train_nodes(nodes, z, values, None, np.ones(60), **settings(max_iterations=most))

    assert trained(0) is nodes
    equations = Equations(
        whitened=z,
        targets=(values - values.mean())[:, None],
        gradients=None,
        value_weights=np.ones(60),
        gradient_weights=np.zeros(60),
        count=60.0,
        trains_level=True,
    )
    loss = HiddenLoss.of(nodes, equations, TrendFeatures(dim=2, degree=0), 60 * 1e-6)
    losses = [loss.value_and_gradient(pack(trained(most)))[0] for most in (0, 1, 5, 40)]
    assert losses[0] > losses[1] > losses[2] > losses[3]


@pytest.mark.parametrize("kind", ["softplus", "rbf"])
def test_where_the_loss_is_not_a_number_the_start_comes_back(kind):
    nodes = drawn(kind, 4, 2)
    z = np.random.default_rng(3).standard_normal((30, 2))
    values, _ = wave(z)
    z[3] = np.nan if kind == "rbf" else 1e200
    trained = train_nodes(nodes, z, values, None, np.ones(30), **settings())
    assert trained is nodes


def test_targets_that_are_constant_leave_the_start():
    nodes, z = drawn("softplus", 4, 2), np.random.default_rng(3).standard_normal((30, 2))
    assert train_nodes(nodes, z, np.full(30, 7.0), None, np.ones(30), **settings()) is nodes


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_ridge_the_loss_stays_well_posed(kind):
    # more nodes than points: the linear part alone could pass through every point
    nodes, z = drawn(kind, 30, 2), np.random.default_rng(3).standard_normal((20, 2))
    trained = train_nodes(nodes, z, wave(z)[0], None, np.ones(20), **settings(ridge=0.0))
    assert np.isfinite(pack(trained)).all()


def test_a_wall_stops_the_line_search(monkeypatch):
    # a loss that is not a number beyond a distance of the start, as where a feature overflows
    nodes, z = drawn("softplus", 5, 1), np.random.default_rng(3).standard_normal((40, 1))
    values, _ = wave(z)
    start, inner = pack(nodes), HiddenLoss.value_and_gradient

    def walled(loss, parameters):
        if np.linalg.norm(parameters - start) > 0.5:
            return float("nan"), np.full_like(parameters, np.nan)
        return inner(loss, parameters)

    monkeypatch.setattr(HiddenLoss, "value_and_gradient", walled)
    trained = train_nodes(nodes, z, values, None, np.ones(40), **settings())
    distance = np.linalg.norm(pack(trained) - start)
    assert 0.0 < distance <= 0.5


def test_a_trend_is_fitted_along():
    # on a quadratic trend there is nothing left for nodes to learn of a quadratic
    nodes, z = drawn("tanh", 4, 2), np.random.default_rng(3).standard_normal((60, 2))
    bowl = np.square(z).sum(axis=1) + z[:, 0]
    equations = Equations(
        whitened=z,
        targets=(bowl + 0.1 * np.sin(2 * z[:, 0]))[:, None],
        gradients=None,
        value_weights=np.ones(60),
        gradient_weights=np.zeros(60),
        count=60.0,
        trains_level=True,
    )
    trend = TrendFeatures(dim=2, degree=2)
    trained = train_on(nodes, equations, trend, ridge=1e-6, max_iterations=100)
    loss = HiddenLoss.of(nodes, equations, trend, 1e-6)
    first, last = (loss.value_and_gradient(pack(each))[0] for each in (nodes, trained))
    assert first < 60 * 0.1**2
    assert last < 0.2 * first
