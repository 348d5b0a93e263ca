"""The terms of normal errors of known scale: (y - e)^2 / (2 scale^2), a quadratic."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.types import FloatArray


@attrs.frozen
class NormalErrors:
    """Terms of normal errors; no expansion leaves anything out.

    Parameters
    ----------
    scale
        Of the errors.
    """

    scale: float

    def value(self, e: FloatArray, y: FloatArray) -> FloatArray:
        """Return the terms."""
        with np.errstate(over="ignore"):
            return np.asarray(0.5 * np.square((y - e) / self.scale))

    def constant(self, y: FloatArray) -> FloatArray:
        """Return what minus the log density has beside the terms."""
        return np.full(np.shape(y), np.log(self.scale) + 0.5 * np.log(2.0 * np.pi))

    def first(self, e: FloatArray, y: FloatArray) -> FloatArray:
        """Return first derivatives in e."""
        return np.asarray((e - y) / self.scale**2)

    def second(self, e: FloatArray, y: FloatArray) -> FloatArray:
        """Return second derivatives in e, which are all the same."""
        return np.full(np.broadcast_shapes(np.shape(e), np.shape(y)), 1.0 / self.scale**2)

    def third(self, e: FloatArray, y: FloatArray) -> FloatArray:
        """Return third derivatives in e: zeros."""
        return np.zeros(np.broadcast_shapes(np.shape(e), np.shape(y)))

    def remainder(
        self,
        e: FloatArray,  # noqa: ARG002
        y: FloatArray,  # noqa: ARG002
        t: FloatArray,
    ) -> FloatArray:
        """Return what expansions at e leave out at e + t: nothing."""
        return np.zeros(np.shape(t))
