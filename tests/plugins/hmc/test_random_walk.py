"""Random-walk Metropolis."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from surrokit.errors import ConfigurationError
from surrokit.interfaces import ChainState, Status, Tuning
from surrokit_hmc.independent import RandomWalk

COVARIANCE = np.array([[4.0, 1.0], [1.0, 0.5]])
TUNING = Tuning(step_size=9.0)


def walk(tuning=TUNING, **settings):
    return RandomWalk(**settings).bind(object(), tuning)


def state(n=3):
    return ChainState(positions=np.arange(2.0 * n).reshape(n, 2), values=np.zeros(n), cache={})


def test_moves_are_normal_around_the_position():
    now = state()
    proposal = walk(step_size=0.5).propose(now, np.random.default_rng(1))
    move = 0.5 * np.random.default_rng(1).standard_normal((3, 2))
    assert_allclose(proposal.positions, now.positions + move)


@pytest.mark.statistical
def test_tuned_moves_have_the_shape_of_the_target(rng):
    sampler = walk(Tuning(step_size=0.5, covariance=COVARIANCE))
    now = state(20_000)
    moves = sampler.propose(now, rng).positions - now.positions
    assert_allclose(np.cov(moves.T) / 0.25, COVARIANCE, rtol=0.06)


def test_moves_are_symmetric_and_need_nothing():
    proposal = walk(step_size=0.5).propose(state(), np.random.default_rng(1))
    assert_array_equal(proposal.log_correction, 0.0)
    assert proposal.log_path_ratio is None
    assert proposal.source is None
    assert proposal.cache == {}
    assert proposal.moved.all()
    assert_array_equal(proposal.status, Status.OK)
    assert_array_equal(proposal.n_steps, 1)


def test_it_uses_no_potential():
    assert not RandomWalk().uses_potential
    assert RandomWalk().needs == frozenset()
    assert walk().potential is None
    assert walk().cache(np.zeros((2, 2))) == {}


def test_everything_is_tuned_or_nothing():
    assert RandomWalk().tunes == {"step_size", "metric"}
    assert RandomWalk(step_size=0.5).tunes == frozenset()


def test_a_step_size_given_is_kept_with_its_shape(rng):
    tuned = walk(Tuning(step_size=9.0, covariance=COVARIANCE), step_size=0.5)
    assert tuned.step == 0.5
    proposal = tuned.propose(state(), np.random.default_rng(1))
    plain = walk(step_size=0.5).propose(state(), np.random.default_rng(1))
    assert_array_equal(proposal.positions, plain.positions)


@pytest.mark.parametrize(
    ("name", "value"),
    [("step_size", 0.0), ("step_size", -1.0), ("step_size", np.inf), ("target_acceptance", 1.0)],
)
def test_settings_out_of_range_are_refused(name, value):
    with pytest.raises(ConfigurationError, match=f"{name} must be a"):
        RandomWalk(**{name: value})
