"""Forms of graphs, and what makes a model of another library a sum over rows, or none."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit.errors import ConfigurationError, NotASumError
from surrokit.tables import graphs
from surrokit.tables.graphs import Family, Form, Regression, form_of, sum_if_safe

C, LINEAR, E, LOGISTIC, OTHER = Form
RNG = np.random.default_rng(8)
X = RNG.standard_normal((50, 2))
Y = RNG.poisson(1.0, 50).astype(float)


@pytest.mark.parametrize(
    ("rule", "forms", "expected"),
    [
        ("same", [LOGISTIC, C], LOGISTIC),
        ("same", [C, LINEAR], OTHER),
        ("same", [LINEAR, LINEAR], OTHER),
        ("join", [C, LINEAR], LINEAR),
        ("join", [C, E], E),
        ("join", [LINEAR, E], OTHER),
        ("join", [LOGISTIC, C], OTHER),
        ("join", [], C),
        ("choose", [C, LINEAR, C], LINEAR),
        ("choose", [LINEAR, C, C], OTHER),
        ("add", [LINEAR, C, LINEAR], LINEAR),
        ("add", [E, C], OTHER),
        ("multiply", [LINEAR, C], LINEAR),
        ("multiply", [LINEAR, LINEAR], OTHER),
        ("multiply", [E, C, E], E),
        ("multiply", [E, LINEAR], OTHER),
        ("multiply", [LOGISTIC, C], OTHER),
        ("contract", [E, C], OTHER),
        ("contract", [C, LINEAR], LINEAR),
        ("contract", [LINEAR, LINEAR], OTHER),
        ("divide", [C, E], E),
        ("divide", [C, LINEAR], OTHER),
        ("divide", [LINEAR, C], LINEAR),
        ("power", [E, C], E),
        ("power", [LINEAR, C], OTHER),
        ("power", [C, LINEAR], OTHER),
        ("power", [E, E], OTHER),
        ("root", [E], E),
        ("log", [E], LINEAR),
        ("log", [LINEAR], OTHER),
        ("exp", [C], C),
        ("logistic", [LINEAR], LOGISTIC),
        ("sum", [E], OTHER),
        ("add", [OTHER], OTHER),
        (None, [C, C], C),
        (None, [LINEAR], OTHER),
    ],
)
def test_forms_follow_from_forms(rule, forms, expected):
    assert form_of(rule, forms) is expected


POISSON = Family("poisson", "rate", Form.EXPONENTIAL)
STUDENT = Family("student", "loc", Form.LINEAR, {"df": "degrees", "scale": "scale"})


class Rest:
    """What is no quadratic: sum exp(q)."""

    dim = 2
    capabilities = frozenset({"gradient", "hessian"})

    def value(self, positions):
        return np.exp(positions).sum(axis=1)

    def value_and_gradient(self, positions):
        return self.value(positions), np.exp(positions)

    def hessian(self, positions):
        return np.exp(positions)[:, :, None] * np.eye(2)


class Whole:
    """The model whole, up to a number."""

    dim, bend = 2, 0.0

    def value(self, positions):
        predictors = positions @ X.T + 0.5 + self.bend * np.square(positions).sum(axis=1)[:, None]
        terms = np.exp(predictors) - Y * predictors
        return terms.sum(axis=1) + Rest().value(positions) + 7.0


def regression(family=POISSON, forms=None, culprit=None, design=X, constants=()):
    return Regression(
        name="y",
        family=family,
        values=Y,
        read=lambda: (forms or {family.argument: family.form}, culprit),
        arguments=lambda at: [design @ at + 0.5, *constants],
        prior=lambda: None,
        rest=Rest,
    )


def test_a_model_is_the_sum_if_densities_agree_up_to_a_number():
    whole, positions = Whole(), RNG.standard_normal((4, 2))
    found = regression().as_sum(whole, np.zeros(2), True)
    assert_allclose(found.value(positions), whole.value(positions), rtol=1e-13)
    known = sk.gaussian_prior(np.zeros(2), np.ones(2))
    with pytest.raises(NotASumError, match="has another density than the model"):
        attrs.evolve(regression(), prior=lambda: known).as_sum(whole, np.zeros(2), True)
    bent = Whole()
    bent.bend = 0.01
    with pytest.raises(NotASumError, match="has another density than the model"):
        regression().as_sum(bent, np.zeros(2), True)


def test_designs_are_sparse_where_mostly_0_and_not_larger_than_can_be_looked_at(monkeypatch):
    given = {}
    monkeypatch.setattr(
        graphs, "rows_potential", lambda **rows: given.update(rows) or sk.rows_potential(**rows)
    )
    groups = np.eye(10)[np.arange(50) % 10]

    def whole(at):
        terms = np.exp(at @ groups.T + 0.5) - Y * (at @ groups.T + 0.5)
        return terms.sum(axis=1) + np.square(at).sum(axis=1)

    target = sk.potential(value=lambda q: whole(q[None])[0], dim=10)
    rest = sk.potential(value=lambda q: q @ q, dim=10)
    wide = attrs.evolve(regression(design=groups), rest=lambda: rest)
    wide.as_sum(target, np.zeros(10), True)
    assert given["data"].nnz == 50
    with pytest.raises(NotASumError, match="50 rows and 10000001 parameters is too large"):
        regression().as_sum(target, np.zeros(10_000_001), True)


def test_scales_of_rows_are_weights_and_other_settings_are_one_number():
    scales = np.linspace(0.5, 2.0, 50)
    normal = Family("gaussian", "loc", Form.LINEAR, {"scale": "scale"})
    forms = {"loc": LINEAR, "scale": C, "df": C}

    def of(at):
        errors = (Y - X @ at - 0.5) / scales
        return 0.5 * errors @ errors + np.exp(at).sum()

    target = sk.potential(value=of, dim=2)
    found = regression(normal, forms, constants=[scales]).as_sum(target, np.zeros(2), True)
    assert_allclose(np.ptp(found.value(X) - target.value(X)), 0.0, atol=1e-10)
    uneven = regression(STUDENT, forms, constants=[scales, np.ones(50)])
    with pytest.raises(NotASumError, match="degrees of its observed numbers differs from row"):
        uneven.as_sum(target, np.zeros(2), True)


@pytest.mark.parametrize(
    ("forms", "culprit", "message"),
    [
        ({"loc": OTHER}, "Mul", "predictor of 'y' is not linear .*'student' has, as it .* Mul"),
        ({"loc": E}, None, "not in the form that 'student' has$"),
        ({"loc": LINEAR, "df": LINEAR}, None, "the degrees of 'y' depends on parameters"),
    ],
)
def test_other_forms_are_no_sum(forms, culprit, message):
    with pytest.raises(NotASumError, match=message):
        regression(STUDENT, forms, culprit).as_sum(Whole(), np.zeros(2), True)


@pytest.mark.parametrize(("n_rows", "dim"), [(999, 3), (1500, 200)])
def test_few_rows_are_not_worth_it_unless_they_are_asked_for(n_rows, dim):
    few = attrs.evolve(regression(), values=np.zeros(n_rows))
    with pytest.raises(NotASumError, match=f"and it has {n_rows} for {dim}"):
        few.as_sum(Whole(), np.zeros(dim), None)


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
