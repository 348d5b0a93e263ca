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
from surrokit.potentials import move_bounds
from surrokit.testing import check_potential
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


def whitened(thinning, z):
    """Return positions at whitened coordinates, shape (..., dim)."""
    steps = np.linalg.solve(thinning.whitening.T, z.reshape(-1, z.shape[-1]).T).T
    return thinning.expansion.centre + steps.reshape(z.shape)


def transitions(correction, positions, n, rng, scale=1.0):
    """Return where chains are after independent normal proposals, and the share accepted."""
    thinning, accepted = correction.thinning, []
    state = ChainState(positions=positions, values=np.full(len(positions), np.nan), cache={})
    for _ in range(n):
        here = (state.positions - thinning.expansion.centre) @ thinning.whitening
        there = scale * rng.standard_normal(here.shape)
        c = (np.square(there) - np.square(here)).sum(axis=1) / (2.0 * scale**2)
        proposal = Proposal(positions=whitened(thinning, there), log_correction=c)
        state, info = correction.decide(state, proposal, rng)
        accepted.append(info.accepted.mean())
    return state.positions, np.mean(accepted)


def on_grid(target, thinning, half=7.0, cells=400):
    """Return whitened middles of a fine grid, their probabilities, and the width of a cell."""
    middles = (np.arange(cells) + 0.5) * (2.0 * half / cells) - half
    z = np.stack(np.meshgrid(middles, middles, indexing="ij"), axis=-1).reshape(-1, 2)
    u = target.value(whitened(thinning, z))
    weights = np.exp(u.min() - u)
    return z, weights / weights.sum(), 2.0 * half / cells


def statistics(z):
    return np.column_stack([z, z**2, z[:, :1] * z[:, 1:], np.tanh(z), z > 1.0])


@pytest.mark.statistical
@pytest.mark.parametrize("name", TARGETS)
@ORDERS
def test_exact_draws_stay_exact(name, order):
    target = TARGETS[name]()
    correction = prepared(target, order)
    thinning, rng, n = correction.thinning, np.random.default_rng(6), 4000
    z, weights, width = on_grid(target, thinning)
    here = z[rng.choice(len(z), n, p=weights)]
    here = here + rng.uniform(-0.5, 0.5, here.shape) * width
    positions, accepted = transitions(correction, whitened(thinning, here), 12, rng, 1.2)
    assert accepted > 0.1  # so that little is left of where chains began
    here = (positions - thinning.expansion.centre) @ thinning.whitening
    expected = weights @ statistics(z)
    spread = np.sqrt(weights @ np.square(statistics(z) - expected))
    off = (statistics(here).mean(axis=0) - expected) / (spread / np.sqrt(n))
    assert (np.abs(off) < SIGMAS).all(), off


@pytest.mark.parametrize("name", LOCAL)
@ORDERS
def test_a_move_within_the_ball_touches_rows_by_the_bounds_that_hold_there(name, order):
    target = RecordingPotential(TARGETS[name](), keep=False)
    thinning = attrs.evolve(prepared(target, order).thinning, n_rows=10**12)
    far = np.array([0.0, 0.999 * thinning.radius])
    z = np.repeat([[0.1 * far], [far]], 3000, axis=1)
    before = target.calls["rows"]
    thinning.survival(whitened(thinning, z), np.ones(3000, dtype=bool), np.random.default_rng(0))
    expected = 3000 * thinning.draws.total * move_bounds(z[0, :1], z[1, :1], order)[0]
    assert target.calls["rows"] - before == pytest.approx(expected, abs=6 * expected**0.5)


@pytest.mark.parametrize("name", LOCAL)
def test_a_move_out_of_the_ball_is_decided_by_all_rows(name):
    target = RecordingPotential(TARGETS[name](), keep=False)
    correction = prepared(target, 2)
    thinning = correction.thinning
    far = 1.001 * thinning.radius
    z = np.array([[[0.5, 0.0]], [[0.0, far]]])
    ends = whitened(thinning, z)
    rng = np.random.default_rng(0)
    found = []
    for way in (ends, ends[::-1].copy()):
        before = target.calls["rows"]
        found.append(thinning.survival(way, np.ones(1, dtype=bool), rng)[0])
        assert target.calls["rows"] - before == N_ROWS
    row, owner = np.arange(N_ROWS), np.zeros(N_ROWS, dtype=int)
    changes = thinning.expansion.changes(ends[0], ends[1], row, owner)
    expected = np.exp([-np.maximum(changes, 0).sum(), -np.maximum(-changes, 0).sum()])
    np.testing.assert_allclose(found, expected, rtol=1e-9)


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
    thinning, rng = correction.thinning, np.random.default_rng(1)
    z = 3.0 * rng.standard_normal((2, 4000, 2))
    with pytest.raises(TargetError, match=r"row \d+ changes by"):
        thinning.survival(whitened(thinning, z), np.ones(4000, dtype=bool), rng)


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
# Their terms are all but straight, and decide nothing. Logistic remainders were -inf there for
# steps that bring a row back: chains that came there stayed, or a sound bound was blamed.


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
    """They do not where growth is lost."""
    off, accepted = from_exact_draws(LOGISTIC, posterior)
    assert abs(off) < SIGMAS
    assert accepted > 0.5
    assert from_exact_draws(OLD, posterior)[0] < -SIGMAS


@ORDERS
def test_a_row_far_out_is_within_its_bound(order):
    correction = of_family(LOGISTIC, with_one_far_row(), order)
    assert correction.thinning.expansion.predictors[0] > 400.0
    start = np.tile(correction.thinning.expansion.centre, (20, 1))
    _, accepted = transitions(correction, start, 50, np.random.default_rng(0))
    assert accepted > 0.95


def test_a_sound_bound_was_blamed_for_growth_that_was_lost():
    correction = of_family(OLD, with_one_far_row(), 2)
    start = np.tile(correction.thinning.expansion.centre, (20, 1))
    with pytest.raises(TargetError, match=r"row 0 changes by inf .* more than its bound"):
        transitions(correction, start, 50, np.random.default_rng(0))
