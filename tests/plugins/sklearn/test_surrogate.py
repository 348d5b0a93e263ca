"""Regressors as surrogates: settings, learning, and the fitted potential."""

import pickle

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import BaggingRegressor, RandomForestRegressor, VotingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import BayesianRidge, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import SVR

import surrokit as sk
from surrokit.capabilities import GRADIENT, GRADIENT_ALONE, VARIANCE
from surrokit.contracts.learner import Evaluations, LearningProblem
from surrokit.errors import ConfigurationError, ShapeError
from surrokit_sklearn.fit import differences as differences_module
from surrokit_sklearn.fit.differences import NARROW, WIDE
from surrokit_sklearn.ready_made import nystroem_ridge, polynomial_ridge

DIM = 3
FOREST = RandomForestRegressor(10)


def potential(q):
    return 0.5 * np.square(q).sum(axis=1) + np.log1p(np.exp(q[:, 0] - q[:, 1]))


def gradient(q):
    slope = 1.0 / (1.0 + np.exp(q[:, 1] - q[:, 0]))
    return q + slope[:, None] * np.array([1.0, -1.0, 0.0])


def evaluations(n=150, seed=0, shift=0.0, gradients=False):
    q = np.random.default_rng(seed).standard_normal((n, DIM)) * [1.0, 1.2, 0.8] + shift
    return Evaluations(
        positions=q, values=potential(q), gradients=gradient(q) if gradients else None
    )


def learner(estimator, seed=7, **settings):
    problem = LearningProblem(dim=DIM, capabilities=frozenset())
    surrogate = sk.make("surrogate", "sklearn", estimator=estimator, **settings)
    return surrogate.learner(problem, np.random.default_rng(seed))


def fitted(estimator, rows=None, **settings):
    learns = learner(estimator, **settings)
    learns.observe(evaluations() if rows is None else rows)
    return learns.fit()


def fresh(n=100):
    return evaluations(n, seed=11).positions


def gradient_error(surrogate):
    q = fresh()
    return np.linalg.norm(surrogate.gradient(q) - gradient(q)) / np.linalg.norm(gradient(q))


class TestFitted:
    def test_what_it_is(self):
        surrogate = fitted(polynomial_ridge(degree=4))
        q = fresh(5)
        value, slope = surrogate.value_and_gradient(q)
        np.testing.assert_allclose(value, potential(q), atol=0.05)
        np.testing.assert_allclose(surrogate.value(q), value)
        np.testing.assert_allclose(surrogate.gradient(q), slope)
        assert gradient_error(surrogate) < 0.05
        assert surrogate.capabilities == {GRADIENT, GRADIENT_ALONE}
        assert surrogate.gradient_kind == "analytic"
        assert surrogate.n_points == 150
        assert repr(surrogate).startswith(
            "FittedRegressor(dim=3, regressor=Pipeline, n_points=150, gradient_kind='analytic', "
            "held_out_variance="
        )

    @pytest.mark.parametrize("settings", [{}, {"whiten": False}, {"trend": "none"}])
    def test_gradients_are_in_the_coordinates_of_the_positions(self, settings, differences):
        surrogate = fitted(KernelRidge(kernel="rbf", alpha=1e-6), **settings)
        expected = differences(surrogate.value, fresh(5))
        np.testing.assert_allclose(surrogate.gradient(fresh(5)), expected, rtol=1e-5, atol=1e-6)

    def test_differences_where_nothing_better_is_known(self):
        smooth = BaggingRegressor(KernelRidge(kernel="rbf", gamma=0.2, alpha=1e-6), n_estimators=2)
        surrogate = fitted(smooth)
        assert surrogate.gradient_kind == "differences"
        assert surrogate.slope.step == NARROW
        assert gradient_error(surrogate) < 0.2

    def test_differences_on_request_agree_with_the_analytic_gradient(self):
        estimator = SVR(C=100.0, gamma=0.2)
        one, other = fitted(estimator), fitted(estimator, gradient="differences")
        assert (one.gradient_kind, other.gradient_kind) == ("analytic", "differences")
        np.testing.assert_allclose(other.gradient(fresh()), one.gradient(fresh()), atol=1e-5)

    @pytest.mark.parametrize("estimator", [FOREST, KNeighborsRegressor()])
    def test_wide_differences_where_predictions_are_constant_in_pieces(self, estimator):
        surrogate = fitted(estimator, evaluations(400))
        assert surrogate.slope.step == WIDE
        narrow = fitted(estimator, evaluations(400), step=0.01)
        assert gradient_error(surrogate) < min(0.3, 0.5 * gradient_error(narrow))

    def test_differences_in_blocks(self, monkeypatch):
        surrogate = fitted(SVR(), gradient="differences")
        whole = surrogate.gradient(fresh(7))
        monkeypatch.setattr(differences_module, "_BLOCK", 2 * DIM * DIM * 3)
        np.testing.assert_allclose(surrogate.gradient(fresh(7)), whole, rtol=1e-6)

    def test_variances(self):
        process = fitted(GaussianProcessRegressor(optimizer=None, alpha=1e-4))
        assert VARIANCE in process.capabilities
        near, far = process.variance(fresh(5)), process.variance(fresh(5) + 30.0)
        assert (near > 0.0).all()
        # The prior variance of the kernel, in the units of what the trend leaves of U.
        np.testing.assert_allclose(far, process.scale**2, rtol=1e-6)
        assert near.max() < far.min()
        bayesian = fitted(make_pipeline(PolynomialFeatures(2), BayesianRidge()))
        assert bayesian.variance(fresh(5)).shape == (5,)
        assert VARIANCE not in fitted(SVR()).capabilities

    def test_variances_of_pipelines_are_not_asked_for_under_metadata_routing(self):
        pipeline = make_pipeline(StandardScaler(), BayesianRidge())
        assert VARIANCE in learner(pipeline).provides
        with config_context(enable_metadata_routing=True):
            assert VARIANCE not in learner(pipeline).provides
            assert VARIANCE in learner(BayesianRidge()).provides

    def test_positions_out_of_reach_are_rejected_and_no_error(self):
        surrogate = fitted(FOREST)
        q = np.array([[0.0, 0.0, 0.0], [1e200, 0.0, 0.0], [np.nan, 0.0, 0.0], [0.0, -np.inf, 0.0]])
        value, slope = surrogate.value_and_gradient(q)
        np.testing.assert_array_equal(np.isinf(value), [False, True, True, True])
        np.testing.assert_array_equal(np.isnan(slope).any(axis=1), [False, True, True, True])
        process = fitted(GaussianProcessRegressor(optimizer=None, alpha=1e-4))
        np.testing.assert_array_equal(np.isinf(process.variance(q)), [False, True, True, True])
        assert np.isinf(surrogate.value(q[1:])).all()
        assert surrogate.gradient(np.empty((0, DIM))).shape == (0, DIM)

    def test_a_regressor_that_turns_nan_has_no_density_there(self):
        surrogate = fitted(NanBeyond())
        value = surrogate.value(np.array([[0.0, 0.0, 0.0], [300.0, 0.0, 0.0]]))
        np.testing.assert_array_equal(np.isinf(value), [False, True])

    def test_it_can_be_pickled(self):
        for estimator in (polynomial_ridge(), nystroem_ridge(n_components=30), FOREST):
            surrogate = fitted(estimator)
            again = pickle.loads(pickle.dumps(surrogate))
            np.testing.assert_array_equal(again.gradient(fresh(5)), surrogate.gradient(fresh(5)))


class TestFitting:
    def test_the_trend_grows_where_the_regressor_does_not(self):
        far = 20.0 * np.eye(DIM)
        flat = fitted(KernelRidge(kernel="rbf", gamma=1.0), trend="none")
        assert np.ptp(np.append(flat.value(far), flat.level)) < 1e-6
        grown = fitted(KernelRidge(kernel="rbf", gamma=1.0))
        assert (grown.value(far) > 50.0).all()
        assert gradient_error(grown) < gradient_error(flat)

    def test_the_trend_never_bends_down(self):
        rows = evaluations()
        hill = Evaluations(positions=rows.positions, values=-rows.values)
        assert fitted(Ridge(), hill).curvature == 0.0

    def test_points_at_one_distance_have_no_trend(self):
        q = np.array([[1.0], [-1.0], [1.0 + 1e-12]])
        rows = Evaluations(positions=q, values=[1.0, 2.0, 1.0])
        surrogate = sk.make("surrogate", "sklearn", estimator=Ridge(), whiten=False, tail="full")
        learns = surrogate.learner(
            LearningProblem(dim=1, capabilities=frozenset()), np.random.default_rng(0)
        )
        learns.observe(rows)
        assert np.isfinite(learns.fit().value(q)).all()

    def test_a_constant_potential(self):
        q = fresh()
        surrogate = fitted(Ridge(), Evaluations(positions=q, values=np.full(len(q), 5.0)))
        np.testing.assert_allclose(surrogate.value(q), 5.0)
        np.testing.assert_allclose(surrogate.gradient(q), 0.0, atol=1e-12)

    def test_the_estimator_given_stays_unfitted(self):
        estimator = polynomial_ridge()
        surrogate = sk.make("surrogate", "sklearn", estimator=estimator)
        assert surrogate.regressor is not estimator
        fitted(estimator)
        assert not hasattr(estimator[-1], "coef_")
        estimator.set_params(ridge__alpha=5.0)
        assert surrogate.regressor.get_params()["ridge__alpha"] == 1e-6

    def test_random_states_come_from_the_learner_unless_they_are_given(self):
        q = fresh(5)
        one = fitted(FOREST).value(q)
        np.testing.assert_array_equal(fitted(FOREST).value(q), one)
        other = learner(FOREST, seed=8)
        other.observe(evaluations())
        assert (other.fit().value(q) != one).any()
        forest = VotingRegressor([("forest", FOREST), ("own", FOREST)])
        forest.set_params(own__random_state=5)
        states = fitted(forest).regressor.get_params()
        assert states["own__random_state"] == 5
        assert isinstance(states["forest__random_state"], int)

    def test_weights_go_to_regressors_that_take_them(self):
        far = evaluations(5, seed=3, shift=6.0)
        for estimator in (
            Recording(),
            make_pipeline(StandardScaler(), Recording()),
            make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), Recording())),
        ):
            learns = learner(estimator, hold_out=0.0)
            learns.observe(evaluations())
            learns.observe(far)
            last = learns.fit().regressor
            while not isinstance(last, Recording):
                last = last[-1]
            assert len(last.weights_) == 155
            assert np.count_nonzero(last.weights_ < 0.1) == 5
            assert np.count_nonzero(last.weights_ > 0.9) == 150
        bagging = BaggingRegressor(Ridge(), n_estimators=2)
        assert sk.make("surrogate", "sklearn", estimator=bagging).takes_weights

    def test_repeated_rows_count_as_often(self):
        rows = evaluations(20)
        learns = learner(Recording(), hold_out=0.0)
        learns.observe(rows)
        learns.observe(rows.take(np.array([3, 3])))
        weights = learns.fit().regressor.weights_
        np.testing.assert_array_equal(np.sort(weights), [*[1.0] * 19, 3.0])

    def test_no_weights_where_some_part_takes_none(self):
        far = evaluations(5, seed=3, shift=6.0)
        for estimator in (
            KNeighborsRegressor(),
            BaggingRegressor(KNeighborsRegressor(), n_estimators=2),
            VotingRegressor([("one", Ridge()), ("two", KNeighborsRegressor())]),
            GridSearchCV(Ridge(), {"alpha": [1.0]}, cv=2),
        ):
            assert not sk.make("surrogate", "sklearn", estimator=estimator).takes_weights
            learns = learner(estimator)
            learns.observe(evaluations())
            learns.observe(far)
            assert np.isfinite(learns.fit().value(fresh(3))).all()

    def test_no_weights_through_compositions_under_metadata_routing(self):
        pipeline = make_pipeline(StandardScaler(), Ridge())
        bagging = BaggingRegressor(Ridge())
        with config_context(enable_metadata_routing=True):
            assert sk.make("surrogate", "sklearn", estimator=Ridge()).takes_weights
            assert not sk.make("surrogate", "sklearn", estimator=pipeline).takes_weights
            assert not sk.make("surrogate", "sklearn", estimator=bagging).takes_weights
            far = evaluations(5, seed=3, shift=6.0)
            learns = learner(pipeline)
            learns.observe(Evaluations.join([evaluations(), far], DIM))
            assert np.isfinite(learns.fit().value(fresh(3))).all()

    def test_no_more_points_than_wanted(self):
        surrogate = fitted(polynomial_ridge(), evaluations(500), max_points=100)
        assert surrogate.n_points == 100
        assert 390 < surrogate.quality.n_points <= 400
        assert fitted(Ridge(), evaluations(500), max_points=None).n_points == 500

    @pytest.mark.parametrize("n", [5, 20, 49])
    def test_few_points_are_not_judged(self, n):
        assert fitted(Ridge(), evaluations(n)).quality is None
        assert "held_out_variance=none" in repr(fitted(Ridge(), evaluations(n)))

    def test_quality(self):
        good = fitted(polynomial_ridge(degree=4), evaluations(gradients=True)).quality
        bad = fitted(Ridge(), evaluations(gradients=True)).quality
        assert good.n_points == bad.n_points >= 14
        assert good.variance < 0.02 < bad.variance
        assert good.gradient_error < 0.05 < bad.gradient_error
        assert fitted(Ridge()).quality.gradient_error is None
        assert fitted(Ridge(), hold_out=0.0).quality is None

    def test_quality_is_what_new_points_show(self):
        surrogate = fitted(polynomial_ridge(degree=3), evaluations(400), hold_out=0.3)
        q = fresh(2000)
        found = np.var(surrogate.value(q) - potential(q))
        assert 0.2 * found < surrogate.quality.variance < 5.0 * found

    def test_affine_reparametrisation_changes_nothing(self):
        rng = np.random.default_rng(4)
        matrix = np.tril(rng.standard_normal((DIM, DIM))) + 3.0 * np.eye(DIM)
        rows = evaluations()
        moved = Evaluations(positions=rows.positions @ matrix.T - 40.0, values=rows.values)
        q = fresh(20)
        estimator = KernelRidge(kernel="rbf", alpha=1e-4)
        one = fitted(estimator, rows, hold_out=0.0)
        other = fitted(estimator, moved, hold_out=0.0)
        np.testing.assert_allclose(other.value(q @ matrix.T - 40.0), one.value(q), atol=1e-5)
        back = other.gradient(q @ matrix.T - 40.0) @ matrix
        np.testing.assert_allclose(back, one.gradient(q), atol=1e-4)


class TestLearner:
    def test_what_it_declares(self):
        learns = learner(BayesianRidge())
        assert learns.needs == {"value"}
        assert learns.uses == {"value", "gradient"}
        assert learns.provides == {GRADIENT, GRADIENT_ALONE, VARIANCE}

    @pytest.mark.parametrize(
        "estimator",
        [FOREST, MLPRegressor(hidden_layer_sizes=(8,), tol=1e9, max_iter=300)],
        ids=["forest", "perceptron"],
    )
    def test_the_order_of_rows_does_not_matter(self, estimator):
        rows = evaluations(gradients=True)
        q = fresh(10)
        expected = fitted(estimator, rows).value(q)
        learns = learner(estimator)
        for part in (slice(90, None), slice(0, 40), slice(40, 90)):
            learns.observe(rows.take(part).take(slice(None, None, -1)))
        np.testing.assert_array_equal(learns.fit().value(q), expected)

    def test_restored_learners_go_on_bit_for_bit(self):
        first = learner(FOREST)
        first.observe(evaluations(80, seed=1, gradients=True))
        second = learner(FOREST, seed=99).restore(first.state())
        for each in (first, second):
            each.observe(evaluations(30, seed=3))
        one, other = first.fit(), second.fit()
        np.testing.assert_array_equal(one.value(fresh(5)), other.value(fresh(5)))
        assert one.quality == other.quality

    def test_rows_that_ran_away_do_no_harm(self):
        away = np.array([[1e303, 0.0, 0.0], [0.0, -1e303, 1e200], [1e9, 1.0, 1.0], [3e4, 0, 0]])
        for values in (np.full(4, 1e303), np.full(4, 1.0), np.array([1e3, 1e9, 1e307, np.inf])):
            for estimator in (polynomial_ridge(degree=2), SVR(), KNeighborsRegressor()):
                learns = learner(estimator)
                learns.observe(evaluations())
                learns.observe(Evaluations(positions=away, values=values))
                surrogate = learns.fit()
                assert surrogate.n_points == 150
                expected = fitted(estimator).value(fresh(5))
                np.testing.assert_allclose(surrogate.value(fresh(5)), expected, rtol=1e-9)

    def test_nan_is_refused(self):
        learns = learner(Ridge())
        values = np.array([1.0, 2.0, np.nan, np.nan])
        with pytest.raises(
            ConfigurationError,
            match="values of training rows must be numbers, got NaN in row 2 of 4; drop such rows",
        ):
            learns.observe(Evaluations(positions=np.zeros((4, DIM)), values=values))
        positions = np.zeros((2, DIM))
        positions[1, 2] = np.nan
        with pytest.raises(
            ConfigurationError,
            match="positions of training rows must be numbers, got NaN in row 1 of 2",
        ):
            learns.observe(Evaluations(positions=positions, values=np.zeros(2)))

    def test_evaluations_of_another_dimension(self):
        with pytest.raises(ShapeError, match=r"must have shape \(n, 3\), got \(2, 4\); pass eval"):
            learner(Ridge()).observe(Evaluations(positions=np.ones((2, 4)), values=np.ones(2)))


class NanBeyond(RegressorMixin, BaseEstimator):
    """Predicts NaN far away."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.where(np.abs(X).max(axis=1) > 100.0, np.nan, 0.0)


class Recording(RegressorMixin, BaseEstimator):
    """Remembers the weights of its rows."""

    def fit(self, X, y, sample_weight=None):
        self.weights_ = np.ones(len(y)) if sample_weight is None else sample_weight
        return self

    def predict(self, X):
        return np.zeros(len(X))


class TestSettings:
    def test_names_and_parameters(self):
        made = sk.make(
            "surrogate", "sklearn", estimator="sklearn.svm.SVR", parameters={"C": 3.0}
        ).regressor
        assert (type(made), made.C) == (SVR, 3.0)
        made = sk.make("surrogate", "sklearn", estimator=Ridge(), parameters={"alpha": 3.0})
        assert made.regressor.alpha == 3.0
        name = "surrokit_sklearn.ready_made.nystroem_ridge"
        made = sk.make("surrogate", "sklearn", estimator=name, parameters={"gamma": 0.1})
        assert made.regressor[0].gamma == 0.1


def target(dim=2):
    def value(q):
        return 0.5 * q @ q + 0.25 * (q[0] - 0.5 * q[1] ** 2) ** 2

    def slope(q):
        bend = 0.5 * (q[0] - 0.5 * q[1] ** 2)
        return q + np.array([bend, -bend * q[1]])

    return sk.potential(value, slope, dim=dim)


def test_runs_sample_with_it():
    estimator = polynomial_ridge(degree=4)
    run = sk.sample(
        target(),
        surrogate=("sklearn", {"estimator": estimator, "max_points": 400}),
        chains=4,
        warmup=200,
        draws=400,
        seed=1,
    )
    assert run.acceptance.mean() > 0.7
    assert (run.rhat() < 1.05).all()
    # Moments by quadrature on a grid.
    draws = run.draws.reshape(-1, 2)
    assert np.abs(draws.mean(axis=0) - [0.125, 0.0]).max() < 0.15
    assert np.abs(np.square(draws).mean(axis=0) - [0.708, 0.751]).max() < 0.2
    assert run.fit_quality.variance < 0.1


def test_runs_sample_with_trees_and_without_gradients():
    values_only = sk.potential(lambda q: 0.5 * q @ q, dim=2)
    run = sk.sample(
        values_only,
        surrogate=("sklearn", {"estimator": RandomForestRegressor(5), "max_points": 300}),
        chains=2,
        warmup=200,
        draws=20,
        n_steps=3,
        seed=1,
    )
    assert run.acceptance.mean() > 0.5
    assert np.isfinite(run.draws).all()
