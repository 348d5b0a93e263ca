"""Regressors as surrogates: what they learn from, the fitted potential, and what is refused."""

import pickle
import warnings

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.cluster import KMeans
from sklearn.ensemble import BaggingRegressor, RandomForestRegressor, VotingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

import surrokit as sk
from surrokit.capabilities import GRADIENT, GRADIENT_ALONE
from surrokit.errors import ConfigurationError, SurrogateFitError
from surrokit.interfaces import Evaluations, LearningProblem
from surrokit_sklearn.estimators import polynomial_ridge, takes_weights
from surrokit_sklearn.fitted import NARROW, WIDE, CentralDifferences

DIM = 3
FOREST = RandomForestRegressor(10)


def potential(q):
    return 0.5 * np.square(q).sum(axis=1) + np.log1p(np.exp(q[:, 0] - q[:, 1]))


def gradient(q):
    slope = 1.0 / (1.0 + np.exp(q[:, 1] - q[:, 0]))
    return q + slope[:, None] * np.array([1.0, -1.0, 0.0])


def evaluations(n=150, seed=0, shift=0.0, gradients=False):
    q = np.random.default_rng(seed).standard_normal((n, DIM)) * [1.0, 1.2, 0.8] + shift
    slopes = gradient(q) if gradients else None
    return Evaluations(positions=q, values=potential(q), gradients=slopes)


def learner(estimator, seed=7, dim=DIM, **settings):
    problem = LearningProblem(dim=dim, capabilities=frozenset())
    surrogate = sk.make("surrogate", "sklearn", estimator=estimator, **settings)
    return surrogate.learner(problem, np.random.default_rng(seed))


def fitted(estimator, *blocks, **settings):
    blocks = blocks or (evaluations(),)
    learns = learner(estimator, dim=blocks[0].positions.shape[1], **settings)
    for rows in blocks:
        learns.observe(rows)
    return learns.fit()


FRESH = evaluations(100, seed=11).positions


def gradient_error(surrogate):
    exact = gradient(FRESH)
    return np.linalg.norm(surrogate.gradient(FRESH) - exact) / np.linalg.norm(exact)


class Odd(RegressorMixin, BaseEstimator):
    """Remembers what it was fitted to, and predicts a constant, by default zero."""

    def __init__(self, answer=0.0, shape=(), beyond=0.0):
        self.answer, self.shape, self.beyond = answer, shape, beyond

    def fit(self, X, y, sample_weight=None):
        self.rows_ = np.column_stack([X, y])
        self.weights_ = np.ones(len(y)) if sample_weight is None else sample_weight
        return self

    def predict(self, X):
        found = np.full((len(X), *self.shape), self.answer)
        found[np.abs(X).max(axis=1) > 100.0] = self.beyond
        return found


class Unweighted(Odd):
    """Takes no weights."""

    def fit(self, X, y):
        return super().fit(X, y)


class Failing(Odd):
    """Cannot be fitted, or only with a warning."""

    def fit(self, X, y, sample_weight=None):
        if self.answer:
            raise RuntimeError("no luck")
        warnings.warn("slow", ConvergenceWarning, stacklevel=2)
        return self


class Duck:
    """Has the methods of a regressor, and does not declare what it is."""

    fit = predict = get_params = None


class Meddling(Odd):
    """Changes what its constructor is given."""

    def __init__(self, names=()):
        self.names = list(names)


# --- the fitted potential ---


def test_what_it_is():
    surrogate = fitted(polynomial_ridge(degree=4))
    value, slope = surrogate.value_and_gradient(FRESH)
    assert_allclose(value, potential(FRESH), atol=0.1)
    assert_allclose(surrogate.value(FRESH), value)
    assert_allclose(surrogate.gradient(FRESH), slope)
    assert gradient_error(surrogate) < 0.05
    assert surrogate.capabilities == {GRADIENT, GRADIENT_ALONE}
    for part in ("regressor=Pipeline", "n_points=150", "'differences'", "held_out_variance="):
        assert part in repr(surrogate)
    for made in (surrogate, fitted(FOREST)):
        again = pickle.loads(pickle.dumps(made))
        assert_array_equal(again.gradient(FRESH), made.gradient(FRESH))


def test_gradients_are_analytic_where_known_else_differences():
    smooth = BaggingRegressor(KernelRidge(kernel="rbf", gamma=0.2, alpha=1e-6), n_estimators=2)
    surrogate = fitted(smooth)
    assert (surrogate.gradient_kind, surrogate.slope.step) == ("differences", NARROW)
    assert gradient_error(surrogate) < 0.2
    one = fitted(SVR(C=100.0, gamma=0.2))
    assert one.gradient_kind == "analytic"
    other = attrs.evolve(one, slope=CentralDifferences(regressor=one.regressor, step=NARROW))
    assert_allclose(other.gradient(FRESH), one.gradient(FRESH), atol=1e-5)
    # more rows than go into one prediction
    some, n = FRESH[:7], 200_000 // DIM**2 * 3
    slopes = other.slope(np.resize(some, (n, DIM)))
    assert_allclose(slopes[-7:], np.resize(other.slope(some), (n, DIM))[-7:])


@pytest.mark.parametrize("estimator", [FOREST, KNeighborsRegressor()])
def test_wide_differences_where_predictions_are_constant_in_pieces(estimator):
    surrogate = fitted(estimator, evaluations(400))
    assert surrogate.slope.step == WIDE
    steps = CentralDifferences(regressor=surrogate.regressor, step=0.01)
    narrow = attrs.evolve(surrogate, slope=steps)
    assert gradient_error(surrogate) < min(0.3, 0.5 * gradient_error(narrow))


def test_positions_out_of_reach_are_rejected_and_no_error():
    q = np.array([[0.0, 0.0, 0.0], [1e200, 0.0, 0.0], [np.nan, 0.0, 0.0], [0.0, -np.inf, 0.0]])
    outside = [False, True, True, True]
    surrogate = fitted(FOREST)
    value, slope = surrogate.value_and_gradient(q)
    assert_array_equal(np.isinf(value), outside)
    assert_array_equal(np.isnan(slope).any(axis=1), outside)
    assert np.isinf(surrogate.value(q[1:])).all()
    assert surrogate.gradient(np.empty((0, DIM))).shape == (0, DIM)
    turned = fitted(Odd(beyond=np.nan)).value(np.array([[0.0, 0.0, 0.0], [300.0, 0.0, 0.0]]))
    assert_array_equal(np.isinf(turned), [False, True])


# --- the fit ---


def test_the_trend_grows_where_the_regressor_does_not_and_never_bends_down():
    far = 20.0 * np.eye(DIM)
    grown = fitted(KernelRidge(kernel="rbf", gamma=1.0))
    assert (grown.value(far) > 50.0).all()
    flat = attrs.evolve(grown, curvature=0.0)
    assert np.ptp(np.append(flat.value(far), flat.level)) < 1e-6
    rows = evaluations()
    assert fitted(Ridge(), attrs.evolve(rows, values=-rows.values)).curvature == 0.0
    q = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])  # at one distance
    ring = Evaluations(positions=q, values=[1.0, 2.0, 1.0, 2.0])
    assert np.isfinite(fitted(Ridge(), ring).value(q)).all()
    constant = fitted(Ridge(), attrs.evolve(rows, values=np.full(150, 5.0)))
    assert_allclose(constant.value(FRESH), 5.0)
    assert_allclose(constant.gradient(FRESH), 0.0, atol=1e-12)
    assert fitted(Odd(shape=(1,))).value(np.zeros((2, DIM))).shape == (2,)


def test_the_estimator_given_stays_unfitted_and_random_states_come_from_the_learner():
    estimator = polynomial_ridge()
    surrogate = sk.make("surrogate", "sklearn", estimator=estimator)
    fitted(estimator)
    assert not hasattr(estimator[-1], "coef_")
    estimator.set_params(ridge__alpha=5.0)
    assert surrogate.regressor.get_params()["ridge__alpha"] == 1e-6
    one = fitted(FOREST).value(FRESH)
    assert_array_equal(fitted(FOREST).value(FRESH), one)
    assert (fitted(FOREST, seed=8).value(FRESH) != one).any()
    forest = VotingRegressor([("forest", FOREST), ("own", FOREST)])
    forest.set_params(own__random_state=5)
    states = fitted(forest).regressor.get_params()
    assert states["own__random_state"] == 5
    assert isinstance(states["forest__random_state"], int)


def test_quality_is_that_of_a_fit_to_other_points_and_no_more_are_taken_than_wanted():
    good = fitted(polynomial_ridge(degree=4), evaluations(gradients=True)).quality
    bad = fitted(Ridge(), evaluations(gradients=True)).quality
    assert good.n_points == bad.n_points >= 14
    assert good.variance < 0.02 < bad.variance
    assert good.gradient_error < 0.05 < bad.gradient_error
    assert fitted(Ridge()).quality.gradient_error is None
    assert fitted(KNeighborsRegressor(1)).quality.variance > 0.01  # it has none at its own points
    for n in (5, 49):
        assert fitted(Ridge(), evaluations(n)).quality is None
    surrogate = fitted(polynomial_ridge(degree=3), evaluations(1200))
    q = evaluations(2000, seed=11).positions
    found = np.var(surrogate.value(q) - potential(q))
    assert 0.2 * found < surrogate.quality.variance < 5.0 * found
    few = fitted(polynomial_ridge(), evaluations(500), max_points=100)
    assert few.n_points == 100
    assert 390 < few.quality.n_points <= 400
    assert fitted(Ridge(), evaluations(500), max_points=None).n_points == 500


# --- rows, and their weights ---


def seen_by(regressor, positions, values, **settings):
    """Return what a regressor is fitted to, in the order of its own: positions and weights."""
    made = fitted(regressor, Evaluations(positions=positions, values=values), **settings)
    return made.whitening.undo(made.regressor.rows_[:, :-1]), made.regressor.weights_


def test_rows_without_a_finite_value_are_left_out_and_copies_are_one_row():
    positions = np.array([[3.0], [1.0], [2.0], [0.0], [np.inf], [3.0], [3.0]])
    values = [3.0, 1.0, np.inf, 0.0, 5.0, 3.0, 3.0]
    kept, weights = seen_by(Odd(), positions, values)
    assert_allclose(kept[:, 0], [0.0, 1.0, 3.0], atol=1e-12)
    assert_array_equal(weights, [1.0, 1.0, 3.0])


def test_far_tail_rows_count_less_and_then_nothing():
    positions = np.arange(7.0)[:, None]
    values = [0.0, 12.0, 24.0, 59.0, 61.0, 119.0, 121.0]  # 12 nats are typical
    trust = [1.0, 1.0, 1 / 16, (12 / 59) ** 4, (12 / 61) ** 4, (12 / 119) ** 4]
    assert_allclose(seen_by(Odd(), positions, values)[1], trust)
    assert len(seen_by(Unweighted(), positions, values)[0]) == 4


def test_positions_that_ran_away_on_a_plateau_are_left_out():
    near = np.random.default_rng(0).standard_normal((50, 2))
    near[:, 1] = 4.0  # never moved
    for away in ([1e303, 4.0], [1e5, 4.0]):
        assert len(seen_by(Odd(), np.vstack([near, [away]]), np.zeros(51))[0]) == 50
    stuck = near.copy()
    stuck[:40, 0] = 1.0  # moved in less than half of the rows
    values = np.r_[np.arange(50) / 50, 0.0]
    assert len(seen_by(Odd(), np.vstack([stuck, [[1e9, 4.0]]]), values)[0]) == 50


def test_weights_go_to_regressors_that_take_them():
    far = evaluations(5, seed=3, shift=6.0)
    inner = make_pipeline(StandardScaler(), Odd())
    for estimator in (Odd(), inner, make_pipeline(StandardScaler(), inner)):
        last = fitted(estimator, evaluations(), far).regressor
        while not isinstance(last, Odd):
            last = last[-1]
        assert np.count_nonzero(last.weights_ < 0.1) == 5
        assert np.count_nonzero(last.weights_ > 0.9) == 150
    assert takes_weights(BaggingRegressor(Ridge(), n_estimators=2))


@pytest.mark.parametrize(
    "estimator",
    [
        KNeighborsRegressor(),
        BaggingRegressor(KNeighborsRegressor(), n_estimators=2),
        VotingRegressor([("one", Ridge()), ("two", KNeighborsRegressor())]),
        GridSearchCV(Ridge(), {"alpha": [1.0]}, cv=2),
    ],
)
def test_no_weights_where_some_part_takes_none(estimator):
    assert not takes_weights(estimator)
    surrogate = fitted(estimator, evaluations(), evaluations(5, seed=3, shift=6.0))
    assert np.isfinite(surrogate.value(FRESH)).all()


# --- what is refused ---


def test_too_few_points():
    learns = learner(Ridge())
    with pytest.raises(SurrogateFitError, match=r"needs at least 5 distinct points .* got 0"):
        learns.fit()
    learns.observe(Evaluations(positions=np.eye(DIM), values=[1.0, np.inf, 2.0]))
    with pytest.raises(SurrogateFitError, match=r"got 2 \(3 rows .* 1 not finite, and 0"):
        learns.fit()
    learns.observe(Evaluations(positions=1.0 + np.eye(DIM), values=[1.0, 1e6, 1e9]))
    with pytest.raises(SurrogateFitError, match="and 2 too far out"):
        learns.fit()
    assert fitted(Ridge(), evaluations(5)).n_points == 5


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (Failing(1.0), "Failing could not be fitted to 150 points in 3 dimensions: .*no luck"),
        (KNeighborsRegressor(500), "KNeighborsRegressor could not be fitted to"),
        (Odd(shape=(2,)), r"Odd.predict must return one number .* got shape \(150, 2\)"),
        (Odd(np.nan), "Odd predicts NaN or infinity at 150 of the 150 points"),
    ],
)
def test_fits_that_fail(estimator, message):
    with pytest.raises(SurrogateFitError, match=message):
        fitted(estimator)


def test_warnings_are_passed_on():
    with pytest.warns(ConvergenceWarning, match="slow"):
        fitted(Failing())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ConvergenceWarning, match="slow"):
            fitted(Failing())


def test_names_and_parameters():
    made = sk.make("surrogate", "sklearn", estimator="sklearn.svm.SVR", parameters={"C": 3.0})
    assert (type(made.regressor), made.regressor.C) == (SVR, 3.0)
    made = sk.make("surrogate", "sklearn", estimator=Ridge(), parameters={"alpha": 3.0})
    assert made.regressor.alpha == 3.0
    name = "surrokit_sklearn.estimators.polynomial_ridge"
    made = sk.make("surrogate", "sklearn", estimator=name, parameters={"degree": 2})
    assert made.regressor[0].degree == 2


@pytest.mark.parametrize(
    ("estimator", "settings", "message"),
    [
        (Ridge, {}, r"must be a regressor, got the class Ridge; write Ridge\(\)"),
        (3, {}, "must be a regressor, got a int; give an unfitted"),
        (StandardScaler(), {}, "must be a regressor, got a StandardScaler"),
        (KMeans(), {}, "must be a regressor, got a KMeans"),
        (Duck(), {}, "must be a regressor, got a Duck"),
        (Meddling(), {}, "estimator cannot be copied"),
        ("SVR", {}, "'SVR' cannot be imported: .* such as 'sklearn.svm.SVR'"),
        ("sklearn.svm.SVM", {}, "'sklearn.svm.SVM' cannot be imported"),
        ("sklearn.__version__", {}, "'sklearn.__version__' could not be made"),
        (Ridge(), {"parameters": {"beta": 1.0}}, "cannot be set on Ridge: Invalid parameter 'be"),
        ("sklearn.svm.SVR", {"parameters": {"c": 1}}, "could not be made of parameters c=1"),
        ("sklearn.ensemble.VotingRegressor", {}, r"of parameters \(none\): .*estim"),
        (Ridge(), {"max_points": 0}, "max_points must be a whole number of at least"),
    ],
)
def test_settings_that_make_no_sense(estimator, settings, message):
    with pytest.raises(ConfigurationError, match=message):
        sk.make("surrogate", "sklearn", estimator=estimator, **settings)


def test_an_estimator_must_be_given():
    with pytest.raises(ConfigurationError, match="surrogate 'sklearn' needs estimator"):
        sk.make("surrogate", "sklearn")
