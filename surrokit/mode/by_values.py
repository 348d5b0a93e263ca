"""Descent to a mode by values alone: L-BFGS by rough differences, then Newton's method.

Far from the mode L-BFGS goes by differences to one side, as long as an iteration gains enough. Then
central differences of first and second order make a quadratic, whose least within a trust region
comes next. In a narrow valley that bends matrices are soon of no use, and it is the turn of L-BFGS
again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import attrs
import numpy as np

from surrokit.errors import EvaluationError
from surrokit.mode.descent import TOLERANCE, Mode, Until, descend, newton_decrement
from surrokit.model.model import calls_per_gradient
from surrokit.potentials import Potential
from surrokit.targets.differences import steps_by
from surrokit.types import FloatArray

_MATRICES = 9  # that are measured before it is the turn of L-BFGS again


@attrs.frozen(kw_only=True, eq=False)
class Model:
    """U(q + s) = value + gradient . s + s^T hessian s / 2 about a position q (dim,).

    Scales (dim,) are one by the root of the curvature along each coordinate.
    """

    position: FloatArray
    value: float
    gradient: FloatArray
    hessian: FloatArray
    scales: FloatArray

    @classmethod
    def measured(
        cls,
        position: FloatArray,
        value: float,
        slopes: FloatArray,
        hessian: FloatArray,
        before: FloatArray | None = None,
    ) -> Model:
        """Return the model by first and second differences of values, NaN where these failed.

        There a slope is zero, and the matrix what it was ``before``. A coordinate of which nothing
        is known has the usual curvature of the others, and one that is flat the usual scale: else
        steps along it would know no bounds.
        """
        slopes = np.where(np.isnan(slopes), 0.0, slopes)
        if before is not None:
            hessian = np.where(np.isnan(hessian), before, hessian)
        sizes = np.abs(np.diag(hessian))
        told = sizes > 1e-12 * float(np.max(sizes, where=~np.isnan(sizes), initial=0.0))
        usual = float(np.exp(np.log(sizes[told]).mean())) if told.any() else 0.0
        hessian = np.where(np.isnan(hessian), np.diag(np.full(len(slopes), usual)), hessian)
        scales = np.ones(len(slopes))
        if told.any():
            scales = 1.0 / np.sqrt(np.where(told, sizes, usual))
        return cls(position=position, value=value, gradient=slopes, hessian=hessian, scales=scales)

    @property
    def least_radius(self) -> float:
        """A radius in which the first step is not held back where U is convex."""
        return max(1.0, 1.01 * float(np.linalg.norm(self.gradient * self.scales)))

    def step_within(self, radius: float) -> tuple[FloatArray, float]:
        """Return the best step (dim,) no longer than a radius in units of the scales; its gain."""
        scales = self.scales
        sizes, vectors = np.linalg.eigh(self.hessian * np.outer(scales, scales))
        pulls = vectors.T @ (self.gradient * scales)

        def along(shift: float) -> FloatArray:
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.nan_to_num(-pulls / (sizes + shift), nan=0.0)

        shift = 0.0
        if not (sizes[0] > 0.0 and np.linalg.norm(along(0.0)) <= radius):
            low = max(0.0, -float(sizes[0]))
            shift = max(2.0 * low, 1.0)
            while np.linalg.norm(along(shift)) > radius:
                low, shift = shift, 4.0 * shift
            while shift - low > 1e-3 * shift:
                middle = 0.5 * (low + shift)
                too_long = np.linalg.norm(along(middle)) > radius
                low, shift = (middle, shift) if too_long else (low, middle)
        step = (vectors @ along(shift)) * scales
        return step, -float(self.gradient @ step + 0.5 * step @ self.hessian @ step)


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
    """No more values may be evaluated, or the search may end."""


class _ByValues:
    """The values of a search, and the best place so far."""

    _best: Mode

    def __init__(self, potential: Potential, most: int, until: Until | None) -> None:
        self._potential, self._most, self._until = potential, most, until
        # rough gradients, fine for a search, would spoil a fit in a narrow valley
        self._aside: Any = (
            cast(Any, potential).fork(keep=False) if hasattr(potential, "fork") else potential
        )
        self._ended, self._spent = False, 0

    def find(self, start: FloatArray) -> Mode:
        """Return the best position, converged or not."""
        converged = False
        try:
            self._descend(start, 20.0)  # as long as an iteration gains so many nats
            while not converged and not self._ended:
                converged = self._improve()
                if not converged:
                    self._descend(self._best.position, TOLERANCE)
        except _Enough:
            pass
        calls = -(-self._spent // calls_per_gradient(self._potential))
        return attrs.evolve(self._best, converged=converged, calls=calls)

    def _descend(self, start: FloatArray, tolerance: float) -> None:
        """Run L-BFGS by differences to one side until iterations gain less than a tolerance."""
        price = self._potential.dim + 1
        most = (self._most - self._spent) // price
        if most < 1:
            raise _Enough
        found = descend(
            self._aside.one_sided(None),
            start,
            max_calls=most,
            tolerance=tolerance,
            until=self._watched,
            leaps=False,
        )
        self._spent += found.calls * price
        self._best = found

    def _improve(self) -> bool:
        """Run Newton's method; return whether there is nothing left to gain."""
        model = self._measure(None)
        radius = model.least_radius
        for _ in range(_MATRICES):
            value = np.inf
            while not value < model.value:
                step, gain = model.step_within(radius)
                if gain < TOLERANCE:
                    return True
                length = float(np.linalg.norm(step / model.scales))
                value = self._value(model.position + step)
                part = (model.value - value) / gain
                if part >= 0.75:
                    radius = max(radius, 3.0 * length)
                elif part < 0.25:
                    radius = 0.25 * length
            self._best = attrs.evolve(
                self._best,
                position=model.position + step,
                value=value,
                gradient=model.gradient + model.hessian @ step,
                hessian=None,
                decrement=None,
            )
            model = self._measure(model.hessian)
        return False

    def _measure(self, before: FloatArray | None) -> Model:
        """Return central differences of first and second order at the best position.

        Those that fail are taken once more with other steps: a solver may fail here and there.
        """
        best = self._best
        known = None if before is None else np.diag(before)
        steps = steps_by(known, best.position[None], abs(best.value))[0]
        slopes, hessian = self._differences(steps)
        if np.isnan(hessian).any():
            others = self._differences(0.7 * steps)
            slopes = np.where(np.isnan(slopes), others[0], slopes)
            hessian = np.where(np.isnan(hessian), others[1], hessian)
        model = Model.measured(best.position, best.value, slopes, hessian, before)
        self._best = attrs.evolve(
            best,
            gradient=model.gradient,
            hessian=model.hessian,
            decrement=newton_decrement(model.hessian, model.gradient),
        )
        if self._watched(model.position, model.value, model.gradient):
            raise _Enough
        return model

    def _differences(self, steps: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return slopes (n,) and second derivatives (n, n), NaN where these fail.

        Where U is finite to one side alone the slope is that to this side.
        """
        best, n = self._best, len(steps)
        downwards = np.where(best.gradient > 0, -1.0, 1.0) * steps
        i, j = np.tril_indices(n, -1)
        pairs = np.diag(downwards)[i] + np.diag(downwards)[j]
        moves = np.concatenate([np.diag(steps), -np.diag(steps), pairs])
        self._count(len(moves))
        values = self._evaluate(lambda: self._aside.value(best.position + moves))
        rises = np.full(len(moves), np.nan) if values is None else values - best.value
        rises = np.where(np.isfinite(rises), rises, np.nan)
        ahead, back, both = rises[:n], rises[n : 2 * n], rises[2 * n :]
        slopes = np.where(np.isnan(ahead), -back, np.where(np.isnan(back), ahead, np.nan)) / steps
        slopes = np.where(np.isnan(slopes), (ahead - back) / (2.0 * steps), slopes)
        bends = ahead + back
        bends[np.abs(bends) <= 4.0 * np.finfo(np.float64).eps * abs(best.value)] = 0.0  # rounding
        hessian = np.diag(bends / steps**2)
        down = np.where(downwards > 0, ahead, back)
        hessian[i, j] = hessian[j, i] = (both - down[i] - down[j]) / (downwards[i] * downwards[j])
        return slopes, hessian

    def _value(self, position: FloatArray) -> float:
        self._count(1)
        found = self._evaluate(lambda: self._potential.value(position[None]))
        return np.inf if found is None or not np.isfinite(found[0]) else float(found[0])

    def _evaluate(self, evaluate: Callable[[], FloatArray]) -> FloatArray | None:
        with np.errstate(all="ignore"):
            try:
                return evaluate()
            except EvaluationError as error:
                return None if not error.results else error.results[0]

    def _count(self, values: int) -> None:
        if self._spent + values > self._most:
            raise _Enough
        self._spent += values

    def _watched(self, position: FloatArray, value: float, gradient: FloatArray) -> bool:
        self._ended = self._until is not None and self._until(position, value, gradient)
        return self._ended
