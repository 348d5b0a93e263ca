"""Several forward maps of the same parameters, as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import numpy as np

from surrokit.arguments import check_functions, unmasked
from surrokit.coordinates.calling import called
from surrokit.coordinates.parameters import Parameters
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.types import FloatArray

_AXES = {"forward": 0, "jacobian": 1, "hessian": 2}
"""Axes of a map's result, or of its derivatives, after that of the outputs."""


def join_maps(
    what: str, given: Any, parameters: Parameters, sizes: Mapping[str, int] | None
) -> Any:
    """Return a map or its derivatives as one function, whether it is one or one for each data set.

    Parameters
    ----------
    what
        ``forward``, ``jacobian``, ``hessian`` or ``vjp``.
    given
        A function, a dictionary of functions by data set, or None.
    parameters
        Those that each map takes.
    sizes
        Count of the data of each set, by name; None where they have no names.

    Raises
    ------
    ConfigurationError
        If there is not one function for each data set, or something is no function.
    """
    if not isinstance(given, Mapping):
        return called(what, given, parameters) if what in ("forward", "jacobian") else given
    if sizes is None:
        raise ConfigurationError(
            f"{what} holds functions by name, but data has no names; give data={{name: "
            "surrokit.observed(...)} by the same names"
        )
    if set(given) != set(sizes):
        raise ConfigurationError(
            f"{what} must hold one function for each of the data {', '.join(sizes)}, got "
            f"{', '.join(map(str, given)) or 'none'}"
        )
    check_functions(**{f"{what} of {name!r}": function for name, function in given.items()})
    if any(function is None for function in given.values()):
        raise ConfigurationError(
            f"{what} must hold one function for each of the data {', '.join(sizes)}, got None; "
            f"leave {what} out unless all maps have it"
        )
    by_name = what in ("forward", "jacobian")
    functions = tuple(
        called(f"{what} of {name!r}", given[name], parameters) if by_name else given[name]
        for name in sizes
    )
    counts = tuple(sizes.values())
    if what == "vjp":
        return JoinedAdjoints(functions, counts)
    return JoinedMaps(what, tuple(sizes), functions, counts)


@attrs.frozen(eq=False)
class JoinedMaps:
    """Maps, or their derivatives of one order, one after another.

    Parameters
    ----------
    what
        What they are, for messages.
    names
        Of the maps.
    functions
        Each of one position (dim,), or of rows of them.
    counts
        How many outputs each has.
    """

    what: str
    names: tuple[str, ...]
    functions: tuple[Callable[[FloatArray], Any], ...]
    counts: tuple[int, ...]

    def __call__(self, q: FloatArray) -> FloatArray:
        """Return all outputs, or their derivatives, joined along the axis of the outputs.

        Raises
        ------
        ShapeError
            If a map gives another number of outputs than there are data.
        """
        rows = q.ndim - 1
        parts = []
        triples = zip(self.names, self.functions, self.counts, strict=True)
        for name, function, count in triples:
            part = np.array(unmasked(function(q.copy())))
            if part.ndim == rows + _AXES[self.what]:  # a map with one output may leave that axis
                part = np.expand_dims(part, rows)
            if part.ndim <= rows or part.shape[rows] != count:
                raise ShapeError(
                    f"{self.what} of {name!r} must give {count} outputs, one for each datum, got "
                    f"shape {part.shape} for positions of shape {q.shape}"
                )
            parts.append(part)
        return np.concatenate(parts, axis=rows)


@attrs.frozen(eq=False)
class JoinedAdjoints:
    """Adjoints of several maps as that of all their outputs.

    Parameters
    ----------
    functions
        Each of a position (dim,) and weights (m,), or of rows of them.
    counts
        How many outputs each map has.
    """

    functions: tuple[Callable[[FloatArray, FloatArray], Any], ...]
    counts: tuple[int, ...]

    def __call__(self, q: FloatArray, weights: FloatArray) -> Any:
        """Return the gradients of the outputs' weighted sum, of the shape of ``q``."""
        parts = np.split(weights, np.cumsum(self.counts)[:-1], axis=-1)
        pairs = zip(self.functions, parts, strict=True)
        return sum(np.array(unmasked(function(q.copy(), part.copy()))) for function, part in pairs)
