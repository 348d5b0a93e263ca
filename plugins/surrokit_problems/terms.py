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


@attrs.frozen(kw_only=True, eq=False)
class NormalPrior:
    """Minus the log density of independent normal coefficients; a flat one counts as 1.

    ``mean`` and ``precision`` have shape (dim,), with a precision of 0 for a flat one.
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
    ``offset`` and ``weights``, o_i and w_i, are None for zeros and ones.
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
        found = self.family.value(e, beside(self.response[rows], e))
        return weighed(found, self.weights, rows)

    def first(self, e: FloatArray, rows: Rows) -> FloatArray:
        """Return first derivatives in e."""
        found = self.family.first(e, beside(self.response[rows], e))
        return weighed(found, self.weights, rows)

    def second(self, e: FloatArray, rows: Rows) -> FloatArray:
        """Return second derivatives in e."""
        found = self.family.second(e, beside(self.response[rows], e))
        return weighed(found, self.weights, rows)

    def third(self, e: FloatArray) -> FloatArray:
        """Return third derivatives in the predictors of all rows, of a family that has them."""
        assert self.family.third is not None
        return weighed(self.family.third(e, self.response), self.weights)

    def bounds(self, e: FloatArray, reach: FloatArray, order: int) -> FloatArray:
        """Return bounds of the derivatives after an order, for all rows: shape (n_rows,)."""
        return weighed(self.family.bounds(e, self.response, reach, order), self.weights)

    def remaining(self, e: FloatArray, rows: Rows, steps: FloatArray, order: int) -> FloatArray:
        """Return what expansions leave out, shape (k, m), for steps (k, m) from e of m rows."""
        found = self.family.remaining(e, self.response[rows], steps, order)
        return found if self.weights is None else np.asarray(found * self.weights[rows])


def weighed(found: FloatArray, weights: FloatArray | None, rows: Rows = slice(None)) -> FloatArray:
    """Return numbers of rows, shape (rows, ...), times the weights of these."""
    return found if weights is None else np.asarray(found * beside(weights[rows], found))


def beside(column: FloatArray, results: FloatArray) -> FloatArray:
    """Return numbers of rows, shape (rows,), in a shape that goes with results (rows, ...)."""
    return column.reshape(-1, *[1] * (results.ndim - 1))


@attrs.frozen(kw_only=True, eq=False)
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

    ``predictors (n_rows,)`` are those at the centre.
    """

    terms: LinearTerms
    design: Design
    predictors: FloatArray

    def _of_pairs(
        self, ends: Sequence[FloatArray], rows: IntArray, owners: IntArray
    ) -> Sequence[FloatArray]:
        steps = along(self.design, rows, owners, np.array(ends) - self.centre)
        return list(self._remaining(rows, steps))

    def _of_all(self, positions: FloatArray) -> Iterator[FloatArray]:
        steps = positions - self.centre
        for rows, block in blocks(self.design, len(steps)):
            yield self._remaining(rows, products(block, steps))

    def _remaining(self, rows: Rows, steps: FloatArray) -> FloatArray:
        return self.terms.remaining(self.predictors[rows], rows, steps, self.order)
