"""Exact calls, counted where they are paid for: at the innermost potential."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from surrokit import capabilities as can
from surrokit.contracts.methods import METHODS, CallKind
from surrokit.contracts.potential import Potential
from surrokit.types import Capabilities, FloatArray

Count: TypeAlias = Callable[[CallKind, int], None]
"""Counts a call before it is made, by its kind and number of positions; it may raise."""

KINDS: Mapping[str, CallKind] = {
    method.name: method.kind for method in METHODS if method.kind is not None
}
"""Kind of call that each method counts as; U and its gradient of a forward potential count as
calls of its map."""

_OF_FORWARD: Mapping[str, CallKind] = {"value": "forward"}
_OF_JACOBIAN: Mapping[str, CallKind] = {"value_and_gradient": "jacobian", "gradient": "jacobian"}
_OF_VJP: Mapping[str, CallKind] = {"value_and_gradient": "vjp", "gradient": "vjp"}


def count_nothing(kind: CallKind, n: int) -> None:
    """Ignore a call."""
    del kind, n


def with_count(potential: Potential, count: Count) -> Potential:
    """Return a potential that reports every call that it pays for.

    A potential may have a method ``with_count(count)`` that returns such a copy of itself. Wrappers
    have one, and count at the potential that they wrap, since one of their calls may pay for
    several there. For any other potential, each call of a method counts as one.

    Parameters
    ----------
    potential
        The potential whose calls are counted.
    count
        Called before each of them.
    """
    if hasattr(type(potential), "with_count"):
        own: Potential = potential.with_count(count)  # type: ignore[attr-defined]
        return own
    return CountedPotential(potential, count)


def calls_per_gradient(potential: Potential) -> int:
    """Return how many calls a gradient pays for: an attribute of that name, or one.

    Parameters
    ----------
    potential
        One with capability ``gradient``.
    """
    return int(getattr(potential, "calls_per_gradient", 1))


class CountedPotential:
    """A wrapper that reports each call of a method, and changes nothing else.

    Parameters
    ----------
    inner
        The potential.
    count
        Called before each call.
    kinds
        Kinds of methods that differ from :data:`KINDS`.
    """

    def __init__(
        self, inner: Potential, count: Count, kinds: Mapping[str, CallKind] | None = None
    ) -> None:
        offered = inner.capabilities
        self._inner = inner
        self._count = count
        self._kinds = {
            **KINDS,
            **(_OF_FORWARD if can.FORWARD in offered else {}),
            **(_OF_JACOBIAN if can.JACOBIAN in offered else {}),
            **(_OF_VJP if can.VJP in offered else {}),
            **(kinds or {}),
        }

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self._inner.dim

    @property
    def capabilities(self) -> Capabilities:
        """What the inner potential offers."""
        return self._inner.capabilities

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), at positions of shape (n, dim)."""
        self._count(self._kinds["value"], len(positions))
        return self._inner.value(positions)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the inner potential, with a count if it evaluates positions."""
        if name.startswith("_"):
            raise AttributeError(name)
        attribute = getattr(self._inner, name)
        kind = self._kinds.get(name)
        if kind is None:
            return attribute

        def evaluate(positions: FloatArray, *factors: FloatArray) -> Any:
            self._count(kind, len(positions))
            return attribute(positions, *factors)

        return evaluate
