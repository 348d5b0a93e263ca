"""What a model of PyMC reports at positions on the line, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from surrokit.coordinates.models import Axis, ModelMap, Reported, reported_as
from surrokit.coordinates.parameters import Parameters
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.types import FloatArray
from surrokit_pymc.compiled import Compiled, Function, Line, is_random

_TRIED = 16  # positions at which a number is the same if it is constant


def map_of_model(model: Any, given: Any, line: Line, names: Sequence[str]) -> ModelMap:
    """Return the map from the line to quantities of a frozen model, with names, shapes and axes.

    The model as it was ``given`` knows its dimensions and where it starts. ConfigurationError is
    raised if a quantity is drawn at random.
    """
    for name, expression in zip(names, _expressions(model, names), strict=True):
        if is_random(expression):
            raise ConfigurationError(
                f"{name!r} is drawn at random whenever it is computed, so it is no function of a "
                "draw; leave it out by var_names, and draw it by pymc.sample_posterior_predictive"
            )
    start = line.start(given)
    compiled = _quantities(model, line, names)
    shapes = {name: np.shape(array) for name, array in zip(names, compiled(start), strict=True)}
    kept = [name for name in names if 0 not in shapes[name]]  # the others have no numbers
    if len(kept) < len(names):
        compiled = _quantities(model, line, kept)
    shapes = {name: shapes[name] for name in kept}
    plain = Parameters({name: Reported(shape) for name, shape in shapes.items()})
    reported = reported_as(
        shapes,
        _Constrained(compiled, plain),
        start + np.random.default_rng(0).uniform(-1.0, 1.0, size=(_TRIED, len(start))),
        lambda name: _axes(given, name, len(shapes[name])),
    )
    return ModelMap(
        reported=reported,
        own=line.own,
        constrain=_Constrained(compiled, reported),
        unconstrain=_Unconstrained(Compiled(model, lambda of: _inverse(of, line)), line.own),
    )


@attrs.frozen(eq=False)
class _Constrained:
    """From positions (n, dim) to reported quantities (n, n_user)."""

    quantities: Compiled
    reported: Parameters

    def __call__(self, positions: FloatArray) -> FloatArray:
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
class _Unconstrained:
    """From values of the free variables, (n, *shape) each, to positions (n, dim)."""

    compiled: Compiled
    own: Parameters

    def __call__(self, arrays: Mapping[str, FloatArray]) -> FloatArray:
        rows = zip(*(arrays[name] for name in self.own.specs), strict=True)
        return np.array([self.compiled(*row) for row in rows])


def _expressions(model: Any, names: Sequence[str]) -> list[Any]:
    """Return PyTensor's expressions of quantities, by parts of a position."""
    found: list[Any] = model.replace_rvs_by_values([model[name] for name in names])
    return found


def _quantities(model: Any, line: Line, names: Sequence[str]) -> Compiled:
    return Compiled(model, lambda of: line.compile(of, _expressions(of, names)))


def _inverse(model: Any, line: Line) -> Function:
    """Return the compiled function from values of the free variables to a position."""
    import pytensor.tensor as pt
    from pytensor.graph.replace import graph_replace

    free = [model[name] for name in line.own.specs]
    given = [variable.type(name=variable.name) for variable in free]
    parts = []
    for variable, value in zip(free, given, strict=True):
        transform = model.rvs_to_transforms[variable]
        is_plain = transform is None
        parts.append(value if is_plain else transform.forward(value, *variable.owner.inputs))
    # bounds of one variable may be another
    parts = graph_replace(parts, dict(zip(free, given, strict=True)), strict=False)
    joined = pt.join(0, *[pt.as_tensor_variable(part).ravel() for part in parts])
    function: Function = model.compile_fn(joined, inputs=given, point_fn=False)
    return function


def _axes(model: Any, name: str, n: int) -> tuple[Axis, ...]:
    dims = model.named_vars_to_dims.get(name) or ()
    if len(dims) != n:
        return ()
    return tuple(Axis() if dim is None else Axis(dim, model.coords.get(dim)) for dim in dims)
