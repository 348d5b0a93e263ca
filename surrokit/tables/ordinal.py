"""Responses of ordered levels: their order, and cutpoints that data may leave undecided."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import attrs
import numpy as np

from surrokit.errors import ConfigurationError
from surrokit.tables.formula import INTERCEPT, Matrices
from surrokit.tables.frames import library
from surrokit.tables.priors import check_rank
from surrokit.tables.separation import check_separation
from surrokit.types import BoolArray

ORDINAL = "ordinal"
"""The family whose responses are ordered levels."""

_ORDER = (
    "give the order by levels=[...], the lowest level first, or make the column an ordered "
    "categorical"
)


def order_levels(made: Matrices, frame: Any, levels: Sequence[Any] | None) -> Matrices:
    """Return a design without intercept, and a response of levels in their order.

    Parameters
    ----------
    made
        What the formula made.
    frame
        The table, whose ordered columns know the order of their levels.
    levels
        The levels, the lowest first; None for the order of numbers, or of an ordered column.

    Raises
    ------
    ConfigurationError
        If nothing says the order, there is but one level, one never occurs, or one is not named.
    """
    occurring = made.levels or tuple(f"{y:g}" for y in np.unique(made.response))
    if made.levels:
        numbers = made.response.astype(np.int64)
    else:
        numbers = np.unique(made.response, return_inverse=True)[1]
    order = _order(made, frame, levels)
    for one in order:
        if one not in occurring:
            raise ConfigurationError(
                f"level {one!r} of response {made.label!r} never occurs, so that data leave its "
                "cutpoints undecided; leave it out of the levels, or join it with a neighbour"
            )
    absent = [one for one in occurring if one not in order]
    if absent or len(set(order)) < len(order):
        raise ConfigurationError(
            f"levels must name every level of response {made.label!r} once, got {', '.join(order)} "
            f"for {', '.join(occurring)}; add or drop some"
        )
    if len(order) < 2:
        raise ConfigurationError(
            f"response {made.label!r} must have at least two levels, got {order[0]} alone; there "
            "is nothing to tell apart"
        )
    places = np.array([order.index(one) for one in occurring])
    kept = [k for k, name in enumerate(made.columns) if name != INTERCEPT]
    if not kept:
        raise ConfigurationError(
            "an ordinal regression needs a covariate, since its cutpoints stand for the "
            "intercept; write y ~ x"
        )
    return attrs.evolve(
        made,
        design=np.ascontiguousarray(made.design[:, kept]),
        columns=tuple(made.columns[k] for k in kept),
        response=places[numbers].astype(np.float64),
        levels=tuple(order),
    )


def _order(made: Matrices, frame: Any, levels: Sequence[Any] | None) -> list[str]:
    if levels is not None:
        if isinstance(levels, str):
            raise ConfigurationError(
                f"levels must be a list, the lowest level first, got {levels!r}; write "
                "levels=['low', 'high']"
            )
        return [_text(one) for one in levels]
    if not made.levels:
        return [f"{y:g}" for y in np.unique(made.response)]
    column = frame[made.label] if made.label in frame.columns else None
    pandas = library("pandas", "for regressions from tables")
    kind = getattr(column, "dtype", None)
    if not isinstance(kind, pandas.CategoricalDtype) or not kind.ordered:
        raise ConfigurationError(
            f"nothing says the order of the levels {', '.join(made.levels[:10])} of response "
            f"{made.label!r}; {_ORDER}"
        )
    return [str(one) for one in kind.categories]


def _text(level: Any) -> str:
    is_number = isinstance(level, int | float | np.number) and not isinstance(level, bool)
    return f"{level:g}" if is_number else str(level)


def cutpoints_of(levels: Sequence[str]) -> list[str]:
    """Return the names of the cutpoints between levels, such as ``low|high``."""
    return [f"{lower}|{upper}" for lower, upper in pairwise(levels)]


def check_decided(made: Matrices, counts: BoolArray | slice, flat: BoolArray) -> None:
    """Raise unless data and priors decide on coefficients and cutpoints.

    Parameters
    ----------
    made
        As :func:`order_levels` returns it.
    counts : ndarray of bool, shape (n_rows,), or slice
        Rows that count.
    flat : ndarray of bool, shape (n_columns + n_cutpoints,)
        Which parameters have a flat prior.

    Raises
    ------
    ConfigurationError
        If columns are linearly dependent, with each other or in that a combination is constant, or
        separate the responses; the posterior would be improper.

    Notes
    -----
    Cutpoints may move together unless one has a prior: they are as a column of ones. Categories
    grow without end along a direction on which every upper cutpoint less its row's predictor
    rises, and every lower one falls. These are the terms of a logistic regression.
    """
    n_columns = len(made.columns)
    x, y = made.design[counts], made.response[counts].astype(np.int64)
    ones = np.column_stack([np.ones(len(x)), x])
    together = bool(flat[n_columns:].all())
    check_rank(ones, ["the cutpoints", *made.columns], np.append(together, flat[:n_columns]))
    n_cutpoints = len(made.levels) - 1
    upper, lower = np.flatnonzero(y < n_cutpoints), np.flatnonzero(y > 0)
    terms = np.hstack(
        [-x[np.append(upper, lower)], np.zeros((len(upper) + len(lower), n_cutpoints))]
    )
    cutpoints = np.append(y[upper], y[lower] - 1)
    terms[np.arange(len(terms)), n_columns + cutpoints] = 1.0
    rises = np.repeat([1.0, 0.0], [len(upper), len(lower)])
    names = [*made.columns, *cutpoints_of(made.levels)]
    check_separation("logistic", terms, rises, names, flat)
