"""Bayesian regression of classes: multinomial logistic regression, and the cumulative logit."""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement, permutations
from typing import Any, ClassVar

import attrs
import numpy as np
from scipy import sparse

from surrokit import capabilities as can
from surrokit.arguments import check_positions
from surrokit.errors import ConfigurationError
from surrokit.potentials import Ball
from surrokit.predictive.families import MultinomialClasses, OrdinalClasses
from surrokit.predictive.rows import RowPredictor
from surrokit.targets.gaussian import GaussianPrior
from surrokit.targets.summed import SumAndRest
from surrokit.types import Capabilities, FloatArray, IntArray
from surrokit_problems.design import (
    check_design,
    column_from,
    weights_from,
    whitening,
)
from surrokit_problems.families import FOURTH_BOUND, LOGISTIC, THIRD_BOUND
from surrokit_problems.rows import USUAL_PRIOR, GeneralizedLinearModel, check_shape, weighed


class MultinomialLogit(GeneralizedLinearModel):
    """Responses 0, 1, ..., m with probabilities in proportion to 1, exp(e_1), ..., exp(e_m).

    Predictors are e_k = x . b_k; the position is b_1, ..., b_m, one after the other. A term is
    log(1 + sum_k exp(e_k)) - e_y, in nats, with e_0 = 0. Parameters are those of
    :func:`~surrokit_problems.regression.regression`.

    Raises
    ------
    ConfigurationError, ShapeError, TargetError
        As other models, and if responses are not whole numbers 0 to m, each of which occurs.

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
        columns: FloatArray | None = None,
    ) -> None:
        x, y = check_design(design, response)
        family = _Softmax(_count_classes("multinomial", y) - 1)
        super().__init__(x, y, family, prior, weights=weights, columns=columns)

    def row_bounds(self, factor: FloatArray, order: int = 2, _: Ball | None = None) -> FloatArray:
        """Return w_i^3 / (36 sqrt(3)), shape (n_rows,), or w_i^4 / 192 with an order of 3.

        w_i is the most by which two predictors of a row can part along L u, with L the
        ``factor (dim, dim)`` and |u| = 1: the largest |(L_j - L_k)^T x_i|, with L_k the rows of L
        that belong to class k, and L_0 = 0. No ball is needed.
        """
        self._check_order(order)
        matrix = check_shape("factor", factor, (self.dim, self.dim))
        d = self._design.dim
        each = [np.zeros((d, self.dim)), *matrix.reshape(-1, d, self.dim)]
        squares = np.zeros(self.n_rows)
        for one, other in combinations(each, 2):
            np.maximum(squares, self._design.lengths(one - other) ** 2, out=squares)
        if order == 3:
            return weighed(FOURTH_BOUND / 24.0 * squares**2, self._terms.weights)
        return weighed(THIRD_BOUND / 6.0 * squares**1.5, self._terms.weights)

    def _third(self, predictors: FloatArray, hessian: FloatArray) -> FloatArray:
        p, m, d = _chances(predictors), self.family.n_predictors, self._design.dim
        alike = whitening(np.einsum("iaib->ab", hessian.reshape(m, d, m, d)))
        total = np.zeros((m, d, m, d, m, d))
        for classes in combinations_with_replacement(range(m), 3):
            moments = weighed(_third_moments(p, *classes), self._terms.weights)
            part = self._design.third_moments(moments, alike)
            for i, j, k in set(permutations(classes)):
                total[i, :, j, :, k] += part
        return total.reshape(self.dim, self.dim, self.dim)


@attrs.frozen
class _Softmax:
    """The terms log(1 + sum_k exp(e_k)) - e_y, for predictors (rows, n, m); y is (rows, 1, 1)."""

    n_predictors: int

    name: ClassVar[str] = "multinomial"
    several: ClassVar[bool] = True
    convex: ClassVar[bool] = True
    local: ClassVar[bool] = False
    third: ClassVar[bool] = True  # that there are third derivatives
    predicts: ClassVar[MultinomialClasses] = MultinomialClasses()

    def check_responses(self, _: FloatArray) -> None:
        """Classes have been counted."""

    def constant(self, y: FloatArray) -> FloatArray:
        return np.zeros_like(y)

    def value(self, e: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(_log_sum(e) - np.einsum("rnm,rm->rn", e, self._shown(y)[:, 0]))

    def first(self, e: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(_chances(e) - self._shown(y))

    def second(self, e: FloatArray, _: FloatArray) -> FloatArray:
        p = _chances(e)
        matrices = -p[..., :, None] * p[..., None, :]
        each = np.arange(self.n_predictors)
        matrices[..., each, each] += p
        return np.asarray(matrices)

    def remaining(self, e: FloatArray, _: FloatArray, s: FloatArray, order: int) -> FloatArray:
        """Return what expansions leave out, shape (k, rows), for changes s (k, rows, m) of e.

        With c_k the change of predictor k less the mean of all changes under the probabilities p
        at the centre, that is log(sum p exp(c)) less half of sum p c^2.
        """
        p = _chances(e)
        mean = (p * s).sum(axis=-1)
        rest = 1.0 / (1.0 + np.exp(np.minimum(e, 700.0)).sum(axis=-1))  # of class 0
        c = s - mean[..., None]
        found = _log_sum(e + s) - _log_sum(e) - mean
        found -= 0.5 * ((p * c * c).sum(axis=-1) + rest * mean * mean)
        if order == 3:
            found -= ((p * c**3).sum(axis=-1) - rest * mean**3) / 6.0
        return np.asarray(found)

    def _shown(self, y: FloatArray) -> FloatArray:
        """Return which class each row has, shape (rows, 1, m), as zeros and ones."""
        return np.asarray(y == np.arange(1, self.n_predictors + 1), dtype=np.float64)


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


@attrs.frozen(eq=False)
class OrdinalLogit(SumAndRest):
    """Responses 0, 1, ..., m with P(response <= k) = 1 / (1 + exp(x . b + o - c_k)).

    The position is b, then the cutpoints c_0 < c_1 < ... < c_(m-1); elsewhere U is infinite.
    :func:`ordinal` makes it, with logistic ``terms`` that have the prior of all parameters, and
    the ``rest`` that gaps of cutpoints cost. ``shares (m,)`` are those of responses of at most
    0, ..., m - 1, and ``sizes`` the largest absolute numbers of the columns.

    Notes
    -----
    With F(t) = 1 / (1 + exp(-t)) and a > b,

        F(a) - F(b) = F(a) F(-b) (1 - exp(b - a)).

    So minus the log probability of a category between two cutpoints is a term
    log(1 + exp(-a)) of the upper one, a term log(1 + exp(b)) of the lower one, and
    -log(1 - exp(-gap)), which is the same for all rows of a category. The first two are terms of
    logistic regression, linear in the position, whose derivatives are bounded everywhere; a row of
    the least or the greatest category has one of them, every other has two. The last ones are the
    rest, which needs no rows.
    """

    n_columns: int
    shares: FloatArray
    sizes: FloatArray
    has_offset: bool

    @property
    def predictor(self) -> RowPredictor:
        """What predicts classes of new rows."""
        return RowPredictor.of(OrdinalClasses(), self.n_columns, has_offset=self.has_offset)

    @property
    def capabilities(self) -> Capabilities:
        """Those of a sum and a rest, and ``initial``."""
        offered: Capabilities = SumAndRest.capabilities.fget(self)  # type: ignore[attr-defined]
        return offered | {can.INITIAL}

    def initial(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return starting positions, shape (n, dim): about the cutpoints of the shares alone."""
        slopes = rng.uniform(-1.0, 1.0, (n, self.n_columns)) / (self.n_columns + 1) / self.sizes
        logits = np.log(self.shares) - np.log1p(-self.shares)
        stretched = np.exp(rng.uniform(-0.3, 0.3, (n, 1))) * (logits - logits.mean())
        common = logits.mean() + rng.uniform(-1.0, 1.0, (n, 1))
        return np.hstack([slopes, common + stretched])


@attrs.frozen(kw_only=True, eq=False)
class _Gaps:
    """The sum of -n_k log(1 - exp(c_(k-1) - c_k)) over neighbouring cutpoints, in nats.

    It is infinite unless they increase, and its derivatives are then 0. ``counts``, shape (m - 1,),
    are n_k, the rows of the categories between two cutpoints.
    """

    n_columns: int
    counts: FloatArray

    @property
    def dim(self) -> int:
        return self.n_columns + len(self.counts) + 1

    @property
    def capabilities(self) -> Capabilities:
        return frozenset({can.GRADIENT, can.HESSIAN, can.CONVEX})

    def value(self, positions: FloatArray) -> FloatArray:
        gaps, inside = self._inside(positions)
        return np.where(inside > 0.0, -np.log(-np.expm1(-gaps)) @ self.counts, np.inf)

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        gaps, inside = self._inside(positions)
        with np.errstate(over="ignore"):
            slopes = -self.counts / np.expm1(gaps)
        gradient = np.zeros(positions.shape)
        gradient[:, self.n_columns + 1 :] += slopes
        gradient[:, self.n_columns : -1] -= slopes
        return self.value(positions), gradient * inside[:, None]

    def hessian(self, positions: FloatArray) -> FloatArray:
        gaps, inside = self._inside(positions)
        with np.errstate(over="ignore"):
            bends = self.counts / (4.0 * np.sinh(0.5 * gaps) ** 2) * inside[:, None]
        found = np.zeros((len(positions), self.dim, self.dim))
        for k, bend in enumerate(bends.T, start=self.n_columns):
            found[:, k, k] += bend
            found[:, k + 1, k + 1] += bend
            found[:, k, k + 1] -= bend
            found[:, k + 1, k] -= bend
        return found

    def _inside(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return gaps, and 1 where they are all positive; elsewhere they are 1, and it is 0."""
        gaps = np.diff(check_positions(positions, self.dim)[:, self.n_columns :], axis=1)
        inside: FloatArray = np.asarray((gaps > 0.0).all(axis=1), dtype=np.float64)
        return np.where(inside[:, None] > 0.0, gaps, 1.0), inside


def ordinal(
    design: Any,
    response: Any,
    prior: GaussianPrior | float | None = None,
    offset: Any = None,
    weights: Any = None,
) -> OrdinalLogit:
    """Return a regression of ordered categories, without a column of ones.

    Parameters are those of :func:`~surrokit_problems.regression.regression`; the prior is of all
    coefficients and then all cutpoints.

    Raises
    ------
    ConfigurationError, ShapeError, TargetError
        As :class:`MultinomialLogit`, and if a column is constant.
    """
    x, y = check_design(design, response)
    counted = weights_from(weights, len(y))
    counts = _counts(y, np.ones(len(y)) if counted is None else counted)
    least, most = (_dense(each(x, axis=0)) for each in (np.min, np.max))
    constant = np.flatnonzero((least == most) & (most != 0.0))
    if constant.size:
        raise ConfigurationError(
            f"column {constant[0]} of the design is {most[constant[0]]:g} in every row, but an "
            "ordinal regression has cutpoints in place of an intercept; leave that column out"
        )
    rows, cutpoints, upper = _terms(y.astype(np.int64), len(counts) - 1)
    known = column_from("offset", offset, len(y))
    sizes = np.maximum(np.abs(least), np.abs(most))
    return OrdinalLogit(
        GeneralizedLinearModel(
            _beside(x[rows], cutpoints, len(counts) - 1),
            upper,
            LOGISTIC,
            prior,
            None if known is None else -known[rows],
            None if counted is None else counted[rows],
        ),
        _Gaps(n_columns=x.shape[1], counts=counts[1:-1]),
        n_columns=x.shape[1],
        shares=np.cumsum(counts)[:-1] / counts.sum(),
        sizes=np.where(sizes > 0.0, sizes, 1.0),
        has_offset=known is not None,
    )


def _terms(response: IntArray, n_cutpoints: int) -> tuple[IntArray, IntArray, FloatArray]:
    """Return row and cutpoint of every term, and 1 for upper cutpoints and 0 for lower ones."""
    above, below = np.flatnonzero(response < n_cutpoints), np.flatnonzero(response > 0)
    rows = np.concatenate([above, below])
    cutpoints = np.concatenate([response[above], response[below] - 1])
    upper = np.repeat([1.0, 0.0], [len(above), len(below)])
    order = np.argsort(rows, kind="stable")  # the terms of a row lie side by side
    return rows[order], cutpoints[order], upper[order]


def _beside(rows: Any, cutpoints: IntArray, n_cutpoints: int) -> Any:
    """Return the design of c - x . b, shape (n_terms, n_columns + n_cutpoints)."""
    n_terms = len(cutpoints)
    if sparse.issparse(rows):
        places = (np.ones(n_terms), (np.arange(n_terms), cutpoints))
        chosen = sparse.csr_array(places, shape=(n_terms, n_cutpoints))
        return sparse.hstack([-rows, chosen], format="csr")
    found = np.zeros((n_terms, rows.shape[1] + n_cutpoints))
    np.negative(rows, out=found[:, : rows.shape[1]])
    found[np.arange(n_terms), rows.shape[1] + cutpoints] = 1.0
    return found


def _counts(response: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the weight of each category, shape (m + 1,)."""
    n_classes = _count_classes("ordinal", response[weights > 0.0])
    if response.max() >= n_classes:
        raise ConfigurationError(
            f"response {response.max():g} of an ordinal regression has rows of weight 0 alone, so "
            "that data leave its cutpoints undecided; drop these rows"
        )
    return np.asarray(np.bincount(response.astype(np.int64), weights), dtype=np.float64)


def _count_classes(kind: str, response: FloatArray) -> int:
    found = np.unique(response)
    if len(found) < 2 or not np.array_equal(found, np.arange(len(found))):
        raise ConfigurationError(
            f"response of a regression that is {kind} must be whole numbers 0, 1, ..., m that all "
            f"occur, at least two, got {found[:10].tolist()}; number the classes from 0, without "
            "those that never occur"
        )
    return len(found)


def _dense(of_columns: Any) -> FloatArray:
    """Return numbers of columns, shape (n_columns,)."""
    return np.ravel(of_columns.toarray() if sparse.issparse(of_columns) else of_columns)
