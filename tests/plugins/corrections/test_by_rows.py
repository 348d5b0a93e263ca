"""Decisions by a few rows: exact draws stay exact, for every family and for rows far out.

Bounds of all families are in the conformance suite.
"""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from scipy.special import expit

import surrokit as sk
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import TargetError
from surrokit.interfaces import ChainState, Proposal
from surrokit.testing import check_potential
from surrokit.testing.wrappers import Wrapped
from surrokit_corrections.subsampled import Subsampled
from surrokit_problems.families import LOGISTIC, family
from surrokit_problems.rows import GeneralizedLinearModel

SIGMAS = 5.0
"""Of every comparison of a mean: a false alarm in 1.7 million, and fewer than 200 of them."""

N_ROWS = 60


# few, skewed rows: a posterior that is far from normal
SKEWED = np.random.default_rng(4).gamma(0.5, 1.0, (N_ROWS, 1))
X = np.column_stack([np.ones(N_ROWS), SKEWED])
RNG = np.random.default_rng(5)
COUNTS = RNG.poisson(np.exp(0.2 * X[:, 1])).astype(float)
TIMES = RNG.exponential(np.exp(-0.3 * X[:, 1]))
BINARY = (RNG.random(N_ROWS) < 0.8).astype(float)
REAL = X @ [0.3, 0.5] + RNG.standard_normal(N_ROWS)
TARGETS = {
    "gaussian": lambda: sk.rows_potential("gaussian", X, REAL, prior=1.0),
    "student": lambda: sk.rows_potential("student", X, REAL, prior=1.0, scale=0.8),
    "logistic": lambda: sk.rows_potential("logistic", X, BINARY, prior=1.0, offset=0.1 * COUNTS),
    "probit": lambda: sk.rows_potential("probit", X, BINARY, prior=1.0),
    "multinomial": lambda: sk.rows_potential(
        "multinomial", X[:, 1:], np.arange(N_ROWS) % 3, prior=1.0
    ),
    "poisson": lambda: sk.rows_potential("poisson", X, COUNTS, prior=1.0, weights=BINARY + 0.1),
    "negative binomial": lambda: sk.rows_potential(
        "negative-binomial", X, COUNTS, prior=1.0, size=1.5
    ),
    "gamma": lambda: sk.rows_potential("gamma", X, TIMES, prior=1.0, shape=0.6),
    "exponential": lambda: sk.rows_potential("exponential", X, TIMES, prior=1.0, event=BINARY),
    "weibull": lambda: sk.rows_potential("weibull", X, TIMES, prior=1.0, event=BINARY, shape=1.4),
}
LOCAL = ("poisson", "gamma", "exponential", "weibull")
ORDERS = pytest.mark.parametrize("order", [2, 3])


def prepared(target, order):
    if order == 3 and "rows-third-order" not in target.capabilities:
        pytest.skip("its terms are expanded to second order alone")
    return Subsampled(order=order).bind(target).prepare(np.zeros(target.dim))


def whitened(estimator, z):
    """Return positions at whitened coordinates, shape (..., dim)."""
    steps = np.linalg.solve(estimator.whitening.T, z.reshape(-1, z.shape[-1]).T).T
    return estimator.expansion.centre + steps.reshape(z.shape)


def transitions(correction, positions, n, rng, scale=1.0):
    """Return where chains are after independent normal proposals, and the share accepted."""
    estimator, accepted = correction.estimator, []
    state = ChainState(positions=positions, values=np.full(len(positions), np.nan), cache={})
    for _ in range(n):
        here = (state.positions - estimator.expansion.centre) @ estimator.whitening
        there = scale * rng.standard_normal(here.shape)
        c = (np.square(there) - np.square(here)).sum(axis=1) / (2.0 * scale**2)
        proposal = Proposal(positions=whitened(estimator, there), log_correction=c)
        state, info = correction.decide(state, proposal, rng)
        accepted.append(info.accepted.mean())
    return state.positions, np.mean(accepted)


def on_grid(target, estimator, half=7.0, cells=400):
    """Return whitened middles of a fine grid, their probabilities, and the width of a cell."""
    middles = (np.arange(cells) + 0.5) * (2.0 * half / cells) - half
    z = np.stack(np.meshgrid(middles, middles, indexing="ij"), axis=-1).reshape(-1, 2)
    u = target.value(whitened(estimator, z))
    weights = np.exp(u.min() - u)
    return z, weights / weights.sum(), 2.0 * half / cells


def statistics(z):
    return np.column_stack([z, z**2, z[:, :1] * z[:, 1:], np.tanh(z), z > 1.0])


@pytest.mark.statistical
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.long] * (name == "multinomial")) for name in TARGETS],
)
@ORDERS
def test_exact_draws_stay_exact(name, order):
    target = TARGETS[name]()
    correction = prepared(target, order)
    estimator, rng, n = correction.estimator, np.random.default_rng(6), 4000
    z, weights, width = on_grid(target, estimator)
    here = z[rng.choice(len(z), n, p=weights)]
    here = here + rng.uniform(-0.5, 0.5, here.shape) * width
    positions, accepted = transitions(correction, whitened(estimator, here), 12, rng, 1.2)
    assert accepted > 0.1  # so that little is left of where chains began
    here = (positions - estimator.expansion.centre) @ estimator.whitening
    expected = weights @ statistics(z)
    spread = np.sqrt(weights @ np.square(statistics(z) - expected))
    off = (statistics(here).mean(axis=0) - expected) / (spread / np.sqrt(n))
    assert (np.abs(off) < SIGMAS).all(), off


class Many(Wrapped):
    n_rows = 10**12


@pytest.mark.parametrize("name", LOCAL)
def test_u_is_evaluated_outside_the_ball_and_estimated_within(name):
    target = RecordingPotential(TARGETS[name](), keep=False)
    estimator, rng = prepared(target, 2).estimator, np.random.default_rng(0)
    estimator = attrs.evolve(estimator, potential=Many(target))
    for share, evaluated in ((0.999, 0), (1.001, 1)):
        far = whitened(estimator, np.array([[0.0, share * estimator.radius]]))
        before = target.calls["value"]
        found = estimator.values(far, rng)
        assert target.calls["value"] - before == evaluated
        assert (found == target.value(far)) == bool(evaluated)


def short_of_reach(e, y, reach):
    """A bound that holds at the centre, and not in a ball about it."""
    return family("poisson").third_bound(e, y, 0.0 * reach)


SHORT_OF_REACH = attrs.evolve(
    family("poisson"), third_bound=short_of_reach, third=None, fourth_bound=None
)


def test_a_bound_that_forgets_the_reach_is_seen_by_the_contract():
    results = check_potential(lambda: sk.rows_potential(SHORT_OF_REACH, X, COUNTS, prior=1.0))
    failed = [result.name.partition("[")[0] for result in results if result.outcome == "failed"]
    assert failed == ["check_row_bounds"]


def test_a_bound_that_forgets_the_reach_stops_a_run():
    correction = prepared(sk.rows_potential(SHORT_OF_REACH, X, COUNTS, prior=1.0), 2)
    estimator, rng = correction.estimator, np.random.default_rng(1)
    z = 3.0 * rng.standard_normal((4000, 2))
    with pytest.raises(TargetError, match=r"row \d+ is"):
        estimator.values(whitened(estimator, z), rng)


def test_a_run_agrees_with_one_that_passes_over_all_rows():
    options = {"chains": 4, "warmup": 200, "draws": 1000, "seed": 3, "progress": False}
    parts = {"sampler": "gaussian", "surrogate": "quadratic", "explorer": "rounds"}
    by_rows = sk.sample(TARGETS["poisson"](), correction="subsampled", **parts, **options)
    full = sk.sample(TARGETS["poisson"](), sampler="hmc", surrogate="none", **options)
    for one, other, ess in zip(
        np.moveaxis(by_rows.draws, 2, 0),
        np.moveaxis(full.draws, 2, 0),
        np.minimum(by_rows.ess("bulk"), full.ess("bulk")),
        strict=True,
    ):
        error = np.sqrt((one.var() + other.var()) / ess)
        assert abs(one.mean() - other.mean()) < SIGMAS * error


# --- rows far from where their response changes ---
# Their terms are all but straight, and decide nothing.


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
    u = sk.make("potential", "logistic", design=design[near], response=response[near]).value(points)
    u -= np.log(points[:, 1])  # the volume of a cell, as cuts are scaled by slopes
    weights = np.exp(u.min() - u)
    return points, weights / weights.sum()


def of_family(family, rows, order):
    return prepared(GeneralizedLinearModel(*rows, family), order)


def from_exact_draws(family, posterior):
    """Return by how many standard errors the mean slope is off after some transitions."""
    points, weights = posterior
    rng = np.random.default_rng(1)
    start = points[rng.choice(len(points), 60, p=weights)]
    positions, accepted = transitions(of_family(family, separable(), 2), start, 100, rng)
    mean = weights @ points[:, 1]
    sd = np.sqrt(weights @ np.square(points[:, 1] - mean))
    return (positions[:, 1].mean() - mean) / sd * np.sqrt(len(positions)), accepted


@pytest.mark.statistical
def test_exact_draws_of_a_separable_posterior_stay_exact(posterior):
    off, accepted = from_exact_draws(LOGISTIC, posterior)
    assert abs(off) < SIGMAS
    assert accepted > 0.5


@ORDERS
def test_a_row_far_out_is_within_its_bound(order):
    correction = of_family(LOGISTIC, with_one_far_row(), order)
    assert correction.estimator.expansion.predictors[0] > 400.0
    start = np.tile(correction.estimator.expansion.centre, (20, 1))
    _, accepted = transitions(correction, start, 50, np.random.default_rng(0))
    assert accepted > 0.95
