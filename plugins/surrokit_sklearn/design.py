"""Rows and columns of a regression: weights, distinct rows, and standardised features."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import attrs
import numpy as np

from surrokit.types import FloatArray

_BLOCK = 500  # rows


def check_weights(sample_weight: Any, n: int) -> FloatArray | None:
    """Return how often each row counts, shape (n,); None where each counts once.

    ValueError is raised if a weight is negative or not finite, there is not one for each row, or
    all are 0.
    """
    if sample_weight is None:
        return None
    found = np.asarray(sample_weight, dtype=np.float64)
    if found.ndim == 0:
        found = np.full(n, found)
    if found.shape != (n,):
        raise ValueError(
            f"sample_weight.shape == {found.shape}, expected {(n,)}: one weight for each row"
        )
    if not (np.isfinite(found).all() and (found >= 0.0).all()):
        raise ValueError(
            "sample_weight must be finite and not negative, as it says how often each row counts"
        )
    if not found.any():
        raise ValueError("sample_weight is zero for all rows; give at least one a positive weight")
    return None if (found == 1.0).all() else found


@attrs.frozen(kw_only=True, eq=False)
class Rows:
    """Inputs (n, n_features), responses (n,), and how often each row counts; None for once."""

    inputs: FloatArray
    response: Any
    weights: FloatArray | None

    def __len__(self) -> int:
        return len(self.inputs)

    @classmethod
    def of(cls, inputs: FloatArray, response: Any, sample_weight: Any) -> Self:
        """Return the rows that count, by weights as :func:`check_weights` takes them."""
        weights = check_weights(sample_weight, len(inputs))
        if weights is None:
            return cls(inputs=inputs, response=response, weights=None)
        kept = weights > 0.0
        return cls(inputs=inputs[kept], response=response[kept], weights=weights[kept])

    def merge(self) -> Self:
        """Return distinct rows in an order of their own, and how often each counts.

        A fit to them does not depend on the order of rows, nor on whether a row counts twice or is
        there twice: not even by rounding, which other draws would follow from.
        """
        table = np.column_stack([self.inputs, self.response]) + 0.0  # -0 becomes 0
        _, first, group = np.unique(table, axis=0, return_index=True, return_inverse=True)
        counts = np.bincount(group.ravel(), self.weights, len(first)).astype(np.float64)
        weights = None if (counts == 1.0).all() else counts
        return attrs.evolve(
            self, inputs=self.inputs[first], response=self.response[first], weights=weights
        )

    def pick(self, n: int, rng: np.random.Generator) -> Self:
        """Return n rows, drawn with replacement, that count as much as all; or all, if fewer."""
        if n >= len(self):
            return self
        rows = np.sort(rng.integers(len(self), size=n))
        return attrs.evolve(
            self,
            inputs=self.inputs[rows],
            response=self.response[rows],
            weights=self.share[rows] * (len(self) / n),
        )

    @property
    def share(self) -> FloatArray:
        """How often each row counts, shape (n,)."""
        return np.ones(len(self)) if self.weights is None else self.weights

    def mean(self) -> float:
        """Return the mean response."""
        return float(np.average(self.response, weights=self.weights))

    def spread(self) -> float:
        """Return the standard deviation of responses, or 1 where they are all the same."""
        mean = self.mean()
        found = float(np.sqrt(np.average(np.square(self.response - mean), weights=self.weights)))
        return found if found > 1e-12 * abs(mean) else 1.0


@attrs.frozen(kw_only=True, eq=False)
class Columns:
    """Features less their ``centre``, over their ``scale``, behind ones if there is an intercept.

    Both have shape (n_features,).
    """

    centre: FloatArray
    scale: FloatArray
    intercept: bool

    @classmethod
    def of(cls, rows: Rows, *, intercept: bool, standardize: bool) -> Self:
        """Return the columns for some rows, which count by their weights.

        Features are centred only where there is an intercept to take that up. A constant feature
        keeps its scale.
        """
        inputs = rows.inputs
        zeros, ones = np.zeros(inputs.shape[1]), np.ones(inputs.shape[1])
        if not standardize:
            return cls(centre=zeros, scale=ones, intercept=intercept)
        share, total = rows.share, rows.share.sum()
        near = inputs[:_BLOCK].mean(axis=0)  # by which sums keep their digits
        sums, squares = zeros, zeros
        for some in _blocks(len(inputs)):
            away = inputs[some] - near
            sums = sums + share[some] @ away
            squares = squares + share[some] @ np.square(away, out=away)
        mean = near + sums / total
        spread = np.sqrt(np.maximum(squares / total - np.square(sums / total), 0.0))
        scale = np.where(spread <= 1e-12 * np.abs(mean), 1.0, spread)
        return cls(centre=mean if intercept else zeros, scale=scale, intercept=intercept)

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.scale) + self.intercept

    @property
    def of_features(self) -> FloatArray:
        """A of shape (n_features + 1, count), with (x, 1) A the columns of features x."""
        first, n = int(self.intercept), len(self.scale)
        found = np.zeros((n + 1, self.count))
        found[n, :first] = 1.0
        found[np.arange(n), np.arange(n) + first] = 1.0 / self.scale
        found[n, first:] = -self.centre / self.scale
        return found

    def design(self, inputs: FloatArray) -> FloatArray:
        """Return the columns of inputs, shape (n, count)."""
        found = np.ones((len(inputs), self.count))
        first = int(self.intercept)
        found[:, first:] = (inputs - self.centre) / self.scale
        return found

    def undo(self, coefficients: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return intercepts (...,) and coefficients (..., n_features) of the features themselves.

        They come from ``coefficients (..., count)`` of the columns.
        """
        own = coefficients[..., int(self.intercept) :] / self.scale
        shift = own @ self.centre
        level = coefficients[..., 0] if self.intercept else np.zeros(shift.shape)
        return level - shift, own


def _blocks(n_rows: int) -> Iterator[slice]:
    """Yield rows whose numbers stay in the processor's cache."""
    return (slice(first, first + _BLOCK) for first in range(0, n_rows, _BLOCK))
