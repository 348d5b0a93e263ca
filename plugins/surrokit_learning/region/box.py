"""A box in the sampling coordinates."""

from __future__ import annotations

from typing import TypeAlias

import attrs
import numpy as np

from surrokit.errors import ConfigurationError
from surrokit.types import FloatArray

Corners: TypeAlias = tuple[FloatArray | float, FloatArray | float]
"""Two corners of a box, each a number or one number for each coordinate."""


@attrs.frozen(eq=False)
class Box:
    """All positions between two corners.

    Parameters
    ----------
    lower, upper : ndarray of shape (dim,) or ()
        The corners; a number stands for every coordinate.
    """

    lower: FloatArray
    upper: FloatArray

    def corners(self, dim: int) -> tuple[FloatArray, FloatArray]:
        """Return both corners, shape (dim,).

        Raises
        ------
        ConfigurationError
            If they are of another dimension.
        """
        for corner in (self.lower, self.upper):
            if corner.shape not in ((), (dim,)):
                raise ConfigurationError(
                    f"box must have corners of {dim} numbers, got shape {corner.shape}; pass "
                    "(lower, upper), each a number or an array of one number for each coordinate"
                )
        return np.broadcast_to(self.lower, dim).copy(), np.broadcast_to(self.upper, dim).copy()


def optional_box(value: Box | Corners | None) -> Box | None:
    """Return the box that a setting describes, a pair of corners; None for none.

    Raises
    ------
    ConfigurationError
        If it is not a pair, a number is not finite, or a lower one is not below its upper one.
    """
    if value is None or isinstance(value, Box):
        return value
    try:
        lower, upper = (np.asarray(corner, dtype=np.float64) for corner in value)
        right = bool((np.isfinite(lower) & np.isfinite(upper) & (lower < upper)).all())
    except (TypeError, ValueError):
        right = False
    if not right:
        raise ConfigurationError(
            f"box must be a pair of corners with every lower number below its upper one, got "
            f"{value!r}; pass (lower, upper) in the sampling coordinates"
        )
    return Box(lower, upper)
