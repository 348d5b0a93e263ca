"""What a learner does to rows, and how small networks that go ahead choose scale and trend."""

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import surrokit as sk
from surrokit.interfaces import Evaluations, LearningProblem
from surrokit_networks.learner import default_size
from surrokit_networks.training import Training
from surrokit_networks.training_rows import TrainingRows


def rows_of(positions, values, tail="full", of_outputs=False, **others):
    observed = Evaluations(positions=positions, values=values, **others)
    return TrainingRows.of(observed, tail, of_outputs)


def test_rows_that_are_not_finite_are_dropped():
    positions = np.arange(16.0).reshape(8, 2)
    positions[7, 0] = np.nan
    values = np.array([1.0, np.inf, 2.0, np.nan, 3.0, 4.0, -np.inf, 5.0])
    rows = rows_of(positions, values)
    assert_array_equal(rows.values, [1.0, 2.0, 3.0, 4.0])
    assert_array_equal(rows.positions, positions[[0, 2, 4, 5]])


def test_duplicates_become_one_row_that_counts_as_often():
    positions = np.array([[3.0], [1.0], [3.0], [2.0], [3.0]])
    values = np.array([9.0, 1.0, 9.0, 4.0, 8.0])
    rows = rows_of(positions, values)
    order = np.lexsort([rows.values, rows.positions[:, 0]])
    assert_array_equal(rows.positions[order, 0], [1.0, 2.0, 3.0, 3.0])
    assert_array_equal(rows.values[order], [1.0, 4.0, 8.0, 9.0])
    assert_array_equal(rows.copies[order], [1.0, 1.0, 1.0, 2.0])
    assert_array_equal(rows.weights, rows.copies)


def test_duplicates_keep_the_derivatives_that_one_of_them_has():
    # A chain's start is evaluated without a gradient, say, and later once more with one.
    nan = np.nan
    rows = rows_of(
        [[1.0], [1.0], [2.0], [1.0]],
        [5.0, 5.0, 6.0, 5.0],
        gradients=[[nan], [7.0], [nan], [8.0]],
        outputs=[[1.0, 2.0]] * 4,
        of_outputs=True,
        jacobians=[[[nan], [nan]], [[3.0], [nan]], [[5.0], [6.0]], [[3.0], [4.0]]],
    )
    first, second = np.argsort(rows.positions[:, 0])
    assert_array_equal(rows.copies[[first, second]], [3.0, 1.0])
    assert_array_equal(rows.gradients[[first, second]], [[7.0], [nan]])
    assert_array_equal(rows.with_gradient[[first, second]], [True, False])
    assert_array_equal(rows.jacobians[[first, second], :, 0], [[3.0, 4.0], [5.0, 6.0]])
    assert rows.with_slopes.all()


def test_far_tail_rows_count_less_and_less():
    positions = np.arange(5.0)[:, None]
    values = np.array([0.0, 12.0, 24.0, 120.0, 1e4])
    # Too few rows near the least value: all of 2 dim + 10.
    rows = rows_of(positions, values, "down-weighted")
    trust = rows.trust[np.argsort(rows.positions[:, 0])]
    assert_allclose(trust, [1.0, 1.0, 1 / 16, 1e-4, 1.2e-3**4])
    assert_array_equal(rows_of(positions, values).trust, np.ones(5))
    # With rows in plenty: half the quantile 0.999 of a chi-square number of one degree of freedom.
    values = np.array([0.0, 1.0, 1.0, 2.0, 10.0]) * 5.4137831
    trust = rows_of(positions, values, "down-weighted").trust
    assert_allclose(np.sort(trust), [1e-4, 1 / 16, 1.0, 1.0, 1.0], rtol=1e-6)
    # Rows that count for nothing are left out.
    far = np.array([0.0, 1.0, 1e300, 1e308])
    assert len(rows_of(np.array([[0.0], [1.0], [1e303], [-1e303]]), far, "down-weighted")) == 2
    assert len(rows_of(np.ones((3, 4)), np.full(3, np.inf), "down-weighted")) == 0


def test_rows_without_outputs_are_of_no_use_where_outputs_are_learnt():
    outputs = np.array([[1.0, 2.0], [np.nan, 2.0], [3.0, 4.0], [np.inf, 0.0]])
    positions = np.arange(4.0)[:, None]
    rows = rows_of(positions, np.ones(4), of_outputs=True, outputs=outputs)
    assert_array_equal(rows.outputs, outputs[[0, 2]])
    assert not rows.with_slopes.any()
    assert len(rows_of(positions, np.ones(4), outputs=outputs)) == 4


def many_rows(n, trust=None):
    rng = np.random.default_rng(1)
    rows = rows_of(rng.standard_normal((n, 2)), rng.random(n))
    if trust is not None:
        rows = attrs.evolve(rows, trust=trust)
    return rows


@pytest.mark.parametrize(("n", "held"), [(10, 2), (24, 2), (36, 4), (1000, 100), (5000, 200)])
def test_a_tenth_is_held_out(n, held):
    chosen = Training().choose_held_out(many_rows(n), np.random.default_rng(0))
    assert chosen.sum() == held
    rng = np.random.default_rng(0)
    assert Training(hold_out=0.0).choose_held_out(many_rows(n), rng) is None
    assert Training(hold_out=0.5).choose_held_out(many_rows(40), rng).sum() == 20
    assert Training().choose_held_out(many_rows(9), rng) is None


def test_what_is_down_weighted_is_not_held_out():
    trust = np.where(np.arange(100) < 30, 1.0, 0.5)
    held = Training().choose_held_out(many_rows(100, trust), np.random.default_rng(0))
    assert held[:30].sum() == 10
    assert not held[30:].any()
    trust = np.where(np.arange(100) < 19, 1.0, 0.5)
    assert Training().choose_held_out(many_rows(100, trust), np.random.default_rng(0)) is None


def test_a_sharp_potential_gets_longer_directions():
    rng = np.random.default_rng(2)
    positions = rng.standard_normal((150, 2))
    sharp = np.logaddexp(0.0, 6.0 * positions[:, 0]) + np.logaddexp(0.0, -6.0 * positions[:, 1])
    smooth = 0.15 * positions[:, 0] ** 3

    def length(values):
        learner = sk.make("surrogate", "additive", n_nodes=100).learner(
            LearningProblem(dim=2, capabilities=frozenset()), np.random.default_rng(3)
        )
        bowl = 0.5 * np.square(positions).sum(axis=1)
        learner.observe(Evaluations(positions=positions, values=bowl + values))
        return np.linalg.norm(learner.fit().network.nodes.vectors, axis=1).mean()

    assert length(sharp) > 1.5 * length(smooth)


def test_how_large_a_network_is_if_nobody_says():
    assert [default_size(dim, 10, 0) for dim in (2, 20)] == [400, 1000]
    assert [default_size(20, n, 0) for n in (700, 10**6)] == [1400, 2000]
    assert [default_size(dim, 100, 9) for dim in (2, 7, 60)] == [400, 700, 1000]
    assert [default_size(20, n, n, fine=True) for n in (20, 100, 10**5)] == [400, 1050, 3000]
    assert [default_size(dim, 10**5, 10**5, fine=True) for dim in (1, 8)] == [400, 1200]


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


def test_many_nodes_do_not_follow_the_noise_of_few_values():
    """Ten noisy values of x^2 / 2 in twenty data sets: figure 1 of the paper."""
    errors, grid = [], np.linspace(-2.0, 2.0, 21)[:, None]
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((10, 1))
        values = 0.5 * x[:, 0] ** 2 + 0.1 * rng.standard_normal(10)
        learner = sk.make("surrogate", "additive").learner(
            LearningProblem(dim=1, capabilities=frozenset()), rng
        )
        learner.observe(Evaluations(positions=x, values=values))
        errors.append(np.std(learner.fit().value(grid) - 0.5 * grid[:, 0] ** 2))
    assert np.median(errors) < 0.12
    assert np.mean(np.array(errors) > 1.0) <= 0.05
