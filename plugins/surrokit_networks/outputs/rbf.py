"""Many weighted sums of the same radial nodes."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.types import FloatArray
from surrokit_networks.nodes.outer import bilinear_forms
from surrokit_networks.nodes.rbf import RbfNodes
from surrokit_networks.nodes.row_blocks import row_blocks


@attrs.frozen(kw_only=True, eq=False)
class RbfOutputs:
    """sum_i V_im exp(-|z - c_i|^2 / (2 l_i^2)) for each output m.

    Parameters
    ----------
    centres : ndarray of shape (s, dim)
        c_i, in Fortran order (the faster one for the product that gives a gradient).
    pulls : ndarray of shape (dim, s)
        c_i / l_i^2 as columns.
    offsets : ndarray of shape (s,)
        -|c_i|^2 / (2 l_i^2).
    precisions : ndarray of shape (s,)
        1 / l_i^2.
    weights : ndarray of shape (s, m)
        V, in Fortran order, for the same reason as those of additive nodes.
    """

    centres: FloatArray
    pulls: FloatArray
    offsets: FloatArray
    precisions: FloatArray
    weights: FloatArray

    @classmethod
    def of(cls, nodes: RbfNodes, weights: FloatArray) -> RbfOutputs:
        """Return the sums of nodes with ``weights (s, m)``."""
        pulls = nodes.centres / nodes.square_widths[:, None]
        return cls(
            centres=np.array(nodes.centres, dtype=np.float64, order="F"),
            pulls=np.ascontiguousarray(pulls.T),
            offsets=-0.5 * np.einsum("sd,sd->s", pulls, nodes.centres),
            precisions=1.0 / nodes.square_widths,
            weights=np.array(weights, dtype=np.float64, order="F"),
        )

    def value(self, whitened: FloatArray) -> FloatArray:
        """Return the sums, shape (n, m), at whitened positions (n, dim)."""
        return np.asarray(self._heights(whitened) @ self.weights)

    def linearise(self, whitened: FloatArray) -> LinearisedRbf:
        """Return the sums and their derivatives at whitened positions (n, dim)."""
        heights = self._heights(whitened)
        outputs = heights @ self.weights
        heights *= self.precisions
        return LinearisedRbf(outputs=outputs, steepness=heights, whitened=whitened, sums=self)

    def _heights(self, whitened: FloatArray) -> FloatArray:
        exponents: FloatArray = whitened @ self.pulls
        halves = -0.5 * np.einsum("nd,nd->n", whitened, whitened)
        exponents += halves[:, None] * self.precisions
        exponents += self.offsets
        return np.exp(exponents, out=exponents)


@attrs.frozen(kw_only=True, eq=False)
class LinearisedRbf:
    """Sums of radial nodes at some positions.

    Parameters
    ----------
    outputs : ndarray of shape (n, m)
        The sums.
    steepness : ndarray of shape (n, s)
        exp(-|z - c_i|^2 / (2 l_i^2)) / l_i^2.
    whitened : ndarray of shape (n, dim)
        z.
    sums
        Which sums.
    """

    outputs: FloatArray
    steepness: FloatArray
    whitened: FloatArray
    sums: RbfOutputs

    def pull_back(self, by_outputs: FloatArray) -> FloatArray:
        """Return J^T b for each row b of ``by_outputs (n, m)``, shape (n, dim)."""
        by_nodes = by_outputs @ self.sums.weights.T
        by_nodes *= self.steepness
        return -self._offset_sum(by_nodes)

    def push(self, vectors: FloatArray) -> FloatArray:
        """Return J u for each row u of ``vectors (n, dim)``, shape (n, m)."""
        along = vectors @ self.sums.centres.T
        along -= np.einsum("nd,nd->n", vectors, self.whitened)[:, None]
        along *= self.steepness
        return np.asarray(along @ self.sums.weights)

    def slopes(self) -> FloatArray:
        """Return J^T, shape (n, dim, m)."""
        centres, weights = self.sums.centres, self.sums.weights
        size, dim = centres.shape
        n, n_outputs = self.outputs.shape
        slopes = np.empty((n, dim, n_outputs))
        for rows in row_blocks(n, dim * size):
            by_nodes = centres.T - self.whitened[rows, :, None]
            by_nodes *= self.steepness[rows, None, :]
            slopes[rows] = (by_nodes.reshape(-1, size) @ weights).reshape(-1, dim, n_outputs)
        return slopes

    def hessian_product(self, weights: FloatArray) -> FloatArray:
        """Return sum over m and i of W_mi d_i d_k f_m, shape (n, dim), for W (n, m, dim).

        With d = z - c_i and T_i = sum_m V_im W_m, node i gives phi_i / l_i^2 times
        (T_i . d) d / l_i^2 - T_i.
        """
        sums = self.sums
        forms = np.matmul(weights, self.whitened[:, :, None])[:, :, 0] @ sums.weights.T
        forms -= bilinear_forms(weights, sums.weights, sums.centres.T)
        forms *= self.steepness
        forms *= sums.precisions
        levels = self.steepness @ sums.weights
        product = self._offset_sum(forms)
        product -= np.einsum("nm,nmd->nd", levels, weights)
        return product

    def hessian_form(self, by_outputs: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return the same for W = b u^T, with rows b (n, m) and u (n, dim)."""
        sums = self.sums
        by_nodes = by_outputs @ sums.weights.T
        by_nodes *= self.steepness
        along = np.einsum("nd,nd->n", vectors, self.whitened)[:, None] - vectors @ sums.centres.T
        along *= by_nodes
        along *= sums.precisions
        form = self._offset_sum(along)
        form -= by_nodes.sum(axis=1)[:, None] * vectors
        return form

    def _offset_sum(self, factors: FloatArray) -> FloatArray:
        """Return sum_i factors_i (z - c_i), shape (n, dim)."""
        total = factors.sum(axis=1)[:, None] * self.whitened
        total -= factors @ self.sums.centres
        return np.asarray(total)
