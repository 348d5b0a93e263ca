"""A regression whose rows are partitions of a Dask collection, and expansions of its terms."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from surrokit import capabilities as can
from surrokit import gaussian_prior, rows_potential
from surrokit.arguments import check_positions
from surrokit.errors import ConfigurationError
from surrokit.potentials import (
    Ball,
    Potential,
    RowExpansion,
    SummedPotential,
    of_order,
    unnormalized_of,
)
from surrokit.predictive.rows import RowPredictor
from surrokit.targets.gaussian import GaussianPrior
from surrokit.types import Capabilities, FloatArray, IntArray
from surrokit_dask.partitions import Form, PartitionDraws, Partitions, read_partitions, select

_FLAT = GaussianPrior(mean=np.zeros(()), sd=np.array(np.inf))

_OFFERED: Capabilities = frozenset(
    {can.GRADIENT, can.GRADIENT_ALONE, can.HESSIAN, can.CONVEX, *can.OF_ROWS}
)


class DaskRegression:
    """U of the coefficients: a sum over the rows of all partitions, and a normal prior.

    Rows stay where they are. Sums travel, and rows that are drawn. Partitions are summed up in
    their order, so that neither the number of workers nor their speed changes a bit.

    Parameters
    ----------
    prior
        Normal; None for a flat one.
    """

    def __init__(self, form: Form, partitions: Partitions, prior: GaussianPrior | None) -> None:
        self.form, self.partitions = form, partitions
        self.prior = _FLAT if prior is None else prior
        like: SummedPotential = form(**partitions.fetch(np.zeros(1, dtype=np.int64)), prior=prior)
        self.dim: int = like.dim
        self.n_rows: int = partitions.n_rows
        self.unnormalized = unnormalized_of(like)
        self.predictor: RowPredictor | None = getattr(like, "predictor", None)
        self.capabilities: Capabilities = (like.capabilities & _OFFERED) | {can.ROWS_DRAWN}

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), at coefficients of shape (n, dim): one pass."""
        b = check_positions(positions, self.dim)
        return self._sum("value", b) + self.prior.value_and_gradient(b)[0]

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U, shape (n,), and its gradient, shape (n, dim): one pass."""
        b = check_positions(positions, self.dim)
        value, gradient = self.prior.value_and_gradient(b)
        for values, gradients in self._each("value_and_gradient", b):
            value, gradient = value + values, gradient + gradients
        return value, gradient

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient of U alone, shape (n, dim): one pass."""
        b = check_positions(positions, self.dim)
        return self._sum("gradient", b) + self.prior.value_and_gradient(b)[1]

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return second derivatives, shape (n, dim, dim): one pass."""
        b = check_positions(positions, self.dim)
        precision = np.broadcast_to(self.prior.sd**-2.0, (self.dim,))
        return self._sum("hessian", b) + np.diag(precision)

    def column_moments(self, rows: IntArray | None = None) -> FloatArray | None:
        """Return the mean of x_i x_i^T over some rows, shape (dim, dim); no prior is in it.

        Rows are fetched, for None as many as a look at the columns takes.
        """
        if rows is None:
            rows = np.linspace(0, self.n_rows - 1, min(self.n_rows, 4096)).astype(np.int64)
        alone: Any = self.select(rows)
        found: FloatArray | None = alone.column_moments()
        return found

    def expand(self, centre: FloatArray, order: int = 2) -> DaskExpansion:
        """Return the expansions of all terms at ``centre (dim,)``: one pass."""
        at = check_positions(np.array(centre, dtype=np.float64)[None], self.dim)[0]
        return DaskExpansion(self, at, order)

    def row_bounds(
        self, factor: FloatArray, order: int = 2, ball: Ball | None = None
    ) -> FloatArray:
        """Return psi_i, shape (n_rows,): all of them travel, as they do not for draws."""
        bounds = partial(_bounds, factor=factor, order=order, ball=ball)
        return np.concatenate(self.partitions.map(bounds))

    def row_draws(
        self, factor: FloatArray, order: int = 2, ball: Ball | None = None
    ) -> PartitionDraws:
        """Return draws of rows by their bounds, which stay where the rows are: one pass."""
        bounds = partial(_bounds, factor=factor, order=order, ball=ball)
        return PartitionDraws(self.partitions, self.partitions.delayed(bounds))

    def select(self, rows: IntArray) -> Potential:
        """Return the sum of some rows' terms alone, fetched, without the prior."""
        distinct, places = np.unique(np.asarray(rows, dtype=np.int64), return_inverse=True)
        return self.form(**select(self.partitions.fetch(distinct), places))

    def _each(self, method: str, positions: FloatArray) -> list[Any]:
        return self.partitions.map(lambda block: getattr(block.potential, method)(positions))

    def _sum(self, method: str, positions: FloatArray) -> FloatArray:
        return np.asarray(sum(self._each(method, positions)), dtype=np.float64)


def _bounds(block: Any, factor: FloatArray, order: int, ball: Ball | None) -> FloatArray:
    return np.asarray(block.potential.row_bounds(factor, **of_order(order, ball)))


class DaskExpansion:
    """Expansions of all terms at one point: sums of all rows, and the rows that were fetched."""

    def __init__(self, target: DaskRegression, centre: FloatArray, order: int) -> None:
        self._target, self.centre, self._order = target, centre, of_order(order)
        self._local: RowExpansion | None = None
        self._of: Any = None  # the columns that it was made of
        settings = self._order

        def sums(block: Any) -> tuple[Any, ...]:
            found = block.potential.expand(centre, **settings)
            return found.value(centre[None])[0], found.gradient, found.hessian, found.third

        level, gradient, hessian, third = zip(*target.partitions.map(sums), strict=True)
        self._level = float(sum(level))
        self.gradient: FloatArray = np.asarray(sum(gradient))
        self.hessian: FloatArray = np.asarray(sum(hessian))
        self.third: FloatArray | None = np.asarray(sum(third)) if order == 3 else None

    def value(self, positions: FloatArray) -> FloatArray:
        """Return V, shape (n,), at positions of shape (n, dim); nothing travels."""
        h = positions - self.centre
        slopes = self.gradient + 0.5 * h @ self.hessian
        if self.third is not None:
            dim = len(self.centre)
            matrices = (h @ self.third.reshape(dim, -1)).reshape(-1, dim, dim)
            slopes += np.einsum("nij,nj->ni", matrices, h) / 6.0
        total = np.einsum("ni,ni->n", slopes, h) + self._level
        return np.asarray(total + self._target.prior.value_and_gradient(positions)[0])

    def remainders(self, positions: FloatArray, rows: IntArray, owners: IntArray) -> FloatArray:
        """Return D_i(q), shape (m,), for pairs of a row and a position."""
        places = self._target.partitions.places(rows)
        return self._expanded().remainders(positions, places, owners)

    def _expanded(self) -> RowExpansion:
        """Return the expansions of the rows that are here."""
        columns = self._target.partitions.columns
        if self._local is None or self._of is not columns:
            self._of = columns
            self._local = self._target.form(**columns).expand(self.centre, **self._order)
        return self._local


def dask_regression(
    family: Any,
    design: Any,
    response: Any,
    *,
    prior: GaussianPrior | float | None = None,
    offset: Any = None,
    weights: Any = None,
    event: Any = None,
    scale: float | None = None,
    degrees: float | None = None,
    size: float | None = None,
    shape: float | None = None,
    persist: bool | None = None,
) -> DaskRegression:
    """Return a regression on a Dask array or dataframe of any length.

    Parameters
    ----------
    family
        As :func:`surrokit.rows_potential` takes it; not ``"multinomial"`` or
        ``"ordinal"``.
    design
        Dask array of shape (n, dim); or dataframe, whose columns are covariates, but for those that
        are named below.
    response, offset, weights, event
        Dask arrays or series with partitions like the design's; or names of its columns.
    prior, scale, degrees, size, shape
        As for a regression on arrays; all but the prior are positive.
    persist
        Whether rows are kept in the memory of workers. Where they are not they are read again in
        each pass. Left out, they are if there is a distributed client.

    Raises
    ------
    MissingDependencyError
        If Dask is not installed.
    ConfigurationError
        If settings make no sense.
    ShapeError
        If partitions do not fit each other, or hold no row.
    """
    if family in ("multinomial", "ordinal"):
        raise ConfigurationError(
            f"the family of partitioned rows cannot be {family!r}, as a partition may lack a "
            "class; give the rows as arrays"
        )
    given = {"scale": scale, "degrees": degrees, "size": size, "shape": shape}
    settings = {name: number for name, number in given.items() if number is not None}
    columns = {"response": response, "offset": offset, "weights": weights, "event": event}
    others = {name: column for name, column in columns.items() if column is not None}
    form: Form = partial(rows_potential, family, **settings)
    partitions = read_partitions(form, design, others, persist)
    normal = gaussian_prior(0.0, prior) if isinstance(prior, int | float) else prior
    return DaskRegression(form, partitions, normal)
