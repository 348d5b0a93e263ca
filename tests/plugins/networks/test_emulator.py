"""A network in place of a forward map, under an exact energy."""

from __future__ import annotations

import pickle

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose

from surrokit.coordinates.parameters import Parameters
from surrokit.coordinates.transforms import Transform
from surrokit.errors import CapabilityError, ShapeError
from surrokit.interfaces import Evaluations
from surrokit.surrogate.quality import fit_quality
from surrokit.surrogate.whitening import Whitening
from surrokit.targets.bounds import BoundedPotential, LiftedEnergy
from surrokit.targets.gaussian import GaussianEnergy, gaussian_prior
from surrokit.testing import check_potential
from surrokit_networks.activations import BUILT_IN, Activation
from surrokit_networks.network import Network
from surrokit_networks.nodes import Nodes
from surrokit_networks.potentials import FittedEmulator, emulator_capabilities
from surrokit_networks.trend import Polynomial
from surrokit_problems.lynx_hare import COUNTS, LynxHare

DIM, OUTPUTS, NODES = 3, 5, 8
SINE = Activation(
    name="sine",
    value=np.sin,
    first=np.cos,
    second=lambda x: -np.sin(x),
    third=lambda x: -np.cos(x),
)
KINDS = [*BUILT_IN, "sine", "rbf", "none"]


def nodes_of(kind, rng):
    if kind == "none":
        return None
    if kind == "rbf":
        return Nodes.radial(rng.standard_normal((NODES, DIM)), rng.uniform(1.0, 4.0, NODES))
    activation = SINE if kind == "sine" else BUILT_IN[kind]
    return Nodes.additive(rng.standard_normal((NODES, DIM)), rng.standard_normal(NODES), activation)


def network_of(constant, linear, matrices, **others):
    """A network from the coefficients of its trend, and the rest."""
    trend = Polynomial(constant=constant, linear=linear, matrices=matrices)
    return Network(trend=trend, **others)


def coefficients(kind, trend, rng):
    nodes = nodes_of(kind, rng)
    matrices = rng.standard_normal((OUTPUTS, DIM, DIM))
    return {
        "nodes": nodes,
        "whitening": Whitening.of(
            rng.standard_normal((50, DIM)) @ rng.standard_normal((DIM, DIM)) + 3.0, np.ones(50)
        ),
        "weights": rng.standard_normal((0 if nodes is None else NODES, OUTPUTS)),
        "constant": rng.standard_normal(OUTPUTS),
        "linear": rng.standard_normal((DIM, OUTPUTS)) * (trend != "constant"),
        "matrices": matrices + matrices.transpose(0, 2, 1) if trend == "quadratic" else None,
    }


ENERGY = GaussianEnergy(
    data=np.linspace(-1.0, 1.0, OUTPUTS),
    noise_sd=np.linspace(0.5, 2.0, OUTPUTS),
    prior=gaussian_prior(mean=1.0, sd=[1.0, 2.0, 3.0]),
)


class WithoutCurvatures:
    """The same energy, which does not say what else it can do."""

    value = ENERGY.value
    value_and_gradients = ENERGY.value_and_gradients


LYNX_HARE = BoundedPotential(LynxHare(), LynxHare.parameters)


def emulator_of(network, energy=ENERGY):
    return FittedEmulator(
        network=network, energy=energy, n_points=50, ridge=0.1, degrees=4.0, gcv_error=0.2
    )


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(params=["constant", "linear", "quadratic"])
def given(request, kind):
    return coefficients(kind, request.param, np.random.default_rng(7))


@pytest.fixture
def emulator(given):
    return emulator_of(network_of(**given))


@pytest.fixture
def q(rng):
    return 3.0 + rng.standard_normal((6, DIM))


def outputs_by_hand(given, q):
    z = given["whitening"].apply(q)
    outputs = given["constant"] + z @ given["linear"]
    if given["nodes"] is not None:
        outputs = outputs + given["nodes"].features(z) @ given["weights"]
    if given["matrices"] is not None:
        outputs = outputs + 0.5 * np.einsum("ni,mij,nj->nm", z, given["matrices"], z)
    return outputs


def test_outputs_in_plain_words(emulator, given, q):
    expected = outputs_by_hand(given, q)
    assert_allclose(emulator.forward(q), expected, rtol=1e-12, atol=1e-12)
    assert_allclose(emulator.forward_and_jacobian(q)[0], expected, rtol=1e-12, atol=1e-12)


def test_the_metric_is_the_gauss_newton_matrix(emulator, q):
    metric = emulator.metric(q)
    for matrix, jacobian in zip(metric, emulator.forward_and_jacobian(q)[1], strict=True):
        scaled = jacobian / ENERGY.noise_sd[:, None]
        assert_allclose(matrix, scaled.T @ scaled + np.diag([1.0, 1 / 4, 1 / 9]), rtol=1e-10)
    assert (np.linalg.eigvalsh(metric) > 0).all()


def test_derivatives_in_blocks(rng):
    """Of 20,000 nodes in three dimensions, 33 rows are a block."""
    nodes = Nodes.radial(rng.standard_normal((20_000, DIM)), rng.uniform(1.0, 4.0, 20_000))
    given = coefficients("none", "quadratic", rng)
    given |= {"nodes": nodes, "weights": rng.standard_normal((20_000, OUTPUTS))}
    emulator, q = emulator_of(network_of(**given)), rng.standard_normal((40, DIM))
    whole = emulator.forward_and_jacobian(q)[1]
    assert_allclose(emulator.forward_and_jacobian(q[-1:])[1], whole[-1:], rtol=1e-9)


def test_an_emulator_keeps_to_the_contract_of_potentials(emulator):
    results = check_potential(lambda: emulator)
    assert [f"{r.name}: {r.message}" for r in results if r.outcome != "passed"] == []
    names = {r.name.partition("[")[0] for r in results}
    assert {"check_gradient", "check_jacobian", "check_metric_matrix"} <= names
    assert {"check_forward_value", "check_energy_curvatures"} <= names
    assert {"check_metric_derivative", "check_metric_matrix", "check_forward_hessian"} <= names


@pytest.mark.parametrize("kind", ["softplus", "rbf"], indirect=True)
def test_derivatives_of_the_metric_where_the_curvatures_change(kind, rng, differences):
    energy = LiftedEnergy(LynxHare().energy, LYNX_HARE.transform)
    size, m = 6, 42
    whitening = Whitening.of(rng.standard_normal((50, 8)), np.ones(50))
    draws = rng.standard_normal((size, 8))
    nodes = (
        Nodes.radial(draws, rng.uniform(4.0, 9.0, size))
        if kind == "rbf"
        else Nodes.additive(draws, rng.standard_normal(size), BUILT_IN[kind])
    )
    network = network_of(
        nodes=nodes,
        whitening=whitening,
        weights=rng.standard_normal((size, m)),
        constant=np.log(COUNTS).ravel(),
        linear=rng.standard_normal((8, m)),
        matrices=None,
    )
    emulator = emulator_of(network, energy)
    q, u = 0.3 * rng.standard_normal((2, 4, 8))
    a = np.tile(np.diag(np.arange(8.0)), (4, 1, 1)) + u[:, :, None] * u[:, None, :]
    expected = differences(lambda x: (a * emulator.metric(x)).sum(axis=(1, 2)), q)
    found = emulator.metric_trace_gradient(q, a)
    assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())
    outer = u[:, :, None] * u[:, None, :]
    expected = emulator.metric_trace_gradient(q, outer)
    assert_allclose(emulator.metric_form_gradient(q, u), expected, rtol=1e-8)


def test_no_rows(emulator):
    nothing = np.empty((0, DIM))
    value, gradient = emulator.value_and_gradient(nothing)
    outputs, jacobian = emulator.forward_and_jacobian(nothing)
    assert (value.shape, gradient.shape) == ((0,), (0, DIM))
    assert (outputs.shape, jacobian.shape) == ((0, OUTPUTS), (0, OUTPUTS, DIM))
    assert emulator.metric(nothing).shape == (0, DIM, DIM)


@pytest.mark.parametrize("size", [1e8, 1e154, 1e200, 1e303])
def test_a_position_that_ran_away_has_infinite_energy(emulator, q, size):
    away = q * size * np.array([1.0, -1.0, 1.0])
    value = emulator.value(away)
    assert not np.isnan(value).any()
    assert (value > 1e9).all()
    assert_allclose(emulator.value_and_gradient(away)[0], value, rtol=1e-6)
    assert emulator.metric(away).shape == (6, DIM, DIM)
    assert emulator.forward(away).shape == (6, OUTPUTS)


def test_a_row_that_ran_away_leaves_the_others_alone(emulator, q):
    value, gradient = emulator.value_and_gradient(q)
    metric, jacobian = emulator.metric(q), emulator.forward_and_jacobian(q)[1]
    away = q.copy()
    away[2] = [1e303, -1e303, np.inf]
    others = [0, 1, 3, 4, 5]
    assert_allclose(emulator.value(away)[others], value[others], rtol=1e-10)
    assert_allclose(emulator.value_and_gradient(away)[1][others], gradient[others], rtol=1e-9)
    assert_allclose(emulator.metric(away)[others], metric[others], rtol=1e-9)
    found = emulator.forward_and_jacobian(away)[1]
    assert_allclose(found[others], jacobian[others], rtol=1e-9, atol=1e-12)


def test_bounded_parameters(rng, differences):
    transform = Transform.of(Parameters.declare({"a": (0, None), "b": (-1.0, 2.0), "c": None}))
    network = network_of(**coefficients("softplus", "quadratic", rng))
    emulator = emulator_of(network, LiftedEnergy(ENERGY, transform))
    z = rng.standard_normal((5, DIM))
    value, gradient = emulator.value_and_gradient(z)
    inner = ENERGY.value(emulator.forward(z), transform.to_bounded(z))
    assert_allclose(value, inner - transform.log_jacobian(z))
    assert_allclose(gradient, differences(emulator.value, z), rtol=1e-6, atol=1e-5)
    jacobian, d = emulator.forward_and_jacobian(z)[1], transform.derivatives(z)
    scaled = jacobian / ENERGY.noise_sd[:, None]
    rest = np.square(d.first) * [1.0, 1 / 4, 1 / 9] - d.log_second
    expected = scaled.transpose(0, 2, 1) @ scaled + rest[:, :, None] * np.eye(DIM)
    assert_allclose(emulator.metric(z), expected, rtol=1e-10)
    results = check_potential(lambda: emulator)
    assert {r.outcome for r in results} == {"passed"}


def test_without_curvatures_there_is_no_metric(rng):
    network = network_of(**coefficients("tanh", "linear", rng))
    plain = emulator_of(network, WithoutCurvatures())
    plainly = {"gradient", "forward", "jacobian", "forward-hessian"}
    of_metric = {"metric", "metric-product", "metric-derivative"}
    assert plain.capabilities == plainly
    assert emulator_of(network).capabilities == plainly | of_metric
    assert emulator_capabilities(ENERGY) == emulator_of(network).capabilities
    zeros = np.zeros((2, DIM))
    for call in (plain.metric, lambda q: plain.metric_product(q, q)):
        with pytest.raises(CapabilityError, match="WithoutCurvatures does not offer them; give it"):
            call(zeros)
    with pytest.raises(CapabilityError, match="'curvature-derivatives' among its capabilities"):
        plain.metric_form_gradient(zeros, zeros)
    with pytest.raises(CapabilityError, match="'curvature-derivatives' among its capabilities"):
        plain.metric_trace_gradient(zeros, np.zeros((2, DIM, DIM)))


def test_an_emulator_can_be_pickled(rng, q):
    emulator = emulator_of(network_of(**coefficients("softplus", "quadratic", rng)))
    copy = pickle.loads(pickle.dumps(emulator))
    assert_allclose(copy.value_and_gradient(q)[1], emulator.value_and_gradient(q)[1], rtol=0)


def test_what_an_emulator_says_of_itself(rng, q):
    emulator = emulator_of(network_of(**coefficients("softplus", "linear", rng)))
    assert repr(emulator) == (
        "FittedEmulator(dim=3, n_nodes=8, n_points=50, ridge=0.1, degrees=4.0, gcv_error=0.2, "
        "held_out_variance=none)"
    )
    value, gradient = emulator.value_and_gradient(q)
    quality = fit_quality(emulator, Evaluations(positions=q, values=value, gradients=gradient))
    assert "held_out_variance=0)" in repr(attrs.evolve(emulator, quality=quality))


@pytest.mark.parametrize(
    ("name", "array", "said"),
    [
        ("weights", np.zeros((NODES, OUTPUTS + 1)), r"weights .* \(8, 5\), got \(8, 6\)"),
        ("linear", np.zeros((OUTPUTS, DIM)), r"linear .* \(3, 5\), got \(5, 3\)"),
        ("matrices", np.zeros((DIM, DIM, OUTPUTS)), r"matrices .* \(5, 3, 3\), got \(3, 3, 5\)"),
    ],
)
def test_coefficients_must_go_together(name, array, said, rng):
    given = coefficients("softplus", "quadratic", rng) | {name: array}
    with pytest.raises(ShapeError, match=f"^{said}$"):
        network_of(**given)
