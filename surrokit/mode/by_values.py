"""Descent to a mode by values alone, by steps within a trust region."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import attrs
import numpy as np

from surrokit.errors import EvaluationError
from surrokit.mode.descent import TOLERANCE, Mode, Until, descend, newton_decrement
from surrokit.model.model import calls_per_gradient
from surrokit.potentials import Potential, with_gradient
from surrokit.targets.differences import steps_by
from surrokit.types import FloatArray, IntArray

_FLAT_MODEL = 1e-12  # of the largest curvature, the most that scales no coordinate
_NOTHING = 1e-8  # of its bound, a correction's denominator below which there is none
_PRECISE = 1e-3  # of the shift of the eigenvalues


@attrs.frozen(kw_only=True, eq=False)
class Model:
    """U(q + s) = value + gradient . s + s^T hessian s / 2 about a position q (dim,).

    The matrix is None before it was measured, and ``is_fresh`` says whether that was here. Scales
    (dim,) are one by the root of the curvature along each coordinate.
    """

    position: FloatArray
    value: float
    gradient: FloatArray
    hessian: FloatArray | None
    is_fresh: bool = False
    scales: FloatArray = attrs.field()

    @scales.default
    def _ones(self) -> FloatArray:
        return np.ones(len(self.position))

    def length(self, step: FloatArray) -> float:
        """Return the length of a step (dim,) in units of the scales."""
        return float(np.linalg.norm(step / self.scales))

    def at(self, position: FloatArray, value: float) -> Model:
        """Return the model moved to another position (dim,), with a gradient that it foretells."""
        assert self.hessian is not None
        gradient = self.gradient + self.hessian @ (position - self.position)
        return attrs.evolve(self, position=position, value=value, gradient=gradient, is_fresh=False)

    def corrected(self, step: FloatArray, value: float, gradient: FloatArray) -> Model:
        """Return the model at the end of a step, with the symmetric correction of rank one."""
        assert self.hessian is not None
        left = gradient - self.gradient - self.hessian @ step
        along = float(left @ step)
        hessian = self.hessian
        if abs(along) > _NOTHING * float(np.linalg.norm(left * self.scales)) * self.length(step):
            hessian = hessian + np.outer(left, left) / along
        return attrs.evolve(
            self,
            position=self.position + step,
            value=value,
            gradient=gradient,
            hessian=hessian,
            is_fresh=False,
        )

    def measured(self, slopes: FloatArray, hessian: FloatArray) -> Model:
        """Return the model with first and second differences of values.

        Where these are NaN a slope is zero, and the matrix what it was before. A coordinate of
        which nothing is known has the usual curvature of the others, and one that is flat the usual
        scale: else steps along it would know no bounds.
        """
        slopes = np.where(np.isnan(slopes), 0.0, slopes)
        if self.hessian is not None:
            hessian = np.where(np.isnan(hessian), self.hessian, hessian)
        sizes = np.abs(np.diag(hessian))
        told = sizes > _FLAT_MODEL * float(np.max(sizes, where=~np.isnan(sizes), initial=0.0))
        usual = float(np.exp(np.log(sizes[told]).mean())) if told.any() else 0.0
        hessian = np.where(np.isnan(hessian), np.diag(np.full(len(slopes), usual)), hessian)
        scales = np.ones(len(slopes))
        if told.any():
            scales = 1.0 / np.sqrt(np.where(told, sizes, usual))
        return attrs.evolve(self, gradient=slopes, hessian=hessian, scales=scales, is_fresh=True)


def moves_of(steps: FloatArray, downwards: FloatArray) -> FloatArray:
    """Return the moves (2 n + n (n - 1) / 2, n) by which :func:`differences` are made.

    Steps (n,) are along each coordinate, and ``downwards`` the same with signs that lead down.
    """
    i, j = np.tril_indices(len(steps), -1)
    ahead, pairs = np.diag(steps), np.diag(downwards)[i] + np.diag(downwards)[j]
    return np.concatenate([ahead, -ahead, pairs])


def differences(
    steps: FloatArray, downwards: FloatArray, rises: FloatArray, rounding: float
) -> tuple[FloatArray, FloatArray]:
    """Return slopes (n,) and second derivatives (n, n), NaN where these need what is not finite.

    Where U is finite to one side alone the slope is that to this side. U is higher by ``rises``
    after each of the moves, and what is no more than ``rounding`` in the sum of two is nothing.
    """
    n = len(steps)
    rises = np.where(np.isfinite(rises), rises, np.nan)
    ahead, back, pairs = rises[:n], rises[n : 2 * n], rises[2 * n :]
    slopes = np.where(np.isnan(ahead), -back, np.where(np.isnan(back), ahead, np.nan)) / steps
    slopes = np.where(np.isnan(slopes), (ahead - back) / (2.0 * steps), slopes)
    bends = np.where(np.abs(ahead + back) <= rounding, 0.0, ahead + back)
    hessian = np.diag(bends / steps**2)
    down = np.where(downwards > 0, ahead, back)
    i, j = np.tril_indices(n, -1)
    hessian[i, j] = hessian[j, i] = (pairs - down[i] - down[j]) / (downwards[i] * downwards[j])
    return slopes, hessian


def least_radius(model: Model) -> float:
    """Return a radius in which the first step is not held back where U is convex."""
    return max(1.0, 1.01 * float(np.linalg.norm(model.gradient * model.scales)))


def step_within(model: Model, radius: float) -> tuple[FloatArray, float, bool]:
    """Return the best step (dim,) no longer than a radius in units of the model's scales.

    With it come its gain, and whether it is as long.
    """
    assert model.hessian is not None
    scales = model.scales
    sizes, vectors = np.linalg.eigh(model.hessian * np.outer(scales, scales))
    pulls = vectors.T @ (model.gradient * scales)

    def along(shift: float) -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.nan_to_num(-pulls / (sizes + shift), nan=0.0)

    at_edge = not (sizes[0] > 0.0 and np.linalg.norm(along(0.0)) <= radius)
    shift = _shift_to(along, max(0.0, -float(sizes[0])), radius) if at_edge else 0.0
    step = (vectors @ along(shift)) * scales
    gain = -float(model.gradient @ step + 0.5 * step @ model.hessian @ step)
    return step, gain, at_edge


def _shift_to(along: object, least: float, radius: float) -> float:
    """Return the shift of eigenvalues at which a step is about as long as the radius."""
    assert callable(along)
    low, high = least, max(2.0 * least, 1.0)
    while np.linalg.norm(along(high)) > radius:
        low, high = high, 4.0 * high
    for _ in range(100):
        if high - low < _PRECISE * high:
            break
        middle = 0.5 * (low + high)
        if np.linalg.norm(along(middle)) > radius:
            low = middle
        else:
            high = middle
    return high


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


def find_by_values(
    potential: Potential,
    start: FloatArray,
    *,
    max_calls: int,
    until: Until | None = None,
) -> Mode:
    """Find a mode by values of a potential whose gradients are differences of them.

    See :func:`~surrokit.mode.descent.find_mode`. The search finds its own scales, ends by the usual
    tolerance, and makes as many values as ``max_calls`` gradients would.
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
    """Ends L-BFGS where it does not get lower: rough gradients mislead it beside the mode."""

    def __init__(self, until: Until) -> None:
        self._until = until
        self._least, self._since = np.inf, 0

    def __call__(self, position: FloatArray, value: float, gradient: FloatArray) -> bool:
        """Take note of a position (dim,); return whether the search may end."""
        self._since = 0 if value < self._least else self._since + 1
        self._least = min(value, self._least)
        return self._until(position, value, gradient) or self._since >= _STANDING
