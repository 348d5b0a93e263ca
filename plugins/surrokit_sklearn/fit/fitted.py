"""The potential that a fitted regressor is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import attrs
import numpy as np

from surrokit.shapes import check_positions
from surrokit.surrogate.quality import FitQuality
from surrokit.surrogate.shown import ShownFit
from surrokit.surrogate.whitening import Whitening
from surrokit.types import BoolArray, Capabilities, FloatArray
from surrokit_sklearn.fit.differences import CentralDifferences
from surrokit_sklearn.fit.prediction import predicted, predicted_deviations

_FAR = 1e8
"""Coordinate of a whitened position beyond which no regressor is asked: trees count in single
precision, and powers overflow."""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class FittedRegressor(ShownFit):
    """V(q) = level + curvature |z|^2 / 2 + scale f(z), in nats, with f what a regressor predicts.

    Frozen; every array it returns is new. Methods raise :class:`~surrokit.errors.ShapeError`
    unless positions are rows of ``dim`` numbers. Positions whose z is not finite or beyond 1e8 have
    V = inf and a gradient of NaN, so that a path that goes there is rejected.

    Parameters
    ----------
    dim
        Numbers in a position.
    regressor
        The fitted regressor.
    slope
        The gradient of f, shape (n, dim), at whitened positions of shape (n, dim).
    whitening
        From q to z.
    level, curvature, scale
        See above.
    capabilities
        Gradient, gradient alone, and perhaps variance.
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
        """Return whitened positions that can be handed to the regressor, and which these are."""
        with np.errstate(over="ignore", invalid="ignore"):
            z = self.whitening.apply(check_positions(positions, self.dim))
            inside = np.asarray((np.abs(z) <= _FAR).all(axis=1))
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
