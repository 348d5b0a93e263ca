"""BrokenGradients: where a target has a finite potential without a finite gradient."""

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
        How many were met.
    value
        The least U of them, in the sampling coordinates; ``inf`` where there is none.
    position : ndarray of shape (dim,), optional
        Where that is, in the user's coordinates; None where there is none.
    """

    count: int = 0
    value: float = math.inf
    position: FloatArray | None = None
