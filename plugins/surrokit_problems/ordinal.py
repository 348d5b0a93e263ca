"""Bayesian regression of ordered categories: the cumulative logit."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
from scipy import sparse

from surrokit import capabilities as can
from surrokit.arguments import check_positions
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.predictive.families import OrdinalClasses
from surrokit.predictive.rows import RowPredictor
from surrokit.targets.gaussian import GaussianPrior
from surrokit.targets.summed import SumAndRest
from surrokit.types import Capabilities, FloatArray, IntArray
from surrokit_problems.design import Design, check_design, column_from, weights_from
from surrokit_problems.logistic_terms import LOGISTIC
from surrokit_problems.rows import GeneralizedLinearModel

_COMMON_SHIFT, _STRETCH = 1.0, 0.3  # of cutpoints at the start, in logits and on a log scale


@attrs.frozen(eq=False)
class OrdinalLogit(SumAndRest):
    """Responses 0, 1, ..., m with P(response <= k) = 1 / (1 + exp(x . b + o - c_k)).

    The position is b, then the cutpoints c_0 < c_1 < ... < c_(m-1); elsewhere U is infinite. There
    is no intercept, as cutpoints may move together. :func:`ordinal` makes it.

    Parameters
    ----------
    terms, rest
        The logistic terms, with the prior of all parameters, and what gaps of cutpoints cost.
    n_columns
        Coefficients, before the cutpoints.
    shares : ndarray of shape (m,)
        Of the responses that are at most 0, ..., m - 1.
    sizes : ndarray of shape (n_columns,)
        Largest absolute numbers of the columns.
    has_offset
        Whether parts of the predictors are known.

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
        stretched = np.exp(rng.uniform(-_STRETCH, _STRETCH, (n, 1))) * (logits - logits.mean())
        common = logits.mean() + rng.uniform(-_COMMON_SHIFT, _COMMON_SHIFT, (n, 1))
        return np.hstack([slopes, common + stretched])

    def probabilities(self, positions: FloatArray, design: Any, offset: Any = None) -> FloatArray:
        """Return the probability of each category, shape (n, n_rows, m + 1).

        ``positions (n, dim)`` are draws of coefficients and cutpoints; ``design (n_rows,
        n_columns)``, an array or a sparse matrix, and ``offset (n_rows,)`` need not be those of the
        fit.

        Raises
        ------
        ShapeError
            If the shapes do not agree.
        """
        q = check_positions(positions, self.dim)
        x = design if sparse.issparse(design) else np.asarray(design, dtype=np.float64)
        if x.ndim != 2 or x.shape[1] != self.n_columns:
            raise ShapeError(
                f"design must have shape (n_rows, {self.n_columns}), a column for each "
                f"coefficient, got {x.shape}"
            )
        known = np.zeros(x.shape[0]) if offset is None else np.asarray(offset, dtype=np.float64)
        if known.shape != (x.shape[0],):
            raise ShapeError(f"offset must have shape {(x.shape[0],)}, got {known.shape}")
        return OrdinalClasses().probabilities(q, x, known)


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
    """Return a regression of ordered categories.

    Parameters
    ----------
    design : array_like or SciPy sparse matrix of shape (n_rows, n_columns), or path
        Covariates, without a column of ones.
    response : array_like of shape (n_rows,), or path
        Whole numbers from 0 to m, each of which occurs.
    prior
        Normal, of all coefficients and then all cutpoints; a number is the standard deviation of
        all; None for a flat one.
    offset, weights : array_like of shape (n_rows,), or path, optional
        Known parts of the predictors, and how often each row counts.

    Raises
    ------
    ConfigurationError
        If responses are not 0 to m, a column is constant, a number is not finite, or a weight is
        negative.
    ShapeError
        If shapes do not agree.
    TargetError
        If a file cannot be read, or something is not numbers.
    """
    x, y = check_design(design, response)
    _check_columns(x)
    counted = weights_from(weights, len(y))
    counts = _counts(y, np.ones(len(y)) if counted is None else counted)
    rows, cutpoints, upper = _terms(y.astype(np.int64), len(counts) - 1)
    known = column_from("offset", offset, len(y))
    sizes = abs(x).max(axis=0)
    sizes = sizes.toarray() if sparse.issparse(sizes) else np.asarray(sizes)
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
        sizes=np.where(sizes > 0.0, sizes, 1.0).reshape(x.shape[1]),
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


def _beside(rows: Design, cutpoints: IntArray, n_cutpoints: int) -> Design:
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
    found = np.unique(response[weights > 0.0])
    if len(found) < 2 or not np.array_equal(found, np.arange(len(found))):
        raise ConfigurationError(
            "response of an ordinal regression must be whole numbers 0, 1, ..., m, each of which "
            f"occurs in a row that counts, and at least two of them, got {found[:10].tolist()}; "
            "number the categories from 0 in their order, and leave out those that never occur"
        )
    if not np.isin(response, found).all():
        odd = response[~np.isin(response, found)][0]
        raise ConfigurationError(
            f"response {odd:g} of an ordinal regression has rows of weight 0 alone, so that data "
            "leave its cutpoints undecided; drop these rows"
        )
    return np.asarray(np.bincount(response.astype(np.int64), weights), dtype=np.float64)


def _check_columns(design: Design) -> None:
    """Raise if a column is constant, unless it is 0."""
    if not design.shape[0]:
        return
    least, most = design.min(axis=0), design.max(axis=0)
    if sparse.issparse(design):
        least, most = least.toarray(), most.toarray()
    constant = np.flatnonzero((np.ravel(least) == np.ravel(most)) & (np.ravel(most) != 0.0))
    if constant.size:
        raise ConfigurationError(
            f"column {constant[0]} of the design is {np.ravel(most)[constant[0]]:g} in every row, "
            "but an ordinal regression has cutpoints in place of an intercept; leave that column "
            "out"
        )
