"""scikit-learn's own checks of estimators, none of which is expected to fail."""

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


@parametrize_with_checks(
    [AdditiveNetworkRegressor(), RBFNetworkRegressor(), GPRegressor(), FITCRegressor()]
)
def test_estimators_keep_to_the_rules(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
@parametrize_with_checks(
    [
        BayesianLogisticRegression(target_ess=100, chains=2),
        BayesianGLMRegressor(target_ess=100, chains=2),
        BayesianGLMRegressor(family="gamma", target_ess=100, chains=2),
    ]
)
def test_posteriors_keep_to_the_rules(estimator, check):
    check(estimator)
