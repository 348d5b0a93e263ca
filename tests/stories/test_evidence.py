"""Evidence of two models of the universe, and the Bayes factor between them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

import simulators
import surrokit as sk

M = sk.real(prior=stats.norm(43, 1))
Om = sk.interval(0.05, 0.95, prior=stats.uniform(0.05, 0.9))


def log_likelihood(misfit):
    return -0.5 * np.square(misfit).sum(axis=-1) - 30 * np.log(0.1 * np.sqrt(2 * np.pi))


def by_quadrature(matter):
    """Log evidence over M and these values of Om, which are equally likely."""
    places = np.linspace(42.5, 44.0, 1501)
    shape = np.array([simulators.moduli(0.0, each) for each in matter])
    misfit = (simulators.SUPERNOVAE - places[:, None, None] - shape) / 0.1
    log = stats.norm(43, 1).logpdf(places)[:, None] + log_likelihood(misfit)
    return logsumexp(log) + np.log(places[1] - places[0]) - np.log(len(matter))


def log_evidence(account, parameters, forward):
    target = sk.forward_potential(
        forward, data=simulators.SUPERNOVAE, noise_sd=0.1, parameters=parameters
    )
    run = account(sk.sample(target, correction="weights", max_calls=150, seed=1))
    return run.log_normalizer()


@pytest.mark.long
def test_evidence_of_two_universes(account):
    with_lambda = log_evidence(account, {"M": M, "Om": Om}, lambda q: simulators.moduli(*q))
    without = log_evidence(account, {"M": M}, lambda q: simulators.moduli(q[0], 1.0))
    edges = np.linspace(0.05, 0.95, 401)
    truth = by_quadrature(0.5 * (edges[1:] + edges[:-1])), by_quadrature([1.0])
    for estimate, exact in zip((with_lambda, without), truth, strict=True):
        assert not estimate.unnormalized
        low, high = estimate.interval(0.999)
        assert low - 0.01 < exact < high + 0.01
    assert abs(with_lambda.value - without.value - (truth[0] - truth[1])) < 0.1
