"""The Metropolis-Hastings correction; what all corrections must do is in the conformance suite."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from surrokit.interfaces import ChainState, Proposal, Status
from surrokit.kernel.hamiltonian import DIVERGENCE
from surrokit_corrections.metropolis import Metropolis


class Normal:
    dim = 1
    capabilities = frozenset()

    def value(self, q):
        return 0.5 * np.square(q[:, 0])


N, SURROGATE = 4, Normal()


@pytest.fixture
def correction():
    return Metropolis().bind(Normal())


def state(positions=(0.5, 1.0, -1.0, 2.0)):
    q = np.array(positions, dtype=float)[:, None]
    return ChainState(positions=q, values=Normal().value(q), cache={"value": 10 + q[:, 0]})


def proposal(positions=(0.0, 0.0, 0.0, 0.0), **changed):
    q = np.array(positions, dtype=float)[:, None]
    n = len(q)
    made = Proposal(
        positions=q,
        log_correction=np.zeros(n),
        moved=np.ones(n, dtype=bool),
        status=np.full(n, Status.OK, dtype=np.int64),
        cache={"value": 100 + q[:, 0]},
        source=SURROGATE,
        log_path_ratio=np.zeros(n),
        n_steps=np.full(n, 3),
    )
    return attrs.evolve(made, **changed)


def told(correction, before, proposed, seed=0):
    return correction.decide(before, proposed, np.random.default_rng(seed))[1]


def test_the_probability_is_by_exact_values_and_the_correction(correction):
    before = state()
    proposed = proposal((1.0, 2.0, 0.0, 3.0), log_correction=np.array([0.2, 0.0, 0.0, 9.0]))
    log_ratio = before.values - Normal().value(proposed.positions) + proposed.log_correction
    expected = np.minimum(1.0, np.exp(log_ratio))
    assert_allclose(told(correction, before, proposed).acceptance, expected)


@pytest.mark.parametrize("stays", ["moved", "equal"])
def test_staying_is_no_move_and_has_no_probability(correction, stays):
    """Nor is a step too small to change a number."""
    before, moved = state(), np.array([True, False, True, False])
    positions = np.where(moved, 0.9, 1.0) * before.positions[:, 0]
    flags = {"moved": moved} if stays == "moved" else {}
    info = told(correction, before, proposal(positions, **flags))
    assert not info.accepted[~moved].any()
    assert_array_equal(np.isnan(info.acceptance), ~moved)
    assert_array_equal(info.move_probability, np.where(moved, info.acceptance, 0.0))


# --- the account ---


def test_the_paths_own_acceptance_is_told(correction):
    ratios = np.array([0.0, -1.0, 3.0, np.nan])
    info = told(correction, state(), proposal(log_path_ratio=ratios))
    assert_allclose(info.path_acceptance, [1.0, np.exp(-1.0), 1.0, 0.0])


def test_without_a_path_it_is_the_exact_one(correction):
    info = told(correction, state(), proposal((3.0, 0.0, 0.0, 0.0), log_path_ratio=None))
    assert_array_equal(info.path_acceptance, info.acceptance)
    assert not info.divergent.any()


def test_divergent_are_paths_that_failed_or_lost_too_much_energy(correction):
    ratios = np.array([0.0, -DIVERGENCE - 1.0, -DIVERGENCE + 1.0, 0.0])
    status = np.array([0, 0, 0, Status.NOT_FINITE])
    info = told(correction, state(), proposal(log_path_ratio=ratios, status=status))
    assert_array_equal(info.divergent, [False, True, False, True])
    assert info.acceptance[3] == 0.0
    # a bad surrogate is no divergence
    info = told(correction, state(), proposal((100.0,) * N))
    assert_array_equal(info.acceptance, 0.0)
    assert not info.divergent.any()
