"""The checks that positions, and what goes with each of them, are rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from surrokit.errors import ShapeError
from surrokit.types import FloatArray


def check_positions(positions: npt.ArrayLike, dim: int) -> FloatArray:
    """Return positions as a double-precision array of shape (n, dim), copied only if it must be.

    Raises
    ------
    ShapeError
        If they are not rows of ``dim`` numbers.
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
        If they do not have the shape of ``positions``, (n, dim).
    """
    return _check("vectors", vectors, positions.shape)


def check_matrices(matrices: npt.ArrayLike, positions: FloatArray) -> FloatArray:
    """Return one matrix for each position as a double-precision array of shape (n, dim, dim).

    Raises
    ------
    ShapeError
        If they have another shape, ``positions`` having shape (n, dim).
    """
    return _check("matrices", matrices, (*positions.shape, positions.shape[1]))


def check_weights(weights: npt.ArrayLike, positions: FloatArray) -> FloatArray:
    """Return weights of a Jacobian for each position, in double precision, shape (n, m, dim).

    Raises
    ------
    ShapeError
        If they have another shape, ``positions`` having shape (n, dim), for every m.
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
