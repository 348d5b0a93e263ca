"""How much the draws of a surrogate are off in the mean of a function, and how sure that is."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.diagnostics import mean_error
from surrokit.types import FloatArray
from surrokit.weighted.round import Round


def shares(weights: FloatArray) -> FloatArray:
    """Return what each draw paid for adds to a mean under the target, shape (n,); the sum is one.

    Plain shares w / sum(w) are biased by about Var(w) / n, as the sum is random too. These are
    the delete-one jackknife's: n w_j / S - (n - 1) / n sum over i != j of w_j / (S - w_i), with
    S the sum of the weights (Quenouille 1956, doi:10.1093/biomet/43.3-4.353).

    Parameters
    ----------
    weights : ndarray of shape (n,)
        Not negative; n is at least two.
    """
    n, total = len(weights), float(weights.sum())
    inverse = 1.0 / _rest(weights, total)
    without = weights * (inverse.sum() - inverse)
    return np.asarray(n * weights / total - (n - 1) / n * without)


@attrs.frozen(kw_only=True, eq=False)
class Corrected:
    """Means of k functions under the target, as one round tells them; arrays of shape (k,).

    Parameters
    ----------
    means
        m + sum over the paid of (share - 1/n) (f - m), with m the mean over all draws.
    of_chains
        Variance of m.
    of_correction
        Variance of the rest.
    degrees
        Degrees of freedom that the latter has.
    """

    means: FloatArray
    of_chains: FloatArray
    of_correction: FloatArray
    degrees: FloatArray


def correct(found: Round, values: FloatArray) -> Corrected:
    """Return the means under the target of functions with values (chains, draws, k) at the draws.

    The variance of the correction is the jackknife's, but at least what it would be if weights had
    nothing to do with the function: the few paid draws in a tail may miss what happens there.
    """
    flat = values.reshape(-1, values.shape[2])
    mean, weights = flat.mean(axis=0), found.weights
    paid = flat[found.paid] - mean
    moves = _moves(weights, paid)
    n = len(moves)
    jackknife = (n - 1) / n * np.square(moves).sum(axis=0)
    usual = found.variance * flat.var(axis=0) / n
    still = flat.max(axis=0) == flat.min(axis=0)
    return Corrected(
        means=mean + (shares(weights) - 1.0 / n) @ paid,
        of_chains=np.where(still, 0.0, np.square(mean_error(values))),
        of_correction=np.maximum(jackknife, usual),
        degrees=_degrees(moves),
    )


def _moves(weights: FloatArray, paid: FloatArray) -> FloatArray:
    """Return by how much corrections move when a draw is left out, less the mean, shape (n, k)."""
    n, total = len(weights), float(weights.sum())
    without = (weights @ paid - weights[:, None] * paid) / _rest(weights, total)[:, None]
    plain = (paid.sum(axis=0) - paid) / (n - 1)
    moves = without - plain
    return np.asarray(moves - moves.mean(axis=0))


def _degrees(moves: FloatArray) -> FloatArray:
    """Return the degrees of freedom of the variance of moves (n, k): few where few make it up.

    A variance s^2 of n numbers of kurtosis g has relative variance (g - 1) / n, and one with f
    degrees 2 / f.
    """
    n = len(moves)
    squares = np.square(moves)
    with np.errstate(divide="ignore", invalid="ignore"):
        kurtosis = n * np.square(squares).sum(axis=0) / np.square(squares.sum(axis=0))
        degrees = 2.0 * n / (kurtosis - 1.0)
    return np.asarray(np.clip(np.nan_to_num(degrees, nan=n - 1.0), 2.0, n - 1.0))


def _rest(weights: FloatArray, total: float) -> FloatArray:
    """Return the sums of all weights but one (n,), never zero."""
    return np.maximum(total - weights, np.finfo(float).tiny)
