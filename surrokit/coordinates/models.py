"""The map from the line to what a model reports that another library has written down."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import numpy as np

from surrokit.arguments import numbers
from surrokit.coordinates.parameters import Parameter, Parameters
from surrokit.errors import ConfigurationError, ShapeError, TargetError
from surrokit.types import BoolArray, FloatArray

SUFFIX = ".unconstrained"
"""Ends the names of a model's own numbers on the line."""


@attrs.frozen
class Axis:
    """One axis of an array that a model reports.

    Parameters
    ----------
    name
        What the model calls it; None for no name.
    labels
        The coordinate of each place; None for places counted from 0.
    """

    name: str | None = None
    labels: tuple[Any, ...] | None = None

    def texts(self, size: int) -> list[str]:
        """Return a text for each of its places, none of them twice."""
        told = [str(label) for label in self.labels or ()]
        return told if len(set(told)) == size else [str(place) for place in range(size)]


@attrs.frozen
class Reported(Parameter):
    """An array that a model reports, some numbers of which may be the same at all positions.

    Parameters
    ----------
    constant
        Which numbers these are, as places in the array in C order.
    axes
        One for each axis of the array, or none at all.

    Raises
    ------
    ConfigurationError
        If there are fewer axes than the array has, or more.
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


@attrs.frozen(kw_only=True, eq=False)
class ModelMap:
    """The map of a model whose library has an unconstrained space of its own.

    U is given on that space, Jacobian included. A user's position holds all that the model reports:
    its parameters, and quantities that follow from them, which no starting position needs.

    Parameters
    ----------
    reported
        Names and shapes of all that the model reports.
    own
        Names and shapes of its parameters' arrays in the unconstrained space.
    constrain
        From positions on the line (n, dim) to reported ones (n, n_user).
    unconstrain
        From arrays of the model's parameters by name, each of shape ``(n, *shape)``, to
        positions on the line (n, dim); NaN, or an exception, where they are outside the support.
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

    @property
    def between(self) -> BoolArray:
        """Whether each number on the line is that of a parameter with two bounds: unknown here."""
        return np.zeros(self.line.dim, dtype=bool)

    def to_bounded(self, unbounded: FloatArray) -> FloatArray:
        """Return all that the model reports, shape (..., n_user), at z of shape (..., dim)."""
        z = np.asarray(unbounded, dtype=np.float64)
        return self.constrain(z.reshape(-1, z.shape[-1])).reshape(*z.shape[:-1], self.n_user)

    def to_unbounded(self, bounded: FloatArray) -> FloatArray:
        """Return z, shape (n, dim), at reported positions (n, n_user)."""
        by_name = self.reported.split(np.asarray(bounded, dtype=np.float64))
        return self.unconstrain({name: by_name[name] for name in self.own.specs})

    def read(self, initial: object, n: int) -> FloatArray:
        """Return a user's starting positions on the line, shape (n, dim).

        Parameters
        ----------
        initial
            Arrays of the model's parameters by name, each of its own shape, or with n in front.
        n
            Number of positions.

        Raises
        ------
        ShapeError
            If names or shapes are others.
        TargetError
            If a position is outside the support.
        """
        names = ", ".join(self.own.specs)
        if not isinstance(initial, Mapping) or set(initial) != set(self.own.specs):
            given = f"a {type(initial).__name__}"
            if isinstance(initial, Mapping):
                given = ", ".join(map(str, initial))
            raise ShapeError(
                f"initial values of this model must be given by name, for {names} and for nothing "
                f"that follows from them, got {given or 'none'}"
            )
        arrays = {name: self._rows(name, initial[name], n) for name in self.own.specs}
        try:
            z = self.unconstrain(arrays)
        except Exception as error:
            raise TargetError(
                f"the model cannot take the initial values of {names}: "
                f"{type(error).__name__}: {error}"
            ) from error
        if not np.isfinite(z).all():
            chain, i = np.argwhere(~np.isfinite(z))[0]
            name = self.line.labels[i].replace(SUFFIX, "")
            raise TargetError(
                f"the initial value of {name!r} in chain {chain} is outside the support of the "
                "model; start inside"
            )
        return z

    def _rows(self, name: str, given: Any, n: int) -> FloatArray:
        array, shape = numbers(f"the initial value of {name!r}", given), self.reported.specs[name]
        if array.shape not in (shape.shape, (n, *shape.shape)):
            raise ShapeError(
                f"the initial value of {name!r} must have shape {shape.shape} for all chains or "
                f"{(n, *shape.shape)} for each, got {array.shape}"
            )
        return np.broadcast_to(array, (n, *shape.shape))

    def log_jacobian(self, unbounded: FloatArray) -> FloatArray:
        """Refuse: the library keeps the volumes of its map to itself.

        Raises
        ------
        ConfigurationError
            Always.
        """
        del unbounded
        raise ConfigurationError(
            "evaluations in the user's coordinates cannot be taken over, since the model's library "
            "adds its Jacobian by itself; leave evaluations out, or pass warm_start= with the file "
            "of a former run"
        )

    def log_jacobian_gradient(self, unbounded: FloatArray) -> FloatArray:
        """Refuse; see :meth:`log_jacobian`."""
        return self.log_jacobian(unbounded)

    def vjp(self, unbounded: FloatArray, gradient: FloatArray) -> FloatArray:
        """Refuse; see :meth:`log_jacobian`."""
        del gradient
        return self.log_jacobian(unbounded)
