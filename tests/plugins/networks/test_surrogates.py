"""The surrogates from settings to fitted potential."""

import pickle

import numpy as np
import pytest

import surrokit as sk
from surrokit.errors import ConfigurationError, ShapeError, SurrogateFitError
from surrokit.interfaces import Evaluations, LearningProblem
from surrokit.surrogate.whitening import Whitening
from surrokit_networks.additive import Additive
from surrokit_networks.plugin import surrokit_components
from surrokit_networks.potentials import CAPABILITIES, NORMAL
from surrokit_networks.quadratic import Quadratic
from surrokit_networks.rbf import Rbf
from surrokit_networks.regression import Regression
from surrokit_networks.training import Laplace, Training
from surrokit_networks.training_rows import TrainingRows
from surrokit_networks.trend import tells_more

DIM = 3
COMPONENTS = {component.name: component for component in surrokit_components()}
EXAMPLES = [
    (name, settings)
    for name, component in COMPONENTS.items()
    for settings in component.examples
    if name != "rows"  # which this potential has none of
]


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


@pytest.fixture(params=EXAMPLES, ids=[f"{name}-{settings}" for name, settings in EXAMPLES])
def surrogate(request):
    # Small, where the example leaves the size open: what it can do does not depend on that.
    name, settings = request.param
    if "n_nodes" in COMPONENTS[name].settings():
        settings = {"n_nodes": 30, **settings}
    return sk.make("surrogate", name, **settings)


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


@pytest.mark.parametrize("surrogate", SMALL, ids=["additive", "rbf"])
def test_gradients_make_up_for_points(surrogate):
    fresh = np.random.default_rng(2).standard_normal((200, DIM))
    errors = [
        np.sqrt(np.mean((fitted(surrogate, rows).gradient(fresh) - gradient(fresh)) ** 2))
        for rows in (evaluations(12), evaluations(12, gradients=True))
    ]
    assert errors[1] < 0.5 * errors[0]


def test_the_paper_s_scheme_learns_too():
    fresh = np.random.default_rng(2).standard_normal((200, DIM))
    for surrogate in (Additive.paper(200), Rbf.paper(200)):
        network = fitted(surrogate)
        assert network.ridge == 1e-6
        assert network.level == evaluations().values.min()
        assert np.corrcoef(network.value(fresh), potential(fresh))[0, 1] > 0.8


def test_the_paper_s_scheme_is_what_the_authors_code_computes():
    rows = evaluations(400)
    learns = learner(Additive.paper(50, ridge=1e-4))
    learns.observe(rows)
    nodes = learns.draws[0](rows.positions, 50, np.random.default_rng(learns.seed))
    features = np.log1p(np.exp(rows.positions @ nodes.vectors.T + nodes.offsets))
    targets = rows.values - rows.values.min()
    weights = np.linalg.solve(features.T @ features + 1e-4 * np.eye(50), features.T @ targets)
    expected = features @ weights + rows.values.min()
    np.testing.assert_allclose(learns.fit().value(rows.positions), expected, atol=1e-6)
    np.testing.assert_allclose(nodes.vectors.std(), 1 / np.sqrt(DIM), rtol=0.2)


def test_widths_of_the_authors_code():
    draw = learner(Rbf.paper(4000)).draws[0]
    inverses = draw(np.zeros((1, DIM)), 4000, np.random.default_rng(0)).curvatures
    np.testing.assert_allclose(np.mean(inverses), 1.0, rtol=0.1)  # chi2(1) has mean 1


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
    np.testing.assert_allclose(other.value(there), one.value(fresh), rtol=1e-4, atol=1e-4)
    # Gradients in q are those in the other coordinates times the matrix.
    np.testing.assert_allclose(other.gradient(there) @ matrix, one.gradient(fresh), atol=1e-3)


def test_a_burn_in_far_away_does_no_harm():
    rows = evaluations(100)
    far = np.random.default_rng(6).standard_normal((20, DIM)) * 100.0
    # Quartic, so that no network that grows linearly could fit both.
    values = np.append(rows.values, potential(far) ** 2)
    together = Evaluations(positions=np.vstack([rows.positions, far]), values=values)
    fresh = np.random.default_rng(7).standard_normal((100, DIM))
    error = fitted(Additive(), together).gradient(fresh) - gradient(fresh)
    assert np.sqrt(np.mean(error**2)) < 0.3


@pytest.mark.parametrize("value", [0.0, 7.0, -1e6])
@pytest.mark.parametrize("gradients", [False, True])
def test_constant_values_are_fitted(small, value, gradients):
    positions = evaluations(40).positions
    rows = Evaluations(
        positions=positions,
        values=np.full(40, value),
        gradients=np.zeros((40, DIM)) if gradients else None,
    )
    for surrogate in (small, sk.make("surrogate", "additive", trend="constant", n_nodes=50)):
        network = fitted(surrogate, rows)
        # The network makes up for a trend that is not allowed to be flat.
        np.testing.assert_allclose(network.value(positions), value, rtol=1e-6, atol=0.05)
    np.testing.assert_allclose(network.gradient(positions), 0.0, atol=1e-6)


def test_a_state_before_any_fit_is_restored():
    first = learner(Additive())
    second = learner(Additive(), seed=1).restore(first.state())
    assert second.seed == first.seed
    second.observe(evaluations(20))
    assert second.fit().n_points == 20


def test_a_fit_depends_on_the_rows_and_not_on_fits_before_it():
    learns, afresh = learner(Additive(weight_scale=0.3)), learner(Additive(weight_scale=0.3))
    learns.observe(evaluations(50))
    early = learns.fit()
    for seed in (9, 10):
        learns.observe(evaluations(30, seed=seed))
        learns.fit()
    for rows in (evaluations(50), evaluations(30, seed=9), evaluations(30, seed=10)):
        afresh.observe(rows)
    late = learns.fit().value(np.eye(DIM))
    np.testing.assert_array_equal(late, afresh.fit().value(np.eye(DIM)))
    assert np.abs(late - early.value(np.eye(DIM))).max() > 0


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
    np.testing.assert_allclose(network.value(away.positions), rows.values.mean())
    np.testing.assert_array_equal(network.gradient(away.positions), 0.0)


def test_networks_and_learners_can_be_pickled(surrogate):
    learns = learner(surrogate)
    learns.observe(evaluations(50, gradients=True))
    positions = np.random.default_rng(8).standard_normal((10, DIM))
    network = learns.fit()
    for again in (pickle.loads(pickle.dumps(learns)).fit(), network):
        value = pickle.loads(pickle.dumps(again)).value(positions)
        np.testing.assert_array_equal(value, network.value(positions))


def test_seeds_decide(small):
    positions = np.zeros((1, DIM))
    rows = evaluations()
    assert fitted(small, rows, 1).value(positions) == fitted(small, rows, 1).value(positions)
    assert fitted(small, rows, 1).value(positions) != fitted(small, rows, 2).value(positions)


def test_the_trend_alone_is_exact_for_a_quadratic():
    # From one gradient more than dimensions, far away, or from a few more values than coefficients.
    rng = np.random.default_rng(5)
    half = rng.standard_normal((DIM, 2 * DIM))
    hessian, mode = half @ half.T, np.array([1.0, -2.0, 0.5])
    fresh = mode + rng.standard_normal((20, DIM))
    for n, gradients in ((DIM + 1, True), (30, False)):
        away = rng.standard_normal((n, DIM)) + 3.0 * gradients
        rows = Evaluations(
            positions=mode + away,
            values=0.5 * np.einsum("ni,ij,nj->n", away, hessian, away) + 9.0,
            gradients=away @ hessian if gradients else None,
        )
        network = fitted(sk.make("surrogate", "quadratic", tail="full"), rows)
        expected = (fresh - mode) @ hessian
        np.testing.assert_allclose(network.gradient(fresh), expected, atol=0.01)
        assert network.value(mode[None]) == pytest.approx(9.0, abs=0.01)


@pytest.mark.parametrize("trend", ["quadratic", "laplace"])
def test_the_trend_alone_is_a_surrogate(trend):
    network = fitted(sk.make("surrogate", "quadratic", trend=trend), evaluations(gradients=True))
    assert network.n_nodes == 0
    positions = np.random.default_rng(1).standard_normal((5, DIM))
    hessian = network.hessian(positions)
    np.testing.assert_array_equal(hessian, hessian[:1].repeat(5, axis=0))
    assert np.linalg.eigvalsh(hessian[0])[0] > 0.0
    fresh = np.random.default_rng(2).standard_normal((200, DIM))
    assert np.var(network.value(fresh) - potential(fresh)) < 0.05


def test_a_known_mode_and_hessian_take_the_place_of_the_points():
    laplace = {"mode": np.zeros(DIM), "hessian": 2.0 * np.eye(DIM)}
    for kind in ("additive", "rbf"):
        surrogate = sk.make("surrogate", kind, n_nodes=50, laplace=Laplace(**laplace))
        network = fitted(surrogate, evaluations(20))
        whitening = network.network.whitening
        np.testing.assert_array_equal(whitening.mean, np.zeros(DIM))
        matrix = whitening.inverse.T @ network.network.trend.matrices[0] @ whitening.inverse
        np.testing.assert_allclose(matrix, 2.0 * np.eye(DIM))


def test_too_few_points(small):
    learns = learner(small)
    with pytest.raises(SurrogateFitError, match="needs at least 5 distinct points of use, got 0"):
        learns.fit()
    learns.observe(Evaluations(positions=np.eye(3), values=np.full(3, np.inf)))
    with pytest.raises(SurrogateFitError, match=r"got 0 \(3 rows were observed; rows without a fi"):
        learns.fit()
    learns.observe(evaluations(4))
    with pytest.raises(SurrogateFitError, match=r"got 4 \(7 rows were observed"):
        learns.fit()


def test_the_fewest_points_give_a_fit(small):
    assert fitted(small, evaluations(5)).n_points == 5
    with_gradients = fitted(small, evaluations(2, gradients=True))
    assert with_gradients.n_points == 2
    assert np.isfinite(with_gradients.value(np.zeros((1, DIM)))).all()


def test_evaluations_of_another_dimension():
    with pytest.raises(ShapeError, match=r"must have shape \(n, 3\), got \(2, 4\); pass eval"):
        learner(Additive()).observe(Evaluations(positions=np.ones((2, 4)), values=np.ones(2)))


def test_evaluations_that_are_no_numbers():
    learns = learner(Additive())
    learns.observe(evaluations(10))
    with pytest.raises(ConfigurationError, match=r"values of training rows .* NaN in row 1 of 3"):
        learns.observe(Evaluations(positions=np.eye(3), values=[1.0, np.nan, 2.0]))
    # and what was there before stays
    assert learns.fit().n_points == 10


def test_a_block_without_rows_changes_nothing():
    learns = learner(Additive(n_nodes=20))
    learns.observe(Evaluations.empty(DIM))
    learns.observe(evaluations(10))
    learns.observe(Evaluations.empty(DIM))
    assert learns.fit().n_points == 10


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
