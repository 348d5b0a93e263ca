"""The way down where a potential falls exponentially, as it does with the logarithm of a scale.

Far from the mass the potential of a regression falls to a half with each step that its sd grows by.
Newton's method and L-BFGS take steps as for a quadratic, and gain such a part with each evaluation,
however high they begin. An exponential that goes through two points of a line tells where it ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import attrs

MOST = 8
"""Evaluations along one line at most."""

STEEPER = 2.0
"""Times that the slope at one point must be that at the next, for their drop to tell a quadratic
from an exponential."""

OFF = 0.05
"""Part of the drop by which an exponential may miss it."""

INSIDE = 0.1
"""Part of a bracket that the next point keeps away from both its ends."""


@attrs.frozen(kw_only=True)
class Height:
    """The potential at a point of a line.

    Parameters
    ----------
    way
        How far along the line.
    value, slope
        The potential in nats and its derivative along the line; both infinite where the potential
        cannot be evaluated, so that the line ends before.
    """

    way: float
    value: float
    slope: float


Line: TypeAlias = Callable[[float], Height]
"""The potential as far along a line as told."""


def slide(line: Line, start: Height, *, level: float) -> int:
    """Evaluate a potential along a line, down to where it no longer falls exponentially.

    The first evaluation is at 1. More follow only if an exponential explains it better than a
    quadratic does.

    Parameters
    ----------
    line
        What evaluates, and keeps what it has seen.
    start
        At 0, where the potential falls along the line.
    level
        Nats that are not worth another evaluation.

    Returns
    -------
    int
        How many evaluations there were.
    """
    lower = line(1.0)
    rate = rate_between(start, lower)
    upper: Height | None = None
    for paid in range(1, MOST):
        if rate is None:
            return paid
        way = _beyond(lower, rate, level) if upper is None else _between(lower, upper, rate, level)
        if way is None:
            return paid
        point = line(way)
        if point.slope >= 0.0:
            upper = point
        else:
            before, lower = lower, point
            rate = rate_between(before, lower) if upper is None else rate
    return MOST


def rate_between(start: Height, end: Height) -> float | None:
    """Return the rate at which a potential falls exponentially between two points of a line.

    None where a quadratic explains the difference of the potentials better, or slopes are too much
    alike to tell. The mean slope is the arithmetic one of a quadratic's, and the logarithmic one of
    an exponential's.
    """
    if not (
        -math.inf < start.slope < 0.0 and end.slope < 0.0 and start.slope < STEEPER * end.slope
    ):
        return None
    width, drop = end.way - start.way, start.value - end.value
    rate = math.log(start.slope / end.slope) / width
    if not (rate > 0.0 and math.isfinite(drop)):
        return None
    exponential = (end.slope - start.slope) / rate
    quadratic = -0.5 * width * (start.slope + end.slope)
    off = abs(drop - exponential)
    return rate if off < min(abs(drop - quadratic), OFF * exponential) else None


def _beyond(lower: Height, rate: float, level: float) -> float | None:
    """Return where an exponential is within a level of its end; None if it nearly is."""
    left = -lower.slope / rate
    return lower.way + math.log(left / level) / rate if left > 2.0 * level else None


def _between(lower: Height, upper: Height, rate: float, level: float) -> float | None:
    """Return where an exponential and a line, which make slopes of both signs, are least together.

    None if they are there within a level of the lower point's potential.
    """
    width = upper.way - lower.way
    if math.isinf(upper.slope):
        return lower.way + 0.5 * width
    falling = (upper.slope - lower.slope) / -math.expm1(-rate * width)
    rising = lower.slope + falling
    if not rising > 0.0:
        return None
    step = math.log(falling / rising) / rate
    gain = -(rising * step + falling * math.expm1(-rate * step) / rate)
    if gain <= level:
        return None
    return lower.way + min(max(step, INSIDE * width), (1.0 - INSIDE) * width)
