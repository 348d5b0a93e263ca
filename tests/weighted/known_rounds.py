"""Rounds with known answers: V is standard normal, and U density_ratios it."""

from __future__ import annotations

import attrs
import numpy as np
from scipy.signal import lfilter
from scipy.stats import binom

from surrokit.weighted.correction import Values
from surrokit.weighted.round import Round


def chains(rng, chains=4, draws=100, dim=1, phi=0.0):
    noise = rng.standard_normal((chains, draws + 60, dim)) * np.sqrt(1.0 - phi**2)
    return lfilter([1.0], [1.0, -phi], noise, axis=1)[:, 60:]


def pay(rng, draws, n, log_weight, learnt=100):
    flat = draws.reshape(-1, draws.shape[2])
    paid = flat[rng.choice(len(flat), n, replace=False)]
    return Round(draws=draws, evaluated=paid, log_weights=log_weight(paid), learnt=learnt)


def known(found, function):
    """Return the values of a function in a round."""
    return Values(*map(function, (found.draws, found.looked_at, found.evaluated)))


def positions(found):
    return known(found, lambda positions: positions)


def reweighted(rng, n=40, density_ratio=0.3, learnt=100, **sizes):
    """Return a round whose target is normal, of mean ``density_ratio`` in each number."""
    return pay(rng, chains(rng, **sizes), n, lambda z: density_ratio * z.sum(axis=1), learnt)


def predicting(found, variance):
    """Return a round, at all draws of which a later surrogate predicts a variance."""
    ones = np.ones(variance.shape)
    return attrs.evolve(
        found,
        looked_at=found.draws,
        looked_at_weights=ones,
        density_ratio=ones,
        predictive_variance=variance,
    )


def fewest_hits(repeats, probability=0.95, false_alarm=1e-4):
    """Return the hits that intervals which hold make with all but a false alarm's probability."""
    return int(binom.ppf(false_alarm, repeats, probability))


def bias_in_errors(errors):
    """Return the mean of errors, in standard errors."""
    errors = np.asarray(errors)
    return errors.mean(axis=0) / errors.std(axis=0, ddof=1) * np.sqrt(len(errors))
