"""Bayesian multinomial logistic regression."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, combinations_with_replacement, permutations
from typing import Any, ClassVar

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.errors import ConfigurationError
from surrokit.potentials import USUAL_ORDER
from surrokit.predictive.families import MultinomialClasses
from surrokit.predictive.rows import RowPredictor
from surrokit.targets.gaussian import GaussianPrior
from surrokit.types import Capabilities, FloatArray, IntArray
from surrokit_problems.design import (
    Design,
    along,
    blocks,
    check_design,
    squared_norms,
    third_moments,
    weights_from,
)
from surrokit_problems.families import exponential_remainder
from surrokit_problems.logistic_terms import FOURTH_BOUND, THIRD_BOUND
from surrokit_problems.rows import OF_SUMS, RowSum, check_factor
from surrokit_problems.terms import USUAL_PRIOR, Expansion, NormalPrior, Rows, beside

_SHORT = 0.5  # largest step of a predictor for which nothing is written as a difference


class MultinomialLogit(RowSum):
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
        Normal; a number is the standard deviation of all coefficients; None for a flat one.
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
        prior: GaussianPrior | float | None = USUAL_PRIOR,
        weights: Any = None,
    ) -> None:
        x, y = check_design(design, response)
        terms = _ClassTerms(
            response=y.astype(np.int64),
            weights=weights_from(weights, len(y)),
            n_predictors=_count_classes(y) - 1,
        )
        super().__init__(x, terms, NormalPrior.of(prior, terms.n_predictors * x.shape[1]))

    @property
    def predictor(self) -> RowPredictor:
        """What predicts classes of new rows."""
        return RowPredictor.of(MultinomialClasses(), self._design.shape[1], has_offset=False)

    @property
    def capabilities(self) -> Capabilities:
        """What it offers besides the value; ``convex`` with a prior."""
        more = {can.ROWS_THIRD_ORDER, can.CONVEX} if self._prior.proper else {can.ROWS_THIRD_ORDER}
        return OF_SUMS | more

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
        self._check_order(order)
        matrix, d = check_factor(factor, self.dim), self._design.shape[1]
        each = [np.zeros((d, self.dim)), *matrix.reshape(-1, d, self.dim)]
        squares = np.zeros(self.n_rows)
        for one, other in combinations(each, 2):
            np.maximum(squares, squared_norms(self._design, one - other), out=squares)
        if order == 3:
            return np.asarray(self._terms.weigh(FOURTH_BOUND / 24.0 * squares**2))
        return np.asarray(self._terms.weigh(THIRD_BOUND / 6.0 * squares**1.5))

    def _check_order(self, order: int) -> None:
        if order not in (2, 3):
            raise ConfigurationError(
                f"multinomial terms are expanded to an order of 2 or 3, got {order!r}; give one of "
                "these"
            )

    def _expansion(self, order: int, predictors: FloatArray, **found: Any) -> _MultinomialExpansion:
        third = None if order == USUAL_ORDER else self._third(_chances(predictors))
        return _MultinomialExpansion(predictors=predictors, third=third, **found)

    def _third(self, p: FloatArray) -> FloatArray:
        """Return the sum of third derivatives in b, (dim, dim, dim), for p of shape (n_rows, m)."""
        m, d = self._terms.n_predictors, self._design.shape[1]
        total = np.zeros((m, d, m, d, m, d))
        for classes in combinations_with_replacement(range(m), 3):
            part = third_moments(self._design, self._terms.weigh(_third_moments(p, *classes)))
            for i, j, k in set(permutations(classes)):
                total[i, :, j, :, k] += part
        return total.reshape(self.dim, self.dim, self.dim)


@attrs.frozen(kw_only=True, eq=False)
class _ClassTerms:
    """The terms log(1 + sum_k exp(e_k)) - e_y of rows, with responses y (n_rows,).

    Predictors have shape (rows, n, m): for each row, position and class but 0.
    """

    response: IntArray
    weights: FloatArray | None
    n_predictors: int

    constant: ClassVar[float] = 0.0
    unnormalized: ClassVar[tuple[str, ...]] = ()

    def predictors(self, products: FloatArray, rows: Rows) -> FloatArray:
        del rows
        return products.reshape(len(products), -1, self.n_predictors)

    def select(self, rows: IntArray) -> _ClassTerms:
        weights = None if self.weights is None else self.weights[rows]
        return attrs.evolve(self, response=self.response[rows], weights=weights)

    def value(self, e: FloatArray, rows: Rows) -> FloatArray:
        chosen = np.einsum("rnm,rm->rn", e, self._shown(rows))
        return self.weigh(_log_sum(e) - chosen, rows)

    def first(self, e: FloatArray, rows: Rows) -> FloatArray:
        return self.weigh(_chances(e) - self._shown(rows)[:, None, :], rows)

    def second(self, e: FloatArray, rows: Rows) -> FloatArray:
        p = _chances(e)
        matrices = -p[..., :, None] * p[..., None, :]
        each = np.arange(self.n_predictors)
        matrices[..., each, each] += p
        return self.weigh(matrices, rows)

    def weigh(self, found: FloatArray, rows: Rows = slice(None)) -> FloatArray:
        """Return numbers of rows, shape (rows, ...), times their weights."""
        if self.weights is None:
            return found
        return np.asarray(found * beside(self.weights[rows], found))

    def _shown(self, rows: Rows) -> FloatArray:
        """Return which class each row has, shape (rows, m), as zeros and ones."""
        classes = np.arange(1, self.n_predictors + 1)
        return np.asarray(self.response[rows][:, None] == classes, dtype=np.float64)


@attrs.frozen(kw_only=True, eq=False)
class _MultinomialExpansion(Expansion):
    """Expansions of multinomial terms, with predictors (n_rows, m) at the centre."""

    terms: _ClassTerms
    design: Design
    predictors: FloatArray

    def _of_pairs(
        self, ends: Sequence[FloatArray], rows: IntArray, owners: IntArray
    ) -> Sequence[FloatArray]:
        m, d, n_sets = self.terms.n_predictors, self.design.shape[1], len(ends)
        steps = (np.array(ends) - self.centre).reshape(n_sets, -1, m, d)
        by_class = np.moveaxis(steps, 2, 1).reshape(n_sets * m, -1, d)
        s = along(self.design, rows, owners, by_class).reshape(n_sets, m, -1)
        left = self._remaining(rows, np.ascontiguousarray(np.moveaxis(s, 2, 0)))
        return list(left.T)

    def _of_all(self, positions: FloatArray) -> Iterator[FloatArray]:
        columns = (positions - self.centre).reshape(-1, self.design.shape[1]).T
        for rows, x in blocks(self.design, len(positions) * self.terms.n_predictors):
            yield self._remaining(rows, self.terms.predictors(x @ columns, rows)).T

    def _remaining(self, rows: Rows, s: FloatArray) -> FloatArray:
        """Return what expansions leave out, shape (rows, n), for changes s (rows, n, m) of e.

        With c_k the change of predictor k less the mean of all changes under the probabilities p
        at the centre, and v = sum p c^2, that is log(sum p exp(c)) - v / 2. For short steps it is
        made of R = sum p (exp(c) - 1 - c - c^2 / 2), in which nothing cancels: with x = v / 2 + R
        it is R + log(1 + x) - x.
        """
        e = self.predictors[rows][:, None]
        p = _chances(e)
        mean = (p * s).sum(axis=2)
        rest = 1.0 / (1.0 + np.exp(np.minimum(e, 700.0)).sum(axis=2))  # of class 0
        c = s - mean[..., None]
        half = 0.5 * ((p * c * c).sum(axis=2) + rest * mean * mean)
        largest = np.maximum(np.abs(c).max(axis=2), np.abs(mean))
        near = np.minimum(largest.max(initial=0.0), _SHORT)
        shorter = np.where((largest <= _SHORT)[..., None], c, 0.0)
        residue = (p * exponential_remainder(shorter, 2, near)).sum(axis=2)
        about = np.where(largest <= _SHORT, -mean, 0.0)
        residue += rest * exponential_remainder(about, 2, near)
        x = half + residue
        found = residue + (np.log1p(x) - x)
        far = ~(largest <= _SHORT)
        if far.any():
            levels = np.broadcast_to(e, s.shape)[far]
            found[far] = _log_sum(levels + s[far]) - _log_sum(levels) - mean[far] - half[far]
        if self.third is not None:
            found -= ((p * c**3).sum(axis=2) - rest * mean**3) / 6.0
        return self.terms.weigh(found, rows)


def _chances(e: FloatArray) -> FloatArray:
    """Return the probabilities of all classes but 0, of the shape of the predictors (..., m)."""
    return np.asarray(np.exp(e - _log_sum(e)[..., None]))


def _log_sum(e: FloatArray) -> FloatArray:
    """Return log(1 + sum_k exp(e_k)) over the last axis."""
    top = np.maximum(e.max(axis=-1), 0.0)
    return np.asarray(top + np.log(np.exp(-top) + np.exp(e - top[..., None]).sum(axis=-1)))


def _third_moments(p: FloatArray, i: int, j: int, k: int) -> FloatArray:
    """Return third central moments of what shows classes i, j and k, shape (rows,)."""
    a, b, c = p[:, i], p[:, j], p[:, k]
    found = 2.0 * a * b * c
    for (one, other), rest in (((i, j), c), ((i, k), b), ((j, k), a)):
        if one == other:
            found -= p[:, one] * rest
    return np.asarray(found + a if i == j == k else found)


def _count_classes(response: FloatArray) -> int:
    found = np.unique(response)
    if len(found) < 2 or not np.array_equal(found, np.arange(len(found))):
        raise ConfigurationError(
            "response of a multinomial regression must be whole numbers 0, 1, ..., m, each of "
            f"which occurs, and at least two of them, got {found[:10].tolist()}; number the "
            "classes from 0"
        )
    return len(found)
