"""A network is not believed to be lower, at some distance, than rows there and farther out."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import surrokit as sk
from surrokit.contracts.learner import Evaluations, LearningProblem
from surrokit_networks.regression.floor import BLEND, PART, SLACK, Floor


def numbers(*values):
    return np.array(values, dtype=np.float64)


def test_the_hull_is_below_all_rows_and_touches_some():
    rng = np.random.default_rng(0)
    distances = rng.uniform(0.0, 5.0, 50)
    values = 7.0 + distances**2 * rng.uniform(0.3, 1.0, 50)
    floor = Floor.under(distances, values)
    hull = np.interp(distances, floor.distances, floor.values)
    assert (hull <= values + 1e-12).all()
    assert (values - hull < 1e-12).sum() == len(floor.distances) - 1
    slopes = np.diff(floor.values) / np.diff(floor.distances)
    assert (np.diff(slopes) > 0.0).all()
    assert slopes[0] >= 0.0
    assert (floor.distances[0], floor.values[0]) == (0.0, values.min())
    assert floor.distances[-1] == distances.max()


def test_of_rows_at_one_distance_the_lowest_counts():
    floor = Floor.under(numbers(1.0, 2.0, 2.0, 2.0), numbers(3.0, 9.0, 7.0, 8.0))
    assert_array_equal(floor.distances, [0.0, 1.0, 2.0])
    assert_array_equal(floor.values, [3.0, 3.0, 7.0])


def test_it_is_a_nat_and_a_tenth_of_the_height_lower():
    floor = Floor.under(numbers(0.0, 4.0), numbers(1.0, 5.0))
    assert_allclose(floor.at(numbers(0.0, 2.5, 4.0, 9.0)), [0.0, 2.25, 3.6, 3.6])
    assert (PART, SLACK) == (0.9, 1.0)
    assert_allclose(floor.slopes(numbers(2.5, 3.9, 4.0, 9.0)), [0.9, 0.9, 0.0, 0.0])


@pytest.mark.parametrize("one", [0.0, 2.0])
def test_one_row_has_a_floor(one):
    floor = Floor.under(numbers(one), numbers(5.0))
    assert_allclose(floor.at(numbers(0.0, 1.0, 7.0)), 4.0)
    assert_allclose(floor.slopes(numbers(0.0, 1.0, 7.0)), 0.0)


def test_it_is_no_higher_than_a_normal_density_has_it():
    """A row far up at the next distance says nothing of what lies in between."""
    floor = Floor.under(numbers(0.0, 4.0), numbers(1.0, 1001.0))
    assert_allclose(floor.at(numbers(0.0, 2.0, 4.0)), [0.0, 1.8, 7.2])
    assert_allclose(floor.slopes(numbers(0.0, 2.0, 4.0)), [0.0, 1.8, 3.6])


def test_values_well_above_stay_and_pits_are_filled():
    floor = Floor.under(numbers(0.0, 4.0), numbers(1.0, 5.0))
    values = numbers(2.25 + BLEND, 50.0, 2.25, 2.25 - BLEND, -300.0)
    lift = floor.lift(np.full(5, 2.5), values)
    assert_array_equal(lift.rows, [2, 3, 4])
    assert_allclose(values[2:] + lift.by, [2.25 + 0.25 * BLEND, 2.25, 2.25])
    assert_allclose(lift.part, [0.5, 1.0, 1.0])
    assert_allclose(lift.slopes, [0.45, 0.9, 0.9])
    step = 1e-6
    higher = floor.lift(np.full(5, 2.5), values + step)
    assert_allclose((lift.by - higher.by) / step, lift.part, atol=1e-5)
    assert floor.lift(np.full(2, 2.5), values[:2]) is None


def test_what_overflows_stays():
    floor = Floor.under(numbers(0.0, 4.0), numbers(1.0, 11.0))
    assert floor.lift(numbers(1.0, np.inf), numbers(np.inf, np.nan)) is None


# --- networks ---

DIM = 4


def skewed(q):
    """U of logarithms of gamma variates of shape 1.5: nearly linear on one side."""
    return np.sum(np.exp(q) - 1.5 * q, axis=1)


def skewed_slope(q):
    return np.exp(q) - 1.5


@pytest.fixture(scope="module")
def network():
    """A network of ordinary rows and a few far out, as payments in tails are."""
    rng = np.random.default_rng(3)
    near = np.log(rng.gamma(1.5, size=(90, DIM)))
    far = np.log(rng.gamma(1.5, size=(12, DIM)))
    far[np.arange(12), np.arange(12) % DIM] = -rng.uniform(4.0, 7.0, 12)
    q = np.concatenate([near, far])
    return fitted(q)


def fitted(q, is_weighed=True):
    learner = sk.make("surrogate", "additive").learner(
        LearningProblem(
            dim=DIM,
            capabilities=frozenset({"gradient"}),
            is_density=True,
            is_weighed=is_weighed,
        ),
        np.random.default_rng(1),
    )
    learner.observe(Evaluations(positions=q, values=skewed(q), gradients=skewed_slope(q)))
    return learner.fit()


def test_few_rows_and_chains_have_no_floor():
    """Hulls of few rows are too high, and chains need none: the exact potential refuses pits."""
    q = np.log(np.random.default_rng(3).gamma(1.5, size=(100, DIM)))
    assert fitted(q).border.floor is not None
    assert fitted(q[:79]).border.floor is None
    assert fitted(q, is_weighed=False).border.floor is None


def within(network, n=20_000):
    """Return positions all over the ellipsoid."""
    rng = np.random.default_rng(4)
    units = rng.standard_normal((n, DIM))
    units /= np.linalg.norm(units, axis=1)[:, None]
    reach = network.border.radius * rng.uniform(size=n) ** (1.0 / DIM)
    return network.border.whitening.undo(reach[:, None] * units)


def test_a_network_has_no_pits_in_corners_without_rows(network):
    """Without the floor it falls far below the mode, which would have all its draws there."""
    bare = attrs.evolve(network, border=None)
    q, least = within(network), network.border.floor.values[0]
    assert bare.value(q).min() < least - 5.0
    distances = network.border.locate(q).distances
    assert (network.value(q) >= network.border.floor.at(distances) - 1e-9).all()
    draws = np.log(np.random.default_rng(5).gamma(1.5, size=(1000, DIM)))
    inside = draws[~network.is_beyond(draws)]
    assert len(inside) > 990
    lifts = network.value(inside) - bare.value(inside)
    assert (lifts >= 0.0).all()
    assert np.quantile(lifts, 0.99) < 0.01


def test_gradients_are_those_of_raised_values(network):
    q = within(network, 400)
    values, gradients = network.value_and_gradient(q)
    bare = attrs.evolve(network, border=None)
    assert (values - bare.value(q) > 1.0).any()
    for k in range(DIM):
        move = 1e-6 * np.eye(DIM)[k]
        rise = (network.value(q + move) - network.value(q - move)) / 2e-6
        # corners of the hull, at which the slope jumps, are met by hardly any position
        assert np.mean(np.abs(rise - gradients[:, k]) < 1e-3 * (1.0 + np.abs(rise))) > 0.99


def test_weighted_answers_hold_where_tails_are_long_on_one_side():
    """Without the floor the second round of this run has its draws in pits, and is refused."""
    target = sk.potential(
        value_and_gradient=lambda q: (skewed(q), skewed_slope(q)), dim=DIM, batched=True
    )
    run = sk.sample(
        target,
        sampler="sub-chain",
        surrogate="additive",
        explorer="rounds",
        correction="weights",
        max_calls=200,
        seed=1,
        progress=False,
    )
    assert run.weights.rejected == 0
    assert len(run.answer.rounds) >= 2
    low, high = run.answer.mean().interval(1.0 - 1e-3)
    mean = 0.03648997397857652  # digamma(1.5)
    assert (low <= mean).all()
    assert (mean <= high).all()
