"""PyMC's unconstrained space as one vector, and functions of a position in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from surrokit.coordinates.parameters import Parameter, Parameters
from surrokit.types import FloatArray
from surrokit_pymc.compiled import Function


@attrs.frozen
class Line:
    """The free variables of a model, one after another, each in PyMC's unconstrained space.

    Parameters
    ----------
    own
        Names of the variables, and their shapes there.
    """

    own: Parameters

    @classmethod
    def of(cls, model: Any, names: Sequence[str]) -> Line:
        """Return the line of a model's free variables, in the order of their names."""
        start = model.initial_point(0)
        shapes = {name: np.shape(start[_value(model, name).name]) for name in names}
        return cls(Parameters({name: Parameter(shape) for name, shape in shapes.items()}))

    def variables(self, model: Any) -> list[Any]:
        """Return PyTensor's variables of the parts of a position, in their order."""
        return [_value(model, name) for name in self.own.specs]

    def start(self, model: Any) -> FloatArray:
        """Return where PyMC starts a model, shape (dim,)."""
        start = model.initial_point(0)
        return np.concatenate([np.ravel(start[each.name]) for each in self.variables(model)])

    def ravel(self, model: Any, outputs: Sequence[Any]) -> tuple[list[Any], Any]:
        """Return outputs of a model as ones of a position vector, and that vector."""
        from pymc.pytensorf import join_nonshared_inputs

        variables = self.variables(model)
        return join_nonshared_inputs(  # type: ignore[no-any-return]
            point=model.initial_point(0), outputs=list(outputs), inputs=variables
        )


def _value(model: Any, name: str) -> Any:
    return model.rvs_to_values[model[name]]


@attrs.frozen
class LogDensity:
    """Compiles the log density of a position (dim,) on the line."""

    line: Line

    def __call__(self, model: Any) -> Function:
        """Return the function."""
        (output,), position = self.line.ravel(model, [model.logp()])
        function: Function = model.compile_fn(output, inputs=[position], point_fn=False)
        return function


@attrs.frozen
class LogDensityAndGradient:
    """Compiles the log density of a position (dim,) on the line together with its gradient."""

    line: Line

    def __call__(self, model: Any) -> Function:
        """Return the function."""
        function: Any = model.logp_dlogp_function(
            grad_vars=self.line.variables(model), ravel_inputs=True
        )
        function.set_extra_values({})  # there are none, and older PyMC wants to be told
        compiled: Function = function
        return compiled


@attrs.frozen
class Quantities:
    """Compiles quantities of a model, as a list of arrays, at a position (dim,) on the line.

    Parameters
    ----------
    line
        The line.
    names
        The quantities.
    """

    line: Line
    names: tuple[str, ...]

    def __call__(self, model: Any) -> Function:
        """Return the function."""
        outputs, position = self.line.ravel(model, self.expressions(model))
        function: Function = model.compile_fn(outputs, inputs=[position], point_fn=False)
        return function

    def expressions(self, model: Any) -> list[Any]:
        """Return PyTensor's expressions of the quantities, by parts of a position."""
        found: list[Any] = model.replace_rvs_by_values([model[name] for name in self.names])
        return found


@attrs.frozen
class Unconstrained:
    """Compiles the position (dim,) on the line of free variables' values, an array for each."""

    line: Line

    def __call__(self, model: Any) -> Function:
        """Return the function."""
        import pytensor.tensor as pt
        from pytensor.graph.replace import graph_replace

        free = [model[name] for name in self.line.own.specs]
        given = [variable.type(name=variable.name) for variable in free]
        parts = [_forward(model, *pair) for pair in zip(free, given, strict=True)]
        # bounds of one variable may be another
        parts = graph_replace(parts, dict(zip(free, given, strict=True)), strict=False)
        joined = pt.join(0, *[pt.as_tensor_variable(part).ravel() for part in parts])
        function: Function = model.compile_fn(joined, inputs=given, point_fn=False)
        return function


def _forward(model: Any, variable: Any, value: Any) -> Any:
    transform = model.rvs_to_transforms[variable]
    return value if transform is None else transform.forward(value, *variable.owner.inputs)
