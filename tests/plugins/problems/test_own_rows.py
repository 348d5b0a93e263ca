"""Sums over rows of terms that users write, with derivatives of theirs or from JAX."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, gammaln

import surrokit as sk
from surrokit import capabilities as can
from surrokit.errors import CapabilityError, ConfigurationError, ShapeError
from surrokit.potentials import Ball
from surrokit.testing import check_potential

RNG = np.random.default_rng(0)
X = 0.7 * RNG.standard_normal((150, 2))
Y = (RNG.random(150) < expit(X @ [0.6, -0.9])).astype(float)
COUNTS = RNG.poisson(np.exp(X @ [0.4, 0.2])).astype(float)
POSITIONS = 0.4 * RNG.standard_normal((3, 2))
THIRD = 1.0 / (6.0 * np.sqrt(3.0))
QUICK = {"chains": 2, "warmup": 50, "draws": 60, "seed": 1, "progress": False}


def terms(q, rows):
    x, y = rows
    e = x @ q
    return y * e - np.logaddexp(0.0, e)


def gradient(q, rows):
    x, y = rows
    return (y - expit(x @ q))[:, None] * x


def hessian(q, rows):
    x, _ = rows
    p = expit(x @ q)
    return -(p * (1 - p))[:, None, None] * x[:, :, None] * x[:, None, :]


def bound(rows, factor, centre, radius):
    """The third derivative of a logistic term along L w is at most THIRD |L^T x|^3."""
    return THIRD * np.linalg.norm(rows[0] @ factor, axis=1) ** 3


WIDEST = THIRD * np.linalg.norm(X, axis=1) ** 3
FUNCTIONS = {"dim": 2, "gradient": gradient, "hessian": hessian}


def own(**more):
    return sk.rows_potential(terms, (X, Y), **{"prior": 3.0, **FUNCTIONS, **more})


LOGISTIC = sk.rows_potential("logistic", X, Y, prior=3.0)


@pytest.mark.parametrize("given", [WIDEST, float(WIDEST.max()), bound], ids=["each", "one", "own"])
def test_they_keep_to_the_contract_with_any_bound(given):
    results = check_potential(lambda: own(bound=given))
    assert [result for result in results if result.outcome == "failed"] == []
    assert "check_row_bounds" in [result.name.partition("[")[0] for result in results]


def test_they_are_the_regression_that_is_written_out():
    ours = own(bound=bound)
    for method in ("value", "gradient", "hessian"):
        found = getattr(ours, method)(POSITIONS)
        assert_allclose(found, getattr(LOGISTIC, method)(POSITIONS), rtol=1e-10)
    ball, factor = Ball(centre=np.zeros(2), radius=2.0), np.array([[0.4, 0.0], [0.1, 0.3]])
    assert_allclose(ours.row_bounds(factor, ball=ball), LOGISTIC.row_bounds(factor))
    some = np.array([3, 8, 8])
    assert_allclose(ours.select(some).value(POSITIONS), LOGISTIC.select(some).value(POSITIONS))
    bounds = own(bound=WIDEST).row_bounds(factor)
    assert_allclose(own(bound=WIDEST).select(some).row_bounds(factor), bounds[some])
    one, other = ours.expand(POSITIONS[0]), LOGISTIC.expand(POSITIONS[0])
    assert_allclose(one.value(POSITIONS), other.value(POSITIONS), rtol=1e-10)
    rows, owners = np.array([3, 0, 3, 149]), np.array([0, 1, 2, 2])
    pairs = (POSITIONS, rows, owners)
    assert_allclose(one.remainders(*pairs), other.remainders(*pairs), atol=1e-12)


def test_without_a_bound_rows_cannot_decide_and_all_else_works():
    ours = own()
    assert can.ROWS not in ours.capabilities
    message = r"needs rows from the target.*was given no bound=, of third derivatives"
    with pytest.raises(CapabilityError, match=message):
        sk.sample(ours, sampler="hmc", correction="subsampled", **QUICK)


def test_values_alone_are_enough_but_for_rows():
    ours = sk.rows_potential(terms, (X, Y), dim=2, prior=3.0)
    assert ours.capabilities == frozenset()
    with pytest.raises(CapabilityError, match=r"no gradient= and hessian= .*, and no bound="):
        sk.sample(ours, sampler="random-walk", correction="subsampled", **QUICK)
    assert_allclose(ours.value(POSITIONS), LOGISTIC.value(POSITIONS))
    with pytest.raises(ConfigurationError, match="response goes with the family of a regression"):
        sk.rows_potential(terms, X, Y, dim=2)


def test_data_come_in_the_form_that_they_were_given_in():
    seen = []

    def named(q, rows):
        seen.append(sorted(rows))
        return terms(q, (rows["x"], rows["y"]))

    ours = sk.rows_potential(named, {"x": X, "y": Y}, dim=2, prior=3.0)
    assert_allclose(ours.value(POSITIONS), LOGISTIC.value(POSITIONS))
    assert seen[0] == ["x", "y"]

    one = sk.rows_potential(lambda q, rows: -np.abs(rows @ q), X, dim=2)
    assert one.value(np.ones((1, 2)))[0] == pytest.approx(np.abs(X.sum(axis=1)).sum())


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"bound": -1.0}, ConfigurationError, "bound must not be negative, and be finite"),
        ({"bound": np.inf}, ConfigurationError, "bound must not be negative, and be finite"),
        ({"bound": [1.0, 2.0]}, ShapeError, r"one number, 150 of them, or a function, got .*\(2,"),
        ({"gradient": None}, ConfigurationError, "hessian goes with gradient, got it alone"),
        ({"derivatives": "jax"}, ConfigurationError, "derivatives='jax' makes gradient and hess"),
        ({"derivatives": "torch"}, ConfigurationError, "derivatives must be 'jax' or None, got"),
        ({"prior": sk.gaussian_prior(0.0, [1.0] * 3)}, ShapeError, r"sd of a prior must be one"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, error, message):
    with pytest.raises(error, match=message):
        own(**settings)


def test_data_are_to_have_a_row_for_each_term():
    for data in ((X, Y[:-1]), np.zeros((0, 2)), 3.0, ()):
        with pytest.raises(ShapeError, match="data must be arrays with one row for each term"):
            sk.rows_potential(terms, data, dim=2)


def test_results_are_to_have_a_row_each():
    ours = sk.rows_potential(lambda q, rows: terms(q, rows).sum(), (X, Y), dim=2)
    with pytest.raises(ShapeError, match=r"terms must return shape \(150,\) for 150 rows, got"):
        ours.value(POSITIONS)


def test_bounds_of_a_function_are_looked_at():
    ball = Ball(centre=np.zeros(2), radius=1.0)
    few = own(bound=lambda rows, *_: np.ones(3))
    with pytest.raises(ShapeError, match=r"bound must return shape \(150,\), one number for each"):
        few.row_bounds(np.eye(2), ball=ball)
    negative = own(bound=lambda rows, *_: -np.ones(150))
    with pytest.raises(ConfigurationError, match="bound must return numbers that are not negative"):
        negative.row_bounds(np.eye(2), ball=ball)
    with pytest.raises(ConfigurationError, match="no bound at every position; give row_bounds a"):
        own(bound=bound).row_bounds(np.eye(2))
    with pytest.raises(ShapeError, match=r"centre must have shape \(2,\), got \(3, 2\)"):
        own(bound=bound).expand(POSITIONS)


def poisson_terms(q, rows):
    import jax.numpy as jnp

    x, y = rows
    e = x @ q
    return y * e - jnp.exp(e)


def poisson_bound(rows, factor, centre, radius):
    lengths = np.linalg.norm(rows[0] @ factor, axis=1)
    return np.exp(rows[0] @ centre + radius * lengths) * lengths**3


def test_jax_makes_the_derivatives(monkeypatch):
    for name in ("TF_CPP_MIN_LOG_LEVEL", "TPU_SKIP_MDS_QUERY"):  # which importing JAX sets
        monkeypatch.setenv(name, "1")
    pytest.importorskip("jax", reason="derivatives='jax' needs it")
    ours = sk.rows_potential(
        poisson_terms, (X, COUNTS), dim=2, derivatives="jax", bound=poisson_bound, prior=3.0
    )
    theirs = sk.rows_potential("poisson", X, COUNTS, prior=3.0)
    for one in (ours, pickle.loads(pickle.dumps(ours))):
        for method in ("value", "gradient", "hessian"):
            expected = getattr(theirs, method)(POSITIONS)
            expected = expected - (gammaln(COUNTS + 1.0).sum() if method == "value" else 0.0)
            assert_allclose(getattr(one, method)(POSITIONS), expected, rtol=1e-10)
    results = check_potential(lambda: ours)
    assert [result for result in results if result.outcome == "failed"] == []
    run = sk.sample(
        ours,
        sampler="gaussian",
        surrogate="quadratic",
        explorer="rounds",
        correction=("subsampled", {"order": 2}),
        **QUICK,
    )
    assert run.acceptance.mean() > 0.5


def test_without_jax_it_says_so(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "jax", None)
    with pytest.raises(ConfigurationError, match="derivatives='jax' needs JAX, which is not inst"):
        sk.rows_potential(poisson_terms, (X, COUNTS), dim=2, derivatives="jax")
