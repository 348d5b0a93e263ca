"""How estimates of several rounds, each unbiased given its past, make one.

Let round r say T_r, with error sigma_r and E[T_r | past] = theta. For counts c_r that are fixed,
sum c_r T_r is unbiased, and its variance is the sum of (c_r sigma_r)^2: what a round knows of those
before does not correlate with its noise. With counts 1 / S_r^2, inverses of variances that come
from the same weights, it is not. If S_r^2 = sigma^2 (1 + d_r), R rounds of n draws count about
(1 - d_r + mean of d) / R, so the combination is off by -(1 - 1/R) E[d_r (T_r - theta)], which is
-(1 - 1/R) g sigma_1 / n for draws of standard deviation sigma_1 and skewness g, as the covariance
of mean and variance of n numbers is their third central moment over n. That is
g (1 - 1/R) sqrt(R / n) standard errors: more rounds make it worse, and weights
are skewed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from surrokit.types import FloatArray
from surrokit.weighted.round import Round


def count_rounds(rounds: Sequence[Round]) -> FloatArray:
    """Return what each round counts, shape (rounds,); the sum is one.

    It is the number of draws paid for times the square of that of the evaluations learnt from. If
    variances of weights fall as any power of the latter between none and the fourth, the square is
    the middle of what would be best, and at worst the variance is 9/5 of the least (the argument of
    Owen and Zhou 2019, arXiv:1901.02976, for square roots). Surrogates improve fast.
    """
    counts = np.array([len(each) * max(each.learnt, 1) ** 2.0 for each in rounds])
    return np.asarray(counts / counts.sum())


def combine_degrees(parts: FloatArray, degrees: FloatArray, total: FloatArray) -> FloatArray:
    """Return the degrees of freedom of total variances, after Welch and Satterthwaite.

    See doi:10.2307/3002019. What a total has beside its parts is known well.

    Parameters
    ----------
    parts, degrees : ndarray of shape (rounds, k)
        Parts of the variances, and their degrees of freedom.
    total : ndarray of shape (k,)
        The variances.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        fractions = np.where(np.isinf(total), np.isinf(parts), parts / total)
        inverse = (np.square(np.nan_to_num(fractions)) / degrees).sum(axis=0)
        return np.asarray(1.0 / inverse)
