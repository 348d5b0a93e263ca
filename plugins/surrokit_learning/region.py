"""The part of space in which a surrogate of few points is trusted, and how far it is there."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.capabilities import GRADIENT
from surrokit.interfaces import Evaluations
from surrokit.potentials import Potential, with_gradient
from surrokit.surrogate.whitening import Whitening, cholesky_factor
from surrokit.types import BoolArray, Capabilities, FloatArray

WIDE = 20.0
"""Nats above the least potential, beside one for each dimension, up to which a point is plausible.

Draws of a normal target lie dim / 2 above it on average; the rest is for surrogates to learn what
lies about it.
"""


@attrs.frozen(kw_only=True, eq=False)
class Region:
    """An ellipsoid |z| <= radius, in the coordinates z of a whitening."""

    whitening: Whitening
    radius: float

    @property
    def covariance(self) -> FloatArray:
        """That of the whitening, shape (dim, dim)."""
        return np.asarray(self.whitening.factor @ self.whitening.factor.T)

    def holds(self, positions: FloatArray) -> BoolArray:
        """Return which of ``positions (n, dim)`` lie inside."""
        with np.errstate(all="ignore"):
            return np.asarray(_lengths(self.whitening, positions) <= self.radius)


def _lengths(whitening: Whitening, positions: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.square(whitening.apply(positions)).sum(axis=1)))


def find_region(seen: Evaluations, covariance: FloatArray | None, *, by_values: bool) -> Region:
    """Return where a surrogate of the points seen is trusted, and the next ones may lie.

    There is at least one, with a finite value. ``covariance (dim, dim)`` is what is known of the
    target's. Values alone tell nothing of what lies beyond the points, so these are then weighted
    by exp(-U / T), with T the lowest temperature at which there are enough of them. Draws may go
    1.3 times as far as the farthest point that is plausible, or as draws of a normal target are.

    Raises
    ------
    SurrogateFitError
        If the points are too far apart for double precision.
    """
    dim = seen.positions.shape[1]
    usual = float(np.sqrt(dim)) + 2.0
    if by_values:
        weights = np.exp((seen.values.min() - seen.values) / lowest_temperature(seen))
        whitening = Whitening.of(seen.positions, weights, drops_noise=True)
        return Region(whitening=whitening, radius=1.3 * usual)
    if covariance is None:
        covariance = np.diag(seen.positions.var(axis=0) + np.finfo(np.float64).tiny)
    chosen = seen.positions[_plausible(seen.values, dim)]
    whitening = Whitening(mean=chosen.mean(axis=0), factor=cholesky_factor(covariance))
    farthest = float(_lengths(whitening, chosen).max())
    return Region(whitening=whitening, radius=1.3 * max(farthest, usual))


def _plausible(values: FloatArray, dim: int) -> BoolArray:
    """Return which points of potentials ``values (n,)`` tell where the target has its mass.

    Those not far above the least, or, where these are hardly more than the dimensions, the lowest.
    """
    finite = np.isfinite(values)
    chosen = finite & (values <= float(values[finite].min()) + dim + WIDE)
    wanted = min(int(finite.sum()), dim + 5)
    if chosen.sum() < wanted:
        chosen = np.zeros(len(values), dtype=bool)
        chosen[np.argsort(values, kind="stable")[:wanted]] = True
    return np.asarray(chosen)


def lowest_temperature(seen: Evaluations) -> float:
    """Return the lowest temperature T, at least 1, at which points seen count as 1.5 dim of them.

    With weights w = exp(-U / T), points count as (sum w)^2 / sum w^2 (Kong 1992).
    """
    excess, n = seen.values - seen.values.min(), 1.5 * seen.positions.shape[1]

    def suffices(temperature: float) -> bool:
        weights = np.exp(-excess / temperature)
        return bool(np.square(weights.sum()) >= n * np.square(weights).sum())

    low, high = 1.0, max(float(excess.max()), 1.0)
    if suffices(low):
        return low
    while high > 1.01 * low and suffices(high):
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


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
    """V / T + pull |z|^2 / 2: V flattened, and drawn to the region of the points.

    At a pull of 0 V is only flattened; at 1 a linear V moves the region's normal distribution down
    the slope, and no farther.
    """

    potential: Potential
    temperature: float
    whitening: Whitening
    pull: float

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self.potential.dim

    @property
    def capabilities(self) -> Capabilities:
        """A gradient, if V has one."""
        return self.potential.capabilities & {GRADIENT}

    def value(self, positions: FloatArray) -> FloatArray:
        """Return the sum, shape (n,), at positions of shape (n, dim)."""
        squares = np.square(self.whitening.apply(positions)).sum(axis=1)
        values = self.potential.value(positions)
        return np.asarray(values / self.temperature + 0.5 * self.pull * squares)

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the sum, shape (n,), and its gradient, shape (n, dim)."""
        values, gradients = with_gradient(self.potential).value_and_gradient(positions)
        z = self.whitening.apply(positions)
        pulled = 0.5 * self.pull * np.square(z).sum(axis=1)
        slopes = gradients / self.temperature + self.pull * self.whitening.pull(z)
        return np.asarray(values / self.temperature + pulled), np.asarray(slopes)


def cautious(
    surrogate: Potential, region: Region, seen: Evaluations, error: float | None, temperature: float
) -> Potential:
    """Return a surrogate V of values, flattened and held back as far as it is wrong.

    That is by the spread of the last V - U in nats, None before there is any, and T of those draws.
    Below 1.5 nats V is drawn from as it is.
    """
    if error is not None and error < 1.5:
        return surrogate
    highest = lowest_temperature(seen)
    hot = highest if error is None else max(1.0, min(highest, error))
    pull = 1.0 if error is None else min(1.0, error / temperature)
    whitening = region.whitening
    return Tempered(potential=surrogate, temperature=hot, whitening=whitening, pull=pull)
