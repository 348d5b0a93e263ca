"""Curvatures of energies, and the Gauss-Newton matrices that are made of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from surrokit.derivative_protocols import CurvedDerivativeEnergy
from surrokit.errors import CapabilityError
from surrokit.protocols import CurvedEnergy, Energy
from surrokit.rowwise import mapped
from surrokit.types import Capabilities, FloatArray

CURVATURES = "curvatures"
"""What an energy names in its ``capabilities``: ``curvatures(outputs, positions)``."""


CURVATURE_DERIVATIVES = "curvature-derivatives"
"""What an energy names beside it if it has ``curvature_gradients`` as well."""


def energy_capabilities(energy: Energy) -> Capabilities:
    """Return what an energy can do beyond its gradients; nothing if it does not say.

    Parameters
    ----------
    energy
        Any energy; the attribute ``capabilities`` is optional.
    """
    offered: Capabilities = getattr(energy, "capabilities", frozenset())
    return offered


def offers_curvatures(energy: Energy) -> bool:
    """Return whether Gauss-Newton matrices can be made with an energy."""
    return CURVATURES in energy_capabilities(energy)


def with_curvatures(energy: Energy) -> CurvedEnergy:
    """Return the energy, typed as one that gives its curvatures.

    Raises
    ------
    CapabilityError
        If it does not.
    """
    if not offers_curvatures(energy):
        raise CapabilityError(
            f"a Gauss-Newton matrix needs an energy with 'curvatures' among its capabilities, but "
            f"{type(energy).__name__} does not offer them; give it a method curvatures(outputs, "
            "positions), or, for data with noise_sd, a prior that has a metric"
        )
    return cast(CurvedEnergy, energy)


def offers_curvature_derivatives(energy: Energy) -> bool:
    """Return whether an energy has curvatures, and their derivatives as well."""
    return {CURVATURES, CURVATURE_DERIVATIVES} <= energy_capabilities(energy)


def with_curvature_derivatives(energy: Energy) -> CurvedDerivativeEnergy:
    """Return the energy, typed as one that differentiates its curvatures.

    Raises
    ------
    CapabilityError
        If it does not.
    """
    if not offers_curvature_derivatives(energy):
        raise CapabilityError(
            f"the derivative of a Gauss-Newton matrix needs an energy with 'curvatures' and "
            f"'curvature-derivatives' among its capabilities, but {type(energy).__name__} does not "
            "offer them; give it a method curvature_gradients, or, for data with noise_sd, a prior "
            "that has metric-derivative"
        )
    return cast(CurvedDerivativeEnergy, energy)


def gauss_newton(
    energy: Energy, outputs: FloatArray, jacobian: FloatArray, positions: FloatArray
) -> FloatArray:
    """Return J^T C J + R, the Gauss-Newton matrix of U(q) = energy(forward(q), q).

    C and R are the energy's curvatures in the outputs and in the positions.

    Parameters
    ----------
    energy
        One that offers curvatures.
    outputs : ndarray of shape (n, m)
        Outputs of the forward map.
    jacobian : ndarray of shape (n, m, dim)
        J, their derivatives.
    positions : ndarray of shape (n, dim)
        Where.

    Returns
    -------
    ndarray of shape (n, dim, dim)
        Symmetric, without negative eigenvalues.

    Raises
    ------
    CapabilityError
        If the energy does not offer curvatures.
    """
    by_outputs, by_positions = with_curvatures(energy).curvatures(outputs, positions)
    diagonal = by_outputs.ndim == 2
    weighted = by_outputs[:, :, None] * jacobian if diagonal else by_outputs @ jacobian
    matrices = np.asarray(jacobian.transpose(0, 2, 1) @ weighted)
    # symmetric up to rounding only; a Cholesky factor reads one half, a product both
    return 0.5 * (matrices + matrices.transpose(0, 2, 1)) + by_positions


def metric_of_outputs(
    energy: Energy,
    forward_and_jacobian: Callable[[], tuple[FloatArray, FloatArray]],
    positions: FloatArray,
) -> FloatArray:
    """Return the Gauss-Newton matrix, shape (n, dim, dim), also when the map fails at some rows.

    Raises
    ------
    EvaluationError
        If the map raises one; it then carries the matrices where the map succeeded.
    """

    def matrices(outputs: FloatArray, jacobian: FloatArray) -> tuple[FloatArray]:
        return (gauss_newton(energy, outputs, jacobian, positions),)

    return mapped(forward_and_jacobian, matrices, len(positions))[0]
