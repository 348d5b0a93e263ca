"""How long sub-chains are made."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose

from surrokit.interfaces import Excursion, Sampler, StepInfo
from surrokit.kernel.tuning import FIRST_LENGTH, MAX_LENGTH, LengthSearch, Tuner, windows

DIM = 10
CHAINS = 4
MOVING = np.ones(CHAINS, dtype=bool)


def info(acceptance=1.0, excursion=None):
    return StepInfo(
        accepted=MOVING,
        acceptance=np.broadcast_to(np.asarray(acceptance, dtype=float), CHAINS).copy(),
        path_acceptance=np.full(CHAINS, 0.8),
        status=np.zeros(CHAINS, dtype=np.int64),
        divergent=~MOVING,
        n_steps=np.ones(CHAINS, dtype=np.int64),
        excursion=excursion,
    )


def excursion(rng, length, correlation):
    """A stationary normal process whose transitions have a correlation, seen as sub-chains are."""
    q = start = rng.standard_normal((CHAINS, DIM))
    jumps, values = [], [0.5 * np.square(q).sum(axis=1)]
    for i in range(1, length + 1):
        fresh = rng.standard_normal(q.shape)
        q = correlation * q + np.sqrt(1 - correlation**2) * fresh
        if i & (i - 1) == 0:
            jumps.append(np.square(q - start).sum(axis=1) / (2 * DIM))
            values.append(0.5 * np.square(q).sum(axis=1))
    return Excursion(jumps=np.stack(jumps, axis=1), values=np.stack(values, axis=1))


def searched(correlation, n=200, acceptance=lambda length: 1.0, seed=0):
    rng = np.random.default_rng(seed)
    search, lengths = LengthSearch(normal_variance=DIM / 2), []
    for _ in range(n):
        lengths.append(search.upcoming())
        seen = excursion(rng, lengths[-1], correlation)
        search = search.update(info(acceptance(lengths[-1]), seen), MOVING)
    return search, lengths


@pytest.mark.parametrize(
    ("correlation", "least", "most"), [(0.0, 1, 2), (0.5, 4, 8), (0.9, 32, 64), (0.97, 64, 256)]
)
@pytest.mark.parametrize("seed", range(3))
def test_the_length_is_that_at_which_the_start_is_forgotten(correlation, least, most, seed):
    search, _ = searched(correlation, seed=seed)
    assert least <= search.best() <= most


def test_turning_round_is_not_forgetting():
    """Every transition takes q to nearly -q: far away, but with the same V."""
    search, _ = searched(-0.9)
    assert search.best() >= 16


def test_where_long_sub_chains_are_rejected_shorter_ones_are_taken():
    def acceptance(length):
        return 0.9 if length <= 4 else 0.01

    search, _ = searched(0.9, acceptance=acceptance)
    assert search.best() == 4


def test_a_little_less_acceptance_is_worth_a_long_way():
    search, _ = searched(0.9, acceptance=lambda length: 0.9 - 0.05 * np.log2(length))
    assert search.best() >= 16


def test_lengths_grow_while_they_are_clearly_too_short():
    _, lengths = searched(0.97)
    assert lengths[:2] == [2, 1]
    assert all(b <= 2 * max(lengths[: i + 1]) for i, b in enumerate(lengths[1:]))
    assert max(lengths) <= 256


def test_lengths_end():
    search, lengths = searched(1.0, n=150)
    assert max(lengths) == MAX_LENGTH
    assert search.best() <= MAX_LENGTH


def test_chance_does_not_make_them_grow():
    tops = [searched(0.0, n=150, seed=seed)[0].top for seed in range(10)]
    assert max(tops) <= 2


def test_nothing_is_learnt_without_an_excursion_or_without_numbers(rng):
    search = LengthSearch(normal_variance=DIM / 2)
    assert search.update(info(), MOVING) is search
    seen = excursion(rng, 2, 0.5)
    failed = attrs.evolve(seen, values=np.full_like(seen.values, np.inf))
    assert search.update(info(excursion=failed), MOVING) is search
    assert search.best() == FIRST_LENGTH


def test_a_stuck_chain_is_left_out(rng):
    seen = excursion(rng, 2, 0.0)
    seen.jumps[0], seen.values[0] = 0.0, 1e6
    moving = np.array([False, True, True, True])
    search = LengthSearch(normal_variance=DIM / 2).update(info(excursion=seen), moving)
    assert search.seen[0] == 3
    assert_allclose(search.jumps[:2], seen.jumps[1:].sum(axis=0))
    assert search.squares < 1e4


def test_staying_is_not_accepted_twice(rng):
    """Half of the chains stay: the jumps have it, and of those that moved all are accepted."""
    seen = excursion(rng, 2, 0.0)
    half = np.array([1.0, np.nan, 1.0, np.nan])
    search = LengthSearch(normal_variance=DIM / 2)
    for _ in range(20):
        search = search.update(info(half, seen), MOVING)
    assert_allclose(search.acceptances[:2], search.decisions[:2])
    assert_allclose(search.decisions[:2], search.tries[:2] / 2)


def test_where_no_chain_ever_moves_nothing_is_gained(rng):
    search = LengthSearch(normal_variance=DIM / 2)
    for _ in range(20):
        seen = excursion(rng, search.upcoming(), 0.0)
        still = Excursion(jumps=np.zeros_like(seen.jumps), values=np.ones_like(seen.values))
        search = search.update(info(np.full(CHAINS, np.nan), still), MOVING)
    assert_allclose(search.acceptances, 0.0)
    assert 1 <= search.best() <= 2**search.top


def test_what_is_old_counts_less():
    search, _ = searched(0.5)
    aged = search.age()
    assert aged.best() == search.best()
    assert aged.seen[0] == search.seen[0] / 4
    assert_allclose(aged.forgotten()[:3], search.forgotten()[:3])


# --- inside the tuner ---


@attrs.frozen
class Free(Sampler):
    """A sampler of which nothing matters but what it leaves free."""

    tunes: frozenset = frozenset({"step_size", "length"})
    target_acceptance: float = 0.8


def told(rng, n_iterations=400, correlation=0.5):
    """Return the lengths of a warm-up, and the tuner after it."""
    tuner, lengths = Tuner.start(Free(), n_iterations, CHAINS, DIM), []
    for _ in range(n_iterations):
        tuning = tuner.tuning
        lengths.append(tuning.length)
        known = tuning.covariance is not None
        seen = excursion(rng, tuning.length, correlation) if known else None
        tuner = tuner.update(rng.standard_normal((CHAINS, DIM)), info(excursion=seen))
    return lengths, tuner


def test_without_a_covariance_the_first_guess_is_taken(rng):
    lengths, _ = told(rng)
    _, ends = windows(400)
    assert set(lengths[: ends[0]]) == {FIRST_LENGTH}
    assert len(set(lengths[ends[0] :])) > 2


def test_after_the_warm_up_the_length_stays(rng):
    _, tuner = told(rng)
    assert tuner.tuning.length == tuner.lengths.best() in (4, 8)


def test_on_another_potential_lengths_are_searched_anew(rng):
    _, tuner = told(rng)
    again = tuner.restart()
    assert not again.lengths.seen.any()
    assert again.lengths.normal_variance == DIM / 2
