"""scikit-learn's own checks of estimators, none of which is expected to fail."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from surrokit_sklearn import (
    AdditiveNetworkRegressor,
    FITCRegressor,
    GPRegressor,
    RBFNetworkRegressor,
)


@parametrize_with_checks(
    [AdditiveNetworkRegressor(), RBFNetworkRegressor(), GPRegressor(), FITCRegressor()]
)
def test_estimators_keep_to_the_rules(estimator, check):
    check(estimator)
