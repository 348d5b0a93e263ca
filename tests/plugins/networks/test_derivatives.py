"""Every closed-form derivative of a network with one output.

Sums of nodes are written out once more, in plain words and from the textbook definition of each
node, and differentiated automatically (HIPS autograd): value and derivatives are both checked
against something that shares no code.
"""

import autograd
import autograd.numpy as anp
import numpy as np
import pytest

from surrokit.errors import ConfigurationError, ShapeError
from surrokit.surrogate.quality import FitQuality
from surrokit.surrogate.whitening import Whitening
from surrokit_networks.activations import BUILT_IN, EXPONENTIAL, Activation, find_activation
from surrokit_networks.network import Network
from surrokit_networks.nodes import Nodes, bilinear_forms, quadratic_forms, weighted_outer
from surrokit_networks.potentials import CAPABILITIES, FittedNetwork
from surrokit_networks.trend import Polynomial

DIM, NODES, N = 4, 9, 5
SINE = Activation(
    name="sine",
    value=np.sin,
    first=np.cos,
    second=lambda x: -np.sin(x),
    third=lambda x: -np.cos(x),
)
ACTIVATIONS = {**BUILT_IN, "sine": SINE, "exponential": EXPONENTIAL}
PLAIN = {
    "softplus": lambda x: anp.logaddexp(0.0, x),
    "tanh": anp.tanh,
    "cosine": anp.cos,
    "sine": anp.sin,
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
            nodes, weights, self.plain = None, weights[:0], trend
        elif kind == "rbf":
            widths = rng.uniform(0.5, 4.0, NODES)
            nodes = Nodes.radial(vectors, widths)

            def plain(q):
                squares = anp.sum((whitened(q) - vectors) ** 2, axis=1)
                return anp.dot(anp.exp(-squares / (2 * widths)), weights) + trend(q)

            self.plain = plain
        else:
            biases = rng.standard_normal(NODES)
            nodes = Nodes.additive(vectors, biases, ACTIVATIONS[kind])

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
    np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-11 * (1.0 + scale))


def test_values_and_gradients(case):
    fitted, q = case.fitted, case.positions
    expected = each(autograd.grad(case.plain), q)
    values, gradients = fitted.value_and_gradient(q)
    close(values, each(case.plain, q))
    close(fitted.value(q), values)
    close(gradients, expected)
    close(fitted.gradient(q), expected)


@pytest.mark.filterwarnings("ignore:Output seems independent")
def test_hessians(case):
    hessian = each(autograd.hessian(case.plain), case.positions)
    found = case.fitted.hessian(case.positions)
    close(found, hessian)
    close(found, found.transpose(0, 2, 1))
    product = np.einsum("nij,nj->ni", hessian, case.vectors)
    close(case.fitted.hessian_product(case.positions, case.vectors), product)
    diagonal = np.einsum("nkk->nk", hessian)
    close(case.fitted.hessian_diagonal(case.positions), diagonal)


@pytest.mark.filterwarnings("ignore:Output seems independent")
def test_contractions_of_the_derivative_of_the_hessian(case):
    hessian, q = autograd.hessian(case.plain), case.positions
    trace = autograd.grad(lambda q, a: anp.sum(a * hessian(q)))
    fitted, u = case.fitted, case.vectors
    close(fitted.hessian_trace_gradient(q, case.matrices), each(trace, q, case.matrices))
    outer = u[:, :, None] * u[:, None, :]
    close(fitted.hessian_form_gradient(q, u), each(trace, q, outer))
    close(fitted.hessian_diagonal_gradient(q, u), each(trace, q, u[:, :, None] * np.eye(DIM)))


def test_contractions_prepared_for_some_rows_are_those_of_all(case):
    fitted, q = case.fitted, case.positions
    for some in (np.array([0, 3]), np.arange(N)):
        close(
            fitted.hessian_forms_at(q)(case.vectors[some], some),
            fitted.hessian_form_gradient(q, case.vectors)[some],
        )
        close(
            fitted.hessian_traces_at(q)(case.matrices[some], some),
            fitted.hessian_trace_gradient(q, case.matrices)[some],
        )


METHODS = {
    "value": (),
    "gradient": (),
    "hessian": (),
    "hessian_trace_gradient": ("matrices",),
    "hessian_form_gradient": ("vectors",),
    "hessian_product": ("vectors",),
    "hessian_diagonal": (),
    "hessian_diagonal_gradient": ("vectors",),
}


@pytest.mark.parametrize("name", METHODS)
def test_one_row_and_many_agree_and_every_array_is_new(case, name):
    method = getattr(case.fitted, name)
    rest = [getattr(case, argument) for argument in METHODS[name]]
    rows = np.concatenate(
        [method(case.positions[i : i + 1], *(a[i : i + 1] for a in rest)) for i in range(N)]
    )
    found = method(case.positions, *rest)
    close(found, rows)
    found += 1.0
    close(method(case.positions, *rest), rows)
    nothing = method(case.positions[:0], *(a[:0] for a in rest))
    assert nothing.shape == (0, *rows.shape[1:])
    with pytest.raises(ShapeError, match=r"positions must have shape \(n, 4\), got \(4,\); pass"):
        method(np.zeros(DIM), *rest)


@pytest.mark.parametrize("kind", ["softplus", "rbf"])
def test_many_positions_are_the_same_in_blocks(kind):
    """Of nine nodes, 1,820 positions are a block."""
    fitted = Case(kind, True).fitted
    q = np.random.default_rng(1).standard_normal((1900, DIM)) + 3.0
    for name in ("value", "gradient"):
        close(getattr(fitted, name)(q)[-3:], getattr(fitted, name)(q[-3:]))
    value, gradient = fitted.value_and_gradient(q)
    close(value, fitted.value(q))
    close(gradient, fitted.gradient(q))
    outputs = fitted.network.at(q).outputs[:, 0]
    close(outputs, value)


def test_what_is_contracted_must_fit(case):
    with pytest.raises(ShapeError, match="matrices"):
        case.fitted.hessian_trace_gradient(case.positions, np.zeros((N, DIM)))
    with pytest.raises(ShapeError, match="vectors"):
        case.fitted.hessian_form_gradient(case.positions, np.zeros((N - 1, DIM)))


def test_what_a_fit_says_of_itself(case):
    fitted = case.fitted
    assert fitted.capabilities == CAPABILITIES
    assert fitted.level == 7.0
    text = repr(fitted)
    assert text.startswith(f"FittedNetwork(dim=4, n_nodes={fitted.n_nodes}, n_points=50, ridge=")
    assert text.endswith("degrees=5.0, gcv_error=0.1, held_out_variance=none)")
    quality = FitQuality(variance=0.0321, gradient_error=None, n_points=5)
    judged = FittedNetwork(
        network=fitted.network, n_points=5, ridge=1, degrees=1, gcv_error=1, quality=quality
    )
    assert repr(judged).endswith("held_out_variance=0.0321)")


def test_at_the_centre_of_a_radial_node():
    """Where the difference to a centre is zero, nothing is divided by it."""
    fitted = Case("rbf", False).fitted
    nodes, whitening = fitted.network.nodes, fitted.network.whitening
    positions = whitening.undo(nodes.vectors / nodes.curvatures[:, None])
    close(nodes.features(whitening.apply(positions)).diagonal(), np.ones(NODES))
    assert np.isfinite(fitted.hessian(positions)).all()


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name):
    activation, x = ACTIVATIONS[name], np.linspace(-6.0, 6.0, 49)
    x.setflags(write=False)
    function = PLAIN[name]
    for found in (activation.value, activation.first, activation.second, activation.third):
        np.testing.assert_allclose(found(x), function(x), rtol=1e-9, atol=1e-12)
        function = autograd.elementwise_grad(function)
    value, slope = activation.both(x.copy())
    np.testing.assert_allclose(value, activation.value(x), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(slope, activation.first(x), rtol=1e-13, atol=1e-14)
    assert not np.shares_memory(value, slope)


def test_softplus_far_out():
    softplus, x = BUILT_IN["softplus"], np.array([-1e5, -800.0, 800.0, 1e5])
    np.testing.assert_array_equal(softplus.value(x), [0.0, 0.0, 800.0, 1e5])
    np.testing.assert_array_equal(softplus.first(x), [0.0, 0.0, 1.0, 1.0])
    np.testing.assert_array_equal(softplus.second(x), np.zeros(4))
    np.testing.assert_array_equal(softplus.third(x), np.zeros(4))
    np.testing.assert_array_equal(softplus.both(x.copy()), [softplus.value(x), softplus.first(x)])


@pytest.mark.parametrize("name", ["exponential", "relu"])
def test_activations_that_no_setting_may_name(name):
    with pytest.raises(ConfigurationError, match=f"must be one of softplus, .*, got '{name}'"):
        find_activation(name)


@pytest.mark.parametrize("kind", ["tanh", "rbf"])
def test_gradients_of_nodes(kind, make_nodes, differences):
    nodes = make_nodes("rbf" if kind == "rbf" else "additive", DIM, NODES)
    z = np.random.default_rng(9).standard_normal((7, DIM))
    gradients = nodes.gradients(z)
    expected = differences(nodes.features, z).transpose(0, 2, 1)
    np.testing.assert_allclose(gradients, expected, atol=1e-8)
    features, slopes = nodes.features_and_slopes(z)
    np.testing.assert_allclose(features, nodes.features(z), rtol=1e-13)
    factors, u = np.random.default_rng(2).standard_normal((7, NODES)), z[::-1].copy()
    combined = np.einsum("ndi,ni->nd", gradients, factors / slopes)
    np.testing.assert_allclose(nodes.combine(z, factors), combined, rtol=1e-8, atol=1e-10)
    along = np.einsum("ndi,nd->ni", gradients, u) / slopes
    np.testing.assert_allclose(nodes.along(z, u), along, rtol=1e-8, atol=1e-10)


def test_sums_and_forms_in_one_block_and_in_several():
    rng = np.random.default_rng(4)
    for n, size in ((3, 5), (5, 200_000)):  # of the second, two rows are a block
        factors, vectors = rng.standard_normal((n, size)), rng.standard_normal((3, size))
        expected = np.einsum("ni,ai,bi->nab", factors, vectors, vectors)
        np.testing.assert_allclose(weighted_outer(factors, vectors), expected, atol=1e-8)
        half = rng.standard_normal((n, 3, 3))
        matrices = half + half.transpose(0, 2, 1)
        forms = np.einsum("nab,ai,bi->ni", matrices, vectors, vectors)
        np.testing.assert_allclose(quadratic_forms(matrices, vectors), forms, atol=1e-10)
        for m in (2, 6):
            weights, coefficients = rng.standard_normal((n, m, 3)), rng.standard_normal((size, m))
            expected = np.einsum("nma,im,ai->ni", weights, coefficients, vectors)
            found = bilinear_forms(weights, coefficients, vectors)
            np.testing.assert_allclose(found, expected, atol=1e-10)
