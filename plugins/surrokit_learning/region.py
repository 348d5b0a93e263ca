"""The part of space in which a surrogate of few points is trusted, and how far it is there."""

from __future__ import annotations

import attrs
import numpy as np
from scipy.linalg import solve_triangular

from surrokit.capabilities import GRADIENT, GRADIENT_ALONE
from surrokit.interfaces import Evaluations
from surrokit.potentials import Potential, with_gradient, with_gradient_alone
from surrokit.surrogate.whitening import Whitening
from surrokit.types import BoolArray, Capabilities, FloatArray
from surrokit_learning.designs import cholesky_factor

GROWTH = 1.3
"""How much farther than the farthest point seen draws may go."""

WIDE = 20.0
"""Nats above the least potential, beside one for each dimension, up to which a point is plausible.

Draws of a normal target lie dim / 2 above it on average; the rest is for surrogates to learn what
lies about it.
"""

COUNTED = 1.5
"""Points for each dimension that must count at the temperature of draws from a surrogate of values,
until it is trusted."""

TRUSTED = 1.5
"""Spread of V - U, in nats, below which a surrogate of values is drawn from as it is."""

OFFERED = frozenset({GRADIENT, GRADIENT_ALONE})
"""What a flattened potential can pass on."""


@attrs.frozen(kw_only=True, eq=False)
class Region:
    """An ellipsoid: |L^-1 (q - centre)| <= radius, with a lower triangular factor L (dim, dim)."""

    centre: FloatArray
    factor: FloatArray
    radius: float

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
    """Return where a surrogate of the points seen is trusted, and the next ones may lie.

    There is at least one, with a finite value. ``covariance (dim, dim)`` is what is known of the
    target's. Values alone tell nothing of what lies beyond the points, so these are then weighted
    by exp(-U / T), with T the lowest temperature at which there are enough of them.

    Raises
    ------
    SurrogateFitError
        If the points are too far apart for double precision.
    """
    dim = seen.positions.shape[1]
    # draws of a normal target are within this, however few points were seen
    usual = float(np.sqrt(dim)) + 2.0
    if by_values:
        weights = np.exp((seen.values.min() - seen.values) / lowest_temperature(seen))
        whitening = Whitening.of(seen.positions, weights, drops_noise=True)
        return Region(centre=whitening.mean, factor=whitening.factor, radius=GROWTH * usual)
    if covariance is None:
        covariance = np.diag(seen.positions.var(axis=0) + np.finfo(np.float64).tiny)
    chosen = seen.positions[plausible(seen.values, dim)]
    centre, factor = chosen.mean(axis=0), cholesky_factor(covariance)
    farthest = float(_lengths(factor, chosen - centre).max())
    return Region(centre=centre, factor=factor, radius=GROWTH * max(farthest, usual))


def lowest_temperature(seen: Evaluations) -> float:
    """Return the lowest temperature at which the points seen count as enough."""
    return temperature_of(seen.values, COUNTED * seen.positions.shape[1])


def temperature_of(values: FloatArray, n: float) -> float:
    """Return the lowest temperature T, at least 1, at which points of U (m,) count as n of them.

    With weights w = exp(-U / T), points count as (sum w)^2 / sum w^2 (Kong 1992).
    """
    excess = values - values.min()

    def count(temperature: float) -> float:
        weights = np.exp(-excess / temperature)
        return float(np.square(weights.sum()) / np.square(weights).sum())

    low, high = 1.0, max(float(excess.max()), 1.0)
    if count(low) >= n or count(high) < n:
        return low if count(low) >= n else high
    while high > 1.01 * low:
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if count(middle) >= n else (middle, high)
    return high


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
    """A potential inside a region; outside it is infinite."""

    potential: Potential
    region: Region
    capabilities: Capabilities = frozenset()

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self.potential.dim

    def value(self, positions: FloatArray) -> FloatArray:
        """Return the potential, shape (n,), at positions of shape (n, dim)."""
        values = np.full(len(positions), np.inf)
        inside = self.region.holds(positions)
        if inside.any():
            values[inside] = self.potential.value(positions[inside])
        return values


@attrs.frozen(kw_only=True, eq=False)
class Tempered:
    """V / T + pull |L^-1 (q - centre)|^2 / 2: V flattened, and drawn to the region of the points.

    At a pull of 0 V is only flattened; at 1 a linear V moves the region's normal distribution down
    the slope, and no farther.
    """

    potential: Potential
    temperature: float
    region: Region
    pull: float

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self.potential.dim

    @property
    def capabilities(self) -> Capabilities:
        """Gradients, if V has them."""
        return self.potential.capabilities & OFFERED

    def value(self, positions: FloatArray) -> FloatArray:
        """Return the sum, shape (n,), at positions of shape (n, dim)."""
        values = self.potential.value(positions)
        return self._total(values, self.region.whiten(positions))

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the sum, shape (n,), and its gradient, shape (n, dim)."""
        values, gradients = with_gradient(self.potential).value_and_gradient(positions)
        whitened = self.region.whiten(positions)
        return self._total(values, whitened), self._slope(gradients, whitened)

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient of the sum, shape (n, dim)."""
        gradients = with_gradient_alone(self.potential).gradient(positions)
        return self._slope(gradients, self.region.whiten(positions))

    def _total(self, values: FloatArray, whitened: FloatArray) -> FloatArray:
        pulled = 0.5 * self.pull * np.square(whitened).sum(axis=1)
        return np.asarray(values / self.temperature + pulled)

    def _slope(self, gradients: FloatArray, whitened: FloatArray) -> FloatArray:
        return gradients / self.temperature + self.pull * self.region.pull_back(whitened)


def cautious(
    surrogate: Potential, region: Region, seen: Evaluations, error: float | None, temperature: float
) -> Potential:
    """Return a surrogate V of values, flattened and held back as far as it is wrong.

    That is by the spread of the last V - U in nats, None before there is any, and T of those draws.
    """
    if error is not None and error < TRUSTED:
        return surrogate
    highest = lowest_temperature(seen)
    if error is None:
        return Tempered(potential=surrogate, temperature=highest, region=region, pull=1.0)
    return Tempered(
        potential=surrogate,
        temperature=max(1.0, min(highest, error)),
        region=region,
        pull=min(1.0, error / temperature),
    )
