"""Bayesian logistic regression, and simulated data for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
from surrokit_problems.design import Design, back, blocks, check_design, forms, squares
from surrokit_problems.families import LOGISTIC
from surrokit_problems.rows import LinearRows, TermsWork
from surrokit_problems.terms import USUAL_PRIOR, LinearTerms, NormalPrior

_OFFERED: Capabilities = frozenset(
    {can.GRADIENT, can.GRADIENT_ALONE, *can.HESSIANS, *can.METRICS, can.ROWS, can.ROWS_THIRD_ORDER}
)
_NUMBERS_FOR_MANY, _NUMBERS_FOR_ONE = 200_000, 400_000  # of a block of rows, by positions
_FACTORS_IN_A_PRODUCT = 8


class LogisticRegression(LinearRows):
    """U of the coefficients b: responses Bernoulli(1 / (1 + exp(-x . b))), and a normal prior.

    U(b) = sum_i log(1 + exp(x_i . b)) - sum_i y_i x_i . b - log prior(b), in nats; section 5.1 of
    Zhang, Shahbaba and Zhao (2017).

    Parameters
    ----------
    design : array_like or SciPy sparse matrix of shape (n_rows, dim), or path
        Covariates, a column of ones included where an intercept is wanted; or the path of an .npy
        or .npz file that holds them. Not copied if in double precision and C order (or compressed
        rows): leave it as it is while the potential lives. A sparse one is never made dense.
    response : array_like of shape (n_rows,), or path
        Zeros and ones.
    prior
        Normal; a number is the standard deviation of all coefficients; None for a flat one.

    Raises
    ------
    ConfigurationError, ShapeError, TargetError
        If a response is not 0 or 1, an entry of the design is not finite, shapes do not agree, or
        something cannot be read as numbers.

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
        prior: GaussianPrior | float | None = USUAL_PRIOR,
    ) -> None:
        x, y = check_design(design, response)
        LOGISTIC.check_responses(y)
        terms = LinearTerms(family=LOGISTIC, response=y)
        super().__init__(x, terms, NormalPrior.of(prior, x.shape[1]), _OddsWork)

    @property
    def capabilities(self) -> Capabilities:
        """What it offers besides the value; ``convex`` only with its prior."""
        return _OFFERED | {can.CONVEX} if self._prior.proper else _OFFERED

    def hessian_diagonal(self, positions: FloatArray) -> FloatArray:
        """Return the diagonal of the Hessian, shape (n, dim)."""
        b = check_positions(positions, self.dim)
        diagonal = np.full(b.shape, self._prior.precision)
        for each in self._work.passes(b):
            diagonal += back(squares(each.x), each.bends())
        return diagonal

    def hessian_diagonal_gradient(self, positions: FloatArray, weights: FloatArray) -> FloatArray:
        """Return sum_j c_j d_k G_jj, G the Hessian, shape (n, dim), for ``weights (n, dim)``."""
        b = check_positions(positions, self.dim)
        c = check_vectors(weights, b)
        return self._third_forms(b, lambda x: squares(x) @ c.T)

    def hessian_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k G), G the Hessian, shape (n, dim), for ``matrices (n, dim, dim)``.

        It is sum_i p (1 - p) (1 - 2 p) (x_i . A x_i) x_ik; a matrix product of all rows with each
        A is most of its cost.
        """
        b = check_positions(positions, self.dim)
        a = check_matrices(matrices, b)
        return self._third_forms(b, lambda x: np.column_stack([forms(x, matrix) for matrix in a]))

    def hessian_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return u^T d_k G u, G the Hessian, shape (n, dim), with u in ``vectors (n, dim)``."""
        b = check_positions(positions, self.dim)
        u = check_vectors(vectors, b)
        return self._third_forms(b, lambda x: np.square(x @ u.T))

    # the Fisher information, with the prior's precision, is the Hessian
    metric = LinearRows.hessian
    metric_product = LinearRows.hessian_product
    metric_trace_gradient = hessian_trace_gradient
    metric_form_gradient = hessian_form_gradient

    def _third_forms(self, b: FloatArray, form: Callable[[Design], FloatArray]) -> FloatArray:
        """Return sum_i p (1 - p) (1 - 2 p) x_i times a form of row i, given (rows, n): (n, dim)."""
        total = np.zeros(b.shape)
        for each in self._work.passes(b):
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
        n_products, n = len(self.odds) // _FACTORS_IN_A_PRODUCT, self.odds.shape[1]
        n_multiplied = n_products * _FACTORS_IN_A_PRODUCT
        grouped = self.odds[:n_multiplied].reshape(_FACTORS_IN_A_PRODUCT, n_products, n)
        logs = np.log(np.multiply.reduce(grouped, axis=0)).sum(axis=0)
        return np.asarray(logs + np.log(self.odds[n_multiplied:]).sum(axis=0))

    def slopes(self) -> FloatArray:
        """Return p, in place of the odds."""
        return np.divide(1.0, self.odds, out=self.odds)

    def bends(self) -> FloatArray:
        """Return p (1 - p)."""
        p = 1.0 / self.odds
        return np.asarray(p - p * p)


@attrs.frozen(eq=False)
class _OddsWork:
    """Sums of log(1 + exp(-x . b)), and what is left of U.

    log(1 + exp(z)) - y z = log(1 + exp(-z)) + (1 - y) z, and with the minus sign the gradient gets
    its 1 / (1 + exp(-z)) from numbers that the value has made already.
    """

    design: Design
    terms: LinearTerms
    prior: NormalPrior
    weighted_rows: FloatArray = attrs.field(init=False)
    unweighted_rows: FloatArray = attrs.field(init=False)

    @weighted_rows.default
    def _by_response(self) -> FloatArray:
        return np.asarray(self.terms.response @ self.design)

    @unweighted_rows.default
    def _by_no_response(self) -> FloatArray:
        return np.asarray((1.0 - self.terms.response) @ self.design)

    def passes(self, b: FloatArray, reused: bool = True) -> Iterator[_OddsPass]:
        minus_b = np.ascontiguousarray(-b.T)
        cached = _NUMBERS_FOR_MANY if len(b) > 1 else _NUMBERS_FOR_ONE
        for _, x in blocks(self.design, len(b), reused, cached):
            with np.errstate(over="ignore", invalid="ignore"):
                odds = x @ minus_b
                np.exp(odds, out=odds)
                odds += 1.0
            yield _OddsPass(x, odds)

    def start(self, b: FloatArray) -> FloatArray:
        return np.zeros(len(b))

    def start_gradient(self, b: FloatArray) -> FloatArray:
        return np.zeros(b.shape)

    def finish(self, total: FloatArray, b: FloatArray) -> FloatArray:
        """Sum the terms as they are, which is slow, where products of odds overflowed."""
        value = np.asarray(total + (b @ self.unweighted_rows + self.prior.value(b)))
        far = np.flatnonzero(~np.isfinite(value))
        if far.size:
            plain = TermsWork(self.design, self.terms, self.prior)
            passes = plain.passes(b[far], reused=False)
            again = sum((each.total() for each in passes), plain.start(b[far]))
            value[far] = np.where(np.isfinite(again), again, np.inf)
        return value

    def finish_gradient(self, gradient: FloatArray, b: FloatArray) -> FloatArray:
        return np.asarray(gradient - self.weighted_rows + self.prior.gradient(b))


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
