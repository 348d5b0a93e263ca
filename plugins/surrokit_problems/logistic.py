"""Bayesian logistic regression, and simulated data for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path

import attrs
import numpy as np
import numpy.typing as npt
from scipy import sparse

from surrokit import capabilities as can
from surrokit.arguments import check_matrices, check_positions, check_vectors
from surrokit.errors import ConfigurationError
from surrokit.targets.gaussian import GaussianPrior
from surrokit.types import Capabilities, FloatArray
from surrokit_problems.design import Design, back, blocks, forms, squares
from surrokit_problems.families import LOGISTIC
from surrokit_problems.rows import USUAL_PRIOR, GeneralizedLinearModel


class LogisticRegression(GeneralizedLinearModel):
    """U of the coefficients b: responses Bernoulli(1 / (1 + exp(-x . b))), and a normal prior.

    U(b) = sum_i log(1 + exp(x_i . b)) - sum_i y_i x_i . b - log prior(b), in nats; section 5.1 of
    Zhang, Shahbaba and Zhao (2017). It is computed as the sum of log(1 + exp(-x_i . b)) and of
    (1 - y_i) x_i . b, so that the gradient gets its 1 / (1 + exp(-x_i . b)) from numbers that the
    value has made already. The sizes of blocks were measured.
    """

    def __init__(
        self,
        design: str | Path | npt.ArrayLike | sparse.sparray | sparse.spmatrix,
        response: str | Path | npt.ArrayLike,
        prior: GaussianPrior | float | None = USUAL_PRIOR,
    ) -> None:
        super().__init__(design, response, LOGISTIC, prior)

    @property
    def capabilities(self) -> Capabilities:
        """Those of other models, and more second and third derivatives."""
        return frozenset({*super().capabilities, *can.HESSIANS, *can.METRICS})

    @cached_property
    def _with_response(self) -> FloatArray:
        return np.asarray(self._terms.response @ self._design)

    @cached_property
    def _without_response(self) -> FloatArray:
        return np.asarray((1.0 - self._terms.response) @ self._design)

    def _passes(self, b: FloatArray, reused: bool = True) -> Iterator[_OddsPass]:
        minus_b = np.ascontiguousarray(-b.T)
        for _, x in blocks(self._design, len(b), reused, 200_000 if len(b) > 1 else 400_000):
            with np.errstate(over="ignore", invalid="ignore"):
                odds = x @ minus_b
                np.exp(odds, out=odds)
                odds += 1.0
            yield _OddsPass(x, odds)

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), at coefficients of shape (n, dim)."""
        b = check_positions(positions, self.dim)
        with np.errstate(over="ignore", invalid="ignore"):
            total = np.zeros(len(b))
            for each in self._passes(b, reused=False):
                total += each.total()
            return self._whole(total, b)

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U, shape (n,), and its gradient, shape (n, dim)."""
        b = check_positions(positions, self.dim)
        with np.errstate(over="ignore", invalid="ignore"):
            total, gradient = np.zeros(len(b)), np.zeros(b.shape)
            for each in self._passes(b):
                total += each.total()
                gradient += back(each.x, each.slopes())
            gradient = gradient - self._with_response + self._prior.gradient(b)
            return self._whole(total, b), gradient

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient of U alone, shape (n, dim)."""
        b = check_positions(positions, self.dim)
        gradient = np.zeros(b.shape)
        with np.errstate(over="ignore", invalid="ignore"):
            for each in self._passes(b):
                gradient += back(each.x, each.slopes())
            return np.asarray(gradient - self._with_response + self._prior.gradient(b))

    def _whole(self, total: FloatArray, b: FloatArray) -> FloatArray:
        """Return U; where products of odds overflowed, terms are summed as they are, slowly."""
        value = np.asarray(total + (b @ self._without_response + self._prior.value(b)))
        far = np.flatnonzero(~np.isfinite(value))
        if far.size:
            passes = GeneralizedLinearModel._passes(self, b[far], reused=False)
            again = sum((each.total() for each in passes), self._prior.value(b[far]))
            value[far] = np.where(np.isfinite(again), again, np.inf)
        return value

    def hessian_diagonal(self, positions: FloatArray) -> FloatArray:
        """Return the diagonal of the Hessian, shape (n, dim)."""
        b = check_positions(positions, self.dim)
        diagonal = np.full(b.shape, self._prior.precision)
        for each in self._passes(b):
            diagonal += back(squares(each.x), each.bends())
        return diagonal

    def hessian_diagonal_gradient(self, positions: FloatArray, weights: FloatArray) -> FloatArray:
        """Return sum_j c_j d_k G_jj, G the Hessian, shape (n, dim), for ``weights (n, dim)``."""
        b = check_positions(positions, self.dim)
        c = check_vectors(weights, b)
        return self._third_forms(b, lambda x: squares(x) @ c.T)

    def hessian_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k G), G the Hessian, shape (n, dim), for ``matrices (n, dim, dim)``."""
        b = check_positions(positions, self.dim)
        a = check_matrices(matrices, b)
        return self._third_forms(b, lambda x: np.column_stack([forms(x, matrix) for matrix in a]))

    def hessian_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return u^T d_k G u, G the Hessian, shape (n, dim), with u in ``vectors (n, dim)``."""
        b = check_positions(positions, self.dim)
        u = check_vectors(vectors, b)
        return self._third_forms(b, lambda x: np.square(x @ u.T))

    # the Fisher information, with the prior's precision, is the Hessian
    metric = GeneralizedLinearModel.hessian
    metric_product = GeneralizedLinearModel.hessian_product
    metric_trace_gradient = hessian_trace_gradient
    metric_form_gradient = hessian_form_gradient

    def _third_forms(self, b: FloatArray, form: Callable[[Design], FloatArray]) -> FloatArray:
        """Return sum_i p (1 - p) (1 - 2 p) x_i times a form of row i, given (rows, n): (n, dim)."""
        total = np.zeros(b.shape)
        for each in self._passes(b):
            p = each.slopes()
            thirds = p - p * p
            p *= -2.0
            p += 1.0
            thirds *= p
            thirds *= form(each.x)
            total += back(each.x, thirds)
        return total


@attrs.frozen(eq=False)
class _OddsPass:
    """A block of rows x by 1 + exp(-x . b), shape (rows, n), which is 1 / p."""

    x: Design
    odds: FloatArray

    def total(self) -> FloatArray:
        """Return the sum of logarithms, shape (n,), by logarithms of products of eight.

        A logarithm costs four multiplications. ``inf`` where a product overflows. Factors are at
        least 1, so the absolute error stays near 1e-16 for each of them.
        """
        n_products, n = len(self.odds) // 8, self.odds.shape[1]
        grouped = self.odds[: 8 * n_products].reshape(8, n_products, n)
        logs = np.log(np.multiply.reduce(grouped, axis=0)).sum(axis=0)
        return np.asarray(logs + np.log(self.odds[8 * n_products :]).sum(axis=0))

    def slopes(self) -> FloatArray:
        """Return p, in place of the odds."""
        return np.divide(1.0, self.odds, out=self.odds)

    def bends(self) -> FloatArray:
        """Return p (1 - p)."""
        p = 1.0 / self.odds
        return np.asarray(p - p * p)


def logistic(
    design: str | Path | npt.ArrayLike | sparse.sparray | sparse.spmatrix,
    response: str | Path | npt.ArrayLike,
    prior_variance: float = 100.0,
) -> LogisticRegression:
    """Return logistic regression with a normal prior of one variance about 0.

    Parameters
    ----------
    design : array_like or SciPy sparse matrix of shape (n_rows, dim), or path
        Covariates, a column of ones included where an intercept is wanted; or the path of an .npy
        or .npz file that holds them.
    response : array_like of shape (n_rows,), or path
        Zeros and ones.
    prior_variance
        Of every coefficient, positive.

    Raises
    ------
    ConfigurationError, ShapeError, TargetError
        If the variance is not positive; and as :class:`LogisticRegression`.
    """
    if not 0.0 < prior_variance < np.inf:
        raise ConfigurationError(
            f"prior_variance must be positive and finite, got {prior_variance}; the paper has 100"
        )
    return LogisticRegression(design, response, float(np.sqrt(prior_variance)))


def simulate_regression(
    n_rows: int, dim: int, seed: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Draw a design (n_rows, dim), responses (n_rows,) and the coefficients (dim,) behind them.

    The design is (1/10, X1) with the entries of X1 from N(0, 1/100); coefficients are uniform on
    [0, 1]; responses are Bernoulli(1 / (1 + exp(-x . b))).

    Raises
    ------
    ConfigurationError
        If a size is not positive.
    """
    if n_rows < 1 or dim < 1:
        raise ConfigurationError(
            f"n_rows and dim must be at least 1, got {n_rows} and {dim}; the paper has 100000 "
            "and 50"
        )
    rng = np.random.default_rng(seed)
    coefficients = rng.uniform(size=dim)
    design = rng.standard_normal((n_rows, dim))
    design[:, 0] = 1.0
    design *= 0.1
    response = rng.uniform(size=n_rows) < 1.0 / (1.0 + np.exp(-design @ coefficients))
    return design, response.astype(np.float64), coefficients


def simulated_logistic(
    n_rows: int = 100_000, dim: int = 50, prior_variance: float = 100.0, seed: int = 2017
) -> LogisticRegression:
    """Return the simulated regression of section 5.1 of Zhang, Shahbaba and Zhao (2017).

    Parameters
    ----------
    n_rows, dim
        Shape of the design, at least 1 each.
    prior_variance
        Of every coefficient, positive.
    seed
        Of the data, at least 0.

    Raises
    ------
    ConfigurationError
        If a number is not positive.
    """
    design, response, _ = simulate_regression(n_rows, dim, seed)
    return logistic(design, response, prior_variance)
