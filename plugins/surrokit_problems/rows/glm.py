"""Bayesian regression with any family of terms of one linear predictor."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np

from surrokit import capabilities as can
from surrokit.arguments import check_positions, check_vectors
from surrokit.targets.gaussian import GaussianPrior
from surrokit.types import Capabilities, FloatArray
from surrokit_problems.data.design import Design, back, blocks, check_design, gram
from surrokit_problems.rows.families.family import Family
from surrokit_problems.rows.linear_rows import LinearRows
from surrokit_problems.rows.linear_terms import LinearTerms
from surrokit_problems.rows.normal_prior import USUAL_PRIOR, NormalPrior

_OFFERED: Capabilities = frozenset(
    {can.GRADIENT, can.GRADIENT_ALONE, can.HESSIAN, can.HESSIAN_PRODUCT, can.ROWS}
)


class GeneralizedLinearModel(LinearRows):
    """U(b) = sum_i w_i f(x_i . b + o_i) - log prior(b) for coefficients b, in nats.

    The constants of the terms and of the prior are in it.

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
        One for each row, of the kind that the family has.
    family
        The terms f, such as :data:`~surrokit_problems.rows.families.ready_made.PROBIT`, or one's
        own.
    prior
        Normal; None for a flat one.
    offset : array_like of shape (n_rows,), or path, optional
        o_i: known parts of the predictors.
    weights : array_like of shape (n_rows,), or path, optional
        w_i: how often each row counts.

    Raises
    ------
    ConfigurationError
        If a number is not finite, a weight is negative, or a response is none of the family's.
    ShapeError
        If the design is not a matrix with a row for each response, or the prior, offsets or weights
        do not fit it.
    TargetError
        If a file cannot be read, or something is not numbers.
    """

    def __init__(
        self,
        design: Any,
        response: Any,
        family: Family,
        prior: GaussianPrior | None = USUAL_PRIOR,
        offset: Any = None,
        weights: Any = None,
    ) -> None:
        x, y = check_design(design, response)
        terms = LinearTerms.checked(family, y, offset, weights)
        super().__init__(x, terms, NormalPrior.of(prior, x.shape[1]))

    @property
    def capabilities(self) -> Capabilities:
        """What it offers besides the value; ``convex`` if the family is, and there is a prior."""
        more = {can.CONVEX} if self.family.convex and self._prior.proper else set()
        more |= set() if self.family.third is None else {can.ROWS_THIRD_ORDER}
        more |= {can.ROWS_IN_BALLS} if self.family.local else set()
        return _OFFERED | more

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), at coefficients of shape (n, dim)."""
        b = check_positions(positions, self.dim)
        with np.errstate(over="ignore", invalid="ignore"):
            total = self._prior.value(b) + self._terms.constant
            for rows, block in blocks(self._design, len(b), reused=False):
                e = self._terms.predictors(block @ b.T, rows)
                total += self._terms.value(e, rows).sum(axis=0)
        return np.where(np.isnan(total), np.inf, total)

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U, shape (n,), and its gradient, shape (n, dim)."""
        b = check_positions(positions, self.dim)
        with np.errstate(over="ignore", invalid="ignore"):
            total = self._prior.value(b) + self._terms.constant
            gradient = self._prior.gradient(b)
            for rows, block in blocks(self._design, len(b)):
                e = self._terms.predictors(block @ b.T, rows)
                total += self._terms.value(e, rows).sum(axis=0)
                gradient += back(block, self._terms.first(e, rows))
        return np.where(np.isnan(total), np.inf, total), gradient

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient of U alone, shape (n, dim)."""
        b = check_positions(positions, self.dim)
        gradient = self._prior.gradient(b)
        with np.errstate(over="ignore", invalid="ignore"):
            for rows, block in blocks(self._design, len(b)):
                e = self._terms.predictors(block @ b.T, rows)
                gradient += back(block, self._terms.first(e, rows))
        return gradient

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return X^T diag(f'') X + I / variance, shape (n, dim, dim)."""
        b = check_positions(positions, self.dim)
        hessian = np.empty((len(b), self.dim, self.dim))
        hessian[:] = np.diag(self._prior.precision)
        with np.errstate(over="ignore", invalid="ignore"):
            for rows, block in blocks(self._design, len(b)):
                bends = self._terms.second(self._terms.predictors(block @ b.T, rows), rows)
                for matrix, weights in zip(hessian, bends.T, strict=True):
                    matrix += gram(block, weights)
        return hessian

    def hessian_product(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return the Hessian times u, shape (n, dim), with u in ``vectors (n, dim)``."""
        b = check_positions(positions, self.dim)
        u = check_vectors(vectors, b)
        product = self._prior.precision * u
        with np.errstate(over="ignore", invalid="ignore"):
            for rows, block in blocks(self._design, 2 * len(b)):
                bends = self._terms.second(self._terms.predictors(block @ b.T, rows), rows)
                product += back(block, bends * (block @ u.T))
        return product

    def _of(self, design: Design, terms: LinearTerms) -> Self:
        chosen = copy.copy(self)
        LinearRows.__init__(chosen, design, terms, NormalPrior.of(None, self.dim))
        return chosen
