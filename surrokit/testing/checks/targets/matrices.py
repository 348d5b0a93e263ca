"""Checks of products, diagonals and derivatives of a potential's matrices."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from surrokit import capabilities as can
from surrokit.testing.measures.demands import demand, demand_close, demand_equal, demand_shape
from surrokit.testing.measures.differences import difference
from surrokit.testing.measures.evaluating import (
    arguments,
    demand_derivative,
    finite_positions,
    has,
    place,
    room,
)
from surrokit.testing.results import Check, Factory
from surrokit.types import FloatArray


def check_hessian_derivative(make: Factory) -> None:
    """Both contractions of the Hessian's derivative agree with differences and each other."""
    _demand_contractions(make(), "hessian")


def check_metric_derivative(make: Factory) -> None:
    """Both contractions of the metric's derivative agree with differences and each other."""
    _demand_contractions(make(), "metric")


def _demand_contractions(potential: Any, matrix: str) -> None:
    positions = finite_positions(potential)
    of_trace, of_form = f"{matrix}_trace_gradient", f"{matrix}_form_gradient"
    _, matrices = arguments(potential, of_trace, positions)
    _, vectors = arguments(potential, of_form, positions)
    outer = vectors[:, :, None] * vectors[:, None, :]
    trace = getattr(potential, of_trace)(positions, matrices)
    form = getattr(potential, of_form)(positions, vectors)
    for found, weights, what in ((trace, matrices, "tr(A d_k G)"), (form, outer, "u^T d_k G u")):
        weighed = partial(_weigh, getattr(potential, matrix), weights)
        demand_derivative(found, weighed, positions, f"{what} against differences of the {matrix}")
    demand_close(
        getattr(potential, of_trace)(positions, outer),
        form,
        f"tr(A d_k G) with A = u u^T against u^T d_k G u, G the {matrix}",
        atol=1e-9 * (1.0 + np.abs(form).max()),
    )


def _weigh(matrix: Any, weights: FloatArray, positions: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("nij,nij->n", weights, matrix(positions)))


def check_hessian_product(make: Factory) -> None:
    """A product with the Hessian agrees with the matrix, or with differences of the gradient."""
    potential, positions = place(make)
    _, vectors = arguments(potential, "hessian_product", positions)
    hessian, error = _hessian(potential, positions)
    expected = np.einsum("nij,nj->ni", hessian, vectors)
    demand_close(
        potential.hessian_product(positions, vectors),
        expected,
        "product with the Hessian against that of the matrix",
        rtol=1e-6,
        atol=room(error.sum(axis=2), expected),
    )


def check_hessian_diagonal(make: Factory) -> None:
    """The diagonal is that of the Hessian, and its gradient agrees with differences."""
    potential, positions = place(make)
    diagonal = potential.hessian_diagonal(positions)
    hessian, error = _hessian(potential, positions)
    expected = np.einsum("nkk->nk", hessian)
    demand_close(
        diagonal,
        expected,
        "diagonal of the Hessian against that of the matrix",
        rtol=1e-6,
        atol=room(np.einsum("nkk->nk", error), expected),
    )
    _, weights = arguments(potential, "hessian_diagonal_gradient", positions)
    demand_derivative(
        potential.hessian_diagonal_gradient(positions, weights),
        lambda q: np.einsum("nk,nk->n", weights, potential.hessian_diagonal(q)),
        positions,
        "sum_j c_j d_k G_jj against differences of the diagonal",
    )


def check_convex(make: Factory) -> None:
    """The Hessian is positive definite, at the positions and farther out."""
    potential = make()
    near = finite_positions(potential)
    centre = near.mean(axis=0)
    for scale in (1.0, 3.0):
        positions = centre + scale * (near - centre)
        positions = positions[np.isfinite(potential.value(positions))]
        hessian, _ = _hessian(potential, positions)
        least = np.linalg.eigvalsh(hessian)[:, 0] if len(hessian) else np.empty(0)
        demand(
            (least > 0).all(),
            f"capability 'convex' says that the Hessian is positive definite everywhere, but its "
            f"least eigenvalue is {least.min(initial=np.inf):.3g} at one of {len(positions)} "
            "positions; declare it only where that is known",
        )


def _hessian(potential: Any, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the Hessian and its error, from differences if the Hessian is not offered."""
    if can.HESSIAN in potential.capabilities:
        hessian = potential.hessian(positions)
        return hessian, np.zeros_like(hessian)
    return difference(lambda q: potential.value_and_gradient(q)[1], positions)


def check_metric_product(make: Factory) -> None:
    """A product with the metric agrees with the matrix."""
    potential, positions = place(make)
    _, vectors = arguments(potential, "metric_product", positions)
    expected = np.einsum("nij,nj->ni", potential.metric(positions), vectors)
    demand_close(
        potential.metric_product(positions, vectors),
        expected,
        "product with the metric against that of the matrix",
        atol=1e-9 * (1.0 + np.abs(expected).max()),
    )


def check_gaussian(make: Factory) -> None:
    """Mean and factor are those of the normal distribution whose potential this is."""
    potential = make()
    dim = potential.dim
    demand_shape(potential.mean, (dim,), "mean")
    demand_shape(potential.factor, (dim, dim), "factor")
    demand_equal(np.triu(potential.factor, 1), np.zeros((dim, dim)), "factor above its diagonal")
    positions = finite_positions(potential)
    with np.errstate(all="ignore"):
        white = np.linalg.solve(potential.factor, (positions - potential.mean).T)
        expected = 0.5 * np.square(white).sum(axis=0)
    values = potential.value(positions)
    demand_close(
        values - values[0],
        expected - expected[0],
        "differences of values against |L^-1 (q - mean)|^2 / 2",
        rtol=1e-7,
        atol=1e-8 * (1.0 + np.abs(expected).max()),
    )


CHECKS: tuple[Check, ...] = (
    Check(check_hessian_derivative, applies=has(can.HESSIAN_DERIVATIVE)),
    Check(check_hessian_product, applies=has(can.HESSIAN_PRODUCT, can.GRADIENT)),
    Check(check_hessian_diagonal, applies=has(can.HESSIAN_DIAGONAL, can.GRADIENT)),
    Check(check_convex, applies=has(can.CONVEX, can.GRADIENT)),
    Check(check_gaussian, applies=has(can.GAUSSIAN)),
    Check(check_metric_derivative, applies=has(can.METRIC_DERIVATIVE)),
    Check(check_metric_product, applies=has(can.METRIC_PRODUCT)),
)
"""For potentials whose matrices have products, diagonals or derivatives."""
