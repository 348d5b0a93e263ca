"""Estimators with draws of posteriors inside."""

import attrs
import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose
from scipy.special import expit
from sklearn.linear_model import LogisticRegression, PoissonRegressor

import surrokit as sk
from surrokit.testing import check_potential
from surrokit_sklearn import BayesianGLMRegressor, BayesianLogisticRegression
from surrokit_sklearn.design import Columns, Rows
from surrokit_sklearn.laplace import Laplace, parts_near
from surrokit_sklearn.normal_errors import NormalErrors

RNG = np.random.default_rng(5)
N = 120
X = RNG.normal([3.0, -100.0], [2.0, 5.0], size=(N, 2))
PREDICTOR = 0.4 + 0.5 * (X[:, 0] - 3.0) - 0.1 * (X[:, 1] + 100.0)
EVENTS = (RNG.random(N) < expit(PREDICTOR)).astype(int)
COUNTS = RNG.poisson(np.exp(0.3 * PREDICTOR))
REALS = 2.0 * PREDICTOR + RNG.normal(size=N) * 1.5
TIMES = RNG.exponential(np.exp(-0.3 * PREDICTOR))
WEIGHTS = RNG.integers(0, 3, size=N).astype(float)
QUICK = {"target_ess": 400, "random_state": 0}
FEW = {"sampling": {"target_ess": None, "warmup": 20, "draws": 20}, "random_state": 0}
pytestmark = pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")

FAMILIES = {
    "gaussian": (REALS, {}),
    "student": (REALS, {"scale": 1.5, "degrees": 5.0}),
    "poisson": (COUNTS, {}),
    "negative-binomial": (COUNTS, {"size": 3.0}),
    "gamma": (TIMES, {"shape": 1.5}),
    "exponential": (TIMES, {}),
    "weibull": (TIMES, {"shape": 1.2}),
}


def near(draws, run, expected, share=1.0):
    """Hold means to ``share`` times 5 standard errors: false-alarm rate below 1e-5 for ten."""
    error = draws.std(axis=0) / np.sqrt(run.ess("bulk").min())
    assert_allclose(draws.mean(axis=0), expected, atol=5 * share * float(np.max(error)))


# --- posteriors ---


@pytest.mark.statistical
def test_draws_of_a_logistic_regression_are_those_of_its_posterior():
    """By quadrature over intercept and slope; false-alarm rate below 1e-5."""
    x = X[:, :1]
    found = BayesianLogisticRegression(prior_scale=1.5, intercept_scale=3.0, **QUICK).fit(x, EVENTS)
    z = (x[:, 0] - x.mean()) / x.std()
    a, b = np.meshgrid(np.linspace(-2, 3, 301), np.linspace(-1, 4, 301), indexing="ij")
    e = a[..., None] + b[..., None] * z
    log = (
        (EVENTS * e - np.logaddexp(0.0, e)).sum(axis=-1) - 0.5 * (a / 3) ** 2 - 0.5 * (b / 1.5) ** 2
    )
    weights = np.exp(log - log.max())
    weights /= weights.sum()
    slope = (weights * b).sum() / x.std()
    level = (weights * (a - b * x.mean() / x.std())).sum()
    near(found.coef_draws_[:, 0, 0], found.run_, slope)
    near(found.intercept_draws_[:, 0], found.run_, level)
    assert_allclose(found.coef_, found.coef_draws_.mean(axis=0))
    chance = (weights * expit(a + b * z[7])).sum()
    assert_allclose(found.predict_proba(x[7:8])[0, 1], chance, atol=0.02)


def test_what_is_left_of_coefficients_is_a_potential():
    target = NormalErrors.of(
        np.column_stack([np.ones(N), X]),
        Rows(inputs=X, response=REALS, weights=WEIGHTS),
        prior=sk.gaussian_prior(np.array([0.5, 0.0, 1.0]), np.array([np.inf, 2.0, 0.5])),
        scale=3.0,
    )
    results = check_potential(lambda: target)
    assert [r.message for r in results if r.outcome != "passed"] == []


def test_the_density_of_a_scale_is_that_of_all_with_coefficients_integrated_out():
    """By the normal density of all responses, whose covariance is s^2 I + Z P^-1 Z'."""
    z, rows = np.column_stack([np.ones(10), X[:10]]), Rows.of(X[:10], REALS[:10], None)
    mean, sd = np.array([0.5, 0.0, 0.1]), np.array([3.0, 2.0, 0.5])
    target = NormalErrors.of(z, rows, prior=sk.gaussian_prior(mean, sd), scale=1e3)
    logs = np.array([-1.0, 0.0, 0.7])
    expected = [
        -scipy.stats.multivariate_normal(
            z @ mean, np.exp(2 * t) * np.eye(10) + (z * sd**2) @ z.T
        ).logpdf(REALS[:10])
        - t
        + 0.5 * np.exp(-2 * t)  # (1e-3 a)^2
        for t in logs
    ]
    found = target.value(logs[:, None]) - 2.0 * np.log1p(np.exp(2 * logs) / 3e6)
    assert_allclose(found - found[0], np.array(expected) - expected[0], rtol=1e-6)


def test_coefficients_given_the_scale_are_normal():
    """Means and covariances of 10,000 draws, within 5 standard errors."""
    z, rows, s = np.column_stack([np.ones(N), X]), Rows.of(X, REALS, WEIGHTS), 1.7
    mean, sd = np.array([0.5, 0.0, 0.1]), np.array([3.0, 2.0, 0.5])
    z = z[WEIGHTS > 0.0]
    target = NormalErrors.of(z, rows, prior=sk.gaussian_prior(mean, sd), scale=3.0)
    drawn = target.draw_coefficients(np.full(10_000, np.log(s)), np.random.default_rng(1))
    precision = (z * rows.weights[:, None]).T @ z / s**2 + np.diag(sd**-2.0)
    right = (z * rows.weights[:, None]).T @ rows.response / s**2 + mean / sd**2
    lower = np.linalg.cholesky(precision)
    white = (drawn - np.linalg.solve(precision, right)) @ lower
    assert_allclose(white.mean(axis=0), 0.0, atol=0.05)
    assert_allclose(np.cov(white.T), np.eye(3), atol=0.08)


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_finds_what_responses_were_made_of(name):
    response, settings = FAMILIES[name]
    quick = {"target_ess": 100, "random_state": 0}
    found = BayesianGLMRegressor(family=name, settings=settings, **quick).fit(X, response)
    sign = {"gamma": -1.0}.get(name, 1.0)
    factor = 2.0 if name in ("gaussian", "student") else 0.3 * sign
    truth = factor * np.array([0.5, -0.1])
    assert (np.abs(found.coef_ - truth) < 5 * found.coef_draws_.std(axis=0)).all()
    assert found.predict(X).shape == (N,)
    mean = found.predict_interval(X)
    new = found.predict_interval(X, kind="response", random_state=1)
    assert mean.shape == new.shape == (N, 2)
    assert (mean[:, 0] <= found.predict(X)).all()
    assert (found.predict(X) <= mean[:, 1]).all()
    assert ((new[:, 1] - new[:, 0]) >= 0.9 * (mean[:, 1] - mean[:, 0])).all()
    inside = (new[:, 0] <= response) & (response <= new[:, 1])
    assert 0.75 < inside.mean() <= 1.0
    assert np.array_equal(new, found.predict_interval(X, kind="response", random_state=1))


def test_classes_are_reported_as_they_came():
    labels = np.where(EVENTS == 1, "yes", "no")
    found = BayesianLogisticRegression(**FEW).fit(X, labels)
    chances = found.predict_proba(X)
    assert found.classes_.tolist() == ["no", "yes"]
    assert_allclose(chances.sum(axis=1), 1.0)
    assert_allclose(found.predict_log_proba(X), np.log(chances))
    assert np.array_equal(found.predict(X), np.where(chances[:, 1] > 0.5, "yes", "no"))
    assert found.coef_.shape == (1, 2)
    assert found.intercept_.shape == (1,)
    interval = found.predict_interval(X, level=0.5)
    assert interval.shape == (N, 2, 2)
    assert_allclose(interval[:, 1], 1.0 - interval[:, 0, ::-1])
    assert (found.predict_interval(X, level=0.9)[:, 1, 0] <= interval[:, 1, 0]).all()


def test_several_classes_have_a_reference():
    labels = np.digitize(PREDICTOR + RNG.logistic(size=N), [0.0, 1.0])
    found = BayesianLogisticRegression(target_ess=100, random_state=0).fit(X, labels)
    assert found.coef_.shape == (3, 2)
    assert not found.coef_[0].any()
    assert not found.intercept_[0]
    assert_allclose(found.predict_proba(X).sum(axis=1), 1.0)
    assert found.score(X, labels) > 0.45
    assert found.predict_interval(X[:3]).shape == (3, 3, 2)
    plain = LogisticRegression(C=1e4, max_iter=1000).fit(X, labels)
    step = plain.coef_ - plain.coef_[0]
    assert (np.abs(found.coef_ - step) < 5 * found.coef_draws_.std(axis=0) + 1e-9).all()


# --- units, weights and priors ---


@pytest.mark.parametrize(("weights", "intercept"), [(None, False), (WEIGHTS, True)])
def test_columns_are_standardised_and_undone(weights, intercept):
    inputs = np.column_stack([X, np.full(N, 7.0)])
    rows = Rows(inputs=inputs, response=REALS, weights=weights)
    columns = Columns.of(rows, intercept=intercept, standardize=True)
    design = columns.design(inputs)[:, int(intercept) :]
    share = np.ones(N) if weights is None else weights
    mean = np.average(inputs, axis=0, weights=share)
    variance = np.average((inputs - mean) ** 2, axis=0, weights=share)
    assert_allclose(columns.scale**2, [*variance[:2], 1.0])
    coefficients = RNG.normal(size=(4, columns.count))
    level, own = columns.undo(coefficients)
    assert_allclose(
        level[:, None] + own @ inputs.T, coefficients @ columns.design(inputs).T, atol=1e-12
    )
    if intercept:
        assert_allclose(share @ design, 0.0, atol=1e-9)


@pytest.mark.parametrize("estimator", [BayesianLogisticRegression, BayesianGLMRegressor])
def test_a_weight_counts_as_so_many_rows(estimator):
    y = EVENTS if estimator is BayesianLogisticRegression else REALS
    times, order = WEIGHTS.astype(int), np.random.default_rng(0).permutation(N)
    weighted = estimator(**FEW).fit(X, y, sample_weight=WEIGHTS)
    repeated = estimator(**FEW).fit(X.repeat(times, axis=0), y.repeat(times))
    turned = estimator(**FEW).fit(X[order], y[order], sample_weight=WEIGHTS[order])
    plain = estimator(**FEW).fit(X, y)
    assert np.array_equal(weighted.coef_draws_, repeated.coef_draws_)
    assert np.array_equal(weighted.coef_draws_, turned.coef_draws_)
    assert not np.allclose(weighted.coef_, plain.coef_)


def test_rows_without_weight_are_no_rows():
    labels = np.where(np.arange(N) < 5, 2, EVENTS)
    weights = (np.arange(N) >= 5).astype(float)
    found = BayesianLogisticRegression(**FEW).fit(X, labels, sample_weight=weights)
    plain = BayesianLogisticRegression(**FEW).fit(X[5:], EVENTS[5:])
    assert found.classes_.tolist() == [0, 1]
    assert np.array_equal(found.coef_draws_, plain.coef_draws_)


def test_priors_decide_where_data_do_not():
    x = np.linspace(-1, 1, 30)[:, None]
    separated = BayesianLogisticRegression(**FEW).fit(x, (x[:, 0] > 0).astype(int))
    assert 0.5 < separated.coef_[0, 0] * x.std() < 20.0
    collinear = np.column_stack([X, X[:, 0] - 2.0 * X[:, 1]])
    assert np.isfinite(BayesianLogisticRegression(**FEW).fit(collinear, EVENTS).coef_).all()


def test_responses_that_are_met_exactly_have_small_errors():
    found = BayesianGLMRegressor(**QUICK).fit(X, X @ [1.0, 2.0])
    assert_allclose(found.coef_, [1.0, 2.0], rtol=1e-3)
    assert 0.0 < found.scale_ < 0.01 * (X @ [1.0, 2.0]).std()


def test_a_known_scale_is_taken():
    found = BayesianGLMRegressor(settings={"scale": 1.5}, **FEW).fit(X, REALS)
    assert found.scale_ == 1.5
    assert (found.scale_draws_ == 1.5).all()
    refitted = found.set_params(family="poisson", settings=None).fit(X, COUNTS)
    assert not hasattr(refitted, "scale_")


# --- many rows ---


@pytest.fixture(scope="module")
def many():
    rng = np.random.default_rng(8)
    x = rng.normal(size=(60_000, 4))
    e = x @ [0.5, -0.3, 0.0, 0.2] - 0.5
    return x, (rng.random(len(x)) < expit(e)).astype(int), rng.poisson(np.exp(0.5 * e))


@pytest.mark.parametrize("case", ["weights", "poisson"])
def test_with_many_rows_a_few_of_them_decide(many, case):
    x, response, counts = many[0] + [2.0, -5.0, 0.0, 1.0], *many[1:]
    weights = np.where(np.arange(len(x)) % 2, 2.0, 0.0)
    estimator, plain = BayesianLogisticRegression(**QUICK), LogisticRegression(C=1e4)
    if case == "poisson":
        weights, response = None, counts
        estimator = BayesianGLMRegressor(family="poisson", **QUICK)
        plain = PoissonRegressor(alpha=0)
    found = estimator.fit(x, response, sample_weight=weights)
    assert found.run_.calls["rows"] > 0
    assert found.run_.calls["gradient"] <= 2
    assert found.run_.acceptance.min() > 0.8
    assert found.run_.ess("bulk").min() >= 400
    plain.fit(x, response, sample_weight=weights)
    sd = found.coef_draws_.std(axis=0)
    assert (np.abs(np.ravel(found.coef_) - np.ravel(plain.coef_)) < 0.4 * sd).all()
    level = np.ravel(found.intercept_ - plain.intercept_)
    assert np.abs(level) < 0.4 * found.intercept_draws_.std()


@pytest.mark.parametrize("by_few", [False, True])
def test_a_laplace_approximation_is_that_at_the_mode_and_starts_are_about_it(many, by_few):
    x, y, prior, zero = (
        many[0],
        many[1].astype(float),
        sk.gaussian_prior(0.0, np.full(4, 3.0)),
        np.zeros(4),
    )
    target = sk.rows_potential("logistic", x, y, prior=prior)
    normal = Laplace.of(target, zero)
    if by_few:
        few = [
            sk.rows_potential("logistic", x[:2000], y[:2000], prior=prior, weights=np.full(2000, w))
            for w in (30.0, 1.0)
        ]
        normal = Laplace.by_few(target, few[0], prior, zero)
        assert Laplace.by_few(target, few[1], prior, zero) is None  # steps are too long
    slope = target.gradient(normal.mean[None])[0]
    assert slope @ np.linalg.solve(normal.precision, slope) < 1e-4
    assert_allclose(normal.precision, target.hessian(normal.mean[None])[0], rtol=0.02, atol=20.0)
    assert_allclose(normal.covariance @ normal.precision, np.eye(4), atol=1e-9)
    apart = attrs.evolve(normal, mean=normal.mean + 0.1)
    rng = np.random.default_rng(0)
    assert normal.misfit(target, 50, rng) < 0.1 < apart.misfit(target, 50, rng)
    moved = normal.at_mean(target)
    assert moved.misfit(target, 50, rng) < 0.7 * normal.misfit(target, 50, rng)
    starts = parts_near(normal, target, target, 60_000, 3, rng)["initial"]
    assert_allclose(starts.mean(axis=0), moved.mean)
    assert parts_near(None, target, target, 60_000, 3, rng) == {"sampler": "hmc"}


# --- what is refused ---


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"family": "tweedie"}, "family must be one of gaussian, student, poisson"),
        ({"family": "poisson", "settings": {"size": 1}}, "'poisson' has no setting size"),
        ({"family": "student"}, "'student' needs scale"),
        ({"family": "poisson"}, "response must be whole numbers of at least 0"),
        ({"prior_scale": 0.0}, "prior_scale must be a positive number, or None"),
        ({"intercept_scale": "a"}, "intercept_scale must be a positive number, or None"),
        ({"chains": 0}, "chains must be a whole number of at least 1, got 0"),
        ({"target_ess": -1}, "target_ess must be a positive number, got -1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        BayesianGLMRegressor(**settings).fit(X, REALS)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(3), r"sample_weight.shape == \(3,\), expected \(120,\)"),
        (-np.ones(N), "sample_weight must be finite and not negative"),
        (np.full(N, np.nan), "sample_weight must be finite and not negative"),
        (np.zeros(N), "sample_weight is zero for all rows"),
    ],
)
def test_weights_that_make_no_sense_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        BayesianGLMRegressor().fit(X, REALS, sample_weight=weights)


@pytest.mark.parametrize(
    ("estimator", "response", "column", "names"),
    [
        (BayesianLogisticRegression(prior_scale=None), EVENTS, np.full(N, 7.0), "x2"),
        (BayesianLogisticRegression(prior_scale=None), np.arange(N) % 3, X[:, 1], "x1, x2"),
        (BayesianGLMRegressor(prior_scale=None), REALS, X @ [1.0, -2.0], "x0, x1, x2"),
    ],
)
def test_dependent_columns_with_flat_priors_are_refused_by_name(estimator, response, column, names):
    with pytest.raises(ValueError, match=f"columns {names} of the design are linearly dependent"):
        estimator.fit(np.column_stack([X, column]), response)


def test_one_class_and_intervals_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="at least two classes, got one class, 1"):
        BayesianLogisticRegression().fit(X, np.ones(N, dtype=int))
    found = BayesianGLMRegressor(**FEW).fit(X, REALS)
    with pytest.raises(ValueError, match="level must be between 0 and 1, got 90"):
        found.predict_interval(X, level=90)
    with pytest.raises(ValueError, match="kind must be 'mean' or 'response', got 'new'"):
        found.predict_interval(X, kind="new")
