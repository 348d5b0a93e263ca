"""A round of weighted answers: draws of one surrogate, a few of them paid for."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.errors import ConfigurationError, ShapeError
from surrokit.types import FloatArray, IntArray


@attrs.frozen(kw_only=True, eq=False)
class Round:
    """Draws of a surrogate V, and what the exact potential U says at some of them.

    V must have learnt from none of the points that are paid for here, or else the correction would
    find it better than it is.

    Parameters
    ----------
    draws : ndarray of shape (chains, draws, dim)
        Of chains on V alone, in the user's coordinates.
    paid : ndarray of int, shape (n,)
        Which draws were paid for, chain by chain: 0 to chains * draws - 1. They lie far enough
        apart to be about independent.
    log_weights : ndarray of shape (n,)
        V - U there, up to a constant; -inf where the target is zero.
    learnt : int
        Exact evaluations that V has learnt from.

    Raises
    ------
    ShapeError
        If draws are not three-dimensional, or paid draws and log weights not as many, at least one.
    ConfigurationError
        If a paid draw is not among the draws, or a log weight is NaN or plus infinity.
    """

    draws: FloatArray
    paid: IntArray
    log_weights: FloatArray
    learnt: int

    def __attrs_post_init__(self) -> None:
        n = len(self.paid)
        if (
            self.draws.ndim != 3
            or self.paid.shape != (n,)
            or self.log_weights.shape != (n,)
            or not n
        ):
            raise ShapeError(
                "a round needs draws of shape (chains, draws, dim) and as many log weights as paid "
                f"draws, got shapes {self.draws.shape}, {self.log_weights.shape} and "
                f"{self.paid.shape}; pass a log weight for each draw that was paid for"
            )
        _check_numbers(self.paid, len(self.flat), self.log_weights)

    def __len__(self) -> int:
        return len(self.paid)

    @property
    def flat(self) -> FloatArray:
        """The draws, chain by chain, shape (chains * draws, dim)."""
        return np.asarray(self.draws.reshape(-1, self.draws.shape[2]))

    @property
    def weights(self) -> FloatArray:
        """Weights of the draws paid for, of mean one, shape (n,); NaN if the target is zero at all.

        Only ratios are known, as V and U are potentials up to constants.
        """
        with np.errstate(invalid="ignore"):
            weights = np.exp(self.log_weights - self.log_weights.max(initial=-np.inf))
        return np.asarray(weights / weights.mean())

    @property
    def variance(self) -> float:
        """Variance of the weights: independent exact draws would be worth 1 / variance of these."""
        return float(self.weights.var(ddof=1)) if len(self) > 1 else np.nan

    @property
    def effective(self) -> float:
        """Number of equally weighted draws that the weights are worth."""
        weights = self.weights
        return float(np.square(weights.sum()) / np.square(weights).sum())


def _check_numbers(paid: IntArray, n: int, log_weights: FloatArray) -> None:
    if paid.min() < 0 or paid.max() >= n:
        raise ConfigurationError(
            f"paid draws must be from 0 to {n - 1}, got {paid.min()} to {paid.max()}; "
            "number the draws chain by chain"
        )
    if np.isnan(log_weights).any() or log_weights.max() == np.inf:
        raise ConfigurationError(
            "log weights must be finite, or -inf where the target is zero, got NaN or inf; "
            "look at the potentials there"
        )
