"""Bayesian multinomial logistic regression."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from itertools import combinations
from typing import Any, Self

import numpy as np

from surrokit import capabilities as can
from surrokit.arguments import check_positions, check_vectors
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.predictive.classes import MultinomialClasses
from surrokit.predictive.rows import RowPredictor
from surrokit.shown.target import ShownTarget
from surrokit.targets.gaussian import GaussianPrior
from surrokit.types import Capabilities, FloatArray, IntArray
from surrokit_problems.data.design import Design, back, blocks, check_design, gram, squared_norms
from surrokit_problems.rows.families.logistic_terms import FOURTH_BOUND, THIRD_BOUND
from surrokit_problems.rows.linear_terms import weights_of
from surrokit_problems.rows.multinomial_expansion import ClassRows, MultinomialExpansion
from surrokit_problems.rows.normal_prior import USUAL_PRIOR, NormalPrior

_OFFERED: Capabilities = frozenset(
    {
        *(can.GRADIENT, can.GRADIENT_ALONE, can.HESSIAN, can.HESSIAN_PRODUCT),
        *(can.ROWS, can.ROWS_THIRD_ORDER),
    }
)


class MultinomialLogit(ShownTarget):
    """Responses 0, 1, ..., m with probabilities in proportion to 1, exp(e_1), ..., exp(e_m).

    Predictors are e_k = x . b_k; the position is b_1, ..., b_m, one after the other. A term is
    log(1 + sum_k exp(e_k)) - e_y, in nats, with e_0 = 0.

    Parameters
    ----------
    design : array_like or SciPy sparse matrix of shape (n_rows, n_columns), or path
        Covariates, a column of ones included where an intercept is wanted.
    response : array_like of shape (n_rows,), or path
        Whole numbers from 0 to m, each of which occurs.
    prior
        Normal; None for a flat one.
    weights : array_like of shape (n_rows,), or path, optional
        How often each row counts.

    Raises
    ------
    ConfigurationError
        If a number is not finite, a weight is negative, or responses are not 0 to m.
    ShapeError
        If the design is not a matrix with a row for each response, or prior or weights do not fit.
    TargetError
        If a file cannot be read, or something is not numbers.

    Notes
    -----
    Along a direction in which predictors change by v_1, ..., v_m, the third derivative of a term is
    the third central moment of a variable that is v_k with the probability of class k, and v_0 = 0.
    With w the range of these numbers it is at most w^3 / (6 sqrt(3)): for a given mean the moment
    is largest for a variable with two values, these being ends of the range, and then it is
    p (1 - p) (1 - 2 p) w^3. The fourth derivative is the fourth cumulant, which is at most w^4 / 8:
    it is at least -2 times the variance squared, which is at most w^2 / 4, and at most
    s w^2 - 3 s^2 for a variance s, which is w^4 / 12 or less.
    """

    def __init__(
        self,
        design: Any,
        response: Any,
        prior: GaussianPrior | None = USUAL_PRIOR,
        weights: Any = None,
    ) -> None:
        x, y = check_design(design, response)
        n_classes = _count_classes(y)
        self._rows = ClassRows(
            design=x,
            response=y.astype(np.int64),
            weights=weights_of(weights, len(y)),
            n_predictors=n_classes - 1,
        )
        self._prior = NormalPrior.of(prior, self.dim)

    @property
    def dim(self) -> int:
        """Number of coefficients: columns times classes but one."""
        return self._rows.dim

    @property
    def n_rows(self) -> int:
        """Number of terms."""
        return len(self._rows.response)

    @property
    def unnormalized(self) -> tuple[str, ...]:
        """What has no normalising constant: a flat prior."""
        return self._prior.unnormalized

    @property
    def observed_data(self) -> dict[str, IntArray]:
        """The response of each row."""
        return {"row": self._rows.response}

    @property
    def predictor(self) -> RowPredictor:
        """What predicts classes of new rows."""
        n_columns = self._rows.design.shape[1]
        return RowPredictor.of(MultinomialClasses(), n_columns, has_offset=False)

    @property
    def capabilities(self) -> Capabilities:
        """What it offers besides the value; ``convex`` with a prior."""
        return _OFFERED | ({can.CONVEX} if self._prior.proper else set())

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), at coefficients of shape (n, dim)."""
        b = check_positions(positions, self.dim)
        with np.errstate(over="ignore", invalid="ignore"):
            total = self._prior.value(b)
            for rows, _, e in self._blocks(b):
                total += self._rows.terms(e, rows).sum(axis=0)
        return np.where(np.isnan(total), np.inf, total)

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U, shape (n,), and its gradient, shape (n, dim)."""
        return self.value(positions), self.gradient(positions)

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient of U alone, shape (n, dim)."""
        b = check_positions(positions, self.dim)
        gradient = self._prior.gradient(b)
        with np.errstate(over="ignore", invalid="ignore"):
            for rows, block, e in self._blocks(b):
                slopes = self._rows.slopes(e, rows)
                gradient += back(block, slopes.reshape(len(slopes), -1)).reshape(b.shape)
        return gradient

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return second derivatives, shape (n, dim, dim)."""
        b = check_positions(positions, self.dim)
        m, d = self._rows.n_predictors, self._rows.n_columns
        hessian = np.zeros((len(b), m, d, m, d))
        for rows, block, e in self._blocks(b):
            bends = self._rows.bends(e, rows)
            for k in range(len(b)):
                for i in range(m):
                    for j in range(i, m):
                        part = gram(block, bends[:, k, i, j])
                        hessian[k, i, :, j] += part
                        if i != j:
                            hessian[k, j, :, i] += part
        matrix = hessian.reshape(len(b), self.dim, self.dim)
        return np.asarray(matrix + np.diag(self._prior.precision))

    def hessian_product(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return the Hessian times u, shape (n, dim), with u in ``vectors (n, dim)``."""
        b = check_positions(positions, self.dim)
        u = check_vectors(vectors, b)
        product = self._prior.precision * u
        for rows, block, e in self._blocks(b):
            bends = self._rows.bends(e, rows)
            turned = np.einsum("rnij,rnj->rni", bends, self._rows.predictors(block, u))
            product += back(block, turned.reshape(len(turned), -1)).reshape(b.shape)
        return product

    def column_moments(self, rows: IntArray | None = None) -> FloatArray:
        """Return the mean of x_i x_i^T for each class, shape (dim, dim).

        The prior's precision is added, in the unit of a row's curvature where all coefficients are
        0.

        Parameters
        ----------
        rows : ndarray of int, shape (m,), optional
            Rows that it is the mean over; None for all.
        """
        some = self._rows if rows is None else self._rows.select(rows)
        shares = some.weigh(np.ones(len(some.response)))
        total = np.zeros((some.n_columns, some.n_columns))
        for part, block in blocks(some.design, some.n_columns):
            total += gram(block, shares[part])
        m = some.n_predictors
        curvature = m / (m + 1.0) ** 2 * shares.mean()
        precision = np.diag(self._prior.precision) / (self.n_rows * max(curvature, 1e-300))
        mean = total / max(float(shares.sum()), 1e-300)
        return np.asarray(np.kron(np.eye(m), mean) + precision)

    def expand(self, centre: FloatArray, order: int = 2) -> MultinomialExpansion:
        """Return the expansions of all terms at ``centre (dim,)``, to an order of 2 or 3.

        Raises
        ------
        ShapeError
            If the centre is not one position.
        ConfigurationError
            If the order is neither.
        """
        _check_order(order)
        at = np.array(centre, dtype=np.float64)
        if at.shape != (self.dim,):
            raise ShapeError(f"centre must have shape ({self.dim},), got {at.shape}")
        alone = self.select(np.arange(self.n_rows))
        return MultinomialExpansion(
            rows=self._rows,
            centre=at,
            gradient=alone.gradient(at[None])[0],
            hessian=alone.hessian(at[None])[0],
            level=float(self.value(at[None])[0]),
            prior=self._prior,
            cubic=self._rows.cubic(at) if order == 3 else None,
        )

    def row_bounds(self, factor: FloatArray, order: int = 2) -> FloatArray:
        """Return w_i^3 / (36 sqrt(3)), shape (n_rows,), or w_i^4 / 192 with an order of 3.

        w_i is the most by which two predictors of a row can part along L u, with L the
        ``factor (dim, dim)`` and |u| = 1: the largest |(L_j - L_k)^T x_i|, with L_k the rows of L
        that belong to class k, and L_0 = 0.

        Raises
        ------
        ShapeError
            If the factor is not a square matrix for these coefficients.
        ConfigurationError
            As :meth:`expand`.
        """
        _check_order(order)
        matrix = np.asarray(factor, dtype=np.float64)
        if matrix.shape != (self.dim, self.dim):
            raise ShapeError(
                f"factor must have shape ({self.dim}, {self.dim}), got {matrix.shape}; it is L, "
                "with L L^T a covariance of the coefficients"
            )
        d = self._rows.n_columns
        each = [np.zeros((d, self.dim)), *matrix.reshape(-1, d, self.dim)]
        squares = np.zeros(self.n_rows)
        for one, other in combinations(each, 2):
            np.maximum(squares, squared_norms(self._rows.design, one - other), out=squares)
        if order == 3:
            return self._rows.weigh(FOURTH_BOUND / 24.0 * squares**2)
        return self._rows.weigh(THIRD_BOUND / 6.0 * squares**1.5)

    def select(self, rows: IntArray) -> Self:
        """Return the sum of some rows' terms alone, copied, without the prior."""
        chosen = copy.copy(self)
        chosen._rows = self._rows.select(np.asarray(rows, dtype=np.int64))
        chosen._prior = NormalPrior.of(None, self.dim)
        return chosen

    def _blocks(self, b: FloatArray) -> Iterator[tuple[slice, Design, FloatArray]]:
        """Yield slices of the rows, these rows, and predictors, shape (rows, n, m)."""
        for rows, block in blocks(self._rows.design, len(b) * self._rows.n_predictors**2):
            yield rows, block, self._rows.predictors(block, b)


def _count_classes(response: FloatArray) -> int:
    found = np.unique(response)
    if len(found) < 2 or not np.array_equal(found, np.arange(len(found))):
        raise ConfigurationError(
            "response of a multinomial regression must be whole numbers 0, 1, ..., m, each of "
            f"which occurs, and at least two of them, got {found[:10].tolist()}; number the "
            "classes from 0"
        )
    return len(found)


def _check_order(order: int) -> None:
    if order not in (2, 3):
        raise ConfigurationError(
            f"multinomial terms are expanded to an order of 2 or 3, got {order!r}; give one of "
            "these"
        )
