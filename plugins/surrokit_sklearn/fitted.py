"""A fitted scikit-learn regressor as a potential: predictions, and gradients by differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import attrs
import numpy as np

from surrokit.arguments import check_positions
from surrokit.errors import SurrogateFitError
from surrokit.surrogate.quality import FitQuality
from surrokit.surrogate.shown import ShownFit
from surrokit.surrogate.whitening import Whitening
from surrokit.types import BoolArray, Capabilities, FloatArray

NARROW = 1e-4
"""Step of differences of a smooth prediction, in units of z."""

WIDE = 0.3
"""Step where the prediction is constant in pieces, as of trees and neighbours.

Measured with forests, boosted trees and neighbours on logistic and banana targets, with 300 and
1500 points: gradients come out best with steps of 0.2 to 0.5.
"""

_BLOCK = 1_000_000  # numbers in the inputs of one call of the regressor
_OUT_OF_REACH = 1e8
"""Coordinate of a whitened position beyond which no regressor is evaluated: trees count in single
precision, and powers overflow."""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class FittedRegressor(ShownFit):
    """V(q) = level + curvature |z|^2 / 2 + scale f(z), in nats, with f what a regressor predicts.

    Frozen; every array it returns is new. Methods raise :class:`~surrokit.errors.ShapeError`
    unless positions are rows of ``dim`` numbers. Positions whose z is not finite or beyond 1e8 have
    V = inf and a gradient of NaN, so that a path that goes there is rejected.

    Parameters
    ----------
    slope
        The gradient of f, shape (n, dim), at whitened positions of shape (n, dim).
    n_points
        Distinct points that it was fitted to.
    quality
        Error at points held out from a second fit; None where none were.
    """

    dim: int
    regressor: Any
    slope: Callable[[FloatArray], FloatArray]
    whitening: Whitening
    level: float
    curvature: float
    scale: float
    capabilities: Capabilities
    n_points: int
    quality: FitQuality | None = None

    @property
    def gradient_kind(self) -> Literal["analytic", "differences"]:
        """Where gradients come from."""
        return "differences" if isinstance(self.slope, CentralDifferences) else "analytic"

    def __repr__(self) -> str:
        variance = "none" if self.quality is None else f"{self.quality.variance:.3g}"
        return (
            f"FittedRegressor(dim={self.dim}, regressor={type(self.regressor).__name__}, "
            f"n_points={self.n_points}, gradient_kind={self.gradient_kind!r}, "
            f"held_out_variance={variance})"
        )

    def value(self, positions: FloatArray) -> FloatArray:
        """Return V, shape (n,), at positions of shape (n, dim)."""
        return self._value(*self._inside(positions))

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient of V, shape (n, dim), at positions of shape (n, dim)."""
        return self._gradient(*self._inside(positions))

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return V, shape (n,), and its gradient, shape (n, dim)."""
        z, inside = self._inside(positions)
        return self._value(z, inside), self._gradient(z, inside)

    def variance(self, positions: FloatArray) -> FloatArray:
        """Return the regressor's own variance of V, shape (n,), in nats squared."""
        z, inside = self._inside(positions)
        variance = np.full(len(inside), np.inf)
        if len(z):
            variance[inside] = (self.scale * predicted_deviations(self.regressor, z)) ** 2
        return variance

    def _inside(self, positions: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Return the whitened positions within reach of the regressor, and which these are."""
        with np.errstate(over="ignore", invalid="ignore"):
            z = self.whitening.apply(check_positions(positions, self.dim))
            inside = np.asarray((np.abs(z) <= _OUT_OF_REACH).all(axis=1))
        return z[inside], inside

    def _value(self, z: FloatArray, inside: BoolArray) -> FloatArray:
        value = np.full(len(inside), np.inf)
        if len(z):
            found = self.scale * predicted(self.regressor, z)
            found += self.level + 0.5 * self.curvature * np.square(z).sum(axis=1)
            value[inside] = np.where(np.isnan(found), np.inf, found)
        return value

    def _gradient(self, z: FloatArray, inside: BoolArray) -> FloatArray:
        gradient = np.full((len(inside), self.dim), np.nan)
        if len(z):
            slopes = self.scale * self.slope(z) + self.curvature * z
            gradient[inside] = self.whitening.pull(slopes)
        return gradient


def predicted(regressor: Any, inputs: FloatArray) -> FloatArray:
    """Return the predictions, shape (n,), at inputs of shape (n, dim).

    Raises
    ------
    SurrogateFitError
        If the regressor returns another shape.
    """
    from sklearn import config_context

    # Inputs are checked already, and scikit-learn's checks cost more than a small prediction.
    with config_context(assume_finite=True, skip_parameter_validation=True):
        found = np.asarray(regressor.predict(inputs), dtype=np.float64)
    n = len(inputs)
    if found.shape not in ((n,), (n, 1)):
        raise SurrogateFitError(
            f"{type(regressor).__name__}.predict must return one number for each of {n} rows, got "
            f"shape {found.shape}; use a regressor for a single target"
        )
    return found.reshape(n)


def predicted_deviations(regressor: Any, inputs: FloatArray) -> FloatArray:
    """Return the standard deviations of the predictions, shape (n,), at inputs (n, dim)."""
    _, deviations = regressor.predict(inputs, return_std=True)
    return np.asarray(deviations, dtype=np.float64).reshape(len(inputs))


@attrs.frozen(kw_only=True, eq=False)
class CentralDifferences:
    """Slopes of a fitted regressor's prediction between two points, ``step`` to each side."""

    regressor: Any
    step: float

    def __call__(self, inputs: FloatArray) -> FloatArray:
        """Return the slopes, shape (n, dim), at inputs of shape (n, dim)."""
        n, dim = inputs.shape
        size = max(1, _BLOCK // (2 * dim * dim))
        blocks = [self._slopes(inputs[start : start + size]) for start in range(0, n, size)]
        return np.concatenate(blocks) if blocks else np.empty((0, dim))

    def _slopes(self, inputs: FloatArray) -> FloatArray:
        n, dim = inputs.shape
        steps = self.step * np.eye(dim)
        ahead, behind = inputs[:, None, :] + steps, inputs[:, None, :] - steps
        around = np.concatenate([ahead, behind]).reshape(2 * n * dim, dim)
        values = predicted(self.regressor, around).reshape(2, n, dim)
        # The distance as it is after rounding.
        widths = np.einsum("nkk->nk", ahead) - np.einsum("nkk->nk", behind)
        return np.asarray((values[0] - values[1]) / widths)


def differences(
    regressor: Any, step: float | None, inputs: FloatArray
) -> Callable[[FloatArray], FloatArray]:
    """Return the gradient of a fitted regressor by differences.

    A step of None is narrow, or wide where predictions near ``inputs (n, dim)`` are constant.
    """
    if step is None:
        slopes = CentralDifferences(regressor=regressor, step=NARROW)(inputs)
        step = WIDE if np.median(np.abs(slopes).max(axis=1)) == 0.0 else NARROW
    return CentralDifferences(regressor=regressor, step=step)
