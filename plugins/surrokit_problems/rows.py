"""Sums over rows of terms of linear predictors, with a normal prior, and expansions of the terms.

U(b) = sum_i w_i f(x_i . b + o_i) - log prior(b), in nats, with rows x_i of the design. A family
may have m predictors e_k = x_i . b_k a row; b is then b_1, ..., b_m, one after the other, arrays of
predictors are (rows, n, m) for n positions, and those of second derivatives (rows, n, m, m). With
one predictor both are (rows, n).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, Self, TypeAlias

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit import gaussian_prior
from surrokit.arguments import check_matrices, check_positions, check_vectors
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.potentials import USUAL_ORDER, Ball, check_ball
from surrokit.predictive.rows import RowPredictor
from surrokit.targets.gaussian import GaussianPrior
from surrokit.types import Capabilities, FloatArray, IntArray
from surrokit_problems.design import (
    Design,
    check_design,
    column_from,
    weights_from,
    whitening,
)
from surrokit_problems.families import Family

Rows: TypeAlias = slice | IntArray
"""Which rows."""

USUAL_PRIOR = gaussian_prior(0.0, 10.0)
"""Of every coefficient, as in section 5.1 of Zhang, Shahbaba and Zhao (2017)."""


def check_shape(name: str, given: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """Return a copy of what must have a shape; a ShapeError says which."""
    array = np.array(given, dtype=np.float64)
    if array.shape != shape:
        raise ShapeError(f"{name} must have shape {shape}, got {array.shape}")
    return array


def normal_prior(prior: GaussianPrior | float | None, dim: int) -> GaussianPrior:
    """Return the prior of so many coefficients; a number is an sd, None a flat prior.

    Raises
    ------
    ConfigurationError, ShapeError
        If it is no normal prior, or one of another number of coefficients.
    """
    if prior is None or isinstance(prior, int | float):
        prior = gaussian_prior(0.0, np.inf if prior is None else prior)
    if not isinstance(prior, GaussianPrior):
        raise ConfigurationError(
            "prior must be that of surrokit.gaussian_prior, or None for a flat one, got "
            f"{prior!r}; give prior=surrokit.gaussian_prior(mean, sd)"
        )
    prior.value_and_gradient(np.zeros((1, dim)))  # which looks at shapes
    return gaussian_prior(np.broadcast_to(prior.mean, dim), np.broadcast_to(prior.sd, dim))


def precision_of(prior: GaussianPrior) -> FloatArray:
    """Return the prior's precision of each coefficient, shape (dim,)."""
    return np.asarray(prior.sd**-2.0)


@attrs.frozen(kw_only=True, eq=False, slots=False)
class Terms:
    """The terms w_i f(e_i) of rows, as functions of their predictors.

    ``family`` is a :class:`~surrokit_problems.families.Family`, or has its members for several
    predictors. ``offset`` and ``weights``, o_i and w_i, are None for zeros and ones.
    """

    family: Any
    response: FloatArray
    offset: FloatArray | None = None
    weights: FloatArray | None = None

    @cached_property
    def constant(self) -> float:
        """What minus the log likelihood has beside the terms, in nats."""
        if self.family.constant is None:
            return 0.0
        each = self.family.constant(self.response)
        return float(np.sum(each if self.weights is None else each * self.weights))

    def predictors(self, products: FloatArray, rows: Rows) -> FloatArray:
        """Return e for products x_i . b, shape (rows, n m), which it may overwrite."""
        if self.offset is not None:
            products += beside(self.offset[rows], products)
        if not self.family.several:
            return products
        return products.reshape(len(products), -1, self.family.n_predictors)

    def select(self, rows: IntArray) -> Terms:
        """Return the terms of some rows."""
        offset, weights = (
            None if column is None else column[rows] for column in (self.offset, self.weights)
        )
        return attrs.evolve(self, response=self.response[rows], offset=offset, weights=weights)

    def at(self, which: str, e: FloatArray, rows: Rows) -> FloatArray:
        """Return a ``value``, ``first``, ``second`` or ``third`` derivative of terms in e."""
        found = getattr(self.family, which)(e, beside(self.response[rows], e))
        return weighed(found, self.weights, rows)


def weighed(found: FloatArray, weights: FloatArray | None, rows: Rows = slice(None)) -> FloatArray:
    """Return numbers of rows, shape (rows, ...), times the weights of these."""
    return found if weights is None else np.asarray(found * beside(weights[rows], found))


def beside(column: FloatArray, results: FloatArray) -> FloatArray:
    """Return numbers of rows, shape (rows,), in a shape that goes with results (rows, ...)."""
    return column.reshape(-1, *[1] * (results.ndim - 1))


# --- expansions ---


@attrs.frozen(kw_only=True, eq=False, slots=False)
class Expansion(ABC):
    """Expansions that keep to :class:`surrokit.potentials.RowExpansion`.

    ``gradient (dim,)``, ``hessian (dim, dim)`` and ``third (dim, dim, dim)`` are sums of the terms'
    derivatives at the ``centre (dim,)``, the last if they are expanded to third order; ``level`` is
    U there, prior included, in nats.
    """

    centre: FloatArray
    gradient: FloatArray
    hessian: FloatArray
    level: float
    prior: GaussianPrior
    third: FloatArray | None = None

    @cached_property
    def _cubic(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Pairs of two indices, and a sixth of ``third`` by pairs (unlike ones doubled)."""
        assert self.third is not None
        first, second = np.triu_indices(len(self.centre))
        twice = np.where(first == second, 1.0, 2.0)[:, None]
        return first, second, self.third[first, second] * twice / 6.0

    def value(self, positions: FloatArray) -> FloatArray:
        """Return V, shape (n,), at positions of shape (n, dim)."""
        h = positions - self.centre
        # a normal prior is a quadratic as well
        slopes = h @ (0.5 * (self.hessian + np.diag(precision_of(self.prior))))
        slopes += self.gradient + self.prior.value_and_gradient(self.centre[None])[1]
        if self.third is not None:
            first, second, cubic = self._cubic
            columns = np.ascontiguousarray(h.T)  # of which many are picked
            slopes += (columns[first] * columns[second]).T @ cubic
        return np.asarray(np.einsum("ij,ij->i", slopes, h) + self.level)

    @abstractmethod
    def remainders(self, positions: FloatArray, rows: IntArray, owners: IntArray) -> FloatArray:
        """Return D_i(q), shape (m,), for pairs of a row and a position."""


@attrs.frozen(kw_only=True, eq=False, slots=False)
class _LinearExpansion(Expansion):
    """Expansions of terms of linear predictors: at the centre (n_rows,) or (n_rows, m)."""

    terms: Terms
    design: Design
    predictors: FloatArray

    def remainders(self, positions: FloatArray, rows: IntArray, owners: IntArray) -> FloatArray:
        steps, family, terms = positions - self.centre, self.terms.family, self.terms
        n, m = len(steps), family.n_predictors
        s = self.design.along(rows, owners, np.moveaxis(steps.reshape(n, m, -1), 1, 0))
        moved = np.ascontiguousarray(s.T)[None] if family.several else s
        order = USUAL_ORDER if self.third is None else 3
        found = family.remaining(self.predictors[rows], terms.response[rows], moved, order)[0]
        return weighed(found, terms.weights, rows)


# --- targets ---


@attrs.frozen(eq=False)
class _Pass:
    """A block of rows x at n positions, with its predictors e."""

    terms: Terms
    rows: slice
    x: Design
    e: FloatArray

    def total(self) -> FloatArray:
        """Return the sum of the terms, shape (n,)."""
        return np.asarray(self.terms.at("value", self.e, self.rows).sum(axis=0))

    def slopes(self) -> FloatArray:
        """Return first derivatives, of the shape of e; the last call of a pass."""
        return self.terms.at("first", self.e, self.rows)

    def bends(self) -> FloatArray:
        """Return second derivatives, shape (rows, n) or (rows, n, m, m)."""
        return self.terms.at("second", self.e, self.rows)


@attrs.frozen(eq=False)
class _LogisticPass(_Pass):
    """The same of logistic terms without weights, by ``odds`` 1 + exp(s e) with s = 1 - 2 y."""

    odds: FloatArray

    @classmethod
    def of(cls, terms: Terms, rows: slice, x: Design, e: FloatArray) -> _LogisticPass:
        odds = (1.0 - 2.0 * terms.response[rows, None]) * e
        with np.errstate(over="ignore", invalid="ignore"):
            np.exp(odds, out=odds)
        odds += 1.0
        return cls(terms, rows, x, e, odds)

    def total(self) -> FloatArray:
        """Return the sum of logarithms, shape (n,), by logarithms of products of eight.

        A logarithm costs four multiplications. Factors are at least 1, so the absolute error stays
        near 1e-16 for each of them. Where a product overflows, terms are summed as they are.
        """
        n_products, n = len(self.odds) // 8, self.odds.shape[1]
        grouped = self.odds[: 8 * n_products].reshape(8, n_products, n)
        logs = np.log(np.multiply.reduce(grouped, axis=0)).sum(axis=0)
        logs += np.log(self.odds[8 * n_products :]).sum(axis=0)
        return np.asarray(logs) if np.isfinite(logs).all() else _Pass.total(self)

    def slopes(self) -> FloatArray:
        """Return s (1 - 1 / odds), in place of the odds."""
        p = np.divide(1.0, self.odds, out=self.odds)
        np.subtract(1.0, p, out=p)
        p *= 1.0 - 2.0 * self.terms.response[self.rows, None]
        return p

    def bends(self) -> FloatArray:
        """Return p (1 - p)."""
        p = 1.0 / self.odds
        return np.asarray(p - p * p)


class GeneralizedLinearModel:
    """U(b) = sum_i w_i f(x_i . b + o_i) - log prior(b) for coefficients b, in nats.

    The constants of the terms and of the prior are in it. Parameters are those of
    :func:`~surrokit_problems.regression.regression`, with a family that is made already. Dense
    designs are worked through in blocks that stay in the processor's cache; sparse ones are never
    made dense. A design in double precision and C order (or compressed rows) is not copied: leave
    it as it is while the potential lives.

    Raises
    ------
    ConfigurationError, ShapeError, TargetError
        If a number is not finite, a weight is negative, a response is none of the family's, shapes
        do not agree, or something cannot be read as numbers; the methods, if positions are not
        rows of ``dim`` numbers.
    """

    def __init__(
        self,
        design: Any,
        response: Any,
        family: Family | Any,
        prior: GaussianPrior | float | None = USUAL_PRIOR,
        offset: Any = None,
        weights: Any = None,
        columns: FloatArray | None = None,
    ) -> None:
        x, y = check_design(design, response)
        self._design = Design(x, columns)
        family.check_responses(y)
        self._terms = Terms(
            family=family,
            response=y,
            offset=column_from("offset", offset, len(y)),
            weights=weights_from(weights, len(y)),
        )
        self._prior = normal_prior(prior, self.dim)
        self._expanded: _LinearExpansion | None = None  # the last, and the last lengths of rows
        self._measured: tuple[FloatArray, FloatArray] | None = None

    @property
    def dim(self) -> int:
        """Number of coefficients."""
        return int(self._design.dim * self.family.n_predictors)

    @property
    def n_rows(self) -> int:
        """Number of terms."""
        return len(self._terms.response)

    @property
    def family(self) -> Any:
        """Terms and their derivatives."""
        return self._terms.family

    @property
    def observed_data(self) -> dict[str, Any]:
        """The response of each row."""
        return {"row": self._terms.response}

    @property
    def unnormalized(self) -> tuple[str, ...]:
        """What may lack its normalising constant: terms of one's own, or a flat prior."""
        own = () if self.family.constant is not None else (f"terms of {self.family.name!r}",)
        return (*own, *self._prior.unnormalized)

    @property
    def predictor(self) -> RowPredictor | None:
        """What predicts responses of new rows; None of a family without predictions."""
        if self.family.predicts is None or self._design.columns is not None:
            return None
        has_offset = self._terms.offset is not None
        return RowPredictor.of(self.family.predicts, self._design.dim, has_offset=has_offset)

    @property
    def capabilities(self) -> Capabilities:
        """What it offers besides the value; ``convex`` if the family is, and there is a prior."""
        offered = {can.GRADIENT, can.GRADIENT_ALONE, can.HESSIAN, can.HESSIAN_PRODUCT, can.ROWS}
        offered |= {can.CONVEX} if self.family.convex and not self._prior.unnormalized else set()
        if self.family.third is not None:
            offered |= {can.ROWS_THIRD_ORDER}
            if not self.family.several:
                offered |= can.HESSIANS | (can.METRICS if self.family.canonical else set())
        return frozenset(offered | ({can.ROWS_IN_BALLS} if self.family.local else set()))

    def _passes(self, b: FloatArray, reused: bool = True) -> Iterator[_Pass]:
        """Yield one pass for each block of rows, at coefficients b of shape (n, dim)."""
        columns, terms = b.reshape(-1, self._design.dim).T, self._terms
        logistic = self.family.name == "logistic" and terms.weights is None
        make = _LogisticPass.of if logistic else _Pass
        for rows, x in self._design.blocks(len(b) * self.family.n_predictors**2, reused):
            yield make(terms, rows, x, terms.predictors(x.dot(columns), rows))

    def _total(
        self, start: FloatArray, b: FloatArray, part: Callable[[_Pass], FloatArray], **how: bool
    ) -> FloatArray:
        """Return a start, and a part of every pass."""
        with np.errstate(over="ignore", invalid="ignore"):
            for each in self._passes(b, **how):
                start = start + part(each)
        return start

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), at coefficients of shape (n, dim)."""
        b = check_positions(positions, self.dim)
        start = self._prior.value_and_gradient(b)[0] + self._terms.constant
        total = self._total(start, b, lambda each: each.total(), reused=False)
        return np.where(np.isnan(total), np.inf, total)

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U, shape (n,), and its gradient, shape (n, dim)."""
        b = check_positions(positions, self.dim)
        value, gradient = self._prior.value_and_gradient(b)
        start = np.column_stack([value + self._terms.constant, gradient])
        both = self._total(start, b, lambda each: np.column_stack([each.total(), _slopes(each, b)]))
        return np.where(np.isnan(both[:, 0]), np.inf, both[:, 0]), both[:, 1:]

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient of U alone, shape (n, dim)."""
        b = check_positions(positions, self.dim)
        start = self._prior.value_and_gradient(b)[1]
        return self._total(start, b, lambda each: _slopes(each, b))

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return second derivatives, shape (n, dim, dim)."""
        b = check_positions(positions, self.dim)
        return self._total(self._prior.metric(b), b, self._bends)

    def hessian_product(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return the Hessian times u, shape (n, dim), with u in ``vectors (n, dim)``."""
        b = check_positions(positions, self.dim)
        u = check_vectors(vectors, b)
        columns = u.reshape(-1, self._design.dim).T

        def part(each: _Pass) -> FloatArray:
            steps, bends = each.x.dot(columns), each.bends()
            if self.family.several:
                steps = np.einsum("rnij,rnj->rni", bends, steps.reshape(bends.shape[:-1]))
            else:
                steps *= bends
            return _to_coefficients(each.x, steps, b)

        return self._total(precision_of(self._prior) * u, b, part)

    def hessian_diagonal(self, positions: FloatArray) -> FloatArray:
        """Return the diagonal of the Hessian, shape (n, dim)."""
        b = check_positions(positions, self.dim)
        start = np.full(b.shape, precision_of(self._prior))
        return self._total(start, b, lambda each: np.asarray((each.x.squares().T @ each.bends()).T))

    def hessian_diagonal_gradient(self, positions: FloatArray, weights: FloatArray) -> FloatArray:
        """Return sum_j c_j d_k G_jj, G the Hessian, shape (n, dim), for ``weights (n, dim)``."""
        b = check_positions(positions, self.dim)
        c = check_vectors(weights, b)
        return self._third_forms(b, lambda x: x.squares() @ c.T)

    def hessian_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k G), G the Hessian, shape (n, dim), for ``matrices (n, dim, dim)``."""
        b = check_positions(positions, self.dim)
        a = check_matrices(matrices, b)
        return self._third_forms(b, lambda x: np.column_stack([x.forms(matrix) for matrix in a]))

    def hessian_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return u^T d_k G u, G the Hessian, shape (n, dim), with u in ``vectors (n, dim)``."""
        b = check_positions(positions, self.dim)
        u = check_vectors(vectors, b)
        return self._third_forms(b, lambda x: np.square(x.dot(u.T)))

    def _third_forms(self, b: FloatArray, form: Callable[[Design], FloatArray]) -> FloatArray:
        """Return the sum of third derivatives times x_i and a form of row i, (rows, n)."""

        def part(each: _Pass) -> FloatArray:
            return each.x.back(self._terms.at("third", each.e, each.rows) * form(each.x))

        return self._total(np.zeros(b.shape), b, part)

    # the Fisher information, with the prior's precision, is the Hessian of a canonical family
    metric = hessian
    metric_product = hessian_product
    metric_trace_gradient = hessian_trace_gradient
    metric_form_gradient = hessian_form_gradient

    def column_moments(self, rows: IntArray | None = None) -> FloatArray:
        """Return the mean of x_i x_i^T, shape (dim, dim), with the prior's precision in its unit.

        It is over some ``rows (m,)`` or all. Times the number of rows and the curvature of a term
        it is about the Hessian.
        """
        some: Rows = slice(None) if rows is None else rows
        design = self._design if rows is None else self._design.select(rows)
        n_rows, m = len(design), self.family.n_predictors
        weights = np.ones(n_rows) if self._terms.weights is None else self._terms.weights[some]
        shares = weights if weights.any() else np.ones(n_rows)
        total = np.zeros((design.dim, design.dim))
        for part, block in design.blocks(design.dim):
            total += block.gram(shares[part])
        # about a term's second derivative: where coefficients are 0
        with np.errstate(all="ignore"):
            zero = self._terms.predictors(np.zeros((n_rows, m)), some)
            bends = np.abs(self._terms.at("second", zero, some)).reshape(-1, m, m)
            curvature = float(np.einsum("rii->ri", bends).mean())
        if not 0.0 < curvature < np.inf:
            curvature = 1.0
        precision = np.diag(precision_of(self._prior)) / (self.n_rows * curvature)
        return np.asarray(np.kron(np.eye(m), total / shares.sum()) + precision)

    def expand(self, centre: FloatArray, order: int = USUAL_ORDER) -> _LinearExpansion:
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
        found = self._expanded  # a correction asks again where a search for the mode has ended
        if found is None or not np.array_equal(found.centre, at):
            found = self._expanded = self._expand(at)
        if order != USUAL_ORDER and found.third is None:
            third = self._third(found.predictors, found.hessian)
            found = self._expanded = attrs.evolve(found, third=third)
        return found if order != USUAL_ORDER else attrs.evolve(found, third=None)

    def _expand(self, at: FloatArray) -> _LinearExpansion:
        level = float(self._prior.value_and_gradient(at[None])[0][0]) + self._terms.constant
        gradient, hessian = np.zeros(self.dim), np.zeros((self.dim, self.dim))
        predictors = np.empty((self.n_rows, self.family.n_predictors))
        for each in self._passes(at[None]):
            predictors[each.rows] = each.e.reshape(len(each.e), -1)
            level += float(each.total()[0])
            hessian += self._bends(each)[0]
            gradient += _slopes(each, at[None])[0]
        return _LinearExpansion(
            centre=at,
            gradient=gradient,
            hessian=hessian,
            level=level,
            prior=self._prior,
            design=self._design,
            terms=self._terms,
            predictors=predictors if self.family.several else predictors[:, 0],
        )

    def row_bounds(
        self, factor: FloatArray, order: int = 2, ball: Ball | None = None
    ) -> FloatArray:
        """Return B_i |L^T x_i|^3 / 6, shape (n_rows,), with L the ``factor (dim, dim)``.

        The third derivative of f(x_i . q) along u is f''' (x_i . u)^3, and x_i . u is
        (L^T x_i) . (L^-1 u). With an order of 3 it is B_i |L^T x_i|^4 / 24, B_i of the fourth
        derivative. In a ball of radius R about a centre c, predictors are between
        x_i . c - s and x_i . c + s with s = R |L^T x_i|: there, for a local family, B_i is to hold.
        For expansions at c the third derivative there, and s / 4 times the largest fourth one, do
        as well.

        Raises
        ------
        ShapeError
            If the factor is not a square matrix for these coefficients.
        ConfigurationError
            As :meth:`expand`; or if the family has no bound everywhere, and there is no ball.
        """
        self._check_order(order)
        factor = check_shape("factor", factor, (self.dim, self.dim))
        lengths = self._lengths(factor)
        predictors, reach = np.zeros(self.n_rows), np.full(self.n_rows, np.inf)
        if self.family.local:
            ball = check_ball(ball, f"terms of the family {self.family.name!r}")
            # a correction has asked for the expansions there
            predictors, reach = self.expand(ball.centre).predictors, ball.radius * lengths
        with np.errstate(over="ignore", invalid="ignore"):
            bounds = self.family.bounds(predictors, self._terms.response, reach, order)
            if ball is not None and order == USUAL_ORDER and self.family.third is not None:
                # by Taylor's formula, with the third derivative at the centre
                fourth = self.family.bounds(predictors, self._terms.response, reach, 3)
                third = np.abs(self.family.third(predictors, self._terms.response))
                bounds = np.minimum(bounds, third + 0.25 * reach * fourth)
            bounds = weighed(bounds, self._terms.weights) / math.factorial(order + 1)
            return np.where(lengths > 0.0, bounds * lengths ** (order + 1), 0.0)

    def _lengths(self, factor: FloatArray) -> FloatArray:
        """Return |L^T x_i|, shape (n_rows,), which balls and orders share."""
        if self._measured is None or not np.array_equal(self._measured[0], factor):
            self._measured = factor, self._design.lengths(factor)
        return self._measured[1]

    def select(self, rows: IntArray) -> Self:
        """Return the sum of some rows' terms alone, copied, without the prior."""
        numbers = np.asarray(rows, dtype=np.int64)
        chosen = object.__new__(type(self))
        chosen._design, chosen._terms = self._design.select(numbers), self._terms.select(numbers)
        chosen._prior, chosen._expanded = normal_prior(None, self.dim), None
        chosen._measured = None
        return chosen

    def _check_order(self, order: int) -> None:
        orders = (2,) if self.family.third is None else (2, 3)
        if order not in orders:
            raise ConfigurationError(
                f"terms of the family {self.family.name!r} are expanded to an order of "
                f"{' or '.join(map(str, orders))}, got {order!r}; give one of these, or a family "
                "with third derivatives and a bound of the fourth"
            )

    def _third(self, predictors: FloatArray, hessian: FloatArray) -> FloatArray:
        """Return the sum of third derivatives, shape (dim, dim, dim)."""
        bends = self._terms.at("third", predictors, slice(None))
        return self._design.third_moments(bends, whitening(hessian))

    def _bends(self, one: _Pass) -> FloatArray:
        """Return X^T diag(bends) X, shape (n, dim, dim), for all pairs of predictors."""
        n, m, columns = one.e.shape[1], self.family.n_predictors, one.x.dim
        bends = one.bends().reshape(len(one.x), n, m, m)
        found = np.empty((n, m, columns, m, columns))
        for k in range(n):
            for i in range(m):
                for j in range(i, m):
                    part = one.x.gram(bends[:, k, i, j])
                    found[k, i, :, j] = found[k, j, :, i] = part
        return found.reshape(n, self.dim, self.dim)


def _slopes(one: _Pass, b: FloatArray) -> FloatArray:
    return _to_coefficients(one.x, one.slopes(), b)


def _to_coefficients(x: Design, slopes: FloatArray, b: FloatArray) -> FloatArray:
    """Return slopes in predictors, shape (rows, ...), as those in coefficients b (n, dim)."""
    return x.back(slopes.reshape(len(slopes), -1)).reshape(b.shape)
