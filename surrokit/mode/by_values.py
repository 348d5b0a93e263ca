"""The way down to a mode from values, where a gradient is made of differences of them.

First L-BFGS goes down by differences to one side. Where it gains little, a matrix of second
differences takes over: Newton's method in a trust region, with corrections of rank one between
matrices. It costs a few gradients, ends in the mode of collinear parameters too, where L-BFGS stops
tens of nats above it, and tells the curvature there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from surrokit.contracts.potential import Potential, with_gradient
from surrokit.errors import EvaluationError
from surrokit.mode.descent import TOLERANCE, descend
from surrokit.mode.mode import Mode
from surrokit.mode.steps.second_derivatives import newton_decrement
from surrokit.mode.steps.trust import Model, differences, least_radius, moves_of, step_within
from surrokit.mode.way import Until
from surrokit.model.model import calls_per_gradient
from surrokit.targets.differences import steps_by
from surrokit.types import FloatArray, IntArray

NEAR = 20.0
"""Nats that an iteration of L-BFGS gains at least, as long as it pays to go on with it."""

_POOR, _FAIR, _BETTER = 0.25, 0.75, 4.0
"""Parts of the gain foretold: below the first, and above the last, a matrix is of no use; above the
second the region grows."""

_WIDER = 3.0
_ROUNDED = 4.0 * np.finfo(np.float64).eps  # of U, what rounding leaves of two differences
_SHORTER = 0.7  # part of the usual step, for differences that have failed
_STANDING = 5  # evaluations in a row that are no lower
_MATRICES = 8  # that are measured before it is the turn of L-BFGS again


def descend_by_values(
    potential: Potential,
    start: FloatArray,
    *,
    max_calls: int,
    until: Until | None = None,
) -> Mode:
    """Go down to the position of least potential near a start, by values.

    It finds its own scales.

    Parameters
    ----------
    potential
        One whose gradients are differences of values.
    start : ndarray of shape (dim,)
        A position where potential and gradient are finite.
    max_calls
        Gradients that as many values would pay for, after which the best position is returned.
    until
        Called with finite positions (dim,) that the search comes to, the potential and its gradient
        there; the search ends where it returns True.

    Returns
    -------
    Mode
        The best position seen, converged or not.

    Raises
    ------
    NumericalError
        If the potential or its gradient is not finite at the start.
    ShapeError
        If ``start`` is not one position.
    """
    most = max_calls * calls_per_gradient(potential)
    with np.errstate(over="ignore", invalid="ignore"):  # a potential that falls and falls
        return _ByValues(potential, most, until).find(np.array(start, dtype=np.float64))


class _Enough(Exception):  # noqa: N818 - not an error
    """No more values may be paid for, or the search may end."""


class _ByValues:
    """The values of a search, and the model of them."""

    def __init__(self, potential: Potential, most: int, until: Until | None) -> None:
        self._potential = potential
        # rough gradients, fine for a search, would spoil a fit in a narrow valley
        self._aside: Potential = (
            cast(Any, potential).fork(keep=False) if hasattr(potential, "fork") else potential
        )
        self._most = most
        self._until = until
        self._ended = False
        self._spent = 0
        self._matrices = 0

    def find(self, start: FloatArray) -> Mode:
        """Return the best position, converged or not."""
        self._descend(start, NEAR)
        converged = False
        try:
            while not converged and not self._ended:
                converged = self._improve()
                if not converged:
                    self._descend(self._model.position, TOLERANCE)
        except _Enough:
            pass
        return self._mode(converged)

    def _descend(self, start: FloatArray, tolerance: float) -> None:
        """Run L-BFGS by differences to one side until iterations gain less than a tolerance."""
        price = self._potential.dim + 1
        if self._spent + price > self._most:
            raise _Enough
        found = descend(
            cast(Any, self._aside).one_sided(None),
            start,
            max_calls=max((self._most - self._spent) // price, 1),
            tolerance=tolerance,
            until=_Standing(self._watched),
            leaps=False,
        )
        self._spent += found.calls * price
        self._model = Model(
            position=found.position, value=found.value, gradient=found.gradient, hessian=None
        )

    def _mode(self, converged: bool) -> Mode:
        at = self._model
        exact = at.hessian if at.is_fresh else None
        return Mode(
            position=at.position,
            value=at.value,
            gradient=at.gradient,
            decrement=None if exact is None else newton_decrement(exact, at.gradient),
            hessian=exact,
            converged=converged,
            calls=-(-self._spent // calls_per_gradient(self._potential)),
        )

    def _improve(self) -> bool:
        """Run Newton's method; return whether there is nothing left to gain.

        In a narrow valley that bends matrices are soon of no use, and L-BFGS gets on.
        """
        self._matrices = 0
        self._measure()
        radius = least_radius(self._model)
        while self._matrices <= _MATRICES:
            step, gain, at_edge = step_within(self._model, radius)
            if gain < TOLERANCE and (self._model.is_fresh or not at_edge):
                if self._model.is_fresh:
                    return True
                self._measure()
                radius = least_radius(self._model)
                continue
            radius = self._try(step, gain, at_edge, radius)
        return False

    def _try(self, step: FloatArray, gain: float, at_edge: bool, radius: float) -> float:
        """Move if that is lower, and return the next radius."""
        model = self._model
        length = model.length(step)
        value = self._value(model.position + step)
        part, far = (model.value - value) / gain, False
        if part >= _FAIR and (part > 1.2 or at_edge):
            step, value, far = self._prolong(step, value)
        if value < model.value:
            fits = not far and _POOR < part < _BETTER
            self._move(model, step, value, fits=fits)
        elif not model.is_fresh:
            self._measure()
        if far:
            return least_radius(self._model)
        if part >= _FAIR:
            return max(radius, _WIDER * length)
        return _POOR * length if part < _POOR else radius

    def _prolong(self, step: FloatArray, value: float) -> tuple[FloatArray, float, bool]:
        """Return the step, doubled as long as that is lower, with U at its end."""
        far = False
        while (more := self._value(self._model.position + 2.0 * step)) < value:
            step, value, far = 2.0 * step, more, True
        return step, value, far

    def _move(self, model: Model, step: FloatArray, value: float, *, fits: bool) -> None:
        """Go to the end of a step; correct the matrix if the model fits, else measure it anew."""
        position = model.position + step
        self._model = model.at(position, value)
        if not fits:
            self._measure()
            return
        assert model.hessian is not None
        self._pay(len(step) + 1)
        sided = with_gradient(cast(Any, self._aside).one_sided(np.diag(model.hessian)))
        gradient = self._evaluate(lambda: sided.value_and_gradient(position[None])[1][0])
        if gradient is None or not np.isfinite(gradient).all():
            self._measure()
            return
        self._model = model.corrected(step, value, gradient)
        self._watch()

    def _measure(self) -> None:
        """Take central differences of first and second order at the model's position.

        Those that fail are taken once more with other steps: a solver may fail here and there.
        """
        model, dim = self._model, len(self._model.position)
        known = None if model.hessian is None else np.diag(model.hessian)
        steps = steps_by(known, model.position[None], abs(model.value))[0]
        self._matrices += 1
        slopes, hessian = self._differences(np.arange(dim), steps)
        missing = np.isnan(hessian)
        if missing.any():
            odd = np.flatnonzero(missing.any(axis=0))
            some, others = self._differences(odd, _SHORTER * steps[odd])
            slopes[odd] = np.where(np.isnan(slopes[odd]), some, slopes[odd])
            inside = np.ix_(odd, odd)
            hessian[inside] = np.where(missing[inside], others, hessian[inside])
        self._model = model.measured(slopes, hessian)
        self._watch()

    def _differences(self, along: IntArray, steps: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return slopes and second derivatives along some coordinates (n,), NaN where they fail."""
        model = self._model
        downwards = np.where(model.gradient[along] > 0, -1.0, 1.0) * steps
        inside = moves_of(steps, downwards)
        moves = np.zeros((len(inside), len(model.position)))
        moves[:, along] = inside
        self._pay(len(moves))
        values = self._evaluate(lambda: self._aside.value(model.position + moves))
        rises = np.full(len(moves), np.nan) if values is None else values - model.value
        return differences(steps, downwards, rises, _ROUNDED * abs(model.value))

    def _value(self, position: FloatArray) -> float:
        self._pay(1)
        found = self._evaluate(lambda: self._potential.value(position[None]))
        return np.inf if found is None or not np.isfinite(found[0]) else float(found[0])

    def _evaluate(self, evaluate: Callable[[], FloatArray]) -> FloatArray | None:
        with np.errstate(all="ignore"):
            try:
                return evaluate()
            except EvaluationError as error:
                return None if not error.results else error.results[0]

    def _pay(self, values: int) -> None:
        if self._spent + values > self._most:
            raise _Enough
        self._spent += values

    def _watched(self, position: FloatArray, value: float, gradient: FloatArray) -> bool:
        self._ended = self._until is not None and self._until(position, value, gradient)
        return self._ended

    def _watch(self) -> None:
        at = self._model
        if self._watched(at.position, at.value, at.gradient):
            raise _Enough


class _Standing:
    """Ends L-BFGS where it does not get lower: rough gradients mislead it beside the mode.

    Parameters
    ----------
    until
        Ends it, too.
    """

    def __init__(self, until: Until) -> None:
        self._until = until
        self._least, self._since = np.inf, 0

    def __call__(self, position: FloatArray, value: float, gradient: FloatArray) -> bool:
        """Take note of a position (dim,); return whether the search may end."""
        self._since = 0 if value < self._least else self._since + 1
        self._least = min(value, self._least)
        return self._until(position, value, gradient) or self._since >= _STANDING
