"""The trend under a network: a polynomial of degree one or two, in the same regression.

Everything additive is one kind of node: a linear trend is a(x) = x with w = e_k, a full quadratic
one a(x) = x^2 / 2 with w in {e_k, e_k + e_l}. Sums of products of such nodes are gathered like
those of any other, and then turned into coefficients that mean something: the entries of a
slope and of a symmetric matrix.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs
import numpy as np

from surrokit.types import FloatArray

Trend: TypeAlias = Literal["auto", "constant", "linear", "quadratic", "laplace"]
"""What lies under a network; ``auto`` chooses by how many equations there are."""

Degree: TypeAlias = Literal[0, 1, 2]
"""Degree of the polynomial that is fitted."""

_ROOT_2 = float(np.sqrt(2.0))


@attrs.frozen(kw_only=True, eq=False)
class TrendFeatures:
    """Monomials of whitened positions as additive nodes.

    The columns are z_k, then z_k^2 / 2, then (z_k + z_l)^2 / 2 for k < l; those of degree two only
    where ``degree`` is 2.

    Parameters
    ----------
    dim
        Numbers in a position.
    degree
        0, 1 or 2.
    """

    dim: int
    degree: Degree

    def __len__(self) -> int:
        return n_coefficients(self.dim, self.degree)

    @property
    def directions(self) -> FloatArray:
        """Direction of each column, shape (p, dim)."""
        units = np.eye(self.dim)
        first, second = self._pairs
        rows = [units] if self.degree else []
        if self.degree == 2:
            rows += [units, units[first] + units[second]]
        return np.concatenate(rows) if rows else np.empty((0, self.dim))

    def features_and_slopes(self, whitened: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return a(w . z) and a'(w . z), each of shape (n, p), at whitened positions (n, dim)."""
        first, second = self._pairs
        arguments = [whitened] if self.degree else []
        slopes = [np.ones_like(whitened)] if self.degree else []
        values = list(arguments)
        if self.degree == 2:
            squares = np.concatenate([whitened, whitened[:, first] + whitened[:, second]], axis=1)
            values.append(0.5 * squares * squares)
            slopes.append(squares)
        if not values:
            nothing = np.empty((len(whitened), 0))
            return nothing, nothing
        return np.concatenate(values, axis=1), np.concatenate(slopes, axis=1)

    def by_monomials(self, sums: FloatArray) -> FloatArray:
        """Turn sums over nodes, along the first axis, into sums over orthogonal monomials.

        (z_k + z_l)^2 / 2 becomes z_k z_l / sqrt(2). The sum of squares of the coefficients is then
        |slope|^2 + |matrix|_F^2.

        Parameters
        ----------
        sums : ndarray of shape (p or more, ...)
            Changed in place; further rows are left as they are.
        """
        if self.degree == 2 and self.dim > 1:
            first, second = self._pairs
            squares, pairs = self.dim, 2 * self.dim
            mixed = sums[pairs : len(self)]
            mixed -= sums[squares + first]
            mixed -= sums[squares + second]
            mixed /= _ROOT_2
        return sums

    def slope_and_matrix(self, coefficients: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the slope (dim, m) and the symmetric matrices (m, dim, dim) of coefficients.

        Parameters
        ----------
        coefficients : ndarray of shape (p, m)
            Of monomials.
        """
        n_outputs = coefficients.shape[1]
        slope = np.zeros((self.dim, n_outputs))
        matrix = np.zeros((n_outputs, self.dim, self.dim))
        if self.degree:
            slope[:] = coefficients[: self.dim]
        if self.degree == 2:
            first, second = self._pairs
            own = np.arange(self.dim)
            matrix[:, own, own] = coefficients[self.dim : 2 * self.dim].T
            matrix[:, first, second] = coefficients[2 * self.dim :].T / _ROOT_2
            matrix[:, second, first] = matrix[:, first, second]
        return slope, matrix

    def coefficients(self, matrix: FloatArray) -> FloatArray:
        """Return the coefficients, shape (p - dim,), of a symmetric matrix (dim, dim).

        The inverse of the second half of :meth:`slope_and_matrix`, for degree 2.
        """
        first, second = self._pairs
        return np.concatenate([np.diag(matrix), matrix[first, second] * _ROOT_2])

    @property
    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        first, second = np.triu_indices(self.dim, 1)
        return first, second


def n_coefficients(dim: int, degree: Degree) -> int:
    """Return how many coefficients a polynomial has, the constant left out."""
    return (0, dim, dim + dim * (dim + 1) // 2)[degree]
