"""The observed variable of a model of PyMC as a regression, read from PyTensor's graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from surrokit.errors import NotASumError
from surrokit.tables.graphs import Form, Regression, form_of, predictor_of
from surrokit.types import FloatArray
from surrokit_pymc.compiled import Line

_FAMILIES = {
    "BernoulliRV": ("logistic", Form.LOGISTIC),
    "PoissonRV": ("poisson", Form.EXPONENTIAL),
    "NormalRV": ("gaussian", Form.LINEAR),
}
"""Families and forms of the first argument of distributions."""


def regression_of(model: Any, line: Line) -> Regression:
    """Return a frozen model's one observed variable.

    NotASumError is raised if there is not one, or distributions are of no known family.
    """
    import pytensor.tensor as pt

    variable = _observed_variable(model)
    family, form = _FAMILIES[_kind(variable)]
    values = np.asarray(model.rvs_to_values[variable].eval(), dtype=np.float64)
    latent = [model[name] for name in line.own.specs]
    for each in latent:
        if _kind(each) != "NormalRV" or model.rvs_to_transforms[each]:
            raise NotASumError(f"the prior of {each.name!r} is not normal")

    def flat(of: Any, place: int, shape: tuple[int, ...]) -> Any:
        return pt.broadcast_to(of.owner.op.dist_params(of.owner)[place], shape).ravel()

    def joined(place: int) -> Any:
        parts = zip(latent, line.own.specs.values(), strict=True)
        return pt.concatenate([flat(each, place, spec.shape) for each, spec in parts])

    given = {"mean": joined(0), "sd": joined(1), "argument": flat(variable, 0, values.shape)}
    if family == "gaussian":
        given["scale"] = flat(variable, 1, values.shape)
    arrays = dict(zip(given, model.replace_rvs_by_values(list(given.values())), strict=True))
    forms, culprit = _read_forms(line.variables(model), arrays)
    arrays["predictor"] = predictor_of(arrays.pop("argument"), form, pt)
    compiled = line.compile(model, list(arrays.values()))

    def at(position: FloatArray) -> Mapping[str, FloatArray]:
        found = (np.asarray(array, dtype=np.float64) for array in compiled(position))
        return dict(zip(arrays, found, strict=True))

    return Regression(
        name=variable.name,
        family=family,
        form=form,
        values=values.ravel(),
        forms=forms,
        culprit=culprit,
        at=at,
    )


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
    (variable,) = model.observed_RVs
    if (kind := _kind(variable)) not in _FAMILIES:
        raise NotASumError(
            f"{variable.name!r} is distributed as {kind.removesuffix('RV')}, which is no family of "
            f"rows; there are {', '.join(name.removesuffix('RV') for name in _FAMILIES)}"
        )
    return variable


def _kind(variable: Any) -> str:
    return type(variable.owner.op).__name__


_SAME = (
    *("DimShuffle", "Reshape", "SpecifyShape", "Alloc", "Subtensor", "AdvancedSubtensor"),
    *("AdvancedSubtensor1", "ScalarFromTensor", "TensorFromScalar", "ExpandDims", "Squeeze"),
    *("SplitDims", "JoinDims", "Unbroadcast", "Identity"),
)
_RULES = {
    **dict.fromkeys(_SAME, "same"),
    **dict.fromkeys(("Dot", "BatchedDot", "StructuredDot", "MatMul"), "contract"),
    **dict.fromkeys(("Add", "Sub", "Neg", "Sum"), "add"),
    **dict.fromkeys(("Join", "MakeVector"), "join"),  # the axis of a Join comes first
    "Mul": "multiply",
    "TrueDiv": "divide",
    "Exp": "exp",
    "Sigmoid": "logistic",
}


def _read_forms(
    inputs: Sequence[Any], outputs: Mapping[str, Any]
) -> tuple[dict[str, Form], str | None]:
    """Return the forms of expressions in linear variables, and the first unknown operation."""
    from pytensor.graph.traversal import io_toposort

    known: dict[Any, Form] = dict.fromkeys(inputs, Form.LINEAR)
    culprit = None
    for node in io_toposort(list(inputs), list(outputs.values())):
        forms = [known.get(variable, Form.CONSTANT) for variable in node.inputs]
        form = form_of(_rule(node), forms)
        if form is Form.OTHER and culprit is None:
            culprit = str(node.op)
        known.update(dict.fromkeys(node.outputs, form))
    return {name: known.get(each, Form.CONSTANT) for name, each in outputs.items()}, culprit


def _rule(node: Any) -> str | None:
    op, name = node.op, type(node.op).__name__
    if name in ("Elemwise", "Blockwise"):
        name = type(op.scalar_op if name == "Elemwise" else op.core_op).__name__
    if name == "Cast":
        return "same" if node.outputs[0].dtype == "float64" else None
    if name == "CumOp":
        return "add" if op.mode == "add" else None
    return _RULES.get(name)
