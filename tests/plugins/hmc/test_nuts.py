"""The no-U-turn sampler: which paths it makes, and what it draws from them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import surrokit as sk
from surrokit.errors import ConfigurationError
from surrokit.interfaces import ChainState, Hamiltonian, Phase, Status, Tuning
from surrokit.kernel.hamiltonian import DIVERGENCE
from surrokit.testing.targets import Banana, Gaussian, Mixture
from surrokit.testing.wrappers import Fenced
from surrokit_hmc.leapfrog import Leapfrog
from surrokit_hmc.metrics import DenseMetric, IdentityMetric
from surrokit_hmc.nuts import NUTS
from surrokit_hmc.trajectories import Half, turns_back

BANANA = Banana()


def nuts(**settings):
    parts = {"integrator": Leapfrog(), "metric": IdentityMetric()}
    return NUTS(**{**parts, "step_size": 0.3, **settings})


def kernel(potential=BANANA, **settings):
    return nuts(**settings).bind(potential, Tuning(step_size=1.0))


def started(sampler, n=6, seed=0, target=BANANA):
    q = target.sample(np.random.default_rng(seed), n)
    return ChainState(positions=q, values=target.value(q), cache=sampler.cache(q))


# --- where paths end ---


def turns(momenta, metric, slowed):
    """Whether a whole path turns back, or has slowed down."""
    span = momenta.sum(axis=0) - 0.5 * (momenta[0] + momenta[-1])
    way = metric.velocity(span[None])[0]
    mean = span / (len(momenta) - 1)
    return min(way @ momenta[0], way @ momenta[-1]) <= slowed * (way @ mean)


def any_turns(momenta, metric, slowed):
    """Whether a path of 2^k points or any of its halves, of their halves, ... turns back."""
    if len(momenta) == 1:
        return False
    middle = len(momenta) // 2
    return (
        turns(momenta, metric, slowed)
        or any_turns(momenta[:middle], metric, slowed)
        or any_turns(momenta[middle:], metric, slowed)
    )


@pytest.mark.parametrize(
    "metric", [IdentityMetric(), DenseMetric(np.array([[2.0, 0.5], [0.5, 1]]))]
)
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize(
    ("step_size", "slowed"), [(0.4, 0.0), (-0.4, 0.0), (0.2, 0.45), (-0.2, 0.45)]
)
def test_a_half_is_sound_just_if_no_subtree_of_it_turns(depth, metric, step_size, slowed):
    n, leapfrog, target = 300, Leapfrog(), Mixture()  # where no path loses its energy
    hamiltonian = Hamiltonian(potential=target, metric=metric)
    rng = np.random.default_rng(depth)
    q = target.sample(rng, n)
    start = Phase(positions=q, momenta=metric.draw(rng, n, 2), cache=leapfrog.cache(hamiltonian, q))
    energy = hamiltonian.energy(start)
    half = Half(
        start,
        start_energy=energy,
        lowest=energy.copy(),
        highest=energy.copy(),
        log_uniforms=np.log(rng.random((2**depth, n))),
    )
    for _ in range(2**depth):
        half.follow(leapfrog, hamiltonian, np.full(len(half.rows), step_size))
        half.turn_back(metric, slowed)
    half.finish()

    phase, path = start, []
    for _ in range(2**depth):
        phase, _ = leapfrog.advance(
            hamiltonian, phase, np.full(n, step_size), np.ones(n, dtype=np.int64)
        )
        path.append(phase)
    momenta = np.stack([phase.momenta for phase in path], axis=1)
    sound = [i for i in range(n) if not any_turns(momenta[i], metric, slowed)]
    assert 0 < len(sound) < n
    assert_array_equal(half.rows, sound)
    assert_allclose(half.momentum_sum, momenta[sound].sum(axis=1))
    energies = np.stack([hamiltonian.energy(phase) for phase in path])
    log_weights = energy[sound] - energies[:, sound]
    assert_allclose(half.log_weight, np.log(np.exp(log_weights).sum(axis=0)))
    assert_allclose(half.acceptance[sound], np.minimum(1, np.exp(log_weights)).sum(axis=0))
    assert_array_equal(half.n_steps[sound], 2**depth)


@pytest.mark.parametrize("slowed", [0.0, 0.45])
def test_turning_is_the_same_from_either_end(rng, slowed):
    how = {"n_points": 3, "slowed": slowed}
    first, last, between = rng.standard_normal((3, 1, 50, 3))
    sums = first + last + between
    metric = IdentityMetric()
    one = turns_back(metric, first, last[0], sums, **how)
    assert_array_equal(one, turns_back(metric, last, first[0], sums, **how))
    assert_array_equal(one, turns_back(metric, -last, -first[0], -sums, **how))
    assert 0 < one.sum() < 50


def swept(angle, n_points=65):
    """Momenta, shape (n_points, 1, 2), evenly spaced over an angle of a circle."""
    t = np.linspace(0.0, angle, n_points)
    return np.stack([np.cos(t), np.sin(t)], axis=1)[:, None]


@pytest.mark.parametrize("slowed", [0.0, 0.3, 0.45, 0.6])
@pytest.mark.parametrize("angle", [1.0, 1.6, 2.0, 2.3, 2.5, 2.8, 3.1, 3.2])
def test_a_path_ends_once_it_has_slowed_to_a_share_of_its_mean(angle, slowed):
    """On a circle the momentum at an end, along the way, has a closed form."""
    p = swept(angle)
    found = turns_back(
        IdentityMetric(), p[:1], p[-1], p.sum(axis=0)[None], n_points=len(p), slowed=slowed
    )
    assert found[0] == (0.5 * angle / np.tan(0.5 * angle) <= slowed)


# --- what is drawn ---


def test_depth_bounds_the_steps():
    for depth in (1, 2, 3):
        sampler = kernel(step_size=0.01, max_depth=depth)
        proposal = sampler.propose(started(sampler), np.random.default_rng(4))
        assert_array_equal(proposal.n_steps, 2**depth - 1)


def test_a_search_for_a_step_size_takes_single_steps():
    assert nuts(step_size=None).bind(BANANA, Tuning(step_size=0.1, n_steps=1)).depth == 1
    assert nuts(step_size=None).bind(BANANA, Tuning(step_size=0.1, n_steps=10)).depth == 3
    assert nuts(step_size=None).bind(BANANA, Tuning(step_size=0.1)).depth == 10
    assert nuts().bind(BANANA, Tuning(step_size=0.1, n_steps=1)).depth == 10


# --- paths that lose energy ---


def test_divergent_paths_are_reported_and_still_draw():
    sampler = kernel(step_size=40.0)
    state = started(sampler)
    proposal = sampler.propose(state, np.random.default_rng(5))
    assert proposal.divergent.all()
    assert_array_equal(proposal.status, Status.OK)
    assert not proposal.moved.any()
    assert_array_equal(proposal.positions, state.positions)
    assert_array_equal(proposal.n_steps, 1)
    _, step = (
        sk.make("correction", "metropolis")
        .bind(BANANA)
        .decide(state, proposal, np.random.default_rng(6))
    )
    assert step.divergent.all()
    assert (step.path_acceptance < 1e-6).all()


def test_a_path_that_leaves_the_support_stops_there():
    fenced = Fenced(BANANA, 1.0)
    sampler = kernel(potential=fenced)
    q = 0.2 * np.random.default_rng(7).standard_normal((100, 2))
    state = ChainState(positions=q, values=fenced.value(q), cache=sampler.cache(q))
    proposal = sampler.propose(state, np.random.default_rng(8))
    assert 0 < proposal.divergent.sum() < 100
    assert proposal.moved[proposal.divergent].any()
    assert np.isfinite(fenced.value(proposal.positions)).all()


def test_points_beyond_a_bound_say_nothing_of_the_step_size():
    flat = Fenced(Gaussian(mean=(0.0, 0.0), covariance=1e12 * np.eye(2)), 1.0)
    sampler = kernel(potential=flat)
    q = np.tile([0.9, 0.0], (50, 1))
    state = ChainState(positions=q, values=flat.value(q), cache=sampler.cache(q))
    proposal = sampler.propose(state, np.random.default_rng(8))
    outside = proposal.status == Status.NO_DENSITY
    assert 0 < outside.sum() < 50
    assert not proposal.moved[outside].any()
    assert_allclose(proposal.log_path_ratio[~outside], 0.0, atol=1e-9)


def test_energies_of_a_path_differ_by_no_more_than_the_limit(rng):
    """Both of its ends count, so that it does not matter from which of its points it began."""
    start = Phase(positions=np.zeros((2, 2)), momenta=np.ones((2, 2)), cache={})

    class Steep:
        def __init__(self, energies):
            self.energies = iter(energies)

        def advance(self, hamiltonian, phase, step_size, n_steps):
            value = np.full(len(step_size), next(self.energies))
            end = Phase(positions=phase.positions, momenta=phase.momenta, cache={"value": value})
            return end, np.zeros(len(value), dtype=np.int64)

    def survivors(*energies, path=0.0):
        half = Half(
            start,
            start_energy=np.zeros(2),
            lowest=np.full(2, min(path, 0.0)),
            highest=np.full(2, max(path, 0.0)),
            log_uniforms=np.log(rng.random((2, 2))),
        )
        hamiltonian = Hamiltonian(potential=None, metric=NoKinetic())
        integrator = Steep(energies)
        for _ in energies:
            half.follow(integrator, hamiltonian, np.ones(len(half.rows)))
        return len(half.rows)

    class NoKinetic(IdentityMetric):
        def energy(self, momenta):
            return np.zeros(len(momenta))

    assert survivors(0.6 * DIVERGENCE, 0.9 * DIVERGENCE) == 2
    assert survivors(-0.6 * DIVERGENCE, 0.3 * DIVERGENCE) == 2
    assert survivors(-0.6 * DIVERGENCE, 0.5 * DIVERGENCE) == 0
    assert survivors(1.1 * DIVERGENCE) == 0
    assert survivors(np.nan) == 0
    # what the path has seen before counts as well, wherever it started
    assert survivors(0.6 * DIVERGENCE, path=-0.3 * DIVERGENCE) == 2
    assert survivors(0.6 * DIVERGENCE, path=-0.5 * DIVERGENCE) == 0
    assert survivors(-0.6 * DIVERGENCE, path=0.5 * DIVERGENCE) == 0


# --- settings ---


@pytest.mark.parametrize(
    ("settings", "free"),
    [
        ({"step_size": None, "metric": DenseMetric()}, {"step_size", "metric", "heavy_warp"}),
        ({"metric": DenseMetric()}, {"metric"}),
        ({}, set()),
    ],
)
def test_what_is_not_given_is_tuned(settings, free):
    assert nuts(**settings).tunes == free


def test_settings_out_of_range_are_refused():
    with pytest.raises(ConfigurationError, match="max_depth must be a whole number of at least 1"):
        nuts(max_depth=0)
    with pytest.raises(ConfigurationError, match="nuts needs a metric with one mass matrix"):
        nuts(metric=sk.make("metric", "softabs"))
    with pytest.raises(ConfigurationError, match="nuts needs an integrator for one mass matrix"):
        nuts(integrator=sk.make("integrator", "generalized-leapfrog"))


# --- in a run ---


def test_a_run_on_the_exact_potential():
    covariance = np.diag([1.0, 2.0, 9.0])
    target = sk.make("potential", "gaussian", mean=np.zeros(3), covariance=covariance)
    run = sk.sample(
        target, sampler=("nuts", {"metric": "dense"}), warmup=250, draws=250, seed=1,
        progress=False,
    )  # fmt: skip
    assert_allclose(run.kept.acceptance[~np.isnan(run.kept.acceptance)], 1.0)
    moved = (np.diff(run.draws, axis=1) != 0).any(axis=2)
    assert_array_equal(run.kept.accepted[:, 1:], moved)  # the point drawn may be the start
    assert run.acceptance.mean() > 0.9
    assert 0.7 < run.kept.path_acceptance.mean() < 0.97
    looked = run.warmup.calls["gradient"][0]  # for the mode
    steps = run.warmup.n_steps.sum() + run.kept.n_steps.sum()
    assert run.calls["gradient"] - looked <= 4 + steps
    variance = run.draws.reshape(-1, 3).var(axis=0)
    assert_allclose(variance, np.diag(covariance), rtol=0.25)
    assert len(np.unique(run.kept.step_size)) == 1


def test_a_run_on_a_surrogate_pays_one_value_a_draw():
    run = sk.sample(
        Mixture(half_distance=0.8), sampler="nuts",
        surrogate=Gaussian(mean=(-0.3, 0.0), covariance=((1.6, 0.0), (0.0, 1.0))),
        warmup=150, draws=50, seed=1, progress=False,
    )  # fmt: skip
    assert run.calls["gradient"] == 0
    assert run.calls["value"] <= 4 * 201
    assert 0.6 < run.acceptance.mean() < 1.0
