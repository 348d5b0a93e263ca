"""The test for paths that turn back, or are about to."""

from __future__ import annotations

import numpy as np

from surrokit.contracts.dynamics import Metric
from surrokit.types import BoolArray, FloatArray, IntArray


def turns_back(
    metric: Metric,
    first: FloatArray,
    last: FloatArray,
    momentum_sum: FloatArray,
    *,
    n_points: IntArray | int = 2,
    slowed: float = 0.0,
) -> BoolArray:
    """Return whether paths turn back, or have slowed down so much that they are about to.

    The generalised criterion of Betancourt (2017, arXiv:1701.02434, appendix A.4.2): the way from
    end to end, which is proportional to M^-1 times the sum of the momenta, points back at one of
    the ends. The momenta at the ends count by half, so that the sum is the integral by the
    trapezoidal rule; which end is which makes no difference.

    With ``slowed`` a path ends sooner: where the momentum at an end, along the way, is down to
    that share of its mean over the path. On a normal target that whitens, a path over the angle t
    has (t / 2) / tan(t / 2) left of it.

    Parameters
    ----------
    metric
        With M^-1.
    first, momentum_sum : ndarray of shape (k, n, dim)
        Momenta at the first points of k paths of each chain, and summed over all their points,
        both ends included.
    last : ndarray of shape (n, dim)
        Momenta at the last point, which they share.
    n_points : ndarray of int, shape (k,), or int
        Points of each path, at least 2.
    slowed
        Share of the mean; at 0 paths end where going on would shorten them.

    Returns
    -------
    ndarray of bool, shape (n,)
        Whether any of a chain's paths turns back.
    """
    sums = momentum_sum - 0.5 * (first + last)
    way = metric.velocity(sums.reshape(-1, sums.shape[2])).reshape(sums.shape)
    ahead = np.einsum("knd,knd->kn", first, way), np.einsum("nd,knd->kn", last, way)
    least: FloatArray | float = 0.0
    if slowed:
        mean_square = np.einsum("knd,knd->kn", sums, way)
        least = slowed * mean_square / (np.reshape(n_points, (-1, 1)) - 1)
    return np.asarray(~(np.minimum(*ahead) > least).all(axis=0))
