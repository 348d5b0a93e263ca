"""Modes that were found, how draws are shared out among them, and when a run tells of them."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import surrokit as sk
from surrokit.coordinates.transforms import Transform
from surrokit.errors import PluginError
from surrokit.interfaces import ChainState, Explored, Findings
from surrokit.modes import NEGLIGIBLE, Modes
from surrokit.result.advice import advice
from surrokit.result.verdict import judge
from surrokit.testing.targets import Gaussian
from surrokit.weighted.separate_modes import ENOUGH, ModeVisits

DIM = 4


def modes(higher=1.0, apart=10.0, **changed):
    positions = np.zeros((2, DIM))
    positions[1, 2] = apart
    fields = {
        "positions": positions,
        "values": np.array([3.0, 3.0 + higher]),
        "covariances": np.stack([np.eye(DIM), 4.0 * np.eye(DIM)]),
        "ended": np.array([5, 2]),
        "unfinished": 1,
        **changed,
    }
    return Modes(**fields)


# --- what is known of them ---


def test_a_mode_weighs_what_its_laplace_approximation_holds():
    weights = np.exp([-3.0, -4.0]) * [1.0, 2.0**DIM]
    assert_allclose(modes().masses, weights / weights.sum())


def test_a_mode_matters_unless_it_is_far_above():
    assert modes().matters.all()
    edge = -np.log(NEGLIGIBLE) + DIM * np.log(2.0)
    assert_array_equal(modes(higher=edge - 0.1).matters, [True, True])
    assert_array_equal(modes(higher=edge + 0.1).matters, [True, False])


def test_their_mixture_has_the_covariance_within_and_between():
    found = modes()
    rng, n = np.random.default_rng(1), 200_000
    which = (rng.random(n) < found.masses[1]).astype(int)
    draws = found.positions[which] + rng.standard_normal((n, DIM)) * (1.0 + which)[:, None]
    assert_allclose(found.covariance, np.cov(draws.T), atol=0.3)


def test_positions_belong_to_the_densest():
    at = np.zeros((3, DIM))
    at[:, 2] = [-1.0, 4.0, 9.0]
    assert_array_equal(modes(higher=0.0).nearest(at), [0, 1, 1])


def test_places_are_told_in_the_users_coordinates():
    bounds = Transform(lower=np.array([0.0, *[-np.inf] * 3]), upper=np.full(DIM, np.inf))
    told = modes().tell(bounds)
    assert_allclose(told.places, [[1.0, 0.0, 0.0, 0.0], [1.0, 0.0, 10.0, 0.0]])
    assert_array_equal(modes().places, modes().positions)
    figures = told.to_dict()
    assert figures["places"][1] == [1.0, 0.0, 10.0, 0.0]
    assert figures["potentials"] == [3.0, 4.0]
    assert figures["ended"] == [5, 2]
    assert figures["searches"] == 8


def test_they_are_shown_by_their_number():
    assert repr(modes()) == "<Modes: 2, by 8 searches>"


# --- how draws are shared out ---


def draws(sides):
    positions = np.zeros((*np.shape(sides), DIM))
    positions[..., 2] = 10.0 * np.asarray(sides)
    return positions


def test_visits_are_counted():
    visits = ModeVisits.of(modes(), draws([[0, 0, 1, 1], [1, 0, 1, 1]]))
    assert_allclose(visits.shares, [3 / 8, 5 / 8])
    assert visits.moves == 3


@pytest.mark.parametrize(
    ("sides", "joined"),
    [
        (np.tile([[0], [1]], (1, 100)), False),  # each chain stays where it is
        (np.zeros((2, 100)), False),  # nobody has been to the other
        (np.tile([0, 1], (2, 50)), True),
        (np.repeat([[0, 1]], 50, axis=1), False),  # one move
        (np.tile(np.repeat([0, 1], 100), (2, ENOUGH)), True),  # seldom, but often enough
    ],
)
def test_modes_are_joined_where_chains_go_between_them(sides, joined):
    assert ModeVisits.of(modes(), draws(sides)).joined == joined


@pytest.mark.parametrize(("apart", "missed"), [(2.0, False), (10.0, True)])
def test_a_mode_that_draws_come_near_is_not_missed_though_none_belongs_to_it(apart, missed):
    """A search may end on the slope of another one."""
    found = modes(apart=apart, higher=5.0, covariances=np.stack([np.eye(DIM)] * 2))
    assert found.matters.all()
    visits = ModeVisits.of(found, draws(np.zeros((2, 100))))
    assert_array_equal(visits.shares, [1.0, 0.0])
    assert_array_equal(visits.missed, [False, missed])
    assert visits.joined != missed


# --- what a run tells ---


@pytest.fixture
def told(bounded_run):
    """A run of four numbers whose draws lie on these sides, and which has found some modes."""

    def make(sides, found=None):
        positions = draws(np.asarray(sides))
        kept = attrs.evolve(bounded_run.kept, positions=positions, seconds=np.zeros(len(sides[0])))
        return attrs.evolve(bounded_run, kept=kept, modes=modes() if found is None else found)

    return make


def test_separate_modes_are_told_with_places_heights_and_shares(told):
    run = told(np.tile([[0], [0], [1]], (1, 50)))
    (found,) = [each for each in advice(run) if "modes" in each]
    assert "the target has 2 modes, and chains went from one to another 0 times, so that " in found
    assert "rate = 0, slope = 0, w[0] = 0, w[1] = 0 (potential 3, 5 of 8 searches, " in found
    assert "w[0] = 10" in found
    assert "(1 nats higher, 2 of 8 searches, 33.3 % of the draws)" in found
    assert "Begin chains at every mode with initial=..." in found
    assert any("has 2 modes" in note for note in judge(run).messages)


def test_a_mode_that_no_draw_has_seen_is_told_of(told):
    run = told(np.zeros((3, 50)))
    assert any("draws miss modes altogether" in each for each in advice(run))


@pytest.mark.parametrize("higher", [1.0, 40.0])
def test_modes_that_draws_join_or_that_weigh_nothing_are_not_complained_of(told, higher):
    sides = np.tile([0, 1], (3, 25)) if higher == 1.0 else np.zeros((3, 50))
    run = told(sides, modes(higher=higher))
    assert not any("modes" in each for each in advice(run))
    assert len(run.modes) == 2


# --- what an explorer knows of the budget ---


class Planner:
    """An explorer that asks how much it may pay."""

    needs = frozenset()

    def explore(self, start, rng):
        self.calls = start.calls
        values = np.zeros(len(start.positions))
        chains = ChainState(positions=start.positions, values=values, cache={})
        yield Explored(findings=Findings(chains=chains, covariance=None, step_size=None))


def test_an_explorer_that_ends_without_saying_so_is_an_error():
    options = {"sampler": "hmc", "surrogate": "quadratic", "progress": False}
    with pytest.raises(PluginError, match="not marked as done"):
        sk.sample(Gaussian(), explorer=Planner(), **options)


@pytest.mark.parametrize(("most", "left"), [(110, 50), (3, 1), (None, None)])
def test_an_explorer_knows_what_is_left_to_it(most, left):
    """A part of the budget is left to the draws."""
    planner = Planner()
    with pytest.raises(PluginError):
        sk.sample(
            Gaussian(),
            sampler="hmc",
            surrogate="quadratic",
            explorer=planner,
            max_calls=most,
            progress=False,
        )
    assert planner.calls == left
