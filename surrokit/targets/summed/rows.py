"""What a model of another library says of its observed numbers: the rows of a regression."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import numpy as np

from surrokit.errors import NotASumError
from surrokit.types import FloatArray, IntArray

_MOST_NUMBERS = 500_000_000  # of a design that is looked at, 0 among them
_AT_ONCE = 4_000_000  # of these
_SPARSE = 0.2  # share of numbers that are not 0, below which a design is sparse


@attrs.frozen(kw_only=True, eq=False)
class ModelRows:
    """What a model says of its observed numbers, the terms of a regression.

    Parameters
    ----------
    family
        Of :func:`surrokit.rows_potential`.
    response : ndarray of shape (n_terms,)
        As the family takes it.
    design : array or sparse array of shape (n_terms, dim)
        Slopes of the predictors in the position on the line.
    offset : ndarray of shape (n_terms,)
        Predictors at the origin.
    weights : ndarray of shape (n_terms,), optional
        How often each term counts.
    settings
        Of the family.
    owners : ndarray of int, shape (n_terms,)
        The observed number that each term belongs to.
    each : callable
        Log likelihood of each observed number at a position (dim,), shape (n_rows,), by the
        library.
    """

    family: str
    response: FloatArray
    design: Any
    offset: FloatArray
    weights: FloatArray | None = None
    settings: Mapping[str, float] = attrs.field(factory=dict)
    owners: IntArray
    each: Callable[[FloatArray], FloatArray]

    @property
    def arguments(self) -> dict[str, Any]:
        """What :func:`surrokit.rows_potential` takes beside the family, design and response."""
        given = {"offset": self.offset if self.offset.any() else None, "weights": self.weights}
        arrays = {name: array for name, array in given.items() if array is not None}
        return {**arrays, **self.settings}


def rows_of(
    family: str,
    values: FloatArray,
    constants: Mapping[str, FloatArray],
    design: Any,
    offset: FloatArray,
    each: Callable[[FloatArray], FloatArray],
) -> ModelRows:
    """Return the terms of observed numbers.

    Parameters
    ----------
    family
        Of :func:`surrokit.rows_potential`, or ``"binomial"``, whose numbers are two terms each.
    values : ndarray of shape (n_rows,)
        The observed numbers.
    constants
        Settings of the family, by name, with a number for each row; ``total`` of a binomial one.
    design : array or sparse array of shape (n_rows, dim)
        Slopes of the predictors.
    offset : ndarray of shape (n_rows,)
        Predictors at the origin.
    each
        As :class:`ModelRows` has it.

    Raises
    ------
    NotASumError
        If a setting differs between rows that is to be one number.
    """
    if family == "binomial":
        return _of_trials(values, constants["total"], design, offset, each)
    owners, weights = np.arange(len(values)), None
    known = dict(constants)
    if family == "gaussian" and np.ptp(known["scale"]) > 0.0:
        weights = known.pop("scale") ** -2.0
    uneven = [name for name, numbers in known.items() if np.ptp(numbers) > 0.0]
    if uneven:
        raise NotASumError(f"{uneven[0]} of its observed numbers differs from row to row")
    settings = {name: float(numbers[0]) for name, numbers in known.items()}
    return ModelRows(
        family=family,
        response=values,
        design=design,
        offset=offset,
        weights=weights,
        settings=settings,
        owners=owners,
        each=each,
    )


def _of_trials(
    values: FloatArray,
    totals: FloatArray,
    design: Any,
    offset: FloatArray,
    each: Callable[[FloatArray], FloatArray],
) -> ModelRows:
    """Return successes as terms of 1, and failures as terms of 0, weighted by their numbers."""
    won, lost = np.flatnonzero(values > 0.0), np.flatnonzero(values < totals)
    owners = np.concatenate([won, lost])
    return ModelRows(
        family="logistic",
        response=np.repeat([1.0, 0.0], [len(won), len(lost)]),
        design=design[owners],
        offset=offset[owners],
        weights=np.concatenate([values[won], totals[lost] - values[lost]]),
        owners=owners,
        each=each,
    )


def design_of(push: Callable[[FloatArray], FloatArray], n_rows: int, dim: int) -> Any:
    """Return the slopes of linear predictors, shape (n_rows, dim), sparse where most are 0.

    Parameters
    ----------
    push
        From directions (k, dim) to the changes of the predictors, shape (k, n_rows).
    n_rows, dim
        Numbers of predictors and of parameters.

    Raises
    ------
    NotASumError
        If there are too many to look at.
    """
    from scipy import sparse  # late: importing stays fast

    if n_rows * dim > _MOST_NUMBERS:
        raise NotASumError(
            f"a design of {n_rows} rows and {dim} parameters is too large to look at"
        )
    width = max(1, _AT_ONCE // n_rows)
    parts = [
        sparse.csc_array(push(np.eye(dim)[start : start + width]).T)
        for start in range(0, dim, width)
    ]
    whole = sparse.hstack(parts, format="csr")
    return whole if whole.nnz < _SPARSE * n_rows * dim else np.ascontiguousarray(whole.toarray())
