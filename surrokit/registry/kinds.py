"""The kinds of part, and the members that a part of each kind must have."""

from __future__ import annotations

from inspect import signature
from typing import Any, Literal, Protocol, TypeAlias, get_args

from surrokit.registry.factory import load_object

Kind: TypeAlias = Literal[
    "potential",
    "surrogate",
    "explorer",
    "schedule",
    "sampler",
    "integrator",
    "metric",
    "correction",
    "policy",
]
"""What a part can be."""

KINDS: tuple[Kind, ...] = get_args(Kind)
"""All kinds, in the order in which ``surrokit plugins`` lists them."""


_PROTOCOLS: dict[Kind, tuple[str, ...]] = {
    "potential": ("surrokit.protocols:Potential",),
    "surrogate": ("surrokit.protocols:Surrogate", "surrokit.protocols:Potential"),
    "explorer": ("surrokit.protocols:Explorer",),
    "schedule": ("surrokit.protocols:Schedule",),
    "sampler": ("surrokit.protocols:Sampler",),
    "integrator": ("surrokit.protocols:Integrator",),
    "metric": ("surrokit.protocols:Metric", "surrokit.contracts.dynamics:PositionMetric"),
    "correction": ("surrokit.protocols:Correction",),
    "policy": ("surrokit.plan.policy:Policy",),
}
"""Paths of each kind's protocols, since the policy's module imports the registry."""


def protocols_of(kind: Kind) -> tuple[type, ...]:
    """Return the protocols of a kind; a part has all members of one of them."""
    return tuple(load_object(path, f"the protocol of kind {kind}") for path in _PROTOCOLS[kind])


_HANDED: dict[tuple[str, ...], Kind] = {
    ("potential", "tuning"): "sampler",
    ("potential",): "correction",
}

BOUND_KINDS: tuple[Kind, ...] = tuple(_HANDED.values())
"""Kinds of parts that are settings until they are bound to a potential."""


def binds_as(part: object) -> Kind | None:
    """Return the kind that the arguments of a part's ``bind`` tell; None without such a method."""
    bind = getattr(part, "bind", None)
    if not callable(bind):
        return None
    return _HANDED.get(tuple(name for name in signature(bind).parameters if name != "self"))


def members_of(protocol: type) -> list[str]:
    """Return the names that a protocol declares, inherited ones too, sorted."""
    declared: set[str] = set()
    for base in protocol.__mro__:
        if base not in (Protocol, object) and getattr(base, "_is_protocol", False):
            declared |= vars(base).keys() | vars(base).get("__annotations__", {}).keys()
    return sorted(name for name in declared if not name.startswith("_"))


def missing_members(kind: Kind, part: Any) -> dict[str, list[str]]:
    """Return protocol to the members that a part lacks; empty if the part has all of one protocol.

    Parameters
    ----------
    kind
        Kind that the part should have.
    part
        The part, whose properties are not evaluated.
    """
    lacking = {}
    for protocol in protocols_of(kind):
        missing = [name for name in members_of(protocol) if not _has(part, name)]
        if not missing and kind in BOUND_KINDS and binds_as(part) != kind:
            handed = next(names for names, of in _HANDED.items() if of == kind)
            missing = [f"bind({', '.join(handed)})"]
        if not missing:
            return {}
        lacking[protocol.__name__] = missing
    return lacking


def _has(part: Any, name: str) -> bool:
    return hasattr(type(part), name) or hasattr(part, name)
