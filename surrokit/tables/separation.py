"""Responses that columns tell apart, so that a flat prior leaves the posterior improper.

Coefficients may then grow without end along a direction b on which no response gets less likely:
of responses 0 and 1, x b >= 0 in rows of ones and x b <= 0 in rows of zeros (Albert and Anderson
1984, doi:10.1093/biomet/71.1.1); of counts, x b = 0 where there are some and x b <= 0 where there
are none. Whether there is such a direction is a linear programme.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from surrokit.errors import ConfigurationError
from surrokit.types import BoolArray, FloatArray

OF_TWO = ("logistic", "probit")
"""Families whose responses are 0 and 1."""

OF_COUNTS = ("poisson", "negative-binomial", "exponential", "weibull")
"""Families whose responses are counts, or events that came or not."""

ROWS_AT_ONCE = 2000
"""Rows that the programme has at first, and those that are added each time."""

_MOST_ROUNDS = 100
_ZERO = 1e-7  # of x b where columns and b are at most 1: a solver's tolerance


def check_separation(
    family: object,
    design: FloatArray,
    response: FloatArray,
    columns: Sequence[str],
    flat: BoolArray,
) -> None:
    """Raise if columns with flat priors separate the responses.

    Parameters
    ----------
    family
        Name of a family; others are not looked at.
    design : ndarray of shape (n_rows, n_columns)
        Rows that count.
    response : ndarray of shape (n_rows,)
        Zeros and ones, or counts, or whether the event came.
    columns
        Names of the columns.
    flat : ndarray of bool, shape (n_columns,)
        Which have a flat prior.

    Raises
    ------
    ConfigurationError
        If they do; the posterior would be improper.
    """
    if not isinstance(family, str) or family not in (*OF_TWO, *OF_COUNTS) or not flat.any():
        return
    free = design[:, flat]
    sizes = np.abs(free).max(axis=0, initial=0.0)
    rows = free / np.where(sizes > 0.0, sizes, 1.0)
    if family in OF_TWO:
        direction = _rising_direction(np.where(response > 0.0, 1.0, -1.0)[:, None] * rows)
    else:
        level = _level_directions(rows[response > 0.0])
        found = _rising_direction(-rows[response <= 0.0] @ level) if level.size else None
        direction = None if found is None else level @ found
    if direction is None:
        return
    names = [name for name, is_flat in zip(columns, flat, strict=True) if is_flat]
    large = np.abs(direction) > 1e-6 * np.abs(direction).max()
    named = ", ".join(name for name, is_large in zip(names, large, strict=True) if is_large)
    raise ConfigurationError(
        f"columns {named} of the design separate the responses: rows in which they differ from the "
        "others have all the same response, so that coefficients grow without end under a flat "
        "prior; give these columns a prior, or join levels"
    )


def _level_directions(rows: FloatArray) -> FloatArray:
    """Return a basis (k, m) of the directions on which all rows (n, k) are zero."""
    if not len(rows):
        return np.eye(rows.shape[1])
    sizes, right = np.linalg.svd(np.linalg.qr(rows, mode="r"), full_matrices=True)[1:]
    tolerance = max(rows.shape) * np.finfo(np.float64).eps * float(sizes.max(initial=0.0))
    return np.asarray(right[int((sizes > tolerance).sum()) :].T)


def _rising_direction(rows: FloatArray) -> FloatArray | None:
    """Return b with rows b >= 0, some of them above; None if there is none.

    The programme begins with a few rows, and gets those that its solution violates. So it mostly
    ends at once: if a few rows leave no direction, all of them leave none.
    """
    from scipy.optimize import linprog

    total = rows.sum(axis=0)
    active = np.unique(np.linspace(0, len(rows) - 1, ROWS_AT_ONCE).astype(np.int64))
    for _ in range(_MOST_ROUNDS):
        demanded = rows[active]
        found = linprog(-total, A_ub=-demanded, b_ub=np.zeros(len(active)), bounds=(-1.0, 1.0))
        if found.x is None:
            return None
        moves = rows @ found.x
        if moves.max() <= 10.0 * _ZERO:
            return None
        worst = np.argsort(moves)[:ROWS_AT_ONCE]
        worst = worst[moves[worst] < -_ZERO]
        if not len(worst):
            return np.asarray(found.x)
        active = np.union1d(active, worst)
    return None
