"""How notebooks show targets, and settings in few words."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import shorten
from typing import Any, cast

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.coordinates.distributions import name_of
from surrokit.coordinates.parameters import Parameter, Parameters
from surrokit.potentials import observed_data_of
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
    """Return a target's parameters, what it can evaluate, and calls if they are counted, as HTML.

    Nothing is evaluated.
    """
    declared = getattr(target, "parameters", None)
    parameters = declared if isinstance(declared, Parameters) else None
    dimension = f"{target.dim:,}"
    if parameters is not None and parameters.dim != target.dim:
        dimension = f"{parameters.dim:,}, sampled by {dimension} numbers on the line"
    observed = {name: np.size(array) for name, array in observed_data_of(target).items()}
    calls = getattr(target, "calls", None)
    counted = ", ".join(f"{n:,} of {kind}" for kind, n in calls.items() if n) if calls else ""
    names, inside = [type(target).__name__], _inside(target)
    while inside is not None and len(names) < MOST_ROWS:
        names.append(type(inside).__name__)
        inside = _inside(inside)
    facts = [
        ("target", " of ".join(names)),
        ("dimension", dimension),
        ("can be evaluated", abilities_of(target)),
        ("observed", ", ".join(f"{name} ({n:,})" for name, n in observed.items()) or None),
        ("calls so far", (counted or "none") if isinstance(calls, Mapping) else None),
    ]
    return show("target", facts=facts, **({} if parameters is None else _table(parameters)))


def _inside(target: Any) -> Any:
    """Return the target inside, by attributes of its own and not those that it passes on."""
    slots = {name for each in type(target).__mro__ for name in getattr(each, "__slots__", ())}
    own = [name for name in ("inner", "target") if name in slots | set(_own(target))]
    return getattr(target, own[0]) if own else None


def _own(part: object) -> dict[str, Any]:
    return vars(part) if hasattr(part, "__dict__") else {}


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
    has_priors = any(spec.prior is not None for _, spec in specs)
    rows = []
    for name, spec in specs[:MOST_ROWS]:
        cells = [" by ".join(map(str, spec.shape)) or "number", _where(spec)]
        rows.append((name, [*cells, _prior(spec.prior)] if has_priors else cells))
    left = len(specs) - len(rows)
    return {
        "columns": ["parameter", "shape", "where", *(["prior"] if has_priors else [])],
        "rows": rows,
        "more": f"{left} more parameters." if left else None,
    }


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


def _prior(prior: Any) -> str | None:
    if prior is None:
        return None
    given = [describe_value(each) for each in getattr(prior, "args", ())]
    named = getattr(prior, "kwds", {}).items()
    settings = [*given, *(f"{key}={describe_value(each)}" for key, each in named)]
    return f"{name_of(prior)}({', '.join(settings)})"


def settings_of(part: object) -> dict[str, Any]:
    """Return the settings of a part by name: fields of an attrs class, else public attributes."""
    of: Any = type(part)
    if attrs.has(of):
        fields = [each for each in attrs.fields(of) if each.init]
        return {each.name.lstrip("_"): getattr(part, each.name) for each in fields}
    return {name: value for name, value in _own(part).items() if not name.startswith("_")}


def describe_value(value: Any) -> str:
    """Return a setting in few words, however large it is."""
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
        changed = []
        for field in filter(lambda each: each.init, attrs.fields(type(value))):
            default: Any = field.default
            if isinstance(default, cast(Any, attrs.Factory)) and not default.takes_self:
                default = default.factory()
            described = _describe(getattr(value, field.name))
            if described != _describe(default):
                changed.append(f"{field.name}={described}")
        return f"{type(value).__name__}({', '.join(changed)})"
    if callable(value) and hasattr(value, "__name__"):
        return f"{value.__name__}()"
    return type(value).__name__
