"""Bayesian regression with any family of terms of one linear predictor."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from surrokit import capabilities as can
from surrokit.shapes import check_positions, check_vectors
from surrokit.types import Capabilities, FloatArray
from surrokit_problems.data.design import Design, back, blocks, check_binary, check_design, gram
from surrokit_problems.rows.family import PROBIT, Family, logistic_errors, student_errors
from surrokit_problems.rows.linear_rows import LinearRows

_OFFERED: Capabilities = frozenset(
    {can.GRADIENT, can.GRADIENT_ALONE, can.HESSIAN, can.HESSIAN_PRODUCT, can.ROWS}
)


class GeneralizedLinearModel(LinearRows):
    """U(b) = sum_i f(x_i . b) + b . b / (2 variance) for coefficients b, in nats.

    Dense designs are worked through in blocks that stay in the processor's cache; sparse ones are
    never made dense. For logistic regression
    :class:`~surrokit_problems.rows.logistic.LogisticRegression` is faster, and can do more.

    Parameters
    ----------
    design : array_like or SciPy sparse matrix of shape (n_rows, dim), or path
        Covariates, a column of ones included where an intercept is wanted; or the path of an .npy
        or .npz file that holds them. Not copied if in double precision and C order (or compressed
        rows): leave it as it is while the potential lives.
    response : array_like of shape (n_rows,), or path
        One for each row; zeros and ones where the family is of these.
    family
        The terms f, such as :data:`~surrokit_problems.rows.family.PROBIT`, or one's own.
    prior_variance
        Of every coefficient.

    Raises
    ------
    ConfigurationError
        If a number is not finite, the variance not positive, or a response of a binary family
        not 0 or 1.
    ShapeError
        If the design is not a matrix with a row for each response.
    """

    def __init__(
        self, design: Any, response: Any, family: Family, prior_variance: float = 100.0
    ) -> None:
        x, y = check_design(design, response, prior_variance)
        if family.binary:
            check_binary(y)
        super().__init__(x, y, family, 1.0 / prior_variance)

    @property
    def capabilities(self) -> Capabilities:
        """What it offers besides the value; ``convex`` if the family is, and there is a prior."""
        more = {can.CONVEX} if self.family.convex and self._precision > 0.0 else set()
        more |= set() if self.family.third is None else {can.ROWS_THIRD_ORDER}
        return _OFFERED | more

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), at coefficients of shape (n, dim)."""
        b = check_positions(positions, self.dim)
        with np.errstate(over="ignore", invalid="ignore"):
            total = 0.5 * self._precision * np.square(b).sum(axis=1)
            for rows, block in blocks(self._design, len(b), reused=False):
                total += self.family.value(block @ b.T, self._response[rows, None]).sum(axis=0)
        return np.where(np.isnan(total), np.inf, total)

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U, shape (n,), and its gradient, shape (n, dim)."""
        b = check_positions(positions, self.dim)
        with np.errstate(over="ignore", invalid="ignore"):
            total = 0.5 * self._precision * np.square(b).sum(axis=1)
            gradient = self._precision * b
            for rows, block in blocks(self._design, len(b)):
                e, y = block @ b.T, self._response[rows, None]
                total += self.family.value(e, y).sum(axis=0)
                gradient += back(block, self.family.first(e, y))
        return np.where(np.isnan(total), np.inf, total), gradient

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient of U alone, shape (n, dim)."""
        b = check_positions(positions, self.dim)
        gradient = self._precision * b
        with np.errstate(over="ignore", invalid="ignore"):
            for rows, block in blocks(self._design, len(b)):
                slopes = self.family.first(block @ b.T, self._response[rows, None])
                gradient += back(block, slopes)
        return gradient

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return X^T diag(f'') X + I / variance, shape (n, dim, dim)."""
        b = check_positions(positions, self.dim)
        hessian = np.empty((len(b), self.dim, self.dim))
        hessian[:] = self._precision * np.eye(self.dim)
        with np.errstate(over="ignore", invalid="ignore"):
            for rows, block in blocks(self._design, len(b)):
                bends = self.family.second(block @ b.T, self._response[rows, None])
                for matrix, weights in zip(hessian, bends.T, strict=True):
                    matrix += gram(block, weights)
        return hessian

    def hessian_product(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return the Hessian times u, shape (n, dim), with u in ``vectors (n, dim)``."""
        b = check_positions(positions, self.dim)
        u = check_vectors(vectors, b)
        product = self._precision * u
        with np.errstate(over="ignore", invalid="ignore"):
            for rows, block in blocks(self._design, 2 * len(b)):
                bends = self.family.second(block @ b.T, self._response[rows, None])
                product += back(block, bends * (block @ u.T))
        return product

    def _of(self, design: Design, response: FloatArray) -> Self:
        chosen = type(self)(design, response, self.family)
        chosen._precision = 0.0
        return chosen


def probit(
    design: str | Path | npt.ArrayLike,
    response: str | Path | npt.ArrayLike,
    prior_variance: float = 100.0,
) -> GeneralizedLinearModel:
    """Return a probit regression on arrays or files.

    Parameters
    ----------
    design : array_like or SciPy sparse matrix of shape (n_rows, dim), or path
        Covariates, a column of ones included where an intercept is wanted; or the path of an .npy
        or .npz file that holds them.
    response : array_like of shape (n_rows,), or path
        Zeros and ones.
    prior_variance
        Of every coefficient.

    Raises
    ------
    ConfigurationError
        If numbers make no sense.
    ShapeError
        If the shapes do not agree.
    TargetError
        If a file cannot be read.
    """
    return GeneralizedLinearModel(design, response, PROBIT, prior_variance)


def robust(
    design: str | Path | npt.ArrayLike,
    response: str | Path | npt.ArrayLike,
    scale: float = 1.0,
    degrees: float | None = 4.0,
    prior_variance: float = 100.0,
) -> GeneralizedLinearModel:
    """Return a linear regression with heavy-tailed errors on arrays or files.

    Parameters
    ----------
    design : array_like or SciPy sparse matrix of shape (n_rows, dim), or path
        Covariates, a column of ones included where an intercept is wanted; or the path of an .npy
        or .npz file that holds them.
    response : array_like of shape (n_rows,), or path
        Numbers.
    scale
        Of the errors.
    degrees : float, optional
        Of freedom, of Student's t; None for logistic errors.
    prior_variance
        Of every coefficient.

    Raises
    ------
    ConfigurationError
        If numbers make no sense.
    ShapeError
        If the shapes do not agree.
    TargetError
        If a file cannot be read.
    """
    errors = logistic_errors(scale) if degrees is None else student_errors(degrees, scale)
    return GeneralizedLinearModel(design, response, errors, prior_variance)
