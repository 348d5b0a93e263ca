"""The Metropolis-Hastings correction with the full exact potential."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from surrokit.interfaces import ChainState, Proposal, Status
from surrokit.kernel.hamiltonian import DIVERGENCE
from surrokit.testing.wrappers import CountingPotential
from surrokit_corrections.metropolis import Metropolis


class Normal:
    dim = 1
    capabilities = frozenset()

    def value(self, q):
        return 0.5 * np.square(q[:, 0])


class Elsewhere(Normal):
    """What a sampler moved on instead."""


SURROGATE = Elsewhere()
N = 4


@pytest.fixture
def exact():
    return CountingPotential(Normal())


@pytest.fixture
def correction(exact):
    return Metropolis().bind(exact)


def state(positions=(0.5, 1.0, -1.0, 2.0)):
    q = np.array(positions, dtype=float)[:, None]
    return ChainState(
        positions=q, values=Normal().value(q), cache={"value": 10 + q[:, 0], "gradient": q.copy()}
    )


def proposal(positions=(0.0, 0.0, 0.0, 0.0), **changed):
    q = np.array(positions, dtype=float)[:, None]
    n = len(q)
    made = Proposal(
        positions=q,
        log_correction=np.zeros(n),
        moved=np.ones(n, dtype=bool),
        status=np.full(n, Status.OK, dtype=np.int64),
        cache={"value": 100 + q[:, 0], "gradient": 7 * np.ones((n, 1))},
        source=SURROGATE,
        log_path_ratio=np.zeros(n),
        n_steps=np.full(n, 3),
    )
    return attrs.evolve(made, **changed)


def decided(correction, before, proposed, seed=0):
    return correction.decide(before, proposed, np.random.default_rng(seed))


# --- the start ---


def test_a_start_on_the_exact_potential_reuses_its_values(correction, exact):
    q = np.array([[3.0]])
    started = correction.start(q, {"value": np.array([4.5])}, exact)
    assert_array_equal(started.values, [4.5])
    assert exact.positions["value"] == 0


def test_a_start_on_another_potential_pays_for_exact_values(correction, exact):
    q = np.array([[3.0], [1.0]])
    started = correction.start(q, {"value": np.zeros(2)}, SURROGATE)
    assert_allclose(started.values, [4.5, 0.5])
    assert exact.positions["value"] == 2


# --- the decision ---


def test_the_probability_is_by_exact_values_and_the_correction(correction):
    before = state()
    proposed = proposal(
        positions=(1.0, 2.0, 0.0, 3.0), log_correction=np.array([0.2, 0.0, 0.0, 9.0])
    )
    _, info = decided(correction, before, proposed)
    log_ratio = before.values - Normal().value(proposed.positions) + proposed.log_correction
    assert_allclose(info.acceptance, np.minimum(1.0, np.exp(log_ratio)))


def test_all_that_moved_are_evaluated_in_one_batch(correction, exact):
    decided(correction, state(), proposal())
    assert exact.positions["value"] == N
    assert exact.batches["value"] == 1


def test_only_rows_that_moved_are_evaluated(correction, exact):
    moved = np.array([True, False, True, False])
    decided(correction, state(), proposal(moved=moved))
    assert exact.positions["value"] == 2


def test_failed_paths_are_not_evaluated(correction, exact):
    status = np.array([Status.OK, Status.NOT_FINITE, Status.NOT_CONVERGED, Status.NOT_REVERSIBLE])
    _, info = decided(correction, state(), proposal(status=status.astype(np.int64)))
    assert exact.positions["value"] == 1
    assert_array_equal(info.acceptance[1:], 0.0)
    assert not info.accepted[1:].any()


def test_nothing_moved_costs_nothing(correction, exact):
    decided(correction, state(), proposal(moved=np.zeros(N, dtype=bool)))
    assert exact.positions["value"] == 0


def test_staying_is_no_move_and_no_decision(correction):
    moved = np.array([True, False, True, False])
    before = state()
    positions = np.where(moved[:, None], 0.9 * before.positions, before.positions)
    after, info = decided(
        correction, before, proposal(positions=tuple(positions[:, 0]), moved=moved)
    )
    assert_array_equal(after.positions[~moved], before.positions[~moved])
    assert not info.accepted[~moved].any()
    assert_array_equal(np.isnan(info.acceptance), ~moved)
    assert_array_equal(info.move_probability[~moved], 0.0)
    assert_array_equal(info.move_probability[moved], info.acceptance[moved])


def test_a_step_too_small_to_change_a_number_is_no_move(correction):
    before = state()
    there = np.array([True, False, False, True])
    positions = np.where(there[:, None], before.positions, 0.9 * before.positions)
    _, info = decided(correction, before, proposal(positions=tuple(positions[:, 0])))
    assert not info.accepted[there].any()
    assert_array_equal(np.isnan(info.acceptance), there)


def test_a_proposal_on_the_exact_potential_brings_its_values(correction, exact):
    values = np.array([0.0, 0.0, 0.0, 0.0])
    proposed = proposal(source=exact, cache={"value": values, "gradient": np.ones((N, 1))})
    after, info = decided(correction, state(), proposed)
    assert exact.positions["value"] == 0
    assert_array_equal(info.acceptance, 1.0)
    assert_array_equal(after.values, values)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_rejected(value):
    class Broken(Normal):
        def value(self, q):
            return np.full(len(q), value)

    after, info = decided(Metropolis().bind(Broken()), state(), proposal())
    assert_array_equal(info.acceptance, 0.0)
    assert_array_equal(after.positions, state().positions)
    assert_array_equal(after.values, state().values)


def test_a_correction_that_is_not_a_number_is_rejected(correction):
    _, info = decided(correction, state(), proposal(log_correction=np.full(N, np.nan)))
    assert not info.accepted.any()


def test_each_chain_takes_all_of_its_proposal_or_nothing(correction):
    before = state(positions=(0.0, 3.0, 0.0, 3.0))
    proposed = proposal(positions=(60.0, 0.0, 60.0, 0.0))
    after, info = decided(correction, before, proposed)
    assert_array_equal(info.accepted, [False, True, False, True])
    assert_array_equal(after.positions[:, 0], [0, 0, 0, 0])
    assert_array_equal(after.values, [0, 0, 0, 0])
    assert_array_equal(after.cache["value"], [10, 100, 10, 100])
    assert_array_equal(after.cache["gradient"][:, 0], [0, 7, 0, 7])


def test_values_after_are_exact_values_of_positions_after(correction, rng):
    before = state()
    for _ in range(20):
        moved = before.positions + rng.standard_normal((N, 1))
        before, _ = correction.decide(before, proposal(moved[:, 0]), rng)
        assert_allclose(before.values, Normal().value(before.positions))


def test_the_state_before_is_left_as_it_was(correction):
    before = state()
    copies = before.positions.copy(), before.values.copy(), before.cache["gradient"].copy()
    decided(correction, before, proposal())
    assert_array_equal(before.positions, copies[0])
    assert_array_equal(before.values, copies[1])
    assert_array_equal(before.cache["gradient"], copies[2])


@pytest.mark.statistical
def test_the_frequency_is_the_probability(correction):
    n = 20_000
    before = state(positions=(0.0,) * n)
    _, info = decided(correction, before, proposal(positions=(1.0,) * n))
    p = np.exp(-0.5)
    assert abs(info.accepted.mean() - p) < 5 * np.sqrt(p * (1 - p) / n)


@pytest.mark.statistical
def test_a_random_walk_so_corrected_has_the_targets_moments():
    """2000 independent chains of 40 steps from exact starts: five standard errors."""
    rng = np.random.default_rng(6)
    correction, n = Metropolis().bind(Normal()), 2000
    now = state(positions=rng.standard_normal(n))
    now = attrs.evolve(now, cache={})
    for _ in range(40):
        moved = now.positions[:, 0] + 2 * rng.standard_normal(n)
        now, _ = correction.decide(now, proposal(moved, cache={}, source=None), rng)
    assert abs(now.positions.mean()) < 5 / np.sqrt(n)
    assert abs(np.square(now.positions).mean() - 1) < 5 * np.sqrt(2 / n)


# --- the account ---


def test_the_paths_own_acceptance_is_told(correction):
    ratios = np.array([0.0, -1.0, 3.0, np.nan])
    _, info = decided(correction, state(), proposal(log_path_ratio=ratios))
    assert_allclose(info.path_acceptance, [1.0, np.exp(-1.0), 1.0, 0.0])


def test_without_a_path_it_is_the_exact_one(correction):
    _, info = decided(correction, state(), proposal((3.0, 0.0, 0.0, 0.0), log_path_ratio=None))
    assert_array_equal(info.path_acceptance, info.acceptance)
    assert not info.divergent.any()


def test_divergent_are_paths_that_failed_or_lost_too_much_energy(correction):
    ratios = np.array([0.0, -DIVERGENCE - 1.0, -DIVERGENCE + 1.0, 0.0])
    status = np.array([0, 0, 0, Status.NOT_FINITE])
    _, info = decided(correction, state(), proposal(log_path_ratio=ratios, status=status))
    assert_array_equal(info.divergent, [False, True, False, True])
    assert_array_equal(info.status, status)
    assert_array_equal(info.n_steps, 3)


def test_a_bad_surrogate_is_no_divergence(correction):
    _, info = decided(correction, state(), proposal(positions=(100.0,) * N))
    assert_array_equal(info.acceptance, 0.0)
    assert not info.divergent.any()


# --- its potential ---


def test_it_needs_values_only():
    assert Metropolis().needs == frozenset()


def test_another_potential_makes_another_decider(exact):
    settings, other = Metropolis(), Normal()
    first, second = settings.bind(exact), settings.bind(other)
    assert first.potential is exact
    assert second.potential is other
