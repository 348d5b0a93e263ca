"""Bank Marketing as in section 5.1 of Zhang, Shahbaba and Zhao (2017)."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from surrokit.errors import TargetError
from surrokit.types import FloatArray
from surrokit_problems.data.data_file import text_of
from surrokit_problems.data.openml import fetch_columns
from surrokit_problems.data.standardised import with_intercept
from surrokit_problems.rows.logistic import LogisticRegression

_WHAT = "bank-additional-full.csv of the UCI set Bank Marketing"
_WHERE = (
    "download bank-additional.zip from https://archive.ics.uci.edu/dataset/222/bank+marketing and "
    "pass the path of its bank-additional-full.csv"
)

_EDUCATION = (
    *("basic.4y", "basic.6y", "basic.9y", "high.school"),
    *("illiterate", "professional.course", "university.degree", "unknown"),
)
_JOBS = (
    *("admin.", "blue-collar", "entrepreneur", "housemaid", "management", "retired"),
    *("self-employed", "services", "student", "technician", "unemployed"),
)
# Levels and the numbers that stand for them; jobs become dummies instead.
_CODES: Mapping[str, Mapping[str, float]] = {
    "education": {level: 1.0 + rank for rank, level in enumerate(_EDUCATION)},
    "housing": {"no": 0.0, "yes": 1.0},
    "loan": {"no": 0.0, "yes": 1.0},
    "contact": {"cellular": 0.0, "telephone": 1.0},
    "job": {job: float(rank) for rank, job in enumerate((*_JOBS, "unknown"))},
    "y": {"no": 0.0, "yes": 1.0},
}
_COLUMNS = (
    *("age", "education", "housing", "loan", "contact", "duration", "campaign", "previous"),
    *("emp.var.rate", "cons.price.idx", "cons.conf.idx", "euribor3m", "nr.employed"),
)


def bank_regression(
    path: str | Path | None = None, openml_id: int | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return the paper's design and responses.

    Rows with housing "unknown" are dropped, and so is the first data row, which the authors lost.
    Columns are a constant; age; education as 1 to 8 in alphabetical order, "unknown" last;
    housing, loan and contact as 0 or 1; duration; campaign; previous; five economic indices; and
    dummies of 11 jobs, "unknown" being the reference. All but the constant are standardised.

    Parameters
    ----------
    path
        Of ``bank-additional-full.csv``, or of it in .gz.
    openml_id
        Instead of a path, the number of a data set on openml.org with the same columns. None is
        known here: 1461 and 44234 are the older set of 45211 rows, without the economic indices.

    Returns
    -------
    design : ndarray of shape (40197, 25)
        For the whole file.
    response : ndarray of shape (40197,)
        1 where the client subscribed, which 4533 did.

    Raises
    ------
    TargetError
        If the data cannot be had, or are not those expected.

    References
    ----------
    Moro, Cortez and Rita (2014), doi:10.1016/j.dss.2014.03.001.
    """
    if path is not None:
        return bank_matrices(_columns_of(text_of(path, _WHAT), str(path)))
    if openml_id is not None:
        return bank_matrices(fetch_columns(openml_id, _WHERE))
    raise TargetError(f"path must be that of {_WHAT}, got none; {_WHERE}")


def bank(
    path: str | Path | None = None, openml_id: int | None = None, prior_variance: float = 100.0
) -> LogisticRegression:
    """Return the regression on the data, from a file or from OpenML.

    Parameters
    ----------
    path, openml_id
        Where the data are, a file or the positive number of a data set; see
        :func:`bank_regression`.
    prior_variance
        Of every coefficient, positive.

    Raises
    ------
    ConfigurationError
        If the variance is not positive.
    TargetError
        If the data cannot be had, or are not those expected.
    """
    return LogisticRegression(*bank_regression(path, openml_id), prior_variance)


def bank_matrices(table: Mapping[str, Sequence[str]]) -> tuple[FloatArray, FloatArray]:
    """Return design and responses from columns of text by name.

    Raises
    ------
    TargetError
        If a column is missing, or an entry cannot be read.
    """
    missing = [name for name in (*_COLUMNS, "job", "y") if name not in table]
    if missing:
        raise TargetError(
            f"the table must be {_WHAT}, got one without {', '.join(missing)}; {_WHERE}"
        )
    kept = [row for row, housing in enumerate(table["housing"]) if row and housing != "unknown"]
    columns = {
        name: _numbers(name, [table[name][row] for row in kept]) for name in (*_COLUMNS, "job", "y")
    }
    dummies = columns["job"][:, None] == np.arange(len(_JOBS))
    numbers = np.column_stack([*(columns[name] for name in _COLUMNS), dummies])
    return with_intercept(numbers), columns["y"]


def _numbers(name: str, entries: Sequence[str]) -> FloatArray:
    codes = _CODES.get(name)
    try:
        return np.array([float(entry) if codes is None else codes[entry] for entry in entries])
    except (KeyError, ValueError) as error:
        expected = "a number" if codes is None else f"one of {', '.join(codes)}"
        raise TargetError(
            f"column {name} of {_WHAT} must hold {expected}, got {error.args[0]!r}; {_WHERE}"
        ) from error


def _columns_of(text: str, path: str) -> dict[str, tuple[str, ...]]:
    header, *rows = csv.reader(text.splitlines(), delimiter=";") if text.strip() else [[]]
    odd = next((row for row, fields in enumerate(rows) if len(fields) != len(header)), None)
    if odd is not None:
        raise TargetError(
            f"every line of {path} must have {len(header)} fields separated by ';', got "
            f"{len(rows[odd])} in line {odd + 2}; {_WHERE}"
        )
    columns = zip(*rows, strict=True) if rows else ((),) * len(header)
    return dict(zip(header, columns, strict=True))
