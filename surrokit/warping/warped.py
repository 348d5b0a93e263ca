"""A potential in the coordinates of a warp."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.capabilities import GRADIENT, GRADIENT_ALONE
from surrokit.contracts.potential import Potential, with_gradient, with_gradient_alone
from surrokit.marginals.warp import Warp
from surrokit.types import Cache, Capabilities, FloatArray


@attrs.frozen(eq=False)
class Warped:
    """U of x as a potential of z, which counts the volume: U - sum log dx/dz.

    It offers values, and gradients where the potential does.

    Parameters
    ----------
    potential
        Of x.
    warp
        From x to z.
    """

    potential: Potential
    warp: Warp

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self.potential.dim

    @property
    def capabilities(self) -> Capabilities:
        """Gradients, alone or with values, as the potential offers them."""
        return self.potential.capabilities & {GRADIENT, GRADIENT_ALONE}

    def value(self, positions: FloatArray) -> FloatArray:
        """Return the potential at z, shape (n,), of positions z (n, dim)."""
        value = self.potential.value(self.warp.bend(positions))
        return value - self._log_volume(positions)

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient by z, shape (n, dim)."""
        slope, by_straight = self.warp.slopes(positions)
        gradient = with_gradient_alone(self.potential).gradient(self.warp.bend(positions))
        return gradient * slope - by_straight

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return both, shapes (n,) and (n, dim)."""
        value, gradient = with_gradient(self.potential).value_and_gradient(
            self.warp.bend(positions)
        )
        slope, by_straight = self.warp.slopes(positions)
        return value - np.log(slope).sum(axis=1), gradient * slope - by_straight

    # --- what is kept for positions ---

    def straighten(self, cache: Cache, straight: FloatArray) -> Cache:
        """Return value and gradient by z at z (n, dim), from those by x."""
        slope, by_straight = self.warp.slopes(straight)
        return {
            "value": cache["value"] - np.log(slope).sum(axis=1),
            "gradient": cache["gradient"] * slope - by_straight,
        }

    def bend(self, cache: Cache, straight: FloatArray) -> Cache:
        """Return value and gradient by x at z (n, dim), from those by z."""
        slope, by_straight = self.warp.slopes(straight)
        return {
            "value": cache["value"] + np.log(slope).sum(axis=1),
            "gradient": (cache["gradient"] + by_straight) / slope,
        }

    def _log_volume(self, straight: FloatArray) -> FloatArray:
        return np.asarray(np.log(self.warp.slopes(straight)[0]).sum(axis=1))
