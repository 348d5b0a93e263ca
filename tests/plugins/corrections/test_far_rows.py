"""Rows far from where their response changes: their terms are all but straight, and decide nothing.

Logistic remainders were -inf there for steps that bring a row back. Chains that came to such a
position stayed, or a sound bound was blamed.
"""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from scipy.special import expit

import surrokit as sk
from surrokit.errors import TargetError
from surrokit.interfaces import ChainState
from surrokit.testing.parts import proposal_at
from surrokit_corrections.subsampled import Subsampled
from surrokit_problems.families import LOGISTIC
from surrokit_problems.logistic import LogisticRegression
from surrokit_problems.rows import GeneralizedLinearModel

SIGMAS = 5.0
"""Of every comparison of a mean: a false alarm in 1.7 million."""


def growth_lost(e, y, t, order):
    """Return logistic remainders as they were: expm1(t) is -1 to all digits below -37."""
    p = expit(e)
    cubic = LOGISTIC.third(e, y) / 6.0 * t**3 if order == 3 else 0.0
    return np.log1p(p * np.expm1(t)) - p * t * (1.0 + 0.5 * (1.0 - p) * t) - cubic


OLD = attrs.evolve(LOGISTIC, remainder=growth_lost)


def separable(n=2000):
    """Return rows whose covariate tells the response by its sign."""
    x = np.random.default_rng(0).standard_normal(n)
    return np.column_stack([np.ones(n), x]), (x > 0.0).astype(float)


def with_one_far_row(n=20_000):
    """Return ordinary rows, and one whose covariate is 940."""
    rng = np.random.default_rng(0)
    design = np.column_stack([np.ones(n), rng.standard_normal(n)])
    response = (rng.random(n) < expit(design @ [0.2, 0.5])).astype(float)
    design[0, 1], response[0] = 940.0, 1.0
    return design, response


@pytest.fixture(scope="module")
def posterior():
    """Positions on a grid, shape (n, 2), and their probabilities given the separable rows."""
    design, response = separable()
    slope, cut = np.linspace(22.0, 90.0, 200), np.linspace(-0.05, 0.05, 81)
    level = slope[:, None] * cut
    points = np.stack([level, np.broadcast_to(slope[:, None], level.shape)], axis=-1).reshape(-1, 2)
    near = np.abs(design[:, 1]) < 0.5  # all others have 0.001 nats at the least slope
    u = LogisticRegression(design[near], response[near]).value(points)
    u -= np.log(points[:, 1])  # the volume of a cell, as cuts are scaled by slopes
    weights = np.exp(u.min() - u)
    return points, weights / weights.sum()


def prepared(family, rows, order):
    target = GeneralizedLinearModel(*rows, family)
    return Subsampled(order=order).bind(target).prepare(np.zeros(2))


def transitions(correction, positions, n, rng):
    """Return where chains are after independent proposals, and the share of these accepted."""
    thinning = correction.thinning
    state = ChainState(positions=positions, values=np.full(len(positions), np.nan), cache={})
    accepted = []
    for _ in range(n):
        here = (state.positions - thinning.expansion.centre) @ thinning.whitening
        there = rng.standard_normal(here.shape)
        steps = np.linalg.solve(thinning.whitening.T, there.T).T
        c = 0.5 * (np.square(there).sum(axis=1) - np.square(here).sum(axis=1))
        proposal = proposal_at(thinning.expansion.centre + steps, c)
        state, info = correction.decide(state, proposal, rng)
        accepted.append(info.accepted.mean())
    return state.positions, np.mean(accepted)


def from_exact_draws(family, posterior):
    """Return by how many standard errors the mean slope is off after some transitions."""
    points, weights = posterior
    rng = np.random.default_rng(1)
    start = points[rng.choice(len(points), 60, p=weights)]
    positions, accepted = transitions(prepared(family, separable(), order=2), start, 100, rng)
    mean = weights @ points[:, 1]
    sd = np.sqrt(weights @ np.square(points[:, 1] - mean))
    return (positions[:, 1].mean() - mean) / sd * np.sqrt(len(positions)), accepted


@pytest.mark.statistical
def test_exact_draws_of_a_separable_posterior_stay_exact(posterior):
    off, accepted = from_exact_draws(LOGISTIC, posterior)
    assert abs(off) < SIGMAS
    assert accepted > 0.5


@pytest.mark.statistical
def test_growth_that_is_lost_is_seen(posterior):
    off, _ = from_exact_draws(OLD, posterior)
    assert off < -SIGMAS


@pytest.mark.statistical
def test_a_run_on_separable_rows_finds_the_mean(posterior):
    run = sk.sample(
        LogisticRegression(*separable()),
        sampler="gaussian",
        surrogate="quadratic",
        explorer="rounds",
        correction="subsampled",
        warmup=100,
        draws=250,
        seed=1,
        progress=False,
    )
    points, weights = posterior
    slopes = run.draws[..., 1]
    error = slopes.std() / np.sqrt(run.ess("bulk")[1])
    assert abs(slopes.mean() - weights @ points[:, 1]) < SIGMAS * error
    assert run.rhat().max() < 1.05


@pytest.mark.parametrize("order", [2, 3])
def test_a_row_far_out_is_within_its_bound(order):
    correction = prepared(LOGISTIC, with_one_far_row(), order)
    assert correction.thinning.expansion.predictors[0] > 400.0
    start = np.tile(correction.thinning.expansion.centre, (20, 1))
    _, accepted = transitions(correction, start, 50, np.random.default_rng(0))
    assert accepted > 0.95


def test_a_sound_bound_was_blamed_for_growth_that_was_lost():
    correction = prepared(OLD, with_one_far_row(), 2)
    start = np.tile(correction.thinning.expansion.centre, (20, 1))
    with pytest.raises(TargetError, match=r"row 0 must not change by more than .* but does by inf"):
        transitions(correction, start, 50, np.random.default_rng(0))
