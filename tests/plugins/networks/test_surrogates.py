"""The surrogates from settings to fitted potential."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from smooth import DIM, evaluations, gradient, potential

import surrokit as sk
from surrokit.errors import ConfigurationError, SurrogateFitError
from surrokit.interfaces import Evaluations, LearningProblem
from surrokit.surrogate.whitening import Whitening
from surrokit_networks.potentials import CAPABILITIES, FIRST_ORDER, NORMAL
from surrokit_networks.surrogates import Additive, Quadratic, Rbf
from surrokit_networks.training import Training, informs_more
from surrokit_networks.training_rows import TrainingRows


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


@pytest.fixture(params=[Additive(), Rbf()], ids=["additive", "rbf"])
def default(request):
    return request.param


@pytest.mark.parametrize("gradients", [False, True])
def test_defaults_learn_a_smooth_target(default, gradients):
    network = fitted(default, evaluations(gradients=gradients))
    fresh = np.random.default_rng(2).standard_normal((200, DIM))
    error = network.gradient(fresh) - gradient(fresh)
    assert np.sqrt(np.mean(error**2)) < 0.1
    spread = np.var(network.value(fresh) - potential(fresh))
    assert spread < 0.02
    assert network.gcv_error < 10 * spread


def test_the_paper_s_scheme_is_what_the_authors_code_computes():
    rows = evaluations(400)
    learns = learner(Additive.paper(50, ridge=1e-4))
    learns.observe(rows)
    nodes = learns.draws[0](DIM, 50, np.random.default_rng(learns.seed))
    features = np.log1p(np.exp(rows.positions @ nodes.vectors.T + nodes.offsets))
    targets = rows.values - rows.values.min()
    weights = np.linalg.solve(features.T @ features + 1e-4 * np.eye(50), features.T @ targets)
    expected = features @ weights + rows.values.min()
    assert_allclose(learns.fit().value(rows.positions), expected, atol=1e-6)
    assert_allclose(nodes.vectors.std(), 1 / np.sqrt(DIM), rtol=0.2)
    draw = learner(Rbf.paper(4000)).draws[0]
    inverses = -draw(DIM, 4000, np.random.default_rng(0)).vectors[:, DIM]
    assert_allclose(np.mean(inverses), 1.0, rtol=0.1)  # chi2(1) has mean 1


def moved_by(matrix, rows):
    """The same evaluations in the coordinates matrix q - 40."""
    return Evaluations(
        positions=rows.positions @ matrix.T - 40.0,
        values=rows.values,
        gradients=None if rows.gradients is None else rows.gradients @ np.linalg.inv(matrix),
    )


CORRELATED = np.tril(np.random.default_rng(4).standard_normal((DIM, DIM))) + 3.0 * np.eye(DIM)


@pytest.mark.parametrize(
    ("gradients", "matrix"),
    [(False, CORRELATED), (True, CORRELATED), (True, np.diag([1e-3, 1.0, 1e3]))],
    ids=["values", "gradients", "scales"],
)
def test_affine_reparametrisation_changes_nothing(default, gradients, matrix):
    rng, start = np.random.default_rng(4), np.linalg.inv(CORRELATED)
    # Correlations that stand out in every coordinates tried; without gradients, those that may as
    # well be noise are not taken off.
    skew = np.array([[1.0, 0.0, 0.0], [2.0, 1.0, 0.0], [-1.0, 1.5, 1.0]])
    rows = moved_by(skew @ start, evaluations(gradients=gradients))
    moved = moved_by(matrix, rows)
    fresh = rng.standard_normal((20, DIM)) @ (skew @ start).T - 40.0
    one, other = fitted(default, rows), fitted(default, moved)
    there = fresh @ matrix.T - 40.0
    # a ridge near nothing magnifies rounding
    assert_allclose(other.value(there), one.value(fresh), rtol=1e-4, atol=1e-4)
    # Gradients in q are those in the other coordinates times the matrix.
    assert_allclose(other.gradient(there) @ matrix, one.gradient(fresh), atol=5e-3)


@pytest.mark.parametrize("n_nodes", [20, 200])
def test_nodes_that_see_nothing_give_a_flat_network(n_nodes):
    rows = evaluations(50)
    away = Evaluations(positions=rows.positions + 1e4, values=rows.values)
    surrogate = sk.make(
        "surrogate",
        "rbf",
        whiten=False,
        n_nodes=n_nodes,
        trend="constant",
        width_scale=4.0,
        tail="full",
    )
    network = fitted(surrogate, away)
    assert_allclose(network.value(away.positions), rows.values.mean())
    assert_array_equal(network.gradient(away.positions), 0.0)


def test_too_few_points(small):
    learns = learner(small)
    with pytest.raises(
        SurrogateFitError, match="needs at least 5 distinct points with a finite value, got 0"
    ):
        learns.fit()
    learns.observe(Evaluations(positions=np.eye(3), values=np.full(3, np.inf)))
    with pytest.raises(SurrogateFitError, match=r"got 0 \(3 rows were observed\)"):
        learns.fit()
    learns.observe(evaluations(4))
    with pytest.raises(SurrogateFitError, match=r"got 4 \(7 rows were observed"):
        learns.fit()
    assert fitted(small, evaluations(5)).n_points == 5
    with_gradients = fitted(small, evaluations(2, gradients=True))
    assert np.isfinite(with_gradients.value(np.zeros((1, DIM)))).all()


@pytest.mark.parametrize("kind", ["additive", "rbf", "quadratic"])
@pytest.mark.parametrize(
    ("train_on", "needs", "uses"),
    [
        ("auto", {"value"}, {"value", "gradient"}),
        ("values", {"value"}, {"value"}),
    ],
)
def test_what_a_learner_declares(kind, train_on, needs, uses):
    learns = learner(sk.make("surrogate", kind, train_on=train_on))
    assert learns.needs == needs
    assert learns.uses == uses
    offered = {"additive": CAPABILITIES, "rbf": FIRST_ORDER, "quadratic": CAPABILITIES | NORMAL}
    assert learns.provides == offered[kind]
    learns.observe(evaluations(30, gradients=True))
    assert learns.fit().capabilities == learns.provides


@pytest.mark.parametrize("trend", ["auto", "linear"])
def test_a_trend_that_may_be_flat_is_not_said_to_be_convex(trend):
    learns = learner(Quadratic(training=Training(trend=trend)))
    learns.observe(evaluations(30, gradients=True))
    assert learns.fit().capabilities == learns.provides == CAPABILITIES


def test_values_alone_leave_gradients_unread(small):
    kind = "additive" if isinstance(small, Additive) else "rbf"
    surrogate = sk.make("surrogate", kind, n_nodes=50, train_on="values")
    fresh = np.random.default_rng(5).standard_normal((9, DIM))
    one, other = (fitted(surrogate, evaluations(60, gradients=each)) for each in (False, True))
    assert_array_equal(one.value(fresh), other.value(fresh))
    learns = learner(surrogate)
    learns.observe(evaluations(60, gradients=True))
    assert learns.state()["rows"]["gradients"] is None


@pytest.mark.parametrize(("n_with", "told"), [(0, False), (1, False), (2, False), (30, True)])
def test_a_few_gradients_among_many_values_do_not_whiten(n_with, told):
    rng = np.random.default_rng(3)
    positions = rng.standard_normal((150, 5)) * [1.0, 2.0, 3.0, 4.0, 5.0]
    gradients = np.full_like(positions, np.nan)
    gradients[:n_with] = positions[:n_with]
    rows = TrainingRows.of(
        Evaluations(
            positions=positions, values=0.5 * np.square(positions).sum(axis=1), gradients=gradients
        ),
        "full",
    )
    assert informs_more(rows.with_gradient, 5) == told
    by_positions = Whitening.of(rows.positions, rows.weights, drops_noise=True)
    whitening = Training().whitening(rows)
    assert np.array_equal(whitening.factor, by_positions.factor) != told


RIDGES = "ridge must be a finite number that is not negative, or None"


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("additive", {"n_nodes": 0}, "n_nodes must be a whole number of at least 1"),
        (
            "additive",
            {"weight_scale": 0.0},
            "weight_scale must be a positive finite number, .* 0.0",
        ),
        ("additive", {"ridge": -1.0}, f"{RIDGES}, got -1.0"),
        ("additive", {"ridge": np.inf}, RIDGES),
        ("additive", {"ridge": np.nan}, RIDGES),
        ("additive", {"level": "mean"}, "level must be one of 'trained', 'minimum', got 'mean'"),
        ("additive", {"trend": "cubic"}, "trend must be one of 'auto', .*'quadratic', got 'cubic'"),
        ("additive", {"train_on": "all"}, "train_on must be one of 'auto', 'values', got 'all'"),
        ("additive", {"tail": "cut"}, "tail must be one of 'down-weighted', 'full', got 'cut'"),
        ("additive", {"learns": "all"}, "learns must be one of 'auto', 'potential', 'outputs'"),
        ("additive", {"hold_out": 0.7}, "hold_out must be a share between 0 and 0.5, got 0.7"),
        ("additive", {"updates": "never"}, "updates must be one of 'auto', 'refit', 'greville'"),
        ("rbf", {"width_scale": 0.0}, "width_scale must be a positive finite number, .* got 0.0"),
        ("rbf", {"widths": "wide"}, "widths must be one of 'dimension', 'chi-square', got 'wide'"),
    ],
)
def test_settings_that_make_no_sense(name, settings, message):
    with pytest.raises(ConfigurationError, match=message):
        sk.make("surrogate", name, **settings)
