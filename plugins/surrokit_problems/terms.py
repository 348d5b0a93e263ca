"""What sums over rows are made of: a normal prior, terms of a linear predictor, and expansions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import ClassVar, TypeAlias

import attrs
import numpy as np

from surrokit import gaussian_prior
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.potentials import USUAL_ORDER
from surrokit.targets.gaussian import GaussianPrior
from surrokit.types import FloatArray, IntArray
from surrokit_problems.design import Design, along, blocks, products
from surrokit_problems.families import Family

Rows: TypeAlias = slice | IntArray
"""Which rows."""

USUAL_PRIOR = gaussian_prior(0.0, 10.0)
"""Of every coefficient, as in section 5.1 of Zhang, Shahbaba and Zhao (2017)."""

_STEPS_AT_ONCE = 16384  # more, and what is made of them leaves the processor's cache


@attrs.frozen(kw_only=True, eq=False)
class NormalPrior:
    """Minus the log density of independent normal coefficients; a flat one counts as 1.

    Parameters
    ----------
    mean, precision : ndarray of shape (dim,)
        Of each; a precision of 0 for none.
    """

    mean: FloatArray
    precision: FloatArray

    @classmethod
    def of(cls, prior: GaussianPrior | float | None, dim: int) -> NormalPrior:
        """Return the form in which models take a prior; a number is an sd, None a flat prior.

        Raises
        ------
        ConfigurationError
            If it is no normal prior.
        ShapeError
            If it is one of another number of coefficients.
        """
        if prior is None:
            return cls(mean=np.zeros(dim), precision=np.zeros(dim))
        if isinstance(prior, int | float):
            prior = gaussian_prior(0.0, prior)
        if not isinstance(prior, GaussianPrior):
            raise ConfigurationError(
                "prior must be that of surrokit.gaussian_prior, or None for a flat one, got "
                f"{prior!r}; give prior=surrokit.gaussian_prior(mean, sd)"
            )
        for name, array in (("mean", prior.mean), ("sd", prior.sd)):
            if array.shape not in ((), (dim,)):
                raise ShapeError(
                    f"{name} of the prior must be one number or have shape ({dim},), one for each "
                    f"coefficient, got {array.shape}"
                )
        return cls(
            mean=np.broadcast_to(prior.mean, (dim,)).copy(),
            precision=np.broadcast_to(prior.sd**-2.0, (dim,)).copy(),
        )

    @property
    def proper(self) -> bool:
        """Whether it bounds every coefficient."""
        return bool((self.precision > 0.0).all())

    @property
    def unnormalized(self) -> tuple[str, ...]:
        """What has no density: a flat prior of some coefficient."""
        return () if self.proper else ("a flat prior",)

    @cached_property
    def constant(self) -> float:
        """The sum of log(sd sqrt(2 pi)) over the coefficients that it bounds."""
        proper = self.precision[self.precision > 0.0]
        return float(0.5 * np.log(2.0 * np.pi / proper).sum())

    def value(self, positions: FloatArray) -> FloatArray:
        """Return it, shape (n,), at coefficients of shape (n, dim)."""
        half = 0.5 * np.square(positions - self.mean) @ self.precision
        return np.asarray(half + self.constant)

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return its gradient, shape (n, dim)."""
        return np.asarray(self.precision * (positions - self.mean))


@attrs.frozen(kw_only=True, eq=False)
class LinearTerms:
    """The terms w_i f(e_i) with predictors e_i = x_i . q + o_i.

    Predictors are given for some rows, shape (rows,), or for n positions at once, (rows, n).

    Parameters
    ----------
    family
        f and its derivatives.
    response : ndarray of shape (n_rows,)
        Of every row.
    offset, weights : ndarray of shape (n_rows,), optional
        o_i and w_i; None for zeros and ones.
    """

    family: Family
    response: FloatArray
    offset: FloatArray | None = None
    weights: FloatArray | None = None

    n_predictors: ClassVar[int] = 1
    """Of a row."""

    @property
    def unnormalized(self) -> tuple[str, ...]:
        """The terms, where their family does not say what constant they lack."""
        return () if self.family.constant is not None else (f"terms of {self.family.name!r}",)

    @cached_property
    def constant(self) -> float:
        """What minus the log likelihood has beside the terms, in nats."""
        if self.family.constant is None:
            return 0.0
        each = self.family.constant(self.response)
        return float(np.sum(each if self.weights is None else each * self.weights))

    def predictors(self, products: FloatArray, rows: Rows) -> FloatArray:
        """Return e for products x_i . q, which it may overwrite."""
        if self.offset is not None:
            products += beside(self.offset[rows], products)
        return products

    def select(self, rows: IntArray) -> LinearTerms:
        """Return the terms of some rows."""
        offset, weights = (
            None if column is None else column[rows] for column in (self.offset, self.weights)
        )
        return attrs.evolve(self, response=self.response[rows], offset=offset, weights=weights)

    def value(self, e: FloatArray, rows: Rows) -> FloatArray:
        """Return the terms, of the shape of the predictors."""
        return self._weigh(self.family.value(e, beside(self.response[rows], e)), rows)

    def first(self, e: FloatArray, rows: Rows) -> FloatArray:
        """Return first derivatives in e."""
        return self._weigh(self.family.first(e, beside(self.response[rows], e)), rows)

    def second(self, e: FloatArray, rows: Rows) -> FloatArray:
        """Return second derivatives in e."""
        return self._weigh(self.family.second(e, beside(self.response[rows], e)), rows)

    def third(self, e: FloatArray) -> FloatArray:
        """Return third derivatives in the predictors of all rows, of a family that has them."""
        assert self.family.third is not None
        return self._weigh(self.family.third(e, self.response), slice(None))

    def bounds(self, e: FloatArray, reach: FloatArray, order: int) -> FloatArray:
        """Return bounds of the derivatives after an order, for all rows: shape (n_rows,)."""
        return self._weigh(self.family.bounds(e, self.response, reach, order), slice(None))

    def prepare(self, e: FloatArray) -> tuple[FloatArray, ...]:
        """Return what :meth:`remaining` needs of all rows, arrays of shape (n_rows,)."""
        prepared = self.family.prepare_rows(e, self.response)
        return prepared if self.weights is None else (*prepared, self.weights)

    def remaining(
        self, prepared: Sequence[FloatArray], steps: FloatArray, order: int = USUAL_ORDER
    ) -> FloatArray:
        """Return what expansions leave out, shape (k, m), for steps (k, m) of m rows' predictors.

        ``prepared`` are these rows of what :meth:`prepare` returned, shape (m,) each.
        """
        if self.weights is None:
            return self.family.remaining_of(prepared, steps, order)
        return np.asarray(prepared[-1] * self.family.remaining_of(prepared[:-1], steps, order))

    def _weigh(self, found: FloatArray, rows: Rows) -> FloatArray:
        if self.weights is None:
            return found
        return np.asarray(found * beside(self.weights[rows], found))


def beside(column: FloatArray, results: FloatArray) -> FloatArray:
    """Return numbers of rows, shape (rows,), in a shape that goes with results (rows, ...)."""
    return column.reshape(-1, *[1] * (results.ndim - 1))


@attrs.frozen(kw_only=True, eq=False)
class Expansion(ABC):
    """Expansions that keep to :class:`surrokit.potentials.RowExpansion`.

    Parameters
    ----------
    centre, gradient : ndarray of shape (dim,)
        Where the terms were expanded, and the sum of their gradients there.
    hessian : ndarray of shape (dim, dim)
        The sum of their Hessians there.
    level
        U at the centre, prior included, in nats.
    prior
        Of the coefficients.
    third : ndarray of shape (dim, dim, dim), optional
        The sum of third derivatives there, if the terms are expanded to third order.
    """

    centre: FloatArray
    gradient: FloatArray
    hessian: FloatArray
    level: float
    prior: NormalPrior
    third: FloatArray | None = None
    _slope: FloatArray = attrs.field(init=False)
    _bend: FloatArray = attrs.field(init=False)
    _pairs: tuple[IntArray, IntArray] = attrs.field(init=False)
    _cubic: FloatArray | None = attrs.field(init=False)

    # a normal prior is a quadratic as well: of V's derivatives at the centre
    @_slope.default
    def _with_prior(self) -> FloatArray:
        return self.gradient + self.prior.gradient(self.centre)

    @_bend.default
    def _half_with_prior(self) -> FloatArray:
        return np.asarray(0.5 * (self.hessian + np.diag(self.prior.precision)))

    @_pairs.default
    def _pairs_of_indices(self) -> tuple[IntArray, IntArray]:
        return np.triu_indices(len(self.centre))

    @_cubic.default
    def _by_pairs(self) -> FloatArray | None:
        """Return a sixth, by pairs of two indices (those of unlike ones doubled) and the third."""
        if self.third is None:
            return None
        first, second = self._pairs
        twice = np.where(first == second, 1.0, 2.0)[:, None]
        return np.asarray(self.third[first, second] * twice / 6.0)

    @property
    def order(self) -> int:
        """To which the terms are expanded."""
        return USUAL_ORDER if self.third is None else 3

    def value(self, positions: FloatArray) -> FloatArray:
        """Return V, shape (n,), at positions of shape (n, dim)."""
        h = positions - self.centre
        slopes = h @ self._bend
        slopes += self._slope
        if self._cubic is not None:
            first, second = self._pairs
            slopes += (h[:, first] * h[:, second]) @ self._cubic
        return np.asarray(np.einsum("ij,ij->i", slopes, h) + self.level)

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
        for found in self._of_all(np.concatenate([before, after])):
            here, there = found[: len(total)], found[len(total) :]
            there -= here
            total += np.maximum(there, 0.0, out=there).sum(axis=1)
        return total

    @abstractmethod
    def _of_pairs(
        self, ends: Sequence[FloatArray], rows: IntArray, owners: IntArray
    ) -> Sequence[FloatArray]:
        """Return remainders of pairs, shape (k, m), at k sets of positions (n, dim)."""

    @abstractmethod
    def _of_all(self, positions: FloatArray) -> Iterator[FloatArray]:
        """Yield remainders at positions (n, dim) for blocks of rows, shape (n, rows)."""


@attrs.frozen(kw_only=True, eq=False)
class LinearExpansion(Expansion):
    """Expansions of the terms w_i f(x_i . q + o_i).

    Parameters
    ----------
    terms
        Family, responses, offsets and weights.
    design : array or sparse array of shape (n_rows, dim)
        x_i.
    predictors : ndarray of shape (n_rows,)
        x_i . centre + o_i.
    """

    terms: LinearTerms
    design: Design
    predictors: FloatArray
    _prepared: tuple[FloatArray, ...] = attrs.field(init=False)

    @_prepared.default
    def _prepare(self) -> tuple[FloatArray, ...]:
        return self.terms.prepare(self.predictors)

    def _of_pairs(
        self, ends: Sequence[FloatArray], rows: IntArray, owners: IntArray
    ) -> Sequence[FloatArray]:
        steps = np.array(ends)
        steps -= self.centre
        prepared = [each.take(rows) for each in self._prepared]
        return list(self._remaining(prepared, along(self.design, rows, owners, steps)))

    def _of_all(self, positions: FloatArray) -> Iterator[FloatArray]:
        steps = positions - self.centre
        for rows, block in blocks(self.design, len(steps)):
            prepared = [each[rows] for each in self._prepared]
            yield self._remaining(prepared, products(block, steps))

    def _remaining(self, prepared: Sequence[FloatArray], steps: FloatArray) -> FloatArray:
        """Return what the expansions leave out, shape (k, m), for steps of the predictors."""
        if steps.size <= _STEPS_AT_ONCE:
            return self.terms.remaining(prepared, steps, self.order)
        found = np.empty(steps.shape)
        width = max(1, _STEPS_AT_ONCE // len(steps))
        for start in range(0, steps.shape[1], width):
            part = slice(start, start + width)
            some = [each[part] for each in prepared]
            found[:, part] = self.terms.remaining(some, steps[:, part], self.order)
        return found
