"""How notebooks show targets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from surrokit import capabilities as can
from surrokit.coordinates.distributions import name_of
from surrokit.coordinates.parameters import Parameter, Parameters
from surrokit.potentials import observed_data_of
from surrokit.shown.elements import Markup, items, tag
from surrokit.shown.tables import MOST_ROWS, table
from surrokit.shown.values import describe_value

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
        """Return the parameters and what can be evaluated, as HTML."""
        return show_target(self)


def show_target(target: Any) -> str:
    """Return a target's parameters, what it can evaluate, and calls if they are counted, as HTML.

    Nothing is evaluated.

    Parameters
    ----------
    target
        A potential.
    """
    facts = items(
        [
            ("target", describe_target(target)),
            ("dimension", _dimension(target)),
            ("can be evaluated", abilities_of(target)),
            ("observed", _observed(target)),
            ("calls so far", _calls(target)),
        ]
    )
    declared = getattr(target, "parameters", None)
    told = _parameters(declared) if isinstance(declared, Parameters) else None
    return tag("div", facts, told, class_="surrokit-target")


def describe_target(target: Any) -> str:
    """Return of which class a target is, and those that it wraps.

    Parameters
    ----------
    target
        A potential.
    """
    names = [type(target).__name__]
    while (target := _inside(target)) is not None and len(names) < MOST_ROWS:
        names.append(type(target).__name__)
    return " of ".join(names)


def _inside(target: Any) -> Any:
    own = [name for name in ("inner", "target") if name in _attributes(target)]
    return getattr(target, own[0]) if own else None


def _attributes(target: Any) -> set[str]:
    """Return names of a target's own attributes, not of those that it passes on."""
    slots = {name for each in type(target).__mro__ for name in getattr(each, "__slots__", ())}
    return slots | set(getattr(target, "__dict__", ()))


def abilities_of(potential: Any) -> str:
    """Return in words what a potential can evaluate.

    Parameters
    ----------
    potential
        A potential.
    """
    offered = potential.capabilities
    words = {name: word for name, word in ABILITIES.items() if name in offered}
    price = int(getattr(potential, "calls_per_gradient", 1))
    if price > 1 and can.GRADIENT in words:
        words[can.GRADIENT] = f"gradient by {price} values each"
    if can.ROWS in words:
        words[can.ROWS] = f"terms of {potential.n_rows:,} rows of data"
    return ", ".join(["value", *words.values()])


def _dimension(target: Any) -> str:
    declared = getattr(target, "parameters", None)
    if isinstance(declared, Parameters) and declared.dim != target.dim:
        return f"{declared.dim:,}, sampled by {target.dim:,} numbers on the line"
    return f"{target.dim:,}"


def _observed(target: Any) -> str | None:
    sizes = {name: np.size(array) for name, array in observed_data_of(target).items()}
    return ", ".join(f"{name} ({n:,})" for name, n in sizes.items()) or None


def _calls(target: Any) -> str | None:
    calls = getattr(target, "calls", None)
    if not isinstance(calls, Mapping):
        return None
    told = [f"{n:,} of {kind}" for kind, n in calls.items() if n]
    return ", ".join(told) or "none"


def _parameters(parameters: Parameters) -> Markup:
    specs = list(parameters.specs.items())
    has_priors = any(spec.prior is not None for _, spec in specs)
    columns = ["parameter", "shape", "where", *(["prior"] if has_priors else [])]
    rows = [
        (name, [*_cells(spec), *([_prior(spec.prior)] if has_priors else [])])
        for name, spec in specs[:MOST_ROWS]
    ]
    left = len(specs) - len(rows)
    more = tag("p", f"{left} more parameters.") if left else None
    return tag("div", table(columns, rows), more)


def _cells(spec: Parameter) -> list[str]:
    unit = f" ({spec.unit})" if spec.unit else ""
    return [" by ".join(map(str, spec.shape)) or "number", where_of(spec) + unit]


def where_of(spec: Parameter) -> str:
    """Return in words where a parameter lies.

    Parameters
    ----------
    spec
        Its declaration.
    """
    if spec.constraint is not None:
        return spec.constraint.meaning
    lower, upper = (None if abs(bound) == float("inf") else bound for bound in spec.bounds)
    if lower is not None and upper is not None:
        return f"between {lower:g} and {upper:g}"
    if lower is not None:
        return "positive" if lower == 0 else f"above {lower:g}"
    return "anywhere" if upper is None else f"below {upper:g}"


def _prior(prior: Any) -> str | None:
    """Return a distribution of SciPy as it is written."""
    if prior is None:
        return None
    given = [describe_value(each) for each in getattr(prior, "args", ())]
    named = getattr(prior, "kwds", {}).items()
    settings = [*given, *(f"{key}={describe_value(each)}" for key, each in named)]
    return f"{name_of(prior)}({', '.join(settings)})"
