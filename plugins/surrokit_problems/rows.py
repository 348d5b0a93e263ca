"""Targets that are sums over rows of terms of linear predictors, with a normal prior."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Self

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.arguments import check_positions, check_vectors
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.potentials import USUAL_ORDER, Ball, check_ball
from surrokit.predictive.rows import RowPredictor
from surrokit.shown.target import ShownTarget
from surrokit.targets.gaussian import GaussianPrior
from surrokit.types import Capabilities, FloatArray, IntArray
from surrokit_problems.design import (
    Design,
    back,
    blocks,
    check_design,
    column_from,
    gram,
    squared_norms,
    third_moments,
    weights_from,
)
from surrokit_problems.families import Family
from surrokit_problems.terms import (
    USUAL_PRIOR,
    Expansion,
    LinearExpansion,
    LinearTerms,
    NormalPrior,
    Rows,
)

OF_SUMS: Capabilities = frozenset(
    {can.GRADIENT, can.GRADIENT_ALONE, can.HESSIAN, can.HESSIAN_PRODUCT, can.ROWS}
)
"""What all sums over rows offer."""


@attrs.frozen(eq=False)
class _TermsPass:
    """A block of rows at n positions, with predictors e of shape (rows, n) or (rows, n, m)."""

    terms: Any
    rows: slice
    x: Design
    e: FloatArray

    def total(self) -> FloatArray:
        """Return the sum of the terms, shape (n,)."""
        return np.asarray(self.terms.value(self.e, self.rows).sum(axis=0))

    def slopes(self) -> FloatArray:
        """Return first derivatives, of the shape of e; the last call of a pass."""
        return np.asarray(self.terms.first(self.e, self.rows))

    def bends(self) -> FloatArray:
        """Return second derivatives, shape (rows, n) or (rows, n, m, m)."""
        return np.asarray(self.terms.second(self.e, self.rows))


@attrs.frozen(eq=False)
class TermsWork:
    """How sums are computed: by functions of terms, in blocks that stay in the processor's cache.

    Another class may stand in its place that has the same methods, and passes like its own.
    """

    design: Design
    terms: Any
    prior: NormalPrior

    def passes(self, b: FloatArray, reused: bool = True) -> Iterator[_TermsPass]:
        """Yield one pass for each block of rows, at coefficients b of shape (n, dim)."""
        columns = b.reshape(-1, self.design.shape[1]).T
        for rows, x in blocks(self.design, len(b) * self.terms.n_predictors**2, reused):
            yield _TermsPass(self.terms, rows, x, self.terms.predictors(x @ columns, rows))

    def start(self, b: FloatArray) -> FloatArray:
        """Return what is added to, shape (n,): the prior and the terms' constants."""
        return np.asarray(self.prior.value(b) + self.terms.constant)

    def start_gradient(self, b: FloatArray) -> FloatArray:
        """Return what is added to, shape (n, dim): the gradient of the prior."""
        return self.prior.gradient(b)

    def finish(self, total: FloatArray, b: FloatArray) -> FloatArray:
        """Return U, shape (n,), which is infinite where it is not a number."""
        del b
        return np.where(np.isnan(total), np.inf, total)

    def finish_gradient(self, gradient: FloatArray, b: FloatArray) -> FloatArray:
        """Return the gradient of U, shape (n, dim)."""
        del b
        return gradient


class RowSum(ShownTarget, ABC):
    """U(b) = a sum over rows of terms of linear predictors - log prior(b), in nats.

    ``terms`` are functions of m predictors e of each row, as those of
    :class:`~surrokit_problems.terms.LinearTerms`, with results of shape (rows, n, m) or
    (rows, n, m, m) where m is not 1.
    """

    def __init__(
        self, design: Design, terms: Any, prior: NormalPrior, work: Any = TermsWork
    ) -> None:
        self._design, self._terms, self._prior = design, terms, prior
        self._work: Any = work(design, terms, prior)

    @property
    def dim(self) -> int:
        """Number of coefficients."""
        return int(self._design.shape[1] * self._terms.n_predictors)

    @property
    def n_rows(self) -> int:
        """Number of terms."""
        return len(self._terms.response)

    @property
    def observed_data(self) -> dict[str, Any]:
        """The response of each row."""
        return {"row": self._terms.response}

    @property
    def unnormalized(self) -> tuple[str, ...]:
        """What may lack its normalising constant: terms of one's own, or a flat prior."""
        return (*self._terms.unnormalized, *self._prior.unnormalized)

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), at coefficients of shape (n, dim)."""
        b = check_positions(positions, self.dim)
        with np.errstate(over="ignore", invalid="ignore"):
            total = self._work.start(b)
            for each in self._work.passes(b, reused=False):
                total += each.total()
            return np.asarray(self._work.finish(total, b))

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U, shape (n,), and its gradient, shape (n, dim)."""
        b = check_positions(positions, self.dim)
        with np.errstate(over="ignore", invalid="ignore"):
            total, gradient = self._work.start(b), self._work.start_gradient(b)
            for each in self._work.passes(b):
                total += each.total()
                gradient += _to_coefficients(each, each.slopes(), b)
            return self._work.finish(total, b), self._work.finish_gradient(gradient, b)

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient of U alone, shape (n, dim)."""
        b = check_positions(positions, self.dim)
        with np.errstate(over="ignore", invalid="ignore"):
            gradient: FloatArray = self._work.start_gradient(b)
            for each in self._work.passes(b):
                gradient += _to_coefficients(each, each.slopes(), b)
            return np.asarray(self._work.finish_gradient(gradient, b))

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return second derivatives, shape (n, dim, dim)."""
        b = check_positions(positions, self.dim)
        hessian = np.empty((len(b), self.dim, self.dim))
        hessian[:] = np.diag(self._prior.precision)
        with np.errstate(over="ignore", invalid="ignore"):
            for each in self._work.passes(b):
                self._add_bends(each, hessian)
        return hessian

    def hessian_product(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return the Hessian times u, shape (n, dim), with u in ``vectors (n, dim)``."""
        b = check_positions(positions, self.dim)
        u = check_vectors(vectors, b)
        product = self._prior.precision * u
        columns, m = u.reshape(-1, self._design.shape[1]).T, self._terms.n_predictors
        with np.errstate(over="ignore", invalid="ignore"):
            for each in self._work.passes(b):
                along, bends = each.x @ columns, each.bends()
                if m == 1:
                    along *= bends
                else:
                    along = np.einsum("rnij,rnj->rni", bends, along.reshape(len(along), len(b), m))
                product += _to_coefficients(each, along, b)
        return product

    def column_moments(self, rows: IntArray | None = None) -> FloatArray:
        """Return the mean of x_i x_i^T, shape (dim, dim), with the prior's precision in its unit.

        It is over some ``rows (m,)`` or all. Times the number of rows and the curvature of a term
        it is about the Hessian.
        """
        some: Rows = slice(None) if rows is None else rows
        design = self._design if rows is None else self._design[rows]
        n_rows, m = design.shape[0], self._terms.n_predictors
        weights = np.ones(n_rows) if self._terms.weights is None else self._terms.weights[some]
        shares = weights if weights.any() else np.ones(n_rows)
        total = np.zeros((design.shape[1], design.shape[1]))
        for part, block in blocks(design, design.shape[1]):
            total += gram(block, shares[part])
        # about a term's second derivative: where coefficients are 0
        with np.errstate(all="ignore"):
            zero = self._terms.predictors(np.zeros((n_rows, m)), some)
            bends = np.abs(self._terms.second(zero, some)).reshape(-1, m, m)
            curvature = float(np.einsum("rii->ri", bends).mean())
        if not 0.0 < curvature < np.inf:
            curvature = 1.0
        precision = np.diag(self._prior.precision) / (self.n_rows * curvature)
        return np.asarray(np.kron(np.eye(m), total / shares.sum()) + precision)

    def expand(self, centre: FloatArray, order: int = USUAL_ORDER) -> Expansion:
        """Return the expansions of all terms at ``centre (dim,)``, to an order of 2 or 3.

        Raises
        ------
        ShapeError
            If the centre is not one position.
        ConfigurationError
            If the order is neither, or is 3 for terms without third derivatives.
        """
        self._check_order(order)
        at = check_shape("centre", centre, (self.dim,))
        level = float(self._prior.value(at[None])[0]) + self._terms.constant
        gradient, hessian = np.zeros((1, self.dim)), np.zeros((1, self.dim, self.dim))
        predictors = np.empty((self.n_rows, self._terms.n_predictors))
        for each in TermsWork(self._design, self._terms, self._prior).passes(at[None]):
            predictors[each.rows] = each.e.reshape(len(each.e), -1)
            level += float(each.total()[0])
            gradient += _to_coefficients(each, each.slopes(), at[None])
            self._add_bends(each, hessian)
        return self._expansion(
            order,
            predictors,
            centre=at,
            gradient=gradient[0],
            hessian=hessian[0],
            level=level,
            prior=self._prior,
            design=self._design,
            terms=self._terms,
        )

    def select(self, rows: IntArray) -> Self:
        """Return the sum of some rows' terms alone, copied, without the prior."""
        numbers = np.asarray(rows, dtype=np.int64)
        terms, prior = self._terms.select(numbers), NormalPrior.of(None, self.dim)
        chosen = object.__new__(type(self))
        RowSum.__init__(chosen, self._design[numbers], terms, prior, type(self._work))
        return chosen

    def _add_bends(self, one: Any, hessian: FloatArray) -> None:
        """Add X^T diag(bends) X to a Hessian, shape (n, dim, dim), for all pairs of predictors."""
        n, m, columns = len(hessian), self._terms.n_predictors, one.x.shape[1]
        bends = one.bends().reshape(one.x.shape[0], n, m, m)
        by_predictor = hessian.reshape(n, m, columns, m, columns)
        for k in range(n):
            for i in range(m):
                for j in range(i, m):
                    part = gram(one.x, bends[:, k, i, j])
                    by_predictor[k, i, :, j] += part
                    if i != j:
                        by_predictor[k, j, :, i] += part

    @abstractmethod
    def _check_order(self, order: int) -> None:
        """Raise unless terms can be expanded to an order."""

    @abstractmethod
    def _expansion(self, order: int, predictors: FloatArray, **found: Any) -> Expansion:
        """Return expansions, with predictors at the centre (n_rows, m)."""


class LinearRows(RowSum, ABC):
    """The terms w_i f(x_i . q + o_i) of a family, and a normal prior."""

    _measured: tuple[FloatArray, FloatArray] | None = None

    @property
    def predictor(self) -> RowPredictor | None:
        """What predicts responses of new rows; None of a family without predictions."""
        predicts, has_offset = self.family.predicts, self._terms.offset is not None
        if predicts is None:
            return None
        return RowPredictor.of(predicts, self.dim, has_offset=has_offset)

    @property
    def family(self) -> Family:
        """Terms and their derivatives."""
        found: Family = self._terms.family
        return found

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
        lengths = self._lengths(check_shape("factor", factor, (self.dim, self.dim)))
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

    def _expansion(self, order: int, predictors: FloatArray, **found: Any) -> LinearExpansion:
        e, third = predictors[:, 0], None
        if order != USUAL_ORDER:
            third = third_moments(self._design, self._terms.third(e))
        return LinearExpansion(predictors=e, third=third, **found)


class GeneralizedLinearModel(LinearRows):
    """U(b) = sum_i w_i f(x_i . b + o_i) - log prior(b) for coefficients b, in nats.

    The constants of the terms and of the prior are in it.

    Dense designs are worked through in blocks that stay in the processor's cache; sparse ones are
    never made dense. For logistic regression
    :class:`~surrokit_problems.logistic.LogisticRegression` is faster, and can do more.

    Parameters
    ----------
    design : array_like or SciPy sparse matrix of shape (n_rows, dim), or path
        Covariates, a column of ones included where an intercept is wanted; or the path of an .npy
        or .npz file that holds them. Not copied if in double precision and C order (or compressed
        rows): leave it as it is while the potential lives.
    response : array_like of shape (n_rows,), or path
        One for each row, of the kind that the family has.
    family
        The terms f, such as :data:`~surrokit_problems.families.LOGISTIC`, or one's own.
    prior
        Normal; a number is the standard deviation of all coefficients; None for a flat one.
    offset : array_like of shape (n_rows,), or path, optional
        o_i: known parts of the predictors.
    weights : array_like of shape (n_rows,), or path, optional
        w_i: how often each row counts.

    Raises
    ------
    ConfigurationError, ShapeError, TargetError
        If a number is not finite, a weight is negative, a response is none of the family's, shapes
        do not agree, or something cannot be read as numbers.
    """

    def __init__(
        self,
        design: Any,
        response: Any,
        family: Family,
        prior: GaussianPrior | float | None = USUAL_PRIOR,
        offset: Any = None,
        weights: Any = None,
    ) -> None:
        x, y = check_design(design, response)
        family.check_responses(y)
        terms = LinearTerms(
            family=family,
            response=y,
            offset=column_from("offset", offset, len(y)),
            weights=weights_from(weights, len(y)),
        )
        super().__init__(x, terms, NormalPrior.of(prior, x.shape[1]))

    @property
    def capabilities(self) -> Capabilities:
        """What it offers besides the value; ``convex`` if the family is, and there is a prior."""
        more = {can.CONVEX} if self.family.convex and self._prior.proper else set()
        more |= set() if self.family.third is None else {can.ROWS_THIRD_ORDER}
        more |= {can.ROWS_IN_BALLS} if self.family.local else set()
        return OF_SUMS | more


def check_shape(name: str, given: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """Return where terms are expanded, or a factor L of a covariance L L^T, as a copy.

    Raises
    ------
    ShapeError
        If it has another shape.
    """
    array = np.array(given, dtype=np.float64)
    if array.shape != shape:
        raise ShapeError(f"{name} must have shape {shape}, got {array.shape}")
    return array


def _to_coefficients(one: Any, slopes: FloatArray, b: FloatArray) -> FloatArray:
    """Return slopes in predictors, shape (rows, ...), as those in coefficients b (n, dim)."""
    return back(one.x, slopes.reshape(len(slopes), -1)).reshape(b.shape)
