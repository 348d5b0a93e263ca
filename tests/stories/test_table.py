"""A table of 300,000 rows."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.linalg import inv, solve

import surrokit as sk


def laplace(design, response):
    """Mode and standard deviations of a logistic regression under a flat prior."""
    q = np.zeros(design.shape[1])
    for _ in range(12):
        p = 1 / (1 + np.exp(-design @ q))
        curvature = (design.T * (p * (1 - p))) @ design
        q += solve(curvature, design.T @ (response - p))
    return q, np.sqrt(np.diag(inv(curvature)))


def made(n):
    rng = np.random.default_rng(1)
    income, age = rng.lognormal(10.5, 0.5, n), rng.normal(48, 12, n)
    logit = -2.0 + 2e-5 * income + 0.02 * age - 0.3 * (age > 60)
    response = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(float)
    return np.column_stack([np.ones(n), income, age, age > 60.0]).astype(float), response


@pytest.mark.long
def test_a_table_of_many_rows(account):
    design, response = made(300_000)
    run = account(sk.sample(sk.rows_potential("binomial", design, response), seed=1))
    mode, sd = laplace(design, response)
    assert np.all(np.abs(run.draws.mean(axis=(0, 1)) - mode) < 0.15 * sd)
    assert np.all(np.abs(run.draws.std(axis=(0, 1)) / sd - 1) < 0.1)
    assert run.ess().min() > 500


def test_a_table_with_a_formula(account):
    pytest.importorskip("formulaic")
    design, response = made(20_000)
    table = {"bought": response, "income": design[:, 1], "age": design[:, 2]}
    target = sk.glm("bought ~ income + age + I(age > 60)", table, "binomial")
    run = account(sk.sample(target, seed=1))
    mode, sd = laplace(design, response)
    assert np.all(np.abs(run.draws.mean(axis=(0, 1)) - mode) < 0.15 * sd)
    predicted = run.predict({"income": [30_000.0], "age": [40.0]})
    assert 0 < float(np.asarray(predicted["mean"])[0]) < 1
