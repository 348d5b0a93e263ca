"""Metrics against plain formulas, and what they refuse."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import surrokit as sk
from surrokit.errors import ConfigurationError, IndefiniteMetricError
from surrokit.testing import CountingPotential, Limited
from surrokit.testing.targets import Banana, Gaussian, Mixture, Student
from surrokit_riemannian.softabs import (
    DiagonalMetric,
    HessianMetric,
    OwnMetric,
    SoftAbsMetric,
    factorise,
    product,
)

COVARIANCE = np.array([[1.3, 0.5], [0.5, 2.6]])
CURVED = [Banana(), Mixture(), Student()]
NAMES = [type(target).__name__ for target in CURVED]


def positions(target, n=40):
    return target.sample(np.random.default_rng(3), n)


def matrices(metric, cache):
    n = len(cache["log_determinant"])
    return np.stack([metric.momentum(cache, np.tile(e, (n, 1))) for e in np.eye(2)], axis=-1)


def plain_softabs(hessian, hardness, covariance):
    """L^-T Q diag(l coth(a l)) Q^T L^-1, one matrix at a time."""
    factor = np.linalg.cholesky(covariance)
    inverse = np.linalg.inv(factor)
    found = []
    for matrix in hessian:
        values, vectors = np.linalg.eigh(factor.T @ matrix @ factor)
        soft = values / np.tanh(hardness * values)
        found.append(inverse.T @ vectors @ np.diag(soft) @ vectors.T @ inverse)
    return np.array(found)


# --- factors, both ways ---


@pytest.mark.parametrize("n", [6, 300])
def test_factors_of_matrices_some_of_which_have_none(n):
    rng = np.random.default_rng(0)
    root = rng.standard_normal((n, 4, 4))
    spd = root @ root.transpose(0, 2, 1) + np.eye(4)
    spd[0], spd[1] = 0.0, -np.eye(4)
    spd[2] = np.nan
    factors = factorise(spd)
    good = np.arange(3, n)
    assert_allclose(factors["metric_factor"][good], np.linalg.cholesky(spd[good]), atol=1e-12)
    assert_allclose(factors["metric_inverse"][good], np.linalg.inv(spd[good]), atol=1e-11)
    assert_allclose(factors["log_determinant"][good], np.linalg.slogdet(spd[good])[1])
    for array in factors.values():
        assert np.isnan(array[:3]).all()
    vectors = rng.standard_normal((n, 4))
    assert_allclose(product(root, vectors), np.einsum("nij,nj->ni", root, vectors), atol=1e-13)


# --- softabs ---


@pytest.mark.parametrize("covariance", [None, COVARIANCE], ids=["raw", "adapted"])
@pytest.mark.parametrize("target", CURVED, ids=NAMES)
@pytest.mark.parametrize("hardness", [1.0, 30.0])
def test_softabs_is_the_plain_formula(target, covariance, hardness):
    metric = SoftAbsMetric(hardness=hardness, covariance=covariance)
    q = positions(target)
    cache = metric.factor(target, q)
    units = np.eye(2) if covariance is None else covariance
    expected = plain_softabs(target.hessian(q), hardness, units)
    assert_allclose(matrices(metric, cache), expected, rtol=1e-9, atol=1e-12)
    assert_allclose(cache["metric_inverse"], np.linalg.inv(expected), rtol=1e-9, atol=1e-9)


def test_softabs_of_one_batch_takes_each_row_its_own_way():
    q = positions(Mixture(), 400)
    metric = SoftAbsMetric(hardness=100.0)
    certain = metric.factor(Mixture(), q)["metric_certain"]
    least = np.linalg.eigvalsh(Mixture().hessian(q))[:, 0]
    assert_array_equal(certain == 1.0, least > 0.191)
    assert 0.05 < (certain == 0.0).mean() < 0.5


def test_softabs_at_coinciding_eigenvalues():
    # a normal target has one matrix everywhere; here its two eigenvalues are one
    round_target = Gaussian(mean=(0.0, 0.0), covariance=((20.0, 0.0), (0.0, 20.0)))
    metric = SoftAbsMetric()
    q = positions(round_target, 3)
    cache = metric.factor(round_target, q)
    assert (cache["metric_certain"] == 0.0).all()
    forms = metric.form_gradient(round_target, q, cache, np.ones((3, 2)))
    assert_allclose(forms, np.zeros((3, 2)), atol=1e-15)


def test_certain_rows_pay_forms_only():
    counting = CountingPotential(Gaussian())
    metric = SoftAbsMetric()
    q = positions(Gaussian(), 5)
    metric.form_gradient(counting, q, metric.factor(counting, q), np.ones((5, 2)))
    assert counting.positions["hessian_form_gradient"] == 5
    assert counting.positions["hessian_trace_gradient"] == 0


# --- the diagonal ---


@pytest.mark.parametrize("target", CURVED, ids=NAMES)
def test_the_diagonal_is_the_softabs_of_a_diagonal_hessian(target):
    q = positions(target)
    metric = DiagonalMetric(hardness=5.0).adapt(COVARIANCE)
    variances = np.diag(COVARIANCE)
    h = np.diagonal(target.hessian(q), axis1=1, axis2=2)
    expected = h / np.tanh(5.0 * variances * h)
    assert_allclose(metric.factor(target, q)["metric_diagonal"], expected, rtol=1e-12)


def test_the_diagonal_is_the_same_with_and_without_a_cheap_one():
    full = Limited(Banana(), Banana().capabilities - {"hessian-diagonal"})
    q, u = positions(Banana()), np.ones((40, 2))
    metric = DiagonalMetric()
    one, other = metric.factor(Banana(), q), metric.factor(full, q)
    for name in one:
        assert_allclose(one[name], other[name], rtol=1e-12)
    assert_allclose(
        metric.log_determinant_gradient(Banana(), q, one),
        metric.log_determinant_gradient(full, q, other),
        rtol=1e-10,
    )
    assert_allclose(
        metric.form_gradient(Banana(), q, one, u),
        metric.form_gradient(full, q, other, u),
        rtol=1e-10,
        atol=1e-12,
    )


# --- metrics taken as they come ---


def test_fisher_and_gauss_newton_are_the_potential_s_own():
    q = positions(Banana())
    for name in ("fisher", "gauss-newton"):
        metric = sk.make("metric", name)
        cache = metric.factor(Banana(), q)
        assert_allclose(matrices(metric, cache), Banana().metric(q), rtol=1e-10, atol=1e-12)


def test_hessian_asks_for_a_convex_potential_unless_it_is_trusted():
    assert "convex" in HessianMetric().needs
    assert "convex" not in HessianMetric(trusted=True).needs


def test_an_indefinite_hessian_raises_and_says_what_to_use():
    q = np.array([[-1.5, 0.0], [0.2, 0.5]])
    message = (
        r"the Hessian of Mixture must be positive definite to be a mass matrix, but has "
        r"eigenvalue -[0-9.]+ at position \[0.2 0.5\]; use metric 'softabs'"
    )
    with pytest.raises(IndefiniteMetricError, match=message):
        HessianMetric(trusted=True).factor(Mixture(), q)


def test_a_metric_that_is_not_finite_does_not_raise():
    q = np.array([[np.nan, 0.0], [0.5, 0.5]])
    cache = OwnMetric().factor(Banana(), q)
    assert np.isnan(cache["log_determinant"]).tolist() == [True, False]


@pytest.mark.parametrize("kind", [SoftAbsMetric, DiagonalMetric])
def test_hardness_must_be_positive(kind):
    message = re.escape("hardness must be a positive finite number, got -1")
    with pytest.raises(ConfigurationError, match=message):
        kind(hardness=-1)


def test_products_are_used_only_where_they_are_offered():
    q, u = positions(Banana(), 3), np.ones((3, 2))
    limited = Limited(Banana(), Banana().capabilities - {"hessian-product", "metric-product"})
    for metric in (SoftAbsMetric(), HessianMetric(), OwnMetric()):
        assert metric.approximate_product(limited, q, u) is None
        assert metric.approximate_product(Banana(), q, u) is not None
    assert DiagonalMetric().approximate_product(Banana(), q, u) is None


@pytest.mark.parametrize(
    ("target", "metric"),
    [
        (Mixture(), SoftAbsMetric(hardness=5.0, covariance=COVARIANCE)),
        (Mixture(), SoftAbsMetric(hardness=1000.0, covariance=COVARIANCE)),
        (Banana(), SoftAbsMetric(hardness=1000.0)),
        (Banana(), OwnMetric()),
    ],
)
def test_forms_of_some_rows_are_those_of_all(target, metric):
    """Also where some rows are softened and others are the Hessian as it is."""
    q, u = positions(target, 12), np.random.default_rng(5).standard_normal((12, 2))
    cache = metric.factor(target, q)
    whole = metric.form_gradient(target, q, cache, u)
    for rows in (np.array([0, 3, 4, 9]), np.array([7]), np.arange(12)):
        found = metric.forms_at(target, q, cache)(u[rows], rows)
        assert_allclose(found, whole[rows], rtol=1e-10, atol=1e-12)
