"""The observed variable of a model of PyMC as a regression, read from PyTensor's graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.arguments import check_positions
from surrokit.errors import NotASumError
from surrokit.tables.graphs import Family, Form, Regression, form_of
from surrokit.targets.gaussian import GaussianPrior
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


def regression_of(model: Any, line: Line) -> Regression:
    """Return a frozen model's one observed variable.

    NotASumError is raised if there is not one, or its distribution is no family.
    """
    variable = _observed_variable(model)
    values = np.asarray(model.rvs_to_values[variable].eval(), dtype=np.float64)
    compiled = Compiled(model, lambda of: _arguments(of, line, values.shape))

    def read() -> tuple[dict[int, Form], str | None]:
        given = model.replace_rvs_by_values(variable.owner.op.dist_params(variable.owner))
        return _read_forms(line.variables(model), given)

    return Regression(
        name=variable.name,
        family=_FAMILIES[type(variable.owner.op).__name__],
        values=values.ravel(),
        read=read,
        arguments=lambda at: [np.asarray(each, dtype=np.float64) for each in compiled(at)],
        prior=lambda: _normal(model, line),
        rest=lambda: _Rest(
            line.own.dim,
            tuple(Compiled(model, partial(_rest, line=line, order=order)) for order in range(3)),
        ),
    )


def _normal(model: Any, line: Line) -> GaussianPrior | None:
    given, shapes = [], []
    for name, spec in line.own.specs.items():
        variable = model[name]
        if type(variable.owner.op).__name__ != "NormalRV" or model.rvs_to_transforms[variable]:
            return None
        given += variable.owner.op.dist_params(variable.owner)
        shapes += [spec.shape] * 2
    given = model.replace_rvs_by_values(given)
    if {*_read_forms(line.variables(model), given)[0].values()} != {Form.CONSTANT}:
        return None
    arrays = line.compile(model, given)(np.zeros(line.own.dim))
    flat = [np.ravel(np.broadcast_to(a, n)) for a, n in zip(arrays, shapes, strict=True)]
    return GaussianPrior(mean=np.concatenate(flat[::2]), sd=np.concatenate(flat[1::2]))


def _observed_variable(model: Any) -> Any:
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


def _arguments(model: Any, line: Line, shape: tuple[int, ...]) -> Function:
    """Return the compiled function of a position to predictors and settings of the variable."""
    import pytensor.tensor as pt

    node = _observed_variable(model).owner
    family, given = _FAMILIES[type(node.op).__name__], node.op.dist_params(node)
    predictors = family.predictors(given[family.argument], pt.log, pt.log1p)
    found = [predictors, *(given[at] for at in family.constants)]
    flat = [pt.broadcast_to(each, shape).ravel() for each in found]
    return line.compile(model, model.replace_rvs_by_values(flat))


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
    orders: tuple[Compiled, ...]
    capabilities: Capabilities = frozenset({can.GRADIENT, can.HESSIAN})

    def value(self, positions: FloatArray) -> FloatArray:
        return self._at(0, positions)[0]

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        values, gradients = self._at(1, positions, (self.dim,))
        return values, gradients

    def hessian(self, positions: FloatArray) -> FloatArray:
        return self._at(2, positions, (self.dim, self.dim))[0]

    def _at(
        self, order: int, positions: FloatArray, last: tuple[int, ...] = ()
    ) -> list[FloatArray]:
        """Return arrays (n,) of results at rows, the last of them (n, *last)."""
        rows = [self.orders[order](row) for row in check_positions(positions, self.dim)]
        found = [np.array(each, dtype=np.float64) for each in zip(*rows, strict=True)]
        return [*found[:-1], found[-1].reshape(-1, *last)]


_SAME = (
    *("DimShuffle", "Reshape", "SpecifyShape", "Alloc", "Subtensor", "AdvancedSubtensor"),
    *("AdvancedSubtensor1", "ScalarFromTensor", "TensorFromScalar", "ExpandDims", "Squeeze"),
    *("SplitDims", "JoinDims", "Unbroadcast", "Identity"),
)
_RULES = {
    **dict.fromkeys(_SAME, "same"),
    **dict.fromkeys(("Dot", "BatchedDot", "StructuredDot", "MatMul"), "contract"),
    **dict.fromkeys(("Add", "Sub", "Neg"), "add"),
    **dict.fromkeys(("Sqr", "Sqrt", "Reciprocal"), "root"),
    **dict.fromkeys(("Switch", "Join"), "choose"),  # the axis of a Join comes first
    "MakeVector": "join",
    "Mul": "multiply",
    "TrueDiv": "divide",
    "Pow": "power",
    "Exp": "exp",
    "Log": "log",
    "Sigmoid": "logistic",
    "Sum": "sum",
}


def _read_forms(
    inputs: Sequence[Any], outputs: Sequence[Any]
) -> tuple[dict[int, Form], str | None]:
    """Return the forms of expressions in linear variables, and the first unknown operation."""
    from pytensor.graph.traversal import io_toposort

    known: dict[Any, Form] = dict.fromkeys(inputs, Form.LINEAR)
    culprit = None
    for node in io_toposort(list(inputs), list(outputs)):
        forms = [known.get(variable, Form.CONSTANT) for variable in node.inputs]
        form = form_of(_rule(node), forms)
        if form is Form.OTHER and culprit is None:
            culprit = str(node.op)
        known.update(dict.fromkeys(node.outputs, form))
    return {i: known.get(each, Form.CONSTANT) for i, each in enumerate(outputs)}, culprit


def _rule(node: Any) -> str | None:
    op, name = node.op, type(node.op).__name__
    if name in ("Elemwise", "Blockwise"):
        name = type(op.scalar_op if name == "Elemwise" else op.core_op).__name__
    if name == "Cast":
        return "same" if node.outputs[0].dtype == "float64" else None
    if name == "CumOp":
        return "sum" if op.mode == "add" else None
    return _RULES.get(name)
