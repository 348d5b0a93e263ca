"""The frame of models with one linear predictor a row: a design, a normal prior, and rows."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Self

import numpy as np

from surrokit.errors import ConfigurationError, ShapeError
from surrokit.potentials import USUAL_ORDER, Ball, check_ball
from surrokit.predictive.rows import RowPredictor
from surrokit.shown.target import ShownTarget
from surrokit.types import FloatArray, IntArray
from surrokit_problems.data.design import Design, blocks, gram, squared_norms
from surrokit_problems.rows.families.family import Family
from surrokit_problems.rows.linear_expansion import LinearExpansion
from surrokit_problems.rows.linear_terms import LinearTerms
from surrokit_problems.rows.normal_prior import NormalPrior


class LinearRows(ShownTarget, ABC):
    """The terms w_i f(x_i . q + o_i) of a family, and a normal prior.

    Parameters
    ----------
    design
        As :func:`~surrokit_problems.data.design.check_design` returns it.
    terms
        Family, responses, offsets and weights.
    prior
        Of the coefficients.
    """

    def __init__(self, design: Design, terms: LinearTerms, prior: NormalPrior) -> None:
        self._design = design
        self._terms = terms
        self._prior = prior
        self._measured: tuple[FloatArray, FloatArray] | None = None

    @property
    def dim(self) -> int:
        """Number of coefficients."""
        return int(self._design.shape[1])

    @property
    def n_rows(self) -> int:
        """Number of terms."""
        return len(self._terms.response)

    @property
    def observed_data(self) -> dict[str, FloatArray]:
        """The response of each row."""
        return {"row": self._terms.response}

    @property
    def unnormalized(self) -> tuple[str, ...]:
        """What may lack its normalising constant: terms of one's own, or a flat prior."""
        return self._terms.unnormalized + self._prior.unnormalized

    @property
    def predictor(self) -> RowPredictor | None:
        """What predicts responses of new rows; None of a family that says nothing of them."""
        predicts, has_offset = self.family.predicts, self._terms.offset is not None
        if predicts is None:
            return None
        return RowPredictor.of(predicts, self.dim, has_offset=has_offset)

    @property
    def family(self) -> Family:
        """Terms and their derivatives."""
        return self._terms.family

    def column_moments(self, rows: IntArray | None = None) -> FloatArray:
        """Return the mean of x_i x_i^T, shape (dim, dim), with the prior's precision in its unit.

        Times the number of rows and the curvature of a term it is about the Hessian.

        Parameters
        ----------
        rows : ndarray of int, shape (m,), optional
            Rows that it is the mean over; None for all.
        """
        some = slice(None) if rows is None else rows
        design = self._design if rows is None else self._design[rows]
        shares = self._terms.shares(some)
        total = np.zeros((self.dim, self.dim))
        for part, block in blocks(design, self.dim):
            total += gram(block, shares[part])
        precision = np.diag(self._prior.precision) / (self.n_rows * self._terms.curvature(some))
        return np.asarray(total / shares.sum() + precision)

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
        expansion = LinearExpansion.at(at, self._terms, self._design, self._prior)
        return expansion if order == USUAL_ORDER else expansion.with_third_order()

    def row_bounds(
        self, factor: FloatArray, order: int = 2, ball: Ball | None = None
    ) -> FloatArray:
        """Return B_i |L^T x_i|^3 / 6, shape (n_rows,), with L the ``factor (dim, dim)``.

        The third derivative of f(x_i . q) along u is f''' (x_i . u)^3, and x_i . u is
        (L^T x_i) . (L^-1 u). With an order of 3 it is B_i |L^T x_i|^4 / 24, B_i of the fourth
        derivative. In a ball of radius R about a centre c, predictors are between
        x_i . c - s and x_i . c + s with s = R |L^T x_i|: there, for a family without a bound at
        every predictor, B_i is to hold.

        Raises
        ------
        ShapeError
            If the factor is not a square matrix for these coefficients.
        ConfigurationError
            As :meth:`expand`; or if the family has no bound everywhere, and there is no ball.
        """
        self._check_order(order)
        matrix = np.asarray(factor, dtype=np.float64)
        if matrix.shape != (self.dim, self.dim):
            raise ShapeError(
                f"factor must have shape ({self.dim}, {self.dim}), got {matrix.shape}; it is L, "
                "with L L^T a covariance of the coefficients"
            )
        lengths = self._lengths(matrix)
        predictors, reach = np.zeros(self.n_rows), np.full(self.n_rows, np.inf)
        if self.family.local:
            ball = check_ball(ball, f"terms of the family {self.family.name!r}")
            products = np.asarray(self._design @ ball.centre)
            predictors = self._terms.predictors(products, slice(None))
            reach = ball.radius * lengths
        power = order + 1
        with np.errstate(over="ignore", invalid="ignore"):
            bounds = self._terms.bounds(predictors, reach, order) / math.factorial(power)
            return np.where(lengths > 0.0, bounds * lengths**power, 0.0)

    def _lengths(self, factor: FloatArray) -> FloatArray:
        """Return |L^T x_i| of all rows, shape (n_rows,); bounds in several balls take one pass."""
        if self._measured is None or not np.array_equal(self._measured[0], factor):
            self._measured = factor.copy(), np.sqrt(squared_norms(self._design, factor))
        return self._measured[1]

    def __getstate__(self) -> dict[str, object]:
        """Return what travels to other processes."""
        return {**self.__dict__, "_measured": None}

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
        return self._of(self._design[chosen], self._terms.select(chosen))

    @abstractmethod
    def _of(self, design: Design, terms: LinearTerms) -> Self:
        """Return these terms of other rows, without a prior."""
