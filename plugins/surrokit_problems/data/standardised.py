"""Columns to mean 0 and standard deviation 1."""

from __future__ import annotations

import numpy as np

from surrokit.errors import TargetError
from surrokit.types import FloatArray


def with_intercept(columns: FloatArray) -> FloatArray:
    """Return standardised columns behind a column of ones.

    Parameters
    ----------
    columns : ndarray of shape (n_rows, n_columns)
        As they come.

    Returns
    -------
    ndarray of shape (n_rows, 1 + n_columns)
        Ones, then columns of mean 0 and standard deviation 1, with n_rows - 1 in the variance.

    Raises
    ------
    TargetError
        If a column is constant.
    """
    if len(columns) < 2:
        raise TargetError(
            f"data must have at least 2 rows, got {len(columns)}; check that the file is whole"
        )
    spread = columns.std(axis=0, ddof=1)
    constant = np.flatnonzero(~(spread > 1e-12 * np.abs(columns).max(axis=0)))
    if constant.size:
        raise TargetError(
            f"every column must vary, got column {constant[0] + 1} constant over "
            f"{len(columns)} rows; use the whole data set"
        )
    scaled = (columns - columns.mean(axis=0)) / spread
    return np.column_stack([np.ones(len(columns)), scaled])
