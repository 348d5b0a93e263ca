"""The test for paths that turn back."""

from __future__ import annotations

import numpy as np

from surrokit.contracts.dynamics import Metric
from surrokit.types import BoolArray, FloatArray


def turns_back(
    metric: Metric, first: FloatArray, last: FloatArray, momentum_sum: FloatArray
) -> BoolArray:
    """Return whether paths turn back: whether going on at either end would shorten them.

    The generalised criterion of Betancourt (2017, arXiv:1701.02434, appendix A.4.2): the way from
    end to end, which is proportional to M^-1 times the sum of the momenta, points back at one of
    the ends. The momenta at the ends count by half, so that the sum is the integral by the
    trapezoidal rule; which end is which makes no difference.

    Parameters
    ----------
    metric
        With M^-1.
    first, momentum_sum : ndarray of shape (k, n, dim)
        Momenta at the first points of k paths of each chain, and summed over all their points,
        both ends included.
    last : ndarray of shape (n, dim)
        Momenta at the last point, which they share.

    Returns
    -------
    ndarray of bool, shape (n,)
        Whether any of a chain's paths turns back.
    """
    sums = momentum_sum - 0.5 * (first + last)
    way = metric.velocity(sums.reshape(-1, sums.shape[2])).reshape(sums.shape)
    ahead = np.einsum("knd,knd->kn", first, way), np.einsum("nd,knd->kn", last, way)
    return np.asarray(~(np.minimum(*ahead) > 0.0).all(axis=0))
