"""Forms of graphs, and what makes a model of another library a sum over rows, or none."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit.errors import ConfigurationError, NotASumError
from surrokit.tables import graphs
from surrokit.tables.graphs import Form, Regression, form_of, sum_if_safe

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
        ("divide", [C, LINEAR], OTHER),
        ("divide", [LINEAR, C], LINEAR),
        ("divide", [E, C], OTHER),
        ("exp", [C], C),
        ("exp", [LINEAR], E),
        ("exp", [E], OTHER),
        ("logistic", [LINEAR], LOGISTIC),
        ("logistic", [OTHER], OTHER),
        ("add", [OTHER], OTHER),
        (None, [C, C], C),
        (None, [LINEAR], OTHER),
    ],
)
def test_forms_follow_from_forms(rule, forms, expected):
    assert form_of(rule, forms) is expected


class Whole:
    """The model whole, up to a number."""

    dim, bend = 2, 0.0

    def value(self, positions):
        predictors = positions @ X.T + 0.5 + self.bend * np.square(positions).sum(axis=1)[:, None]
        terms = np.exp(predictors) - Y * predictors
        return terms.sum(axis=1) + 0.5 * np.square(positions).sum(axis=1) + 7.0


def regression(family="poisson", culprit=None, more=None, **forms):
    normal = {"mean": np.zeros(2), "sd": np.ones(2), **(more or {})}
    return Regression(
        name="y",
        family=family,
        form=E,
        values=Y,
        forms={"argument": E, "mean": C, "sd": C, **forms},
        culprit=culprit,
        at=lambda position: {"predictor": X @ position + 0.5, **normal},
    )


def test_a_model_is_the_sum_if_densities_agree_up_to_a_number():
    whole, positions = Whole(), RNG.standard_normal((4, 2))
    found = regression().as_sum(whole, np.zeros(2))
    assert_allclose(found.value(positions), whole.value(positions), rtol=1e-13)
    with pytest.raises(NotASumError, match="has another density than the model"):
        regression(more={"sd": np.full(2, 1.001)}).as_sum(whole, np.zeros(2))
    whole.bend = 0.01
    with pytest.raises(NotASumError, match="has another density than the model"):
        regression().as_sum(whole, np.zeros(2))


def test_scales_of_rows_are_weights():
    scales = np.linspace(0.5, 2.0, 50)

    def of(at):
        errors = (Y - X @ at - 0.5) / scales
        return 0.5 * errors @ errors + 0.5 * at @ at

    target = sk.potential(value=of, dim=2)
    found = regression("gaussian", scale=C, more={"scale": scales}).as_sum(target, np.zeros(2))
    assert_allclose(found.value(X), target.value(X), rtol=1e-12)


@pytest.mark.parametrize(
    ("forms", "message"),
    [
        (
            {"argument": OTHER, "culprit": "Mul"},
            "predictor of 'y' is not linear .*'poisson' has, as it .* Mul",
        ),
        ({"argument": LINEAR}, "not in the form that 'poisson' has$"),
        ({"scale": LINEAR}, "the scale of 'y' depends on parameters"),
        ({"mean": LINEAR}, "mean or scale of a prior depends on other parameters"),
        ({"sd": E}, "mean or scale of a prior depends on other parameters"),
    ],
)
def test_other_forms_are_no_sum(forms, message):
    with pytest.raises(NotASumError, match=message):
        regression(**forms).as_sum(Whole(), np.zeros(2))


def test_designs_are_not_larger_than_can_be_looked_at(monkeypatch):
    monkeypatch.setattr(graphs, "LARGEST", 99)
    with pytest.raises(NotASumError, match="50 rows and 2 parameters is too large"):
        regression().as_sum(Whole(), np.zeros(2))


@pytest.mark.parametrize(("n_rows", "dim"), [(999, 3), (1500, 200)])
def test_few_rows_are_not_worth_it_unless_they_are_asked_for(n_rows, dim):
    found, reason = sum_if_safe(None, n_rows, Whole(), np.zeros(dim), regression)
    assert found is None
    assert f"and it has {n_rows} for {dim}" in reason
    assert sum_if_safe(True, 50, Whole(), np.zeros(2), regression)[1] == ""


def test_whatever_looking_raises_is_a_reason():
    def fail():
        raise KeyError("x" * 300)

    given = (5000, Whole(), np.zeros(2), fail)
    found, reason = sum_if_safe(None, *given)
    assert found is None
    assert reason.startswith("the model is sampled whole: looking at it raised KeyError: 'xxx")
    with pytest.raises(ConfigurationError, match="rows=True demands a sum over rows, but looking"):
        sum_if_safe(True, *given)
    with pytest.raises(ConfigurationError, match="rows must be True, False or None, got '1'"):
        sum_if_safe("1", *given)
    assert sum_if_safe(False, *given) == (
        None,
        "the model is sampled whole, as rows=False or gradient=False was given",
    )
