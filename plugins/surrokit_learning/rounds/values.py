"""Evaluations where values are all that there is, and gradients are made of them."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from surrokit.exploring.standing import evaluate_alone, evaluate_with_gradients
from surrokit.potentials import Potential
from surrokit.targets.differences import RISE
from surrokit.types import FloatArray
from surrokit_learning.region.design import inverse_curvature
from surrokit_learning.rounds.judgement import Judgement
from surrokit_learning.rounds.queue import Queue

ERROR = 0.02
"""Error of a gradient, where a standard deviation is one unit, up to which differences to one side
will do. Where parameters are nearly collinear it is larger."""

_VARIES = 0.3  # part by which curvatures in the bulk are taken to differ from those at the mode


def suits_one_side(hessian: FloatArray) -> bool:
    """Return whether differences to one side will do, by a matrix (dim, dim) at the mode."""
    diagonal = np.diag(hessian)
    if not (diagonal > 0.0).all():
        return False
    bent = 0.5 * _VARIES * np.sqrt(2.0 * RISE * diagonal)
    # errors of correlated parameters may add up
    return bool(np.sqrt(bent @ np.abs(inverse_curvature(hessian)) @ bent) <= ERROR)


def evaluate_sparingly(
    potential: Potential, points: Queue, hessian: FloatArray | None, good: float
) -> FloatArray:
    """Return U at points (n, dim); gradients, kept by what records, are paid for where that pays.

    Values judge, gradients teach: if the values say that the surrogate is good, there is nothing
    to be learnt.

    Parameters
    ----------
    potential
        One whose gradients are differences of values.
    points
        Where.
    hessian : ndarray of shape (dim, dim), optional
        At the mode. By its diagonal differences to one side are corrected.
    good
        Predicted acceptance from which on a surrogate is good.
    """
    if points.trusted and points.judges:
        values = evaluate_alone(potential, points.positions)
        judgement = Judgement.of(points, values)
        if judgement.acceptance >= good and not judgement.missed:
            return values
    if hessian is None or not suits_one_side(hessian):
        return evaluate_with_gradients(potential, points.positions)[0]
    sided: Potential = cast(Any, potential).one_sided(np.diag(hessian))
    return evaluate_with_gradients(sided, points.positions)[0]
