"""Sums over rows with a rest, forms of graphs, and what makes a model no sum."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit.errors import ConfigurationError, NotASumError, ShapeError
from surrokit.targets import summed as forms
from surrokit.targets.summed import (
    Form,
    Nothing,
    SumAndRest,
    check_worth,
    confirm,
    design_of,
    rows_of,
    sum_if_safe,
)
from surrokit.testing import check_potential

C, LINEAR, E, LOGISTIC, OTHER = Form
RNG = np.random.default_rng(8)
X = RNG.standard_normal((50, 2))
Y = RNG.poisson(1.0, 50).astype(float)
ALL = np.arange(50)


class Bent:
    """A rest that is no quadratic: sum exp(q), and nothing but that."""

    dim = 2
    capabilities = frozenset({"gradient", "hessian"})

    def value(self, positions):
        return np.exp(positions).sum(axis=1)

    def value_and_gradient(self, positions):
        return self.value(positions), np.exp(positions)

    def hessian(self, positions):
        return np.exp(positions)[:, :, None] * np.eye(2)


def rows(**more):
    return sk.rows_potential("poisson", X, Y, **more)


@pytest.mark.parametrize("rest", [Bent(), Nothing(2)], ids=["bent", "nothing"])
def test_a_sum_and_its_rest_keep_to_the_contract(rest):
    results = check_potential(lambda: SumAndRest(rows(), rest, level=2.0))
    assert len(results) > 8
    assert [result for result in results if result.outcome == "failed"] == []


def test_what_one_of_both_lacks_is_not_offered():
    class Plain(Bent):
        capabilities = frozenset({"gradient"})

    both = SumAndRest(rows(prior=1.0), Plain())
    assert both.capabilities >= {"gradient", "gradient-alone", "rows", "rows-in-balls"}
    assert not both.capabilities & {"hessian", "hessian-product", "convex"}
    with pytest.raises(ShapeError, match="the sum takes 2 numbers and the rest 3; give a rest"):
        SumAndRest(rows(), Nothing(3))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (forms.join([C, LINEAR]), LINEAR),
        (forms.join([C, E]), E),
        (forms.join([LINEAR, E]), OTHER),
        (forms.join([LOGISTIC, LOGISTIC]), LOGISTIC),
        (forms.join([LOGISTIC, C]), OTHER),
        (forms.join([]), C),
        (forms.add([LINEAR, C]), LINEAR),
        (forms.add([E, C]), OTHER),
        (forms.multiply([LINEAR, C]), LINEAR),
        (forms.multiply([LINEAR, LINEAR]), OTHER),
        (forms.multiply([E, C, E]), E),
        (forms.multiply([E, LINEAR]), OTHER),
        (forms.multiply([LOGISTIC, C]), OTHER),
        (forms.contract([E, C]), OTHER),
        (forms.contract([C, LINEAR]), LINEAR),
        (forms.divide(C, E), E),
        (forms.divide(C, LINEAR), OTHER),
        (forms.divide(LINEAR, C), LINEAR),
        (forms.raise_to(E, C), E),
        (forms.raise_to(LINEAR, C), OTHER),
        (forms.raise_to(C, LINEAR), OTHER),
        (forms.apply("log", E), LINEAR),
        (forms.apply("log", LINEAR), OTHER),
        (forms.apply("exp", C), C),
        (forms.apply("logistic", LINEAR), LOGISTIC),
        (forms.apply("sum", E), OTHER),
    ],
)
def test_forms_follow_from_forms(found, expected):
    assert found is expected


def terms_at(q):
    return np.exp(X @ q) - Y * (X @ q)


def confirmed(whole, terms=None, rest=None, owners=ALL):
    def each(q):
        return -terms_at(q)

    return confirm(terms or rows(), rest, whole, X, owners, each, np.zeros(2))


def test_a_model_is_the_sum_if_densities_agree_up_to_a_number():
    whole = SumAndRest(rows(), Bent(), level=7.0)
    positions = RNG.standard_normal((4, 2))
    found = confirmed(whole, rest=Bent())
    assert_allclose(found.value(positions), whole.value(positions), rtol=1e-13)
    with_prior = confirmed(rows(prior=1.0), rows(prior=1.0))
    assert_allclose(with_prior.value(positions), rows(prior=1.0).value(positions), rtol=1e-13)
    with pytest.raises(NotASumError, match="has another density than the model"):
        confirmed(rows(prior=1e3))
    with pytest.raises(NotASumError, match="some of its rows have another likelihood"):
        confirmed(rows(), owners=ALL[::-1])


def test_designs_are_read_by_directions_and_sparse_where_mostly_0():
    assert_allclose(design_of(lambda directions: directions @ X.T, 50, 2), X)
    groups = np.eye(10)[ALL % 10]
    assert design_of(lambda directions: directions @ groups.T, 50, 10).nnz == 50
    with pytest.raises(NotASumError, match="10000000 rows and 100 parameters is too large"):
        design_of(lambda directions: directions, 10_000_000, 100)


def test_scales_of_rows_are_weights_and_other_settings_are_one_number():
    scales, beside = np.linspace(0.5, 2.0, 50), (X, np.zeros(50), None)
    given, owners = rows_of("gaussian", Y, {"scale": scales}, *beside)
    assert_allclose(given["weights"], scales**-2.0)
    assert_allclose(owners, ALL)
    given, _ = rows_of("gaussian", Y, {"scale": np.full(50, 2.0)}, *beside)
    assert set(given) == {"terms", "data", "response", "scale"}
    assert given["scale"] == 2.0
    with pytest.raises(NotASumError, match="degrees of its observed numbers differs from row"):
        rows_of("student", Y, {"degrees": scales}, *beside)


def test_few_rows_are_not_worth_it_unless_they_are_asked_for():
    check_worth(20, 3, wanted=True)
    check_worth(1000, 3, wanted=None)
    for n_rows, dim in ((999, 3), (1500, 200)):
        with pytest.raises(NotASumError, match=f"and it has {n_rows} for {dim}"):
            check_worth(n_rows, dim, wanted=None)


def test_whatever_looking_raises_is_a_reason():
    def fail():
        raise KeyError("x" * 300)

    found, reason = sum_if_safe(None, fail)
    assert found is None
    assert reason.startswith("the model is sampled whole: looking at it raised KeyError: 'xxx")
    with pytest.raises(ConfigurationError, match="rows=True demands a sum over rows, but looking"):
        sum_if_safe(True, fail)
    with pytest.raises(ConfigurationError, match="rows must be True, False or None, got '1'"):
        sum_if_safe("1", fail)
    assert sum_if_safe(False, fail) == (None, "the model is sampled whole, as rows=False was given")
