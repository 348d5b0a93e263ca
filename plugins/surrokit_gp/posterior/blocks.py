"""Rows of which variances are computed together."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from surrokit.types import FloatArray

_BLOCK = 16
"""Always so many: where little is unknown a variance is a small difference of large numbers, and
its rounding shall not depend on how many rows were asked about."""


def by_blocks(variance_of: Callable[[FloatArray], FloatArray], rows: FloatArray) -> FloatArray:
    """Return the variance, shape (n,), of ``rows (n, dim)``, so many at a time."""
    found = np.empty(len(rows))
    block = np.empty((_BLOCK, rows.shape[1]))
    for start in range(0, len(rows), _BLOCK):
        few = rows[start : start + _BLOCK]
        block[: len(few)], block[len(few) :] = few, few[-1]
        found[start : start + len(few)] = variance_of(block)[: len(few)]
    return found
