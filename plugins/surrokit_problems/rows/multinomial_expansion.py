"""Expansions of the terms of multinomial logistic regression."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement, permutations

import attrs
import numpy as np
from scipy import sparse

from surrokit.types import FloatArray, IntArray
from surrokit_problems.data.design import Design, along, blocks
from surrokit_problems.rows.families.exponential_terms import exponential_remainder
from surrokit_problems.rows.linear_terms import Rows
from surrokit_problems.rows.normal_prior import NormalPrior

_SHORT = 0.5  # largest step of a predictor for which nothing is written as a difference


@attrs.frozen(kw_only=True, eq=False)
class ClassRows:
    """Rows of data, and their terms log(1 + sum_k exp(e_k)) - e_y.

    Predictors have shape (rows, n, m): for each row, position and class but 0.

    Parameters
    ----------
    design : array or sparse array of shape (n_rows, d)
        Covariates.
    response : ndarray of int, shape (n_rows,)
        y.
    weights : ndarray of shape (n_rows,), optional
        How often each row counts.
    n_predictors
        m.
    """

    design: Design
    response: IntArray
    weights: FloatArray | None
    n_predictors: int

    @property
    def n_columns(self) -> int:
        """Columns of the design, d."""
        return int(self.design.shape[1])

    @property
    def dim(self) -> int:
        """Number of coefficients, m d."""
        return self.n_predictors * self.n_columns

    def select(self, rows: IntArray) -> ClassRows:
        """Return some rows."""
        return attrs.evolve(
            self,
            design=self.design[rows],
            response=self.response[rows],
            weights=None if self.weights is None else self.weights[rows],
        )

    def predictors(self, block: Design, positions: FloatArray) -> FloatArray:
        """Return e, shape (rows, n, m), for rows of the design and positions (n, dim)."""
        coefficients = positions.reshape(-1, self.n_columns)
        products = np.asarray(block @ coefficients.T)
        return products.reshape(len(products), len(positions), self.n_predictors)

    def terms(self, e: FloatArray, rows: Rows) -> FloatArray:
        """Return the terms, shape (rows, n)."""
        chosen = np.einsum("rnm,rm->rn", e, self._shown(rows))
        return self.weigh(_log_sum(e) - chosen, rows)

    def slopes(self, e: FloatArray, rows: Rows) -> FloatArray:
        """Return derivatives in the predictors, shape (rows, n, m)."""
        return self.weigh(chances(e) - self._shown(rows)[:, None, :], rows)

    def bends(self, e: FloatArray, rows: Rows) -> FloatArray:
        """Return second derivatives in the predictors, shape (rows, n, m, m)."""
        p = chances(e)
        matrices = -p[..., :, None] * p[..., None, :]
        each = np.arange(self.n_predictors)
        matrices[..., each, each] += p
        return self.weigh(matrices, rows)

    def cubic(self, centre: FloatArray) -> FloatArray:
        """Return a sixth of the sum of third derivatives in b, shape (dim, dim, dim).

        In rows times dim^3 / 6 operations, by matrix products.
        """
        m, d = self.n_predictors, self.n_columns
        first, second = np.triu_indices(d)
        total = np.zeros((m, d, m, d, m, d))
        for rows, block in blocks(self.design, len(first)):
            p = chances(self.predictors(block, centre[None]))[:, 0]
            x = block.toarray() if sparse.issparse(block) else block
            pairs = x[:, first] * x[:, second]
            for classes in combinations_with_replacement(range(m), 3):
                bends = self.weigh(_third_moments(p, *classes), rows)
                part = np.empty((d, d, d))
                part[:, first, second] = part[:, second, first] = (x * bends[:, None]).T @ pairs
                for i, j, k in set(permutations(classes)):
                    total[i, :, j, :, k] += part
        return total.reshape(self.dim, self.dim, self.dim) / 6.0

    def weigh(self, found: FloatArray, rows: Rows = slice(None)) -> FloatArray:
        """Return numbers of rows, shape (rows, ...), times their weights."""
        if self.weights is None:
            return found
        weights = self.weights[rows]
        return np.asarray(found * weights.reshape(-1, *[1] * (found.ndim - 1)))

    def _shown(self, rows: Rows) -> FloatArray:
        """Return which class each row has, shape (rows, m), as zeros and ones."""
        classes = np.arange(1, self.n_predictors + 1)
        return np.asarray(self.response[rows][:, None] == classes, dtype=np.float64)


@attrs.frozen(kw_only=True, eq=False)
class MultinomialExpansion:
    """Expansions of all terms at one point, with a normal prior kept as it is.

    Parameters
    ----------
    rows
        The data.
    centre, gradient : ndarray of shape (dim,)
        Where the terms were expanded, and the sum of their gradients there.
    hessian : ndarray of shape (dim, dim)
        The sum of their Hessians there.
    level
        U at the centre, prior included, in nats.
    prior
        Of the coefficients.
    cubic : ndarray of shape (dim, dim, dim), optional
        A sixth of the sum of third derivatives; if terms are expanded to third order.
    """

    rows: ClassRows
    centre: FloatArray
    gradient: FloatArray
    hessian: FloatArray
    level: float
    prior: NormalPrior
    cubic: FloatArray | None = None

    @property
    def third(self) -> FloatArray | None:
        """Sum of third derivatives at the centre, (dim, dim, dim); None if to second order."""
        return None if self.cubic is None else 6.0 * self.cubic

    def value(self, positions: FloatArray) -> FloatArray:
        """Return V, shape (n,), at positions of shape (n, dim)."""
        h = positions - self.centre
        slope = self.gradient + self.prior.gradient(self.centre)
        bend = 0.5 * (self.hessian + np.diag(self.prior.precision))
        slopes = slope + h @ bend
        if self.cubic is not None:
            dim = len(self.centre)
            matrices = (h @ self.cubic.reshape(dim, -1)).reshape(-1, dim, dim)
            slopes += np.einsum("nij,nj->ni", matrices, h)
        return np.asarray(np.einsum("ni,ni->n", slopes, h) + self.level)

    def remainders(self, positions: FloatArray, rows: IntArray, owners: IntArray) -> FloatArray:
        """Return D_i(q), shape (m,), for pairs of a row and a position."""
        return np.asarray(self._of_pairs([positions], rows, owners)[0])

    def changes(
        self, before: FloatArray, after: FloatArray, rows: IntArray, owners: IntArray
    ) -> FloatArray:
        """Return D_i(q') - D_i(q), shape (m,), for pairs of a row and a move."""
        here, there = self._of_pairs([before, after], rows, owners)
        return np.asarray(there - here)

    def increases(self, before: FloatArray, after: FloatArray) -> FloatArray:
        """Return sum_i max(0, D_i(q') - D_i(q)) over all rows, shape (n,)."""
        total = np.zeros(len(before))
        ends = np.concatenate([before, after]) - self.centre
        for rows, block in blocks(self.rows.design, len(ends) * self.rows.n_predictors):
            e = self.rows.predictors(block, self.centre[None])
            left = self._remaining(e, self.rows.predictors(block, ends))
            here, there = np.split(self.rows.weigh(left, rows), 2, axis=1)
            total += np.maximum(there - here, 0.0).sum(axis=0)
        return total

    def _of_pairs(self, ends: Sequence[FloatArray], rows: IntArray, owners: IntArray) -> FloatArray:
        """Return remainders, shape (k, pairs), at k sets of positions."""
        m, d, n_sets = self.rows.n_predictors, self.rows.n_columns, len(ends)
        steps = (np.array(ends) - self.centre).reshape(n_sets, -1, m, d)
        by_class = np.moveaxis(steps, 2, 1).reshape(n_sets * m, -1, d)
        s = along(self.rows.design, rows, owners, by_class).reshape(n_sets, m, -1)
        chosen = self.rows.design[rows]
        e = self.rows.predictors(chosen, self.centre[None])
        left = self._remaining(e, np.ascontiguousarray(np.moveaxis(s, 2, 0)))
        return self.rows.weigh(left, rows).T

    def _remaining(self, e: FloatArray, s: FloatArray) -> FloatArray:
        """Return what expansions leave out, shape (rows, n).

        Parameters
        ----------
        e : ndarray of shape (rows, 1, m)
            Predictors at the centre.
        s : ndarray of shape (rows, n, m)
            Their changes.

        Notes
        -----
        With c_k the change of predictor k less the mean of all changes under the probabilities p
        at the centre, and v = sum p c^2, that is log(sum p exp(c)) - v / 2. For short steps it is
        made of R = sum p (exp(c) - 1 - c - c^2 / 2), in which nothing cancels: with x = v / 2 + R
        it is R + log(1 + x) - x.
        """
        p = chances(e)
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
        if self.cubic is not None:
            found -= ((p * c**3).sum(axis=2) - rest * mean**3) / 6.0
        return np.asarray(found)


def chances(e: FloatArray) -> FloatArray:
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
