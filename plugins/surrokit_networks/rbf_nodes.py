"""Radial nodes exp(-|z - c|^2 / (2 l^2))."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.types import FloatArray
from surrokit_networks.outer import weighted_outer
from surrokit_networks.whitening import Whitening


@attrs.frozen(kw_only=True, eq=False)
class RbfNodes:
    """Nodes exp(-|z - c_i|^2 / (2 l_i^2)), the radial kind of section 3.1 of the paper.

    Parameters
    ----------
    centres : ndarray of shape (s, dim)
        c_i.
    square_widths : ndarray of shape (s,)
        l_i^2.
    """

    centres: FloatArray
    square_widths: FloatArray

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return int(self.centres.shape[1])

    def __len__(self) -> int:
        return len(self.square_widths)

    def features(self, whitened: FloatArray) -> FloatArray:
        """Return exp(-|z - c_i|^2 / (2 l_i^2)), shape (n, s), at whitened positions (n, dim)."""
        ones = np.ones(len(self))
        return self.weighted(ones, Whitening.identity(self.dim)).heights(whitened)

    def weighted(self, weights: FloatArray, whitening: Whitening) -> WeightedRbf:
        """Return the sum with ``weights (s,)``, as a function of positions not whitened."""
        pulls = self.centres / self.square_widths[:, None]
        return WeightedRbf(
            whitening=whitening,
            centres=np.ascontiguousarray(self.centres.T).T,
            pulls=np.ascontiguousarray(pulls.T),
            offsets=-0.5 * np.einsum("sd,sd->s", pulls, self.centres),
            halves=-0.5 / self.square_widths,
            weights=weights.copy(),
        )


@attrs.frozen(kw_only=True, eq=False)
class WeightedRbf:
    """sum_i v_i phi_i with phi_i = exp(-|z - c_i|^2 / (2 l_i^2)) and z the whitened position.

    Distances come from one matrix product: -|z - c|^2 / (2 l^2) = z . c / l^2 - |z|^2 / (2 l^2)
    - |c|^2 / (2 l^2).

    Parameters
    ----------
    whitening
        From q to z.
    centres : ndarray of shape (s, dim)
        c_i, in Fortran order (the faster one for the product that gives a gradient).
    pulls : ndarray of shape (dim, s)
        c_i / l_i^2 as columns.
    offsets : ndarray of shape (s,)
        -|c_i|^2 / (2 l_i^2).
    halves : ndarray of shape (s,)
        -1 / (2 l_i^2).
    weights : ndarray of shape (s,)
        v_i.
    """

    whitening: Whitening
    centres: FloatArray
    pulls: FloatArray
    offsets: FloatArray
    halves: FloatArray
    weights: FloatArray

    def heights(self, whitened: FloatArray) -> FloatArray:
        """Return phi_i, shape (n, s), at whitened positions (n, dim)."""
        exponents: FloatArray = whitened @ self.pulls
        exponents += np.einsum("nd,nd->n", whitened, whitened)[:, None] * self.halves
        exponents += self.offsets
        return np.exp(exponents, out=exponents)

    def value(self, positions: FloatArray) -> FloatArray:
        """Return the sum, shape (n,), at positions of shape (n, dim)."""
        total: FloatArray = self.heights(self.whitening.apply(positions)) @ self.weights
        return total

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient, shape (n, dim)."""
        whitened = self.whitening.apply(positions)
        return self._gradient(self.heights(whitened), whitened)

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the sum, shape (n,), and its gradient, shape (n, dim)."""
        whitened = self.whitening.apply(positions)
        heights = self.heights(whitened)
        return heights @ self.weights, self._gradient(heights, whitened)

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return sum_i v_i phi_i [(z - c_i)(z - c_i)^T / l_i^4 - I / l_i^2], in q: (n, dim, dim).

        The outer products are expanded, so that only the centres' own need a batch of products.
        """
        whitened = self.whitening.apply(positions)
        bends = self.heights(whitened) * (-2.0 * self.halves * self.weights)
        levels = bends.sum(axis=1)
        bends *= -2.0 * self.halves
        cross = (bends @ self.centres)[:, :, None] * whitened[:, None, :]
        hessian = weighted_outer(bends, self.centres.T)
        hessian -= cross + cross.transpose(0, 2, 1)
        square = whitened[:, :, None] * whitened[:, None, :]
        hessian += bends.sum(axis=1)[:, None, None] * square
        hessian -= levels[:, None, None] * np.eye(len(self.pulls))
        inverse = self.whitening.inverse
        return np.asarray(inverse.T @ hessian @ inverse)

    def _gradient(self, heights: FloatArray, whitened: FloatArray) -> FloatArray:
        # sum_i v_i phi_i (c_i - z) / l_i^2, back to q.
        heights *= -2.0 * self.halves * self.weights
        gradient = heights @ self.centres
        gradient -= heights.sum(axis=1)[:, None] * whitened
        return np.asarray(gradient @ self.whitening.inverse)
