"""scikit-learn's own checks, once for each class of estimators; failures have a reason."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from surrokit_sklearn import (
    AdditiveNetworkRegressor,
    BayesianGLMRegressor,
    BayesianLogisticRegression,
    GPRegressor,
)
from surrokit_sklearn.regressors import WIDE_CHECKS

QUICK = {"chains": 1, "sampling": {"target_ess": None, "warmup": 10, "draws": 20}}
ESTIMATORS = [
    AdditiveNetworkRegressor(),
    GPRegressor(n_search=100),
    BayesianLogisticRegression(**QUICK),
    BayesianGLMRegressor(**QUICK),
]


def expected_failures(estimator):
    wide = not isinstance(estimator, BayesianLogisticRegression | BayesianGLMRegressor)
    return dict.fromkeys(WIDE_CHECKS, "more features than samples") if wide else {}


@pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_estimators_keep_to_the_rules(estimator, check):
    check(estimator)


def test_responses_of_counts_and_times_are_tagged_as_positive():
    for family in ("poisson", "gamma", "weibull"):
        tags = BayesianGLMRegressor(family=family).__sklearn_tags__()
        assert tags.target_tags.positive_only
    assert not BayesianGLMRegressor().__sklearn_tags__().target_tags.positive_only
