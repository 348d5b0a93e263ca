"""The account of a target's failures: how many of each kind, and the first of each."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from surrokit.contracts.methods import CallKind
from surrokit.coordinates.blocks import CoordinateMap
from surrokit.failures.cause import BROKEN_GRADIENT, MINUS_INFINITY, Cause, Cure
from surrokit.types import FloatArray

REMEMBERED = 50
"""Latest failed positions that are kept, for some of them to be evaluated once more."""

_EVALUATED_AGAIN: tuple[CallKind, ...] = ("value", "gradient", "forward", "jacobian", "vjp")


@attrs.frozen(kw_only=True, eq=False)
class FailureKind:
    """Failures of one kind.

    Parameters
    ----------
    count
        Positions that were rejected for it.
    cured
        Positions that failed in this way first, and could be evaluated by a retry.
    message
        What the target did the first time.
    position : ndarray of shape (dim,), optional
        Where that was, in the user's coordinates; None for single data rows.
    """

    count: int = 0
    cured: int = 0
    message: str = ""
    position: FloatArray | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain data."""
        position = None if self.position is None else self.position.tolist()
        return {**attrs.asdict(self), "position": position}

    @classmethod
    def of_dict(cls, figures: Mapping[str, Any]) -> FailureKind:
        """Return one from what :meth:`to_dict` made of it."""
        position = figures["position"]
        return cls(**{**figures, "position": None if position is None else np.array(position)})

    def add(self, *, count: int = 0, cured: int = 0) -> FailureKind:
        """Return one with more failures."""
        return attrs.evolve(self, count=self.count + count, cured=self.cured + cured)


@attrs.frozen(kw_only=True)
class Recheck:
    """What came of evaluating positions once more.

    Parameters
    ----------
    tried
        Failed positions that were evaluated once more.
    worked
        Those of them that did not fail again.
    apart
        Two values of U at one position that differ; None where none were met.
    retries
        How often each had been evaluated again, and failed, before it was rejected.
    infinite
        Positions of infinite U that were evaluated once more.
    finite
        Those of them where U was finite then.
    """

    tried: int = 0
    worked: int = 0
    apart: tuple[float, float] | None = None
    retries: int = 0
    infinite: int = 0
    finite: int = 0

    @property
    def rate(self) -> float:
        """Part of the calls that fail at these positions, about; never quite 0 or 1."""
        return (self.tried - self.worked + 0.5) / (self.tried + 1)

    @property
    def infinite_rate(self) -> float:
        """Like :attr:`rate`, of the calls that give an infinite U."""
        return (self.infinite - self.finite + 0.5) / (self.infinite + 1)


@attrs.frozen(kw_only=True, eq=False)
class BrokenGradients:
    """Positions at which U is finite and its gradient is not.

    Parameters
    ----------
    count
        Number of these positions that a run met.
    value
        Least U among them, in the sampling coordinates; ``inf`` if there are none.
    position : ndarray of shape (dim,), optional
        Position of the least U, in the user's coordinates; None if there are none.
    """

    count: int = 0
    value: float = math.inf
    position: FloatArray | None = None


class FailureAccount:
    """Counts the failures of a target by kind.

    Parameters
    ----------
    retries
        How often a position that fails is evaluated again.

    Attributes
    ----------
    kinds
        Kind to failures, with positions in the sampling coordinates.
    broken_gradients
        Positions where U is finite and its gradient is not, in the sampling coordinates.
    lately
        Kind of call and position of the latest failures.
    infinite
        The latest positions of infinite U, which are no failures.
    recheck
        What came of evaluating positions once more.
    """

    def __init__(self, retries: int = 0) -> None:
        self.kinds: dict[str, FailureKind] = {}
        self.broken_gradients = BrokenGradients()
        self.lately: deque[tuple[CallKind, FloatArray]] = deque(maxlen=REMEMBERED)
        self.infinite: deque[FloatArray] = deque(maxlen=REMEMBERED)
        self.recheck = Recheck(retries=retries)

    @property
    def total(self) -> int:
        """Positions that were rejected."""
        return sum(kind.count for kind in self.kinds.values())

    @property
    def cured(self) -> int:
        """Positions that a retry could evaluate."""
        return sum(kind.cured for kind in self.kinds.values())

    def reject(self, name: str, message: str, call: CallKind, rows: FloatArray) -> None:
        """Count positions, shape (n, ...), that are rejected; numbers (n,) are no positions."""
        self._first(name, message, rows)
        self.kinds[name] = self.kinds[name].add(count=len(rows))
        if call in _EVALUATED_AGAIN and name != MINUS_INFINITY:
            self.lately.extend((call, row.copy()) for row in rows[-REMEMBERED:])

    def cure(self, cure: Cure) -> None:
        """Count a position that failed, and could be evaluated by a retry."""
        name = cure.cause.kind
        self._first(name, cure.cause.report, cure.position[None])
        self.kinds[name] = self.kinds[name].add(cured=1)

    def reject_gradient(self, cause: Cause | None, row: FloatArray, value: float) -> None:
        """Count a position, shape (1, dim), whose gradient is not finite, though U is.

        Parameters
        ----------
        cause
            What the gradient raised; None where it returned something else.
        row
            The position.
        value
            U there.
        """
        if cause is None:
            message = "returned a gradient that is not finite where U is"
            self.reject(BROKEN_GRADIENT, message, "gradient", row)
        else:
            self.reject(cause.kind, cause.report, "gradient", row)
        broken = self.broken_gradients
        count = broken.count + 1
        if value < broken.value:
            broken = BrokenGradients(value=value, position=row[0].copy())
        self.broken_gradients = attrs.evolve(broken, count=count)

    def tell(self, transform: CoordinateMap, dim: int) -> Mapping[str, FailureKind]:
        """Return the kinds with positions in the user's coordinates, the most frequent first.

        Parameters
        ----------
        transform
            The map to these coordinates.
        dim
            Numbers in a position.
        """
        ordered = sorted(self.kinds.items(), key=lambda item: -item[1].count - item[1].cured)
        return {
            name: kind
            if kind.position is None
            else attrs.evolve(kind, position=_bounded(kind.position[:dim], transform))
            for name, kind in ordered
        }

    def tell_broken(self, transform: CoordinateMap) -> BrokenGradients:
        """Return the broken gradients with their position in the user's coordinates."""
        broken = self.broken_gradients
        if broken.position is None:
            return broken
        return attrs.evolve(broken, position=_bounded(broken.position, transform))

    def note_values(self, first: float, again: float) -> None:
        """Take in U of one position, evaluated twice."""
        if abs(first - again) > NOISE and math.isfinite(first) and math.isfinite(again):
            self.recheck = attrs.evolve(self.recheck, apart=(first, again))

    def _first(self, name: str, message: str, rows: FloatArray) -> None:
        if name not in self.kinds:
            at = rows[0].copy() if rows.ndim > 1 else None
            self.kinds[name] = FailureKind(message=message, position=at)


NOISE = 0.01
"""Nats by which two values at one position must differ to be told. Less hardly changes acceptance,
and sums of many rows in single precision may differ by as much."""


def _bounded(position: FloatArray, transform: CoordinateMap) -> FloatArray:
    with np.errstate(all="ignore"):
        return transform.to_bounded(position)
