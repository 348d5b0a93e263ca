"""Estimators with flat priors refuse columns that data do not decide on, and take any units."""

import numpy as np
import pytest
from scipy.special import expit

from surrokit_sklearn import BayesianGLMRegressor, BayesianLogisticRegression

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
DEPENDENT = {
    "constant": (np.column_stack([X, np.full(300, 7.0)]), "x3"),
    "collinear": (np.column_stack([X, X[:, 0] - 2.0 * X[:, 2]]), "x0, x2, x3"),
}
ESTIMATORS = [
    (BayesianLogisticRegression, {}, (RNG.random(300) < expit(X[:, 0])).astype(int)),
    (BayesianLogisticRegression, {}, RNG.integers(0, 3, 300)),
    (BayesianGLMRegressor, {"family": "poisson"}, RNG.poisson(np.exp(0.3 * X[:, 0]))),
    (BayesianGLMRegressor, {"family": "gaussian"}, X[:, 0] + RNG.normal(size=300)),
]


@pytest.mark.parametrize("kind", DEPENDENT)
@pytest.mark.parametrize(("estimator", "settings", "response"), ESTIMATORS)
def test_dependent_columns_with_flat_priors_are_refused_by_name(
    estimator, settings, response, kind
):
    inputs, names = DEPENDENT[kind]
    fit = estimator(prior_scale=None, random_state=0, target_ess=50, **settings).fit
    with pytest.raises(ValueError, match=f"columns {names} of the design are linearly dependent"):
        fit(inputs, response)


def test_names_of_features_are_those_of_the_table():
    pandas = pytest.importorskip("pandas")
    inputs = pandas.DataFrame(DEPENDENT["constant"][0], columns=["a", "b", "c", "site"])
    with pytest.raises(ValueError, match="columns site of the design"):
        BayesianLogisticRegression(prior_scale=None).fit(inputs, ESTIMATORS[0][2])


def test_a_prior_decides_on_dependent_columns():
    inputs, _ = DEPENDENT["collinear"]
    fitted = BayesianLogisticRegression(random_state=0, target_ess=50).fit(inputs, ESTIMATORS[0][2])
    assert np.isfinite(fitted.coef_).all()


def test_features_in_their_own_units_need_no_standardising():
    income, year = 60_000.0 + 20_000.0 * X[:, 0], 2007.0 + 5.0 * X[:, 1]
    inputs, response = np.column_stack([income, year]), ESTIMATORS[0][2]
    settings = {"prior_scale": None, "intercept_scale": None, "random_state": 0, "target_ess": 300}
    apart, alike = (
        BayesianLogisticRegression(standardize=standardize, **settings).fit(inputs, response)
        for standardize in (False, True)
    )
    sd = alike.coef_draws_.std(axis=0)
    assert (np.abs(apart.coef_ - alike.coef_) < 0.4 * sd).all()
    assert np.abs(np.log(apart.coef_draws_.std(axis=0) / sd)).max() < 0.3
