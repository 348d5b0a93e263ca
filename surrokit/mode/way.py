"""The way of a search down to a mode: what it has paid for, and the best of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, cast

import numpy as np

from surrokit.contracts.matrices import HessianProductPotential
from surrokit.contracts.potential import Potential, with_gradient
from surrokit.mode.mode import Mode
from surrokit.mode.point import Point, evaluate
from surrokit.mode.steps.second_derivatives import (
    goes_by_adjoint,
    matrix_of,
    newton_decrement,
    second_derivatives,
)
from surrokit.types import FloatArray

Until: TypeAlias = Callable[[FloatArray, float, FloatArray], bool]
"""Tells from a position (dim,), the potential and its gradient there whether a search may end."""

STEADY = 3
"""Iterations in a row that gain less than the tolerance, before a search without matrices ends."""
_GROWS = 2.0  # times the gain before it, a gain on the way along a valley, which gets faster
_FAINT = 1e-6  # of the tolerance, gains that may be rounding
_ROUNDING = 4 * np.finfo(float).eps  # part of a potential that no two sums of it need agree in


class Enough(Exception):  # noqa: N818 - not an error
    """The search has converged, or may pay for no more."""


class Way:
    """What a search down to a mode has paid for, and the best of it.

    Parameters
    ----------
    potential
        One with capability ``gradient``.
    max_calls
        Evaluations at most.
    tolerance
        Nats that are not worth going on for.
    until
        Called with each finite position that is paid for; the search ends where it returns True.

    Attributes
    ----------
    calls
        Evaluations so far.
    best
        The one of least potential; None before the first.
    converged
        Whether there is no more to gain.
    matrix
        What second derivatives are made of; None where there are none.
    """

    def __init__(
        self, potential: Potential, max_calls: int, tolerance: float, until: Until | None
    ) -> None:
        self.potential = with_gradient(potential)
        self.until = until
        self.max_calls = max_calls
        self.tolerance = tolerance
        self.calls = 0
        self.first: Point | None = None
        self.best: Point | None = None
        self.last: Point | None = None
        self.hessian: FloatArray | None = None  # at the best
        self.decrement: float | None = None
        self.converged = False
        self.steady = 0
        self.last_value = np.inf
        self.last_gain = 0.0
        self.same = 0  # evaluations in a row that are the best value but for rounding
        self.matrix = matrix_of(potential)

    def at(self, position: FloatArray) -> Point:
        """Return the evaluation at a position; the first, best and last are not paid for again.

        :class:`Enough` ends the search if no more calls may be made, or ``until`` ends the search.
        """
        for point in (self.last, self.best, self.first):
            if point is not None and np.array_equal(point.position, position):
                return point
        self._pay()
        point = self.last = self._evaluate(np.array(position))
        self.first = self.first or point
        if self.best is not None:
            same = abs(point.value - self.best.value) <= _ROUNDING * abs(self.best.value)
            self.same = self.same + 1 if same else 0
        if point.finite and (self.best is None or point.value < self.best.value):
            self.best, self.hessian, self.decrement = point, None, None
        if self._seen_enough(point):
            raise Enough
        return point

    def _seen_enough(self, point: Point) -> bool:
        if self.until is None or not point.finite:
            return False
        return self.until(point.position, point.value, point.gradient)

    def matrix_at(self, point: Point) -> FloatArray | None:
        """Return second derivatives at the best point; None at any other, which the search leaves.

        :class:`Enough` ends the search if a Newton step would gain less than the tolerance, the
        matrix is not finite, or no more calls may be made.
        """
        if point is not self.best:
            return None
        if self.hessian is None:
            matrix = point.gauss_newton
            if matrix is None:
                self._pay()
                matrix = second_derivatives(self.matrix, self.potential, point.position)
            if not np.isfinite(matrix).all():
                raise Enough
            self.hessian = 0.5 * (matrix + matrix.T)
            self.decrement = newton_decrement(self.hessian, point.gradient)
            if self.decrement is not None and self.decrement < self.tolerance:
                self.converged = True
                raise Enough
        return self.hessian

    def product(self, q: FloatArray, vector: FloatArray) -> FloatArray:
        """Return the Hessian times a vector."""
        self._pay()
        potential = cast(HessianProductPotential, self.potential)
        return np.asarray(potential.hessian_product(q[None], vector[None])[0])

    def note_iteration(self, value: float) -> None:
        """Take note of the value at the end of an iteration.

        :class:`Enough` ends the search if several in a row gained less than the tolerance. One
        does not count that gained far more than the one before it: where a valley is long, steps
        along it begin small, and each is longer than the last.
        """
        gain = self.last_value - value
        if gain >= self.tolerance:
            self.steady = 0
        elif not gain > max(_GROWS * self.last_gain, _FAINT * self.tolerance):
            self.steady += 1
        self.last_value, self.last_gain = value, gain
        if self.steady == STEADY:
            self.converged = True
            raise Enough

    def note_rounding(self) -> None:
        """Take note of an evaluation that rounding may not tell from the best.

        :class:`Enough` ends the search if several in a row were such.
        """
        if self.same >= STEADY:
            self.converged = True
            raise Enough

    def look_around(self) -> None:
        """Pay for the Gauss-Newton matrix where a search by the adjoint has converged.

        :class:`Enough` ends the search if no more calls may be made, or the matrix is of no use.
        """
        if self.converged and goes_by_adjoint(self.potential):
            assert self.best is not None
            self._pay()
            self.matrix = "gauss-newton"
            point = self._evaluate(self.best.position)
            self.best = point if point.finite else self.best
            self.matrix_at(point)

    @property
    def lowest(self) -> FloatArray:
        """The best position so far, shape (dim,)."""
        assert self.best is not None
        return self.best.position

    def mode(self) -> Mode:
        """Return the best position so far."""
        assert self.best is not None
        return Mode(
            position=self.best.position,
            value=self.best.value,
            gradient=self.best.gradient,
            decrement=self.decrement,
            hessian=self.hessian,
            converged=self.converged,
            calls=self.calls,
        )

    def _pay(self) -> None:
        if self.calls >= self.max_calls:
            raise Enough
        self.calls += 1

    def _evaluate(self, position: FloatArray) -> Point:
        return evaluate(self.potential, position, gauss_newton=self.matrix == "gauss-newton")
