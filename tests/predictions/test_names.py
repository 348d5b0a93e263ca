"""Families by the names that people know, and what formulas cannot do."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit.errors import ConfigurationError

RNG = np.random.default_rng(1)
X = np.column_stack([np.ones(30), RNG.normal(size=30)])
NUMBERS, COUNTS, BINARY = RNG.normal(size=30), RNG.poisson(2.0, 30), RNG.integers(0, 2, 30)


@pytest.mark.parametrize(
    ("known", "own", "response", "settings"),
    [
        ("binomial", "logistic", BINARY, {}),
        ("Bernoulli", "logistic", BINARY, {}),
        ("normal", "gaussian", NUMBERS, {"scale": 0.5}),
        ("negative_binomial", "negative-binomial", COUNTS, {"size": 2.0}),
        ("categorical", "multinomial", BINARY, {}),
        ("t", "student", NUMBERS, {"scale": 0.5}),
    ],
)
def test_a_family_is_known_by_its_other_names(known, own, response, settings):
    at = RNG.normal(size=(3, 2))
    one, other = (sk.rows_potential(n, X, response, prior=2.0, **settings) for n in (known, own))
    assert_allclose(one.value(at), other.value(at))


def test_cauchy_is_student_with_one_degree():
    at = RNG.normal(size=(3, 2))
    one = sk.rows_potential("cauchy", X, NUMBERS, scale=0.5)
    other = sk.rows_potential("student", X, NUMBERS, scale=0.5, degrees=1.0)
    assert_allclose(one.value(at), other.value(at))
    with pytest.raises(ConfigurationError, match="has one degree of freedom"):
        sk.rows_potential("cauchy", X, NUMBERS, scale=0.5, degrees=4.0)
    assert sk.observed(NUMBERS, 1.0, family="cauchy").family.degrees == 1.0


@pytest.mark.parametrize(
    ("given", "meant"),
    [("poison", "'poisson'"), ("binomal", "'binomial', here 'logistic'"), ("gauss", "'gaussian'")],
)
def test_a_misspelt_family_is_answered_by_the_one_that_is_meant(given, meant):
    with pytest.raises(ConfigurationError, match=f"do you mean {meant}"):
        sk.rows_potential(given, X, COUNTS)
    with pytest.raises(ConfigurationError, match="do you mean 'student'"):
        sk.observed(NUMBERS, 1.0, family="studnet")


@pytest.mark.parametrize("term", ["(1 | group)", "(1|group)", "(x || group)"])
def test_effects_by_group_name_bambi(term):
    pytest.importorskip("formulaic")
    data = {"y": COUNTS, "x": NUMBERS, "group": list("abc") * 10}
    with pytest.raises(ConfigurationError, match=r"C\(group\).*vary by group need Bambi"):
        sk.glm(f"y ~ x + {term}", data, "poisson")
