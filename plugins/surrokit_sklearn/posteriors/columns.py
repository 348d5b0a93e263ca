"""The columns that a regression is fitted with, and coefficients as those of the features."""

from __future__ import annotations

from typing import Self

import attrs
import numpy as np

from surrokit.types import FloatArray


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
            # of differences from a row: squares of features far from 0 would lose their digits
            apart = inputs - inputs[0]
            around = mean - inputs[0]
            if weights is None:
                squares = np.einsum("ij,ij->j", apart, apart)
            else:
                squares = np.einsum("i,ij,ij->j", share, apart, apart)
            spread = np.sqrt(np.maximum(squares / total - around * around, 0.0))
            flat = spread <= 1e-12 * np.maximum(np.abs(mean), np.abs(around))
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
        found[:, :first] = 1.0
        np.subtract(inputs, self.centre, out=found[:, first:])
        found[:, first:] /= self.scale
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
