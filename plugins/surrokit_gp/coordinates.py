"""Coordinates in which a density is about normal, by its values, or by draws of a process."""

from __future__ import annotations

import attrs
import numpy as np
from scipy.linalg import solve_triangular

from surrokit.coordinates.constraints import CoordinateMap
from surrokit.surrogate.whitening import Whitening
from surrokit.types import FloatArray
from surrokit_gp.bend import Bend
from surrokit_gp.trend import Polynomial, features

TURNS = 0.3
"""Correlation of a process's draws from which on its coordinates are turned."""


def flat_from(dim: int) -> float:
    """Return the height, in nats, up to which values are met: draws lie dim / 2 high on average."""
    return 5.0 + 2.0 * dim


def about_lowest(positions: FloatArray, values: FloatArray) -> Whitening:
    """Return coordinates of the points of high density, or of the densest where these are few.

    Fewer than 2 dim + 2 count by exp(-U / T), with the least T at which dim + 2 points would do.
    """
    dim, heights = positions.shape[1], values - values.min()
    high = heights <= flat_from(dim)
    if np.count_nonzero(high) >= 2 * dim + 2:
        return Whitening.of(positions[high], np.ones(int(high.sum())), drops_noise=True)
    weights = np.exp(-heights / np.geomspace(1e-2, 1e12, 400)[:, None])
    worth = np.square(weights.sum(axis=1)) / np.square(weights).sum(axis=1)
    least = np.searchsorted(worth, min(dim + 2.0, 0.9 * len(values)))
    return Whitening.of(positions, weights[min(least, 399)], drops_noise=True)


PREDICTS = 0.01
"""Error of a quadratic through all values, as a part of their heights, that makes it the target."""


def follow_quadratic(
    whitening: Whitening, positions: FloatArray, values: FloatArray, most: float = 0.1
) -> tuple[Whitening, bool]:
    """Return coordinates of a quadratic through all values where it predicts them, and if it does.

    A narrow ridge in an unknown direction is found from afar: all values on its slopes, which a
    process flattens, tell of it. ``values (n,)`` at ``positions (n, dim)`` count by their heights
    above the least one. The quadratic has to predict nine in ten of those left out to a hundredth
    of their heights, or to ``most`` where the present coordinates are off by a factor of three.
    """
    z, dim = whitening.apply(positions), len(whitening.mean)
    with np.errstate(over="ignore"):
        design, heights = features("quadratic", z), values - values.min()
    if len(z) < design.shape[1] + 2 or not np.isfinite(heights).all():
        return whitening, False
    scale = heights + flat_from(dim)
    rotated, triangle = np.linalg.qr(design / scale[:, None])
    pivots = np.abs(np.diag(triangle))
    if pivots.min() < 1e-10 * pivots.max():
        return whitening, False
    projected = rotated.T @ (heights / scale)
    errors = heights / scale - rotated @ projected
    errors /= np.maximum(1.0 - np.vecdot(rotated, rotated), 1e-9)
    error = float(np.quantile(np.abs(errors), 0.9))
    fitted = Polynomial.of(solve_triangular(triangle, projected), dim)
    least, vectors = np.linalg.eigh(fitted.matrix)
    if not (error < most and least[0] > 1e-8 * least[-1]):
        return whitening, False
    least_at: FloatArray = np.asarray(-np.linalg.solve(fitted.matrix, fitted.slope))
    middle = whitening.undo(least_at[None])[0]
    if error > PREDICTS and least[0] > 0.1 and least[-1] < 10.0:
        return whitening, False
    return Whitening(
        mean=middle, factor=_lower(whitening.factor @ (vectors / np.sqrt(least)))
    ), True


def follow_bent_quadratic(
    positions: FloatArray, values: FloatArray, between: CoordinateMap | None = None
) -> tuple[Bend, Whitening] | None:
    """Return curved coordinates in which a quadratic predicts all values; None if there are none.

    One number's square is taken off all others, as in U = (r - m)^T A (r - m) / 2 + c with
    r = q - b q_i^2: then U is a polynomial with terms q_i^2 q_k and q_i^4, whose coefficients are
    known from ``values (n,)`` at ``positions (n, dim)`` by least squares. It is looked for in the
    numbers ``between`` bounds themselves, and then on the line.
    """
    if between is not None:
        volume = between.volume(positions)[0]
        found = follow_bent_quadratic(between.to_bounded(positions), values + volume)
        if found is not None:
            return attrs.evolve(found[0], between=between), found[1]
    dim = positions.shape[1]
    with np.errstate(over="ignore"):
        heights = values - values.min()
    centre, spread = positions.mean(axis=0), positions.std(axis=0)
    if dim == 1 or not (spread > 0.0).all() or not np.isfinite(heights).all():
        return None
    z, scale = (positions - centre) / spread, heights + flat_from(dim)
    square, n = features("quadratic", z), len(z)
    if n < square.shape[1] + dim + 3:
        return None
    for i in range(dim):
        more = np.square(z[:, [i]]) * np.column_stack([z, np.square(z[:, i])])
        design = np.column_stack([square, more]) / scale[:, None]
        found, _, rank, _ = np.linalg.lstsq(design, heights / scale)
        if rank < design.shape[1]:
            continue
        others = np.arange(dim) != i
        matrix = Polynomial.of(found[: square.shape[1]], dim).matrix[np.ix_(others, others)]
        shift, cubes = np.zeros(dim), found[square.shape[1] : -1]
        shift[others] = np.linalg.lstsq(-matrix, cubes[others])[0]  # U may not depend on others
        bend = Bend(centre=centre, direction=np.eye(dim)[i] / spread[i], shift=shift * spread)
        bent = bend.apply(positions)
        whitening, known = follow_quadratic(about_lowest(bent, values), bent, values, PREDICTS)
        if known and bend.in_sds(whitening) > 0.1:  # else the numbers' bounds are in the way
            return bend, whitening
    return None


def _lower(spread: FloatArray) -> FloatArray:
    """Return the triangular factor of spread spread^T, without squaring it."""
    upper = np.asarray(np.linalg.qr(spread.T, mode="r"))
    factor = (upper * np.where(np.diag(upper) < 0.0, -1.0, 1.0)[:, None]).T
    return np.ascontiguousarray(factor)


def refocus(
    whitening: Whitening, draws: FloatArray, temperature: float = 1.0, turns: float = TURNS
) -> Whitening:
    """Return coordinates in which draws of exp(-V) are nearly standard normal.

    ``draws (n, dim)`` are those of exp(-V / T), near standard normal in the present ones. Axes
    turn along correlations of at least ``turns``.
    """
    dim = draws.shape[1]
    covariance = np.cov(whitening.apply(draws), rowvar=False).reshape(dim, dim) / temperature
    # the noise of correlations would turn the axes, along which length scales are learnt
    sds = np.sqrt(np.diag(covariance))
    covariance[np.abs(covariance) < turns * np.outer(sds, sds)] = 0.0
    covariance += 1e-6 * np.trace(covariance) / dim * np.eye(dim)
    variances, vectors = np.linalg.eigh(covariance)
    # from one process to the next they may shrink and grow by so much
    changes = np.clip(np.sqrt(np.maximum(variances, 0.0)), 0.3, 2.0)
    spread = whitening.factor @ (vectors * changes)
    return Whitening(mean=draws.mean(axis=0), factor=_lower(spread))


def straighten(draws: FloatArray, temperature: float = 1.0) -> tuple[Bend, Whitening] | None:
    """Return curved coordinates in which draws (n, dim) are straight; None where they are so.

    They are those of exp(-V / T).
    """
    bend = Bend.of(draws)
    if bend.changes_nothing:
        return None
    found = Whitening.of(bend.apply(draws), np.ones(len(draws)))
    return bend, Whitening(mean=found.mean, factor=found.factor / np.sqrt(temperature))
