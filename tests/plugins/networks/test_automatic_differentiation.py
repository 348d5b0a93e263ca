"""Closed-form derivatives of fitted sums against automatic differentiation (HIPS autograd).

The sums are written out here once more, in plain words and from the textbook definition of each
node, so that value and derivatives are both checked against something that shares no code.
"""

import autograd
import autograd.numpy as anp
import numpy as np
import pytest

from surrokit.surrogate.whitening import Whitening
from surrokit_networks.nodes.activations import BUILT_IN, HALF_SQUARE, LINEAR
from surrokit_networks.nodes.additive import AdditiveNodes
from surrokit_networks.nodes.rbf import RbfNodes

DIM, NODES, N = 4, 9, 5

PLAIN = {
    "softplus": lambda x: anp.logaddexp(0.0, x),
    "tanh": anp.tanh,
    "cosine": anp.cos,
    "linear": lambda x: x + 0.0 * x**3,  # autograd warns of derivatives that are constant
    "half-square": lambda x: x**2 / 2,
}
ACTIVATIONS = {**BUILT_IN, LINEAR.name: LINEAR, HALF_SQUARE.name: HALF_SQUARE}


def test_each_activation_is_written_out():
    assert PLAIN.keys() == ACTIVATIONS.keys()


class Case:
    """A fitted sum as surrokit has it, and as a plain function of one position."""

    def __init__(self, kind):
        rng = np.random.default_rng(12)
        positions = rng.standard_normal((50, DIM)) @ rng.standard_normal((DIM, DIM)) + 3.0
        whitening = Whitening.of(positions, np.ones(50))
        vectors, weights = rng.standard_normal((NODES, DIM)), rng.standard_normal(NODES)

        def whitened(q):
            return anp.dot(np.linalg.inv(whitening.factor), q - whitening.mean)

        if kind == "rbf":
            widths = rng.uniform(0.5, 4.0, NODES)
            nodes = RbfNodes(centres=vectors, square_widths=widths)

            def plain(q):
                squares = anp.sum((whitened(q) - vectors) ** 2, axis=1)
                return anp.dot(anp.exp(-squares / (2 * widths)), weights)

        else:
            biases = rng.standard_normal(NODES)
            nodes = AdditiveNodes(directions=vectors, biases=biases, activation=ACTIVATIONS[kind])

            def plain(q):
                return anp.dot(PLAIN[kind](anp.dot(vectors, whitened(q)) + biases), weights)

        self.sum, self.plain = nodes.with_weights(weights, whitening), plain
        self.positions = positions[:N]
        half = rng.standard_normal((N, DIM, DIM))
        self.matrices = half + half.transpose(0, 2, 1)
        self.vectors = rng.standard_normal((N, DIM))


@pytest.fixture(params=[*PLAIN, "rbf"])
def case(request):
    return Case(request.param)


def each(function, *rows):
    return np.array([function(*row) for row in zip(*rows, strict=True)])


def close(actual, expected):
    scale = np.abs(expected).max()
    np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-11 * (1.0 + scale))


def test_values(case):
    close(case.sum.value(case.positions), each(case.plain, case.positions))


def test_gradients(case):
    expected = each(autograd.grad(case.plain), case.positions)
    close(case.sum.gradient(case.positions), expected)
    values, gradients = case.sum.value_and_gradient(case.positions)
    close(gradients, expected)
    close(values, each(case.plain, case.positions))


def test_hessians(case):
    close(case.sum.hessian(case.positions), each(autograd.hessian(case.plain), case.positions))


def test_traces(case):
    hessian = autograd.hessian(case.plain)
    trace = autograd.grad(lambda q, a: anp.sum(a * hessian(q)))
    close(
        case.sum.hessian_trace_gradient(case.positions, case.matrices),
        each(trace, case.positions, case.matrices),
    )


def test_forms(case):
    hessian = autograd.hessian(case.plain)
    form = autograd.grad(lambda q, u: anp.dot(u, anp.dot(hessian(q), u)))
    close(
        case.sum.hessian_form_gradient(case.positions, case.vectors),
        each(form, case.positions, case.vectors),
    )
