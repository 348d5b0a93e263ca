"""scikit-learn's own checks of the estimators."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import surrokit_sklearn
from surrokit_sklearn import BayesianGLMRegressor, BayesianLogisticRegression

QUICK = {"chains": 1, "sampling": {"target_ess": None, "warmup": 10, "draws": 20}}
ESTIMATORS = [BayesianLogisticRegression(**QUICK), BayesianGLMRegressor(**QUICK)]


@pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
@parametrize_with_checks(ESTIMATORS)
def test_estimators_keep_to_the_rules(estimator, check):
    check(estimator)


def test_responses_of_counts_and_times_are_tagged_as_positive():
    for family in ("poisson", "gamma", "weibull"):
        tags = BayesianGLMRegressor(family=family).__sklearn_tags__()
        assert tags.target_tags.positive_only
    assert not BayesianGLMRegressor().__sklearn_tags__().target_tags.positive_only


def test_an_unknown_name_is_refused():
    with pytest.raises(AttributeError, match="has no attribute 'Regressor'"):
        surrokit_sklearn.Regressor  # noqa: B018
