"""Regressions: families by name, dense and sparse rows, offsets, weights, events and priors."""

from __future__ import annotations

import pickle

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.special import expit
from scipy.stats import norm

import surrokit as sk
from surrokit import capabilities as can
from surrokit.errors import ConfigurationError, ShapeError, TargetError
from surrokit.potentials import Ball
from surrokit.registry.catalogue import Catalogue
from surrokit.testing import check_potential
from surrokit_problems.design import Design, whitening
from surrokit_problems.families import LOGISTIC, Family
from surrokit_problems.regression import simulate_regression
from surrokit_problems.rows import GeneralizedLinearModel

RNG = np.random.default_rng(0)
X = 0.6 * RNG.standard_normal((300, 3)) * (RNG.random((300, 3)) < 0.7)
ETA = X @ [0.5, -0.4, 0.8]
COUNTS = RNG.poisson(np.exp(ETA)).astype(float)
TIMES = RNG.exponential(np.exp(-ETA))
EVENTS = (RNG.random(300) < 0.7).astype(float)
OFFSET = 0.3 * RNG.standard_normal(300)
ONES = np.ones(300)
WEIGHTS = RNG.integers(0, 4, 300).astype(float)
POSITIONS = 0.5 * RNG.standard_normal((3, 3))

FAMILIES = {
    "gaussian": (COUNTS, {"scale": 0.5}),
    "student": (COUNTS, {"degrees": 3.0}),
    "logistic-errors": (COUNTS, {"scale": 2.0}),
    "logistic": (EVENTS, {}),
    "probit": (EVENTS, {}),
    "poisson": (COUNTS, {}),
    "negative-binomial": (COUNTS, {"size": 2.0}),
    "gamma": (TIMES, {"shape": 1.5}),
    "exponential": (TIMES, {"event": EVENTS}),
    "weibull": (TIMES, {"event": EVENTS, "shape": 1.3}),
}
EACH = pytest.mark.parametrize("name", FAMILIES)


def target(name, design=X, prior=2.0, chosen=slice(None), **more):
    response, settings = FAMILIES[name]
    event = {"event": EVENTS[chosen]} if "event" in settings else {}
    return sk.rows_potential(
        name, design, response[chosen], prior=prior, **{**settings, **event, **more}
    )


def failures(make):
    """Return the checks of a target that do not pass, which are those of its contract."""
    return [result.name for result in check_potential(make) if result.outcome == "failed"]


@pytest.mark.parametrize("name", ["student", "logistic", "poisson"])
def test_sparse_regressions_keep_to_the_contract(name):
    """Dense ones are the examples of the part, a family each."""
    thin = sparse.csr_array(X)
    assert failures(lambda: target(name, thin, offset=OFFSET, weights=WEIGHTS)) == []


@EACH
def test_weights_count_rows_as_often_and_offsets_are_columns(name):
    often = np.repeat(np.arange(300), WEIGHTS.astype(int))
    weighted = target(name, weights=WEIGHTS)
    repeated = target(name, X[often], chosen=often)
    for method in ("value", "gradient", "hessian"):
        found, expected = (getattr(one, method)(POSITIONS) for one in (weighted, repeated))
        assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    beside = target(name, np.column_stack([X, OFFSET]), prior=None)
    ours = target(name, offset=OFFSET, prior=None)
    with_one = np.column_stack([POSITIONS, np.ones(3)])
    assert_allclose(ours.value(POSITIONS), beside.value(with_one), rtol=1e-10)
    assert_allclose(ours.gradient(POSITIONS), beside.gradient(with_one)[:, :3], rtol=1e-9)


@EACH
def test_sparse_designs_change_nothing_and_regressions_travel(name):
    dense = target(name)
    factor, rows, owners = np.tril(np.ones((3, 3))), np.array([3, 0, 3, 299]), np.arange(4) % 3
    ball = {"ball": Ball(centre=np.zeros(3), radius=1.0)} if dense.family.local else {}
    expected = dense.expand(POSITIONS[0]).remainders(POSITIONS, rows, owners)
    for form in (sparse.csr_array, sparse.csc_matrix, sparse.coo_matrix):
        thin = pickle.loads(pickle.dumps(target(name, form(X))))
        assert thin.capabilities == dense.capabilities
        for method in ("value", "gradient", "hessian"):
            found = getattr(thin, method)(POSITIONS)
            assert_allclose(found, getattr(dense, method)(POSITIONS), rtol=1e-9, atol=1e-9)
        product = dense.hessian_product(POSITIONS, POSITIONS)
        assert_allclose(thin.hessian_product(POSITIONS, POSITIONS), product, atol=1e-9)
        assert_allclose(thin.row_bounds(factor, **ball), dense.row_bounds(factor, **ball))
        expansion = pickle.loads(pickle.dumps(thin.expand(POSITIONS[0])))
        assert_allclose(expansion.remainders(POSITIONS, rows, owners), expected, atol=1e-12)
        some = thin.select(rows)
        assert_allclose(some.value(POSITIONS), dense.select(rows).value(POSITIONS))
        assert can.CONVEX not in some.capabilities  # rows alone may leave directions flat


@pytest.mark.parametrize("form", [np.asarray, np.float32, sparse.csr_array])
@pytest.mark.parametrize("family", ["logistic", "poisson", "multinomial"])
def test_columns_of_a_design_need_not_be_made(form, family):
    """Those of features in single precision are those of the same numbers in double."""
    columns = RNG.standard_normal((4, 2))
    rows = form(X)
    whole = np.column_stack([np.float64(X.astype(np.float32) if form is np.float32 else X), ONES])
    response = np.arange(300) % 3 if family == "multinomial" else EVENTS
    made = sk.rows_potential(family, whole @ columns, response, prior=2.0)
    ours = sk.rows_potential(family, rows, response, prior=2.0, columns=columns)
    b, rng = 0.3 * RNG.standard_normal((5, made.dim)), np.random.default_rng(3)
    for method in ("value", "gradient", "hessian", "hessian_product", "hessian_diagonal"):
        if family != "multinomial" or method != "hessian_diagonal":
            more = (b,) if method == "hessian_product" else ()
            found, expected = (getattr(one, method)(b, *more) for one in (ours, made))
            assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    factor, pairs = np.tril(rng.standard_normal((made.dim, made.dim))), np.arange(50) % 5
    ball = {"ball": Ball(centre=b[0], radius=1.0)} if made.family.local else {}
    assert_allclose(ours.row_bounds(factor, **ball), made.row_bounds(factor, **ball), rtol=1e-9)
    for order in (2, 3):
        found, expected = (one.expand(b[0], order) for one in (ours, made))
        assert_allclose(found.value(b), expected.value(b), rtol=1e-6)
        some = rng.integers(300, size=50)
        assert_allclose(
            found.remainders(b, some, pairs), expected.remainders(b, some, pairs), atol=1e-10
        )
    assert ours.predictor is None


@pytest.mark.parametrize("family", ["logistic", "poisson"])
def test_what_is_kept_is_asked_for_again_by_its_own_arguments(family):
    kept, rows, owners = target(family), np.array([3, 0, 7]), np.arange(3)
    for place, order in [(0, 2), (0, 3), (1, 3), (1, 2), (0, 2)]:
        found = kept.expand(POSITIONS[place], order)
        expected = target(family).expand(POSITIONS[place], order)
        assert_allclose(found.value(POSITIONS), expected.value(POSITIONS), rtol=1e-12)
        left = expected.remainders(POSITIONS, rows, owners)
        assert_allclose(found.remainders(POSITIONS, rows, owners), left, rtol=1e-9)
        factor = (1.0 + place) * np.eye(3)
        ball = {"ball": Ball(centre=POSITIONS[place], radius=1.0)} if kept.family.local else {}
        bounds = [each.row_bounds(factor, order, **ball) for each in (kept, target(family))]
        assert_allclose(*bounds, rtol=1e-12)


def test_third_derivatives_of_many_rows_keep_seven_digits_in_every_direction():
    """Columns are far from 0 and of unlike size; products are in single precision."""
    rng = np.random.default_rng(0)
    rows = (rng.standard_normal((2000, 80)) + 3.0) * np.geomspace(1e-3, 1e3, 80)
    design, weights = Design(rows), rng.standard_normal(2000)
    factor = whitening(design.gram(np.abs(weights)))
    ways = (factor @ rng.standard_normal((80, 20))).T
    found = np.einsum(
        "ijk,ni,nj,nk->n", design.third_moments(weights, factor), *[ways] * 3, optimize=True
    )
    cubes = (rows @ ways.T) ** 3
    assert_allclose(found, weights @ cubes, atol=1e-6 * (np.abs(weights) @ np.abs(cubes)).max())


def test_priors_are_normal_and_flat_unless_given():
    flat = target("poisson", prior=None)
    normal = sk.gaussian_prior([0.5, 0.0, -1.0], [1.0, 2.0, 0.3])
    pulled = target("poisson", prior=normal)
    value, gradient = normal.value_and_gradient(POSITIONS)
    assert_allclose(pulled.value(POSITIONS) - flat.value(POSITIONS), value, rtol=1e-8)
    assert_allclose(pulled.gradient(POSITIONS) - flat.gradient(POSITIONS), gradient, rtol=1e-8)
    v = pulled.expand(POSITIONS[0]).value(POSITIONS) - flat.expand(POSITIONS[0]).value(POSITIONS)
    assert_allclose(v, value, rtol=1e-7)
    assert can.CONVEX in pulled.capabilities
    assert can.CONVEX not in flat.capabilities


@pytest.mark.parametrize(
    "prior", [2.0, None, sk.gaussian_prior([0.5, 0.0, -1.0], [np.inf, 2.0, 1.0])]
)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_without_weights_a_logistic_regression_is_faster_and_the_same(prior, form):
    fast = target("logistic", form(X), prior=prior, offset=OFFSET)
    plain = target("logistic", form(X), prior=prior, offset=OFFSET, weights=np.ones(300))
    assert can.METRICS | can.HESSIANS <= fast.capabilities == plain.capabilities
    pairs = [(t.value(POSITIONS), *t.value_and_gradient(POSITIONS)) for t in (fast, plain)]
    for found, expected in zip(*pairs, strict=True):
        assert_allclose(found, expected, rtol=1e-12)
    assert_allclose(fast.hessian(POSITIONS), plain.hessian(POSITIONS), rtol=1e-12, atol=1e-12)
    assert_allclose(fast.value(1e4 * POSITIONS), plain.value(1e4 * POSITIONS), rtol=1e-12)


@EACH
def test_what_is_offered_beyond_the_hessian_goes_by_the_family(name):
    """The contract compares it with differences, at examples of all families."""
    offered = target(name, weights=WEIGHTS).capabilities
    assert (can.HESSIAN_DERIVATIVE in offered) == (name not in ("student", "probit"))
    assert (can.METRIC_DERIVATIVE in offered) == (name in ("gaussian", "logistic", "poisson"))
    assert (can.CONVEX in offered) == (name != "student")


def test_several_blocks_are_the_sum_of_their_rows():
    rng = np.random.default_rng(2)
    design, response = rng.standard_normal((70_001, 3)), (rng.random(70_001) < 0.4) * 1.0
    e = design @ POSITIONS.T
    terms = np.logaddexp(0.0, e) - response[:, None] * e
    prior = -norm(0, 2.0).logpdf(POSITIONS).sum(axis=1)
    residuals = (expit(e) - response[:, None]).T @ design + POSITIONS / 4.0
    for weights in (None, np.ones(70_001)):
        ours = GeneralizedLinearModel(design, response, LOGISTIC, 2.0, weights=weights)
        value, gradient = ours.value_and_gradient(POSITIONS)
        assert_allclose(value, terms.sum(axis=0) + prior, rtol=1e-12)
        assert_allclose(gradient, residuals, rtol=1e-9, atol=1e-9)


def test_far_out_logistic_values_are_right_and_derivatives_those_of_the_prior():
    ours = GeneralizedLinearModel(X, EVENTS, LOGISTIC)
    far = np.array([[1e4] * 3, [0.1] * 3, [-1e8] * 3])
    value, gradient = ours.value_and_gradient(far)
    z = X @ far.T
    terms = (np.logaddexp(0, z) - EVENTS[:, None] * z).sum(axis=0)
    prior = 0.5 * np.square(far).sum(axis=1) / 100 + 3 * np.log(10.0 * np.sqrt(2.0 * np.pi))
    assert_allclose(value, terms + prior, rtol=1e-12)
    assert np.isfinite(gradient).all()
    away, ones = np.array([[1e8, 1e8, 1e8], [-1e8, -1e8, -1e8]]), np.ones((2, 3))
    plain = GeneralizedLinearModel(1.0 + np.abs(X), EVENTS, LOGISTIC)
    assert_allclose(plain.hessian_product(away, ones), 0.01 * ones, atol=1e-12)
    assert_allclose(plain.hessian_form_gradient(away, ones), 0.0, atol=1e-12)
    assert_allclose(plain.hessian_trace_gradient(away, np.ones((2, 3, 3))), 0.0, atol=1e-12)
    assert_allclose(ours.value(np.array([[np.inf] * 3, [np.nan, 0, 0]])), np.inf)
    separated = GeneralizedLinearModel(np.ones((8, 1)), np.ones(8), LOGISTIC, None)
    assert_allclose(separated.value(np.array([[20.0]])), 8 * np.log1p(np.exp(-20)), atol=1e-14)


def test_simulated_data_follow_the_recipe():
    design, response, truth = simulate_regression(50_000, 10, seed=3)
    assert_allclose(design[:, 0], 0.1)
    assert_allclose(design[:, 1:].std(axis=0), 0.1, rtol=0.02)
    assert ((truth >= 0) & (truth <= 1)).all()
    assert abs(response.mean() - expit(design @ truth).mean()) < 4 * 0.5 / np.sqrt(50_000)
    again = simulate_regression(50_000, 10, seed=3)
    assert_allclose(again[0], design)
    assert_allclose(again[1], response)


def test_a_family_of_ones_own():
    smooth = Family(
        name="smooth absolute errors",
        value=lambda e, y: np.sqrt(1.0 + np.square(y - e)),
        first=lambda e, y: (e - y) / np.sqrt(1.0 + np.square(y - e)),
        second=lambda e, y: (1.0 + np.square(y - e)) ** -1.5,
        third_bound=3 * 0.5 / 1.25**2.5,  # of 3 u / (1 + u^2)^(5/2), at u = 1/2
        convex=True,
    )
    assert failures(lambda: sk.rows_potential(smooth, X, COUNTS, prior=2.0)) == []


@pytest.mark.parametrize("name", ["logistic", "regression"])
def test_components_take_files(name, tmp_path):
    sparse.save_npz(tmp_path / "x.npz", sparse.csr_array(X))
    np.save(tmp_path / "y.npy", EVENTS)
    settings = {"design": str(tmp_path / "x.npz"), "response": tmp_path / "y.npy"}
    given = {"family": "probit"} if name == "regression" else {}
    expected = sk.make("potential", name, design=X, response=EVENTS, **given).value(POSITIONS)
    assert_allclose(sk.make("potential", name, **settings, **given).value(POSITIONS), expected)


def test_files_that_hold_no_array_are_refused(tmp_path):
    (tmp_path / "x.npy").write_text("1 2 3")
    (tmp_path / "x.npz").write_text("no")
    for name in ("x.npy", "absent.npy", "x.npz"):
        with pytest.raises(TargetError, match=rf"design must be .*{name} could not be read"):
            GeneralizedLinearModel(tmp_path / name, EVENTS, LOGISTIC)
    with pytest.raises(TargetError, match="response must be an array of numbers"):
        GeneralizedLinearModel(X, ["no"] * 300, LOGISTIC)


@pytest.mark.parametrize(
    ("family", "response", "settings", "message"),
    [
        ("poison", COUNTS, {}, "family must be one of exponential, gamma, .*, or a Family, got"),
        ("poisson", COUNTS + 0.5, {}, "response must be whole numbers of at least 0, got"),
        ("gamma", COUNTS, {}, "response must be positive, got 0 in row"),
        ("logistic", COUNTS, {}, r"response must be zeros and ones, got .* in row \d+; recode"),
        ("logistic", EVENTS + np.nan, {}, "response must be finite, got"),
        ("poisson", COUNTS, {"scale": 2.0}, "the family 'poisson' has no setting scale"),
        (LOGISTIC, EVENTS, {"scale": 2.0}, "the family 'logistic' has no scale; leave that out"),
        ("gamma", TIMES, {"event": EVENTS}, "event goes with times, which the family 'gamma"),
        ("weibull", -TIMES, {}, "response must be times above 0, got -"),
        ("weibull", TIMES, {"event": 2 * EVENTS}, "event must be zeros and ones, got others"),
        ("poisson", COUNTS, {"weights": -WEIGHTS}, "weights must not be negative, got -3"),
        ("poisson", COUNTS, {"offset": OFFSET * np.nan}, "offset must be finite, got"),
        ("poisson", COUNTS, {"prior": "wide"}, "prior must be that of surrokit.gaussian_prior"),
        ("negative-binomial", COUNTS, {"size": -1.0}, "size must be positive and finite, got -1"),
        (X, COUNTS, {}, "family must be a name or a Family, got .*. Give the family first, then"),
        (3, COUNTS, {}, "family must be a name or a Family, got 3. Give the family first"),
    ],
)
def test_what_makes_no_sense_is_refused(family, response, settings, message):
    with pytest.raises(ConfigurationError, match=message):
        sk.rows_potential(family, X, response, **settings)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_designs_that_are_not_finite_are_refused(form):
    design = form(np.where(X > 0.5, np.inf, X))
    with pytest.raises(ConfigurationError, match="design must be finite, got"):
        sk.rows_potential("probit", design, EVENTS)


@pytest.mark.parametrize(
    ("family", "settings", "message"),
    [
        ("poisson", {"weights": WEIGHTS[:-1]}, r"weights must have shape \(300,\), one number for"),
        ("logistic", {"prior": sk.gaussian_prior(0.0, [1.0, 2.0])}, r"sd of a prior .* \(3,\)"),
        ("weibull", {"event": EVENTS[:-1]}, r"event must have the shape of response, \(300,\), g"),
        ("poisson", {"data": X[0]}, r"design must have shape .* got \(3,\) and \(300,\)"),
        ("poisson", {"data": X[1:]}, r"design must have shape .* got \(299, 3\) and \(300,\)"),
    ],
)
def test_shapes_are_to_agree(family, settings, message):
    given = {"data": X, "response": FAMILIES[family][0], **settings}
    with pytest.raises(ShapeError, match=message):
        sk.rows_potential(family, **given)


def test_expansions_and_bounds_say_what_they_need():
    probit, logistic = target("probit"), target("logistic")
    with pytest.raises(ShapeError, match=r"centre must have shape \(3,\), got \(3, 3\)"):
        probit.expand(POSITIONS)
    with pytest.raises(ShapeError, match=r"factor must have shape \(3, 3\), got \(3,\)"):
        probit.row_bounds(POSITIONS[0])
    for ask in (probit.expand, probit.row_bounds):
        with pytest.raises(ConfigurationError, match=r"'probit' .* to an order of 2, got 3; give"):
            ask(np.eye(3), order=3)
    with pytest.raises(ConfigurationError, match="to an order of 2 or 3, got 4; give one of these"):
        logistic.expand(POSITIONS[0], order=4)
    with pytest.raises(ConfigurationError, match="'poisson' have no bound at every position; give"):
        target("poisson").row_bounds(np.eye(3))


def test_settings_of_simulated_and_plain_logistic_regressions():
    with pytest.raises(ConfigurationError, match="prior_variance must be positive and finite, got"):
        sk.make("potential", "logistic", design=X, response=EVENTS, prior_variance=0.0)
    with pytest.raises(ConfigurationError, match="n_rows and dim must be at least 1"):
        sk.make("potential", "simulated-logistic", n_rows=0)
    narrow = sk.make("potential", "logistic", design=X, response=EVENTS, prior_variance=4.0)
    assert_allclose(narrow.value(POSITIONS), target("logistic").value(POSITIONS))


def test_without_a_plugin_it_says_what_to_do(monkeypatch):
    nothing = Catalogue(entries={})
    monkeypatch.setattr("surrokit.tables.rows.default_catalogue", lambda: nothing)
    with pytest.raises(ConfigurationError, match="plugin with a potential that serves 'rows', got"):
        target("poisson")


def test_bounds_that_leave_out_the_fourth_derivative_are_rejected():
    def none(e, y, reach):
        return np.zeros(np.broadcast_shapes(np.shape(e), np.shape(y), np.shape(reach)))

    for family in (LOGISTIC, attrs.evolve(LOGISTIC, fourth_bound=none)):
        made = GeneralizedLinearModel(X, EVENTS, family, prior=2.0)
        kinds = {name.partition("[")[0] for name in failures(lambda made=made: made)}
        assert ("check_row_bounds" in kinds) == (family is not LOGISTIC)
