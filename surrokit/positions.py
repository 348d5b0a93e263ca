"""The check that positions are rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from surrokit.errors import ShapeError
from surrokit.types import FloatArray


def checked_positions(positions: npt.ArrayLike, dim: int) -> FloatArray:
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
