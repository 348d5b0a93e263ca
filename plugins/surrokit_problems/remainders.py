"""Remainders of expansions, to nearly all digits however short the step.

Written as a difference, f(x + t) - f(x) - f'(x) t - f''(x) t^2 / 2, a remainder loses its digits
where the step is short. Its integral form does not:

    R(x, t) = t^3 / 2 * the integral over s from 0 to 1 of (1 - s)^2 f'''(x + s t).

Where the next singularity of f is far away for the step, a few nodes of the Gauss-Jacobi rule for
the weight (1 - s)^2 integrate to the last digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from scipy.special import roots_jacobi

from surrokit.types import BoolArray, FloatArray

# Largest step, by the radius of convergence, and how many nodes do there. Relatively to R, x dR/dx
# and t dR/dt the error is below 1e-13 with each, for logarithms (whose singularity is the nearest
# that can be, at the radius) and for the families here.
_NODES = ((0.016, 3), (0.06, 4), (0.12, 5), (0.24, 6), (0.36, 8), (0.48, 10))
_LONGEST = _NODES[-1][0]
_DIGITS = 1e-17


def second_order_remainders(
    steps: FloatArray,
    sizes: FloatArray,
    third: Callable[[FloatArray], FloatArray],
    difference: Callable[[BoolArray], FloatArray],
) -> FloatArray:
    """Return R, of the shape of the steps.

    Parameters
    ----------
    steps : ndarray
        t.
    sizes : ndarray
        abs(t) in units of the distance from x to the nearest singularity of f in the complex plane,
        or of something shorter; of the same shape.
    third
        f''' at x and moves of shape (n, *shape of the steps), which it may overwrite.
    difference
        R as a difference for a mask of steps: where they are longer than half of that distance.
    """
    largest = sizes.max(initial=0.0)
    if largest <= _LONGEST:
        return _integral(steps, third, largest)
    far = sizes > _LONGEST  # not where sizes are NaN
    found = _integral(np.where(far, 0.0, steps), third, sizes[~far].max(initial=0.0))
    found[far] = difference(far)
    return found


def _integral(
    steps: FloatArray, third: Callable[[FloatArray], FloatArray], largest: float
) -> FloatArray:
    n = next((n for size, n in _NODES if largest <= size), _NODES[-1][1])
    nodes, weights = unit_rule(n, 2, 0)
    total = (weights @ third(np.multiply.outer(nodes, steps)).reshape(n, -1)).reshape(steps.shape)
    total *= 0.5
    for _ in range(3):
        total *= steps
    return np.asarray(total)


@cache
def unit_rule(n: int, down: int, up: int) -> tuple[FloatArray, FloatArray]:
    """Return n nodes and weights, shape (n,), for (1 - s)^down s^up on the unit interval."""
    nodes, weights = roots_jacobi(n, down, up)  # for (1 - u)^down (1 + u)^up from -1 to 1
    return 0.5 * (1.0 + nodes), weights / 2.0 ** (down + up + 1)


def exponential_remainder(u: FloatArray, order: int, largest: float) -> FloatArray:
    """Return exp(u) less its terms up to u^order, 2 or 3.

    ``largest`` is the largest abs(u), and best below about 1.
    """
    last = order + 2
    while largest ** (last - order - 1) * math.factorial(order + 1) > _DIGITS * math.factorial(
        last
    ):
        last += 1
    total = np.full(u.shape, 1.0 / math.factorial(last))
    for k in range(last - 1, order, -1):
        total *= u
        total += 1.0 / math.factorial(k)
    for _ in range(order + 1):
        total *= u
    return total
