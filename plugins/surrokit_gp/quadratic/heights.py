"""Values as a process of few points sees them: flattened where they are far above the least."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.types import FloatArray

_NOISE = 1e-3  # nats; costs no acceptance, and keeps the digits that none would lose
_OFF = 0.1  # part of the height above the flattened ones that these may be off by


@attrs.frozen(kw_only=True, eq=False)
class Heights:
    """Values above the least one, in nats.

    Up to ``flat_from`` they are as they are. Above, where the density is next to nothing, they grow
    as their logarithm: a steep wall would bend a process wherever it lies.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Heights, 0 for the least.
    variance : ndarray of shape (n,)
        Of the noise up to which each is met.
    least
        The least value.
    """

    values: FloatArray
    variance: FloatArray
    least: float

    @classmethod
    def of(cls, values: FloatArray, dim: int) -> Heights:
        """Return the heights of values (n,), all finite, at positions of so many numbers."""
        least, top = float(values.min()), flat_from(dim)
        with np.errstate(over="ignore"):
            above = values - least
        above = np.minimum(above, np.finfo(np.float64).max)
        flat = top * (1.0 + np.log(np.maximum(above, top) / top))
        heights = np.where(above > top, flat, above)
        variance = _NOISE**2 + np.square(_OFF * np.maximum(heights - top, 0.0))
        return cls(values=heights, variance=variance, least=least)


def flat_from(dim: int) -> float:
    """Return the height, in nats, up to which values are met: draws lie dim / 2 high on average."""
    return 5.0 + 2.0 * dim
