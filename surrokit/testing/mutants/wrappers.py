"""Broken wrappers of potentials."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from surrokit.capabilities import HESSIAN
from surrokit.testing.counting import CONTRACTIONS, Wrapped
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
    """Takes the derivative of its Hessian from a function close by: one shifted by 0.01."""

    def evaluated(
        self, method: str, function: Callable[[FloatArray], Any], positions: FloatArray
    ) -> Any:
        """Shift the positions, but only for the derivative of the Hessian."""
        return function(positions + 0.01 if method in CONTRACTIONS else positions)
