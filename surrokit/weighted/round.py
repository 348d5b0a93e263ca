"""A round of weighted answers: draws of one surrogate, a few of them paid for."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.errors import ConfigurationError, ShapeError
from surrokit.types import FloatArray


@attrs.frozen(kw_only=True, eq=False)
class Round:
    """Draws of a surrogate V, and what the exact potential U says at positions paid for.

    V must have learnt from none of the points that are paid for here, or else the correction would
    find it better than it is.

    Parameters
    ----------
    draws : ndarray of shape (chains, draws, dim)
        Of chains on V alone, in the user's coordinates.
    paid : ndarray of shape (n, dim)
        Positions paid for, about independent, in the user's coordinates: draws of a density q.
    log_weights : ndarray of shape (n,)
        Log of the target's density over q there, up to a constant; -inf where the target is zero.
        Where q is V's own, V - U.
    log_evens : ndarray of shape (n,), optional
        Log of the surrogate's density over q. Zero by default, where q is V's own.
    learnt : int
        Exact evaluations that V has learnt from.
    hindsight : ndarray of shape (chains, m), optional
        By how much weights vary about every k-th draw of each chain, as a later surrogate
        foretells; see :func:`~surrokit.weighted.paid.payments.look_back`. By default zero at the
        first draws. It is no part of what the round says, only of how sure that is.
    tilt : ndarray of shape (chains, m), optional
        What every k-th draw of each chain counts for, of mean one, where better surrogates than V
        are corrected; see :class:`~surrokit.weighted.paid.cross_fitting.CrossFit`. One by default.

    Raises
    ------
    ShapeError
        If draws are not three-dimensional, positions, weights and evens not as many, at least one,
        or the hindsight or the tilt is not that of the draws.
    ConfigurationError
        If a weight or an even is NaN or plus infinity.
    """

    draws: FloatArray
    paid: FloatArray
    log_weights: FloatArray
    learnt: int
    log_evens: FloatArray = attrs.field()
    hindsight: FloatArray = attrs.field()
    tilt: FloatArray = attrs.field()

    @log_evens.default
    def _even(self) -> FloatArray:
        return np.zeros(len(self.paid))

    @hindsight.default
    def _none(self) -> FloatArray:
        return np.zeros((len(self.draws), 1))

    @tilt.default
    def _untilted(self) -> FloatArray:
        return np.ones((len(self.draws), 1))

    def __attrs_post_init__(self) -> None:
        n = len(self.paid)
        fits = self.draws.ndim == 3 and self.paid.shape == (n, self.draws.shape[2])
        if not (fits and n and self.log_weights.shape == self.log_evens.shape == (n,)):
            raise ShapeError(
                "a round needs draws of shape (chains, draws, dim), n positions paid for, and as "
                f"many log weights, got shapes {self.draws.shape}, {self.paid.shape}, "
                f"{self.log_weights.shape} and {self.log_evens.shape}; pass a log weight for each "
                "position that was paid for"
            )
        for name, made in (("hindsight", "look_back"), ("tilt", "cross_fit")):
            numbers = getattr(self, name)
            if numbers.shape != thin_as(numbers, self.draws).shape[:2]:
                raise ShapeError(
                    f"the {name} of a round must have a number for every k-th draw of each chain, "
                    f"got shape {numbers.shape} for draws of shape {self.draws.shape}; make it "
                    f"by {made}"
                )
        for logs in (self.log_weights, self.log_evens):
            if np.isnan(logs).any() or logs.max() == np.inf:
                raise ConfigurationError(
                    "log weights must be finite, or -inf where the target is zero, got NaN or inf; "
                    "look at the potentials there"
                )

    def __len__(self) -> int:
        return len(self.paid)

    @property
    def flat(self) -> FloatArray:
        """The draws, chain by chain, shape (chains * draws, dim)."""
        return np.asarray(self.draws.reshape(-1, self.draws.shape[2]))

    @property
    def evenings(self) -> FloatArray:
        """What makes the positions paid for draws of the surrogate, of mean one, shape (n,)."""
        return _mean_one(self.log_evens)

    @property
    def weights(self) -> FloatArray:
        """What makes the positions paid for draws of the target, of mean one, shape (n,).

        NaN if the target is zero at all. Only ratios are known, as V and U are potentials up to
        constants.
        """
        return _mean_one(self.log_weights)

    @property
    def log_ratios(self) -> FloatArray:
        """V - U at the positions paid for, up to a constant, shape (n,); NaN where both are inf."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.log_weights - self.log_evens)

    @property
    def variance(self) -> float:
        """Of weights less evenings: 1 / it independent exact draws are worth a paid position."""
        n = len(self)
        if n < 2:
            return np.nan
        return float(np.square(self.weights - self.evenings).sum() / (n - 1))

    @property
    def effective(self) -> float:
        """Number of equally weighted draws that the weights are worth."""
        weights = self.weights
        return float(np.square(weights.sum()) / np.square(weights).sum())


def thin(draws: FloatArray, most: int) -> FloatArray:
    """Return every j-th draw of each chain, with the least j that leaves so many at most.

    Thinned to as many as that leaves, the draws (chains, draws, ...) are the same again.
    """
    return draws[:, :: -(-draws.shape[1] // max(most, 1))]


def thin_as(numbers: FloatArray, draws: FloatArray) -> FloatArray:
    """Return those of draws (chains, draws, k) that numbers (chains, m) are of."""
    return thin(draws, numbers.shape[-1])


def _mean_one(logs: FloatArray) -> FloatArray:
    """Return exponentials, scaled to mean one."""
    with np.errstate(invalid="ignore"):
        weights = np.exp(logs - logs.max(initial=-np.inf))
    return np.asarray(weights / weights.mean())
