"""A target that sums a user's terms over rows."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np

from surrokit import capabilities as can
from surrokit import gaussian_prior
from surrokit.arguments import check_positions
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.potentials import Ball, check_ball
from surrokit.shown.target import ShownTarget
from surrokit.targets.gaussian import GaussianPrior
from surrokit.types import Capabilities, FloatArray, IntArray
from surrokit_problems.rows.normal_prior import NormalPrior
from surrokit_problems.rows.own.bound import RowBound, RowBounds, bound_of
from surrokit_problems.rows.own.expansion import OwnExpansion
from surrokit_problems.rows.own.row_data import RowData
from surrokit_problems.rows.own.row_functions import RowFunction, RowFunctions, from_jax

BLOCK = 65_536
"""Rows that a function is given at once."""


class OwnRows(ShownTarget):
    """U(q) = -sum_i l_i(q) - log prior(q) for log-likelihood terms l_i that a user wrote.

    Parameters
    ----------
    functions
        Terms and derivatives.
    data
        A row for each term.
    prior
        Of the position.
    bound
        Of third derivatives; None if there is none.
    """

    def __init__(
        self,
        functions: RowFunctions,
        data: RowData,
        prior: NormalPrior,
        bound: RowBounds | None,
    ) -> None:
        self._functions, self._data = functions, data
        self._prior, self._bound = prior, bound

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self._functions.dim

    @property
    def n_rows(self) -> int:
        """Number of terms."""
        return len(self._data)

    @property
    def unnormalized(self) -> tuple[str, ...]:
        """What may lack its normalising constant: the terms, and a flat prior."""
        return ("terms", *self._prior.unnormalized)

    @property
    def observed_data(self) -> dict[str, Any]:
        """The data that were given, which no one but the user's function tells apart."""
        return self._data.by_name

    @property
    def capabilities(self) -> Capabilities:
        """Gradient and Hessian if these were given; ``rows`` with a bound beside."""
        offered: set[str] = set()
        if self._functions.gradient is not None:
            offered |= {can.GRADIENT, can.GRADIENT_ALONE}
            offered |= set() if self._functions.hessian is None else {can.HESSIAN}
        if can.HESSIAN in offered and self._bound is not None:
            offered |= {can.ROWS, can.ROWS_IN_BALLS} if self._bound.local else {can.ROWS}
        return frozenset(offered)

    @property
    def missing(self) -> Mapping[str, str]:
        """Why it has no ``rows``, if it has none."""
        if can.ROWS in self.capabilities:
            return {}
        lacking = [
            *(["gradient= and hessian= (or derivatives='jax')"] * (not self._has_hessian)),
            *(["bound=, of third derivatives"] * (self._bound is None)),
        ]
        return {
            can.ROWS: "its rows cannot stand for all of them, as rows_potential was given no "
            + ", and no ".join(lacking)
        }

    @property
    def _has_hessian(self) -> bool:
        return self._functions.gradient is not None and self._functions.hessian is not None

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), at positions of shape (n, dim)."""
        b = check_positions(positions, self.dim)
        total = self._prior.value(b)
        for part, rows in self._data.blocks(BLOCK):
            n = part.stop - part.start
            total += [self._functions.values_at(q, rows, n).sum() for q in b]
        return total

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U, shape (n,), and its gradient, shape (n, dim)."""
        return self.value(positions), self.gradient(positions)

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient of U alone, shape (n, dim)."""
        b = check_positions(positions, self.dim)
        total = self._prior.gradient(b)
        for part, rows in self._data.blocks(BLOCK):
            n = part.stop - part.start
            for one, q in zip(total, b, strict=True):
                one += self._functions.gradients_at(q, rows, n).sum(axis=0)
        return total

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return second derivatives, shape (n, dim, dim)."""
        b = check_positions(positions, self.dim)
        total = np.tile(np.diag(self._prior.precision), (len(b), 1, 1))
        for part, rows in self._data.blocks(max(1, BLOCK // self.dim)):
            n = part.stop - part.start
            for one, q in zip(total, b, strict=True):
                one += self._functions.hessians_at(q, rows, n).sum(axis=0)
        return total

    def column_moments(self, rows: IntArray | None = None) -> FloatArray | None:
        """Return the mean Hessian of terms at the origin and of the prior, shape (dim, dim).

        None where there are no Hessians, or it is not positive semidefinite.

        Parameters
        ----------
        rows : ndarray of int, shape (m,), optional
            Rows that it is the mean over; None for all.
        """
        if not self._has_hessian:
            return None
        alone = self.select(np.arange(self.n_rows) if rows is None else rows)
        with np.errstate(all="ignore"):
            total = alone.hessian(np.zeros((1, self.dim)))[0] / alone.n_rows
        found = total + np.diag(self._prior.precision) / self.n_rows
        if not np.isfinite(found).all() or (np.linalg.eigvalsh(found) < 0.0).any():
            return None
        return np.asarray(found)

    def expand(self, centre: FloatArray) -> OwnExpansion:
        """Return the expansions of all terms at ``centre (dim,)``, to second order.

        Raises
        ------
        ShapeError
            If the centre is not one position.
        """
        at = np.array(centre, dtype=np.float64)
        if at.shape != (self.dim,):
            raise ShapeError(f"centre must have shape ({self.dim},), got {at.shape}")
        alone = self.select(np.arange(self.n_rows))
        return OwnExpansion(
            functions=self._functions,
            data=self._data,
            prior=self._prior,
            centre=at,
            gradient=alone.gradient(at[None])[0],
            hessian=alone.hessian(at[None])[0],
            level=float(self.value(at[None])[0]),
        )

    def row_bounds(self, factor: FloatArray, ball: Ball | None = None) -> FloatArray:
        """Return psi_i, shape (n_rows,), from the bound that was given.

        Raises
        ------
        ConfigurationError
            If the bound holds in balls, and none is given; or if a function of bounds returns what
            is none.
        ShapeError
            If it does not return one for each row.
        """
        assert self._bound is not None
        if self._bound.local:
            ball = check_ball(ball, "terms whose bound is a function")
        return self._bound.of(factor, self._data, ball)

    def select(self, rows: IntArray) -> Self:
        """Return the sum of some rows' terms alone, without the prior."""
        chosen, numbers = copy.copy(self), np.asarray(rows, dtype=np.int64)
        chosen._data = RowData(self._data.take(numbers))
        chosen._prior = NormalPrior.of(None, self.dim)
        chosen._bound = None if self._bound is None else self._bound.select(numbers)
        return chosen


def own_rows(
    terms: RowFunction,
    data: Any,
    *,
    dim: int,
    gradient: RowFunction | None = None,
    hessian: RowFunction | None = None,
    derivatives: Literal["jax"] | None = None,
    bound: RowBound | None = None,
    prior: GaussianPrior | float | None = None,
) -> OwnRows:
    """Return a target that sums a user's log-likelihood terms over rows of data.

    Parameters
    ----------
    terms
        ``terms(q, rows)``: the log likelihood of each of m rows at one position, shape (m,). The
        rows come in the form that ``data`` have, and cannot be written to.
    data
        An array with a row for each term, or several arrays in a tuple or a dictionary.
    dim
        Numbers in a position, at least 1.
    gradient, hessian
        ``gradient(q, rows)`` and ``hessian(q, rows)``: derivatives of the terms in q, shapes
        (m, dim) and (m, dim, dim).
    derivatives
        ``"jax"`` instead of these, for terms written in JAX.
    bound
        Of third derivatives, without which no few rows can stand for all: a number, or one for each
        row, that at every q is at least the absolute third derivative of a term along any direction
        of length 1. Or a function ``bound(rows, factor, centre, radius)``, which returns for each
        of m rows the same along all directions L w with |w| = 1, at all positions
        q = centre + L z with |z| <= radius; L is the factor, shape (dim, dim). Draws are biased,
        without any sign of it, if bounds are too small.
    prior
        Normal; a number is the standard deviation of all of q, about 0; None is flat.

    Raises
    ------
    ConfigurationError
        If settings make no sense together, or JAX is needed and not there.
    ShapeError
        If data do not have one row for each term, or bounds or the prior do not fit.
    """
    if derivatives not in (None, "jax"):
        raise ConfigurationError(f"derivatives must be 'jax' or None, got {derivatives!r}")
    if derivatives == "jax" and (gradient is not None or hessian is not None):
        raise ConfigurationError(
            "derivatives='jax' makes gradient and hessian, got one of these as well; give one or "
            "the other"
        )
    if hessian is not None and gradient is None:
        raise ConfigurationError("hessian goes with gradient, got it alone; give gradient as well")
    if derivatives == "jax":
        functions = from_jax(terms, dim)
    else:
        functions = RowFunctions(dim=dim, terms=terms, gradient=gradient, hessian=hessian)
    rows = RowData(data)
    normal = gaussian_prior(0.0, prior) if isinstance(prior, int | float) else prior
    return OwnRows(functions, rows, NormalPrior.of(normal, dim), bound_of(bound, len(rows)))
