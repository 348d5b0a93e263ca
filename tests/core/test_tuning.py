"""Step size and covariance in warm-up."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit.interfaces import Sampler, Status, StepInfo, Tuning
from surrokit.kernel.tuning import STEPS_BEFORE_COVARIANCE, Tuner, pool, windows

ALL = frozenset({"step_size", "n_steps", "metric"})


def info(acceptance):
    acceptance = np.asarray(acceptance, dtype=float)
    n = len(acceptance)
    return StepInfo(
        accepted=acceptance > 0.5,
        acceptance=acceptance,
        path_acceptance=acceptance,
        status=np.zeros(n, dtype=np.int64),
        divergent=np.zeros(n, dtype=bool),
        n_steps=np.ones(n, dtype=np.int64),
    )


@attrs.frozen
class Free(Sampler):
    """A sampler of which nothing matters but what it leaves free."""

    tunes: frozenset = ALL
    target_acceptance: float = 0.8
    needs: frozenset = frozenset()


STEP = frozenset({"step_size"})


def begun(n_iterations, tunes=ALL, target=0.8, chains=4, dim=2, **start):
    sampler = Free(tunes=tunes, target_acceptance=target)
    return Tuner.start(sampler, n_iterations, chains, dim, **start)


def driven(tuner, acceptance_at, positions):
    """Run a tuner against a known acceptance curve; return it before and after each iteration."""
    tuners = [tuner]
    for position in positions:
        acceptance = acceptance_at(tuners[-1].tuning.step_size) * np.ones(len(position))
        tuners.append(tuners[-1].update(position, info(acceptance)))
    return tuners


def test_of_what_had_nothing_to_decide_the_step_size_learns_nothing():
    """Chains 1 and 2 stay, without a path of their own: neither 1 nor 0 is what they accepted."""
    position = np.zeros((4, 2))
    two, four = begun(100, chains=2), begun(100)
    for acceptance in (0.9, 0.3, 0.6, 0.7, 0.2):
        two = two.update(position[:2], info([acceptance] * 2))
        four = four.update(position, info([acceptance, np.nan, np.nan, acceptance]))
    assert four.log_step == two.log_step
    nothing = four.update(position, info([np.nan] * 4))
    assert nothing.log_step == four.log_step
    assert np.isfinite(nothing.recent).all()


def gaussian_acceptance(step):
    """Return a curve that falls from 1 to 0, through 0.8 at 0.3."""
    return 1.0 / (1.0 + 0.25 * (step / 0.3) ** 2)


def still(n, chains=4, dim=2):
    return [np.zeros((chains, dim))] * n


# --- windows ---


@pytest.mark.parametrize("n", [40, 50, 99, 149, 150, 151, 300, 499, 500, 1000, 5000])
def test_windows_follow_each_other_inside_the_warm_up(n):
    first, ends = windows(n)
    assert 0 <= first < ends[0]
    assert list(ends) == sorted(set(ends))
    assert ends[-1] < n


@pytest.mark.parametrize(
    ("n", "expected"),
    [
        *((n, (0, ())) for n in (0, 1, 39)),
        (100, (15, (75,))),
        (1000, (75, (100, 150, 250, 450, 950))),
    ],
)
def test_lengths_are_those_of_stan(n, expected):
    assert windows(n) == expected


# --- step size ---


@pytest.mark.parametrize("start", [1e-4, 0.01, 0.3, 5.0, 1e3])
def test_the_search_crosses_the_wanted_acceptance(start):
    tuner = begun(19, STEP, step_size=start)
    states = driven(tuner, gaussian_acceptance, still(19))
    first_after = next(state for state in states if state.searching < 0)
    found = np.exp(first_after.log_step)
    assert 0.3 / 2 <= found <= 0.3 * 2


def test_a_search_that_never_crosses_ends():
    tuner = begun(60, STEP)
    states = driven(tuner, lambda step: 0.0, still(60))
    assert states[40].searching == -1
    assert np.isfinite(states[-1].log_step)


@pytest.mark.parametrize("start", [0.01, 0.3, 5.0])
def test_a_warm_up_that_ends_early_keeps_a_step_size_that_was_accepted(start):
    """Neither one that a search has not tried yet, nor the first leap of dual averaging."""
    tuner = begun(1000, STEP, step_size=start)
    states = driven(tuner, gaussian_acceptance, still(60))
    steps = [state.end_tuning().tuning.step_size for state in states]
    found = next(i for i, step in enumerate(steps) if 0.15 <= step <= 0.6)
    assert found < 10
    assert all(step <= 0.6 for step in steps[found:])
    assert all(state.end_tuning().searching == -1 for state in states)
    assert max(state.tuning.step_size for state in states[found:]) > 1.0


def test_a_warm_up_that_has_averaged_keeps_the_average():
    tuner = begun(1000, STEP)
    state = driven(tuner, gaussian_acceptance, still(200))[-1]
    converged = state.end_tuning().tuning.step_size
    assert converged == pytest.approx(np.exp(state.averaged_log_step))
    over = attrs.evolve(state, iteration=1000)
    assert over.end_tuning() is over


@pytest.mark.parametrize("target", [0.6, 0.8, 0.9])
def test_dual_averaging_reaches_the_target_acceptance(target):
    tuner = begun(600, STEP, target=target)
    states = driven(tuner, gaussian_acceptance, still(600))
    final = states[-1].tuning.step_size
    assert abs(gaussian_acceptance(final) - target) < 0.03


def test_the_average_is_used_after_the_warm_up_and_the_latest_before():
    tuner = begun(100, STEP)
    states = driven(tuner, gaussian_acceptance, still(100))
    last, before = states[-1], states[-2]
    assert before.tuning.step_size == pytest.approx(np.exp(before.log_step))
    assert last.tuning.step_size == pytest.approx(np.exp(last.averaged_log_step))
    assert last.log_step != last.averaged_log_step


def test_paths_are_short_while_a_step_is_searched_and_until_the_scales_are_known():
    assert begun(50).tuning.n_steps == 1
    tuner = begun(50, frozenset({"n_steps"}))
    assert tuner.tuning.n_steps == STEPS_BEFORE_COVARIANCE
    assert attrs.evolve(tuner, covariance=np.eye(2)).tuning.n_steps is None


def test_a_stuck_chain_does_not_spoil_the_step_size():
    def states(stuck):
        state = begun(600, STEP)
        for _ in range(600):
            step = state.tuning.step_size
            acceptance = np.full(4, gaussian_acceptance(step))
            acceptance[0] *= not stuck
            state = state.update(np.zeros((4, 2)), info(acceptance))
        return state.tuning.step_size

    assert states(stuck=True) == pytest.approx(states(stuck=False), rel=0.1)


# --- covariance ---


def drawn(rng, n, covariance, offsets):
    factor = np.linalg.cholesky(covariance)
    return [offsets + rng.standard_normal((len(offsets), 2)) @ factor.T for _ in range(n)]


COVARIANCE = np.array([[4.0, 1.2], [1.2, 0.5]])


@pytest.mark.parametrize("share", [0.3, 0.7])
def test_paths_across_a_bound_do_not_shorten_steps_that_conserve_energy(share):
    """No step size avoids them; of the others it is the target acceptance that decides."""
    rng, tuner = np.random.default_rng(1), begun(400, tunes=STEP)
    for _ in range(400):
        acceptance = np.full(4, np.exp(-0.25 * tuner.tuning.step_size))
        lost = rng.random(4) < share
        status = np.where(lost, Status.NO_DENSITY, Status.OK)
        found = attrs.evolve(info(np.where(lost, 0.0, acceptance)), status=status)
        tuner = tuner.update(np.zeros((4, 2)), found)
    assert np.exp(-0.25 * tuner.tuning.step_size) == pytest.approx(0.8, abs=0.01)


@pytest.mark.long
def test_a_bound_that_nobody_declared_costs_few_gradients():
    """An exponential distribution; a quarter of all paths ends where it has no density."""
    target = sk.potential(
        lambda q: np.inf if q[0] <= 0.0 else q[0] + 0.5 * q[1] ** 2,
        lambda q: np.array([1.0 if q[0] > 0.0 else np.nan, q[1]]),
        dim=2,
    )
    with pytest.warns(sk.errors.SamplingWarning, match="declare bounds"):
        run = sk.sample(target, sampler="hmc", warmup=200, draws=200, seed=1, progress=False)
    assert run.calls["gradient"] < 20 * 4 * 400
    assert abs(run.draws.mean(axis=(0, 1))[0] - 1.0) < 0.35


def test_the_covariance_is_pooled_within_chains(rng):
    """Chains far from each other do not make it wider."""
    offsets = 100.0 * np.arange(8.0).reshape(4, 2)
    tuner = begun(1000)
    states = driven(tuner, gaussian_acceptance, drawn(rng, 1000, COVARIANCE, offsets))
    assert_allclose(states[-1].covariance, COVARIANCE, rtol=0.15)


def test_the_start_of_the_warm_up_is_forgotten(rng):
    """A long way in from the tails does not make it wider."""
    way_in = [np.full((4, 2), 1e3 / (i + 1)) for i in range(75)]
    tuner = begun(500)
    positions = way_in + drawn(rng, 425, COVARIANCE, np.zeros((4, 2)))
    states = driven(tuner, gaussian_acceptance, positions)
    assert_allclose(states[-1].covariance, COVARIANCE, rtol=0.2)


@pytest.mark.parametrize("seed", range(12))
def test_no_covariance_is_singular(seed):
    """Rounding makes that of chains singular which run off in some directions alone."""
    rng = np.random.default_rng(seed)
    axes, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    known = (axes * [1e10, 1e10, 1e-5]) @ axes.T
    rows = (rng.normal(size=(200, 3)) * [1e5, 1e5, 1e-9]) @ axes.T
    positions = [np.stack([row] * 4) for row in rows]
    covariance = pool(np.array(positions), known=known)
    if covariance is not None:
        np.linalg.cholesky(covariance)  # raises unless it is positive definite


def test_a_stuck_chain_does_not_spoil_the_covariance(rng):
    state = begun(300)
    for position in drawn(rng, 300, COVARIANCE, np.zeros((4, 2))):
        position[0] = 7.0
        state = state.update(position, info([0.0, 0.8, 0.8, 0.8]))
    assert_allclose(state.covariance, COVARIANCE, rtol=0.3)


@pytest.mark.parametrize(
    "position", [np.zeros((4, 2)), np.full((4, 2), np.nan)], ids=["flat", "nan"]
)
def test_no_covariance_is_made_up(position):
    tuner = begun(50)
    with np.errstate(invalid="ignore"):
        states = driven(tuner, gaussian_acceptance, [position] * 50)
    assert states[-1].covariance is None


def test_a_known_covariance_is_kept_until_there_is_a_better_one(rng):
    tuner = begun(300, covariance=9.0 * np.eye(2))
    positions = drawn(rng, 300, COVARIANCE, np.zeros((4, 2)))
    known = tuner.covariance
    states = driven(tuner, gaussian_acceptance, positions)
    _, ends = windows(300)
    assert states[ends[0] - 1].covariance is known
    assert states[-1].covariance is not known


def test_few_draws_do_not_spoil_what_is_known_of_narrow_directions(rng):
    """Shrinking goes by the coordinates of what is known, not by the target's own."""
    dim = 30
    narrow = np.full((dim, dim), 1.0) + 1e-6 * np.eye(dim)  # nearly collinear
    factor = np.linalg.cholesky(narrow)

    def spread(known):
        """How much longer than the narrowest direction the widest is in the metric found."""
        state = begun(60, dim=dim, covariance=known)
        for _ in range(60):
            position = rng.standard_normal((4, dim)) @ factor.T
            state = state.update(position, info(np.full(4, 0.8)))
        assert state.covariance is not known
        inverse = np.linalg.inv(factor)
        found = np.linalg.eigvalsh(inverse @ state.covariance @ inverse.T)
        return found[-1] / found[0]

    assert spread(known=4.0 * narrow) < 50.0
    assert spread(known=None) > 1e4
    assert spread(known=np.ones((dim, dim))) > 1e4  # singular, and no help


# --- what is known already, and what is large enough ---

FOUND = Tuning(step_size=0.2, covariance=COVARIANCE, n_steps=7, length=16)


def test_what_was_found_elsewhere_is_not_searched(rng):
    tuner = begun(300, ALL | {"length"}, tuning=FOUND)
    positions = drawn(rng, 300, 9.0 * COVARIANCE, np.zeros((4, 2)))
    states = driven(tuner, gaussian_acceptance, positions)
    for state in states:
        tuning = state.tuning
        assert tuning.covariance is COVARIANCE
        assert (tuning.n_steps, tuning.length) == (7, 16)
        assert state.searching == -1


def test_a_step_size_found_elsewhere_goes_on_adapting_from_there():
    tuner = begun(50, tuning=FOUND)
    states = driven(tuner, gaussian_acceptance, still(50))
    steps = [state.tuning.step_size for state in states]
    assert steps[0] == pytest.approx(0.2)
    assert max(steps) < 1.0  # no leap to ten times as much, as after a search
    assert steps[-1] == pytest.approx(0.3, rel=0.15)


def test_on_another_potential_a_step_size_found_elsewhere_is_searched():
    state = begun(50, tuning=FOUND).restart()
    assert state.tuning.n_steps == 1
    assert state.tuning.covariance is COVARIANCE


@attrs.frozen
class UpToOne(Free):
    """A sampler for which steps beyond 1 make no difference."""

    largest_step: float = 1.0


def acceptance_of_moves(step, floor):
    """Return a curve that falls from 1 at 0 to a floor at 1 and beyond."""
    return 1.0 - (1.0 - floor) * min(step, 1.0) ** 2


@pytest.mark.parametrize("floor", [0.45, 0.7, 0.95, 1.0])
def test_a_largest_step_is_reached_exactly_where_acceptance_allows_it(floor):
    sampler = UpToOne(tunes=frozenset({"step_size"}), target_acceptance=0.35)
    tuner = Tuner.start(sampler, 300, 4, 2)
    states = driven(tuner, lambda step: acceptance_of_moves(step, floor), still(300))
    assert max(state.log_step for state in states) <= 0.0
    assert states[-1].tuning.step_size == pytest.approx(1.0, abs=1e-9)


def test_below_the_largest_step_acceptance_is_reached():
    sampler = UpToOne(tunes=frozenset({"step_size"}), target_acceptance=0.35)
    tuner = Tuner.start(sampler, 600, 4, 2)
    states = driven(tuner, lambda step: acceptance_of_moves(step, 0.1), still(600))
    final = states[-1].tuning.step_size
    assert acceptance_of_moves(final, 0.1) == pytest.approx(0.35, abs=0.03)


# --- all in all ---


def test_an_iteration_of_another_kernel_counts_towards_the_covariance_alone(rng):
    tuner = begun(100)
    state = driven(tuner, gaussian_acceptance, still(10))[-1]
    passed = state
    for position in drawn(rng, 60, COVARIANCE, np.zeros((4, 2))):
        passed = passed.skip(position)
    assert passed.iteration == 70
    assert len(passed.kept) == 70 - 15  # the window begins after the fifteenth
    assert passed.log_step == state.log_step
    assert passed.averaged == state.averaged


def test_tuning_starts_again_on_another_potential(rng):
    tuner = begun(1000)
    positions = drawn(rng, 500, COVARIANCE, np.zeros((4, 2)))
    state = driven(tuner, gaussian_acceptance, positions)[-1]
    again = state.restart()
    assert again.searching == 0
    assert not again.kept
    assert again.log_step == state.log_step
    assert again.covariance is state.covariance
    narrower = driven(again, lambda step: gaussian_acceptance(10 * step), positions)
    assert_allclose(np.exp(narrower[-1].averaged_log_step), 0.03, rtol=0.2)


def target(scale=1.0, dim=3):
    return sk.potential(lambda q: 0.5 * scale * q @ q, lambda q: scale * q, dim=dim)


@pytest.mark.filterwarnings("ignore:nearly all proposals were rejected")  # after 1 and 3 iterations
@pytest.mark.parametrize("warmup", [1, 3, 5, 20, 25, 30, 45])
def test_kept_paths_are_longer_than_one_step_after_a_short_warm_up(warmup):
    run = sk.sample(target(1e4), warmup=warmup, draws=40, seed=1, progress=False)
    assert run.kept.n_steps.max() > 1


@pytest.mark.parametrize(("needs", "longest"), [({"gradient"}, 1.25), ((), np.inf)])
def test_steps_along_gradients_stay_near_the_scale_of_a_known_metric(needs, longest):
    """Where paths are shorter than a step any step is accepted, and it would grow for ever."""
    sampler = Free(needs=frozenset(needs))
    tuner = Tuner.start(sampler, 200, 4, 2, covariance=np.eye(2))
    steps = [each.tuning.step_size for each in driven(tuner, lambda _: 1.0, np.zeros((80, 4, 2)))]
    assert min(max(steps), 100.0) == pytest.approx(min(longest, 100.0))


def test_paths_are_told_until_when_windows_learn(rng):
    tuner, normal = begun(300, arrived=True), lambda step: np.exp(-step)
    tuners = driven(tuner, normal, rng.standard_normal((300, 4, 2)))
    last = windows(300, arrived=True)[1][-1]
    learns = [each.tuning.learns for each in tuners]
    assert learns[0]
    assert not any(learns[last:])
    converged = [each.converged for each in tuners].index(True)
    assert not learns[converged]
    assert all(learns[:converged])
