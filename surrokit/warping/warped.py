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
        return np.asarray(value - self.warp.log_volume(positions))

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient by z, shape (n, dim)."""
        gradient = with_gradient_alone(self.potential).gradient(self.warp.bend(positions))
        return self.warp.pull(gradient, positions)

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return both, shapes (n,) and (n, dim)."""
        x = self.warp.bend(positions)
        value, gradient = with_gradient(self.potential).value_and_gradient(x)
        straight = self.straighten({"value": value, "gradient": gradient}, positions)
        return straight["value"], straight["gradient"]

    # --- what is kept for positions ---

    def straighten(self, cache: Cache, straight: FloatArray) -> Cache:
        """Return value and gradient by z at z (n, dim), from those by x."""
        return {
            "value": cache["value"] - self.warp.log_volume(straight),
            "gradient": self.warp.pull(cache["gradient"], straight),
        }

    def bend(self, cache: Cache, straight: FloatArray) -> Cache:
        """Return value and gradient by x at z (n, dim), from those by z."""
        return {
            "value": cache["value"] + self.warp.log_volume(straight),
            "gradient": self.warp.push(cache["gradient"], straight),
        }
