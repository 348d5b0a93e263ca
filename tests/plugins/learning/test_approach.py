"""How exact samplers begin: where chains are after the approach, and what it refuses."""

from __future__ import annotations

import time
from types import SimpleNamespace

import attrs
import numpy as np
import pytest

import surrokit as sk
from surrokit.errors import TargetError
from surrokit.interfaces import ChainState, Evaluations, Start
from surrokit.mode.descent import Mode
from surrokit.mode.search import demand_walls
from surrokit.modes import Modes
from surrokit.testing.targets import Gaussian, Mixture
from surrokit_learning.approach import Approach
from surrokit_learning.modes_search import Limits, ModeSearch
from surrokit_learning.survey import Survey


def start_at(target, positions, warmup=100, **more):
    empty = Evaluations.empty(target.dim)
    return Start(
        potential=target,
        positions=positions,
        warmup=warmup,
        evaluated=lambda: empty,
        fit=lambda rows: None,
        **more,
    )


def arrived(target, positions, seed=0):
    rng = np.random.default_rng(seed)
    *_, last = Approach().explore(start_at(target, positions), rng)
    assert last.done
    return last.findings


def starts(n=4, dim=2, scale=20.0, seed=0):
    return np.random.default_rng(seed).uniform(-scale, scale, (n, dim))


def test_chains_are_spread_about_the_mode():
    target = Gaussian()
    found = arrived(target, starts(n=400))
    normals = target.to_normals(found.chains.positions)
    assert 1.7 < normals.std() < 2.3  # twice as far out as draws
    np.testing.assert_allclose(found.chains.values, target.value(found.chains.positions))
    np.testing.assert_allclose(found.covariance, target.covariance, rtol=1e-6)
    assert len(found.modes) == 1


def test_each_mode_keeps_chains():
    found = arrived(Mixture(half_distance=6.0), starts())
    assert len(found.modes) == 2
    assert set(found.modes.nearest(found.chains.positions)) == {0, 1}


def skewed(q):
    """Two modes of logarithms of gamma variables, of masses 0.8 and 0.2: each has flat sides."""
    away = q[:, None] - np.array([6.0, -6.0])[:, None]
    powers = np.exp(np.minimum(away, 300.0))
    logs = np.log([0.8, 0.2]) + (0.7 * away - powers).sum(axis=2)
    top = np.logaddexp.reduce(logs, axis=1)
    return -top, -(np.exp(logs - top[:, None])[..., None] * (0.7 - powers)).sum(axis=1)


@pytest.mark.parametrize("seed", [0, 1])
def test_searches_that_are_cut_off_on_flat_sides_are_no_modes(seed):
    """They asked for more searches, and these for more: 3,104 gradients, and nine modes."""
    target = sk.potential(value_and_gradient=skewed, dim=12, batched=True)
    at = np.repeat([[6.0], [-6.0]], 3, axis=0) * np.ones(12)
    limits = Limits(total=420, later=210.0, spare=840, beside=40)
    search = ModeSearch(target, at, target.value(at), limits)
    rng = np.random.default_rng(seed)
    while not search.over:
        search.step(rng)
    assert search.n_evaluated < 1000
    assert np.sign(search.found.positions[:, 0]).tolist() == [1.0, -1.0]


def test_a_high_mode_keeps_chains_though_its_volume_seems_to_be_nothing():
    target = sk.potential(value_and_gradient=skewed, dim=30, batched=True)
    at = np.repeat([[6.0], [-6.0]], 3, axis=0) * np.ones(30)
    found = arrived(target, at, seed=0)
    assert (np.sign(found.chains.positions.mean(axis=1)) > 0.0).sum() in (2, 3, 4)


def neck(q):
    """Of an unbounded density: where the logarithm of the scale falls, all others come together."""
    scale = np.exp(q[:, :1])
    value = 0.5 * np.square(q[:, 1:] / scale).sum(axis=1) + 8.0 * q[:, 0]
    value += 0.5 * np.square(q[:, 0]) / 9.0
    slopes = q / scale**2
    slopes[:, 0] = 8.0 + q[:, 0] / 9.0 - np.square(q[:, 1:] / scale).sum(axis=1)
    return value, slopes


def test_chains_mostly_do_not_begin_in_a_neck():
    """Deep in it the density is nearly normal, so that some searches end where nothing shows it."""
    target, seen = sk.potential(value_and_gradient=neck, dim=9, batched=True), 0
    for seed in range(6):
        at = starts(dim=9, scale=2.0, seed=seed)
        found = arrived(target, at)
        assert found.modes.values[0] < target.value(at).min() - 20.0
        if not found.modes.reliable:
            seen += 1
            np.testing.assert_array_equal(found.chains.positions, at)
            assert (found.mode, found.covariance) == (None, None)
    assert seen >= 4


def test_chains_of_rounds_without_a_good_surrogate_do_not_stay_in_a_neck():
    target = sk.potential(value_and_gradient=neck, dim=9, batched=True)
    at = starts(dim=9, scale=2.0)
    known = Survey(target, at, by_gradients=True, batch=20)
    values = target.value(at)
    known.seen = Evaluations(positions=at, values=values)
    deep = np.append(-26.0, np.full(8, np.exp(-26.0)))[None]  # cut off on its way down
    variances = np.append(0.005, np.full(8, np.exp(-44.0)))  # of where it was before
    modes = Modes(
        positions=deep, values=target.value(deep), covariances=np.diag(variances)[None], ended=[3]
    )
    known.search = SimpleNamespace(found=modes, lowest=None)
    known.chains = ChainState(positions=0.0 * at, values=values, cache={})
    assert known.modes.reliable
    known.doubt(at, np.random.default_rng(0))
    assert not known.modes.reliable
    np.testing.assert_array_equal(known.chains.positions, at)


def test_a_budget_limits_the_searches():
    exact = sk.potential(lambda q: 0.5 * q @ q, lambda q: q, dim=2)
    assert Approach().limits(start_at(exact, starts(), calls=40)).total == 10


def test_a_potential_whose_sign_is_turned_is_refused_at_once():
    target = sk.potential(lambda q: -0.5 * q @ q, lambda q: -q, parameters={"a": None, "b": None})
    began = time.process_time()
    with pytest.raises(TargetError, match=r"no least potential: it falls to .* at a = .* its sign"):
        sk.sample(target, sampler="hmc", seed=1, progress=False)
    assert time.process_time() - began < 5.0


@pytest.mark.filterwarnings("ignore:the target returned U = -inf")
def test_a_turned_sign_is_seen_where_a_bound_makes_the_way_short():
    """On the line exp(710) is not far away, and infinite soon after."""
    target = sk.potential(
        log_density=lambda a, b: 0.5 * a**2 + b, parameters={"a": None, "b": (0, None)}
    )
    began = time.process_time()
    with pytest.raises(TargetError, match=r"no least potential: it falls to .*, b = .*e\+30"):
        sk.sample(target, seed=1, progress=False)
    assert time.process_time() - began < 5.0


def test_a_parameter_that_nothing_depends_on_is_refused_at_once():
    target = sk.potential(lambda q: 0.5 * q[0] ** 2, parameters={"a": None, "b": None})
    with pytest.raises(TargetError, match=r"at any distance along b, .* declare bounds or a prior"):
        sk.sample(target, seed=1, progress=False)


@pytest.mark.parametrize(
    ("bend", "fails"), [(1e-40, False), (0.0, True)], ids=["a wide prior", "failures far out"]
)
def test_a_wall_far_away_is_one_too(bend, fails):
    def value(q):
        far = q[1] > 1e20  # to one side alone
        return 0.5 * q[0] ** 2 + bend * q[1] ** 2 + (np.inf if fails and far else 0.0)

    exact = sk.potential(value, dim=2)
    found = Mode(
        position=np.zeros(2),
        value=0.0,
        gradient=np.zeros(2),
        decrement=None,
        hessian=np.diag([1.0, 0.0]),
        converged=True,
        calls=3,
    )
    assert demand_walls(exact, found) == 2
    assert demand_walls(exact, attrs.evolve(found, hessian=np.eye(2))) == 0
    assert demand_walls(exact, attrs.evolve(found, converged=False)) == 0
    bounded = sk.potential(value, parameters={"a": None, "b": (0, None)})
    assert demand_walls(bounded, found) == 2  # along the logarithm
    closed = 1e-20 if bend else 0.0
    ridge = sk.potential(lambda q: 0.5 * (q[0] - q[1]) ** 2 + closed * q[1] ** 2, dim=2)
    across = np.array([[1.0, -1.0], [-1.0, 1.0]])
    if bend:
        assert demand_walls(ridge, attrs.evolve(found, hessian=across)) == 2
    else:
        with pytest.raises(TargetError, match=r"at any distance along q\[0\] \+ q\[1\]"):
            demand_walls(ridge, attrs.evolve(found, hessian=across))


def regression():
    """A regression on raw columns, correlated by 0.99 and of very different scales."""
    rng = np.random.default_rng(4)
    group = rng.integers(0, 2, 434)
    score = rng.normal(100.0, 15.0, 434)
    design = np.column_stack([np.ones(434), group, score, group * score])
    response = design @ [-11.0, 51.0, 1.0, -0.5] + rng.normal(0.0, 18.0, 434)

    def value(q):
        residual = response - design @ q[:4]
        return 0.5 * residual @ residual / q[4] ** 2 + 434 * np.log(q[4])

    def gradient(q):
        residual = response - design @ q[:4]
        by_scale = -residual @ residual / q[4] ** 3 + 434 / q[4]
        return np.append(-design.T @ residual / q[4] ** 2, by_scale)

    names = {"a": None, "b": None, "c": None, "d": None, "sd": (0, None)}
    return sk.potential(value, gradient, parameters=names)


@pytest.mark.statistical
def test_a_regression_on_raw_columns_is_sampled_from_far_starts():
    sampler, seed = "nuts", 2
    target = regression()
    far = target.transform.to_bounded(starts(dim=5, seed=seed))
    run = sk.sample(target, sampler=sampler, initial=far, draws=400, seed=seed, progress=False)
    assert run.rhat().max() < 1.03
    assert not run.verdict.named("chains")
