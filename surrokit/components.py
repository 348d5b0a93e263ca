"""Component: one registered part."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias, get_args

import attrs

from surrokit.errors import ConfigurationError

Kind: TypeAlias = Literal[
    "potential",
    "surrogate",
    "explorer",
    "schedule",
    "sampler",
    "integrator",
    "metric",
    "correction",
    "experiment",
]
"""What a part can be."""

KINDS: tuple[Kind, ...] = get_args(Kind)
"""All kinds, in the order in which ``surrokit plugins`` lists them."""

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@attrs.frozen
class Part:
    """A setting that takes another part.

    Parameters
    ----------
    kind
        Kind of part.
    default
        Name of the part that is made if none is given; None takes the run's own part of that
        kind.
    """

    kind: Kind
    default: str | None = None


ALL = "all"
"""Stands for every experiment; none may have it as its name."""


def _check_name(component: Component, _: object, value: str) -> None:
    if not _NAME.fullmatch(value):
        raise ConfigurationError(
            f"a component's name must be lower-case words joined by hyphens, got {value!r}; "
            "for example 'my-surrogate'"
        )
    if component.kind == "experiment" and value == ALL:
        raise ConfigurationError(
            f"an experiment cannot be named {ALL!r}, which stands for every experiment; give it "
            "another name"
        )


def _check_kind(_: object, __: object, value: str) -> None:
    if value not in KINDS:
        raise ConfigurationError(
            f"a component's kind must be one of {', '.join(KINDS)}, got {value!r}"
        )


@attrs.frozen(kw_only=True)
class Component:
    """One part that a plugin offers.

    Parameters
    ----------
    kind
        What it is.
    name
        Lower-case words joined by hyphens, unique within the kind.
    factory
        Called with the settings as keywords; every keyword has a default, unless the part cannot
        do without. Heavy imports belong inside.
    summary
        One line for ``surrokit plugins``.
    references
        Where it comes from: papers, with DOI or equation.
    parts
        Those of the factory's keywords that take another part. They may then be given by name,
        and the factory always receives an object.
    examples
        Settings at which the conformance suite makes the part; list every setting that leads
        down another path.
    """

    kind: Kind = attrs.field(validator=_check_kind)
    name: str = attrs.field(validator=_check_name)
    factory: Callable[..., Any]
    summary: str
    references: tuple[str, ...] = ()
    parts: Mapping[str, Part] = attrs.field(factory=dict)
    examples: tuple[Mapping[str, Any], ...] = ({},)

    def settings(self) -> dict[str, Any]:
        """Return the names of the settings with their defaults (``inspect.Parameter.empty``)."""
        signature = inspect.signature(self.factory)
        return {name: parameter.default for name, parameter in signature.parameters.items()}
