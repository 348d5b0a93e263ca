"""Positions where a target has a finite potential without a finite gradient."""

from __future__ import annotations

import math

import attrs

from surrokit.types import FloatArray


@attrs.frozen(kw_only=True, eq=False)
class BrokenGradients:
    """Positions at which U is finite and its gradient is not.

    Parameters
    ----------
    count
        Number of these positions that a run met.
    value
        Least U among them, in the sampling coordinates; ``inf`` if there are none.
    position : ndarray of shape (dim,), optional
        Position of the least U, in the user's coordinates; None if there are none.
    """

    count: int = 0
    value: float = math.inf
    position: FloatArray | None = None
