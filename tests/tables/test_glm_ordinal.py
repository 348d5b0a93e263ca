"""Regressions of ordered levels by a formula: their order, their cutpoints, and refusals."""

from __future__ import annotations

import numpy as np
import pytest

import surrokit as sk
from surrokit.errors import ConfigurationError

REASON = "reads formulas and tables: the extra surrokit[formula]"
pytest.importorskip("formulaic", reason=REASON)
pandas = pytest.importorskip("pandas", reason=REASON)

N = 120
RNG = np.random.default_rng(12)
AGE = RNG.normal(50.0, 10.0, N)
GRADED = pandas.DataFrame(
    {
        "age": AGE,
        "sex": RNG.choice(["f", "m"], N),
        "grade": np.array(["low", "mid", "high"])[
            np.digitize(0.1 * (AGE - 50.0) + RNG.logistic(size=N), [-1.0, 1.0])
        ],
    }
)
ORDER = ["low", "mid", "high"]
PLACES = GRADED.grade.map(ORDER.index)
PLACED = np.array([[0.1, 0.3, 4.0, 6.0], [0.0, -0.2, -1.0, 2.0]])
FORMS = {
    "text in an order that is given": ({}, {"levels": ORDER}, ORDER),
    "an ordered categorical": (
        {"grade": pandas.Categorical(GRADED.grade, categories=ORDER, ordered=True)},
        {},
        ORDER,
    ),
    "numbers": ({"grade": PLACES * 2 + 1}, {}, ["1", "3", "5"]),
    "numbers in an order that is given": (
        {"grade": 3 - PLACES},
        {"levels": [3, 2, 1]},
        ["3", "2", "1"],
    ),
}


def usual(design):
    """Return wide scales of coefficients, and that of cutpoints."""
    spread, mean = design.std(axis=0), design.mean(axis=0)
    return 10.0 / spread, 10.0 * np.sqrt(1.0 + np.square(mean / spread).sum())


@pytest.mark.parametrize("form", FORMS)
def test_ordered_levels_have_cutpoints_in_place_of_an_intercept(form):
    columns, more, levels = FORMS[form]
    cutpoint = "|".join(levels[:2])
    prior = {"age": 0.5, cutpoint: (1.0, 4.0)}
    ours = sk.glm("grade ~ age + sex", GRADED.assign(**columns), "ordinal", prior=prior, **more)
    assert ours.parameters.labels == ["age", "sex[T.m]", cutpoint, "|".join(levels[1:])]
    design = np.column_stack([AGE, GRADED.sex == "m"])
    wide, far = usual(design)
    normal = sk.gaussian_prior([0.0, 0.0, 1.0, 0.0], [0.5, wide[1], 4.0, far])
    theirs = sk.rows_potential("ordinal", design, PLACES, prior=normal)
    assert ours.capabilities == theirs.capabilities
    np.testing.assert_allclose(ours.value(PLACED), theirs.value(PLACED), rtol=1e-12)
    np.testing.assert_allclose(ours.hessian(PLACED), theirs.hessian(PLACED), rtol=1e-9)


def test_one_prior_is_that_of_all_coefficients_but_cutpoints():
    ours = sk.glm("grade ~ age", GRADED, "ordinal", prior=0.5, levels=ORDER)
    far = usual(AGE[:, None])[1]
    normal = sk.gaussian_prior(0.0, [0.5, far, far])
    theirs = sk.rows_potential("ordinal", AGE[:, None], PLACES, prior=normal)
    at = np.array([[0.1, 4.0, 6.0]])
    np.testing.assert_allclose(ours.value(at), theirs.value(at), rtol=1e-12)


def test_levels_may_be_booleans_and_enumerations():
    old = sk.glm("old ~ age", GRADED.assign(old=GRADED.grade == "high"), "ordinal")
    assert old.parameters.labels == ["age", "0|1"]
    polars = pytest.importorskip("polars", reason="a table of polars")
    kind = polars.Enum(ORDER)
    grades = polars.Series(GRADED.grade.tolist(), dtype=kind)
    table = polars.DataFrame({"age": AGE, "grade": grades})
    assert sk.glm("grade ~ age", table, "ordinal").parameters.labels[1:] == ["low|mid", "mid|high"]


UNDECIDED = {
    "text in no order": ({}, "levels high, low, mid of response 'gr.*no order"),
    "categories in no order": (
        {"data": GRADED.assign(grade=GRADED.grade.astype("category"))},
        "give the order by levels=",
    ),
    "a level that never occurs": (
        {"levels": [*ORDER, "top"]},
        "no level that never occurs, got .*top",
    ),
    "a level without a place": ({"levels": ORDER[:2]}, "levels must name every level of .* once"),
    "a level twice": ({"levels": [*ORDER, "mid"]}, "levels must name every level of .* once"),
    "levels in a text": ({"levels": "low,mid,high"}, "levels must be a list, the lowest level"),
    "one level": (
        {"data": GRADED[GRADED.grade == "mid"], "levels": ["mid"]},
        "at least two",
    ),
    "no covariate": ({"formula": "grade ~ 1", "levels": ORDER}, "needs a covariate, since its"),
    "a prior of the intercept": (
        {"intercept_prior": 2.0, "levels": ORDER},
        "leave intercept_prior out, and give them priors by name, such as 'low|mid'",
    ),
    "levels of another family": (
        {"family": "multinomial", "levels": ORDER},
        "levels go with the family 'ordinal', got them for 'multinomial'",
    ),
}


@pytest.mark.parametrize("case", UNDECIDED)
def test_levels_that_are_undecided_are_refused_with_advice(case):
    given, said = UNDECIDED[case]
    usual = {"formula": "grade ~ age", "data": GRADED, "family": "ordinal"}
    with pytest.raises(ConfigurationError, match=said.replace("|", "[|]")):
        sk.glm(**{**usual, **given})


@pytest.mark.parametrize("case", ["a constant", "separated"])
def test_wide_priors_decide_what_data_leave_open(case):
    """Along every direction from 0 the potential grows at last."""
    formula = "grade ~ 0 + sex" if case == "a constant" else "grade ~ age"
    data = GRADED if case == "a constant" else GRADED.assign(age=PLACES)
    target = sk.glm(formula, data, "ordinal", levels=ORDER)
    ways = np.random.default_rng(0).standard_normal((200, target.dim))
    ways[:, -2:].sort(axis=1)
    assert (target.value(1e4 * ways) > target.value(10.0 * ways)).all()
    assert target.unnormalized == ()
