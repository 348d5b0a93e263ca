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
    chances : ndarray of shape (n,), optional
        How much likelier than others each of them was to be paid for; all the same by default.
        Where rare draws are likelier, it is seen whether V is too high in its tails.

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
    chances: FloatArray = attrs.field()

    @chances.default
    def _even(self) -> FloatArray:
        return np.ones(len(self.paid))

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
    def evenings(self) -> FloatArray:
        """What makes the draws paid for even draws of the surrogate, of mean one, shape (n,)."""
        return np.asarray(1.0 / self.chances / (1.0 / self.chances).mean())

    @property
    def log_ratios(self) -> FloatArray:
        """Log of the target's density over that of what was paid for, up to a constant, (n,)."""
        return np.asarray(self.log_weights - np.log(self.chances))

    @property
    def weights(self) -> FloatArray:
        """What makes the draws paid for draws of the target, of mean one, shape (n,).

        NaN if the target is zero at all. Only ratios are known, as V and U are potentials up to
        constants.
        """
        ratios = self.log_ratios
        with np.errstate(invalid="ignore"):
            weights = np.exp(ratios - ratios.max(initial=-np.inf))
        return np.asarray(weights / weights.mean())

    @property
    def densities(self) -> FloatArray:
        """The target's density over the surrogate's, of mean one over the latter, shape (n,)."""
        return np.asarray(self.weights / self.evenings)

    @property
    def variance(self) -> float:
        """Variance of the densities: 1 / it independent exact draws are worth a paid draw."""
        n = len(self)
        if n < 2:
            return np.nan
        return float((self.evenings @ np.square(self.densities - 1.0)) / (n - 1))

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
