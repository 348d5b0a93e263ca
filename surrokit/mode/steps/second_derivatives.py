"""Second derivatives for the search for a mode, or the matrices that stand for them."""

from __future__ import annotations

import numpy as np

from surrokit import capabilities as can
from surrokit.contracts.forward import offers_curvatures, with_forward
from surrokit.contracts.matrices import with_hessian, with_metric
from surrokit.contracts.potential import Potential
from surrokit.errors import EvaluationError
from surrokit.targets.curvature import gauss_newton
from surrokit.targets.outputs import gradient_of_energy
from surrokit.types import FloatArray

LARGEST_HESSIAN = 500
"""Largest dimension in which a whole matrix of second derivatives is evaluated."""

ADJOINT_FROM = 32
"""Least dimension in which a search goes by the adjoint where a forward map offers that as well.

With a factor kept, a Jacobian takes a solve for each parameter and an adjoint one: in 64 dimensions
eight gradients have been measured for a Jacobian, and searches by Jacobians take a third of the
calls."""

_FLAT = 1e-10  # least curvature that scales a direction, as a part of the largest


def matrix_of(potential: Potential) -> str | None:
    """Return the name of the matrix to search with, ``gauss-newton`` or a capability, or None."""
    offered = potential.capabilities
    if goes_by_adjoint(potential):
        return None
    if has_gauss_newton(potential):
        return "gauss-newton"
    if potential.dim > LARGEST_HESSIAN:
        return None
    return next((name for name in (can.HESSIAN, can.METRIC) if name in offered), None)


def has_gauss_newton(potential: Potential) -> bool:
    """Return whether a Jacobian gives the Gauss-Newton matrix."""
    offered = potential.capabilities >= {can.FORWARD, can.JACOBIAN}
    return offered and offers_curvatures(with_forward(potential).energy)


def goes_by_adjoint(potential: Potential) -> bool:
    """Return whether Jacobians are too dear for each step of a search, where one could be had."""
    adjoint = can.VJP in potential.capabilities and potential.dim >= ADJOINT_FROM
    return adjoint and has_gauss_newton(potential)


def second_derivatives(name: str | None, potential: Potential, q: FloatArray) -> FloatArray:
    """Return the Hessian or the metric at one position; NaN where it cannot be evaluated."""
    try:
        if name == can.HESSIAN:
            return np.asarray(with_hessian(potential).hessian(q[None])[0])
        return np.asarray(with_metric(potential).metric(q[None])[0])
    except EvaluationError:
        return np.full((len(q), len(q)), np.nan)


def gauss_newton_at(potential: Potential, q: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    """Return value, gradient and Gauss-Newton matrix from one Jacobian."""
    target = with_forward(potential)
    outputs, jacobian = target.forward_and_jacobian(q[None])
    values, gradients = gradient_of_energy(target.energy, outputs, jacobian, q[None])
    return (
        float(values[0]),
        gradients[0],
        gauss_newton(target.energy, outputs, jacobian, q[None])[0],
    )


def newton_decrement(hessian: FloatArray, gradient: FloatArray) -> float | None:
    """Return g^T H^-1 g / 2; None where H is not positive definite."""
    try:
        half = np.linalg.solve(np.linalg.cholesky(hessian), gradient)
    except np.linalg.LinAlgError:
        return None
    return 0.5 * float(half @ half)


def scaling(matrix: FloatArray) -> FloatArray:
    """Return T with T^T |matrix| T = identity; the scale of flat directions is bounded."""
    eigenvalues, vectors = np.linalg.eigh(matrix)
    sizes = np.abs(eigenvalues)
    largest = float(sizes.max())
    if largest == 0.0:
        return np.eye(len(matrix))
    return np.asarray(vectors / np.sqrt(np.maximum(sizes, _FLAT * largest)))
