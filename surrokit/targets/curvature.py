"""Curvatures of energies, and the Gauss-Newton matrices that are made of them.

In G = J^T C J + R, J is the Jacobian of the map F, and C and R are the energy's curvatures in the
outputs and in the positions. With W = C J A, for a symmetric A,

    tr(A d_k G) = 2 sum_mi W_mi d_i d_k F_m + sum (J A J^T) * d_k C + tr(A d_k R),

so second derivatives of the map enter in one contraction only.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
import numpy as np

from surrokit.contracts.forward import (
    Energy,
    ForwardDerivatives,
    with_curvature_derivatives,
    with_curvatures,
)
from surrokit.coordinates.transforms import products
from surrokit.types import FloatArray


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
        q.

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


def gauss_newton_product(
    energy: Energy, at: ForwardDerivatives, positions: FloatArray, vectors: FloatArray
) -> FloatArray:
    """Return G u, shape (n, dim), for ``positions (n, dim)`` and u in ``vectors (n, dim)``.

    G itself is not formed.

    Raises
    ------
    CapabilityError
        If the energy does not offer curvatures.
    """
    by_outputs, by_positions = with_curvatures(energy).curvatures(at.outputs, positions)
    inside = at.pull_back(_curved(by_outputs, at.push(vectors)))
    return inside + products(by_positions, vectors)


def gauss_newton_trace_gradient(
    energy: Energy, at: ForwardDerivatives, positions: FloatArray, matrices: FloatArray
) -> FloatArray:
    """Return tr(A d_k G), shape (n, dim), for symmetric A in ``matrices (n, dim, dim)``.

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
    return total + at.pull_back(in_outputs) + in_positions


def gauss_newton_form_gradient(
    energy: Energy, at: ForwardDerivatives, positions: FloatArray, vectors: FloatArray
) -> FloatArray:
    """Return u^T d_k G u, shape (n, dim), for u in ``vectors (n, dim)``.

    That is the trace with A = u u^T, at less cost.

    Raises
    ------
    CapabilityError
        If the energy does not offer derivatives of its curvatures.
    """
    curved = with_curvature_derivatives(energy)
    by_outputs, _ = curved.curvatures(at.outputs, positions)
    along = at.push(vectors)
    weights = np.square(along) if by_outputs.ndim == 2 else along[:, :, None] * along[:, None, :]
    in_outputs, in_positions = curved.curvature_gradients(
        at.outputs, positions, weights, vectors[:, :, None] * vectors[:, None, :]
    )
    total = 2.0 * at.hessian_form(_curved(by_outputs, along), vectors)
    return total + at.pull_back(in_outputs) + in_positions


def _curved(by_outputs: FloatArray, along: FloatArray) -> FloatArray:
    """Return C v, shape (n, m), with C by its diagonals or in full."""
    return by_outputs * along if by_outputs.ndim == 2 else products(by_outputs, along)


@attrs.frozen(kw_only=True, eq=False)
class KnownDerivatives:
    """Derivatives of a forward map, from its Jacobian and products with its second derivatives.

    Parameters
    ----------
    outputs : ndarray of shape (n, m)
        Outputs of the map.
    known_jacobian : ndarray of shape (n, m, dim)
        Their derivatives.
    product
        From W, shape (n, m, dim), to sum over m and i of W_mi d_i d_k F_m, shape (n, dim).
    """

    outputs: FloatArray
    known_jacobian: FloatArray
    product: Callable[[FloatArray], FloatArray]

    def push(self, vectors: FloatArray) -> FloatArray:
        """Return J u, shape (n, m)."""
        return np.asarray(np.einsum("nmk,nk->nm", self.known_jacobian, vectors))

    def pull_back(self, by_outputs: FloatArray) -> FloatArray:
        """Return J^T b, shape (n, dim)."""
        return np.asarray(np.einsum("nm,nmk->nk", by_outputs, self.known_jacobian))

    def jacobian(self) -> FloatArray:
        """Return J, shape (n, m, dim)."""
        return self.known_jacobian

    def hessian_product(self, weights: FloatArray) -> FloatArray:
        """Return sum over m and i of W_mi d_i d_k F_m, shape (n, dim)."""
        return self.product(weights)

    def hessian_form(self, by_outputs: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return :meth:`hessian_product` of W = b u^T, shape (n, dim)."""
        return self.product(by_outputs[:, :, None] * vectors[:, None, :])
