"""What a model of PyMC says of its observed variable, and of the priors of the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.arguments import check_positions
from surrokit.errors import NotASumError
from surrokit.targets.summed import Form
from surrokit.types import Capabilities, FloatArray
from surrokit_pymc.compiled import Compiled, Function
from surrokit_pymc.line import Line


@attrs.frozen
class Known:
    """A distribution of PyMC that is a family.

    Parameters
    ----------
    family
        Of :func:`surrokit.rows_potential`.
    place, form
        Which of its parameters has the predictor in it, and how.
    constants
        Places of its other parameters, with the names of the family's settings.
    reciprocal
        Whether it is one over that parameter.
    """

    family: str
    place: int
    form: Form
    constants: Mapping[int, str] = attrs.field(factory=dict)
    reciprocal: bool = False


KNOWN: Mapping[str, Known] = {
    "BernoulliRV": Known("logistic", 0, Form.LOGISTIC),
    "BinomialRV": Known("binomial", 1, Form.LOGISTIC, {0: "total"}),
    "PoissonRV": Known("poisson", 0, Form.EXPONENTIAL),
    "ExponentialRV": Known("exponential", 0, Form.EXPONENTIAL, reciprocal=True),
    "NormalRV": Known("gaussian", 0, Form.LINEAR, {1: "scale"}),
    "StudentTRV": Known("student", 1, Form.LINEAR, {0: "degrees", 2: "scale"}),
}
"""Random variables of PyTensor by the names of their classes."""


def observed_variable(model: Any) -> Any:
    """Return a model's one observed variable, whose distribution is a family.

    Raises
    ------
    NotASumError
        If there is none, or it is of another kind, or the model has potentials.
    """
    if model.potentials:
        raise NotASumError(
            f"{model.potentials[0].name!r} is a pymc.Potential, whose rows are not known"
        )
    names = [variable.name for variable in model.observed_RVs]
    if len(names) != 1:
        raise NotASumError(
            f"it has {len(names)} observed variables ({', '.join(names) or 'none'}), not one"
        )
    variable = model.observed_RVs[0]
    kind = type(variable.owner.op).__name__
    if kind not in KNOWN:
        raise NotASumError(
            f"{variable.name!r} is distributed as {kind.removesuffix('RV')}, which is no family of "
            f"rows; there are {', '.join(name.removesuffix('RV') for name in KNOWN)}"
        )
    return variable


def parameters_of(variable: Any) -> list[Any]:
    """Return the parameters of a random variable's distribution, expressions of PyTensor."""
    node = variable.owner
    return list(node.op.dist_params(node))


@attrs.frozen
class Predictors:
    """Compiles the predictors of the observed variable, at a position (dim,) on the line."""

    line: Line

    def __call__(self, model: Any) -> Function:
        """Return the function."""
        import pytensor.tensor as pt

        variable = observed_variable(model)
        known = KNOWN[type(variable.owner.op).__name__]
        given = parameters_of(variable)[known.place]
        if known.form is Form.EXPONENTIAL:
            given = -pt.log(given) if known.reciprocal else pt.log(given)
        elif known.form is Form.LOGISTIC:
            given = pt.log(given) - pt.log1p(-given)
        return _compile(self.line, model, [_broadcast(model, variable, given)])


@attrs.frozen
class Constants:
    """Compiles the other parameters of the observed variable, at a position: a list of arrays."""

    line: Line

    def __call__(self, model: Any) -> Function:
        """Return the function."""
        variable = observed_variable(model)
        known = KNOWN[type(variable.owner.op).__name__]
        given = parameters_of(variable)
        outputs = [_broadcast(model, variable, given[place]) for place in known.constants]
        return _compile(self.line, model, outputs)


@attrs.frozen
class Priors:
    """Compiles means and standard deviations of normal free variables: a list of arrays."""

    line: Line

    def __call__(self, model: Any) -> Function:
        """Return the function."""
        import pytensor.tensor as pt

        outputs = [
            pt.broadcast_to(each, spec.shape).ravel()
            for name, spec in self.line.own.specs.items()
            for each in parameters_of(model[name])
        ]
        return _compile(self.line, model, outputs)


@attrs.frozen
class EachRow:
    """Compiles the log likelihood of each observed number, shape (n_rows,)."""

    line: Line

    def __call__(self, model: Any) -> Function:
        """Return the function."""
        variable = observed_variable(model)
        (each,) = model.logp(vars=[variable], sum=False)
        outputs, position = self.line.ravel(model, [each.ravel()])
        function: Function = model.compile_fn(outputs, inputs=[position], point_fn=False)
        return function


@attrs.frozen
class Beside:
    """Compiles minus the log density of all but the observed variable, or a derivative of it.

    Parameters
    ----------
    line
        The line.
    order
        0 for the number, 1 for number and gradient, 2 for the Hessian.
    """

    line: Line
    order: int

    def __call__(self, model: Any) -> Function:
        """Return the function."""
        from pytensor.gradient import grad, hessian

        whole = -model.logp(vars=model.free_RVs)
        (number,), position = self.line.ravel(model, [whole])
        if self.order == 2:
            outputs = hessian(number, position, disconnected_inputs="ignore")
        elif self.order == 1:
            outputs = [number, grad(number, position, disconnected_inputs="ignore")]
        else:
            outputs = number
        function: Function = model.compile_fn(outputs, inputs=[position], point_fn=False)
        return function


@attrs.frozen(eq=False)
class Unobserved:
    """What U has beside the observed variable, one position at a time.

    Parameters
    ----------
    dim
        Numbers in a position.
    number, both, bend
        Compiled functions of one position.
    """

    dim: int
    number: Compiled
    both: Compiled
    bend: Compiled

    @classmethod
    def of(cls, model: Any, line: Line) -> Unobserved:
        """Return that of a model."""
        functions = [Compiled(model, Beside(line, order)) for order in range(3)]
        return cls(line.own.dim, *functions)

    @property
    def capabilities(self) -> Capabilities:
        """Gradients and Hessians."""
        return frozenset({can.GRADIENT, can.HESSIAN})

    def value(self, positions: FloatArray) -> FloatArray:
        """Return it, shape (n,), at positions of shape (n, dim)."""
        q = check_positions(positions, self.dim)
        return np.array([float(self.number(row)) for row in q])

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return it, shape (n,), and its gradient, shape (n, dim)."""
        q = check_positions(positions, self.dim)
        pairs = [self.both(row) for row in q]
        values = np.array([float(value) for value, _ in pairs])
        return values, np.array([slope for _, slope in pairs]).reshape(q.shape)

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return second derivatives, shape (n, dim, dim)."""
        q = check_positions(positions, self.dim)
        return np.array([self.bend(row) for row in q]).reshape(len(q), self.dim, self.dim)


def _broadcast(model: Any, variable: Any, given: Any) -> Any:
    import pytensor.tensor as pt

    shape = np.shape(observed_values(model, variable))
    return pt.broadcast_to(given, shape).ravel()


def observed_values(model: Any, variable: Any) -> Any:
    """Return the data of an observed variable, in its own shape."""
    return model.rvs_to_values[variable].eval()


def _compile(line: Line, model: Any, expressions: list[Any]) -> Function:
    """Return the compiled function of a position to a list of arrays."""
    outputs, position = line.ravel(model, model.replace_rvs_by_values(expressions))
    function: Function = model.compile_fn(
        outputs, inputs=[position], point_fn=False, on_unused_input="ignore"
    )
    return function
