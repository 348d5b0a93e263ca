"""Every closed-form derivative of a network, of one output and of many.

Sums of nodes are written out once more, in plain words and from the textbook definition of each
node, and differentiated automatically (HIPS autograd): value and derivatives are both checked
against something that shares no code.
"""

import pickle

import attrs
import autograd
import autograd.numpy as anp
import numpy as np
import pytest
from equations_by_hand import nodes_of
from numpy.testing import assert_allclose, assert_array_equal

from surrokit.errors import CapabilityError, ShapeError
from surrokit.surrogate.quality import FitQuality
from surrokit.surrogate.whitening import Whitening
from surrokit.targets.energies import gaussian_energy
from surrokit.targets.gaussian import gaussian_prior
from surrokit.testing import check_potential
from surrokit_networks.network import Network, Polynomial
from surrokit_networks.nodes import ACTIVATIONS, Nodes
from surrokit_networks.potentials import FIRST_ORDER, FittedEmulator, FittedNetwork

DIM, NODES, N = 4, 9, 5
PLAIN = {
    "softplus": lambda x: anp.logaddexp(0.0, x),
    "tanh": anp.tanh,
    "exponential": anp.exp,
}


class Case:
    """A network as surrokit has it, and as a plain function of one position."""

    def __init__(self, kind, with_trend):
        rng = np.random.default_rng(12)
        positions = rng.standard_normal((50, DIM)) @ rng.standard_normal((DIM, DIM)) + 3.0
        whitening = Whitening.of(positions, np.ones(50))
        vectors, weights = rng.standard_normal((NODES, DIM)), rng.standard_normal(NODES)
        half, slope = rng.standard_normal((DIM, DIM)), rng.standard_normal(DIM)
        matrix = (half + half.T) * with_trend

        def whitened(q):
            return anp.dot(np.linalg.inv(whitening.factor), q - whitening.mean)

        def trend(q):
            z = whitened(q)
            return 7.0 + anp.dot(z, slope) + 0.5 * anp.dot(z, anp.dot(matrix, z))

        if kind is None:
            nodes, weights, self.plain = Nodes.none(DIM), weights[:0], trend
        elif kind == "rbf":
            widths = rng.uniform(0.5, 4.0, NODES)
            nodes = Nodes.radial(vectors, widths)

            def plain(q):
                squares = anp.sum((whitened(q) - vectors) ** 2, axis=1)
                return anp.dot(anp.exp(-squares / (2 * widths)), weights) + trend(q)

            self.plain = plain
        else:
            biases = rng.standard_normal(NODES)
            nodes = Nodes.additive(vectors, biases, kind)

            def plain(q):
                arguments = anp.dot(vectors, whitened(q)) + biases
                return anp.dot(PLAIN[kind](arguments), weights) + trend(q)

            self.plain = plain
        polynomial = Polynomial(
            constant=np.array([7.0]),
            linear=slope[:, None],
            matrices=matrix[None] if with_trend else None,
        )
        self.fitted = FittedNetwork(
            network=Network(
                whitening=whitening, trend=polynomial, nodes=nodes, weights=weights[:, None]
            ),
            n_points=50,
            ridge=1e-3,
            degrees=5.0,
            gcv_error=0.1,
        )
        self.positions = positions[:N]
        half = rng.standard_normal((N, DIM, DIM))
        self.matrices = half + half.transpose(0, 2, 1)
        self.vectors = rng.standard_normal((N, DIM))
        for array in (self.positions, self.matrices, self.vectors):
            array.setflags(write=False)


@pytest.fixture(
    params=[(kind, trend) for kind in [*PLAIN, "rbf", None] for trend in (False, True)], ids=str
)
def case(request):
    return Case(*request.param)


def each(function, *rows):
    return np.array([function(*row) for row in zip(*rows, strict=True)])


def close(actual, expected):
    scale = np.abs(expected).max()
    assert_allclose(actual, expected, rtol=1e-9, atol=1e-11 * (1.0 + scale))


def test_values_and_gradients(case):
    fitted, q = case.fitted, case.positions
    expected = each(autograd.grad(case.plain), q)
    values, gradients = fitted.value_and_gradient(q)
    close(values, each(case.plain, q))
    close(fitted.value(q), values)
    close(gradients, expected)
    close(fitted.gradient(q), expected)


ADDITIVE = pytest.mark.parametrize(
    "case", [(kind, trend) for kind in [*PLAIN, None] for trend in (False, True)], indirect=True
)


@ADDITIVE
@pytest.mark.filterwarnings("ignore:Output seems independent")
def test_hessians(case):
    hessian = each(autograd.hessian(case.plain), case.positions)
    found = case.fitted.hessian(case.positions)
    close(found, hessian)
    close(found, found.transpose(0, 2, 1))
    close(case.fitted.hessian_diagonal(case.positions), np.einsum("nkk->nk", hessian))


@ADDITIVE
@pytest.mark.filterwarnings("ignore:Output seems independent")
def test_contractions_of_the_derivative_of_the_hessian(case):
    hessian, q = autograd.hessian(case.plain), case.positions
    trace = autograd.grad(lambda q, a: anp.sum(a * hessian(q)))
    fitted, u = case.fitted, case.vectors
    close(fitted.hessian_trace_gradient(q, case.matrices), each(trace, q, case.matrices))
    outer = u[:, :, None] * u[:, None, :]
    close(fitted.hessian_form_gradient(q, u), each(trace, q, outer))
    close(fitted.hessian_diagonal_gradient(q, u), each(trace, q, u[:, :, None] * np.eye(DIM)))
    some = np.array([0, 3])
    forms, traces = fitted.hessian_forms_at(q), fitted.hessian_traces_at(q)
    close(forms(u[some], some), fitted.hessian_form_gradient(q, u)[some])
    close(traces(case.matrices[some], some), fitted.hessian_trace_gradient(q, case.matrices)[some])


def complaints(potential):
    """What the conformance checks of potentials find, and the names of those that ran."""
    results = check_potential(lambda: potential)
    wrong = [f"{r.name}: {r.message}" for r in results if r.outcome != "passed"]
    return wrong, {r.name.partition("[")[0] for r in results}


@pytest.mark.parametrize("case", [("softplus", False), ("rbf", True), (None, True)], indirect=True)
def test_a_network_keeps_to_the_contract_of_potentials(case):
    wrong, names = complaints(case.fitted)
    assert wrong == []
    assert {"check_gradient"} <= names
    assert ("check_hessian" in names) != case.fitted.network.nodes.curved


@pytest.mark.parametrize("case", [("rbf", True)], indirect=True)
def test_what_a_fit_says_of_itself(case):
    fitted = case.fitted
    assert fitted.capabilities == FIRST_ORDER
    text = repr(fitted)
    assert text.startswith(f"FittedNetwork(dim=4, n_nodes={fitted.n_nodes}, n_points=50, ridge=")
    assert text.endswith("degrees=5.0, gcv_error=0.1, held_out_variance=none)")
    quality = FitQuality(variance=0.0321, gradient_error=None, n_points=5)
    assert repr(attrs.evolve(fitted, quality=quality)).endswith("held_out_variance=0.0321)")


@pytest.mark.parametrize("name", PLAIN)
def test_activations(name):
    activation, x = ACTIVATIONS[name], np.linspace(-6.0, 6.0, 49)
    function = PLAIN[name]
    value, slope = activation.both(x.copy())
    assert not np.shares_memory(value, slope)
    for found in (value, slope, activation.second(x), activation.third(x)):
        assert_allclose(found, function(x), rtol=1e-9, atol=1e-12)
        function = autograd.elementwise_grad(function)


def test_softplus_far_out():
    softplus, x = ACTIVATIONS["softplus"], np.array([-1e5, -800.0, 800.0, 1e5])
    assert_array_equal(softplus.both(x.copy()), [[0.0, 0.0, 800.0, 1e5], [0.0, 0.0, 1.0, 1.0]])
    assert_array_equal(softplus.second(x), np.zeros(4))
    assert_array_equal(softplus.third(x), np.zeros(4))


@pytest.mark.parametrize("kind", ["additive", "rbf"])
def test_derivatives_of_many_nodes_are_the_same_in_blocks(kind):
    """Of 20,000 nodes in four dimensions, 25 rows are a block."""
    nodes, rng = nodes_of(kind, DIM, 20_000), np.random.default_rng(1)
    whitening = Whitening.identity(DIM)
    plain = {"whitening": whitening, "nodes": nodes}
    one = Polynomial(constant=np.zeros(1), linear=np.zeros((DIM, 1)), matrices=None)
    weights = rng.standard_normal((20_000, 1)) / 100.0
    far = rng.standard_normal((1900, DIM))  # of nine nodes 1,820 positions are a block
    few = Case("rbf" if kind == "rbf" else "tanh", True).fitted
    for name in ("value", "gradient"):
        close(getattr(few, name)(far)[-3:], getattr(few, name)(far[-3:]))
    close(few.value_and_gradient(far)[1], few.gradient(far))
    close(few.network.at(far).outputs[:, 0], few.value(far))
    figures = {"n_points": 9, "ridge": 1.0, "degrees": 1.0, "gcv_error": 1.0}
    fitted = FittedNetwork(network=Network(trend=one, weights=weights, **plain), **figures)
    q, u = rng.standard_normal((2, 40, DIM))
    if kind == "additive":
        a, traces = u[:, :, None] * u[:, None, :], fitted.hessian_trace_gradient
        close(fitted.hessian(q)[-3:], fitted.hessian(q[-3:]))
        close(traces(q, a)[-3:], traces(q[-3:], a[-3:]))
        close(traces(q, a), fitted.hessian_form_gradient(q, u))
    many = Polynomial(constant=np.zeros(6), linear=np.zeros((DIM, 6)), matrices=None)
    network = Network(trend=many, weights=rng.standard_normal((20_000, 6)), **plain)
    close(network.at(q).jacobian()[-3:], network.at(q[-3:]).jacobian())


WIDE, OUTPUTS, SIZE = 3, 5, 8


def given(kind, trend="quadratic"):
    """Coefficients of a network of many outputs."""
    rng = np.random.default_rng(7)
    if kind == "rbf":
        nodes = Nodes.radial(rng.standard_normal((SIZE, WIDE)), rng.uniform(1.0, 4.0, SIZE))
    elif kind == "none":
        nodes = Nodes.none(WIDE)
    else:
        vectors, offsets = rng.standard_normal((SIZE, WIDE)), rng.standard_normal(SIZE)
        nodes = Nodes.additive(vectors, offsets, kind)
    positions = rng.standard_normal((50, WIDE)) @ rng.standard_normal((WIDE, WIDE)) + 3.0
    matrices = rng.standard_normal((OUTPUTS, WIDE, WIDE))
    return {
        "nodes": nodes,
        "whitening": Whitening.of(positions, np.ones(50)),
        "weights": rng.standard_normal((len(nodes), OUTPUTS)),
        "constant": rng.standard_normal(OUTPUTS),
        "linear": rng.standard_normal((WIDE, OUTPUTS)) * (trend != "constant"),
        "matrices": matrices + matrices.transpose(0, 2, 1) if trend == "quadratic" else None,
    }


ENERGY = gaussian_energy(
    data=np.linspace(-1.0, 1.0, OUTPUTS),
    noise_sd=np.linspace(0.5, 2.0, OUTPUTS),
    prior=gaussian_prior(mean=1.0, sd=[1.0, 2.0, 3.0]),
)


def emulator_of(given, energy=ENERGY):
    trend = Polynomial(**{name: given.pop(name) for name in ("constant", "linear", "matrices")})
    network = Network(trend=trend, **given)
    return FittedEmulator(
        network=network, energy=energy, n_points=50, ridge=0.1, degrees=4.0, gcv_error=0.2
    )


@pytest.fixture(
    params=[("softplus", "constant"), ("rbf", "constant"), ("rbf", "quadratic"), ("none",)], ids=str
)
def emulator(request):
    return emulator_of(given(*request.param))


@pytest.fixture
def q(rng):
    return 3.0 + rng.standard_normal((6, WIDE))


def test_an_emulator_keeps_to_the_contract_of_potentials(emulator, q):
    wrong, names = complaints(emulator)
    assert wrong == []
    assert {"check_gradient", "check_forward", "check_metric_matrix"} <= names
    assert {"check_energy", "check_energy_curvatures"} <= names
    copy = pickle.loads(pickle.dumps(emulator))
    assert_allclose(copy.value_and_gradient(q)[1], emulator.value_and_gradient(q)[1], rtol=0)


@pytest.mark.parametrize("size", [1e8, 1e200, 1e303, np.inf])
def test_a_position_that_ran_away_has_infinite_energy_and_leaves_others_alone(emulator, q, size):
    away, others = q.copy(), [0, 1, 3, 4, 5]
    away[2] = np.array([size, -size, size])
    value = emulator.value(away)
    assert value[2] > 1e9
    found, gradient = emulator.value_and_gradient(away)
    assert_allclose(found, value, rtol=1e-6)
    assert_allclose(value[others], emulator.value(q)[others], rtol=1e-10)
    for found, exact in (
        (gradient, emulator.value_and_gradient(q)[1]),
        (emulator.metric(away), emulator.metric(q)),
        (emulator.forward_and_jacobian(away)[1], emulator.forward_and_jacobian(q)[1]),
    ):
        assert_allclose(found[others], exact[others], rtol=1e-9, atol=1e-12)


class WithoutCurvatures:
    """The same energy, which does not say what else it can do."""

    value = ENERGY.value
    value_and_gradients = ENERGY.value_and_gradients


def test_without_curvatures_there_is_no_metric():
    plain = emulator_of(given("tanh", "linear"), WithoutCurvatures())
    plainly = {"gradient", "forward", "jacobian"}
    assert plain.capabilities == plainly
    assert emulator_of(given("tanh")).capabilities == plainly | {"metric"}
    with pytest.raises(CapabilityError, match="WithoutCurvatures does not offer them; give it"):
        plain.metric(np.zeros((2, WIDE)))


@pytest.mark.parametrize(
    ("name", "array", "said"),
    [
        ("weights", np.zeros((SIZE, OUTPUTS + 1)), r"weights .* \(8, 5\), got \(8, 6\)"),
        ("linear", np.zeros((OUTPUTS, WIDE)), r"linear .* \(3, 5\), got \(5, 3\)"),
        ("matrices", np.zeros((WIDE, WIDE, OUTPUTS)), r"matrices .* \(5, 3, 3\), got \(3, 3, 5\)"),
    ],
)
def test_coefficients_must_go_together(name, array, said):
    with pytest.raises(ShapeError, match=f"^{said}$"):
        emulator_of(given("softplus") | {name: array})
