"""Mean functions of a process: polynomials of degree up to two in the coordinates z of a fit."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs
import numpy as np

from surrokit.surrogate.training import least_points as fewest_points
from surrokit.types import FloatArray, IntArray

MeanKind: TypeAlias = Literal["zero", "constant", "linear", "quadratic"]
"""Polynomials that a mean function can be."""

Mean: TypeAlias = Literal["auto", "zero", "constant", "linear", "quadratic"]
"""The same, or ``auto``: the richest that there are equations for."""


def n_coefficients(kind: MeanKind, dim: int) -> int:
    """Return the number of coefficients of a mean function."""
    pairs = dim * (dim + 1) // 2
    return {"zero": 0, "constant": 1, "linear": 1 + dim, "quadratic": 1 + dim + pairs}[kind]


def choose_kind(mean: Mean, dim: int, n_equations: int) -> MeanKind:
    """Return the mean function of a setting, with so many values and derivatives known."""
    if mean != "auto":
        return mean
    # with fewer equations a constant does better on logistic posteriors and on a banana: towards
    # its minimum a potential has no slope, so that a linear mean explains little
    if n_equations >= 3 * n_coefficients("quadratic", dim):
        return "quadratic"
    return "linear" if n_equations >= 10 * n_coefficients("linear", dim) else "constant"


def least_points(mean: Mean, dim: int) -> int:
    """Return the number of points that a fit to values needs, one more than coefficients."""
    own = 0 if mean == "auto" else n_coefficients(mean, dim) + 1
    return max(fewest_points(dim), own)


def features(kind: MeanKind, z: FloatArray) -> FloatArray:
    """Return basis functions (n, p) at z (n, dim): 1, z_k, z_k z_l for k <= l (z_k^2 halved)."""
    first, second, factor = _pairs(z.shape[1])
    columns = [np.ones((len(z), 1)), z, z[:, first] * z[:, second] * factor]
    return np.concatenate(columns, axis=1)[:, : n_coefficients(kind, z.shape[1])]


def feature_gradients(kind: MeanKind, z: FloatArray) -> FloatArray:
    """Return the derivatives of the basis functions in z, shape (n, dim, p)."""
    n, dim = z.shape
    first, second, factor = _pairs(dim)
    gradients, own = np.zeros((n, dim, n_coefficients("quadratic", dim))), np.arange(dim)
    gradients[:, own, 1 + own] = 1.0
    column = 1 + dim + np.arange(len(first))
    gradients[:, first, column] += z[:, second] * factor
    gradients[:, second, column] += z[:, first] * factor
    return gradients[:, :, : n_coefficients(kind, dim)]


def _pairs(dim: int) -> tuple[IntArray, IntArray, FloatArray]:
    first, second = np.triu_indices(dim)
    return first, second, np.where(first == second, 0.5, 1.0)


@attrs.frozen(kw_only=True, eq=False)
class Polynomial:
    """level + slope . z + z^T matrix z / 2, with ``slope (dim,)`` and symmetric ``matrix``."""

    level: float
    slope: FloatArray
    matrix: FloatArray

    @classmethod
    def of(cls, coefficients: FloatArray, dim: int) -> Polynomial:
        """Return the polynomial of the first basis functions with these coefficients, (p,)."""
        every = np.zeros(n_coefficients("quadratic", dim))
        every[: len(coefficients)] = coefficients
        first, second, _ = _pairs(dim)
        matrix = np.empty((dim, dim))
        matrix[first, second] = matrix[second, first] = every[1 + dim :]
        return cls(level=float(every[0]), slope=every[1 : 1 + dim], matrix=matrix)

    def value(self, z: FloatArray) -> FloatArray:
        """Return the polynomial, shape (n,), at z of shape (n, dim)."""
        half = 0.5 * (z @ self.matrix) + self.slope
        return np.asarray(self.level + np.einsum("nd,nd->n", z, half))

    def gradient(self, z: FloatArray) -> FloatArray:
        """Return its gradient in z, shape (n, dim)."""
        return np.asarray(z @ self.matrix + self.slope)

    def __add__(self, other: Polynomial) -> Polynomial:
        return Polynomial(
            level=self.level + other.level,
            slope=self.slope + other.slope,
            matrix=self.matrix + other.matrix,
        )

    def in_coordinates(self, inverse: FloatArray) -> Polynomial:
        """Return the polynomial as a function of r, where z = r inverse^T for rows r."""
        matrix = inverse.T @ self.matrix @ inverse
        return Polynomial(
            level=self.level, slope=self.slope @ inverse, matrix=0.5 * (matrix + matrix.T)
        )


def convex(matrix: FloatArray) -> FloatArray | None:
    """Return a symmetric matrix with its eigenvalues raised to 0.1 at least; None if none is less.

    In whitened coordinates, where those of a normal density are 1. A quadratic fitted to few values
    has directions of negative curvature, along which trajectories run off. Where no eigenvalue is
    as large as 0.1 they are raised to the largest: the trend of a constant is to stay one.
    """
    eigenvalues, vectors = np.linalg.eigh(matrix)
    least = min(0.1, float(np.abs(eigenvalues).max()))
    if eigenvalues[0] >= least:
        return None
    return np.asarray((vectors * np.maximum(eigenvalues, least)) @ vectors.T)
