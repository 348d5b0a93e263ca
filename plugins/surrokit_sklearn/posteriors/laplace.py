"""The normal distribution that a posterior is near to, found by a fit to a few rows first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.contracts.matrices import with_hessian
from surrokit.contracts.potential import Potential, with_gradient
from surrokit.errors import NumericalError
from surrokit.mode.search import find_mode
from surrokit.shapes import check_positions
from surrokit.types import Capabilities, FloatArray

FEW = 20_000
"""Rows up to which the search for the mode sees all of them from the start."""

_SHARE = 100  # of many rows, one in so many makes the first fit, with some more
_SOME = 5_000
_TOLERANCE = 1e-5
_CLOSE = 0.1  # nats that a step would gain: from there one of Newton's leads to the mode
_STEPS = 5


@attrs.frozen(kw_only=True, eq=False)
class Normal:
    """A normal distribution, as a potential.

    Parameters
    ----------
    mean : ndarray of shape (dim,)
        Its mean.
    precision : ndarray of shape (dim, dim)
        Inverse of its covariance.
    factor : ndarray of shape (dim, dim)
        L, with L L^T the covariance.
    """

    mean: FloatArray
    precision: FloatArray
    factor: FloatArray

    capabilities: ClassVar[Capabilities] = frozenset({can.GRADIENT, can.GAUSSIAN, can.CONVEX})
    """What it offers besides the value."""

    @classmethod
    def at(cls, mean: FloatArray, precision: FloatArray) -> Self | None:
        """Return the distribution; None where the precision is not positive definite."""
        try:
            lower = np.linalg.cholesky(precision)
            covariance = np.linalg.inv(lower).T @ np.linalg.inv(lower)
            factor = np.linalg.cholesky(0.5 * (covariance + covariance.T))
        except np.linalg.LinAlgError:
            return None
        return cls(mean=mean, precision=precision, factor=factor)

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return len(self.mean)

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,)."""
        return self.value_and_gradient(positions)[0]

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U, shape (n,), and its gradient, shape (n, dim)."""
        away = check_positions(positions, self.dim) - self.mean
        gradient = away @ self.precision
        return 0.5 * (away * gradient).sum(axis=1), gradient

    def draw_around(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Return n draws, shape (n, dim), moved so that the mode is their mean."""
        draws = self.draw(n, rng)
        return np.asarray(draws - draws.mean(axis=0) + self.mean)

    def draw(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Return draws, shape (n, dim)."""
        return self.mean + rng.standard_normal((n, self.dim)) @ self.factor.T


def laplace_of(
    target: Potential, start: FloatArray, few: Callable[[int], Potential], n_rows: int
) -> Normal | None:
    """Return the Laplace approximation of a posterior; None where there is none.

    With many rows the first fit is to some of them, and the mode of all is a step or two of
    Newton's from there.

    Parameters
    ----------
    target
        The posterior, with gradient and Hessian.
    start : ndarray of shape (dim,)
        Where the search starts.
    few
        Makes the posterior of every k-th row alone.
    n_rows
        How many rows there are.

    Raises
    ------
    NumericalError
        If the target is not finite at the start.
    """
    if n_rows > FEW:
        step = n_rows // (_SOME + n_rows // _SHARE)
        part: Any = few(step)
        first = find_mode(part, start, tolerance=_TOLERANCE)
        bend = first.hessian
        if bend is None:
            bend = with_hessian(part).hessian(first.position[None])[0]
        near = _finish(target, first.position, step * bend)
        if near is not None:
            return near
        start = first.position
    mode = find_mode(target, start, tolerance=_TOLERANCE)
    hessian = mode.hessian
    if hessian is None:
        hessian = with_hessian(target).hessian(mode.position[None])[0]
    return Normal.at(mode.position, hessian)


def _finish(target: Potential, at: FloatArray, bend: FloatArray) -> Normal | None:
    """Return the approximation by steps with a Hessian of fewer rows, and one with that of all.

    A gradient is cheaper than a Hessian, and steps with a Hessian that is wrong by a few per cent
    shorten the way to the mode to a few per cent. None where they do not lead to a mode.
    """
    exact = with_gradient(target)
    least, gain = np.inf, np.inf
    try:
        for _ in range(_STEPS):
            value, slope = (each[0] for each in exact.value_and_gradient(at[None]))
            step = np.linalg.solve(bend, slope)
            gain = 0.5 * slope @ step
            if not value <= least or gain <= _CLOSE:
                break
            at, least = at - step, value
        if not 0.0 <= gain <= _CLOSE:
            return None
        hessian = with_hessian(target).hessian(at[None])[0]
        return Normal.at(at - np.linalg.solve(hessian, slope), hessian)
    except np.linalg.LinAlgError:
        return None


def misfit_of(normal: Normal, target: Potential, n: int, rng: np.random.Generator) -> float:
    """Return the standard deviation of U - V over draws of the normal distribution, in nats.

    It is infinite where U is not finite at one of them.
    """
    at = normal.draw(n, rng)
    try:
        values = target.value(at)
    except NumericalError:
        return np.inf
    apart = values - normal.value(at)
    return float(apart.std()) if np.isfinite(apart).all() else np.inf
