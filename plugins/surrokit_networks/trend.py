"""The polynomial of degree one or two under a network: fitted in the same regression.

A trend's columns are additive nodes: z_k with slope one, and z_k^2 / 2 and (z_k + z_l)^2 / 2 with
directions e_k and e_k + e_l. Sums of products of such columns are gathered like those of any other
(:mod:`surrokit_networks.equations`), and then turned into coefficients that mean something: the
entries of a slope and of a symmetric matrix.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs
import numpy as np

from surrokit.types import BoolArray, FloatArray

Trend: TypeAlias = Literal["auto", "constant", "linear", "quadratic", "laplace"]
"""What lies under a network; ``auto`` chooses by how many equations there are."""

Degree: TypeAlias = Literal[0, 1, 2]
"""Degree of the polynomial that is fitted."""

LEAST_CURVATURE = 0.1
"""Least eigenvalue left to a trend's matrix in whitened coordinates, where a normal has 1."""

COST = 1.05
"""Equations that generalised cross-validation counts for each degree of freedom.

With 1, the rule of the books, where there are about as many rows as nodes the ridge comes out far
too small in a few cases of a hundred, and the fit explodes (measured: error 17 where the best ridge
gives 0.26); with 1.05 it never did, and over logistic, quartic and banana targets the gradients
came out best too. Factors from 1.2 on throw away what exact values contain."""


@attrs.frozen(kw_only=True, eq=False)
class TrendColumns:
    """Monomials of whitened positions as additive nodes.

    Degree 0: no column; 1: z_k; 2: also z_k^2 / 2, and (z_k + z_l)^2 / 2 for k < l.
    """

    dim: int
    degree: Degree

    def __len__(self) -> int:
        return n_coefficients(self.dim, self.degree)

    @property
    def directions(self) -> FloatArray:
        """Direction of each column, shape (p, dim)."""
        units = np.eye(self.dim)
        first, second = np.triu_indices(self.dim, 1)
        rows = [units] if self.degree else []
        if self.degree == 2:
            rows += [units, units[first] + units[second]]
        return np.concatenate(rows) if rows else np.empty((0, self.dim))

    def features_and_slopes(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return columns and their slopes along the directions, each (n, p), at z (n, dim)."""
        if not self.degree:
            return np.empty((len(z), 0)), np.empty((len(z), 0))
        if self.degree == 1:
            return z, np.ones_like(z)
        first, second = np.triu_indices(self.dim, 1)
        squares = np.concatenate([z, z[:, first] + z[:, second]], axis=1)
        values = np.concatenate([z, 0.5 * squares * squares], axis=1)
        return values, np.concatenate([np.ones_like(z), squares], axis=1)

    def by_monomials(self, sums: FloatArray) -> FloatArray:
        """Turn sums over columns, the first axis, into sums over orthogonal monomials, in place.

        (z_k + z_l)^2 / 2 becomes z_k z_l / sqrt(2). The sum of squares of the coefficients is then
        |slope|^2 + |matrix|_F^2. Rows beyond the trend's are left as they are.
        """
        if self.degree == 2 and self.dim > 1:
            first, second = np.triu_indices(self.dim, 1)
            mixed = sums[2 * self.dim : len(self)]
            mixed -= sums[self.dim + first]
            mixed -= sums[self.dim + second]
            mixed /= np.sqrt(2.0)
        return sums

    def slope_and_matrix(self, coefficients: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return slopes (dim, m) and symmetric matrices (m, dim, dim) of coefficients (p, m)."""
        n_outputs = coefficients.shape[1]
        slope = np.zeros((self.dim, n_outputs))
        matrix = np.zeros((n_outputs, self.dim, self.dim))
        if self.degree:
            slope[:] = coefficients[: self.dim]
        if self.degree == 2:
            first, second = np.triu_indices(self.dim, 1)
            own = np.arange(self.dim)
            matrix[:, own, own] = coefficients[self.dim : 2 * self.dim].T
            matrix[:, first, second] = coefficients[2 * self.dim :].T / np.sqrt(2.0)
            matrix[:, second, first] = matrix[:, first, second]
        return slope, matrix


def n_coefficients(dim: int, degree: Degree) -> int:
    """Return how many coefficients a polynomial has, the constant left out."""
    return (0, dim, dim + dim * (dim + 1) // 2)[degree]


def tells_more(with_gradient: BoolArray, dim: int) -> bool:
    """Return whether the rows with a gradient bring as many equations as there are values.

    Whitening and trend come from gradients alone, where these do. Two gradients among 150 values
    in five dimensions made the error of a quadratic ten times as large.
    """
    known = int(np.count_nonzero(with_gradient))
    return known > 1 and known * dim >= len(with_gradient)


def with_least_curvature(matrix: FloatArray, least: float = LEAST_CURVATURE) -> FloatArray:
    """Return a symmetric matrix (dim, dim) with eigenvalues of at least ``least``.

    The matrix itself where it has no smaller ones. A quadratic fitted to few points has directions
    of negative curvature, and paths run off along them.
    """
    eigenvalues, vectors = np.linalg.eigh(matrix)
    if eigenvalues[0] >= least:
        return matrix
    return np.asarray((vectors * np.maximum(eigenvalues, least)) @ vectors.T)


def matrix_of_gradients(
    z: FloatArray, gradients: FloatArray, weights: FloatArray, expected: FloatArray
) -> FloatArray:
    """Return the symmetric M, shape (dim, dim), for which gradients are nearly M z + constant.

    Minimises sum_n w_n |g_n - M z_n|^2 + kappa |M - E|_F^2 over symmetric M, positions and
    gradients centred. In the eigenbasis of sum_n w_n z_n z_n^T the problem separates entry by
    entry, so kappa is chosen by generalised cross-validation from one eigendecomposition, and the
    cost is O(n dim^2 + dim^3), where the dim^2 / 2 columns of a full quadratic would cost dim^6.
    Positions and gradients (n, dim) are whitened, with weights (n,), and ``expected`` is E.
    """
    total, dim = float(weights.sum()), z.shape[1]
    away = z - weights @ z / total
    left = gradients - weights @ gradients / total - away @ expected
    eigenvalues, vectors = np.linalg.eigh((away.T * weights) @ away)
    eigenvalues = np.maximum(eigenvalues, 0.0)
    cross = vectors.T @ ((away.T * weights) @ left) @ vectors
    pull = cross + cross.T
    sums = eigenvalues[:, None] + eigenvalues
    square = float(weights @ np.einsum("nd,nd->n", left, left))
    count = dim * float(weights.sum() ** 2 / np.square(weights).sum())
    best, chosen = np.inf, np.zeros((dim, dim))
    for ridge in total * np.logspace(2.0, -4.0, 25):
        change = pull / (sums + 2.0 * ridge)
        residual = square - float(np.sum(change * pull)) + float(np.sum(change**2 * eigenvalues))
        held = sums / (sums + 2.0 * ridge)
        spare = count - COST * (0.5 * float(held.sum() + np.trace(held)) + dim)
        score = max(residual, 0.0) / spare**2 if spare > 0.0 else np.inf
        if score < best:
            best, chosen = score, change
    return np.asarray(expected + vectors @ chosen @ vectors.T)
