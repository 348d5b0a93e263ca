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

LEAST_CURVATURE = 0.1
"""Least eigenvalue left to a quadratic in whitened coordinates, where that of a normal is 1.

Less where no eigenvalue is as large: the trend of a constant is to stay one.
"""

_SUPPORT: tuple[tuple[MeanKind, float], ...] = (("quadratic", 3.0), ("linear", 10.0))
"""Equations for each coefficient that ``auto`` asks for.

Measured on logistic posteriors in 5 and 20 dimensions and on a banana: with fewer, a constant does
better. Towards its minimum a potential has no slope, so a linear mean explains little.
"""


def n_coefficients(kind: MeanKind, dim: int) -> int:
    """Return the number of coefficients of a mean function."""
    pairs = dim * (dim + 1) // 2
    return {"zero": 0, "constant": 1, "linear": 1 + dim, "quadratic": 1 + dim + pairs}[kind]


def choose_kind(mean: Mean, dim: int, n_equations: int) -> MeanKind:
    """Return the mean function of a setting, with so many values and derivatives known."""
    if mean != "auto":
        return mean
    for kind, support in _SUPPORT:
        if n_equations >= support * n_coefficients(kind, dim):
            return kind
    return "constant"


def least_points(mean: Mean, dim: int) -> int:
    """Return the number of points that a fit to values needs, one more than coefficients."""
    own = 0 if mean == "auto" else n_coefficients(mean, dim) + 1
    return max(fewest_points(dim), own)


def features(kind: MeanKind, z: FloatArray) -> FloatArray:
    """Return basis functions (n, p) at z (n, dim): 1, z_k, z_k z_l for k <= l (z_k^2 halved)."""
    n, dim = z.shape
    columns = np.ones((n, n_coefficients(kind, dim)))
    if kind in ("linear", "quadratic"):
        columns[:, 1 : 1 + dim] = z
    if kind == "quadratic":
        first, second, factor = _pairs(dim)
        columns[:, 1 + dim :] = z[:, first] * z[:, second] * factor
    return columns


def feature_gradients(kind: MeanKind, z: FloatArray) -> FloatArray:
    """Return the derivatives of the basis functions in z, shape (n, dim, p)."""
    n, dim = z.shape
    gradients = np.zeros((n, dim, n_coefficients(kind, dim)))
    if kind in ("linear", "quadratic"):
        own = np.arange(dim)
        gradients[:, own, 1 + own] = 1.0
    if kind == "quadratic":
        first, second, factor = _pairs(dim)
        column = 1 + dim + np.arange(len(first))
        gradients[:, first, column] += z[:, second] * factor
        gradients[:, second, column] += z[:, first] * factor
    return gradients


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
    def of(cls, kind: MeanKind, coefficients: FloatArray, dim: int) -> Polynomial:
        """Return the mean function with these coefficients, shape (p,), of :func:`features`."""
        slope, matrix = np.zeros(dim), np.zeros((dim, dim))
        if kind in ("linear", "quadratic"):
            slope[:] = coefficients[1 : 1 + dim]
        if kind == "quadratic":
            first, second, _ = _pairs(dim)
            matrix[first, second] = matrix[second, first] = coefficients[1 + dim :]
        level = float(coefficients[0]) if len(coefficients) else 0.0
        return cls(level=level, slope=slope, matrix=matrix)

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
    """Return a symmetric matrix with its eigenvalues raised to a least one; None if none is less.

    In whitened coordinates. A quadratic fitted to few values has directions of negative curvature,
    along which trajectories run off.
    """
    eigenvalues, vectors = np.linalg.eigh(matrix)
    least = min(LEAST_CURVATURE, float(np.abs(eigenvalues).max()))
    if eigenvalues[0] >= least:
        return None
    return np.asarray((vectors * np.maximum(eigenvalues, least)) @ vectors.T)
