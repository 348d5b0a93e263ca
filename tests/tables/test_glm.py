"""Regressions by a formula and a table: the same targets as by hand, with names, and advice."""

from __future__ import annotations

import contextlib
import pickle

import numpy as np
import pytest
import scipy.stats

import surrokit as sk
from surrokit.errors import ConfigurationError, MissingDependencyError, ShapeError
from surrokit.tables.frames import library
from surrokit.tables.priors import check_rank
from surrokit.targets.functions import NamedPotential
from surrokit.testing import check_potential

REASON = "reads formulas and tables: the extra surrokit[formula]"
pytest.importorskip("formulaic", reason=REASON)
pandas = pytest.importorskip("pandas", reason=REASON)
with contextlib.suppress(ImportError):  # here, as it changes the environment when it is imported
    import polars  # noqa: F401

N = 120
RNG = np.random.default_rng(11)
AGE = RNG.normal(50.0, 10.0, N)
INCOME = np.exp(RNG.normal(10.0, 0.5, N))
CLINIC = RNG.choice(["a", "b", "c"], N)
EXPOSURE = RNG.uniform(0.5, 2.0, N)
MEANS = EXPOSURE * np.exp(0.5 + 0.02 * (AGE - 50.0) + 0.6 * (CLINIC == "b"))
DATA = {
    "visits": RNG.poisson(MEANS),
    "age": AGE,
    "income": INCOME,
    "clinic": CLINIC,
    "log_exposure": np.log(EXPOSURE),
    "count": RNG.integers(1, 4, N),
    "ill": np.where(RNG.random(N) < 1.0 / (1.0 + np.exp(-0.1 * (AGE - 50.0))), "yes", "no"),
    "stage": RNG.choice(["early", "late", "middle"], N),
    "weeks": RNG.exponential(2.0, N) + 0.01,
    "died": RNG.integers(0, 2, N),
    "twice": 2.0 * AGE,
}
FRAME = pandas.DataFrame(DATA)
FORMULA = "visits ~ age + C(clinic) + np.log(income)"
DESIGN = np.column_stack([np.ones(N), AGE, CLINIC == "b", CLINIC == "c", np.log(INCOME)])
NAMES = ["Intercept", "age", "C(clinic)[T.b]", "C(clinic)[T.c]", "np.log(income)"]
POSITIONS = np.random.default_rng(2).normal(scale=0.02, size=(3, 5))


def assert_same(ours, theirs, positions=POSITIONS):
    assert ours.capabilities == theirs.capabilities
    np.testing.assert_allclose(ours.value(positions), theirs.value(positions), rtol=1e-12)
    slopes = ours.value_and_gradient(positions)[1]
    np.testing.assert_allclose(slopes, theirs.value_and_gradient(positions)[1], rtol=1e-9)
    np.testing.assert_allclose(ours.hessian(positions), theirs.hessian(positions), rtol=1e-9)


def test_it_is_the_target_of_the_same_design_with_names():
    theirs = sk.rows_potential(
        "poisson", DESIGN, DATA["visits"], offset=DATA["log_exposure"], weights=DATA["count"]
    )
    for beside in (
        {"offset": "log_exposure", "weights": "count"},
        {"offset": DATA["log_exposure"], "weights": DATA["count"]},
    ):
        ours = sk.glm(FORMULA, FRAME, "poisson", **beside)
        assert ours.parameters.labels == NAMES
        assert_same(ours, theirs)


def test_it_conforms():
    frame = FRAME.assign(age=(AGE - 50.0) / 10.0)
    results = check_potential(lambda: sk.glm("visits ~ age", frame, "poisson", prior=1.0))
    assert len(results) > 10
    assert {result.name: result.message for result in results if result.outcome == "failed"} == {}


def test_the_target_travels_and_keeps_its_names():
    target = sk.glm(FORMULA, FRAME, "poisson")
    again = pickle.loads(pickle.dumps(target))
    assert again.parameters.labels == sk.one_by_one(target).parameters.labels == NAMES
    assert_same(again, target)


@pytest.mark.parametrize(
    ("prior", "intercept", "means", "sds"),
    [
        (2.0, 5.0, [0, 0, 0, 0, 0], [5, 2, 2, 2, 2]),
        (2.0, 2.0, [0, 0, 0, 0, 0], [2, 2, 2, 2, 2]),
        (2.0, None, [0, 0, 0, 0, 0], [np.inf, 2, 2, 2, 2]),
        ({"age": (1.0, 3.0)}, None, [0, 1, 0, 0, 0], [np.inf, 3, np.inf, np.inf, np.inf]),
        ({"C(clinic)[T.b]": 3.0}, (1.0, 4.0), [1, 0, 0, 0, 0], [4, np.inf, 3, np.inf, np.inf]),
        (sk.gaussian_prior(1.0, 2.0), None, [1, 1, 1, 1, 1], [2, 2, 2, 2, 2]),
    ],
)
def test_priors_go_to_their_coefficients(prior, intercept, means, sds):
    ours = sk.glm(FORMULA, FRAME, "poisson", prior=prior, intercept_prior=intercept)
    flat = sk.rows_potential("poisson", DESIGN, DATA["visits"])
    bounded = np.isfinite(sds)
    priors = scipy.stats.norm(np.array(means)[bounded], np.array(sds, dtype=float)[bounded])
    expected = -priors.logpdf(POSITIONS[:, bounded]).sum(axis=1)
    np.testing.assert_allclose(ours.value(POSITIONS) - flat.value(POSITIONS), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("family", "response", "one"),
    [
        ("logistic", FRAME.ill, "yes"),
        ("probit", FRAME.ill == "yes", "yes"),
        ("logistic", pandas.Categorical(FRAME.ill, categories=["yes", "no", "unknown"]), "no"),
    ],
)
def test_the_later_of_two_levels_counts_as_one(family, response, one):
    theirs = sk.rows_potential(family, DESIGN[:, :2], (FRAME.ill == one).to_numpy(float))
    ours = sk.glm("ill ~ age", FRAME.assign(ill=response), family)
    assert_same(ours, theirs, POSITIONS[:, :2])


def test_several_levels_are_classes():
    ours = sk.glm("stage ~ age", FRAME, "multinomial", prior={"age": 2.0, "late: Intercept": 3.0})
    names = ["late: Intercept", "late: age", "middle: Intercept", "middle: age"]
    assert ours.parameters.labels == names
    codes = FRAME.stage.map({"early": 0, "late": 1, "middle": 2}).to_numpy()
    prior = sk.gaussian_prior(0.0, [3.0, 2.0, np.inf, 2.0])
    theirs = sk.rows_potential("multinomial", DESIGN[:, :2], codes, prior=prior)
    assert_same(ours, theirs, POSITIONS[:, :4])


def test_censored_times_name_their_events():
    ours = sk.glm("weeks ~ age", FRAME, "weibull", event="died", shape=1.5)
    event = {"event": DATA["died"]}
    theirs = sk.rows_potential("weibull", DESIGN[:, :2], DATA["weeks"], shape=1.5, **event)
    assert_same(ours, theirs, POSITIONS[:, :2])


def test_a_dot_stands_for_what_is_not_used_otherwise_and_functions_come_by_context():
    frame = FRAME[["visits", "age", "log_exposure"]]
    ours = sk.glm("visits ~ .", frame, "poisson", offset="log_exposure")
    assert ours.parameters.labels == ["Intercept", "age"]
    ours = sk.glm("visits ~ half(age)", FRAME, "poisson", context={"half": lambda x: x / 2.0})
    theirs = sk.rows_potential("poisson", DESIGN[:, :2] / [1.0, 2.0], DATA["visits"])
    assert ours.parameters.labels == ["Intercept", "half(age)"]
    assert_same(ours, theirs, POSITIONS[:, :2])


def holes():
    frame = FRAME.copy()
    frame.loc[[3, 5], "age"] = np.nan
    frame.loc[5, "clinic"] = None
    frame.loc[7, "log_exposure"] = np.nan
    frame.loc[9:, "twice"] = np.nan  # not used
    return frame


def test_rows_that_lack_values_are_refused_or_left_out():
    said = "lacks values: 2 in 'age', 1 in 'clinic', 1 in 'log_exposure' \\(3 of 120 rows\\)"
    with pytest.raises(ConfigurationError, match=said):
        sk.glm(FORMULA, holes(), "poisson", offset="log_exposure")
    beside = {"offset": "log_exposure", "weights": DATA["count"]}
    ours = sk.glm(FORMULA, holes(), "poisson", **beside, na_action="drop")
    kept = np.delete(np.arange(N), [3, 5, 7])
    beside = {"offset": DATA["log_exposure"][kept], "weights": DATA["count"][kept]}
    assert_same(ours, sk.rows_potential("poisson", DESIGN[kept], DATA["visits"][kept], **beside))


@pytest.mark.parametrize("package", ["polars", "pyarrow", None])
def test_other_tables_are_read_too(package):
    table = DATA
    if package is not None:
        library = pytest.importorskip(package, reason=f"a table of {package}")
        columns = {name: values.tolist() for name, values in DATA.items()}
        table = library.DataFrame(columns) if package == "polars" else library.table(columns)
    ours = sk.glm(FORMULA, table, "poisson", offset="log_exposure")
    assert_same(ours, sk.glm(FORMULA, FRAME, "poisson", offset="log_exposure"))


def test_levels_of_polars_keep_their_order():
    polars = pytest.importorskip("polars", reason="a table of polars")
    kind = polars.Enum(["yes", "no"])
    table = polars.DataFrame({"age": AGE, "ill": polars.Series(DATA["ill"].tolist(), dtype=kind)})
    theirs = sk.rows_potential("logistic", DESIGN[:, :2], (FRAME.ill == "no").to_numpy(float))
    assert_same(sk.glm("ill ~ age", table, "logistic"), theirs, POSITIONS[:, :2])


class OfAnotherKind:
    """Has columns and a length, as a table has, and is none."""

    columns = ("visits", "age", "clinic", "income")

    def __len__(self):
        return 3


class Spread(OfAnotherKind):
    __dask_graph__ = None


REFUSED = {
    "an object with columns": ({"data": OfAnotherKind()}, "in memory.* got OfAnotherKind; read"),
    "a Dask collection": ({"data": Spread()}, "is a Dask collection, .* surrokit.rows_potential"),
    "no such column": ({"formula": "visits ~ agee"}, "asks for 'agee', .*do you mean 'age'"),
    "no such offset": ({"offset": "log_exposures"}, "offset asks for 'log_exposures'"),
    "no such function": ({"formula": "visits ~ f(age)"}, "asks for 'f', which is no column"),
    "no response": ({"formula": "~ age"}, "has no response; write it left of a tilde"),
    "two parts": ({"formula": "visits ~ age | clinic"}, "has several parts"),
    "two responses": ({"formula": "visits + weeks ~ age"}, "must have one response"),
    "no covariates": ({"formula": "visits ~ 0"}, "has no covariates"),
    "no formula": ({"formula": "visits ~ age +"}, "cannot be read"),
    "no text": ({"formula": 3}, "formula must be text"),
    "a term that fails": ({"formula": "visits ~ poly(age, 'x')"}, "cannot be evaluated"),
    "a term without a number": (
        {"formula": "visits ~ np.log(age - 50)"},
        r"column 'np.log\(age - 50\)' of the design must be finite",
    ),
    "two columns of one name": (
        {"data": pandas.concat([FRAME, FRAME[["age"]]], axis=1)},
        "data has 2 columns called 'age'; rename",
    ),
    "no rows": ({"data": FRAME[:0]}, "must have rows and columns, got 0 rows"),
    "no table": ({"data": "visits.csv"}, "must be a table in memory.*got str"),
    "levels for counts": ({"formula": "stage ~ age"}, "has levels .* takes numbers"),
    "three levels for two": (
        {"formula": "stage ~ age", "family": "logistic"},
        r"two levels \(the later one counts as 1\), got 3 \(early, late, middle\)",
    ),
    "counts below 0": ({"formula": "age - 100 ~ income"}, "has no response|one response|at least"),
    "numbers for two": ({"family": "logistic"}, "response must be zeros and ones"),
    "tied columns": (
        {"formula": "visits ~ age + twice + income"},
        "columns age, twice of the design are linearly dependent",
    ),
    "no scale": ({"formula": "weeks ~ age", "family": "gaussian"}, "needs scale"),
    "no such family": ({"family": "poison"}, "family must be one of .*'poison'"),
    "no positive response": (
        {"formula": "log_exposure ~ age", "family": "gamma"},
        "response must be positive, got -",
    ),
    "no such setting": ({"size": 2.0}, "has no setting size"),
    "no such prior": ({"prior": {"agee": 1.0}}, "prior asks for 'agee'.*do you mean 'age'"),
    "a prior of 0": ({"prior": {"age": 0.0}}, "prior of 'age' must be a positive"),
    "a prior that is text": ({"prior": "wide"}, "prior must be a standard deviation"),
    "two for the intercept": (
        {"prior": {"Intercept": 1.0}, "intercept_prior": 2.0},
        "prior names it too",
    ),
    "none for no intercept": (
        {"formula": "visits ~ 0 + age", "intercept_prior": 2.0},
        "the formula has none",
    ),
    "two priors": (
        {"prior": sk.gaussian_prior(0.0, 1.0), "intercept_prior": 2.0},
        "beside a prior of all",
    ),
    "an offset that is text": (
        {"offset": "clinic"},
        "column 'clinic', the offset, must be numbers",
    ),
    "what to do with holes": ({"na_action": "ignore"}, "must be 'raise' or 'drop'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused_with_advice(case):
    given, said = REFUSED[case]
    usual = {"formula": FORMULA, "data": FRAME, "family": "poisson"}
    with pytest.raises(ConfigurationError, match=said):
        sk.glm(**{**usual, **given})


def test_lengths_and_names_that_do_not_fit_are_refused():
    with pytest.raises(ShapeError, match=r"offset must be a column's name or have shape \(120,\)"):
        sk.glm(FORMULA, FRAME, "poisson", offset=np.zeros(3))
    with pytest.raises(ShapeError, match="columns of data must be of one length"):
        sk.glm("y ~ x", {"y": [1, 2, 3], "x": [1.0, 2.0]}, "poisson")
    with pytest.raises(ShapeError, match="there are 1 names, but the potential takes 2 numbers"):
        NamedPotential.of(sk.rows_potential("poisson", DESIGN[:, :2], DATA["visits"]), ["age"])


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_one_row_of_many_tells_columns_apart(scale):
    rows = np.random.default_rng(1).normal(size=(25_000, 3)) * [1.0, scale, 1.0]
    rows[:, 2] = rows[:, 0] - 3.0 * rows[:, 1] / scale
    with pytest.raises(ConfigurationError, match="columns a, b, c of the design are linearly"):
        check_rank(rows, ["a", "b", "c"], np.ones(3, dtype=bool))
    check_rank(rows, ["a", "b", "c"], np.array([True, False, True]))
    rows[-1, 2] += 1.0
    check_rank(rows, ["a", "b", "c"], np.ones(3, dtype=bool))
    assert sk.glm("visits ~ age + twice", FRAME, "poisson", prior=1.0).dim == 3


def test_rows_that_do_not_count_decide_nothing():
    frame = FRAME.assign(rare=(np.arange(N) == 0).astype(float))
    weights = (np.arange(N) > 0).astype(float)
    with pytest.raises(ConfigurationError, match="columns rare of the design"):
        sk.glm("visits ~ rare", frame, "poisson", weights=weights)


def test_types_with_room_for_holes_are_those_of_whole_rows_again():
    holes = {
        "whole": pandas.array([None, *DATA["count"][1:]], dtype="Int64"),
        "flag": [None, *(DATA["died"][1:] == 1)],
    }
    ours = sk.glm("flag ~ whole", FRAME.assign(**holes), "logistic", na_action="drop")
    design = np.column_stack([np.ones(N - 1), DATA["count"][1:]])
    assert_same(ours, sk.rows_potential("logistic", design, DATA["died"][1:]), POSITIONS[:, :2])


def test_what_is_missing_is_told():
    with pytest.raises(MissingDependencyError, match=r"pip install 'surrokit\[formula\]'"):
        library("surrokit_absent", "here")
