"""The first places of inducing points."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from surrokit.errors import SurrogateFitError
from surrokit.types import FloatArray

Inducing: TypeAlias = Literal["data", "k-means++", "optimised"]
"""How inducing points are found: drawn from the training points, spread over them, or moved from
there to where the marginal likelihood is largest."""

_ROUNDS = 10
"""Most rounds of k-means."""


def default_number(dim: int, n_points: int) -> int:
    """Return how many inducing points there are for so many points, if the user does not say.

    Half as many as points, but no more than 300: the price of a fit grows with the square.
    """
    return min(n_points, 300, max(n_points // 2, dim + 2))


def inducing_points(
    kind: Inducing, positions: FloatArray, number: int | None, rng: np.random.Generator
) -> FloatArray:
    """Return inducing points, shape (M, dim).

    Parameters
    ----------
    kind
        ``"data"`` draws M of the positions; the others spread M centres by k-means.
    positions : ndarray of shape (n, dim)
        Distinct training positions in the kernel's coordinates.
    number
        M; None to choose it.
    rng
        Draws them.

    Raises
    ------
    SurrogateFitError
        If there are fewer positions than inducing points.
    """
    n, dim = positions.shape
    number = default_number(dim, n) if number is None else number
    if number > n:
        raise SurrogateFitError(
            f"n_inducing={number} inducing points cannot be found among {n} distinct training "
            f"points; explore for longer, set n_inducing to {n} or less, or leave it None"
        )
    if kind == "data":
        return positions[np.sort(rng.choice(n, size=number, replace=False))]
    return k_means(positions, number, rng)


def k_means(positions: FloatArray, number: int, rng: np.random.Generator) -> FloatArray:
    """Return the centres of clusters, shape (number, dim).

    Seeds are drawn with probability proportional to the squared distance from those before (Arthur
    and Vassilvitskii 2007), then moved to the means of what is nearest (Lloyd 1982). The Nystrom
    error that inducing points leave is bounded by the squared distances that this makes small
    (Zhang, Tsang and Kwok 2008).

    Parameters
    ----------
    positions : ndarray of shape (n, dim)
        Distinct.
    number
        At most n.
    rng
        Draws the seeds.
    """
    centres = _seeds(positions, number, rng)
    nearest = np.full(len(positions), -1)
    for _ in range(_ROUNDS):
        before, nearest = nearest, _nearest(positions, centres)
        if (before == nearest).all():
            break
        counts = np.bincount(nearest, minlength=number)
        sums = np.zeros_like(centres)
        np.add.at(sums, nearest, positions)
        filled = counts > 0
        centres[filled] = sums[filled] / counts[filled, None]
    return centres


def _seeds(positions: FloatArray, number: int, rng: np.random.Generator) -> FloatArray:
    chosen = np.empty(number, dtype=np.int64)
    chosen[0] = rng.integers(len(positions))
    least = _squares(positions, positions[chosen[0]])
    for i in range(1, number):
        summed = np.cumsum(least)
        # the last positive increment bounds what rounding can choose
        place = int(np.searchsorted(summed, rng.random() * summed[-1], side="right"))
        chosen[i] = min(place, int(np.flatnonzero(least)[-1]))
        np.minimum(least, _squares(positions, positions[chosen[i]]), out=least)
    return positions[chosen]


def _squares(positions: FloatArray, centre: FloatArray) -> FloatArray:
    away = positions - centre
    return np.asarray(np.einsum("nd,nd->n", away, away))


def _nearest(positions: FloatArray, centres: FloatArray) -> np.ndarray:
    half = 0.5 * np.einsum("md,md->m", centres, centres)
    return np.asarray((half - positions @ centres.T).argmin(axis=1))
