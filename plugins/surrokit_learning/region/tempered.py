"""A surrogate that is not to be trusted yet: flattened, and drawn to where points were seen."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.capabilities import GRADIENT, GRADIENT_ALONE
from surrokit.interfaces import Evaluations
from surrokit.potentials import Potential, with_gradient, with_gradient_alone
from surrokit.types import Capabilities, FloatArray
from surrokit_learning.region.region import Region, lowest_temperature

OFFERED = frozenset({GRADIENT, GRADIENT_ALONE})
"""What a flattened potential can pass on."""


TRUSTED = 1.5
"""Spread of V - U, in nats, below which a surrogate of values is drawn from as it is."""


@attrs.frozen(kw_only=True, eq=False)
class Tempered:
    """V / T + pull |L^-1 (q - centre)|^2 / 2.

    Parameters
    ----------
    potential
        V.
    temperature : float
        T, above 0.
    region
        Centre and L.
    pull : float
        At 0 V is only flattened; at 1 a linear V moves the region's normal distribution down the
        slope, and no farther.
    """

    potential: Potential
    temperature: float
    region: Region
    pull: float

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self.potential.dim

    @property
    def capabilities(self) -> Capabilities:
        """Gradients, if V has them."""
        return self.potential.capabilities & OFFERED

    def value(self, positions: FloatArray) -> FloatArray:
        """Return the sum, shape (n,), at positions of shape (n, dim)."""
        whitened = self.region.whiten(positions)
        pulled = 0.5 * self.pull * np.square(whitened).sum(axis=1)
        return np.asarray(self.potential.value(positions) / self.temperature + pulled)

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the sum, shape (n,), and its gradient, shape (n, dim)."""
        values, gradients = with_gradient(self.potential).value_and_gradient(positions)
        whitened = self.region.whiten(positions)
        pulled = 0.5 * self.pull * np.square(whitened).sum(axis=1)
        return values / self.temperature + pulled, self._total(gradients, whitened)

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient of the sum, shape (n, dim)."""
        gradients = with_gradient_alone(self.potential).gradient(positions)
        return self._total(gradients, self.region.whiten(positions))

    def _total(self, gradients: FloatArray, whitened: FloatArray) -> FloatArray:
        return gradients / self.temperature + self.pull * self.region.pull_back(whitened)


def cautious(
    surrogate: Potential, region: Region, seen: Evaluations, error: float | None, temperature: float
) -> Potential:
    """Return a surrogate of values, flattened and held back as far as it is wrong.

    Parameters
    ----------
    surrogate
        V.
    region
        Where it is believed.
    seen
        What it has learnt from.
    error
        Spread of the last V - U in nats; None before there is any.
    temperature
        At which the draws lay that told the error.
    """
    if error is not None and error < TRUSTED:
        return surrogate
    highest = lowest_temperature(seen)
    if error is None:
        return Tempered(potential=surrogate, temperature=highest, region=region, pull=1.0)
    return Tempered(
        potential=surrogate,
        temperature=max(1.0, min(highest, error)),
        region=region,
        pull=min(1.0, error / temperature),
    )
