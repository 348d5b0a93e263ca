"""What a model in Stan reports at positions on the line, and back."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from surrokit.coordinates.models import Axis, Reported
from surrokit.coordinates.parameters import Parameter, Parameters
from surrokit.errors import SamplingWarning
from surrokit.types import FloatArray
from surrokit_stan.layout import Layout
from surrokit_stan.model import Turns

_TRIED = 16  # positions at which a number is the same if it is constant
_ROUNDING = 1e-14  # relative: the diagonal of a correlation matrix is one to the last digits

_BLOCKS: tuple[dict[str, Any], ...] = (
    {"include_tp": True, "include_gq": True},
    {"include_tp": True},
    {},
)
"""What is reported, and what is left of it where a block of the model fails."""


@attrs.frozen(eq=False)
class Constrained:
    """Parameters, transformed parameters and generated quantities at rows of positions.

    Random numbers of generated quantities depend on the position and the seed alone, so that a
    draw has the same quantities whenever they are asked for.

    Parameters
    ----------
    model
        The model.
    layout
        Where the numbers are.
    seed
        Of random numbers.
    """

    model: Turns
    layout: Layout
    seed: int

    def __call__(self, positions: FloatArray) -> FloatArray:
        """Return them, shape (n, n_user), at positions (n, dim); NaN where a block fails."""
        found = np.full((len(positions), len(self.layout.places)), np.nan)
        errors: list[Exception] = []
        for row, position in zip(found, np.ascontiguousarray(positions), strict=True):
            numbers = self._numbers(position, errors)
            row[: len(numbers)] = numbers
        if errors:
            warnings.warn(
                f"generated quantities cannot be computed at {len(errors)} of {len(found)} draws "
                f"and are NaN there; the first time Stan said: {errors[0]}",
                SamplingWarning,
                stacklevel=2,
            )
        return found[:, self.layout.places]

    def _numbers(self, position: FloatArray, errors: list[Exception]) -> FloatArray:
        """Return as many numbers as there are, in Stan's order, and note an error if any."""
        failed: list[Exception] = []
        for blocks in _BLOCKS:
            seed = zlib.crc32(position.tobytes(), self.seed)
            random = {"rng": self.model.call("new_rng", seed)} if "include_gq" in blocks else {}
            try:
                numbers = self.model.call("param_constrain", position, **blocks, **random)
            except Exception as error:
                failed.append(error)
                continue
            errors += failed[:1]
            return np.asarray(numbers, dtype=np.float64)
        raise failed[-1]


@attrs.frozen(eq=False)
class Positions:
    """Positions on the line of constrained parameters.

    Parameters
    ----------
    model
        The model.
    layout
        Where the numbers of parameters are.
    origin
        Constrained parameters at zero, in Stan's order: those that cannot vary keep their values.
    """

    model: Turns
    layout: Layout
    origin: FloatArray

    def __call__(self, arrays: Mapping[str, FloatArray]) -> FloatArray:
        """Return positions (n, dim) at arrays by name, (n, *shape) each."""
        n = len(next(iter(arrays.values())))
        numbers = np.tile(self.origin, (n, 1))
        start = 0
        for name, size in self.layout.sizes.items():
            where = self.layout.places[start : start + size]
            start += size
            if name in arrays:
                numbers[:, where] = arrays[name].reshape(n, size)
        return np.array([self.model.call("param_unconstrain", row) for row in numbers])


def report(model: Turns, seed: int) -> tuple[Constrained, Parameters]:
    """Return the function to all that a model reports, and names and shapes of that.

    Labels count from 1, as Stan does.
    """
    layout = Layout.of(model.call("param_names", include_tp=True, include_gq=True))
    constrained = Constrained(model, layout, seed)
    plain = Parameters({name: Reported(shape) for name, shape in layout.shapes.items()})
    constant = _constants(constrained, model.call("param_unc_num"))
    reported = {
        name: Reported(
            layout.shapes[name],
            constant=tuple(np.flatnonzero(constant[where]).tolist()),
            axes=tuple(Axis(labels=tuple(range(1, n + 1))) for n in layout.shapes[name]),
        )
        for name, where in plain.slices().items()
    }
    return constrained, Parameters.declare(reported)


def line_of(model: Turns) -> Parameters:
    """Return names of a model's parameters, with their numbers on the line in Stan's order."""
    sizes = Layout.of(model.call("param_unc_names")).sizes
    return Parameters({name: Parameter((size,)) for name, size in sizes.items()})


def unconstrain(model: Turns) -> Positions:
    """Return the function from parameters to positions on the line."""
    origin = model.call("param_constrain", np.zeros(model.call("param_unc_num")))
    layout = Layout.of(model.call("param_names"))
    return Positions(model, layout, np.asarray(origin, dtype=np.float64))


def _constants(constrained: Constrained, dim: int) -> np.ndarray:
    """Return which reported numbers are constant, such as ones of a correlation matrix."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)  # these positions are no draws
        found = constrained(np.random.default_rng(0).uniform(-2.0, 2.0, size=(_TRIED, dim)))
    return np.asarray((np.abs(found - found[0]) <= _ROUNDING * np.abs(found[0])).all(axis=0))
