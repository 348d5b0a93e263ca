"""Where a round pays for the exact potential, and what a later surrogate says of that."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.contracts.potential import Potential
from surrokit.contracts.sampler import OuterSample, SurrogateSample
from surrokit.types import FloatArray, IntArray
from surrokit.weighted.round import thin

OUTER = 0.5
"""Part of the payments that goes to draws farther out, where there are such."""

LOOKED_AT = 12_000
"""Draws of a surrogate at which other surrogates are evaluated at most: a value of them is no exact
call, but not for nothing either."""


@attrs.frozen(kw_only=True, eq=False)
class Payments:
    """Positions to pay for, and how likely they were.

    Draws of a surrogate V cannot tell what V lacks. Where V is too high it has few draws, and
    weights would look good while a part of the target is missing. So half of the payments go to
    draws of a wider density. All are draws of one known mixture (defensive importance sampling:
    Hesterberg 1995, doi:10.1080/00401706.1995.10484303; parts of fixed sizes after Veach and Guibas
    1995, doi:10.1145/218380.218498).

    Parameters
    ----------
    positions : ndarray of shape (n, dim)
        In the sampling coordinates.
    values : ndarray of shape (n,)
        V there.
    share
        Part of the payments that is farther out.
    outer
        Draws there; None where all payments are draws of V.
    """

    positions: FloatArray
    values: FloatArray
    share: float = 0.0
    outer: OuterSample | None = None

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def log_evens(self) -> FloatArray:
        """Log of the surrogate's density over the mixture's, shape (n,)."""
        return self.log_evens_at(self.values)

    def log_evens_at(self, values: FloatArray) -> FloatArray:
        """Return that log by values of V, of their shape."""
        if self.outer is None:
            return np.zeros_like(values)
        return np.asarray(-np.log(1.0 - self.share + self.share * self.outer.chances(values)))

    def weigh(self, exact: FloatArray) -> FloatArray:
        """Return log weights, shape (n,), by U there: log of the target's density over q."""
        with np.errstate(invalid="ignore"):
            weights = self.values - exact + self.log_evens
        return np.where(np.isinf(exact), -np.inf, weights)


def choose(
    sample: SurrogateSample, surrogate: Potential, n: int, rng: np.random.Generator
) -> Payments:
    """Return n positions to pay for.

    Parameters
    ----------
    sample
        Draws of the surrogate.
    surrogate
        V.
    n
        At least one, and far fewer than draws.
    rng
        Generator.
    """
    flat, outer = sample.flat, sample.outer
    if outer is None:
        inner = _thin(len(flat), n, rng)
        return Payments(positions=flat[inner], values=sample.values.ravel()[inner])
    n_outer = min(int(OUTER * n), len(outer.positions))
    parts = [flat[_thin(len(flat), n - n_outer, rng)]]
    parts.append(outer.positions[_thin(len(outer.positions), n_outer, rng)])
    positions = np.concatenate(parts)
    values = np.asarray(surrogate.value(positions))
    return Payments(positions=positions, values=values, share=n_outer / n, outer=outer)


def look_back(
    sample: SurrogateSample,
    payments: Payments,
    later: Potential,
    tilts: FloatArray | None = None,
) -> FloatArray:
    """Return by how much weights vary about draws of a surrogate V, as a later one foretells.

    A round pays at few of its draws. Where none of them lies in a tail that V gets wrong, its
    weights are even and its errors are told too small. A surrogate V' that has learnt from these
    payments, and from later ones, foretells weights at every draw for nothing. They are no part of
    an answer, as V' knows the points that correct V: they only keep its error from being too small.

    Payments are draws of a density q, the draws of V come from s, and e = s / q. With the weight
    w = e r that is foretold, where r = exp(V - V') has mean one, a payment has the variance
    (w - e)^2 (f - m)^2 in the mean of f, on average under q. That is e (r - 1)^2 (f - m)^2 on
    average under s.

    Parameters
    ----------
    sample
        Draws of V, of shape (chains, draws, dim).
    payments
        What was paid for among them, and farther out.
    later
        V'.
    tilts : ndarray of shape (folds, chains, m), optional
        Ratios of the densities of other surrogates to that of V, where they are corrected in its
        place, at the draws of the result. They stand for the one in (r - 1)^2.

    Returns
    -------
    ndarray of shape (chains, m)
        e (r - 1)^2 at the draws that :func:`compare` looks at; with tilts its mean over them.
    """
    ratios, _ = compare(sample, later)
    squares = np.square(ratios - (1.0 if tilts is None else tilts))
    of_all = squares.reshape(-1, *ratios.shape).mean(axis=0)
    return np.asarray(np.exp(payments.log_evens_at(_look_at(sample.values))) * of_all)


def compare(sample: SurrogateSample, other: Potential) -> tuple[FloatArray, float]:
    """Return the density of another surrogate V' over that of V at some of the draws of V.

    Parameters
    ----------
    sample
        Draws of V, of shape (chains, draws, dim).
    other
        V'.

    Returns
    -------
    ratios : ndarray of shape (chains, m)
        exp(V - V'), of mean one, at every k-th draw with the least k that leaves
        :data:`LOOKED_AT` at most.
    level : float
        Logarithm of what they were divided by for that.
    """
    values, positions = _look_at(sample.values), _look_at(sample.positions)
    seen = other.value(positions.reshape(-1, positions.shape[2])).reshape(values.shape)
    logs = values - seen
    largest = logs.max()
    ratios = np.exp(logs - largest)
    mean = ratios.mean()
    return ratios / mean, float(largest + np.log(mean))


def _look_at(draws: FloatArray) -> FloatArray:
    return thin(draws, LOOKED_AT // len(draws))


def _thin(size: int, n: int, rng: np.random.Generator) -> IntArray:
    """Return n different ones of at least as many draws, as far apart as can be."""
    at = ((np.arange(n) + rng.random()) / max(n, 1) * size).astype(np.int64)
    return np.minimum(at, size - 1)
