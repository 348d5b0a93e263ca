"""The forms of expressions of PyTensor, read from their graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from surrokit.targets.summed import (
    Form,
    add,
    apply,
    contract,
    divide,
    join,
    multiply,
    raise_to,
)

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


def read_forms(inputs: Sequence[Any], outputs: Sequence[Any]) -> tuple[list[Form], str | None]:
    """Return the forms of expressions in variables that are linear.

    Parameters
    ----------
    inputs
        The variables: parts of a position on the line.
    outputs
        The expressions.

    Returns
    -------
    forms
        One for each expression.
    culprit
        PyTensor's name of the first operation from which on something is of no known form; None
        where all is known.
    """
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
