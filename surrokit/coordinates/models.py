"""Functions of a user's that take parameters by name, and models of other libraries."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NoReturn

import attrs
import numpy as np

from surrokit.coordinates.constraints import CoordinateMap
from surrokit.coordinates.parameters import Parameter, Parameters
from surrokit.errors import ConfigurationError, ShapeError, TargetError
from surrokit.types import BoolArray, FloatArray, Pair


def _by_name(
    what: str, function: Callable[..., Any], parameters: Parameters, position: FloatArray
) -> Any:
    """Return what a function of named arrays gives at (dim,) or (n, dim); gradients as vectors."""
    result = function(**parameters.split(position))
    if isinstance(result, Mapping):
        return parameters.position(result)
    has_both = what == "value_and_gradient" and isinstance(result, tuple) and len(result) > 1
    if has_both and isinstance(result[1], Mapping):
        return result[0], parameters.position(result[1]), *result[2:]
    return result


def called(
    what: str, function: Callable[..., Any] | None, parameters: Parameters, *, by_name: bool = True
) -> Any:
    """Return a function of one position, whichever way the user's takes the parameters.

    A function that takes just the parameters' names is called with arrays by name. One that takes a
    single argument is called with the vector. ``what`` is for messages. Where the user gave no
    names, ``by_name`` is False: then any function of one argument takes the vector.
    ConfigurationError is raised if it takes other names.
    """
    if function is None:
        return None
    try:
        arguments = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # compiled code has none
        return function
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [
        each.name
        for each in arguments
        if each.kind not in variable and each.default is inspect.Parameter.empty
    ]
    names = {each.name for each in arguments if each.kind is not inspect.Parameter.VAR_KEYWORD}
    takes_any = not names and len(arguments) > 0
    declared = set(parameters.specs)
    named = by_name or len(needed) != 1
    if named and set(needed) <= declared and (declared <= names or takes_any):
        return partial(_by_name, what, function, parameters)
    first = next(iter(arguments), None)
    if len(needed) <= 1 and first is not None and first.kind is not inspect.Parameter.KEYWORD_ONLY:
        return function
    raise ConfigurationError(
        f"{what} takes {', '.join(needed) or 'no argument'}, but the parameters are "
        f"{', '.join(parameters.specs)}; give it one argument for the whole vector, or arguments "
        "of these names"
    )


SUFFIX = ".unconstrained"
"""Ends the names of a model's own numbers on the line."""


@attrs.frozen
class Axis:
    """One axis of an array that a model reports: its name, and the coordinate of each place.

    Both may be None: for no name, and for places counted from 0.
    """

    name: str | None = None
    labels: tuple[Any, ...] | None = None

    def texts(self, size: int) -> list[str]:
        """Return a text for each of its places, none of them twice."""
        found = [str(label) for label in self.labels or ()]
        return found if len(set(found)) == size else [str(place) for place in range(size)]


@attrs.frozen
class Reported(Parameter):
    """An array that a model reports, with one axis for each of its own, or none at all.

    ``constant`` are the places in C order of numbers that are the same at all positions.
    """

    constant: tuple[int, ...] = attrs.field(default=(), kw_only=True)
    axes: tuple[Axis, ...] = attrs.field(default=(), kw_only=True)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if self.axes and len(self.axes) != len(self.shape):
            raise ConfigurationError(
                f"an array of shape {self.shape} needs as many axes, got {len(self.axes)}"
            )

    @property
    def indices(self) -> list[str]:
        """What stands in brackets behind the name of each number: labels of its axes."""
        axes = self.axes or (Axis(),) * len(self.shape)
        texts = [axis.texts(size) for axis, size in zip(axes, self.shape, strict=True)]
        return [",".join(index) for index in itertools.product(*texts)]

    @property
    def varies(self) -> BoolArray:
        """Which of its numbers are not constant, shape (size,)."""
        found = np.ones(self.size, dtype=bool)
        found[list(self.constant)] = False
        return found


def reported_as(
    shapes: Mapping[str, tuple[int, ...]],
    constrain: Callable[[FloatArray], FloatArray],
    positions: FloatArray,
    axes: Callable[[str], tuple[Axis, ...]] | None = None,
) -> Parameters:
    """Return what a model reports, by shapes and axes of its arrays.

    Numbers that are the same at all of some positions (n, dim) on the line are constant, such as
    ones of a correlation matrix; ``constrain`` is that of :class:`ModelMap`.
    """
    found = constrain(positions)
    # the diagonal of a correlation matrix is one to the last digits
    constant = (np.abs(found - found[0]) <= 1e-14 * np.abs(found[0])).all(axis=0)
    slices = Parameters({name: Reported(shape) for name, shape in shapes.items()}).slices()
    reported = {}
    for name, where in slices.items():
        places = tuple(np.flatnonzero(constant[where]).tolist())
        of_axes = axes(name) if axes else ()
        reported[name] = Reported(shapes[name], constant=places, axes=of_axes)
    return Parameters.declare(reported)


@attrs.frozen(kw_only=True, eq=False)
class ModelMap(CoordinateMap):
    """The map of a model whose library has an unconstrained space of its own.

    U is given on that space, Jacobian included. A user's position holds all that the model reports:
    its parameters, and quantities that follow from them, which no starting position needs.

    Parameters
    ----------
    reported, own
        Names and shapes of all that the model reports, and of its parameters' arrays in the
        unconstrained space.
    constrain
        From positions on the line (n, dim) to reported ones (n, n_user).
    unconstrain
        From arrays ``(n, *shape)`` of the model's parameters by name to positions on the line
        (n, dim); NaN, or an exception, where they are outside the support.
    """

    reported: Parameters
    own: Parameters
    constrain: Callable[[FloatArray], FloatArray]
    unconstrain: Callable[[Mapping[str, FloatArray]], FloatArray]
    line: Parameters = attrs.field(init=False)

    @line.default
    def _line(self) -> Parameters:
        named = {name + SUFFIX: Parameter(spec.shape) for name, spec in self.own.specs.items()}
        return Parameters(named)

    @property
    def n_user(self) -> int:
        """Numbers in the user's position vector."""
        return self.reported.dim

    @property
    def varies(self) -> BoolArray:
        """Which reported numbers are not constant, shape (n_user,)."""
        return self.reported.varies

    def to_bounded(self, z: FloatArray) -> FloatArray:
        """Return all that the model reports, shape (..., n_user), at z of shape (..., dim)."""
        z = np.asarray(z, dtype=np.float64)
        return self.constrain(z.reshape(-1, z.shape[-1])).reshape(*z.shape[:-1], self.n_user)

    def to_unbounded(self, q: FloatArray) -> FloatArray:
        """Return z, shape (n, dim), at reported positions (n, n_user)."""
        by_name = self.reported.split(np.asarray(q, dtype=np.float64))
        return self.unconstrain({name: by_name[name] for name in self.own.specs})

    def volume(self, z: FloatArray) -> Pair:
        """Return zeros: U on the line is the density that the library has."""
        return np.zeros(len(z)), np.zeros(z.shape)

    def read(self, initial: object, n: int) -> FloatArray:
        """Return a user's starting positions on the line, shape (n, dim), from arrays by name.

        Arrays have the shapes of the model's parameters, or n in front of these. ShapeError is
        raised for others, TargetError for positions outside the support.
        """
        names = ", ".join(self.own.specs)
        if not isinstance(initial, Mapping):
            raise ShapeError(
                f"initial values of this model must be given by name, for {names}, got a "
                f"{type(initial).__name__}"
            )
        sampled = Parameters({name: self.reported.specs[name] for name in self.own.specs})
        values = sampled.position(initial)
        if values.shape not in ((sampled.dim,), (n, sampled.dim)):
            raise ShapeError(
                f"initial values must be given for all chains or for each of {n}, got "
                f"{values.shape[:-1]}"
            )
        try:
            z = self.unconstrain(sampled.split(np.broadcast_to(values, (n, sampled.dim))))
        except Exception as error:
            raise TargetError(
                f"the model cannot take the initial values of {names}: "
                f"{type(error).__name__}: {error}"
            ) from error
        if not np.isfinite(z).all():
            chain, i = np.argwhere(~np.isfinite(z))[0]
            raise TargetError(
                f"the initial value of {self.line.labels[i].replace(SUFFIX, '')!r} in chain "
                f"{chain} is outside the support of the model; start inside"
            )
        return z

    def vjp(self, z: FloatArray, gradient: FloatArray) -> FloatArray:
        """Reject; see :meth:`reject_evaluations`."""
        del z, gradient
        self.reject_evaluations()

    def reject_evaluations(self) -> NoReturn:
        """Raise ConfigurationError: the library keeps the slopes of its map to itself."""
        raise ConfigurationError(
            "evaluations in the user's coordinates cannot be taken over, since the model's library "
            "adds its Jacobian by itself; give warm_start the file of a former run, or leave it out"
        )
