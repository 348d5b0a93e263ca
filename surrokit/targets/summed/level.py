"""Rests that are a number, or have one added."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.shapes import check_positions
from surrokit.targets.summed.rest import Rest
from surrokit.types import Capabilities, FloatArray


@attrs.frozen(eq=False)
class Level:
    """A rest that is one number, in nats.

    Parameters
    ----------
    dim
        Numbers in a position.
    number
        What it is everywhere.
    """

    dim: int
    number: float

    @property
    def capabilities(self) -> Capabilities:
        """Gradients and Hessians, which are 0."""
        return frozenset({can.GRADIENT, can.HESSIAN, can.CONVEX})

    def value(self, positions: FloatArray) -> FloatArray:
        """Return it, shape (n,)."""
        return np.full(len(check_positions(positions, self.dim)), self.number)

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return it, shape (n,), and zeros, shape (n, dim)."""
        return self.value(positions), np.zeros(positions.shape)

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return zeros, shape (n, dim, dim)."""
        return np.zeros((len(check_positions(positions, self.dim)), self.dim, self.dim))


@attrs.frozen(eq=False)
class Raised:
    """A rest and one number, in nats.

    Parameters
    ----------
    rest
        The rest.
    number
        What is added.
    """

    rest: Rest
    number: float

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self.rest.dim

    @property
    def capabilities(self) -> Capabilities:
        """Those of the rest."""
        return self.rest.capabilities

    def value(self, positions: FloatArray) -> FloatArray:
        """Return both, shape (n,)."""
        return np.asarray(self.rest.value(positions) + self.number)

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return both, shape (n,), and the gradient, shape (n, dim)."""
        value, gradient = self.rest.value_and_gradient(positions)
        return value + self.number, gradient

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return second derivatives, shape (n, dim, dim)."""
        return self.rest.hessian(positions)
