"""Chains that are far above the others in warm-up begin again, or stay in modes of their own."""

from __future__ import annotations

import numpy as np
import pytest

import surrokit as sk
from surrokit.errors import SamplingWarning
from surrokit.interfaces import ChainState
from surrokit.run.repairs import BLOCK, Strays
from surrokit.testing.targets import Gaussian

FAR = np.array([40.0, 40.0])


def two_wells(q):
    """Return U of a well at 0, and of one at (40, 40) whose bottom is 100 nats higher."""
    near, far = 0.5 * q @ q, 100.0 + 0.5 * (q - FAR) @ (q - FAR)
    return min(near, far)


def slope_of_wells(q):
    return q if 0.5 * q @ q < 100.0 + 0.5 * (q - FAR) @ (q - FAR) else q - FAR


def flat_tail(q):
    return 50.0 * np.log1p(q @ q / 50.0)


def slope_of_tail(q):
    return 2.0 * q / (1.0 + q @ q / 50.0)


def look(target, positions, room=BLOCK, state_of=None):
    """Return the watch and the chains after a block in which nothing moved."""
    strays = Strays(target)
    positions = np.asarray(positions, dtype=float)
    state = ChainState(positions=positions, values=target.value(positions), cache={})
    state = state if state_of is None else state_of(state)
    for i in range(BLOCK):
        state = strays.look_at(state, i + 1, room, np.random.default_rng(0))
    return strays, state


NEAR = [[0.1, 0.2], [-0.5, 0.3], [0.4, 0.9]]


@pytest.mark.parametrize("gradient", [None, slope_of_tail])
def test_a_chain_in_a_flat_tail_begins_again(gradient):
    target = sk.potential(flat_tail, gradient, dim=2)
    strays, state = look(target, [*NEAR, [1e4, -1e4]])
    (found,) = strays.found
    assert (found.chain, found.iteration, found.begun_again) == (3, BLOCK, True)
    assert state.positions[3].tolist() in NEAR
    assert state.values[3] == target.value(state.positions[3:])[0]


def test_a_chain_in_a_mode_of_its_own_stays_and_is_told_of_once():
    target = sk.potential(two_wells, slope_of_wells, dim=2)
    strays, state = look(target, [*NEAR, FAR + 0.5])
    assert [stray.begun_again for stray in strays.found] == [False]
    for i in range(BLOCK):
        state = strays.look_at(state, i, BLOCK, np.random.default_rng(0))
    assert len(strays.found) == 1
    assert state.positions[3].tolist() == (FAR + 0.5).tolist()


@pytest.mark.parametrize(
    ("positions", "room"),
    [
        ([*NEAR, [2.0, 2.0]], BLOCK),  # no farther than draws are
        ([*NEAR, [1e4, 0.0]], BLOCK - 1),  # too late
        ([NEAR[0], [1e4, 0.0]], BLOCK),  # one of two: which of them?
    ],
)
def test_other_chains_are_left_alone(positions, room):
    strays, state = look(sk.potential(flat_tail, dim=2), positions, room)
    assert not strays.found
    assert state.positions.tolist() == positions


def test_chains_without_values_and_runs_without_strays_are_left_alone():
    def forget(state):
        return ChainState(positions=state.positions, values=state.values * np.nan, cache={})

    strays, _ = look(sk.potential(flat_tail, dim=2), [*NEAR, [1e4, 0.0]], state_of=forget)
    assert not strays.found
    run = sk.sample(Gaussian(), sampler="hmc", warmup=200, draws=100, seed=1, progress=False)
    assert run.adaptation.strays == ()


def test_a_run_with_a_chain_far_out_is_right_and_warns():
    """A random walk tuned by three chains would take 10^5 iterations to bring back the fourth."""
    target = sk.potential(flat_tail, dim=2)
    settings = {"sampler": "random-walk", "warmup": 400, "draws": 2000, "progress": False}
    with pytest.warns(SamplingWarning, match="begun again where others were once in warm-up"):
        run = sk.sample(target, initial=[*NEAR, [1e4, -1e4]], seed=3, **settings)
    assert (run.rhat() < 1.05).all()
    assert [stray.chain for stray in run.adaptation.strays] == [3]
