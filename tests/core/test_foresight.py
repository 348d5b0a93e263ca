"""Which positions are evaluated ahead, and what becomes of them."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from surrokit.interfaces import Tuning
from surrokit.kernel.foresight import Foresight
from surrokit.testing.targets import Gaussian
from surrokit_corrections.metropolis import Metropolis
from surrokit_hmc.independent import RandomWalk
from surrokit_hmc.sub_chain import SubChain


class Noting:
    """Evaluates nothing, and notes what it is asked for."""

    def __init__(self, most=4):
        self.most, self.begun, self.kept = most, [], []

    def room(self):
        return self.most - len(self.begun)

    def begin(self, positions):
        fresh = [row for row in positions if row.tobytes() not in self.names]
        self.begun += [row.copy() for row in fresh]
        return len(fresh)

    def keep(self, wanted):
        self.kept.append(wanted)
        self.begun = [row for row in self.begun if row.tobytes() in wanted]

    @property
    def names(self):
        return [row.tobytes() for row in self.begun]


@pytest.fixture
def parts():
    surrogate, exact = Gaussian(), Gaussian()
    kernel = SubChain(kernel=RandomWalk(), length=3).bind(surrogate, Tuning(step_size=1.0))
    return kernel, Metropolis().bind(exact)


def start(kernel, decider, chains):
    at = np.zeros((chains, 2))
    return decider.start(at, kernel.cache(at), kernel.potential)


@pytest.mark.parametrize("chains", [1, 3])
def test_the_positions_begun_are_those_that_come_next(parts, chains):
    """Every move is accepted here, since the surrogate is the target."""
    kernel, decider = parts
    rng, plain_rng = np.random.default_rng(1), np.random.default_rng(1)
    ahead = Noting(most=4 * chains)
    foresight = Foresight(decider, ahead, lambda: 100)
    state = plain = start(kernel, decider, chains)
    foreseen = set()
    for i in range(20):
        proposal = foresight.propose(kernel, state, rng)
        wanted = {row.tobytes() for row in proposal.positions[proposal.moved]}
        if i:
            assert wanted <= foreseen
        assert wanted <= set(ahead.names)
        state, _ = decider.decide(state, proposal, rng)
        plain, _ = decider.decide(plain, kernel.propose(plain, plain_rng), plain_rng)
        np.testing.assert_array_equal(state.positions, plain.positions)
        foreseen = set(ahead.names)


def test_nothing_is_begun_that_no_draw_is_left_for(parts):
    kernel, decider = parts
    ahead, left = Noting(), 1
    foresight = Foresight(decider, ahead, lambda: left)
    foresight.propose(kernel, start(kernel, decider, 1), np.random.default_rng(1))
    assert len(ahead.begun) <= 3  # this proposal, and the next one after either outcome
    ahead, left = Noting(), 0
    Foresight(decider, ahead, lambda: left).propose(
        kernel, start(kernel, decider, 1), np.random.default_rng(1)
    )
    assert len(ahead.begun) == 1


def test_both_outcomes_are_looked_at_where_half_of_the_moves_are_accepted(parts):
    kernel, decider = parts
    ahead = Noting(most=3)
    foresight = Foresight(decider, ahead, lambda: 100)
    foresight._accepted, foresight._seen = 50, 100
    foresight.propose(kernel, start(kernel, decider, 1), np.random.default_rng(1))
    children = foresight._root.children
    assert set(children) == {True, False}
    np.testing.assert_array_equal(children[False].state.positions, np.zeros((1, 2)))
    np.testing.assert_array_equal(children[True].state.positions, ahead.begun[0][None, :])


def test_it_gives_up_where_others_draw_from_the_generator(parts):
    kernel, decider = parts
    rng, ahead = np.random.default_rng(1), Noting()
    foresight = Foresight(decider, ahead, lambda: 100)
    state = start(kernel, decider, 1)
    for _ in range(5):
        state, _ = decider.decide(state, foresight.propose(kernel, state, rng), rng)
        rng.random()
    asked = len(ahead.kept)
    assert asked < 3
    foresight.propose(kernel, state, rng)
    assert len(ahead.kept) == asked


def test_moves_that_keep_no_surrogate_s_density_are_not_foreseen(parts):
    kernel, decider = parts
    ahead = Noting()

    @attrs.frozen
    class Plain:
        kernel: object

        def propose(self, state, rng):
            return attrs.evolve(self.kernel.propose(state, rng), keeps_source=False)

    foresight = Foresight(decider, ahead, lambda: 100)
    foresight.propose(Plain(kernel), start(kernel, decider, 1), np.random.default_rng(1))
    assert not ahead.begun
