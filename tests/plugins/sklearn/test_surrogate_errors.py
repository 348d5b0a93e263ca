"""What is said where a regressor cannot be a surrogate, or cannot be fitted."""

import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.preprocessing import StandardScaler

import surrokit as sk
from surrokit.contracts.learner import Evaluations, LearningProblem
from surrokit.errors import ConfigurationError, SurrogateFitError

DIM = 3


def evaluations(n=150):
    q = np.random.default_rng(0).standard_normal((n, DIM))
    return Evaluations(positions=q, values=0.5 * np.square(q).sum(axis=1) + np.cos(q[:, 0]))


def learner(estimator, **settings):
    problem = LearningProblem(dim=DIM, capabilities=frozenset())
    surrogate = sk.make("surrogate", "sklearn", estimator=estimator, **settings)
    return surrogate.learner(problem, np.random.default_rng(7))


def fitted(estimator, rows=None, **settings):
    learns = learner(estimator, **settings)
    learns.observe(evaluations() if rows is None else rows)
    return learns.fit()


class Zero(RegressorMixin, BaseEstimator):
    """Predicts zero."""

    def fit(self, X, y, sample_weight=None):
        return self

    def predict(self, X):
        return np.zeros(len(X))


class Raising(Zero):
    """Cannot be fitted."""

    def fit(self, X, y, sample_weight=None):
        raise RuntimeError("no luck")


class Warning_(Zero):
    """Warns when fitted."""

    def fit(self, X, y, sample_weight=None):
        warnings.warn("slow", ConvergenceWarning, stacklevel=2)
        return self


class Twofold(Zero):
    """Predicts two numbers for each row."""

    def predict(self, X):
        return np.zeros((len(X), 2))


class Column(Zero):
    """Predicts a column."""

    def predict(self, X):
        return np.zeros((len(X), 1))


class AllNan(Zero):
    """Predicts NaN."""

    def predict(self, X):
        return np.full(len(X), np.nan)


class Duck:
    """Has the methods of a regressor, and says nothing of its kind."""

    fit = predict = get_params = None


class Meddling(Zero):
    """Changes what its constructor is given."""

    def __init__(self, names=()):
        self.names = list(names)


def test_too_few_points():
    learns = learner(Ridge())
    with pytest.raises(SurrogateFitError, match=r"needs at least 5 distinct points .* got 0"):
        learns.fit()
    learns.observe(Evaluations(positions=np.eye(DIM), values=[1.0, np.inf, 2.0]))
    with pytest.raises(
        SurrogateFitError,
        match=r"got 2 \(3 rows were observed, 1 of them not finite, and 0 distinct ones were "
        "too far out\\); explore for longer",
    ):
        learns.fit()
    learns.observe(Evaluations(positions=1.0 + np.eye(DIM), values=[1.0, 1e6, 1e9]))
    with pytest.raises(SurrogateFitError, match="and 2 distinct ones were too far out"):
        learns.fit()


def test_the_fewest_points_give_a_fit():
    assert fitted(Ridge(), evaluations(5)).n_points == 5


def test_a_fit_that_fails():
    with pytest.raises(
        SurrogateFitError,
        match="Raising could not be fitted to 150 points in 3 dimensions: RuntimeError: no "
        "luck; explore for longer, or change its settings",
    ):
        fitted(Raising())
    with pytest.raises(SurrogateFitError, match="KNeighborsRegressor could not be fitted to"):
        fitted(KNeighborsRegressor(500))


def test_warnings_are_passed_on():
    with pytest.warns(ConvergenceWarning, match="slow"):
        fitted(Warning_(), hold_out=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ConvergenceWarning, match="slow"):
            fitted(Warning_())


def test_predictions_of_another_shape():
    with pytest.raises(
        SurrogateFitError,
        match=r"Twofold.predict must return one number for each of 150 rows, got shape "
        r"\(150, 2\); use a regressor for a single target",
    ):
        fitted(Twofold())
    assert fitted(Column()).value(np.zeros((2, DIM))).shape == (2,)


def test_predictions_that_are_nan():
    with pytest.raises(
        SurrogateFitError,
        match="AllNan predicts NaN or infinity at 150 of the 150 points that it was fitted to",
    ):
        fitted(AllNan())


def test_overflow_with_every_row_in_full():
    rows = evaluations(20)
    values = rows.values.copy()
    values[3] = 1e200
    with pytest.raises(SurrogateFitError, match=r"values as large as .* overflow when squared"):
        fitted(Ridge(), Evaluations(positions=rows.positions, values=values), tail="full")
    positions = rows.positions.copy()
    positions[3] = 1e300
    with pytest.raises(SurrogateFitError, match="covariance of the training rows is not"):
        fitted(Ridge(), Evaluations(positions=positions, values=rows.values), tail="full")


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (Ridge, r"must be a regressor, got the class Ridge; write Ridge\(\)"),
        (3, "got a int without fit, predict, get_params; give an unfitted regressor"),
        (StandardScaler(), "got a StandardScaler without predict"),
        (KMeans(), "got a KMeans, which scikit-learn does not count as one"),
        (LogisticRegression(), "got a LogisticRegression, which scikit-learn does not count"),
        (Duck(), "got a Duck, which scikit-learn does not count as one"),
        (Meddling(), "estimator cannot be copied: .* must keep what its constructor is given"),
        ("SVR", "estimator 'SVR' cannot be imported: .* such as 'sklearn.svm.SVR'"),
        ("sklearn.svm.SVM", "estimator 'sklearn.svm.SVM' cannot be imported: "),
        ("sklearn.smv.SVR", "estimator 'sklearn.smv.SVR' cannot be imported: No module"),
        ("sklearn.__version__", "estimator 'sklearn.__version__' is of type str"),
        ("sklearn.cluster.KMeans", "got a KMeans, which"),
    ],
)
def test_what_is_no_regressor(estimator, message):
    with pytest.raises(ConfigurationError, match=message):
        sk.make("surrogate", "sklearn", estimator=estimator)


def test_no_estimator():
    with pytest.raises(ConfigurationError, match="surrogate 'sklearn' needs estimator; pass"):
        sk.make("surrogate", "sklearn")


@pytest.mark.parametrize(
    ("estimator", "parameters", "message"),
    [
        (Ridge(), {"beta": 1.0}, "parameters cannot be set on Ridge: Invalid parameter 'beta'"),
        ("sklearn.svm.SVR", {"c": 1}, r"'sklearn.svm.SVR' could not be made of parameters c=1"),
        ("sklearn.ensemble.VotingRegressor", {}, r"of parameters \(none\): .* 'estimators'"),
    ],
)
def test_parameters_that_there_are_not(estimator, parameters, message):
    with pytest.raises(ConfigurationError, match=message):
        sk.make("surrogate", "sklearn", estimator=estimator, parameters=parameters)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"trend": "cubic"}, "trend must be one of 'isotropic', 'none', got 'cubic'"),
        ({"tail": "cut"}, "tail must be one of 'down-weighted', 'full', got 'cut'"),
        ({"gradient": "exact"}, "gradient must be one of 'auto', 'differences', got 'exact'"),
        ({"step": 0.0}, "step must be a positive finite number"),
        ({"max_points": 0}, "max_points must be a whole number of at least 1, or None"),
        ({"hold_out": 0.9}, "hold_out must be a share between 0 and 0.5, got 0.9"),
        ({"hold_out": None}, "hold_out must be a share between 0 and 0.5, got None"),
    ],
)
def test_impossible_settings(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        sk.make("surrogate", "sklearn", estimator=Ridge(), **settings)
