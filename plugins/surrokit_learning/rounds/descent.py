"""The way down to a surrogate's mode, where draws from it do not get there."""

from __future__ import annotations

import numpy as np

from surrokit.capabilities import GRADIENT, HESSIAN
from surrokit.errors import NumericalError
from surrokit.interfaces import Evaluations
from surrokit.mode.descent import descend
from surrokit.potentials import Potential, with_hessian
from surrokit.types import FloatArray
from surrokit_learning.region.design import Design, inverse_curvature, normal_design

LOWER = 1.0
"""Nats by which the mode of a surrogate must lie below the best point for the next ones to be about
it."""


def mode_of(surrogate: Potential, start: FloatArray) -> FloatArray:
    """Return the mode of a surrogate, or where there is none to be found, the start (dim,)."""
    if GRADIENT not in surrogate.capabilities:
        return start
    try:
        # a surrogate's gradients cost no exact calls, whatever they are made of
        found = descend(surrogate, start)
    except NumericalError:
        return start
    return found.position if found.converged else start


def design_below(
    surrogate: Potential, seen: Evaluations, n: int, rng: np.random.Generator
) -> Design | None:
    """Return draws about the surrogate's mode if that is lower than all that was seen, else None.

    Draws from a surrogate that do not move may be held back by the region of its points: the mass
    is beyond it, farther along a valley in which the search for the mode has stopped.

    Parameters
    ----------
    surrogate
        Learnt from gradients: values tell nothing of what lies beyond their points.
    seen
        At least one point, with finite values.
    n
        How many draws.
    rng
        Generator.
    """
    if HESSIAN not in surrogate.capabilities:
        return None
    best = seen.positions[int(np.argmin(seen.values))]
    mode = mode_of(surrogate, best)
    at_mode, at_best = surrogate.value(np.stack([mode, best]))
    if not at_mode < at_best - LOWER:
        return None
    hessian = with_hessian(surrogate).hessian(mode[None])[0]
    return normal_design(mode, inverse_curvature(hessian), n, rng)
