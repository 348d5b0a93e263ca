"""Regressions by a formula and a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, cast

import attrs
import numpy as np

from surrokit.arguments import is_number, matched
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.potentials import SummedPotential, predictor_of
from surrokit.predictive.families import MULTINOMIAL, ORDINAL, read_name
from surrokit.tables.formula import (
    INTERCEPT,
    FormulaReader,
    Matrices,
    ParsedFormula,
    parse_formula,
)
from surrokit.tables.frames import (
    NaAction,
    check_columns,
    column_names,
    keep_rows,
    number_column,
    read_columns,
    with_numbers,
)
from surrokit.tables.priors import (
    ByName,
    One,
    check_rank,
    check_separation,
    flat_columns,
    prior_by_name,
)
from surrokit.tables.rows import rows_potential
from surrokit.targets.functions import NamedPotential
from surrokit.types import FloatArray

_WITH_ERRORS = ("gaussian", "student", "logistic-errors")
_OF_NUMBERS = (*_WITH_ERRORS, "poisson", "negative-binomial", "gamma", "exponential", "weibull")


def glm(
    formula: str,
    data: Any,
    family: Any,
    *,
    prior: ByName = None,
    intercept_prior: One | None = None,
    offset: Any = None,
    weights: Any = None,
    event: Any = None,
    levels: Sequence[Any] | None = None,
    na_action: NaAction = "raise",
    context: Mapping[str, Any] | None = None,
    **settings: Any,
) -> SummedPotential:
    """Return the target of a regression that a formula describes, with a table for its data.

    It is :func:`rows_potential` with the design that the formula makes, so all that holds for sums
    over rows holds for it. Each coefficient is a parameter that is called by its column, such as
    ``age`` or ``C(clinic)[T.b]``, in the units of the data.

    Parameters
    ----------
    formula
        Such as ``"visits ~ age + C(clinic) + np.log(income)"``, in the language of Formulaic. There
        is an intercept unless ``0 +`` is in it. It is evaluated as Python code: take none from
        strangers.
    data
        A pandas, Polars or Arrow table, or a dictionary of columns. Only those columns are read
        that are used. Columns of objects that are all numbers, such as decimals, are numbers. Dates
        are rejected, and so is text with more than 50 levels, or nearly a level for each row,
        unless ``C(...)`` in the formula makes it a category.
    family
        As :func:`rows_potential` takes it. ``"logistic"`` and ``"probit"`` also take a response of
        two levels; the later one counts as 1 (of text, by the alphabet);
        ``"multinomial"`` takes one of several levels; the first is the reference, and its
        coefficients are called by level and column, such as ``late: age``. ``"ordinal"`` takes
        one of ordered levels, and has cutpoints in place of an intercept, which are called by the
        levels on either side, such as ``early|late``.
    prior
        Normal. A number is the standard deviation of every coefficient but intercept and cutpoints.
        A dictionary gives some by name, each a standard deviation or a pair of mean and standard
        deviation; the others are flat, and None is flat for all. Or a prior of all coefficients,
        in order, as :func:`gaussian_prior` makes it; cutpoints come last. In place of flat ones
        coefficients and cutpoints of ``"ordinal"`` have wide ones, of 10 where covariates are
        standardised.
    intercept_prior
        Of the intercept: a standard deviation, or a pair; flat unless given.
    offset, weights, event : str or array_like of shape (n_rows,), optional
        A column's name, or an array; see :func:`rows_potential`. A pandas Series is matched to a
        pandas table by index.
    levels
        Of an ordinal response, the lowest first; by default those of an ordered column, or numbers
        in their order.
    na_action
        ``"raise"`` rejects rows that lack a value in a column that is used; ``"drop"`` leaves them
        out.
    context
        Functions and values that the formula uses, by name. Formulaic has ``np`` and some more.
    **settings
        ``scale``, ``degrees``, ``size`` and ``shape`` of the family. They are known numbers, which
        are not inferred. Families of errors must be given ``scale``.

    Raises
    ------
    ConfigurationError
        If the formula cannot be read or evaluated, a column is absent, a row lacks a value,
        responses are none of the family's, columns with flat priors are linearly dependent or
        separate the responses, or a setting makes no sense.
    ShapeError
        If an array does not have a number for each row.
    MissingDependencyError
        If Formulaic or pandas is not installed.
    """
    family, settings = read_name(family, settings)
    beside = {"offset": offset, "weights": weights, "event": event}
    beside = {key: values for key, values in beside.items() if values is not None}
    asks, frame, numbers = _read(formula, data, beside, na_action, context)
    if family in _WITH_ERRORS and settings.get("scale") is None:
        raise ConfigurationError(
            f"the family {family!r} needs scale, that of its errors in units of the response, "
            "which is not inferred here; give scale=..., such as the residuals' standard deviation"
        )
    made = asks.matrices(frame)
    if family == ORDINAL:
        made = _order_levels(made, frame, levels)
        prior = _prior_beside_cutpoints(prior, intercept_prior, made)
    else:
        _check_levels(family, made, levels)
    names, by_column = _coefficients(family, made)
    normal = prior_by_name(prior, intercept_prior, names, by_column)
    target = rows_potential(family, made.design, made.response, prior=normal, **numbers, **settings)
    if family != ORDINAL:
        counts = numbers["weights"] > 0.0 if "weights" in numbers else slice(None)
        design, flat = made.design[counts], flat_columns(normal, made.columns)
        check_rank(design, made.columns, flat)
        came = numbers.get("event", made.response)  # of times: whether it came
        check_separation(family, design, came[counts], made.columns, flat)
    own = predictor_of(target)
    if own is not None:
        column = offset if offset is None or isinstance(offset, str) else ""
        reader = FormulaReader(asked=asks, made=made, offset=column)
        own = attrs.evolve(own, reader=reader, levels=made.levels)
    return cast(SummedPotential, NamedPotential.of(target, names, own))


def _read(
    formula: str, data: Any, beside: Mapping[str, Any], na_action: NaAction, context: Any
) -> tuple[ParsedFormula, Any, dict[str, FloatArray]]:
    """Return a formula, the rows that are kept of the table, and what goes beside the design.

    That is given by columns' names or as arrays.
    """
    columns = column_names(data)
    for key, name in beside.items():
        if isinstance(name, str):
            check_columns([name], columns, key)
    used = {name for name in beside.values() if isinstance(name, str)}
    free = [name for name in columns if name not in used]
    has_dot = "." in str(formula).partition("~")[2].replace("+", " ").replace("-", " ").split()
    asks = parse_formula(formula, free if has_dot else columns, context)
    frame = read_columns(data, [name for name in columns if name in {*asks.columns, *used}])
    kept = keep_rows(frame, na_action)
    # columns with holes had types with room for these
    frame = frame if kept.all() else frame[kept].reset_index(drop=True).infer_objects()
    frame = with_numbers(frame)
    found = {}
    for key, values in beside.items():
        if isinstance(values, str):
            found[key] = number_column(frame[values], f"column {values!r}, the {key},")
            continue
        array = np.asarray(matched(values, key, data, "data"))
        if array.shape != kept.shape:
            raise ShapeError(
                f"{key} must be a column's name or have shape {kept.shape}, one for each row "
                f"of data, got {array.shape}"
            )
        found[key] = number_column(array[kept], key)
    return asks, frame, found


def _check_levels(family: Any, made: Matrices, levels: Sequence[Any] | None) -> None:
    """Raise unless the levels of a response are those of the family; numbers are its own affair."""
    if levels is not None:
        raise ConfigurationError(
            f"levels go with the family {ORDINAL!r}, got them for {family!r}; leave them out"
        )
    if not made.levels:
        return
    shown = ", ".join(made.levels[:10])
    of_numbers = family in _OF_NUMBERS if isinstance(family, str) else family.responses != "binary"
    if of_numbers:
        raise ConfigurationError(
            f"response {made.label!r} has levels ({shown}), but the family "
            f"{getattr(family, 'name', family)!r} takes numbers; give a column of numbers"
        )
    if family == MULTINOMIAL and len(made.levels) > 1:
        return
    if len(made.levels) != 2:
        raise ConfigurationError(
            f"response {made.label!r} must have two levels (the later one counts as 1), "
            f"got {len(made.levels)} ({shown}); join levels, or take the family {MULTINOMIAL!r} "
            "for more than two"
        )


def _prior_beside_cutpoints(prior: Any, intercept_prior: One | None, made: Matrices) -> Any:
    """Return priors by name, wide ones where none are given: data alone need not decide.

    They are those of covariates about their means in units of their standard deviations, and of
    cutpoints there, with a standard deviation of 10.
    """
    cutpoints = _cutpoints_of(made.levels)
    if intercept_prior is not None:
        raise ConfigurationError(
            f"the family {ORDINAL!r} has cutpoints in place of an intercept; leave intercept_prior "
            f"out, and give them priors by name, such as {cutpoints[0]!r}"
        )
    given = dict.fromkeys(made.columns, prior) if is_number(prior) else prior
    if not isinstance(given, Mapping | None):
        return given
    spread, mean = made.design.std(axis=0), made.design.mean(axis=0)
    units = np.where(spread > 0.0, spread, 1.0)
    far = float(np.sqrt(1.0 + np.square(mean / units).sum()))
    usual = dict(zip(made.columns, (10.0 / units).tolist(), strict=True))
    return {**usual, **dict.fromkeys(cutpoints, 10.0 * far), **(given or {})}


def _coefficients(family: Any, made: Matrices) -> tuple[list[str], list[str]]:
    """Return the name of each coefficient, and its column; cutpoints have one of their own."""
    if family == ORDINAL:
        both = [*made.columns, *_cutpoints_of(made.levels)]
        return both, both
    if family != MULTINOMIAL:
        return list(made.columns), list(made.columns)
    levels = made.levels or tuple(f"{y:g}" for y in np.unique(made.response))
    pairs = [(f"{level}: {column}", column) for level in levels[1:] for column in made.columns]
    return [name for name, _ in pairs], [column for _, column in pairs]


def _order_levels(made: Matrices, frame: Any, levels: Sequence[Any] | None) -> Matrices:
    """Return a design without intercept, and a response of levels in their order.

    Without levels, the lowest first, they have the order of numbers, or of an ordered column.
    """
    occurring, numbers = made.levels, made.response.astype(np.int64)
    if not occurring:
        values, numbers = np.unique(made.response, return_inverse=True)
        occurring = tuple(f"{y:g}" for y in values)
    order = _order(made, frame, levels) or list(occurring)
    if sorted(order) != sorted(occurring):
        raise ConfigurationError(
            f"levels must name every level of response {made.label!r} once, and no level that "
            f"never occurs, got {', '.join(order)} for {', '.join(occurring)}; add or drop some"
        )
    kept = [k for k, name in enumerate(made.columns) if name != INTERCEPT]
    if not kept:
        raise ConfigurationError(
            "an ordinal regression needs a covariate, since its cutpoints are the "
            "intercept; write y ~ x"
        )
    places = np.array([order.index(one) for one in occurring], dtype=np.float64)
    return attrs.evolve(
        made,
        design=np.ascontiguousarray(made.design[:, kept]),
        columns=tuple(made.columns[k] for k in kept),
        response=places[numbers],
        levels=tuple(order),
    )


def _order(made: Matrices, frame: Any, levels: Sequence[Any] | None) -> list[str] | None:
    """Return levels as they are given, or as their column orders them; None for numbers."""
    if isinstance(levels, str):
        raise ConfigurationError(
            f"levels must be a list, the lowest level first, got {levels!r}; write "
            "levels=['low', 'high']"
        )
    if levels is not None:
        return [f"{one:g}" if is_number(one) else str(one) for one in levels]
    if not made.levels:
        return None
    kind: Any = frame[made.label].dtype if made.label in frame.columns else None
    if not getattr(kind, "ordered", False):
        raise ConfigurationError(
            f"levels {', '.join(made.levels[:10])} of response {made.label!r} have no order; "
            f"give the order by levels=[...], the lowest level first, or make the "
            "column an ordered categorical"
        )
    return [str(one) for one in kind.categories]


def _cutpoints_of(levels: Sequence[str]) -> list[str]:
    """Return the names of the cutpoints between levels, such as ``low|high``."""
    return [f"{lower}|{upper}" for lower, upper in pairwise(levels)]
