"""The terms of all rows as functions of their linear predictors: family, offsets and weights."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, TypeAlias

import attrs
import numpy as np

from surrokit.errors import ConfigurationError, ShapeError
from surrokit.potentials import USUAL_ORDER
from surrokit.types import FloatArray, IntArray
from surrokit_problems.data.data_file import array_from
from surrokit_problems.rows.families.family import Family
from surrokit_problems.rows.families.responses import check_responses

Rows: TypeAlias = slice | IntArray
"""Which rows."""


@attrs.frozen(kw_only=True, eq=False)
class LinearTerms:
    """The terms w_i f(e_i) with predictors e_i = x_i . q + o_i.

    Predictors are given for some rows, shape (rows,), or for n positions at once, (rows, n).

    Parameters
    ----------
    family
        f and its derivatives.
    response : ndarray of shape (n_rows,)
        Of every row.
    offset, weights : ndarray of shape (n_rows,), optional
        o_i and w_i; None for zeros and ones.
    """

    family: Family
    response: FloatArray
    offset: FloatArray | None = None
    weights: FloatArray | None = None

    @property
    def unnormalized(self) -> tuple[str, ...]:
        """The terms, where their family does not say what constant they lack."""
        return () if self.family.constant is not None else (f"terms of {self.family.name!r}",)

    @cached_property
    def constant(self) -> float:
        """What minus the log likelihood has beside the terms, in nats."""
        if self.family.constant is None:
            return 0.0
        each = self.family.constant(self.response)
        return float(np.sum(each if self.weights is None else each * self.weights))

    @classmethod
    def checked(
        cls, family: Family, response: FloatArray, offset: Any = None, weights: Any = None
    ) -> LinearTerms:
        """Return terms of what a user gave.

        Raises
        ------
        ConfigurationError
            If a response is none of the family's, a number is not finite, or a weight is negative.
        ShapeError
            If there is not one offset or weight for each row.
        TargetError
            If a file cannot be read, or something is not numbers.
        """
        check_responses(family.responses, response)
        return cls(
            family=family,
            response=response,
            offset=_column("offset", offset, len(response)),
            weights=weights_of(weights, len(response)),
        )

    def select(self, rows: IntArray) -> LinearTerms:
        """Return the terms of some rows."""
        return LinearTerms(
            family=self.family,
            response=self.response[rows],
            offset=None if self.offset is None else self.offset[rows],
            weights=None if self.weights is None else self.weights[rows],
        )

    def shares(self, rows: Rows) -> FloatArray:
        """Return how much rows count, shape (m,): their weights, or ones if all of these are 0."""
        found = np.ones(len(self.response[rows])) if self.weights is None else self.weights[rows]
        return found if found.any() else np.ones(len(found))

    def curvature(self, rows: Rows) -> float:
        """Return about the second derivative of a term: its mean where coefficients are 0."""
        with np.errstate(all="ignore"):
            zero = self.predictors(np.zeros(len(self.response[rows])), rows)
            found = float(np.abs(self.second(zero, rows)).mean())
        return found if 0.0 < found < np.inf else 1.0

    def predictors(self, products: FloatArray, rows: Rows) -> FloatArray:
        """Return e for products x_i . q, which it may overwrite."""
        if self.offset is not None:
            products += _beside(self.offset[rows], products)
        return products

    def value(self, e: FloatArray, rows: Rows) -> FloatArray:
        """Return the terms, of the shape of the predictors."""
        return self._weigh(self.family.value(e, _beside(self.response[rows], e)), rows)

    def first(self, e: FloatArray, rows: Rows) -> FloatArray:
        """Return first derivatives in e."""
        return self._weigh(self.family.first(e, _beside(self.response[rows], e)), rows)

    def second(self, e: FloatArray, rows: Rows) -> FloatArray:
        """Return second derivatives in e."""
        return self._weigh(self.family.second(e, _beside(self.response[rows], e)), rows)

    def third(self, e: FloatArray, rows: Rows) -> FloatArray:
        """Return third derivatives in e, of a family that has them."""
        assert self.family.third is not None
        return self._weigh(self.family.third(e, _beside(self.response[rows], e)), rows)

    def bounds(self, e: FloatArray, reach: FloatArray, order: int) -> FloatArray:
        """Return bounds of the derivatives after an order, for all rows: shape (n_rows,)."""
        return self._weigh(self.family.bounds(e, self.response, reach, order), slice(None))

    def prepare(self, e: FloatArray) -> tuple[FloatArray, ...]:
        """Return what :meth:`remaining` needs of all rows, arrays of shape (n_rows,)."""
        prepared = self.family.prepare_rows(e, self.response)
        return prepared if self.weights is None else (*prepared, self.weights)

    def remaining(
        self, prepared: Sequence[FloatArray], steps: FloatArray, order: int = USUAL_ORDER
    ) -> FloatArray:
        """Return what expansions leave out, shape (k, m), for steps of the predictors of rows.

        Parameters
        ----------
        prepared
            Some rows of what :meth:`prepare` returned, shape (m,) each.
        steps : ndarray of shape (k, m)
            By which predictors change.
        order
            Of the expansions.
        """
        if self.weights is None:
            return self.family.remaining_of(prepared, steps, order)
        return np.asarray(prepared[-1] * self.family.remaining_of(prepared[:-1], steps, order))

    def _weigh(self, found: FloatArray, rows: Rows) -> FloatArray:
        if self.weights is None:
            return found
        return np.asarray(found * _beside(self.weights[rows], found))


def weights_of(given: Any, n_rows: int) -> FloatArray | None:
    """Return weights of rows, shape (n_rows,), as a user gave them; None for ones.

    Raises
    ------
    ConfigurationError
        If one is not finite, or negative.
    ShapeError
        If there is not one for each row.
    TargetError
        If a file cannot be read, or something is not numbers.
    """
    weights = _column("weights", given, n_rows)
    if weights is not None and (weights < 0.0).any():
        raise ConfigurationError(
            f"weights must not be negative, got {weights.min():g}; drop such rows"
        )
    return weights


def _beside(column: FloatArray, predictors: FloatArray) -> FloatArray:
    """Return numbers of rows in a shape that goes with predictors of these rows."""
    return column if predictors.ndim == 1 else column[:, None]


def _column(name: str, given: Any, n_rows: int) -> FloatArray | None:
    if given is None:
        return None
    column = array_from(given, name)
    if column.shape != (n_rows,):
        raise ShapeError(
            f"{name} must have shape ({n_rows},), one number for each row, got {column.shape}"
        )
    if not np.isfinite(column).all():
        raise ConfigurationError(
            f"{name} must be finite, got infinities or NaN; drop or fill in those rows"
        )
    return column
