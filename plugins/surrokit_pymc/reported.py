"""What a model of PyMC reports at positions on the line, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from surrokit.coordinates.models import Axis, Reported
from surrokit.coordinates.parameters import Parameters
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.types import FloatArray
from surrokit_pymc.compiled import Compiled
from surrokit_pymc.line import Line, Quantities, Unconstrained

_TRIED = 16  # positions at which a number is the same if it is constant
_ROUNDING = 1e-14  # relative: the diagonal of a correlation matrix is one to the last digits


@attrs.frozen(eq=False)
class Constrained:
    """Reported quantities at rows of positions on the line.

    Parameters
    ----------
    quantities
        The compiled function of one position.
    reported
        Their names and shapes.
    """

    quantities: Compiled
    reported: Parameters

    def __call__(self, positions: FloatArray) -> FloatArray:
        """Return them, shape (n, n_user), at positions (n, dim).

        Raises
        ------
        ShapeError
            If a quantity has another shape than at the start.
        """
        found = np.empty((len(positions), self.reported.dim))
        places = self.reported.slices().items()
        for row, position in zip(found, positions, strict=True):
            for (name, where), array in zip(places, self.quantities(position), strict=True):
                if np.shape(array) != self.reported.specs[name].shape:
                    raise ShapeError(
                        f"{name!r} has shape {self.reported.specs[name].shape} at the start and "
                        f"{np.shape(array)} elsewhere; leave it out by var_names"
                    )
                row[where] = np.ravel(array)
        return found


@attrs.frozen(eq=False)
class Positions:
    """Positions on the line of values of the free variables.

    Parameters
    ----------
    compiled
        The compiled function of one value of each.
    own
        Names of the free variables, in the order of the line.
    """

    compiled: Compiled
    own: Parameters

    def __call__(self, arrays: Mapping[str, FloatArray]) -> FloatArray:
        """Return positions (n, dim) at arrays by name, (n, *shape) each."""
        rows = zip(*(arrays[name] for name in self.own.specs), strict=True)
        return np.array([self.compiled(*row) for row in rows])


def report(model: Any, given: Any, line: Line, names: Sequence[str]) -> Constrained:
    """Return the function to reported quantities, with names, shapes and axes of these.

    Parameters
    ----------
    model
        The model, its data frozen.
    given
        The model as the user has it, which knows its dimensions and where it starts.
    line, names
        The line, and what to report.

    Raises
    ------
    ConfigurationError
        If a quantity is drawn at random, or a free variable has no numbers.
    """
    quantities = Quantities(line, tuple(names))
    _check_fixed(names, quantities.expressions(model))
    compiled = Compiled(model, quantities)
    start = line.start(given)
    shapes = {name: np.shape(array) for name, array in zip(names, compiled(start), strict=True)}
    kept = tuple(name for name in names if 0 not in shapes[name])  # the others have no numbers
    if len(kept) < len(names):
        compiled = Compiled(model, Quantities(line, kept))
    plain = Parameters({name: Reported(shapes[name]) for name in kept})
    constant = _constants(Constrained(compiled, plain), start)
    reported = {
        name: Reported(
            shapes[name],
            constant=tuple(np.flatnonzero(constant[where]).tolist()),
            axes=_axes(given, name, len(shapes[name])),
        )
        for name, where in plain.slices().items()
    }
    return Constrained(compiled, Parameters.declare(reported))


def unconstrain(model: Any, line: Line) -> Positions:
    """Return the function from values of the free variables to positions on the line."""
    return Positions(Compiled(model, Unconstrained(line)), line.own)


def is_random(expression: Any) -> bool:
    """Return whether a number of PyTensor is drawn at random whenever it is computed."""
    from pytensor.graph.traversal import ancestors
    from pytensor.tensor.random.type import RandomType

    return any(isinstance(each.type, RandomType) for each in ancestors([expression]))


def _check_fixed(names: Sequence[str], expressions: Sequence[Any]) -> None:
    for name, expression in zip(names, expressions, strict=True):
        if is_random(expression):
            raise ConfigurationError(
                f"{name!r} is drawn at random whenever it is computed, so it is no function of a "
                "draw; leave it out by var_names, and draw it by pymc.sample_posterior_predictive"
            )


def _constants(constrained: Constrained, start: FloatArray) -> np.ndarray:
    """Return which reported numbers are constant, such as ones of a correlation matrix."""
    rng = np.random.default_rng(0)
    found = constrained(start + rng.uniform(-1.0, 1.0, size=(_TRIED, len(start))))
    return np.asarray((np.abs(found - found[0]) <= _ROUNDING * np.abs(found[0])).all(axis=0))


def _axes(model: Any, name: str, n: int) -> tuple[Axis, ...]:
    dims = model.named_vars_to_dims.get(name) or ()
    if len(dims) != n:
        return ()
    return tuple(Axis() if dim is None else Axis(dim, model.coords.get(dim)) for dim in dims)
