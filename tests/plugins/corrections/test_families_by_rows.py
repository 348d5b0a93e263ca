"""Decisions by a few rows, for every family: exact draws stay exact, and bounds hold."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

import surrokit as sk
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import TargetError
from surrokit.interfaces import ChainState
from surrokit.potentials import Ball, move_bounds
from surrokit.testing import check_potential
from surrokit.testing.parts import proposal_at
from surrokit_corrections.subsampled import Subsampled
from surrokit_problems.families import family

SIGMAS = 5.0
"""Of every comparison of a mean: a false alarm in 1.7 million, and fewer than 200 of them."""

N_ROWS = 60


def rows(dim=2):
    """Return few, skewed rows: a posterior that is far from normal."""
    rng = np.random.default_rng(4)
    return np.column_stack([np.ones(N_ROWS), rng.gamma(0.5, 1.0, (N_ROWS, dim - 1))])[:, :dim]


X = rows()
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
EACH = pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
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


def exact_draws(target, thinning, n, rng, half=7.0, cells=400):
    """Return whitened draws by a fine grid, and the mean and covariance of the posterior."""
    middles = (np.arange(cells) + 0.5) * (2.0 * half / cells) - half
    z = np.stack(np.meshgrid(middles, middles, indexing="ij"), axis=-1).reshape(-1, 2)
    u = target.value(whitened(thinning, z))
    weights = np.exp(u.min() - u)
    weights /= weights.sum()
    draws = z[rng.choice(len(z), n, p=weights)]
    return draws + rng.uniform(-0.5, 0.5, draws.shape) * (2.0 * half / cells), z, weights


def statistics(z):
    return np.column_stack([z, z**2, z[:, :1] * z[:, 1:], np.tanh(z), z > 1.0])


@pytest.mark.statistical
@EACH
@ORDERS
def test_exact_draws_stay_exact(target, order):
    target = target()
    correction = prepared(target, order)
    thinning, rng = correction.thinning, np.random.default_rng(6)
    n, steps = 4000, 12
    here, z, weights = exact_draws(target, thinning, n, rng)
    state = ChainState(positions=whitened(thinning, here), values=np.full(n, np.nan), cache={})
    accepted = []
    for _ in range(steps):
        here = (state.positions - thinning.expansion.centre) @ thinning.whitening
        there = 1.2 * rng.standard_normal(here.shape)
        c = (np.square(there) - np.square(here)).sum(axis=1) / (2.0 * 1.2**2)
        state, info = correction.decide(state, proposal_at(whitened(thinning, there), c), rng)
        accepted.append(info.accepted.mean())
    assert np.mean(accepted) > 0.1  # so that little is left of where chains began
    here = (state.positions - thinning.expansion.centre) @ thinning.whitening
    expected = weights @ statistics(z)
    spread = np.sqrt(weights @ np.square(statistics(z) - expected))
    off = (statistics(here).mean(axis=0) - expected) / (spread / np.sqrt(n))
    assert (np.abs(off) < SIGMAS).all(), off


@EACH
@ORDERS
def test_no_row_changes_by_more_than_its_bound_on_any_move(target, order):
    target = target()
    thinning = prepared(target, order).thinning
    rng = np.random.default_rng(7)
    factor = np.linalg.inv(thinning.whitening).T
    largest = 0.0
    for scale in (0.3, 1.0, 3.0, 8.0):
        start = scale * rng.standard_normal((40, 2))
        end = start + scale * rng.standard_normal((40, 2)) * rng.gamma(0.5, 1.0, (40, 1))
        ends = whitened(thinning, np.array([start, end]))
        rows_, owners = np.tile(np.arange(N_ROWS), 40), np.repeat(np.arange(40), N_ROWS)
        changes = thinning.expansion.changes(ends[0], ends[1], rows_, owners)
        limits = move_bounds(start, end, order)
        for owner in range(40):
            reach = max(np.linalg.norm(start[owner]), np.linalg.norm(end[owner]))
            ball = {"ball": Ball(centre=thinning.expansion.centre, radius=float(reach))}
            local = "rows-in-balls" in target.capabilities
            third = {"order": 3} if order == 3 else {}
            psi = target.row_bounds(factor, **third, **(ball if local else {}))
            found = np.abs(changes[owners == owner])
            assert (found <= psi * limits[owner] * (1 + 1e-9) + 1e-9).all()
            counts = found > 1e-6
            if counts.any():
                largest = max(largest, (found[counts] / (psi * limits[owner])[counts]).max())
    assert largest > 0.1 or not thinning.envelopes[0].total  # bounds are of some use


@pytest.mark.parametrize("name", LOCAL)
@ORDERS
def test_a_move_is_measured_by_the_smallest_ball_that_holds_it(name, order):
    target = RecordingPotential(TARGETS[name](), keep=False)
    correction = prepared(target, order)
    thinning = attrs.evolve(correction.thinning, n_rows=10**12)
    radii = [each.radius for each in thinning.envelopes]
    totals = [each.total for each in thinning.envelopes]
    assert radii == sorted(radii)
    assert totals == sorted(totals)
    assert totals[0] < 0.9 * totals[-1]
    for radius, total in zip(radii, totals, strict=True):
        far = np.array([0.0, 0.999 * radius])
        z = np.repeat([[0.1 * far], [far]], 3000, axis=1)
        before = target.calls["rows"]
        thinning.survival(
            whitened(thinning, z), np.ones(3000, dtype=bool), np.random.default_rng(0)
        )
        expected = 3000 * total * move_bounds(z[0, :1], z[1, :1], order)[0]
        assert target.calls["rows"] - before == pytest.approx(expected, abs=6 * expected**0.5)


@pytest.mark.parametrize("name", LOCAL)
def test_a_move_out_of_all_balls_is_decided_by_all_rows(name):
    target = RecordingPotential(TARGETS[name](), keep=False)
    correction = prepared(target, 2)
    thinning = correction.thinning
    far = 1.001 * thinning.envelopes[-1].radius
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
    with pytest.raises(TargetError, match=r"row \d+ must not change by more than"):
        thinning.survival(whitened(thinning, z), np.ones(4000, dtype=bool), rng)


@pytest.mark.parametrize(
    "name",
    ["poisson", *[pytest.param(each, marks=pytest.mark.long) for each in LOCAL[1:]], "gaussian"],
)
def test_a_run_agrees_with_one_that_passes_over_all_rows(name):
    options = {"chains": 4, "warmup": 200, "draws": 1500, "seed": 3, "progress": False}
    by_rows = sk.sample(
        TARGETS[name](),
        sampler="gaussian",
        surrogate="quadratic",
        explorer="rounds",
        correction="subsampled",
        **options,
    )
    full = sk.sample(TARGETS[name](), sampler="hmc", surrogate="none", **options)
    for one, other, ess in zip(
        np.moveaxis(by_rows.draws, 2, 0),
        np.moveaxis(full.draws, 2, 0),
        np.minimum(by_rows.ess("bulk"), full.ess("bulk")),
        strict=True,
    ):
        error = np.sqrt((one.var() + other.var()) / ess)
        assert abs(one.mean() - other.mean()) < SIGMAS * error
