"""What a network is trained on, and how it is judged where it was not."""

import numpy as np
import pytest

import surrokit as sk
from surrokit.contracts.learner import Evaluations, LearningProblem
from surrokit.errors import SurrogateFitError
from surrokit.surrogate.whitening import Whitening
from surrokit_networks.additive import Additive
from surrokit_networks.potentials import CAPABILITIES, NORMAL
from surrokit_networks.quadratic import Quadratic
from surrokit_networks.rbf import Rbf
from surrokit_networks.regression import Regression
from surrokit_networks.training import Training
from surrokit_networks.training_rows import TrainingRows
from surrokit_networks.trend import tells_more

DIM = 3


def potential(positions):
    return 0.5 * (positions**2).sum(axis=1) + np.log1p(np.exp(positions[:, 0] - positions[:, 1]))


def gradient(positions):
    slope = 1.0 / (1.0 + np.exp(positions[:, 1] - positions[:, 0]))
    return positions + slope[:, None] * np.array([1.0, -1.0, 0.0])


def evaluations(n=150, seed=0, shift=0.0, gradients=False):
    positions = np.random.default_rng(seed).standard_normal((n, DIM))
    return Evaluations(
        positions=positions,
        values=potential(positions) + shift,
        gradients=gradient(positions) if gradients else None,
    )


def learner(surrogate, seed=7, dim=DIM):
    problem = LearningProblem(dim=dim, capabilities=frozenset())
    return surrogate.learner(problem, np.random.default_rng(seed))


def fitted(surrogate, rows=None, seed=7):
    learns = learner(surrogate, seed)
    learns.observe(evaluations() if rows is None else rows)
    return learns.fit()


# Scales as given, so that no small networks go ahead.
SMALL = [Additive(n_nodes=100, weight_scale=0.3), Rbf(n_nodes=100, width_scale=4.0)]


@pytest.fixture(params=SMALL, ids=["additive", "rbf"])
def small(request):
    return request.param


@pytest.mark.parametrize("kind", ["additive", "rbf", "quadratic"])
@pytest.mark.parametrize(
    ("train_on", "needs", "uses"),
    [
        ("auto", {"value"}, {"value", "gradient"}),
        ("values", {"value"}, {"value"}),
        ("gradients", {"value", "gradient"}, {"value", "gradient"}),
        ("values-and-gradients", {"value", "gradient"}, {"value", "gradient"}),
    ],
)
def test_what_a_learner_declares(kind, train_on, needs, uses):
    learns = learner(sk.make("surrogate", kind, train_on=train_on))
    assert learns.needs == needs
    assert learns.uses == uses
    assert learns.provides == CAPABILITIES | (NORMAL if kind == "quadratic" else set())
    learns.observe(evaluations(30, gradients=True))
    assert learns.fit().capabilities == learns.provides


@pytest.mark.parametrize("trend", ["auto", "linear"])
def test_a_trend_that_may_be_flat_is_not_said_to_be_convex(trend):
    learns = learner(Quadratic(training=Training(regression=Regression(trend=trend))))
    learns.observe(evaluations(30, gradients=True))
    assert learns.fit().capabilities == learns.provides == CAPABILITIES


def test_trained_on_gradients_alone_values_give_the_level(small):
    kind = "additive" if isinstance(small, Additive) else "rbf"
    rows = evaluations(60, gradients=True)
    moved = Evaluations(
        positions=rows.positions, values=rows.values + 5.0, gradients=rows.gradients
    )
    surrogate = sk.make("surrogate", kind, n_nodes=100, train_on="gradients", tail="full")
    one, other = fitted(surrogate, rows), fitted(surrogate, moved)
    fresh = np.random.default_rng(5).standard_normal((100, DIM))
    np.testing.assert_array_equal(one.gradient(fresh), other.gradient(fresh))
    np.testing.assert_allclose(other.value(fresh) - one.value(fresh), 5.0)
    left = one.value(rows.positions) - rows.values
    assert np.mean(left) == pytest.approx(0.0, abs=1e-10)
    assert np.sqrt(np.mean((one.gradient(fresh) - gradient(fresh)) ** 2)) < 0.1


@pytest.mark.parametrize("kind", ["additive", "rbf", "quadratic"])
def test_gradients_alone_without_any_gradient(kind):
    learns = learner(sk.make("surrogate", kind, train_on="gradients"))
    learns.observe(evaluations(60))
    with pytest.raises(SurrogateFitError, match="but there are only 0 equations"):
        learns.fit()


def test_values_alone_leave_gradients_unread(small):
    kind = "additive" if isinstance(small, Additive) else "rbf"
    surrogate = sk.make("surrogate", kind, n_nodes=50, train_on="values")
    fresh = np.random.default_rng(5).standard_normal((9, DIM))
    one, other = (fitted(surrogate, evaluations(60, gradients=each)) for each in (False, True))
    np.testing.assert_array_equal(one.value(fresh), other.value(fresh))
    learns = learner(surrogate)
    learns.observe(evaluations(60, gradients=True))
    assert learns.state()["rows"]["gradients"] is None


@pytest.mark.parametrize("train_on", ["auto", "gradients", "values-and-gradients"])
def test_rows_without_gradient_among_others(small, train_on):
    kind = "additive" if isinstance(small, Additive) else "rbf"
    rows = evaluations(80, gradients=True)
    slopes = np.array(rows.gradients)
    slopes[::2] = np.nan
    slopes[1, 2] = np.nan
    part = Evaluations(positions=rows.positions, values=rows.values, gradients=slopes)
    network = fitted(sk.make("surrogate", kind, n_nodes=100, train_on=train_on), part)
    fresh = np.random.default_rng(5).standard_normal((100, DIM))
    assert network.n_points == 80
    assert np.sqrt(np.mean((network.gradient(fresh) - gradient(fresh)) ** 2)) < 0.1


def test_the_level_of_the_authors_code_is_the_least_value(small):
    kind = "additive" if isinstance(small, Additive) else "rbf"
    rows = evaluations(60, gradients=True)
    for train_on in ("values", "auto"):
        surrogate = sk.make("surrogate", kind, n_nodes=100, level="minimum", train_on=train_on)
        network = fitted(surrogate, rows)
        assert network.level == rows.values.min()
        left = network.value(rows.positions) - rows.values
        assert np.sqrt(np.mean(left**2)) < 0.05


@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize("kind", ["additive", "rbf", "quadratic"])
def test_held_out_error_is_about_that_on_fresh_points(kind, gradients):
    # Few nodes, so that the error is no matter of a few points; within a factor of three.
    settings = {} if kind == "quadratic" else {"n_nodes": 5, "trend": "linear"}
    surrogate = sk.make("surrogate", kind, hold_out=0.4, **settings)
    network = fitted(surrogate, evaluations(250, gradients=gradients))
    quality = network.quality
    assert quality.n_points == pytest.approx(100, abs=1)
    fresh = np.random.default_rng(12).standard_normal((2000, DIM))
    near = potential(fresh) < evaluations(250).values.min() + 0.3 * (2 * DIM + 10)
    fresh = fresh[near]
    variance = np.var(network.value(fresh) - potential(fresh))
    assert 1 / 3 < quality.variance / variance < 3
    if gradients:
        left = network.gradient(fresh) - gradient(fresh)
        error = np.linalg.norm(left) / np.linalg.norm(gradient(fresh))
        assert 1 / 2 < quality.gradient_error / error < 2
    else:
        assert quality.gradient_error is None


def test_no_held_out_error_of_few_points_or_where_nobody_wants_it(small):
    kind = "additive" if isinstance(small, Additive) else "rbf"
    assert fitted(small, evaluations(9)).quality is None
    assert fitted(small, evaluations(30)).quality.n_points == 3
    without = sk.make("surrogate", kind, n_nodes=50, hold_out=0.0)
    assert fitted(without, evaluations(30)).quality is None


def test_one_gradient_among_few_values_is_not_enough(small):
    rows = evaluations(4, gradients=True)
    slopes = np.array(rows.gradients)
    slopes[1:] = np.nan
    learns = learner(small)
    learns.observe(Evaluations(positions=rows.positions, values=rows.values, gradients=slopes))
    with pytest.raises(SurrogateFitError, match="needs at least 5 distinct points of use, got 4"):
        learns.fit()


@pytest.mark.parametrize(("n_with", "told"), [(0, False), (1, False), (2, False), (30, True)])
def test_a_few_gradients_among_many_values_do_not_whiten(n_with, told):
    rng = np.random.default_rng(3)
    positions = rng.standard_normal((150, 5)) * [1.0, 2.0, 3.0, 4.0, 5.0]
    gradients = np.full_like(positions, np.nan)
    gradients[:n_with] = positions[:n_with]
    rows = TrainingRows.of(
        Evaluations(
            positions=positions,
            values=0.5 * np.square(positions).sum(axis=1),
            gradients=gradients,
        ),
        "full",
    )
    assert tells_more(rows.with_gradient, 5) == told
    by_positions = Whitening.of(rows.positions, rows.weights, drops_noise=True)
    whitening = Training().whitening(rows)
    assert np.array_equal(whitening.factor, by_positions.factor) != told
