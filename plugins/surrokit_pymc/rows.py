"""Models of PyMC as sums over the rows of their observed variable, read from PyTensor's graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import attrs
import numpy as np

import surrokit as sk
from surrokit import capabilities as can
from surrokit.arguments import check_positions
from surrokit.errors import NotASumError
from surrokit.potentials import Potential
from surrokit.targets.gaussian import GaussianPrior
from surrokit.targets.summed import (
    Family,
    Form,
    SumAndRest,
    add,
    apply,
    check_worth,
    confirm,
    contract,
    design_of,
    divide,
    join,
    multiply,
    raise_to,
    rows_of,
)
from surrokit.types import Capabilities, FloatArray
from surrokit_pymc.compiled import Compiled, Function, Line

_FAMILIES: Mapping[str, Family] = {
    "BernoulliRV": Family("logistic", 0, Form.LOGISTIC),
    "BinomialRV": Family("binomial", 1, Form.LOGISTIC, {0: "total"}),
    "PoissonRV": Family("poisson", 0, Form.EXPONENTIAL),
    "ExponentialRV": Family("exponential", 0, Form.EXPONENTIAL, reciprocal=True),
    "NormalRV": Family("gaussian", 0, Form.LINEAR, {1: "scale"}),
    "StudentTRV": Family("student", 1, Form.LINEAR, {0: "degrees", 2: "scale"}),
}
"""Arguments of distributions go by their places."""


def recognise(
    model: Any, line: Line, start: FloatArray, whole: Potential, wanted: bool | None
) -> SumAndRest:
    """Return a frozen model, which is ``whole`` on the line, as a sum over rows and its rest.

    Raises
    ------
    NotASumError
        If it is not known to be one, or has too few rows.
    """
    variable = _observed_variable(model)
    observed = model.rvs_to_values[variable].eval()
    values, dim = np.asarray(observed, dtype=np.float64).ravel(), line.own.dim
    check_worth(len(values), dim, wanted)
    family = _FAMILIES[type(variable.owner.op).__name__]
    expressions = model.replace_rvs_by_values(_parameters_of(variable))
    forms, culprit = _read_forms(line.variables(model), expressions)
    family.check(variable.name, dict(enumerate(forms)), culprit)
    origin, shape = np.zeros(dim), np.shape(observed)
    arguments = Compiled(model, lambda of: _arguments(of, line, shape))
    offset, *settings = map(_flat, arguments(origin))
    prior = _normal(model, line)
    given, owners = rows_of(
        family.family,
        values,
        dict(zip(family.constants.values(), settings, strict=True)),
        design_of(
            lambda along: np.array([_flat(arguments(one)[0]) - offset for one in along]),
            len(values),
            dim,
        ),
        offset,
        prior,
    )
    each = Compiled(model, lambda of: _each_row(of, line))
    return confirm(
        sk.rows_potential(**given),  # type: ignore[arg-type]
        None if prior else _Rest.of(model, line),
        whole,
        given["data"],
        owners,
        lambda position: _flat(each(position)[0]),
        start,
    )


def _observed_variable(model: Any) -> Any:
    """Return a model's one observed variable, whose distribution is a family."""
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
    if kind not in _FAMILIES:
        raise NotASumError(
            f"{variable.name!r} is distributed as {kind.removesuffix('RV')}, which is no family of "
            f"rows; there are {', '.join(name.removesuffix('RV') for name in _FAMILIES)}"
        )
    return variable


def _normal(model: Any, line: Line) -> GaussianPrior | None:
    """Return the prior of all numbers on the line; None unless all are normal."""
    free = [model[name] for name in line.own.specs]
    is_plain = [
        type(variable.owner.op).__name__ == "NormalRV" and model.rvs_to_transforms[variable] is None
        for variable in free
    ]
    if not all(is_plain):
        return None
    given = [each for variable in free for each in _parameters_of(variable)]
    forms, _ = _read_forms(line.variables(model), model.replace_rvs_by_values(given))
    if any(form is not Form.CONSTANT for form in forms):
        return None
    shapes = [spec.shape for spec in line.own.specs.values() for _ in range(2)]
    arrays = line.compile(model, model.replace_rvs_by_values(given))(np.zeros(line.own.dim))
    found = [_flat(np.broadcast_to(a, n)) for a, n in zip(arrays, shapes, strict=True)]
    return GaussianPrior(mean=np.concatenate(found[::2]), sd=np.concatenate(found[1::2]))


def _flat(array: Any) -> FloatArray:
    return np.asarray(array, dtype=np.float64).ravel()


def _parameters_of(variable: Any) -> list[Any]:
    """Return the parameters of a random variable's distribution, expressions of PyTensor."""
    node = variable.owner
    return list(node.op.dist_params(node))


def _arguments(model: Any, line: Line, shape: tuple[int, ...]) -> Function:
    """Return the compiled function of a position to predictors and settings of the variable."""
    import pytensor.tensor as pt

    variable = _observed_variable(model)
    family, given = _FAMILIES[type(variable.owner.op).__name__], _parameters_of(variable)
    predictors = family.predictors(given[family.argument], pt.log, pt.log1p)
    found = [predictors, *(given[at] for at in family.constants)]
    flat = [pt.broadcast_to(each, shape).ravel() for each in found]
    return line.compile(model, model.replace_rvs_by_values(flat))


def _each_row(model: Any, line: Line) -> Function:
    """Return that to the log likelihood of each observed number, shape (n_rows,)."""
    (each,) = model.logp(vars=[_observed_variable(model)], sum=False)
    return line.compile(model, [each.ravel()])


def _rest(model: Any, line: Line, order: int) -> Function:
    """Return that to minus the log density of all but the observed variable, or derivatives."""
    from pytensor.gradient import grad, hessian

    (number,), position = line.ravel(model, [-model.logp(vars=model.free_RVs)])
    outputs = [number]
    if order == 1:
        outputs += [grad(number, position, disconnected_inputs="ignore")]
    elif order == 2:
        outputs = [hessian(number, position, disconnected_inputs="ignore")]
    function: Function = model.compile_fn(outputs, inputs=[position], point_fn=False)
    return function


@attrs.frozen(eq=False)
class _Rest:
    """What U has beside the observed variable, as functions of one position by order."""

    dim: int
    orders: tuple[Compiled, Compiled, Compiled]

    @classmethod
    def of(cls, model: Any, line: Line) -> _Rest:
        zeroth, first, second = (
            Compiled(model, partial(_rest, line=line, order=order)) for order in range(3)
        )
        return cls(line.own.dim, (zeroth, first, second))

    @property
    def capabilities(self) -> Capabilities:
        return frozenset({can.GRADIENT, can.HESSIAN})

    def value(self, positions: FloatArray) -> FloatArray:
        return np.array([float(number) for (number,) in self._at(0, positions)])

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        rows = self._at(1, positions)
        gradients = np.array([gradient for _, gradient in rows]).reshape(len(rows), self.dim)
        return np.array([float(number) for number, _ in rows]), gradients

    def hessian(self, positions: FloatArray) -> FloatArray:
        rows = self._at(2, positions)
        return np.array([matrix for (matrix,) in rows]).reshape(len(rows), self.dim, self.dim)

    def _at(self, order: int, positions: FloatArray) -> list[list[Any]]:
        return [self.orders[order](row) for row in check_positions(positions, self.dim)]


_SAME = frozenset(
    {
        *("DimShuffle", "Reshape", "SpecifyShape", "Alloc", "Subtensor", "AdvancedSubtensor"),
        *("AdvancedSubtensor1", "ScalarFromTensor", "TensorFromScalar", "ExpandDims", "Squeeze"),
        *("SplitDims", "JoinDims", "Unbroadcast"),
    }
)
_PRODUCTS = frozenset({"Dot", "BatchedDot", "StructuredDot", "MatMul"})
_SETS = frozenset({"IncSubtensor", "AdvancedIncSubtensor", "AdvancedIncSubtensor1"})

_SCALARS: dict[str, Callable[[list[Form]], Form]] = {
    **dict.fromkeys(("Add", "Sub", "Neg"), add),
    "Mul": multiply,
    "TrueDiv": lambda forms: divide(*forms),
    "Reciprocal": lambda forms: divide(Form.CONSTANT, forms[0]),
    "Pow": lambda forms: raise_to(*forms),
    "Sqr": lambda forms: raise_to(forms[0], Form.CONSTANT),
    "Sqrt": lambda forms: apply("root", forms[0]),
    "Exp": lambda forms: apply("exp", forms[0]),
    "Log": lambda forms: apply("log", forms[0]),
    "Sigmoid": lambda forms: apply("logistic", forms[0]),
    "Identity": lambda forms: forms[0],
    "Second": lambda forms: forms[1],
    "Switch": lambda forms: join(forms[1:]) if forms[0] is Form.CONSTANT else Form.OTHER,
}


def _read_forms(inputs: Sequence[Any], outputs: Sequence[Any]) -> tuple[list[Form], str | None]:
    """Return the forms of expressions in linear variables, and the first unknown operation."""
    from pytensor.graph.traversal import io_toposort

    known: dict[Any, Form] = dict.fromkeys(inputs, Form.LINEAR)
    culprit = None
    for node in io_toposort(list(inputs), list(outputs)):
        forms = [known.get(variable, Form.CONSTANT) for variable in node.inputs]
        if all(form is Form.CONSTANT for form in forms):
            form = Form.CONSTANT
        else:
            form = Form.OTHER if Form.OTHER in forms else _form(node, forms)
        if form is Form.OTHER and culprit is None:
            culprit = str(node.op)
        known.update(dict.fromkeys(node.outputs, form))
    return [known.get(output, Form.CONSTANT) for output in outputs], culprit


def _form(node: Any, forms: list[Form]) -> Form:
    """Return the form of what an operation makes of forms, none of which is unknown."""
    op, name = node.op, type(node.op).__name__
    if name == "Elemwise":
        scalar = type(op.scalar_op).__name__
        if scalar == "Cast":
            return forms[0] if node.outputs[0].dtype == "float64" else Form.OTHER
        return _SCALARS[scalar](forms) if scalar in _SCALARS else Form.OTHER
    if name == "Blockwise":
        name = type(op.core_op).__name__
    if name in _PRODUCTS:
        return contract(forms)
    if name in _SAME:
        return forms[0] if join(forms[1:]) is Form.CONSTANT else Form.OTHER
    if name in _SETS:
        return add(forms[:2]) if join(forms[2:]) is Form.CONSTANT else Form.OTHER
    if name in ("Join", "MakeVector"):
        return join(forms[1:] if name == "Join" else forms)
    is_sum = name == "Sum" or (name == "CumOp" and op.mode == "add")
    return apply("sum", forms[0]) if is_sum else Form.OTHER
