"""Radial nodes exp(-|z - c|^2 / (2 l^2))."""

from __future__ import annotations

from functools import cached_property

import attrs
import numpy as np

from surrokit.surrogate.whitening import Whitening
from surrokit.types import FloatArray
from surrokit_networks.nodes.outer import quadratic_forms, weighted_outer


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
        pulls, offsets, halves = self._exponents()
        return _heights(whitened, pulls, offsets, halves)

    def with_weights(self, weights: FloatArray, whitening: Whitening) -> WeightedRbf:
        """Return the sum with ``weights (s,)``, as a function of positions not whitened."""
        pulls, offsets, halves = self._exponents()
        return WeightedRbf(
            whitening=whitening,
            centres=np.ascontiguousarray(self.centres.T).T,
            pulls=pulls,
            offsets=offsets,
            halves=halves,
            weights=weights.copy(),
        )

    def _exponents(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return c / l^2 (dim, s), -|c|^2 / (2 l^2) (s,) and -1 / (2 l^2) (s,)."""
        pulls = np.ascontiguousarray((self.centres / self.square_widths[:, None]).T)
        return pulls, -0.5 * np.einsum("ds,sd->s", pulls, self.centres), -0.5 / self.square_widths


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
        return _heights(whitened, self.pulls, self.offsets, self.halves)

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
        bends, levels = self._bends_and_level(whitened)
        cross = (bends @ self.centres)[:, :, None] * whitened[:, None, :]
        hessian = weighted_outer(bends, self.centres.T)
        hessian -= cross + cross.transpose(0, 2, 1)
        square = whitened[:, :, None] * whitened[:, None, :]
        hessian += bends.sum(axis=1)[:, None, None] * square
        hessian -= levels[:, None, None] * np.eye(len(self.pulls))
        inverse = self.whitening.inverse
        return np.asarray(inverse.T @ hessian @ inverse)

    def hessian_product(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return sum_i v_i phi_i [(d . u) d / l_i^4 - u / l_i^2], d = z - c_i, in q: (n, dim)."""
        whitened = self.whitening.apply(positions)
        inside = vectors @ self.whitening.inverse.T
        bends, levels = self._bends_and_level(whitened)
        bends *= np.einsum("nk,nk->n", whitened, inside)[:, None] - inside @ self.centres.T
        product = self._offset_sum(bends, whitened) - levels[:, None] * inside
        return np.asarray(product @ self.whitening.inverse)

    def hessian_diagonal(self, positions: FloatArray) -> FloatArray:
        """Return the diagonal of :meth:`hessian`, shape (n, dim)."""
        whitened, inverse = self.whitening.apply(positions), self.whitening.inverse
        bends, levels = self._bends_and_level(whitened)
        own, centres = whitened @ inverse, self.pulled_centres
        diagonal = bends @ np.square(centres)
        diagonal -= 2.0 * own * (bends @ centres)
        diagonal += bends.sum(axis=1)[:, None] * np.square(own)
        diagonal -= levels[:, None] * np.square(inverse).sum(axis=0)
        return np.asarray(diagonal)

    def hessian_diagonal_gradient(self, positions: FloatArray, weights: FloatArray) -> FloatArray:
        """Return sum_j c_j d_k G_jj, shape (n, dim): the trace below with A = diag(c)."""
        whitened, inverse = self.whitening.apply(positions), self.whitening.inverse
        own, centres = whitened @ inverse, self.pulled_centres
        forms = weights @ np.square(centres).T
        forms -= 2.0 * ((weights * own) @ centres.T)
        forms += np.einsum("nk,nk->n", weights, np.square(own))[:, None]
        bends = self._bends(whitened)
        pulled = (self._offset_sum(bends, whitened) @ inverse) * weights
        traces = weights @ np.square(inverse).sum(axis=0)
        gradient = 2.0 * (pulled @ inverse.T)
        gradient += self._stretch(bends, forms, traces, whitened)
        return np.asarray(gradient @ inverse)

    def hessian_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k G) for each k, shape (n, dim), with a symmetric A in each row.

        With d = z - c, and A in whitened coordinates, it is sum_i v_i phi_i / l_i^4 times
        (tr A - d^T A d / l_i^2) d + 2 A d, taken back to q.
        """
        inverse = self.whitening.inverse
        inside = inverse @ matrices @ inverse.T
        z = self.whitening.apply(positions)
        pulled = np.matmul(inside, z[:, :, None])[:, :, 0]
        forms = quadratic_forms(inside, self.centres.T)
        forms -= 2.0 * (pulled @ self.centres.T)
        forms += np.einsum("nk,nk->n", z, pulled)[:, None]
        bends = self._bends(z)
        gradient = 2.0 * np.matmul(inside, self._offset_sum(bends, z)[:, :, None])[:, :, 0]
        gradient += self._stretch(bends, forms, np.einsum("nkk->n", inside), z)
        return np.asarray(gradient @ inverse)

    def hessian_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return u^T d_k G u for each k, shape (n, dim): the trace above with A = u u^T."""
        inverse = self.whitening.inverse
        inside = vectors @ inverse.T
        z = self.whitening.apply(positions)
        along = np.einsum("nk,nk->n", z, inside)[:, None] - inside @ self.centres.T
        bends = self._bends(z)
        gradient = 2.0 * np.einsum("ns,ns->n", bends, along)[:, None] * inside
        lengths = np.einsum("nk,nk->n", inside, inside)
        gradient += self._stretch(bends, np.square(along, out=along), lengths, z)
        return np.asarray(gradient @ inverse)

    @cached_property
    def pulled_centres(self) -> FloatArray:
        """Rows c_i^T dz/dq, shape (s, dim), for diagonals: made when first asked for."""
        return np.asarray(self.centres @ self.whitening.inverse)

    def _bends_and_level(self, whitened: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return v_i phi_i / l_i^4, shape (n, s), and sum_i v_i phi_i / l_i^2, shape (n,)."""
        bends = self.heights(whitened)
        bends *= -2.0 * self.halves * self.weights
        levels = bends.sum(axis=1)
        bends *= -2.0 * self.halves
        return bends, levels

    def _bends(self, whitened: FloatArray) -> FloatArray:
        """Return v_i phi_i / l_i^4, shape (n, s)."""
        bends = self.heights(whitened)
        bends *= 4.0 * self.weights * self.halves**2
        return bends

    def _stretch(
        self, bends: FloatArray, forms: FloatArray, traces: FloatArray, whitened: FloatArray
    ) -> FloatArray:
        """Return sum_i bends_i (tr A - d^T A d / l_i^2) d, shape (n, dim), and spoil the forms."""
        forms *= 2.0 * self.halves
        forms += traces[:, None]
        forms *= bends
        return self._offset_sum(forms, whitened)

    def _offset_sum(self, factors: FloatArray, whitened: FloatArray) -> FloatArray:
        """Return sum_i factors_i (z - c_i), shape (n, dim)."""
        return np.asarray(factors.sum(axis=1)[:, None] * whitened - factors @ self.centres)

    def _gradient(self, heights: FloatArray, whitened: FloatArray) -> FloatArray:
        # sum_i v_i phi_i (c_i - z) / l_i^2, back to q.
        heights *= 2.0 * self.halves * self.weights
        return np.asarray(self._offset_sum(heights, whitened) @ self.whitening.inverse)


def _heights(
    whitened: FloatArray, pulls: FloatArray, offsets: FloatArray, halves: FloatArray
) -> FloatArray:
    exponents: FloatArray = whitened @ pulls
    exponents += np.einsum("nd,nd->n", whitened, whitened)[:, None] * halves
    exponents += offsets
    return np.exp(exponents, out=exponents)
