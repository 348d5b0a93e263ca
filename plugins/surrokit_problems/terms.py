"""What sums over rows are made of: terms of a linear predictor for each row, and a normal prior."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar, TypeAlias

import attrs
import numpy as np

from surrokit import gaussian_prior
from surrokit.contracts.rows import USUAL_ORDER
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.targets.gaussian import GaussianPrior
from surrokit.types import FloatArray, IntArray
from surrokit_problems.families import Family

Rows: TypeAlias = slice | IntArray
"""Which rows."""

USUAL_PRIOR = gaussian_prior(0.0, 10.0)
"""Of every coefficient, as in section 5.1 of Zhang, Shahbaba and Zhao (2017)."""


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
