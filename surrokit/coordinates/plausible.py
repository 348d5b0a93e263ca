"""Ranges in which a user expects the parameters to lie."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from surrokit.arguments import numbers
from surrokit.coordinates.parameters import Parameter, Parameters
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.types import FloatArray


@attrs.frozen(eq=False)
class Plausible:
    """A box in the user's coordinates, from which starting positions are drawn.

    It says where to look first. The density is what it is without it.

    Parameters
    ----------
    lower, upper : ndarray of shape (dim,)
        Corners.
    """

    lower: FloatArray
    upper: FloatArray

    @classmethod
    def declare(cls, ranges: Mapping[str, Any] | None, parameters: Parameters) -> Plausible | None:
        """Read a range (low, high) for each parameter; None where none are given.

        Parameters
        ----------
        ranges
            Name to a pair of numbers, or of arrays of the parameter's shape.
        parameters
            The target's.

        Raises
        ------
        ConfigurationError
            If a range is missing, belongs to no parameter, is no pair of finite numbers with low
            below high, or reaches beyond the parameter's bounds.
        """
        if ranges is None:
            return None
        for name, spec in parameters.specs.items():
            if spec.constraint is not None:
                raise ConfigurationError(
                    f"{name!r} is {spec.constraint.meaning}, of which no range can be given; leave "
                    "plausible out, and give initial positions instead"
                )
        if not isinstance(ranges, Mapping) or set(ranges) != set(parameters.specs):
            given = ", ".join(map(str, ranges)) if isinstance(ranges, Mapping) else repr(ranges)
            raise ConfigurationError(
                "plausible must give a range (low, high) for each of the parameters "
                f"{', '.join(parameters.specs)}, got {given or 'none'}"
            )
        sides = [_read(name, spec, ranges[name]) for name, spec in parameters.specs.items()]
        lower, upper = (np.concatenate(side) for side in zip(*sides, strict=True))
        return cls(lower, upper)

    def draw(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return positions that are uniform in the box, shape (n, dim)."""
        return rng.uniform(self.lower, self.upper, size=(n, len(self.lower)))


def _read(name: str, spec: Parameter, pair: Any) -> tuple[FloatArray, FloatArray]:
    """Return the lower and upper ends of a parameter's numbers, each of shape (size,)."""
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise ConfigurationError(
            f"the plausible range of {name!r} must be a pair (low, high), got {pair!r}"
        )
    low, high = (_fill(name, spec, side) for side in pair)
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise ConfigurationError(
            f"the plausible range of {name!r} must be finite numbers with low < high, got "
            f"({pair[0]}, {pair[1]})"
        )
    least, most = spec.bounds
    if (low < least).any() or (high > most).any():
        raise ConfigurationError(
            f"the plausible range of {name!r} is ({pair[0]}, {pair[1]}), which reaches beyond its "
            f"bounds ({least:g}, {most:g}); leave out what the bounds leave out"
        )
    return low, high


def _fill(name: str, spec: Parameter, side: Any) -> FloatArray:
    try:
        array = np.broadcast_to(numbers(f"the plausible range of {name!r}", side), spec.shape)
    except (ValueError, ShapeError) as error:
        raise ConfigurationError(
            f"the ends of the plausible range of {name!r} must be numbers, or arrays of shape "
            f"{spec.shape}, got {side!r}"
        ) from error
    return array.reshape(spec.size)
