"""The Laplace approximation of a regression's posterior, and the parts of a run that follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import attrs
import numpy as np

from surrokit.compose import make
from surrokit.errors import NumericalError
from surrokit.mode.search import find_mode
from surrokit.potentials import Potential, with_gradient, with_hessian
from surrokit.targets.bounds import transform_of
from surrokit.types import FloatArray

MANY = 20_000
"""Rows from which on a few of them make the first fit, and decide on a move."""

_SHARE = 100  # of many rows, one in so many makes the first fit, with some more
_SOME = 5_000
_TOLERANCE = 1e-5
_CLOSE = 0.1  # nats that a step would gain: from there one of Newton's leads to the mode
_STEPS = 5
_TRIALS = 8
_NEAR = 0.6  # nats between a posterior and a normal one: independent moves are accepted often then
_WARMUP_NEAR = 20


@attrs.frozen(kw_only=True, eq=False)
class Laplace:
    """A normal distribution at a mode, with the Hessian of U there as precision.

    ``factor (dim, dim)`` is L, lower triangular, with L L^T the covariance.
    """

    mean: FloatArray
    precision: FloatArray
    factor: FloatArray

    @classmethod
    def at(cls, mean: FloatArray, precision: FloatArray) -> Self | None:
        """Return the distribution; None where the precision is not positive definite."""
        try:
            inverse = np.linalg.inv(np.linalg.cholesky(precision))
            covariance = inverse.T @ inverse
            factor = np.linalg.cholesky(0.5 * (covariance + covariance.T))
        except np.linalg.LinAlgError:
            return None
        return cls(mean=mean, precision=precision, factor=factor)

    @property
    def covariance(self) -> FloatArray:
        """Its covariance, shape (dim, dim)."""
        return np.asarray(self.factor @ self.factor.T)

    def draw_around(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Return n draws, shape (n, dim), moved so that the mode is their mean."""
        draws = self.mean + rng.standard_normal((n, len(self.mean))) @ self.factor.T
        return np.asarray(draws - draws.mean(axis=0) + self.mean)

    def misfit(self, target: Potential, n: int, rng: np.random.Generator) -> float:
        """Return the standard deviation of U - V over n draws of exp(-V), in nats.

        It is infinite where U is not finite at one of them.
        """
        z = rng.standard_normal((n, len(self.mean)))
        try:
            values = target.value(self.mean + z @ self.factor.T)
        except NumericalError:
            return np.inf
        apart = values - 0.5 * np.square(z).sum(axis=1)
        return float(apart.std()) if np.isfinite(apart).all() else np.inf


def find_laplace(
    target: Potential, start: FloatArray, few: Callable[[int], Potential], n_rows: int
) -> Laplace | None:
    """Return the Laplace approximation of a posterior; None where there is none.

    With many rows the first fit is to some of them, and the mode of all is a step or two of
    Newton's from there: measured with 100,000 and a million rows, that takes 7 to 24 % off the time
    of a whole fit. ``few(k)`` makes the posterior of every k-th row alone, ``target`` is that of
    all ``n_rows``, and the search starts at ``start (dim,)``.
    """
    if n_rows >= MANY:
        step = n_rows // (_SOME + n_rows // _SHARE)
        start, hessian = _mode(few(step), start)
        near = _finish(target, start, step * hessian)
        if near is not None:
            return near
    return Laplace.at(*_mode(target, start))


def _mode(target: Potential, start: FloatArray) -> tuple[FloatArray, FloatArray]:
    mode = find_mode(target, start, tolerance=_TOLERANCE)
    hessian = mode.hessian
    if hessian is None:
        hessian = with_hessian(target).hessian(mode.position[None])[0]
    return mode.position, hessian


def _finish(target: Potential, at: FloatArray, few: FloatArray) -> Laplace | None:
    """Return the approximation by steps with a Hessian of fewer rows, and one with that of all.

    A gradient is cheaper than a Hessian, and steps with a Hessian that is wrong by a few per cent
    shorten the way to the mode to a few per cent. None where they do not lead to a mode.
    """
    exact = with_gradient(target)
    least, gain = np.inf, np.inf
    try:
        for _ in range(_STEPS):
            value, slope = (each[0] for each in exact.value_and_gradient(at[None]))
            step = np.linalg.solve(few, slope)
            gain = 0.5 * slope @ step
            if not value <= least or gain <= _CLOSE:
                break
            at, least = at - step, value
        if not 0.0 <= gain <= _CLOSE:
            return None
        hessian = with_hessian(target).hessian(at[None])[0]
        return Laplace.at(at - np.linalg.solve(hessian, slope), hessian)
    except np.linalg.LinAlgError:
        return None


def parts_near(
    normal: Laplace | None, target: Potential, n_rows: int, chains: int, rng: np.random.Generator
) -> dict[str, Any]:
    """Return arguments of :func:`surrokit.sample` that suit a regression's posterior.

    With :data:`MANY` rows or more, where the posterior is near its Laplace approximation, moves are
    independent draws of that, decided by a few rows, exactly. Elsewhere the chains move by
    Hamiltonian dynamics with its covariance as inverse mass matrix. Parts are never chosen by the
    clock, so that a fit can be repeated.
    """
    if normal is None:
        return {"sampler": "hmc"}
    starts = transform_of(target).to_bounded(normal.draw_around(chains, rng))
    if n_rows < MANY or normal.misfit(target, _TRIALS, rng) > _NEAR:
        metric = ("dense", {"inverse_mass": normal.covariance})
        return {"initial": starts, "sampler": ("hmc", {"metric": metric})}
    return {
        "initial": starts,
        "sampler": "gaussian",
        "surrogate": make("potential", "gaussian", mean=normal.mean, covariance=normal.covariance),
        "correction": ("subsampled", {"centre": normal.mean, "hessian": normal.precision}),
        "warmup": _WARMUP_NEAR,
    }
