"""Data sets fetched by scikit-learn from openml.org."""

from __future__ import annotations

from typing import Any

import numpy as np

from surrokit.errors import TargetError
from surrokit.types import FloatArray


def fetch_columns(data_id: int, advice: str) -> dict[str, list[str]]:
    """Return a table as columns of text, the default target among them as ``y``.

    Parameters
    ----------
    data_id
        OpenML's number of the data set.
    advice
        What to do if it cannot be fetched, for the message.

    Raises
    ------
    TargetError
        If it cannot be fetched.
    """
    bunch = _fetch(data_id, advice)
    columns = {
        name: _decode(column, bunch.categories.get(name))
        for name, column in zip(bunch.feature_names, np.asarray(bunch.data).T, strict=True)
    }
    return {**columns, "y": [str(label) for label in bunch.target]}


def fetch_matrix(data_id: int, advice: str) -> tuple[FloatArray, FloatArray]:
    """Return a matrix of numbers, shape (n_rows, n_columns), and numeric labels, shape (n_rows,).

    Parameters
    ----------
    data_id, advice
        As for :func:`fetch_columns`.

    Raises
    ------
    TargetError
        If it cannot be fetched, or is not numbers.
    """
    bunch = _fetch(data_id, advice)
    data = bunch.data.toarray() if hasattr(bunch.data, "toarray") else bunch.data
    try:
        return np.asarray(data, dtype=np.float64), np.asarray(bunch.target, dtype=np.float64)
    except ValueError as error:
        raise TargetError(
            f"OpenML data set {data_id} must hold numbers, got others ({error}); {advice}"
        ) from error


def _fetch(data_id: int, advice: str) -> Any:
    # scikit-learn is heavy, and needed by nothing else here
    from sklearn.datasets import fetch_openml

    try:
        return fetch_openml(data_id=data_id, as_frame=False, parser="liac-arff")
    except (OSError, ValueError) as error:
        raise TargetError(
            f"OpenML data set {data_id} could not be fetched: {error}; {advice}"
        ) from error


def _decode(column: FloatArray, levels: list[str] | None) -> list[str]:
    if levels is None:
        return [str(number) for number in column]
    return [levels[int(code)] for code in column]
