"""The Gauss-Newton matrix G = J^T C J + R of a forward map under an energy, and its derivative.

J is the Jacobian of the map F, and C and R are the energy's curvatures in the outputs and in the
positions. With W = C J A, for a symmetric A,

    tr(A d_k G) = 2 sum_mi W_mi d_i d_k F_m + sum (J A J^T) * d_k C + tr(A d_k R),

so second derivatives of the map enter in one contraction only.
"""

from __future__ import annotations

import numpy as np

from surrokit.chain_rule import products
from surrokit.curvatures import with_curvature_derivatives, with_curvatures
from surrokit.forward_derivatives import ForwardDerivatives
from surrokit.protocols import Energy
from surrokit.types import FloatArray


def gauss_newton_product(
    energy: Energy, at: ForwardDerivatives, positions: FloatArray, vectors: FloatArray
) -> FloatArray:
    """Return G u for each position, without G.

    Parameters
    ----------
    energy
        One that offers curvatures.
    at
        The forward map at the positions.
    positions : ndarray of shape (n, dim)
        Where.
    vectors : ndarray of shape (n, dim)
        u.

    Returns
    -------
    ndarray of shape (n, dim)
        The products.

    Raises
    ------
    CapabilityError
        If the energy does not offer curvatures.
    """
    by_outputs, by_positions = with_curvatures(energy).curvatures(at.outputs, positions)
    inside = at.pulled_back(_curved(by_outputs, at.pushed(vectors)))
    return inside + products(by_positions, vectors)


def gauss_newton_trace_gradient(
    energy: Energy, at: ForwardDerivatives, positions: FloatArray, matrices: FloatArray
) -> FloatArray:
    """Return tr(A d_k G) for each k and position.

    Parameters
    ----------
    energy
        One that offers curvatures with their derivatives.
    at
        The forward map at the positions.
    positions : ndarray of shape (n, dim)
        Where.
    matrices : ndarray of shape (n, dim, dim)
        A, symmetric.

    Returns
    -------
    ndarray of shape (n, dim)
        The traces.

    Raises
    ------
    CapabilityError
        If the energy does not offer derivatives of its curvatures.
    """
    curved = with_curvature_derivatives(energy)
    by_outputs, _ = curved.curvatures(at.outputs, positions)
    jacobian = at.jacobian()
    turned = jacobian @ matrices
    diagonal = by_outputs.ndim == 2
    weights = (
        np.einsum("nmk,nmk->nm", turned, jacobian)
        if diagonal
        else turned @ jacobian.transpose(0, 2, 1)
    )
    in_outputs, in_positions = curved.curvature_gradients(at.outputs, positions, weights, matrices)
    bent = by_outputs[:, :, None] * turned if diagonal else by_outputs @ turned
    total = 2.0 * at.hessian_product(bent)
    return total + at.pulled_back(in_outputs) + in_positions


def gauss_newton_form_gradient(
    energy: Energy, at: ForwardDerivatives, positions: FloatArray, vectors: FloatArray
) -> FloatArray:
    """Return u^T d_k G u for each k and position: the trace with A = u u^T, at less cost.

    Parameters
    ----------
    energy, at, positions
        As in :func:`gauss_newton_trace_gradient`.
    vectors : ndarray of shape (n, dim)
        u.

    Returns
    -------
    ndarray of shape (n, dim)
        The forms.

    Raises
    ------
    CapabilityError
        If the energy does not offer derivatives of its curvatures.
    """
    curved = with_curvature_derivatives(energy)
    by_outputs, _ = curved.curvatures(at.outputs, positions)
    along = at.pushed(vectors)
    weights = np.square(along) if by_outputs.ndim == 2 else along[:, :, None] * along[:, None, :]
    in_outputs, in_positions = curved.curvature_gradients(
        at.outputs, positions, weights, vectors[:, :, None] * vectors[:, None, :]
    )
    total = 2.0 * at.hessian_form(_curved(by_outputs, along), vectors)
    return total + at.pulled_back(in_outputs) + in_positions


def _curved(by_outputs: FloatArray, along: FloatArray) -> FloatArray:
    """Return C v, shape (n, m), with C by its diagonals or in full."""
    return by_outputs * along if by_outputs.ndim == 2 else products(by_outputs, along)
