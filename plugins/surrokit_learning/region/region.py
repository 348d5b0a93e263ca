"""The part of space in which a surrogate of few points is believed."""

from __future__ import annotations

import attrs
import numpy as np
from scipy.linalg import solve_triangular

from surrokit.interfaces import Evaluations
from surrokit.limits import check_deadline
from surrokit.potentials import Potential
from surrokit.surrogate.whitening import Whitening
from surrokit.types import BoolArray, Capabilities, FloatArray
from surrokit_learning.region.independence import temperature_of

GROWTH = 1.3
"""How much farther than the farthest point seen draws may go."""

WIDE = 20.0
"""Nats above the least potential, beside one for each dimension, up to which a point is plausible.

Draws of a normal target lie dim / 2 above it on average; the rest is for surrogates to learn what
lies about it.
"""


_MANY, _SOUND = 500, 1e-3  # dimensions, and the least on the diagonal of a sound factor

COUNTED = 1.5
"""Points for each dimension that must count at the temperature of draws from a surrogate of values,
until it is to be trusted."""


@attrs.frozen(kw_only=True, eq=False)
class Region:
    """An ellipsoid: |L^-1 (q - centre)| <= radius.

    Parameters
    ----------
    centre : ndarray of shape (dim,)
        Its middle.
    factor : ndarray of shape (dim, dim)
        L, lower triangular.
    radius : float
        In units of L.
    """

    centre: FloatArray
    factor: FloatArray
    radius: float

    @classmethod
    def of(cls, positions: FloatArray, values: FloatArray, covariance: FloatArray) -> Region:
        """Return the ellipsoid about the plausible ones of the points seen, and a bit more.

        Parameters
        ----------
        positions : ndarray of shape (n, dim)
            Where the target was evaluated.
        values : ndarray of shape (n,)
            U there; at least one is finite.
        covariance : ndarray of shape (dim, dim)
            The ellipsoid's shape.
        """
        chosen = positions[plausible(values, positions.shape[1])]
        centre = chosen.mean(axis=0)
        factor = cholesky_factor(covariance)
        farthest = float(_lengths(factor, chosen - centre).max())
        # draws of a normal target are within this, however few points were seen
        usual = float(np.sqrt(len(centre))) + 2.0
        return cls(centre=centre, factor=factor, radius=GROWTH * max(farthest, usual))

    @classmethod
    def about(cls, positions: FloatArray, weights: FloatArray) -> Region:
        """Return the ellipsoid that draws of a normal fit to weighted points stay in.

        Parameters
        ----------
        positions : ndarray of shape (n, dim)
            The points.
        weights : ndarray of shape (n,)
            What each counts, at most 1.

        Raises
        ------
        SurrogateFitError
            If their covariance is not finite.
        """
        whitening = Whitening.of(positions, weights, drops_noise=True)
        radius = GROWTH * (np.sqrt(positions.shape[1]) + 2.0)
        return cls(centre=whitening.mean, factor=whitening.factor, radius=float(radius))

    @property
    def covariance(self) -> FloatArray:
        """L L^T, shape (dim, dim)."""
        return np.asarray(self.factor @ self.factor.T)

    def whiten(self, positions: FloatArray) -> FloatArray:
        """Return L^-1 (q - centre), shape (n, dim), for positions of shape (n, dim)."""
        return _whiten(self.factor, positions - self.centre)

    def pull_back(self, whitened: FloatArray) -> FloatArray:
        """Return L^-T z for each row z of ``whitened (n, dim)``."""
        solved = solve_triangular(self.factor, whitened.T, lower=True, trans=1, check_finite=False)
        return np.asarray(solved.T, dtype=np.float64)

    def holds(self, positions: FloatArray) -> BoolArray:
        """Return which of ``positions (n, dim)`` lie inside."""
        with np.errstate(all="ignore"):
            return np.asarray(_lengths(self.factor, positions - self.centre) <= self.radius)


def find_region(seen: Evaluations, covariance: FloatArray | None, *, by_values: bool) -> Region:
    """Return where a surrogate of the points seen is believed, and the next ones may lie.

    Parameters
    ----------
    seen
        At least one point, with finite values.
    covariance : ndarray of shape (dim, dim), optional
        What is known of the target's.
    by_values
        Whether the surrogate learns from values alone. They tell nothing of what lies beyond the
        points, so these are weighted by exp(-U / T), with T the lowest temperature at which there
        are enough of them.

    Raises
    ------
    SurrogateFitError
        If the points are too far apart for double precision.
    """
    if by_values:
        weights = np.exp((seen.values.min() - seen.values) / lowest_temperature(seen))
        return Region.about(seen.positions, weights)
    if covariance is None:
        covariance = np.diag(seen.positions.var(axis=0) + np.finfo(np.float64).tiny)
    return Region.of(seen.positions, seen.values, covariance)


def lowest_temperature(seen: Evaluations) -> float:
    """Return the lowest temperature at which the points seen count as enough."""
    return temperature_of(seen.values, COUNTED * seen.positions.shape[1])


def cholesky_factor(covariance: FloatArray) -> FloatArray:
    """Return a lower triangular L with L L^T = covariance (dim, dim), but for rounding."""
    scales = np.sqrt(np.diag(covariance))
    correlation = covariance / scales / scales[:, None]
    check_deadline()
    if len(scales) > _MANY and (factor := _factor_if_sound(correlation)) is not None:
        return scales[:, None] * factor
    eigenvalues, vectors = np.linalg.eigh(correlation)
    least = 1e-12 * eigenvalues[-1]
    if eigenvalues[0] < least:
        correlation = (vectors * np.maximum(eigenvalues, least)) @ vectors.T
        correlation += least * np.eye(len(scales))
    return np.asarray(scales[:, None] * np.linalg.cholesky(correlation))


def _factor_if_sound(correlation: FloatArray) -> FloatArray | None:
    """Return the factor of a correlation that is far from singular, at a tenth of the cost."""
    try:
        factor = np.linalg.cholesky(correlation)
    except np.linalg.LinAlgError:
        return None
    return np.asarray(factor, np.float64) if np.diag(factor).min() > _SOUND else None


def plausible(values: FloatArray, dim: int) -> BoolArray:
    """Return which points of potentials ``values (n,)`` tell where the target has its mass.

    Those not far above the least, or, where these are fewer than the dimensions, the lowest ones.
    """
    finite = np.isfinite(values)
    least = float(values[finite].min())
    chosen = finite & (values <= least + dim + WIDE)
    wanted = min(int(finite.sum()), dim + 5)
    if chosen.sum() < wanted:
        chosen = np.zeros(len(values), dtype=bool)
        chosen[np.argsort(values, kind="stable")[:wanted]] = True
    return np.asarray(chosen)


def _whiten(factor: FloatArray, differences: FloatArray) -> FloatArray:
    solved = solve_triangular(factor, differences.T, lower=True, check_finite=False)
    return np.asarray(solved.T, dtype=np.float64)


def _lengths(factor: FloatArray, differences: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.square(_whiten(factor, differences)).sum(axis=1)))


@attrs.frozen(kw_only=True, eq=False)
class Confined:
    """A potential inside a region; outside it is infinite.

    Parameters
    ----------
    potential
        The potential.
    region
        Where it is believed.
    """

    potential: Potential
    region: Region

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self.potential.dim

    @property
    def capabilities(self) -> Capabilities:
        """Nothing beyond its value."""
        return frozenset()

    def value(self, positions: FloatArray) -> FloatArray:
        """Return the potential, shape (n,), at positions of shape (n, dim)."""
        values = np.full(len(positions), np.inf)
        inside = self.region.holds(positions)
        if inside.any():
            values[inside] = self.potential.value(positions[inside])
        return values
