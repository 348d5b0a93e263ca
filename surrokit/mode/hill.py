"""The way down a line along which a potential falls exponentially.

So it does where the logarithm of a scale is far too small: by a step of usual length it would take
very many evaluations to come down.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

Height: TypeAlias = tuple[float, float, float]
"""How far along a line, the potential there, and its slope along the line; both are infinite where
the potential cannot be evaluated, so that the line ends before."""

MOST = 8
"""Evaluations along one line at most."""

STEEPER, OFF, INSIDE = 2.0, 0.05, 0.1
"""Times that the slope at one point must be that at the next, for their drop to tell a quadratic
from an exponential; part of the drop by which an exponential may miss it; and part of a bracket
that the next point keeps away from both its ends."""


def slide(height: Callable[[float], Height], *, level: float) -> bool:
    """Evaluate at 1 along a line, and farther on where the potential falls exponentially from 0.

    Evaluations go on to where a quadratic explains the fall better, or no more than ``level`` nats
    are left; return whether there was more than one.
    """
    lower, upper, rate, further = height(0.0), None, None, 1.0
    for i in range(MOST):
        now = height(lower[0] + further)
        if now[2] >= 0.0:
            upper = now
        else:
            rate = rate_of_fall(lower, now) if upper is None else rate
            lower = now
        if rate is None:
            return i > 0
        left = -lower[2] / rate  # of the exponential
        if upper is not None:
            further = _between(upper[0] - lower[0], left * rate, upper[2], rate, level)
        else:
            further = math.log(left / level) / rate if left > 2.0 * level else 0.0
        if further <= 0.0:
            return i > 0
    return True


def rate_of_fall(start: Height, end: Height) -> float | None:
    """Return the rate at which a potential falls exponentially between two points of a line.

    Each is how far along, the potential and its slope. None where a quadratic explains the drop
    better, or slopes are too much alike to tell. The mean slope is the arithmetic one of a
    quadratic's, and the logarithmic one of an exponential's.
    """
    width, drop, slope, after = end[0] - start[0], start[1] - end[1], start[2], end[2]
    if not (-math.inf < slope < STEEPER * after < 0.0 and math.isfinite(drop)):
        return None
    rate = math.log(slope / after) / width
    exponential, quadratic = (after - slope) / rate, -0.5 * width * (slope + after)
    off = abs(drop - exponential)
    return rate if off < min(abs(drop - quadratic), OFF * exponential) else None


def _between(width: float, down: float, up: float, rate: float, level: float) -> float:
    """Return where an exponential and a line are least together, between slopes -down and up.

    0 if they are there within a level of where the slope is -down.
    """
    if math.isinf(up):
        return 0.5 * width
    falling = (up + down) / -math.expm1(-rate * width)
    rising = falling - down
    if not rising > 0.0:
        return 0.0
    step = math.log(falling / rising) / rate
    gain = -(rising * step + falling * math.expm1(-rate * step) / rate)
    return min(max(step, INSIDE * width), (1.0 - INSIDE) * width) if gain > level else 0.0
