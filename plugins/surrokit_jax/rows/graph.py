"""The forms of a JAX function's results, read from its graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
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
from surrokit_jax.library import load_jax

_SAME = frozenset(
    {
        *("broadcast_in_dim", "reshape", "transpose", "squeeze", "slice", "rev", "copy", "copy_p"),
        *("expand_dims", "split"),
    }
)
_CALLS = ("jaxpr", "call_jaxpr", "fun_jaxpr")
_OF_CALLS = frozenset(
    {
        *("pjit", "jit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call"),
        *("custom_vjp_call_jaxpr", "remat", "checkpoint"),
    }
)


@attrs.define(eq=False)
class Graph:
    """A reader of graphs, which keeps what first was of no known form.

    Parameters
    ----------
    culprit
        JAX's name of the operation; None where there was none.
    """

    culprit: str | None = None

    def read(self, closed: Any, inputs: Sequence[Form]) -> list[Form]:
        """Return the forms of the results of a closed jaxpr for forms of its inputs."""
        jaxpr = getattr(closed, "jaxpr", closed)
        known: dict[Any, Form] = dict.fromkeys(jaxpr.constvars, Form.CONSTANT)
        known.update(zip(jaxpr.invars, inputs, strict=True))

        def form_of(variable: Any) -> Form:
            return Form.CONSTANT if hasattr(variable, "val") else known[variable]

        for equation in jaxpr.eqns:
            forms = [form_of(variable) for variable in equation.invars]
            made = self._results(equation, forms)
            known.update(zip(equation.outvars, made, strict=True))
        return [form_of(variable) for variable in jaxpr.outvars]

    def _results(self, equation: Any, forms: list[Form]) -> list[Form]:
        n, name = len(equation.outvars), equation.primitive.name
        if all(form is Form.CONSTANT for form in forms):
            return [Form.CONSTANT] * n
        if name in _OF_CALLS:
            inner = next(equation.params[key] for key in _CALLS if key in equation.params)
            return self.read(inner, forms)
        form = Form.OTHER if Form.OTHER in forms else _form(name, equation.params, forms)
        if form is Form.OTHER and self.culprit is None:
            self.culprit = name
        return [form] * n


def _form(name: str, params: Any, forms: list[Form]) -> Form:
    """Return the form of what an operation makes of forms, none of which is unknown."""
    first, rest = forms[0], forms[1:]
    if name in _SAME:
        return first
    if name == "convert_element_type":
        return first if params["new_dtype"] == np.float64 else Form.OTHER
    rule = _RULES.get(name)
    if rule is not None:
        return rule(forms)
    if name == "integer_pow":
        return raise_to(first, Form.CONSTANT)
    if name in ("gather", "dynamic_slice"):
        return first if join(rest) is Form.CONSTANT else Form.OTHER
    if name == "select_n":
        return join(rest) if first is Form.CONSTANT else Form.OTHER
    if name in ("scatter", "scatter-add", "scatter_add") and forms[1] is Form.CONSTANT:
        return add([first, forms[2]])
    return Form.OTHER


_RULES: dict[str, Callable[[list[Form]], Form]] = {
    **dict.fromkeys(("add", "sub", "add_any", "pad", "neg"), add),
    "mul": multiply,
    "dot_general": contract,
    "div": lambda forms: divide(*forms),
    "pow": lambda forms: raise_to(*forms),
    "concatenate": join,
    "exp": lambda forms: apply("exp", forms[0]),
    "log": lambda forms: apply("log", forms[0]),
    "logistic": lambda forms: apply("logistic", forms[0]),
    "sqrt": lambda forms: apply("root", forms[0]),
    "rsqrt": lambda forms: apply("root", forms[0]),
    "reduce_sum": lambda forms: apply("sum", forms[0]),
    "cumsum": lambda forms: apply("sum", forms[0]),
}


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
    jax = load_jax()
    closed, shapes = jax.make_jaxpr(function, return_shape=True)(np.zeros(dim))
    graph = Graph()
    forms = graph.read(closed, [Form.LINEAR])
    return dict(zip(sorted(shapes), forms, strict=True)), graph.culprit
