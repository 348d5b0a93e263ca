"""Responses that columns tell apart: flat priors are refused there, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

import surrokit as sk
from surrokit.errors import ConfigurationError
from surrokit.tables.priors import ROWS_AT_ONCE, check_separation

pytest.importorskip("formulaic", reason="formulas need the extra surrokit[formula]")

OF_TWO = ("logistic", "probit")
FAMILIES = (*OF_TWO, "poisson", "negative-binomial", "exponential", "weibull")


def look(family, design, response, flat=None):
    columns = [f"c{i}" for i in range(design.shape[1])]
    flat = np.ones(len(columns), dtype=bool) if flat is None else np.array(flat)
    check_separation(family, design, np.asarray(response, dtype=float), columns, flat)


def groups(n=5000, k=6, seed=3):
    """An intercept, a number, and k - 1 indicators; rows come in the order of the groups."""
    rng = np.random.default_rng(seed)
    group = np.sort(rng.integers(0, k, n))
    indicators = np.eye(k)[group][:, 1:]
    return np.column_stack([np.ones(n), 1e4 * rng.normal(size=n), indicators]), group, rng


@pytest.mark.parametrize("family", FAMILIES)
def test_a_group_whose_events_are_all_alike_is_seen(family):
    """Events alone separate where there are two responses."""
    design, group, rng = groups()
    response = rng.integers(0, 2, len(group))
    look(family, design, response)
    response[group == 4] = 0
    with pytest.raises(ConfigurationError, match=r"columns c5 of the design separate"):
        look(family, design, response)
    look(family, design, response, flat=[True] * 5 + [False, True])
    response[group == 4] = 1
    if family in OF_TWO:
        with pytest.raises(ConfigurationError, match="c5"):
            look(family, design, response)
    else:
        look(family, design, response)


@pytest.mark.parametrize(("family", "n"), [("logistic", 30), ("probit", 50_000)])
def test_a_line_between_responses_is_seen_and_one_row_beyond_it_too(family, n):
    rng = np.random.default_rng(n)
    design = np.column_stack([np.ones(n), rng.normal(size=(n, 3))])
    away = design @ [0.3, 1.0, -2.0, 0.5]
    response = (away > 0.0).astype(float)
    with pytest.raises(ConfigurationError, match="c0, c1, c2, c3"):
        look(family, design, response)
    response[np.argmin(away)] = 1.0
    look(family, design, response)


def test_rows_that_are_not_among_the_first_decide_too():
    """A single row of a level, of so many that the first programme does not see it."""
    n = 40_000
    rng = np.random.default_rng(1)
    design = np.column_stack([np.ones(n), np.zeros(n)])
    design[12_350, 1] = 1.0
    assert 12_350 not in np.linspace(0, n - 1, ROWS_AT_ONCE).astype(int)
    with pytest.raises(ConfigurationError, match="columns c1 of"):
        look("logistic", design, rng.integers(0, 2, n))


def test_formulas_are_looked_at():
    rng = np.random.default_rng(2)
    age, clinic = rng.normal(50.0, 9.0, 200), rng.choice(["a", "b", "c"], 200)
    visits = np.where(clinic == "b", 0, 1 + rng.integers(0, 3, 200))
    table = {"age": age, "clinic": clinic, "visits": visits, "sick": visits > 0}
    for formula, family in (
        ("visits ~ age + clinic", "poisson"),
        ("sick ~ age + clinic", "probit"),
    ):
        with pytest.raises(
            ConfigurationError, match=r"clinic\[T\.b\].* give these columns a prior"
        ):
            sk.glm(formula, table, family)
        sk.glm(formula, table, family, prior=2.5, intercept_prior=2.5)
    kept = (clinic != "b").astype(float)  # rows that weigh nothing do not count
    sk.glm("visits ~ age", table, "poisson", weights=kept)


def test_times_without_an_event_in_a_group_are_refused():
    rng = np.random.default_rng(4)
    odd = np.arange(60) % 2
    table = {"group": odd, "weeks": rng.exponential(5.0, 60), "died": odd}
    with pytest.raises(ConfigurationError, match="group"):
        sk.glm("weeks ~ group", table, "exponential", event="died")
    sk.glm("weeks ~ group", table, "exponential")
