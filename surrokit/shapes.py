"""Checks of the shapes of positions, and of the arrays that go with them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from surrokit.errors import ShapeError
from surrokit.types import FloatArray


def check_positions(positions: npt.ArrayLike, dim: int) -> FloatArray:
    """Return positions as a double-precision array of shape (n, dim), copied only where necessary.

    Raises
    ------
    ShapeError
        If positions are not rows of ``dim`` numbers.
    """
    array = np.asarray(positions, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != dim:
        raise ShapeError(
            f"positions must have shape (n, {dim}), got {array.shape}; pass one row for each point"
        )
    return array


def check_vectors(vectors: npt.ArrayLike, positions: FloatArray) -> FloatArray:
    """Return one vector for each position as a double-precision array of shape (n, dim).

    Raises
    ------
    ShapeError
        If vectors do not have the shape (n, dim) of ``positions``.
    """
    return _check("vectors", vectors, positions.shape)


def check_matrices(matrices: npt.ArrayLike, positions: FloatArray) -> FloatArray:
    """Return one matrix for each position as a double-precision array of shape (n, dim, dim).

    Raises
    ------
    ShapeError
        If matrices have another shape.
    """
    return _check("matrices", matrices, (*positions.shape, positions.shape[1]))


def check_weights(weights: npt.ArrayLike, positions: FloatArray) -> FloatArray:
    """Return weights of the Jacobian at each position, in double precision, shape (n, m, dim).

    Raises
    ------
    ShapeError
        If weights have another shape; m may be any number.
    """
    array = np.asarray(weights, dtype=np.float64)
    n, dim = positions.shape
    if array.ndim != 3 or array.shape[0] != n or array.shape[2] != dim:
        raise ShapeError(
            f"weights must have shape ({n}, m, {dim}), got {array.shape}; pass one for each "
            "position, each of the shape of its Jacobian"
        )
    return array


def _check(what: str, given: npt.ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    array = np.asarray(given, dtype=np.float64)
    if array.shape != shape:
        raise ShapeError(
            f"{what} must have shape {shape}, got {array.shape}; pass one for each position"
        )
    return array
