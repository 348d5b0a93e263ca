"""Small networks that go ahead, to choose a scale and a trend."""

import numpy as np
import pytest

import surrokit as sk
from surrokit.errors import SurrogateFitError
from surrokit.interfaces import Evaluations, LearningProblem
from surrokit_networks.learner import (
    Candidate,
    best_of,
    candidates,
    default_size,
    fine_size,
    no_nodes,
    pilot_rows,
    simplest_of,
)
from surrokit_networks.training_rows import TrainingRows


def draw(whitened, size, rng):
    raise AssertionError("nothing is to be drawn")


def test_the_least_error_wins_after_handicaps():
    ways = [
        Candidate(draw=draw, trend="auto"),
        Candidate(draw=draw, trend="linear", handicap=2.0),
        Candidate(draw=draw, trend="constant"),
    ]
    errors = {"auto": 1.5, "linear": 0.8, "constant": 1.7}
    assert best_of(ways, lambda way: errors[way.trend]).trend == "auto"
    errors["linear"] = 0.7
    assert best_of(ways, lambda way: errors[way.trend]).trend == "linear"


def test_what_cannot_be_fitted_does_not_win():
    def error(way):
        if way.trend == "quadratic":
            raise SurrogateFitError("too few equations")
        return 100.0

    ways = [Candidate(draw=draw, trend=trend) for trend in ("quadratic", "linear")]
    assert best_of(ways, error).trend == "linear"
    assert best_of(ways[:1], error).trend == "quadratic"
    # Where none can be fitted, the first is tried in earnest, and says why.
    assert best_of([ways[0], ways[0]], error) is ways[0]


def simplest(bare, best):
    """Return the choice with these variances of V - U: of the trend alone, and with nodes."""
    ways = candidates([draw], "auto")
    return simplest_of(ways, "auto", lambda way: bare if way.draw is no_nodes else best)


@pytest.mark.parametrize(
    ("bare", "best", "stays"),
    [
        (1e-3, 0.0, False),  # 0.98 of independent draws are accepted already
        (0.0115, 0.0079, False),  # 0.94 and 0.95
        (0.006, 1e-5, True),  # 0.956 and 0.998
        (0.2, 0.1, True),
        (np.inf, 1.0, True),
    ],
)
def test_nodes_stay_where_they_raise_the_acceptance(bare, best, stays):
    assert (simplest(bare, best).draw is draw) == stays


def test_a_good_trend_is_not_tried_without():
    tried = []

    def variance(way):
        tried.append(way.trend)
        return 0.01

    simplest_of(candidates([draw, draw], "auto"), "auto", variance)
    assert tried == ["auto"] * 3
    tried.clear()
    simplest_of(candidates([draw, draw], "linear"), "linear", variance)
    assert tried == ["linear"] * 3


def rows_of(n):
    positions = np.random.default_rng(0).standard_normal((n, 2))
    observed = Evaluations(positions=positions, values=np.square(positions).sum(axis=1))
    return TrainingRows.of(observed, "full")


@pytest.mark.parametrize(("n_equations", "left"), [(100, 100), (10_000, 100), (20_000, 50)])
def test_a_part_of_many_equations(n_equations, left):
    rows = rows_of(100)
    part = pilot_rows(rows, n_equations, np.random.default_rng(1))
    assert len(part) == left
    assert set(part.values) <= set(rows.values)
    assert len(pilot_rows(rows, 10**9, np.random.default_rng(1))) == 2


def test_a_sharp_potential_gets_longer_directions():
    rng = np.random.default_rng(2)
    positions = rng.standard_normal((150, 2))
    sharp = np.logaddexp(0.0, 6.0 * positions[:, 0]) + np.logaddexp(0.0, -6.0 * positions[:, 1])
    smooth = 0.02 * positions[:, 0] ** 3

    def length(values):
        learner = sk.make("surrogate", "additive", n_nodes=100).learner(
            LearningProblem(dim=2, capabilities=frozenset()), np.random.default_rng(3)
        )
        bowl = 0.5 * np.square(positions).sum(axis=1)
        learner.observe(Evaluations(positions=positions, values=bowl + values))
        return np.linalg.norm(learner.fit().network.nodes.vectors, axis=1).mean()

    assert length(sharp) > 2.0 * length(smooth)


def test_how_large_a_network_is_if_nobody_says():
    assert [default_size(dim, 10, 0) for dim in (2, 20)] == [400, 1000]
    assert [default_size(20, n, 0) for n in (700, 10**6)] == [1400, 2000]
    assert [default_size(dim, 100, 9) for dim in (2, 7, 60)] == [400, 700, 1000]
    assert [fine_size(n) for n in (100, 2000, 10**5)] == [400, 1000, 3000]


@pytest.mark.parametrize(
    ("bend", "noise", "ridge", "n_nodes"),
    [(0, 0.01, None, 0), (0, 0.3, None, 0), (1, 0.01, None, 60), (0, 0.01, 1.0, 60)],
)
def test_nodes_that_tell_nothing_are_left_out_where_the_data_choose(bend, noise, ridge, n_nodes):
    rng = np.random.default_rng(0)
    positions = rng.standard_normal((80, 2))
    values = np.square(positions).sum(axis=1) + bend * np.cos(2.0 * positions[:, 0])
    values += noise * rng.standard_normal(80)
    learner = sk.make("surrogate", "additive", n_nodes=60, ridge=ridge).learner(
        LearningProblem(dim=2, capabilities=frozenset()), np.random.default_rng(3)
    )
    learner.observe(Evaluations(positions=positions, values=values))
    assert learner.fit().n_nodes == n_nodes
