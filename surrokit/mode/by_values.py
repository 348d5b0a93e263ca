"""Descent to a mode by values alone: L-BFGS by rough differences, then Newton's method.

Far from the mode L-BFGS goes by differences to one side, as long as an iteration gains enough. Then
central differences of first and second order make a matrix for Newton's method in a trust region.
In a narrow valley that bends matrices are soon of no use, and it is the turn of L-BFGS again.
"""

from __future__ import annotations

from typing import Any, cast

import attrs
import numpy as np

from surrokit.capabilities import GRADIENT, HESSIAN
from surrokit.errors import EvaluationError
from surrokit.mode.descent import TOLERANCE, Enough, Mode, Until, descend
from surrokit.model.model import calls_per_gradient
from surrokit.potentials import Potential
from surrokit.targets.differences import steps_by
from surrokit.types import FloatArray


def find_by_values(
    potential: Potential, start: FloatArray, *, max_calls: int, until: Until | None = None
) -> Mode:
    """Find a mode by values of a potential whose gradients are differences of them.

    See :func:`~surrokit.mode.search.find_mode`. The search finds its own scales, ends by the usual
    tolerance, and makes as many values as ``max_calls`` gradients would.
    """
    price, rough = calls_per_gradient(potential), potential.dim + 1
    most = left = max_calls * price
    # rough gradients, fine for a search, would spoil a fit in a narrow valley
    uncounted: Any = (
        cast(Any, potential).fork(keep=False) if hasattr(potential, "fork") else potential
    )
    ended, found = False, None
    at, tolerance = start, 20.0  # nats that an iteration has to gain before there is a matrix

    def watched(position: FloatArray, value: float, gradient: FloatArray) -> bool:
        nonlocal ended
        ended = until is not None and until(position, value, gradient)
        return ended

    with np.errstate(over="ignore", invalid="ignore"):  # a potential that falls and falls
        while found is None or not (found.converged or ended or left < rough):
            one_sided, calls = uncounted.one_sided(None), max(left // rough, 1)
            found = descend(
                one_sided, at, max_calls=calls, tolerance=tolerance, until=watched, rough=True
            )
            left, found = left - found.calls * rough, attrs.evolve(found, converged=False)
            if ended or left < potential.dim * (potential.dim + 3) // 2:
                break
            stencil = _Stencil(potential, uncounted, found, left)
            found = descend(stencil, found.position, max_calls=20, until=watched)
            left = stencil.left
            at, tolerance = found.position, TOLERANCE
    return attrs.evolve(found, calls=-(-(most - left) // price))


class _Stencil:
    """A potential with differences where it is lower than before, and NaN elsewhere."""

    capabilities = frozenset({GRADIENT, HESSIAN})

    def __init__(self, potential: Potential, uncounted: Potential, best: Mode, left: int) -> None:
        self.dim, self.left = potential.dim, left
        self._potential, self._uncounted, self._best = potential, uncounted, best
        self._matrix: FloatArray | None = None

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,)."""
        return self._evaluate(self._potential, positions)

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U, and the differences of a position that is the best so far."""
        best = self._best
        if not np.array_equal(positions[0], best.position):
            value = float(self.value(positions)[0])
            if not value < best.value:
                return np.array([value]), np.full((1, self.dim), np.nan)
            best = attrs.evolve(best, position=positions[0], value=value)
        self._best = attrs.evolve(best, gradient=self._measure(best))
        return np.array([best.value]), self._best.gradient[None]

    def hessian(self, positions: FloatArray) -> FloatArray:  # noqa: ARG002 - of the best alone
        """Return the second differences, shape (1, dim, dim)."""
        assert self._matrix is not None
        return self._matrix[None]

    def _measure(self, best: Mode) -> FloatArray:
        """Return the slopes at a position; take note of the second derivatives."""
        before = self._matrix
        known = None if before is None else np.diag(before)
        steps = steps_by(known, best.position[None], abs(best.value))[0]
        slopes, matrix = self._differences(best, steps)
        if np.isnan(matrix).any() and self.left >= self.dim * (self.dim + 3) // 2:
            others = self._differences(best, 0.7 * steps)
            slopes = np.where(np.isnan(slopes), others[0], slopes)
            matrix = np.where(np.isnan(matrix), others[1], matrix)
        if before is None:
            sizes = np.abs(np.diag(matrix))
            usual = np.exp(np.log(sizes[sizes > 0.0]).mean()) if (sizes > 0.0).any() else 0.0
            before = np.diag(np.full(self.dim, usual))
        self._matrix = np.where(np.isnan(matrix), before, matrix)
        return np.where(np.isnan(slopes), 0.0, slopes)

    def _differences(self, best: Mode, steps: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return slopes (n,) and second derivatives (n, n), NaN where these fail."""
        n = len(steps)
        downwards = np.where(best.gradient > 0, -1.0, 1.0) * steps
        i, j = np.tril_indices(n, -1)
        pairs = np.diag(downwards)[i] + np.diag(downwards)[j]
        moves = np.concatenate([np.diag(steps), -np.diag(steps), pairs])
        rises = self._evaluate(self._uncounted, best.position + moves) - best.value
        rises = np.where(np.isfinite(rises), rises, np.nan)
        ahead, back, both = rises[:n], rises[n : 2 * n], rises[2 * n :]
        slopes = np.where(np.isnan(ahead), -back, np.where(np.isnan(back), ahead, np.nan)) / steps
        slopes = np.where(np.isnan(slopes), (ahead - back) / (2.0 * steps), slopes)
        bends = ahead + back
        bends[np.abs(bends) <= 4.0 * np.finfo(np.float64).eps * abs(best.value)] = 0.0  # rounding
        matrix = np.diag(bends / steps**2)
        down = np.where(downwards > 0, ahead, back)
        matrix[i, j] = matrix[j, i] = (both - down[i] - down[j]) / (downwards[i] * downwards[j])
        return slopes, matrix

    def _evaluate(self, potential: Potential, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), infinite or NaN where it fails; the search ends without calls."""
        if self.left < len(positions):
            raise Enough
        self.left -= len(positions)
        with np.errstate(all="ignore"):
            try:
                return potential.value(positions)
            except EvaluationError as error:
                nothing = np.full(len(positions), np.inf)
                return np.asarray(error.results[0]) if error.results else nothing
