"""Remainders of second-order expansions, to nearly all digits however short the step.

Written as a difference, f(x + t) - f(x) - f'(x) t - f''(x) t^2 / 2, a remainder loses its digits
where the step is short. Its integral form does not:

    R(x, t) = t^3 / 2 * the integral over s from 0 to 1 of (1 - s)^2 f'''(x + s t).

Where the next singularity of f is far away for the step, a few nodes of the Gauss-Jacobi rule for
the weight (1 - s)^2 integrate to the last digits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeAlias

import numpy as np
from scipy.special import roots_jacobi

from surrokit.types import BoolArray, FloatArray

Derivative: TypeAlias = Callable[[FloatArray], FloatArray]
"""Of moves, shape (n, *shape of the steps): f''' at x and such a move. May overwrite them."""

Difference: TypeAlias = Callable[[BoolArray], FloatArray]
"""Of a mask of steps: the remainders of those chosen, written as differences."""

# Largest step, by the radius of convergence, and how many nodes do there. Relatively to R, x dR/dx
# and t dR/dt the error is below 1e-13 with each, for logarithms (whose singularity is the nearest
# that can be, at the radius) and for the families here.
_NODES = ((0.016, 3), (0.06, 4), (0.12, 5), (0.24, 6), (0.36, 8), (0.48, 10))
_LONGEST = _NODES[-1][0]


def remainders(
    steps: FloatArray, sizes: FloatArray, derivative: Derivative, difference: Difference
) -> FloatArray:
    """Return R, of the shape of the steps.

    Parameters
    ----------
    steps : ndarray
        t.
    sizes : ndarray
        abs(t) in units of the distance from x to the nearest singularity of f in the complex plane,
        or of something shorter; of the same shape.
    derivative
        f'''.
    difference
        What is taken instead where steps are longer than half of that distance.
    """
    largest = sizes.max(initial=0.0)
    if largest <= _LONGEST:
        return _integral(steps, derivative, largest)
    far = sizes > _LONGEST  # not where sizes are NaN
    near = np.where(far, 0.0, steps)
    found = _integral(near, derivative, sizes[~far].max(initial=0.0))
    found[far] = difference(far)
    return found


def _integral(steps: FloatArray, derivative: Derivative, largest: float) -> FloatArray:
    n = next((n for size, n in _NODES if largest <= size), _NODES[-1][1])
    nodes, weights = unit_rule(n, 2, 0)
    integrands = derivative(np.multiply.outer(nodes, steps))
    total = (weights @ integrands.reshape(n, -1)).reshape(steps.shape)
    total *= 0.5
    for _ in range(3):
        total *= steps
    return np.asarray(total)


@cache
def unit_rule(n: int, down: int, up: int) -> tuple[FloatArray, FloatArray]:
    """Return n nodes and weights, shape (n,), for (1 - s)^down s^up on the unit interval."""
    nodes, weights = roots_jacobi(n, down, up)  # for (1 - u)^down (1 + u)^up from -1 to 1
    return 0.5 * (1.0 + nodes), weights / 2.0 ** (down + up + 1)
