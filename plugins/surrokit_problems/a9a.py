"""The a9a data (UCI Adult, one column for each level) as a logistic regression."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias, get_args

import numpy as np
from scipy import sparse

from surrokit.errors import ConfigurationError, TargetError
from surrokit.types import FloatArray
from surrokit_problems.data.data_file import text_of
from surrokit_problems.data.openml import fetch_matrix
from surrokit_problems.data.standardised import with_intercept
from surrokit_problems.rows.logistic import LogisticRegression

Directions: TypeAlias = Literal["normal", "orthonormal"]
"""How a random projection is drawn."""

N_FEATURES = 123
"""Columns of a9a."""

_N_ROWS = 32_561
_N_ONES = 7_841
_OPENML_ID = 1430
_WHAT = "LIBSVM's training file a9a"
_WHERE = (
    "download a9a from https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary.html and "
    "pass its path"
)


def a9a_regression(
    path: str | Path | None = None,
    projected: int | None = None,
    seed: int = 2017,
    directions: Directions = "normal",
) -> tuple[FloatArray, FloatArray]:
    """Return design and responses of a9a.

    Parameters
    ----------
    path
        Of LIBSVM's training file ``a9a``, or of it in .gz; None to have scikit-learn fetch
        openml.org's data set 1430, whose first 32561 rows are then taken.
    projected
        Number of columns of a random projection; None for the 123 features as they are. The paper
        has 60, but its projection is lost. The columns are standardised.
    seed
        Of the projection.
    directions
        ``"normal"``: entries N(0, 1 / 123), on the features as they are. ``"orthonormal"``: on the
        standardised features, which gives columns that are much less correlated. With these the
        paper's step size leads to its acceptance and effective draws.

    Returns
    -------
    design : ndarray of shape (32561, 124) or (32561, 1 + projected)
        Ones in front.
    response : ndarray of shape (32561,)
        1 for incomes above 50000 dollars, which 7841 are.

    Raises
    ------
    ConfigurationError
        If ``projected`` is not in 1 to 123, or there are no such directions.
    TargetError
        If the data cannot be had, or are not those expected.

    References
    ----------
    Lin, Weng and Keerthi (2008), JMLR 9, 627-650; section 5.1 of Zhang, Shahbaba and Zhao (2017).
    """
    if projected is not None and not 1 <= projected <= N_FEATURES:
        raise ConfigurationError(
            f"projected must be a number of columns from 1 to {N_FEATURES}, or None for all "
            f"features, got {projected}; the paper has 60"
        )
    if directions not in get_args(Directions):
        raise ConfigurationError(
            f"directions must be 'normal' or 'orthonormal', got {directions!r}"
        )
    features, labels = _fetch() if path is None else libsvm_matrices(text_of(path, _WHAT))
    if not np.isin(labels, (-1.0, 1.0)).all():
        raise TargetError(f"labels of a9a must be -1 and +1, got others; {_WHERE}")
    response = (labels > 0).astype(np.float64)
    if projected is None:
        return np.column_stack([np.ones(len(features)), features]), response
    rng = np.random.default_rng(seed)
    normal = rng.standard_normal((N_FEATURES, projected))
    if directions == "normal":
        return with_intercept(features @ (normal / np.sqrt(N_FEATURES))), response
    basis, triangle = np.linalg.qr(normal)
    basis *= np.sign(np.diag(triangle))  # which LAPACK leaves open
    return with_intercept(with_intercept(features)[:, 1:] @ basis), response


def a9a(
    path: str | Path | None = None,
    projected: int | None = None,
    seed: int = 2017,
    prior_variance: float = 100.0,
    directions: Directions = "normal",
) -> LogisticRegression:
    """Return the regression on the data, from a file or from OpenML.

    Parameters
    ----------
    path : path, optional
        Of LIBSVM's training file ``a9a``, or of it in .gz; None to have it fetched from OpenML.
    projected, seed, directions
        Random projection of the features, to 1 to 123 columns or None for none; see
        :func:`a9a_regression`.
    prior_variance
        Of every coefficient, positive.

    Raises
    ------
    ConfigurationError
        If ``projected`` or the variance makes no sense, or there are no such directions.
    TargetError
        If the data cannot be had, or are not those expected.
    """
    design, response = a9a_regression(path, projected, seed, directions)
    # one entry in eight is not zero: with compressed rows a value takes a third of the time
    rows = sparse.csr_array(design) if projected is None else design
    return LogisticRegression(rows, response, prior_variance)


def libsvm_matrices(text: str, n_features: int = N_FEATURES) -> tuple[FloatArray, FloatArray]:
    """Return features, shape (n_rows, n_features), and labels, shape (n_rows,).

    Parameters
    ----------
    text
        Lines of ``label index:value index:value ...``, indices from 1.
    n_features
        The highest index there may be.

    Raises
    ------
    TargetError
        If the text is not of that form.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    n_entries = np.array([line.count(":") for line in lines], dtype=np.int64)
    try:
        numbers = np.array(" ".join(lines).replace(":", " ").split(), dtype=np.float64)
        if not lines or len(numbers) != len(lines) + 2 * n_entries.sum():
            raise ValueError(f"{len(lines)} lines with {len(numbers)} numbers")
        ends = np.cumsum(1 + 2 * n_entries)
        is_label = np.zeros(len(numbers), dtype=bool)
        is_label[ends - 1 - 2 * n_entries] = True
        index, value = numbers[~is_label].reshape(-1, 2).T
        if ((index < 1) | (index > n_features) | (index % 1 != 0)).any():
            raise ValueError(f"an index outside 1 to {n_features}")
    except ValueError as error:
        raise TargetError(
            f"the file must be {_WHAT}, lines of 'label index:value ...', got {error}; {_WHERE}"
        ) from error
    features = np.zeros((len(lines), n_features))
    features[np.repeat(np.arange(len(lines)), n_entries), index.astype(np.int64) - 1] = value
    return features, numbers[is_label]


def _fetch() -> tuple[FloatArray, FloatArray]:
    features, labels = fetch_matrix(_OPENML_ID, _WHERE)
    features, labels = features[:_N_ROWS], labels[:_N_ROWS]
    n_ones = int((labels > 0).sum())
    if features.shape != (_N_ROWS, N_FEATURES) or n_ones != _N_ONES:
        raise TargetError(
            f"OpenML data set {_OPENML_ID} must begin with the {_N_ROWS} rows of {N_FEATURES} "
            f"features of a9a, {_N_ONES} of them labelled +1, got shape {features.shape} with "
            f"{n_ones}; {_WHERE}"
        )
    return features, labels
