"""The columns that a regression is fitted with, and coefficients as those of the features."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import attrs
import numpy as np

from surrokit.types import FloatArray

_ROWS_IN_A_BLOCK = 8_192


@attrs.frozen(kw_only=True, eq=False)
class Columns:
    """Features about their means in units of their standard deviations, with an intercept.

    Parameters
    ----------
    centre, scale : ndarray of shape (n_features,)
        What is taken off each feature, and what it is divided by.
    intercept
        Whether there is a column of ones, the first one.
    """

    centre: FloatArray
    scale: FloatArray
    intercept: bool

    @classmethod
    def of(
        cls, inputs: FloatArray, weights: FloatArray | None, *, intercept: bool, standardize: bool
    ) -> Self:
        """Return the columns for inputs of shape (n, n_features).

        Features are centred only where there is an intercept to take that up. A constant feature
        keeps its scale. Rows count by their weights.
        """
        n_features = inputs.shape[1]
        centre, scale = np.zeros(n_features), np.ones(n_features)
        if standardize:
            total = len(inputs) if weights is None else weights.sum()
            share = np.full(len(inputs), 1.0) if weights is None else weights
            mean = share @ inputs / total
            squares = np.zeros(n_features)
            for rows in _blocks(len(inputs)):
                apart = inputs[rows] - mean
                apart *= apart
                squares += share[rows] @ apart
            spread = np.sqrt(squares / total)
            flat = spread <= 1e-12 * np.abs(mean)
            scale = np.where(flat, 1.0, spread)
            centre = mean if intercept else centre
        return cls(centre=centre, scale=scale, intercept=intercept)

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.scale) + self.intercept

    def design(self, inputs: FloatArray) -> FloatArray:
        """Return the columns of inputs, shape (n, count)."""
        first = int(self.intercept)
        found = np.empty((len(inputs), self.count))
        factor = 1.0 / self.scale
        for rows in _blocks(len(inputs)):
            block = found[rows]
            block[:, :first] = 1.0
            np.subtract(inputs[rows], self.centre, out=block[:, first:])
            block[:, first:] *= factor
        return found

    def undo(self, coefficients: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return intercepts (...,) and coefficients (..., n_features) of the features themselves.

        Parameters
        ----------
        coefficients : ndarray of shape (..., count)
            Of the columns.
        """
        first = int(self.intercept)
        own = coefficients[..., first:] / self.scale
        shift = own @ self.centre
        level = coefficients[..., 0] if self.intercept else np.zeros(shift.shape)
        return level - shift, own


def _blocks(n_rows: int) -> Iterator[slice]:
    """Yield slices of rows that stay in the processor's cache."""
    for first in range(0, n_rows, _ROWS_IN_A_BLOCK):
        yield slice(first, first + _ROWS_IN_A_BLOCK)
