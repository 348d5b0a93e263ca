"""Normal priors of coefficients by name, and columns that data and flat priors leave undecided.

Columns may be linearly dependent, or separate the responses: coefficients may then grow without end
along a direction b on which no response gets less likely. Of responses 0 and 1, x b >= 0 in rows of
ones and x b <= 0 in rows of zeros (Albert and Anderson 1984, doi:10.1093/biomet/71.1.1); of counts,
x b = 0 where there are some and x b <= 0 where there are none. Whether there is such a direction is
a linear programme.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from surrokit.arguments import is_number
from surrokit.errors import ConfigurationError
from surrokit.tables.formula import INTERCEPT
from surrokit.tables.frames import check_columns
from surrokit.targets.gaussian import GaussianPrior, gaussian_prior
from surrokit.types import BoolArray, FloatArray

One: TypeAlias = float | tuple[float, float]
"""The prior of one coefficient: a standard deviation, about 0, or a mean and one."""

ByName: TypeAlias = GaussianPrior | float | Mapping[str, One] | None
"""Priors of coefficients."""

ROWS_AT_ONCE = 2000
"""Rows that the programme has at first, and those that are added each time."""


def prior_by_name(
    prior: ByName, intercept_prior: One | None, names: Sequence[str], columns: Sequence[str]
) -> GaussianPrior | None:
    """Return the prior of all coefficients; None if it is flat.

    It is that of the coefficients' names, each with its column; a name in a mapping may be a
    column, of several coefficients. ConfigurationError is raised if a prior cannot be read, or has
    no coefficient.
    """
    if isinstance(prior, GaussianPrior):
        if intercept_prior is not None:
            raise ConfigurationError(
                "intercept_prior is given beside a prior of all coefficients; leave one of them out"
            )
        return prior
    given = _by_name(prior, intercept_prior, columns)
    check_columns(given, [*columns, *(set(names) - set(columns))], "prior")
    means, sds = np.zeros(len(names)), np.full(len(names), np.inf)
    for k, (name, column) in enumerate(zip(names, columns, strict=True)):
        one: Any = given.get(name, given.get(column))
        if one is None:
            continue
        pair = (0.0, one) if is_number(one) else one
        fine = isinstance(pair, tuple | list) and len(pair) == 2 and all(map(is_number, pair))
        if not fine or not np.isfinite(pair[0]) or not 0.0 < pair[1] < np.inf:
            raise ConfigurationError(
                f"prior of {name!r} must be a positive standard deviation or a pair (mean, sd), "
                f"got {one!r}; leave it out for a flat prior"
            )
        means[k], sds[k] = pair
    if np.isinf(sds).all():
        return None
    if not means.any() and (sds == sds[0]).all():
        return gaussian_prior(0.0, float(sds[0]))  # one number, which some models gain by
    return gaussian_prior(means, sds)


def _by_name(prior: Any, intercept: One | None, columns: Sequence[str]) -> dict[str, One]:
    if is_number(prior):
        given: dict[str, One] = {name: prior for name in columns if name != INTERCEPT}
    elif prior is None or isinstance(prior, Mapping):
        given = dict(prior or {})
    else:
        raise ConfigurationError(
            "prior must be a standard deviation, a dictionary of them by the names of "
            f"coefficients, or that of surrokit.gaussian_prior, got {prior!r}"
        )
    if intercept is None:
        return given
    if INTERCEPT in given or INTERCEPT not in columns:
        reason = "prior names it too" if INTERCEPT in given else "the formula has none"
        raise ConfigurationError(
            f"intercept_prior is given, but {reason}; leave intercept_prior out"
        )
    return {**given, INTERCEPT: intercept}


def flat_columns(prior: GaussianPrior | None, columns: Sequence[str]) -> BoolArray:
    """Return which columns have a coefficient with a flat prior, shape (n_columns,).

    The coefficients are those of columns of the design, perhaps for several classes.
    """
    if prior is None:
        return np.ones(len(columns), dtype=bool)
    flat = np.isinf(np.atleast_1d(prior.sd))
    if len(flat) % len(columns):
        return np.full(len(columns), bool(flat.all()))
    return np.asarray(flat.reshape(-1, len(columns)).any(axis=0))


def check_rank(design: FloatArray, columns: Sequence[str], flat: BoolArray) -> None:
    """Raise ConfigurationError if neither data nor priors decide between combinations of columns.

    Then a column with a flat prior is a combination of others with flat ones, and the posterior
    would be improper. The design (n_rows, n_columns) is of rows that count; ``flat`` (n_columns,)
    says which of the columns have a flat prior.
    """
    names = [name for name, is_flat in zip(columns, flat, strict=True) if is_flat]
    if not names:
        return
    factor = np.linalg.qr(design[:, flat], mode="r")
    lengths = np.linalg.norm(factor, axis=0)  # those of the columns
    lengths[lengths == 0.0] = 1.0
    level = _null_space(factor / lengths, len(design))
    if not level.size:
        return
    direction = np.abs(level[:, -1])
    tied = [name for name, part in zip(names, direction, strict=True) if part > 1e-6]
    raise ConfigurationError(
        f"columns {', '.join(tied)} of the design are linearly dependent in the "
        f"{len(design)} rows that count, so that neither data nor a flat prior determine their "
        "coefficients; leave one of them out, or give them a prior"
    )


def check_separation(
    family: object,
    design: FloatArray,
    response: FloatArray,
    columns: Sequence[str],
    flat: BoolArray,
) -> None:
    """Raise ConfigurationError if columns with flat priors separate the responses.

    The posterior would be improper. It is looked at where a family's name is known. Responses
    (n_rows,) are zeros and ones, or counts, or whether the event came; other arguments are those of
    :func:`check_rank`.
    """
    of_two = family in ("logistic", "probit")
    of_counts = family in ("poisson", "negative-binomial", "exponential", "weibull")
    if not (of_two or of_counts) or not flat.any():
        return
    free = design[:, flat]
    sizes = np.abs(free).max(axis=0, initial=0.0)
    rows = free / np.where(sizes > 0.0, sizes, 1.0)
    if of_two:
        direction = _rising_direction(np.where(response > 0.0, 1.0, -1.0)[:, None] * rows)
    else:
        ones = rows[response > 0.0]
        factor = np.linalg.qr(ones, mode="r") if len(ones) else ones
        level = _null_space(np.asarray(factor), len(ones))
        found = _rising_direction(-rows[response <= 0.0] @ level) if level.size else None
        direction = None if found is None else level @ found
    if direction is None:
        return
    names = [name for name, is_flat in zip(columns, flat, strict=True) if is_flat]
    large = np.abs(direction) > 1e-6 * np.abs(direction).max()
    named = ", ".join(name for name, is_large in zip(names, large, strict=True) if is_large)
    raise ConfigurationError(
        f"columns {named} of the design separate the responses, so that their coefficients grow "
        "without end under a flat prior; give these columns a prior, or join levels"
    )


def _null_space(factor: FloatArray, n_rows: int) -> FloatArray:
    """Return a basis (k, m) of the directions on which a matrix of n rows, by its R, is zero."""
    sizes, right = np.linalg.svd(factor, full_matrices=True)[1:]
    n = max(n_rows, factor.shape[1])
    tolerance = n * np.finfo(np.float64).eps * float(sizes.max(initial=0.0))
    return np.asarray(right[int((sizes > tolerance).sum()) :].T)


def _rising_direction(rows: FloatArray) -> FloatArray | None:
    """Return b with rows b >= 0, some of them above; None if there is none.

    The programme begins with a few rows, and gets those that its solution violates. So it mostly
    ends at once: if a few rows leave no direction, all of them leave none.
    """
    from scipy.optimize import linprog

    total, zero = rows.sum(axis=0), 1e-7  # of x b, columns and b at most 1: solvers' tolerance
    active = np.unique(np.linspace(0, len(rows) - 1, ROWS_AT_ONCE).astype(np.int64))
    for _ in range(100):
        demanded = rows[active]
        found = linprog(-total, A_ub=-demanded, b_ub=np.zeros(len(active)), bounds=(-1.0, 1.0))
        if found.x is None:
            return None
        moves = rows @ found.x
        if moves.max() <= 10.0 * zero:
            return None
        worst = np.argsort(moves)[:ROWS_AT_ONCE]
        worst = worst[moves[worst] < -zero]
        if not len(worst):
            return np.asarray(found.x)
        active = np.union1d(active, worst)
    return None
