"""Targets with several modes, with what is known of their masses and evidences."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import attrs
import numpy as np
from scipy.special import logsumexp

from surrokit.types import FloatArray

Kinds = Callable[[FloatArray], FloatArray]
"""From positions (n, dim) to the mode (n,) that each is at."""


@attrs.frozen(kw_only=True)
class Case:
    """A log density with its gradient, and the true shares of its modes.

    ``box``, two ends of all numbers or of each, holds all of its mass, of which samplers that draw
    from a prior need bounds, and is part of the density if it is ``bounded``. ``log_z`` is the
    logarithm of its integral; NaN if unknown.
    """

    dim: int
    log_density: Callable[[FloatArray], float]
    gradient: Callable[[FloatArray], FloatArray] | None
    kinds: Kinds
    shares: FloatArray
    box: tuple[Any, Any]
    bounded: bool = False
    log_z: float = np.nan


def normals(centres: FloatArray, sds: FloatArray, shares: FloatArray) -> Case:
    """Return a mixture of isotropic normals: centres (k, dim), sds (k,), shares (k,)."""
    far = float(np.abs(centres).max() + 6.0 * sds.max())
    dim = centres.shape[1]
    constants = np.log(shares) - dim * np.log(sds)

    def parts(q: FloatArray) -> FloatArray:
        squares = np.square((q[..., None, :] - centres) / sds[:, None]).sum(axis=-1)
        return np.asarray(constants - 0.5 * squares)

    def gradient(q: FloatArray) -> FloatArray:
        logs = parts(q)
        each = np.exp(logs - np.logaddexp.reduce(logs)) / np.square(sds)
        return np.asarray(each @ (centres - q))

    return Case(
        dim=dim,
        log_density=lambda q: float(np.logaddexp.reduce(parts(q))),
        gradient=gradient,
        kinds=lambda rows: np.argmax(parts(rows), axis=-1),
        shares=shares / shares.sum(),
        box=(-far, far),
        log_z=0.5 * dim * np.log(2.0 * np.pi) + np.log(shares.sum()),
    )


def two(dim: int, distance: float | None = None, sd: float = 1.0, share: float = 2 / 3) -> Case:
    """Return two normals, at 3 and -3 in each coordinate or so far apart along a diagonal."""
    half = 3.0 if distance is None else 0.5 * distance / np.sqrt(dim)
    centres = half * np.array([np.ones(dim), -np.ones(dim)])
    return normals(centres, np.array([1.0, sd]), np.array([share, 1.0 - share]))


def twenty() -> Case:
    """Return twenty normals in a square of 20 by 20, of width 0.5."""
    rng = np.random.default_rng(3)
    return normals(rng.uniform(-10.0, 10.0, (20, 2)), np.full(20, 0.5), np.full(20, 0.05))


def himmelblau() -> Case:
    """Return the density of four modes on [-4, 4]^2; shares by the signs of x and y."""

    def parts(q: FloatArray) -> tuple[float, float]:
        return q[0] + q[1] ** 2 - 7.0, q[0] ** 2 + q[1] - 11.0

    def log_density(q: FloatArray) -> float:
        a, b = parts(q)
        return -0.5 * (0.1 * a * a + b * b)

    def gradient(q: FloatArray) -> FloatArray:
        a, b = parts(q)
        return -np.array([0.1 * a + 2.0 * b * q[0], 0.2 * a * q[1] + b])

    return Case(
        dim=2,
        log_density=log_density,
        gradient=gradient,
        kinds=lambda rows: 2 * (rows[:, 0] > 0) + (rows[:, 1] > 0),
        shares=np.array([0.1502, 0.2132, 0.2886, 0.3480]),
        box=(-4.0, 4.0),
        bounded=True,
        log_z=-3.1834 + np.log(64.0),
    )


def curved() -> Case:
    """Return three banana-shaped modes, 12 apart, of shares 0.5, 0.3 and 0.2."""
    middles, shares = np.array([-12.0, 0.0, 12.0]), np.array([0.5, 0.3, 0.2])

    def parts(q: FloatArray) -> tuple[FloatArray, ...]:
        x = q[..., 0, None] - middles
        y = q[..., 1, None] - 0.5 * (np.square(x) - 1.0)
        return x, y, np.log(shares) - 0.5 * np.square(x / 1.5) - 0.5 * np.square(y / 0.5)

    def gradient(q: FloatArray) -> FloatArray:
        x, y, logs = parts(q)
        each = np.exp(logs - np.logaddexp.reduce(logs))
        return -np.array([each @ (x / 2.25 - x * y / 0.25), each @ (y / 0.25)])

    return Case(
        dim=2,
        log_density=lambda q: float(np.logaddexp.reduce(parts(q)[2])),
        gradient=gradient,
        kinds=lambda rows: np.argmax(parts(rows)[2], axis=-1),
        shares=shares,
        box=(np.array([-20.0, -4.0]), np.array([20.0, 30.0])),
        log_z=np.log(2.0 * np.pi * 1.5 * 0.5),
    )


_ORDERS = np.zeros(27, dtype=int)
_ORDERS[[5, 7, 11, 15, 19, 21]] = range(6)  # of three numbers, as digits to the base of three


def labels() -> Case:
    """Return the means of three components, widths known, of 90 data: six modes alike."""
    rng = np.random.default_rng(5)
    data = np.concatenate([rng.normal(middle, 0.7, 30) for middle in (-3.0, 0.0, 3.0)])

    def weights(q: FloatArray) -> tuple[FloatArray, float]:
        logs = -0.5 * np.square((data[:, None] - q) / 0.7)
        tops = np.logaddexp.reduce(logs, axis=1)
        return np.exp(logs - tops[:, None]), float(tops.sum())

    return Case(
        dim=3,
        log_density=lambda q: weights(q)[1] - 0.5 * float(q @ q) / 25.0,
        gradient=lambda q: (weights(q)[0] * (data[:, None] - q)).sum(axis=0) / 0.49 - q / 25.0,
        kinds=lambda rows: _ORDERS[np.argsort(rows, axis=1) @ np.array([9, 3, 1])],
        shares=np.full(6, 1.0 / 6.0),
        box=(-10.0, 10.0),
    )


def five() -> Case:
    """Return five normals in ten dimensions, of widths 0.5 to 1.5 and shares 0.1 to 0.3."""
    rng = np.random.default_rng(11)
    centres = rng.uniform(-10.0, 10.0, (5, 10))
    shares = np.array([0.3, 0.25, 0.2, 0.15, 0.1])
    return normals(centres, np.array([1.0, 0.5, 1.5, 1.0, 0.7]), shares)


def ring() -> Case:
    """Return a ring of radius 0.2 and width 0.02 in the unit square; shares are of quarters."""
    radius, width = 0.2, 0.02

    def gradient(q: FloatArray) -> FloatArray:
        away = q - 0.5
        distance = max(float(np.linalg.norm(away)), 1e-12)
        return -(distance - radius) / width**2 * away / distance

    return Case(
        dim=2,
        log_density=lambda q: -0.5 * float((np.linalg.norm(q - 0.5) - radius) / width) ** 2,
        gradient=gradient,
        kinds=lambda rows: 2 * (rows[:, 0] > 0.5) + (rows[:, 1] > 0.5),
        shares=np.full(4, 0.25),
        box=(0.0, 1.0),
        bounded=True,
        log_z=-2.7646,
    )


def moons() -> Case:
    """Return sbibm's two moons, of an observation at zero: two crescents alike."""
    middle, width = 0.1, 0.01

    def log_density(q: FloatArray) -> float:
        x = np.abs(q[0] + q[1]) / np.sqrt(2.0) - 0.25
        y = (q[0] - q[1]) / np.sqrt(2.0)
        if x <= 0.0:
            return -np.inf
        radius = float(np.hypot(x, y))
        return -0.5 * ((radius - middle) / width) ** 2 - float(np.log(radius))

    return Case(
        dim=2,
        log_density=log_density,
        gradient=None,
        kinds=lambda rows: (rows.sum(axis=1) > 0.0).astype(int),
        shares=np.full(2, 0.5),
        box=(-1.0, 1.0),
        bounded=True,
        log_z=_on_grid(log_density, -1.0, 1.0, 2000),
    )


def _on_grid(log_density: Callable[[FloatArray], float], low: float, high: float, n: int) -> float:
    """Return the logarithm of the integral over a square, by so many midpoints on either axis."""
    middles = low + (np.arange(n) + 0.5) * (high - low) / n
    rows = [logsumexp([log_density(np.array([x, y])) for y in middles]) for x in middles]
    return float(logsumexp(rows) + 2.0 * np.log((high - low) / n))


def slcp() -> Case:
    """Return sbibm's SLCP: four data, five numbers, and the signs of two of them are free."""
    rng = np.random.default_rng(13)
    truth = np.array([0.7, -2.9, -1.0, -0.9, 0.6])

    def moments(q: FloatArray) -> tuple[FloatArray, float, float, float]:
        return q[:2], q[2] ** 2, q[3] ** 2, float(np.tanh(q[4]))

    mean, s1, s2, rho = moments(truth)
    covariance = np.array([[s1**2, rho * s1 * s2], [rho * s1 * s2, s2**2]])
    data = rng.multivariate_normal(mean, covariance, 4)

    def log_density(q: FloatArray) -> float:
        at, one, other, together = moments(q)
        rest = 1.0 - together**2
        with np.errstate(all="ignore"):
            a, b = ((data - at) / np.array([one, other])).T
            squares = (a * a - 2.0 * together * a * b + b * b) / rest
            found = -4.0 * (np.log(one * other) + 0.5 * np.log(rest)) - 0.5 * squares.sum()
        return float(found) if np.isfinite(found) else -np.inf

    return Case(
        dim=5,
        log_density=log_density,
        gradient=None,
        kinds=lambda rows: 2 * (rows[:, 2] > 0.0) + (rows[:, 3] > 0.0),
        shares=np.full(4, 0.25),
        box=(-3.0, 3.0),
        bounded=True,
    )


def lines() -> Case:
    """Return frequencies and amplitudes of two sines in 60 data with noise, which may exchange.

    Amplitudes, from 0 to 3, are 6 (q - 1/2), so that one interval holds all numbers.
    """
    times, rng = np.arange(60.0), np.random.default_rng(17)
    data = 1.5 * np.sin(0.7 * times) + np.sin(0.8 * times) + rng.normal(0.0, 1.0, len(times))

    def parts(q: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        amplitudes, sines = 6.0 * (q[2:] - 0.5), np.sin(np.outer(q[:2], times))
        return amplitudes, sines, data - amplitudes @ sines

    def log_density(q: FloatArray) -> float:
        misfit = parts(q)[2]
        return -0.5 * float(misfit @ misfit) + 0.5 * float(data @ data)

    def gradient(q: FloatArray) -> FloatArray:
        amplitudes, sines, misfit = parts(q)
        cosines = times * np.cos(np.outer(q[:2], times))
        return np.concatenate([amplitudes * (cosines @ misfit), 6.0 * sines @ misfit])

    return Case(
        dim=4,
        log_density=log_density,
        gradient=gradient,
        kinds=lambda rows: (rows[:, 0] > rows[:, 1]).astype(int),
        shares=np.full(2, 0.5),
        box=(0.5, 1.0),
        bounded=True,
    )


CASES: dict[str, Callable[[], Case]] = {
    **{f"two-{dim}": partial(two, dim) for dim in (2, 5, 10, 20)},
    **{f"far-{dim}": partial(two, dim, 20.0) for dim in (2, 5, 10, 20)},
    "narrow-2": partial(two, 2, None, 0.1),
    "narrow-5": partial(two, 5, None, 0.1),
    "rare-2": partial(two, 2, None, 1.0, 0.95),
    "rare-5": partial(two, 5, None, 1.0, 0.95),
    "himmelblau": himmelblau,
    "curved": curved,
    "twenty": twenty,
    "labels": labels,
    "five": five,
    "ring": ring,
    "moons": moons,
    "slcp": slcp,
    "lines": lines,
}
