"""The real data of section 5.1 of Zhang, Shahbaba and Zhao (2017): Bank Marketing, and a9a."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import numpy as np
from scipy import sparse

from surrokit.errors import ConfigurationError, TargetError
from surrokit.types import FloatArray
from surrokit_problems.regression import logistic
from surrokit_problems.rows import GeneralizedLinearModel

Directions: TypeAlias = Literal["normal", "orthonormal"]
"""How a random projection is drawn."""

_BANK = "bank-additional-full.csv of the UCI set Bank Marketing"
_BANK_ADVICE = (
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

_A9A = "LIBSVM's training file a9a"
_A9A_ADVICE = (
    "download a9a from https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary.html and "
    "pass its path"
)
_N_FEATURES = 123


def bank_regression(path: str | Path | None = None) -> tuple[FloatArray, FloatArray]:
    """Return the paper's design, shape (40197, 25), and responses of Bank Marketing, from a file.

    Rows with housing "unknown" are dropped, and so is the first data row, which the authors lost.
    Columns are a constant; age; education as 1 to 8 in alphabetical order, "unknown" last;
    housing, loan and contact as 0 or 1; duration; campaign; previous; five economic indices; and
    dummies of 11 jobs, "unknown" being the reference. All but the constant are standardised.
    Responses are 1 where the client subscribed, which 4533 did. See Moro, Cortez and Rita (2014),
    doi:10.1016/j.dss.2014.03.001. No data set on openml.org has the same columns: 1461 and 44234
    are the older set of 45211 rows, without the economic indices. Data that cannot be read, or are
    not those expected, raise a TargetError.
    """
    try:
        rows = list(csv.DictReader(_text_of(path).splitlines(), delimiter=";"))
        kept = [row for row in rows[1:] if row["housing"] != "unknown"]
        numbers = {
            name: np.array(
                [_CODES[name][row[name]] if name in _CODES else float(row[name]) for row in kept]
            )
            for name in (*_COLUMNS, "job", "y")
        }
        dummies = numbers["job"][:, None] == np.arange(len(_JOBS))
        columns = np.column_stack([*(numbers[name] for name in _COLUMNS), dummies])
        return _with_intercept(columns), numbers["y"]
    except (OSError, EOFError, TypeError, KeyError, ValueError) as error:
        raise TargetError(
            f"path must be that of {_BANK}, as text or in .gz, and {path} cannot be read as that: "
            f"{error!r}; {_BANK_ADVICE}"
        ) from error


def bank(path: str | Path | None = None, prior_variance: float = 100.0) -> GeneralizedLinearModel:
    """Return the regression on Bank Marketing, as :func:`bank_regression` has it.

    Parameters
    ----------
    path : path, optional
        Of ``bank-additional-full.csv``, or of it in .gz.
    prior_variance
        Of every coefficient, positive.

    Raises
    ------
    ConfigurationError, TargetError
        If the variance is not positive, or the data are not those expected.
    """
    return logistic(*bank_regression(path), prior_variance)


def a9a_regression(
    path: str | Path | None = None,
    projected: int | None = None,
    seed: int = 2017,
    directions: Directions = "normal",
) -> tuple[FloatArray, FloatArray]:
    """Return design and responses of a9a, which is UCI Adult with one column for each level.

    The design has shape (32561, 124) or (32561, 1 + projected), ones in front. Responses are 1 for
    incomes above 50000 dollars, which 7841 are. See Lin, Weng and Keerthi (2008), JMLR 9, 627-650.
    Parameters and errors are those of :func:`a9a`.
    """
    if projected is not None and not 1 <= projected <= _N_FEATURES:
        raise ConfigurationError(
            f"projected must be a number of columns from 1 to {_N_FEATURES}, or None for all "
            f"features, got {projected}; the paper has 60"
        )
    if directions not in get_args(Directions):
        raise ConfigurationError(
            f"directions must be 'normal' or 'orthonormal', got {directions!r}"
        )
    from sklearn.datasets import load_svmlight_file  # late: it is heavy

    try:
        lines = io.BytesIO(_text_of(path).encode())
        sparse_rows, labels = load_svmlight_file(lines, n_features=_N_FEATURES, zero_based=False)
        features = sparse_rows.toarray()
        if not len(labels) or not np.isin(labels, (-1.0, 1.0)).all():
            raise ValueError("labels must be -1 and +1, one at least")
    except (OSError, EOFError, ValueError, TypeError) as error:
        raise TargetError(
            f"path must be that of {_A9A}, as text or in .gz, and {path} cannot be read as that: "
            f"{error!r}; {_A9A_ADVICE}"
        ) from error
    response = (labels > 0).astype(np.float64)
    if projected is None:
        return np.column_stack([np.ones(len(features)), features]), response
    normal = np.random.default_rng(seed).standard_normal((_N_FEATURES, projected))
    if directions == "normal":
        return _with_intercept(features @ (normal / np.sqrt(_N_FEATURES))), response
    basis, triangle = np.linalg.qr(normal)
    basis *= np.sign(np.diag(triangle))  # which LAPACK leaves open
    return _with_intercept(_with_intercept(features)[:, 1:] @ basis), response


def a9a(
    path: str | Path | None = None,
    projected: int | None = None,
    seed: int = 2017,
    prior_variance: float = 100.0,
    directions: Directions = "normal",
) -> GeneralizedLinearModel:
    """Return the regression on a9a, from a file.

    Parameters
    ----------
    path : path
        Of LIBSVM's training file ``a9a``, or of it in .gz.
    projected
        Number of columns, 1 to 123, of a random projection; None for the 123 features as they are.
        The paper has 60, but its projection is lost. The columns are standardised.
    seed
        Of the projection, at least 0.
    prior_variance
        Of every coefficient, positive.
    directions
        ``"normal"``: entries N(0, 1 / 123), on the features as they are. ``"orthonormal"``: on the
        standardised features, which gives columns that are much less correlated. With these the
        paper's step size leads to its acceptance and effective draws.

    Raises
    ------
    ConfigurationError, TargetError
        If a setting makes no sense, or the data cannot be read or are not those expected.
    """
    design, response = a9a_regression(path, projected, seed, directions)
    # one entry in eight is not zero: with compressed rows a value takes a third of the time
    rows = sparse.csr_array(design) if projected is None else design
    return logistic(rows, response, prior_variance)


def _text_of(path: str | Path | None) -> str:
    """Return the text of a file, unpacked if its name ends in .gz."""
    content = Path(path or "").read_bytes()
    return (gzip.decompress(content) if str(path).endswith(".gz") else content).decode("utf-8")


def _with_intercept(columns: FloatArray) -> FloatArray:
    """Return columns of mean 0 and standard deviation 1, by n - 1, behind a column of ones."""
    spread = columns.std(axis=0, ddof=1) if len(columns) > 1 else np.zeros(columns.shape[1])
    if not (spread > 1e-12 * np.abs(columns).max(axis=0, initial=0.0)).all():
        raise ValueError(f"every column must vary over its {len(columns)} rows")
    scaled = (columns - columns.mean(axis=0)) / spread
    return np.column_stack([np.ones(len(columns)), scaled])
