"""Closed-form derivatives of the mean against differences of what they are derivatives of."""

import numpy as np
import pytest

from surrokit_gp.fitted import Expansion
from surrokit_gp.trend import Polynomial

DIM, CENTRES, POSITIONS = 3, 8, 5


def expansion_of(with_gradients):
    rng = np.random.default_rng(1)
    root = rng.standard_normal((DIM, DIM))
    return Expansion(
        origin=rng.standard_normal(DIM),
        scaling=rng.standard_normal((DIM, DIM)),
        nodes=rng.standard_normal((CENTRES, DIM)),
        levels=rng.standard_normal(CENTRES),
        slopes=rng.standard_normal((CENTRES, DIM)) if with_gradients else None,
        polynomial=Polynomial(level=1.5, slope=rng.standard_normal(DIM), matrix=root + root.T),
    )


@pytest.fixture(params=[False, True], ids=["values", "with-gradients"])
def expansion(request):
    return expansion_of(request.param)


@pytest.fixture
def positions(rng):
    return rng.standard_normal((POSITIONS, DIM))


def test_in_plain_words(expansion, positions):
    for n, position in enumerate(positions):
        away = position - expansion.origin
        total = expansion.polynomial.level + expansion.polynomial.slope @ away
        total += 0.5 * away @ expansion.polynomial.matrix @ away
        for i, centre in enumerate(expansion.nodes):
            d = away @ expansion.scaling - centre
            weight = expansion.levels[i]
            if expansion.slopes is not None:
                weight += expansion.slopes[i] @ d
            total += weight * np.exp(-0.5 * d @ d)
        assert expansion.value(positions)[n] == pytest.approx(total)


def test_gradient(expansion, positions, differences):
    value, gradient = expansion.value_and_gradient(positions)
    np.testing.assert_array_equal(value, expansion.value(positions))
    np.testing.assert_array_equal(gradient, expansion.gradient(positions))
    np.testing.assert_allclose(gradient, differences(expansion.value, positions), atol=1e-7)


def test_hessian(expansion, positions, differences):
    hessian = expansion.hessian(positions)
    np.testing.assert_allclose(hessian, differences(expansion.gradient, positions), atol=1e-7)
    np.testing.assert_allclose(hessian, hessian.transpose(0, 2, 1), atol=1e-12)


def test_contractions_of_the_third_derivatives(expansion, positions, differences, rng):
    third = differences(expansion.hessian, positions)
    vectors = rng.standard_normal((POSITIONS, DIM))
    root = rng.standard_normal((POSITIONS, DIM, DIM))
    matrices = root + root.transpose(0, 2, 1)
    np.testing.assert_allclose(
        expansion.hessian_trace_gradient(positions, matrices),
        np.einsum("nij,nijk->nk", matrices, third),
        atol=1e-6,
    )
    form = expansion.hessian_form_gradient(positions, vectors)
    np.testing.assert_allclose(
        form, np.einsum("ni,nj,nijk->nk", vectors, vectors, third), atol=1e-6
    )
    outer = vectors[:, :, None] * vectors[:, None, :]
    np.testing.assert_allclose(
        expansion.hessian_trace_gradient(positions, outer), form, rtol=1e-9, atol=1e-9
    )
