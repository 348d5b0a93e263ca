"""How notebooks show targets, and values in few words."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import shorten
from typing import Any

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.coordinates.distributions import name_of
from surrokit.coordinates.parameters import Parameter, Parameters
from surrokit.shown.html import MOST_ROWS, show

ABILITIES: Mapping[str, str] = {
    can.GRADIENT: "gradient",
    can.HESSIAN: "Hessian",
    can.HESSIAN_PRODUCT: "Hessian times a vector",
    can.HESSIAN_DIAGONAL: "diagonal of the Hessian",
    can.METRIC: "metric",
    can.FORWARD: "outputs of the forward map",
    can.JACOBIAN: "Jacobian of the outputs",
    can.VJP: "adjoint of the outputs",
    can.FORWARD_HESSIAN: "second derivatives of the outputs",
    can.ROWS: "terms of rows of data",
    can.VARIANCE: "predictive variance",
    can.INITIAL: "starting positions",
}
"""What a potential can evaluate, in words."""


class ShownTarget:
    """A target that notebooks show as a table.

    A class that has the members of a potential may be derived from this one.
    """

    __slots__ = ()

    def _repr_html_(self) -> str:
        return show_target(self)


def show_target(target: Any) -> str:
    """Return a target's parameters and what it can evaluate, as HTML. Nothing is evaluated."""
    declared = getattr(target, "parameters", None)
    facts = [
        ("target", type(target).__name__),
        ("dimension", f"{target.dim:,}"),
        ("can be evaluated", abilities_of(target)),
    ]
    return show("target", facts=facts, **_table(declared if declared else Parameters({})))


def abilities_of(potential: Any) -> str:
    """Return in words what a potential can evaluate."""
    offered = potential.capabilities
    words = {name: word for name, word in ABILITIES.items() if name in offered}
    price = int(getattr(potential, "calls_per_gradient", 1))
    if price > 1 and can.GRADIENT in words:
        words[can.GRADIENT] = f"gradient by {price} values each"
    if can.ROWS in words:
        words[can.ROWS] = f"terms of {potential.n_rows:,} rows of data"
    return ", ".join(["value", *words.values()])


def _table(parameters: Parameters) -> dict[str, Any]:
    specs = list(parameters.specs.items())
    rows = [
        (
            name,
            [
                " by ".join(map(str, spec.shape)) or "number",
                _where(spec),
                None if spec.prior is None else _prior(spec.prior),
            ],
        )
        for name, spec in specs[:MOST_ROWS]
    ]
    left = len(specs) - len(rows)
    columns = ["parameter", "shape", "where", "prior"]
    more = f"{left} more parameters." if left else None
    return {"columns": columns, "rows": rows, "more": more}


def _where(spec: Parameter) -> str:
    lower, upper = (None if abs(bound) == float("inf") else bound for bound in spec.bounds)
    if spec.constraint is not None:
        where = spec.constraint.meaning
    elif lower is not None and upper is not None:
        where = f"between {lower:g} and {upper:g}"
    elif lower is not None:
        where = "positive" if lower == 0 else f"above {lower:g}"
    else:
        where = "anywhere" if upper is None else f"below {upper:g}"
    return f"{where} ({spec.unit})" if spec.unit else where


def _prior(prior: Any) -> str:
    given = [describe_value(each) for each in getattr(prior, "args", ())]
    named = getattr(prior, "kwds", {}).items()
    settings = [*given, *(f"{key}={describe_value(each)}" for key, each in named)]
    return f"{name_of(prior)}({', '.join(settings)})"


def describe_value(value: Any) -> str:
    """Return a value in few words, however large it is."""
    return shorten(_describe(value), 100, placeholder=" …")


def _describe(value: Any) -> str:
    if isinstance(value, str | int | None) or value is ...:
        return str(value)
    if isinstance(value, float):
        return format(value, ".6g")
    if isinstance(value, np.ndarray):
        return f"array of shape {value.shape}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_describe(each)}" for name, each in value.items())
    if isinstance(value, tuple | list | set | frozenset):
        told = [_describe(each) for each in value]
        return ", ".join(sorted(told) if isinstance(value, set | frozenset) else told)
    if isinstance(getattr(value, "name", None), str):
        return str(value.name)
    if attrs.has(type(value)):
        made: Any = type(value)
        changed = []
        for field in attrs.fields(made):
            default = field.default
            if isinstance(default, attrs.Factory) and not default.takes_self:  # type: ignore[arg-type]
                default = default.factory()
            described = _describe(getattr(value, field.name)) if field.init else None
            if described not in (None, _describe(default)):
                changed.append(f"{field.name}={described}")
        return f"{made.__name__}({', '.join(changed)})"
    if callable(value) and hasattr(value, "__name__"):
        return f"{value.__name__}()"
    return type(value).__name__
