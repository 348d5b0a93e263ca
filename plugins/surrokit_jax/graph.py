"""The forms of a JAX function's results, read from its graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

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
from surrokit_jax.compiled import load_jax

_SAME = (
    *("broadcast_in_dim", "reshape", "transpose", "squeeze", "slice", "rev", "copy", "copy_p"),
    *("expand_dims", "split"),
)
_NESTED = (
    *("pjit", "jit", "closed_call", "core_call", "remat", "checkpoint"),
    *("custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"),
)
_INSIDE = ("jaxpr", "call_jaxpr", "fun_jaxpr")

_RULES: dict[str, Callable[[list[Form]], Form]] = {
    **dict.fromkeys(_SAME, lambda forms: forms[0]),
    **dict.fromkeys(("add", "sub", "add_any", "pad", "neg"), add),
    "mul": multiply,
    "dot_general": contract,
    "div": lambda forms: divide(*forms),
    "pow": lambda forms: raise_to(*forms),
    "integer_pow": lambda forms: raise_to(forms[0], Form.CONSTANT),
    "concatenate": join,
    "exp": lambda forms: apply("exp", forms[0]),
    "log": lambda forms: apply("log", forms[0]),
    "logistic": lambda forms: apply("logistic", forms[0]),
    **dict.fromkeys(("sqrt", "rsqrt"), lambda forms: apply("root", forms[0])),
    **dict.fromkeys(("reduce_sum", "cumsum"), lambda forms: apply("sum", forms[0])),
    **dict.fromkeys(
        ("gather", "dynamic_slice"),
        lambda forms: forms[0] if join(forms[1:]) is Form.CONSTANT else Form.OTHER,
    ),
    "select_n": lambda forms: join(forms[1:]) if forms[0] is Form.CONSTANT else Form.OTHER,
    **dict.fromkeys(
        ("scatter", "scatter-add", "scatter_add"),
        lambda forms: add([forms[0], forms[2]]) if forms[1] is Form.CONSTANT else Form.OTHER,
    ),
}
"""From the forms of an operation's arguments, none of them unknown, to that of its results."""


def read_forms(
    function: Callable[[Any], dict[str, Any]], dim: int
) -> tuple[dict[str, Form], str | None]:
    """Return the forms of arrays that a function of a position (dim,) returns by name.

    Returns
    -------
    forms
        By name.
    culprit
        The first operation from which on something is of no known form; None where all is known.
    """
    closed, shapes = load_jax().make_jaxpr(function, return_shape=True)(np.zeros(dim))
    culprits: list[str] = []
    forms = _read(closed.jaxpr, [Form.LINEAR], culprits)
    return dict(zip(sorted(shapes), forms, strict=True)), next(iter(culprits), None)


def _read(jaxpr: Any, inputs: Sequence[Form], culprits: list[str]) -> list[Form]:
    """Return the forms of results; names of operations that make unknown ones are added."""
    known: dict[Any, Form] = dict.fromkeys(jaxpr.constvars, Form.CONSTANT)
    known.update(zip(jaxpr.invars, inputs, strict=True))

    def forms_of(variables: Sequence[Any]) -> list[Form]:
        literal = load_jax().extend.core.Literal
        return [Form.CONSTANT if isinstance(each, literal) else known[each] for each in variables]

    for equation in jaxpr.eqns:
        forms, name = forms_of(equation.invars), equation.primitive.name
        if name in _NESTED and set(forms) != {Form.CONSTANT}:
            inner = next(equation.params[key] for key in _INSIDE if key in equation.params)
            made = _read(getattr(inner, "jaxpr", inner), forms, culprits)
        else:
            form = _form(name, equation.params, forms)
            made = [form] * len(equation.outvars)
            if form is Form.OTHER:
                culprits.append(name)
        known.update(zip(equation.outvars, made, strict=True))
    return forms_of(jaxpr.outvars)


def _form(name: str, parameters: Any, forms: list[Form]) -> Form:
    if set(forms) <= {Form.CONSTANT}:
        return Form.CONSTANT
    if name == "convert_element_type" and parameters["new_dtype"] == np.float64:
        return forms[0]
    return Form.OTHER if Form.OTHER in forms or name not in _RULES else _RULES[name](forms)
