"""What a constraint must do."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from surrokit.types import BoolArray, FloatArray


class Constraint(Protocol):
    """A set of arrays q of one shape, and a smooth map z -> q onto it from the whole space.

    Positions come in rows: z of shape (n, free), and q as vectors of shape (n, size), arrays in C
    order.
    """

    @property
    def name(self) -> str:
        """Its name, for files."""
        ...

    @property
    def meaning(self) -> str:
        """What q is, for messages."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of q."""
        ...

    @property
    def free(self) -> int:
        """Numbers in z."""
        ...

    @property
    def varies(self) -> BoolArray:
        """Which numbers of q are not the same for all z, shape (size,)."""
        ...

    def to_bounded(self, z: FloatArray) -> FloatArray:
        """Return q at z."""
        ...

    def to_unbounded(self, q: FloatArray) -> FloatArray:
        """Return z at q, of which there may be several; NaN where q breaks the constraint."""
        ...

    def log_jacobian(self, z: FloatArray) -> FloatArray:
        """Return the log of the volume that the map makes of a volume in z, shape (n,).

        A map from more numbers than the set has dimensions adds the log density of what is left
        over, which integrates to a constant.
        """
        ...

    def log_jacobian_gradient(self, z: FloatArray) -> FloatArray:
        """Return its gradient, shape (n, free)."""
        ...

    def vjp(self, z: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return the gradient in z, shape (n, free), of what has a ``gradient (n, size)`` in q."""
        ...


def every(size: int) -> BoolArray:
    """Return that all numbers vary, shape (size,)."""
    return np.ones(size, dtype=bool)


def only_where(inside: BoolArray, z: FloatArray) -> FloatArray:
    """Return z (n, free) with NaN in rows that are not inside."""
    return np.where(inside[:, None], z, np.nan)


CLOSE = 1e-8
"""How far a sum or a length that must be 1 may be from it."""
