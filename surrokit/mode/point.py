"""A position that a search for a mode has paid for."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.contracts.potential import GradientPotential
from surrokit.errors import EvaluationError
from surrokit.mode.steps.second_derivatives import gauss_newton_at
from surrokit.types import FloatArray


@attrs.frozen(kw_only=True, eq=False)
class Point:
    """A position that has been paid for.

    Parameters
    ----------
    position : ndarray of shape (dim,)
        The position.
    value : float
        The potential there; infinite where it is not finite or cannot be evaluated.
    gradient : ndarray of shape (dim,)
        Its gradient; NaN where it cannot be evaluated.
    gauss_newton : ndarray of shape (dim, dim) or None
        The Gauss-Newton matrix, where a Jacobian was paid for.
    """

    position: FloatArray
    value: float
    gradient: FloatArray
    gauss_newton: FloatArray | None

    @property
    def finite(self) -> bool:
        """Whether potential and gradient are finite."""
        return bool(np.isfinite(self.value) and np.isfinite(self.gradient).all())


def evaluate(potential: GradientPotential, position: FloatArray, *, gauss_newton: bool) -> Point:
    """Pay for a position (dim,): for its Jacobian to have the Gauss-Newton matrix, else less."""
    matrix: FloatArray | None = None
    with np.errstate(all="ignore"):
        try:
            if gauss_newton:
                value, gradient, matrix = gauss_newton_at(potential, position)
            else:
                values, gradients = potential.value_and_gradient(position[None])
                value, gradient = float(values[0]), gradients[0]
        except EvaluationError:
            value, gradient = np.inf, np.full(len(position), np.nan)
    return Point(
        position=position,
        value=value if np.isfinite(value) else np.inf,
        gradient=np.asarray(gradient, dtype=np.float64),
        gauss_newton=matrix,
    )
