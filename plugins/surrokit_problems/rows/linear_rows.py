"""The frame of models with one linear predictor a row: a design, a normal prior, and rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import numpy as np

from surrokit.contracts.rows import USUAL_ORDER
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.types import FloatArray, IntArray
from surrokit_problems.data.design import Design, squared_norms
from surrokit_problems.rows.family import Family
from surrokit_problems.rows.linear_expansion import LinearExpansion


class LinearRows(ABC):
    """The terms f(x_i . q) of a family, and a prior N(0, I / precision).

    Parameters
    ----------
    design, response
        As :func:`~surrokit_problems.data.design.check_design` returns them.
    family
        f and its derivatives.
    precision
        Of the prior; 0 for none.
    """

    def __init__(
        self, design: Design, response: FloatArray, family: Family, precision: float
    ) -> None:
        self._design = design
        self._response = response
        self._precision = precision
        self.family = family

    @property
    def dim(self) -> int:
        """Number of coefficients."""
        return int(self._design.shape[1])

    @property
    def n_rows(self) -> int:
        """Number of terms."""
        return len(self._response)

    def expand(self, centre: FloatArray, order: int = 2) -> LinearExpansion:
        """Return the expansions of all terms at ``centre (dim,)``, to an order of 2 or 3.

        Raises
        ------
        ShapeError
            If the centre is not one position.
        ConfigurationError
            If the order is neither, or is 3 for a family without third derivatives.
        """
        self._check_order(order)
        at = np.array(centre, dtype=np.float64)
        if at.shape != (self.dim,):
            raise ShapeError(f"centre must have shape ({self.dim},), got {at.shape}")
        expansion = LinearExpansion.at(
            at, self.family, self._design, self._response, self._precision
        )
        return expansion if order == USUAL_ORDER else expansion.with_third_order()

    def row_bounds(self, factor: FloatArray, order: int = 2) -> FloatArray:
        """Return B |L^T x_i|^3 / 6, shape (n_rows,), with L the ``factor (dim, dim)``.

        The third derivative of f(x_i . q) along u is f''' (x_i . u)^3, and x_i . u is
        (L^T x_i) . (L^-1 u). With an order of 3 it is B |L^T x_i|^4 / 24, B of the fourth
        derivative.

        Raises
        ------
        ShapeError
            If the factor is not a square matrix for these coefficients.
        ConfigurationError
            As :meth:`expand`.
        """
        self._check_order(order)
        matrix = np.asarray(factor, dtype=np.float64)
        if matrix.shape != (self.dim, self.dim):
            raise ShapeError(
                f"factor must have shape ({self.dim}, {self.dim}), got {matrix.shape}; it is L, "
                "with L L^T a covariance of the coefficients"
            )
        squares = squared_norms(self._design, matrix)
        if order == USUAL_ORDER:
            return np.asarray(self.family.third_bound / 6.0 * squares * np.sqrt(squares))
        assert self.family.fourth_bound is not None
        return np.asarray(self.family.fourth_bound / 24.0 * squares * squares)

    def _check_order(self, order: int) -> None:
        orders = (2,) if self.family.third is None else (2, 3)
        if order not in orders:
            raise ConfigurationError(
                f"terms of the family {self.family.name!r} are expanded to an order of "
                f"{' or '.join(map(str, orders))}, got {order!r}; give one of these, or a family "
                "with third derivatives and a bound of the fourth"
            )

    def select(self, rows: IntArray) -> Self:
        """Return the sum of some rows' terms alone, copied, without the prior."""
        chosen = np.asarray(rows, dtype=np.int64)
        return self._of(self._design[chosen], self._response[chosen])

    @abstractmethod
    def _of(self, design: Design, response: FloatArray) -> Self:
        """Return these terms of other rows, without a prior."""
