"""Bayesian logistic regression."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from surrokit import capabilities as can
from surrokit.arguments import check_matrices, check_positions, check_vectors
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.limits import one_thread
from surrokit.types import Capabilities, FloatArray
from surrokit_problems.data.design import (
    Design,
    back,
    check_design,
    forms,
    gram,
    squares,
)
from surrokit_problems.rows.families.ready_made import LOGISTIC
from surrokit_problems.rows.linear_rows import LinearRows
from surrokit_problems.rows.linear_terms import LinearTerms
from surrokit_problems.rows.normal_prior import NormalPrior

_OFFERED: Capabilities = frozenset(
    {can.GRADIENT, can.GRADIENT_ALONE, *can.HESSIANS, *can.METRICS, can.ROWS, can.ROWS_THIRD_ORDER}
)
_NUMBERS_IN_A_BLOCK = 200_000
_NUMBERS_FOR_ONE = 400_000
_RESULTS_IN_A_BLOCK = 1_000_000
_FACTORS_IN_A_PRODUCT = 8


class LogisticRegression(LinearRows):
    """U of the coefficients b: responses Bernoulli(1 / (1 + exp(-x . b))), prior N(0, variance I).

    U(b) = sum_i log(1 + exp(x_i . b)) - sum_i y_i x_i . b + b . b / (2 variance), and the constant
    of the prior, in nats; section 5.1 of Zhang, Shahbaba and Zhao (2017).

    Parameters
    ----------
    design : array_like or SciPy sparse matrix of shape (n_rows, dim), or path
        Covariates, a column of ones included where an intercept is wanted; or the path of an .npy
        or .npz file that holds them. Not copied if in double precision and C order (or compressed
        rows): leave it as it is while the potential lives. A sparse one is never made dense.
    response : array_like of shape (n_rows,), or path
        Zeros and ones.
    prior_variance : float or ndarray of shape (dim,)
        Of every coefficient, or of each; an infinite one of some is a flat prior.

    Raises
    ------
    ConfigurationError
        If a response is not 0 or 1, an entry of the design is not finite, or the variance is not
        positive.
    ShapeError
        If the design is not a matrix with a row for each response.
    TargetError
        If a file cannot be read.

    Notes
    -----
    Rows are worked through in blocks that stay in the processor's cache, so that the product with
    the transpose finds them there; the sizes were measured. For a value, which uses each block
    once, blocks only bound the temporaries. Methods raise
    :class:`~surrokit.errors.ShapeError` unless positions are rows of ``dim`` numbers.
    """

    def __init__(
        self,
        design: str | Path | npt.ArrayLike | sparse.sparray | sparse.spmatrix,
        response: str | Path | npt.ArrayLike,
        prior_variance: float | FloatArray = 100.0,
    ) -> None:
        alone = np.ndim(prior_variance) == 0
        if not (np.min(prior_variance) > 0.0 and (not alone or prior_variance < np.inf)):
            raise ConfigurationError(
                f"prior_variance must be positive and finite, got {prior_variance}; the paper has "
                "100"
            )
        x, y = check_design(design, response)
        if not alone and np.shape(prior_variance) != x.shape[1:]:
            raise ShapeError(
                f"prior_variance must be one number or have shape {x.shape[1:]}, one for each "
                f"coefficient, got {np.shape(prior_variance)}"
            )
        self._set(x, LinearTerms.checked(LOGISTIC, y), 1.0 / prior_variance)

    def _set(self, x: Design, terms: LinearTerms, precision: float | FloatArray) -> None:
        dim, y = x.shape[1], terms.response
        prior = NormalPrior(
            mean=np.zeros(dim), precision=np.broadcast_to(precision, (dim,)).astype(np.float64)
        )
        super().__init__(x, terms, prior)
        self._precision = precision
        self._weighted_rows = y @ x
        self._unweighted_rows = (1.0 - y) @ x

    @property
    def capabilities(self) -> Capabilities:
        """What it offers besides the value; ``convex`` only with its prior."""
        return _OFFERED | {can.CONVEX} if self._prior.proper else _OFFERED

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), at coefficients of shape (n, dim)."""
        b = check_positions(positions, self.dim)
        total = np.zeros(len(b))
        for _, odds in self._blocks(b, reused=False):
            total += _sum_of_logs(odds)
        return self._complete(total, b)

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U, shape (n,), and its gradient, shape (n, dim)."""
        b = check_positions(positions, self.dim)
        total, gradient = np.zeros(len(b)), np.zeros(b.shape)
        for rows, odds in self._blocks(b):
            total += _sum_of_logs(odds)
            gradient += back(rows, np.divide(1.0, odds, out=odds))
        return self._complete(total, b), gradient - self._weighted_rows + self._precision * b

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient of U alone, shape (n, dim)."""
        b = check_positions(positions, self.dim)
        gradient = np.zeros(b.shape)
        for rows, odds in self._blocks(b):
            gradient += back(rows, np.divide(1.0, odds, out=odds))
        return np.asarray(gradient - self._weighted_rows + self._precision * b)

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return X^T diag(p (1 - p)) X + I / variance, shape (n, dim, dim)."""
        b = check_positions(positions, self.dim)
        hessian = np.empty((len(b), self.dim, self.dim))
        hessian[:] = self._precision * np.eye(self.dim)
        for rows, odds in self._blocks(b):
            for matrix, variances in zip(hessian, _variances(odds).T, strict=True):
                matrix += gram(rows, variances)
        return hessian

    def hessian_product(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return the Hessian times u, shape (n, dim), with u in ``vectors (n, dim)``."""
        b = check_positions(positions, self.dim)
        u = check_vectors(vectors, b)
        product = self._precision * u
        for rows, odds in self._blocks(b):
            along = rows @ u.T
            along *= _variances(odds)
            product += back(rows, along)
        return product

    def hessian_diagonal(self, positions: FloatArray) -> FloatArray:
        """Return the diagonal of the Hessian, shape (n, dim)."""
        b = check_positions(positions, self.dim)
        diagonal = np.full(b.shape, self._precision)
        for rows, odds in self._blocks(b):
            diagonal += back(squares(rows), _variances(odds))
        return diagonal

    def hessian_diagonal_gradient(self, positions: FloatArray, weights: FloatArray) -> FloatArray:
        """Return sum_j c_j d_k G_jj, G the Hessian, shape (n, dim), for ``weights (n, dim)``."""
        b = check_positions(positions, self.dim)
        c = check_vectors(weights, b)
        return self._bent(b, lambda rows: squares(rows) @ c.T)

    def hessian_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k G), G the Hessian, shape (n, dim), for ``matrices (n, dim, dim)``.

        It is sum_i p (1 - p) (1 - 2 p) (x_i . A x_i) x_ik; a matrix product of all rows with each
        A is most of its cost.
        """
        b = check_positions(positions, self.dim)
        a = check_matrices(matrices, b)

        return self._bent(b, lambda rows: np.column_stack([forms(rows, matrix) for matrix in a]))

    def hessian_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return u^T d_k G u, G the Hessian, shape (n, dim), with u in ``vectors (n, dim)``."""
        b = check_positions(positions, self.dim)
        u = check_vectors(vectors, b)
        return self._bent(b, lambda rows: np.square(rows @ u.T))

    def metric(self, positions: FloatArray) -> FloatArray:
        """Return the Fisher matrix plus the prior's, shape (n, dim, dim): the Hessian."""
        return self.hessian(positions)

    def metric_product(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return the metric times a vector, shape (n, dim): :meth:`hessian_product`."""
        return self.hessian_product(positions, vectors)

    def metric_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k G), G the metric, shape (n, dim): :meth:`hessian_trace_gradient`."""
        return self.hessian_trace_gradient(positions, matrices)

    def metric_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return u^T d_k G u, G the metric, shape (n, dim): :meth:`hessian_form_gradient`."""
        return self.hessian_form_gradient(positions, vectors)

    def _of(self, design: Design, terms: LinearTerms) -> Self:
        chosen = copy.copy(self)
        chosen._set(design, terms, 0.0)
        return chosen

    def _bent(self, b: FloatArray, weights: Callable[[Design], FloatArray]) -> FloatArray:
        """Return sum_i p (1 - p) (1 - 2 p) x_i times a form of row i, given (rows, n): (n, dim)."""
        total = np.zeros(b.shape)
        for rows, odds in self._blocks(b):
            p = 1.0 / odds
            bends = p - p * p
            p *= -2.0
            p += 1.0
            bends *= p
            bends *= weights(rows)
            total += back(rows, bends)
        return total

    def _blocks(self, b: FloatArray, reused: bool = True) -> Iterator[tuple[Design, FloatArray]]:
        """Yield blocks of the design with 1 + exp(-x . b), shape (rows in the block, n)."""
        minus_b = np.ascontiguousarray(-b.T)
        size = _RESULTS_IN_A_BLOCK // max(1, len(b))
        if reused and not sparse.issparse(self._design):
            numbers = _NUMBERS_IN_A_BLOCK if len(b) > 1 else _NUMBERS_FOR_ONE
            size = min(size, numbers // self.dim)
        size = max(1024, size)
        with one_thread():  # blocks are too small for more, which would wait for each other
            for start in range(0, self.n_rows, size):
                rows = self._design if size >= self.n_rows else self._design[start : start + size]
                with np.errstate(over="ignore", invalid="ignore"):
                    odds = rows @ minus_b
                    np.exp(odds, out=odds)
                    odds += 1.0
                yield rows, odds

    def _complete(self, total: FloatArray, b: FloatArray) -> FloatArray:
        """Add the rest of U to sum_i log(1 + exp(-x_i . b)); do it again where that overflowed."""
        value = total + self._rest(b)
        far = np.flatnonzero(~np.isfinite(value))
        if far.size:
            value[far] = self._far_value(b[far])
        return value

    def _far_value(self, b: FloatArray) -> FloatArray:
        """Return U by logaddexp, which is slow and cannot overflow before U does."""
        total = np.zeros(len(b))
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, self.n_rows, _RESULTS_IN_A_BLOCK // len(b) or 1):
                rows = self._design[start : start + (_RESULTS_IN_A_BLOCK // len(b) or 1)]
                total += np.logaddexp(0.0, -(rows @ b.T)).sum(axis=0)
            value = total + self._rest(b)
        return np.where(np.isfinite(value), value, np.inf)

    def _rest(self, b: FloatArray) -> FloatArray:
        """Return what needs no rows: sum_i (1 - y_i) x_i . b and the prior.

        log(1 + exp(z)) - y z = log(1 + exp(-z)) + (1 - y) z, and with the minus sign the gradient
        gets its 1 / (1 + exp(-z)) from numbers that the value has made already.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            alone = np.ndim(self._precision) == 0
            prior = (
                0.5 * self._precision * np.square(b).sum(axis=1) + self._prior.constant
                if alone
                else self._prior.value(b)
            )
            rest: FloatArray = b @ self._unweighted_rows + prior
        return rest


def _sum_of_logs(factors: FloatArray) -> FloatArray:
    """Return the sum of logarithms over the first axis, by logarithms of products of eight.

    A logarithm costs four multiplications. ``inf`` where a product overflows. Factors are at least
    1, so the absolute error stays near 1e-16 for each of them.
    """
    n_products = len(factors) // _FACTORS_IN_A_PRODUCT
    n_multiplied = n_products * _FACTORS_IN_A_PRODUCT
    shape = (_FACTORS_IN_A_PRODUCT, n_products, factors.shape[1])
    grouped = factors[:n_multiplied].reshape(shape)
    with np.errstate(over="ignore"):
        products = np.multiply.reduce(grouped, axis=0)
    total: FloatArray = np.log(products).sum(axis=0) + np.log(factors[n_multiplied:]).sum(axis=0)
    return total


def _variances(odds: FloatArray) -> FloatArray:
    """Return p (1 - p) with p = 1 / odds."""
    p = 1.0 / odds
    return np.asarray(p - p * p)
