"""Broken wrappers of potentials."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from surrokit.capabilities import CONVEX, HESSIAN, HESSIAN_DERIVATIVE, METRIC_DERIVATIVE
from surrokit.potentials import with_gaussian, with_rows
from surrokit.testing.wrappers import Wrapped, methods_of
from surrokit.types import Capabilities, FloatArray


class DropsCapability(Wrapped):
    """Forgets that the potential inside has Hessians."""

    @property
    def capabilities(self) -> Capabilities:
        """All but ``hessian``."""
        return self.inner.capabilities - {HESSIAN}


class InventsCapability(Wrapped):
    """Claims Hessians, whatever is inside."""

    @property
    def capabilities(self) -> Capabilities:
        """Those inside and ``hessian``."""
        return self.inner.capabilities | {HESSIAN}


class ForeignDerivative(Wrapped):
    """Takes the derivative of its matrices from a function close by: one shifted by 0.01."""

    def evaluate(
        self, method: str, function: Callable[[FloatArray], Any], positions: FloatArray
    ) -> Any:
        """Shift the positions, but only for the derivative of the Hessian or of the metric."""
        shifted = method in methods_of(HESSIAN_DERIVATIVE) + methods_of(METRIC_DERIVATIVE)
        return function(positions + 0.01 if shifted else positions)


class ShiftedProducts(Wrapped):
    """Multiplies by matrices, and takes diagonals of those, of positions 0.01 away."""

    def evaluate(
        self, method: str, function: Callable[[FloatArray], Any], positions: FloatArray
    ) -> Any:
        """Shift the positions, but only for products and diagonals."""
        shifted = method in ("hessian_product", "metric_product", "hessian_diagonal")
        return function(positions + 0.01 if shifted else positions)


class ClaimsConvex(Wrapped):
    """Claims that its Hessian is positive definite, whatever is inside."""

    @property
    def capabilities(self) -> Capabilities:
        """Those inside and ``convex``."""
        return self.inner.capabilities | {CONVEX}


class WidensNormal(Wrapped):
    """Says that a normal distribution is a little wider than it is."""

    @property
    def factor(self) -> FloatArray:
        """The factor inside, times 1.01."""
        return np.asarray(1.01 * with_gaussian(self.inner).factor)


class HalvesRowBounds(Wrapped):
    """Gives bounds of its rows half as large as they are."""

    def row_bounds(self, factor: FloatArray) -> FloatArray:
        """Return half of those inside."""
        return 0.5 * with_rows(self.inner).row_bounds(factor)
