"""Random-walk Metropolis."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from surrokit.errors import ConfigurationError
from surrokit.interfaces import ChainState, Proposal, Status, Tuning
from surrokit.kernel.hamiltonian import carry_out
from surrokit_hmc.independent import RandomWalk

COVARIANCE = np.array([[4.0, 1.0], [1.0, 0.5]])
TUNING = Tuning(step_size=9.0)


def walk(tuning=TUNING, **settings):
    return RandomWalk(**settings).bind(object(), tuning)


def state(n=3):
    return ChainState(positions=np.arange(2.0 * n).reshape(n, 2), values=np.zeros(n), cache={})


def test_moves_are_normal_around_the_position():
    now = state()
    known = Tuning(step_size=0.5, covariance=COVARIANCE)
    z = np.random.default_rng(1).standard_normal((3, 2))
    moves = {"given": z, "tuned": z @ np.linalg.cholesky(COVARIANCE).T}
    kernels = {"given": walk(known, step_size=0.5), "tuned": walk(known)}
    for name, kernel in kernels.items():
        proposal = kernel.propose(now, np.random.default_rng(1))
        assert_allclose(proposal.positions, now.positions + 0.5 * moves[name])


def test_moves_are_symmetric_and_need_nothing():
    proposal = walk(step_size=0.5).propose(state(), np.random.default_rng(1))
    assert_array_equal(proposal.log_correction, 0.0)
    assert proposal.log_path_ratio is None
    assert proposal.source is None
    assert proposal.cache == {}
    assert proposal.moved.all()
    assert_array_equal(proposal.status, Status.OK)
    assert_array_equal(proposal.n_steps, 1)


@pytest.mark.parametrize("moved", [True, False])
def test_a_proposal_to_stay_is_neither_accepted_nor_rejected(moved):
    """Nor is a step too small to change a position in double precision."""
    now, there = state(), np.array([moved, moved, True])
    positions = now.positions + np.array([[0.0], [0.0 if moved else 1.0], [1.0]])
    proposal = Proposal(positions=positions, moved=there)
    accepted, acceptance = np.ones(3, dtype=bool), np.full(3, 0.9)
    _, info = carry_out(now, proposal, now.values, accepted, acceptance)
    assert_array_equal(info.accepted, [False, False, True])
    assert_array_equal(info.acceptance, [np.nan, np.nan, 0.9])


def test_everything_is_tuned_or_nothing():
    assert RandomWalk().tunes == {"step_size", "metric"}
    assert RandomWalk(step_size=0.5).tunes == frozenset()


@pytest.mark.parametrize(
    ("name", "value"),
    [("step_size", 0.0), ("step_size", -1.0), ("step_size", np.inf), ("target_acceptance", 1.0)],
)
def test_settings_out_of_range_are_refused(name, value):
    with pytest.raises(ConfigurationError, match=f"{name} must be a"):
        RandomWalk(**{name: value})
