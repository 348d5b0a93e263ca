"""The mean of a process as a function of positions: radial terms and a polynomial."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.types import FloatArray
from surrokit_gp.data.mean_functions import Polynomial

_SCRATCH = 2_000_000
"""Numbers of scratch that derivatives of higher order may take at a time."""


@attrs.frozen(kw_only=True, eq=False)
class Expansion:
    """V(q) = sum_i e_i lambda_i + level + slope . r + r^T matrix r / 2.

    Here r = q - origin, x = r T, e_i = exp(-|x - c_i|^2 / 2) and lambda_i = v_i + a_i . (x - c_i),
    with a_i = 0 where no derivative was learnt from.

    The exponent is x . c - |x|^2 / 2 - |c|^2 / 2, so one product of (r, 1, -|x|^2) with a table
    gives all exponents, and one of e with another both sum_i e_i v_i and sum_i e_i v_i c_i. What
    is left to do is of the size of the positions. Everything linear is folded into the tables.

    Parameters
    ----------
    origin : ndarray of shape (dim,)
        Of r.
    scaling : ndarray of shape (dim, dim)
        T.
    centres : ndarray of shape (M, dim)
        c_i.
    weights : ndarray of shape (M,)
        v_i.
    slope_weights : ndarray of shape (M, dim) or None
        a_i.
    polynomial
        The rest, as a function of r.
    """

    origin: FloatArray
    scaling: FloatArray
    centres: FloatArray
    weights: FloatArray
    slope_weights: FloatArray | None
    polynomial: Polynomial
    _pulls: FloatArray = attrs.field(init=False, repr=False)
    _heights: FloatArray = attrs.field(init=False, repr=False)
    _sums: FloatArray = attrs.field(init=False, repr=False)
    _slopes: tuple[FloatArray, FloatArray] | None = attrs.field(init=False, repr=False)

    @_pulls.default
    def _make_pulls(self) -> FloatArray:
        dim, rest = self.dim, self.polynomial
        table = np.zeros((dim + 1, 2 * dim + 1))
        table[:dim, :dim] = -self.scaling @ self.scaling.T
        table[:dim, dim:-1] = rest.matrix
        table[dim, dim:-1] = rest.slope
        table[:dim, -1] = rest.slope
        table[dim, -1] = 2.0 * rest.level
        return table

    @_heights.default
    def _make_heights(self) -> FloatArray:
        offsets = -0.5 * np.einsum("md,md->m", self.centres, self.centres)
        halves = np.full_like(offsets, 0.5)
        return np.vstack([self.scaling @ self.centres.T, offsets, halves])

    @_sums.default
    def _make_sums(self) -> FloatArray:
        # for lambda_i in the sums, the weights are left to be multiplied in row by row
        weights = self.weights if self.slope_weights is None else np.ones_like(self.weights)
        moved = (self.centres @ self.scaling.T) * weights[:, None]
        return np.asfortranarray(np.column_stack([moved, weights]))

    @_slopes.default
    def _make_slopes(self) -> tuple[FloatArray, FloatArray] | None:
        if self.slope_weights is None:
            return None
        levels = self.weights - np.einsum("md,md->m", self.slope_weights, self.centres)
        moved = self.slope_weights @ self.scaling.T
        return np.vstack([moved.T, levels]), np.asfortranarray(moved)

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return len(self.origin)

    def value(self, positions: FloatArray) -> FloatArray:
        """Return V, shape (n,), at positions of shape (n, dim)."""
        extended, pulls = self._extend(positions)
        heights = self._heights_at(extended)
        if self._slopes is not None:
            heights *= extended[:, :-1] @ self._slopes[0]
        # the same product as for a gradient, so that rounding is the same too
        return self._with_polynomial((heights @ self._sums)[:, -1], extended, pulls)

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient of V, shape (n, dim)."""
        return self._sum_and_gradient(*self._extend(positions))[1]

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return V, shape (n,), and its gradient, shape (n, dim)."""
        extended, pulls = self._extend(positions)
        radial, gradient = self._sum_and_gradient(extended, pulls)
        return self._with_polynomial(radial, extended, pulls), gradient

    def _extend(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return (r, 1, -|x|^2), and (-r T T^T, r matrix + slope, r . slope + 2 level)."""
        n, dim = positions.shape
        extended = np.empty((n, dim + 2))
        away = extended[:, :dim]
        np.subtract(positions, self.origin, out=away)
        extended[:, dim] = 1.0
        pulls: FloatArray = extended[:, :-1] @ self._pulls
        np.vecdot(away, pulls[:, :dim], out=extended[:, -1])
        return extended, pulls

    def _heights_at(self, extended: FloatArray) -> FloatArray:
        exponents: FloatArray = extended @ self._heights
        return np.exp(exponents, out=exponents)

    def _sum_and_gradient(
        self, extended: FloatArray, pulls: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the sum of radial terms, and the gradient of everything."""
        heights, dim = self._heights_at(extended), extended.shape[1] - 2
        radial_gradient = None
        if self._slopes is not None:
            radial_gradient = heights @ self._slopes[1]
            heights *= extended[:, :-1] @ self._slopes[0]
        sums = heights @ self._sums
        radial = sums[:, -1]
        gradient: FloatArray = pulls[:, :dim] * radial[:, None]
        gradient += sums[:, :-1]
        gradient += pulls[:, dim:-1]
        if radial_gradient is not None:
            gradient += radial_gradient
        return radial, gradient

    def _with_polynomial(
        self, radial: FloatArray, extended: FloatArray, pulls: FloatArray
    ) -> FloatArray:
        """Return the sum of everything, from twice the polynomial, (r, 1) . the end of pulls."""
        total: FloatArray = np.vecdot(extended[:, :-1], pulls[:, extended.shape[1] - 2 :])
        total *= 0.5
        total += radial
        return total

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return the second derivatives of V, shape (n, dim, dim)."""
        n, dim = positions.shape
        scaled = (positions - self.origin) @ self.scaling
        inner = np.empty((n, dim, dim))
        for rows in self._blocks(n):
            away, heights, levels = self._terms(scaled[rows])
            bends = heights * levels
            weighed = away * bends[:, :, None]
            if self.slope_weights is not None:
                weighed -= 2.0 * heights[:, :, None] * self.slope_weights
            np.matmul(away.transpose(0, 2, 1), weighed, out=inner[rows])
            inner[rows] -= bends.sum(axis=1)[:, None, None] * np.eye(dim)
        hessian = self.scaling @ (0.5 * (inner + inner.transpose(0, 2, 1))) @ self.scaling.T
        return np.asarray(hessian + self.polynomial.matrix)

    def hessian_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k H) for each k, shape (n, dim), with A in ``matrices (n, dim, dim)``.

        With d = x - c and Q = d^T A d - tr A, in x: sum_i e_i [a_i Q_i - d_i (lambda_i Q_i - 2
        a_i . A d_i)] - 2 A grad V.
        """
        scaled = (positions - self.origin) @ self.scaling
        inner = self.scaling.T @ (0.5 * (matrices + matrices.transpose(0, 2, 1))) @ self.scaling
        traces = np.einsum("nkk->n", inner)
        found = np.zeros_like(scaled)
        for rows in self._blocks(len(scaled)):
            away, heights, levels = self._terms(scaled[rows])
            turned = away @ inner[rows]
            bends = np.einsum("nmd,nmd->nm", away, turned) - traces[rows, None]
            factors = levels * bends
            gradient = -np.einsum("nm,nmd->nd", heights * levels, away)
            if self.slope_weights is not None:
                factors -= 2.0 * np.einsum("nmd,md->nm", turned, self.slope_weights)
                found[rows] = (heights * bends) @ self.slope_weights
                gradient += heights @ self.slope_weights
            found[rows] -= np.einsum("nm,nmd->nd", heights * factors, away)
            found[rows] -= 2.0 * np.einsum("nij,nj->ni", inner[rows], gradient)
        return np.asarray(found @ self.scaling.T)

    def hessian_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return u^T d_k H u for each k, shape (n, dim), with u in ``vectors (n, dim)``.

        As :meth:`hessian_trace_gradient` with A = u u^T, but from products of the size of a
        gradient's: d itself is never formed.
        """
        extended, _ = self._extend(positions)
        scaled, inner = extended[:, : self.dim] @ self.scaling, vectors @ self.scaling
        heights = self._heights_at(extended)
        along = np.einsum("nd,nd->n", scaled, inner)[:, None] - inner @ self.centres.T
        bends = np.square(along) - np.einsum("nd,nd->n", inner, inner)[:, None]
        if self.slope_weights is None or self._slopes is None:
            levels = np.broadcast_to(self.weights, heights.shape)
            drags, found = np.zeros(1), np.zeros_like(scaled)
        else:
            levels = extended[:, :-1] @ self._slopes[0]
            drags = inner @ self.slope_weights.T
            found = (heights * bends) @ self.slope_weights
        factors = heights * (levels * bends - 2.0 * along * drags)
        found += factors @ self.centres - factors.sum(axis=1)[:, None] * scaled
        downhill = np.einsum("nm,nm->n", heights, drags - levels * along)
        found -= 2.0 * downhill[:, None] * inner
        return np.asarray(found @ self.scaling.T)

    def _blocks(self, n: int) -> list[slice]:
        size = max(1, _SCRATCH // max(1, self.centres.size))
        return [slice(start, start + size) for start in range(0, n, size)]

    def _terms(self, scaled: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return d = x - c of shape (n, M, dim), e and lambda of shape (n, M)."""
        away = scaled[:, None, :] - self.centres
        heights = np.exp(-0.5 * np.einsum("nmd,nmd->nm", away, away))
        levels = np.broadcast_to(self.weights, heights.shape)
        if self.slope_weights is not None:
            levels = levels + np.einsum("nmd,md->nm", away, self.slope_weights)
        return away, heights, levels
