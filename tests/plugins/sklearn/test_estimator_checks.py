"""scikit-learn's own checks of estimators; what is expected to fail is named with its reason."""

from inspect import signature

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from surrokit_sklearn import (
    AdditiveNetworkRegressor,
    BayesianGLMRegressor,
    BayesianLogisticRegression,
    FITCRegressor,
    GPRegressor,
    RBFNetworkRegressor,
)
from surrokit_sklearn.regressors.regressor import WIDE_CHECKS

SHORT = {"warmup": 20, "draws": 30}
POSTERIORS = [
    BayesianLogisticRegression(chains=2, sampling=SHORT),
    BayesianGLMRegressor(chains=2, sampling=SHORT),
]


def expected(checks, reason):
    """Return what names checks that fail; scikit-learn 1.5 asks the estimators themselves."""
    if "expected_failed_checks" not in signature(parametrize_with_checks).parameters:
        return {}
    return {"expected_failed_checks": lambda _: dict.fromkeys(checks, reason)}


@parametrize_with_checks(
    [AdditiveNetworkRegressor(), RBFNetworkRegressor(), GPRegressor(), FITCRegressor()],
    **expected(WIDE_CHECKS, "more features than samples"),
)
def test_estimators_keep_to_the_rules(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
@parametrize_with_checks(POSTERIORS)
def test_posteriors_keep_to_the_rules(estimator, check):
    check(estimator)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
@parametrize_with_checks([BayesianGLMRegressor(family="gamma", target_ess=100, chains=2)])
def test_posteriors_of_positive_responses_keep_to_the_rules(estimator, check):
    check(estimator)
