"""The potential that a fitted network is, nodes and trend together."""

import attrs
import numpy as np
import pytest

from surrokit.errors import ShapeError
from surrokit.surrogate.quality import FitQuality
from surrokit.surrogate.whitening import Whitening
from surrokit_networks.nodes import row_blocks
from surrokit_networks.regression.fitted import CAPABILITIES, FittedNetwork
from surrokit_networks.regression.polynomial import Polynomial

DIM, NODES = 3, 8
KINDS, TRENDS = (None, "additive", "rbf"), (False, True)


@pytest.fixture(params=[(k, t) for k in KINDS for t in TRENDS], ids=str)
def network(request, make_nodes):
    kind, has_trend = request.param
    rng = np.random.default_rng(1)
    positions = rng.standard_normal((50, DIM)) @ rng.standard_normal((DIM, DIM)) + 3.0
    whitening = Whitening.of(positions, np.ones(50))
    nodes, half = make_nodes(kind, DIM, NODES), rng.standard_normal((DIM, DIM))
    return FittedNetwork(
        dim=DIM,
        trend=Polynomial.of_whitened(rng.standard_normal(DIM), half + half.T, whitening)
        if has_trend
        else None,
        nodes=None if nodes is None else nodes.with_weights(rng.standard_normal(NODES), whitening),
        level=7.0,
        n_nodes=0 if nodes is None else NODES,
        n_points=50,
        ridge=1e-3,
        degrees=5.0,
        gcv_error=0.1,
    )


@pytest.fixture
def positions():
    q = np.random.default_rng(2).standard_normal((6, DIM)) + 3.0
    q.setflags(write=False)
    return q


def test_the_value_is_the_sum_of_its_parts(network, positions):
    expected = np.full(6, 7.0)
    for part in (network.nodes, network.trend):
        if part is not None:
            expected += part.value(positions)
    np.testing.assert_allclose(network.value(positions), expected, rtol=1e-12)


def test_many_positions_are_the_same_in_blocks(network, positions, monkeypatch):
    whole = network.value(positions), *network.value_and_gradient(positions)
    monkeypatch.setattr(row_blocks, "_CACHED", 4 * NODES + 1)  # four positions, then two
    parts = network.value(positions), *network.value_and_gradient(positions)
    for one, other in zip(parts, whole, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_gradient_and_hessian(network, positions, differences):
    gradient = network.gradient(positions)
    np.testing.assert_allclose(gradient, differences(network.value, positions), atol=1e-6)
    value, same = network.value_and_gradient(positions)
    np.testing.assert_allclose(value, network.value(positions), rtol=1e-13)
    np.testing.assert_allclose(same, gradient, rtol=1e-12, atol=1e-14)
    hessian = network.hessian(positions)
    np.testing.assert_allclose(hessian, differences(network.gradient, positions), atol=1e-6)
    np.testing.assert_allclose(hessian, hessian.transpose(0, 2, 1), atol=1e-12)


def test_contractions_of_the_derivative_of_the_hessian(network, positions, differences):
    rng = np.random.default_rng(3)
    half = rng.standard_normal((6, DIM, DIM))
    matrices, vectors = half + half.transpose(0, 2, 1), rng.standard_normal((6, DIM))
    derivative = differences(network.hessian, positions)
    np.testing.assert_allclose(
        network.hessian_trace_gradient(positions, matrices),
        np.einsum("nij,nijk->nk", matrices, derivative),
        atol=1e-5,
    )
    np.testing.assert_allclose(
        network.hessian_form_gradient(positions, vectors),
        np.einsum("ni,nj,nijk->nk", vectors, vectors, derivative),
        atol=1e-5,
    )


def test_every_array_is_new(network, positions):
    for method in ("value", "gradient", "hessian"):
        first = getattr(network, method)(positions)
        kept = first.copy()
        first += 1.0
        np.testing.assert_array_equal(getattr(network, method)(positions), kept)
    value, gradient = network.value_and_gradient(positions)
    value += 1.0
    gradient += 1.0
    np.testing.assert_allclose(network.gradient(positions), gradient - 1.0, atol=1e-12)


def test_no_positions_at_all(network):
    nothing = np.empty((0, DIM))
    assert network.value(nothing).shape == (0,)
    assert network.gradient(nothing).shape == (0, DIM)
    assert network.value_and_gradient(nothing)[1].shape == (0, DIM)
    assert network.hessian(nothing).shape == (0, DIM, DIM)


def test_what_is_contracted_must_fit(network, positions):
    with pytest.raises(ShapeError, match="matrices"):
        network.hessian_trace_gradient(positions, np.zeros((6, DIM)))
    with pytest.raises(ShapeError, match="vectors"):
        network.hessian_form_gradient(positions, np.zeros((5, DIM)))


def test_what_it_can_do(network):
    assert network.capabilities == CAPABILITIES
    assert network.quality is None


def test_repr_says_what_matters(network):
    text = repr(network)
    assert text.startswith(f"FittedNetwork(dim=3, n_nodes={network.n_nodes}, n_points=50, ridge=")
    assert text.endswith("degrees=5.0, gcv_error=0.1, held_out_variance=none)")
    quality = FitQuality(variance=0.0321, gradient_error=None, n_points=5)
    assert repr(attrs.evolve(network, quality=quality)).endswith("held_out_variance=0.0321)")
