"""Columns of a table as people have them: objects, dates, many levels, transforms and indices."""

from datetime import date, timedelta
from decimal import Decimal

import numpy as np
import pytest

import surrokit as sk
from surrokit.errors import ConfigurationError

pd = pytest.importorskip("pandas")
pytest.importorskip("formulaic")

N = 120


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    x = rng.normal(size=N).round(2)
    return pd.DataFrame(
        {
            "x": x,
            "day": np.arange(N, dtype=float),
            "count": rng.poisson(2.0, N),
            "y": rng.integers(0, 2, N),
            "log_t": rng.normal(size=N),
            "when": pd.date_range("2020-01-01", periods=N),
            "born": [date(2020, 1, 1) + timedelta(k) for k in range(N)],
            "person": [f"p{k}" for k in range(N)],
            "clinic": [f"c{k % 60}" for k in range(N)],
            "group": [f"g{k % 4}" for k in range(N)],
        }
    )


def names(target):
    return list(target.parameters.specs)


@pytest.mark.parametrize("kind", [Decimal, float, np.float64])
def test_objects_that_are_numbers_are_one_covariate(frame, kind):
    frame["it"] = pd.Series([kind(str(x)) for x in frame["x"]], dtype=object)
    target = sk.glm("count ~ it", frame, "poisson", prior=1.0)
    plain = sk.glm("count ~ x", frame, "poisson", prior=1.0)
    assert names(target) == ["Intercept", "it"]
    at = np.array([[0.3, -0.2]])
    assert target.value(at) == plain.value(at)


def test_objects_with_a_none_are_numbers_where_rows_are_dropped(frame):
    frame["it"] = pd.Series([Decimal(str(x)) for x in frame["x"]], dtype=object)
    frame.loc[3, "it"] = None
    target = sk.glm("count ~ it", frame, "poisson", prior=1.0, na_action="drop")
    assert names(target) == ["Intercept", "it"]
    assert target.n_rows == N - 1
    with pytest.raises(ConfigurationError, match="data lacks values: 1 in 'it'"):
        sk.glm("count ~ it", frame, "poisson")


@pytest.mark.parametrize("name", ["when", "born"])
def test_dates_are_refused_with_what_to_do(frame, name):
    with pytest.raises(ConfigurationError, match=f"column '{name}' has .* levels.*count days"):
        sk.glm(f"count ~ {name}", frame, "poisson", prior=1.0)
    with pytest.raises(ConfigurationError, match=r"the offset.* dates or times; count days"):
        sk.glm("count ~ x", frame, "poisson", offset="when")


def test_days_that_a_formula_counts_are_taken(frame):
    target = sk.glm("count ~ I(when.dt.day)", frame, "poisson", prior=1.0)
    assert names(target) == ["Intercept", "I(when.dt.day)"]


@pytest.mark.parametrize(("name", "n_levels"), [("person", 120), ("clinic", 60)])
def test_levels_without_number_are_asked_about(frame, name, n_levels):
    with pytest.raises(ConfigurationError, match=rf"{n_levels} levels.*write C\({name}\)"):
        sk.glm(f"count ~ {name}", frame, "poisson", prior=1.0)
    frame[name] = frame[name].astype("category")
    with pytest.raises(ConfigurationError, match=f"{n_levels} levels"):
        sk.glm(f"count ~ x:{name}", frame, "poisson", prior=1.0)
    assert sk.glm(f"count ~ C({name})", frame, "poisson", prior=1.0).dim == n_levels


def test_few_levels_are_no_question(frame):
    assert sk.glm("count ~ group", frame, "poisson").dim == 4
    small = frame.iloc[:6]
    assert sk.glm("count ~ group", small, "poisson", prior=1.0).dim == 4


@pytest.mark.parametrize("key", ["offset", "weights"])
def test_a_series_is_matched_by_index(frame, key):
    beside = np.exp(frame["log_t"])
    target = sk.glm("count ~ x", frame, "poisson", **{key: beside.iloc[::-1]})
    plain = sk.glm("count ~ x", frame, "poisson", **{key: beside.to_numpy()})
    at = np.array([[0.3, -0.2]])
    assert target.value(at) == plain.value(at)


def test_events_and_parts_of_tables_are_matched_by_index(frame):
    frame["time"] = np.exp(frame["log_t"])
    part = frame.iloc[::-2]
    at = np.array([[0.3, -0.2]])
    target = sk.glm("time ~ x", part, "exponential", event=frame["y"])
    plain = sk.glm("time ~ x", part, "exponential", event="y")
    assert target.value(at) == plain.value(at)


def test_a_series_of_other_rows_is_refused(frame):
    other = frame["log_t"].set_axis(np.arange(N) + 1)
    with pytest.raises(
        ConfigurationError, match=r"offset and data have different indices.*to_numpy"
    ):
        sk.glm("count ~ x", frame, "poisson", offset=other)


def test_columns_of_a_dictionary_are_matched_by_index(frame):
    data = {"count": frame["count"], "x": frame["x"].iloc[::-1]}
    at = np.array([[0.3, -0.2]])
    expected = sk.glm("count ~ x", frame, "poisson").value(at)
    assert sk.glm("count ~ x", data, "poisson").value(at) == expected


def test_rows_of_a_regression_and_of_functions_are_matched_by_index(frame):
    design = frame[["x", "day"]] / 100.0
    at = np.array([[0.3, -0.2]])
    expected = sk.rows_potential("poisson", design.to_numpy(), frame["count"].to_numpy())
    target = sk.rows_potential("poisson", design, frame["count"].iloc[::-1])
    assert target.value(at) == expected.value(at)
    with pytest.raises(ConfigurationError, match="response and design have different indices"):
        sk.rows_potential("poisson", design, frame["count"].set_axis(np.arange(N) + 1))
    terms = lambda q, rows: q[0] * rows["a"] * rows["b"]  # noqa: E731
    data = {"a": frame["x"], "b": frame["day"].iloc[::-1]}
    own = sk.rows_potential(terms, data, dim=1)
    assert own.value(np.ones((1, 1))) == pytest.approx(-(frame["x"] * frame["day"]).sum())


@pytest.mark.parametrize(
    ("term", "n_columns"),
    [
        ("bs(day, df=5)", 5),
        ("poly(day, 2)", 2),
        ("scale(day)", 1),
        ("center(day)", 1),
        ("cr(day, df=5)", 5),
        ("poly(`day of study`, 2)", 2),
        ("bs(np.log(day + 1), df=4)", 4),
    ],
)
def test_transforms_find_columns_that_do_not_stand_alone(frame, term, n_columns):
    frame["day of study"] = frame["day"]
    target = sk.glm(f"count ~ {term}", frame, "poisson", prior=1.0)
    assert target.dim == 1 + n_columns


def test_a_transform_of_a_column_that_lacks_values_drops_its_rows(frame):
    frame.loc[5, "day"] = np.nan
    target = sk.glm("count ~ bs(day, df=4)", frame, "poisson", prior=1.0, na_action="drop")
    assert target.n_rows == N - 1
