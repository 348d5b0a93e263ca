"""Failed evaluations: counted by kind, and separated from chance."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import attrs
import numpy as np

from surrokit.capabilities import CallKind
from surrokit.coordinates.constraints import CoordinateMap
from surrokit.model.outcome import BROKEN_GRADIENT, MINUS_INFINITY, Cause, Cure
from surrokit.types import FloatArray

REMEMBERED = 50
"""Latest failed positions that are kept, for some of them to be evaluated once more."""


@attrs.frozen(kw_only=True, eq=False)
class FailureKind:
    """Failures of one kind: positions that were rejected for it, and those that a retry cured.

    ``message`` is what the target did the first time, and ``position (dim,)`` where that was, in
    the user's coordinates; None for single data rows.
    """

    count: int = 0
    cured: int = 0
    message: str = ""
    position: FloatArray | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain data."""
        position = None if self.position is None else self.position.tolist()
        return {**attrs.asdict(self), "position": position}


@attrs.frozen(kw_only=True)
class Recheck:
    """What came of evaluating positions once more.

    ``near`` of those that failed last lie near the chains. ``tried`` of them were evaluated, after
    so many ``retries`` each, and ``worked`` did not fail again. ``infinite`` of those with an
    infinite U were, and ``finite`` had a finite one. ``apart`` are two values of U at one position
    that differ; None where there are none. ``noise_sd`` is the standard deviation of U's noise, as
    declared or as found; None where values are exact, and NaN where it is not known. ``unbiased``
    says that the user declares estimates of the density to have the right mean. At ``cheap_failed``
    positions a cheap model beside the target failed.
    """

    tried: int = 0
    worked: int = 0
    apart: tuple[float, float] | None = None
    retries: int = 0
    infinite: int = 0
    finite: int = 0
    near: int = 0
    noise_sd: float | None = None
    unbiased: bool = False
    cheap_failed: int = 0

    @property
    def rate(self) -> float:
        """Part of the calls that fail at these positions, about; never quite 0 or 1."""
        return (self.tried - self.worked + 0.5) / (self.tried + 1)


@attrs.frozen(kw_only=True, eq=False)
class BrokenGradients:
    """How many positions a run met at which U is finite and its gradient is not.

    ``value`` is the least U among them, in the sampling coordinates, and ``position (dim,)`` its
    place in the user's; ``inf`` and None if there are none.
    """

    count: int = 0
    value: float = math.inf
    position: FloatArray | None = None


class FailureAccount:
    """Counts the failures of a target by kind; positions are in the sampling coordinates."""

    def __init__(self, retries: int = 0) -> None:
        self.kinds: dict[str, FailureKind] = {}
        self.broken_gradients = BrokenGradients()
        self.lately: deque[tuple[CallKind, FloatArray]] = deque(maxlen=REMEMBERED)
        self.infinite: deque[FloatArray] = deque(maxlen=REMEMBERED)  # U is; these are no failures
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
        kind = self._known(name, message, rows)
        self.kinds[name] = attrs.evolve(kind, count=kind.count + len(rows))
        again = call in ("value", "gradient", "forward", "jacobian", "vjp")
        if again and name != MINUS_INFINITY:
            self.lately.extend((call, row.copy()) for row in rows[-REMEMBERED:])

    def cure(self, cure: Cure) -> None:
        """Count a position that failed, and could be evaluated by a retry."""
        name = cure.cause.kind
        kind = self._known(name, cure.cause.report, cure.position[None])
        self.kinds[name] = attrs.evolve(kind, cured=kind.cured + 1)

    def reject_gradient(self, cause: Cause | None, row: FloatArray, value: float) -> None:
        """Count a position, shape (1, dim), whose gradient is not finite, though ``value`` is.

        ``cause`` is what the gradient raised; None where it returned something else.
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
        """Return the kinds with positions in the user's coordinates, the most frequent first."""
        ordered = sorted(self.kinds.items(), key=lambda item: -item[1].count - item[1].cured)
        return {name: _in_users(kind, transform, dim) for name, kind in ordered}

    def tell_broken(self, transform: CoordinateMap) -> BrokenGradients:
        """Return the broken gradients with their position in the user's coordinates."""
        return _in_users(self.broken_gradients, transform)

    def take_near(self, places: FloatArray) -> list[tuple[CallKind, FloatArray]]:
        """Return the latest failures near places (n, dim), count them as such, and forget all."""
        near = different_near(self.lately, places)
        self.lately.clear()
        self.recheck = attrs.evolve(self.recheck, near=self.recheck.near + len(near))
        return near

    def note_values(self, first: float, again: float) -> None:
        """Take in U of one position, evaluated twice."""
        if abs(first - again) > NOISE and math.isfinite(first) and math.isfinite(again):
            self.recheck = attrs.evolve(self.recheck, apart=(first, again))

    def _known(self, name: str, message: str, rows: FloatArray) -> FailureKind:
        """Return the failures of a kind so far, or the first one, which has a message and place."""
        at = rows[0].copy() if rows.ndim > 1 else None
        return self.kinds.get(name) or FailureKind(message=message, position=at)


NOISE = 0.01
"""Nats by which two values at one position must differ to be reported. Less hardly changes
acceptance, and sums of many rows in single precision may differ by as much."""


Reported = TypeVar("Reported", FailureKind, BrokenGradients)


def _in_users(reported: Reported, transform: CoordinateMap, dim: int | None = None) -> Reported:
    if reported.position is None:
        return reported
    with np.errstate(all="ignore"):
        return attrs.evolve(reported, position=transform.to_bounded(reported.position[:dim]))


SURE = 20
"""Rejected positions that fail again when tried once more, from which on they are taken to fail for
a reason; so are fewer, where the probability of that by chance is below 0.05."""

_LITTLE = 1e-3  # of the density may be lost to failures by chance: less than draws can show


def tell_chance(again: Recheck, cured: int, rejected: int) -> tuple[bool, str] | None:
    """Return what is known of failures by chance, and whether draws may be wrong; None for nothing.

    ``cured`` positions failed first, and could be evaluated by a retry.
    """
    if not (cured or again.worked):
        return None
    # the part of the calls that fail: of positions that fail at first, retries fail at its power
    rate = again.rate
    if cured:
        rate = float((rejected / (cured + rejected)) ** (1.0 / max(again.retries, 1)))
    for_a_reason = bool(again.tried) and not again.worked
    for_a_reason &= again.tried >= SURE or rate**again.tried < 0.05
    lost = rate ** (again.retries + 1) if rejected and not for_a_reason else 0.0
    doubt = lost >= _LITTLE
    if not again.retries:
        return doubt, (
            f"the target fails by chance, so that about {again.rate:.0%} of its density is lost "
            f"at such positions: {again.worked} of {again.tried} that had failed could be "
            "evaluated when tried once more. Pass compute=sk.Compute(on_error='retry', "
            f"retries={_needed(again.rate)}), or correct the model"
        )
    message = f"the target fails by chance: {cured} positions that failed were evaluated by a retry"
    if not rejected:
        return doubt, f"{message}; draws are right, since in the end every position was evaluated"
    message += f", and {rejected} {'was' if rejected == 1 else 'were'} rejected"
    if again.tried:
        works = again.worked or "none"
        message += f" ({works} of {again.tried} could be evaluated when tried once more)"
    if for_a_reason:
        return doubt, f"{message}; these fail for another reason, and draws are right"
    return doubt, (
        f"{message}: up to about {lost:.2g} of the density is lost. Give compute more "
        f"retries={_needed(rate)}, or correct the model"
    )


def tell_infinite(again: Recheck) -> str | None:
    """Return that U is infinite by chance, if so."""
    if not again.finite:
        return None
    rate = (again.infinite - again.finite + 0.5) / (again.infinite + 1)
    return (
        f"the target's U is infinite by chance, so that about {rate:.0%} of its density is lost "
        f"at such positions: {again.finite} of {again.infinite} had a finite one when evaluated "
        "once more. Let the model raise an exception, or return NaN, where it fails, and pass "
        f"compute=sk.Compute(on_error='retry', retries={_needed(rate)})"
    )


def _needed(rate: float) -> int:
    """Return the retries by which far less is lost than draws can show."""
    return max(1, math.ceil(math.log(0.1 * _LITTLE) / math.log(rate)) - 1)


def different_near(
    found: Iterable[tuple[CallKind, FloatArray]], places: FloatArray
) -> list[tuple[CallKind, FloatArray]]:
    """Return calls at different positions within a width of places (n, dim), the last one first.

    Columns beyond a position's are left out. Where places have no width, all are near.
    """
    dim = places.shape[1]
    low, high = places.min(axis=0, initial=np.inf), places.max(axis=0, initial=-np.inf)
    width = high - low
    different = {
        row[:dim].tobytes(): (call, row[:dim])
        for call, row in found
        if not (width > 0.0).all()
        or ((row[:dim] >= low - width) & (row[:dim] <= high + width)).all()
    }
    return list(different.values())[::-1]
