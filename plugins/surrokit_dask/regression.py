"""A regression whose rows are partitions of a Dask collection."""

from __future__ import annotations

from typing import Any

import numpy as np

from surrokit import capabilities as can
from surrokit import gaussian_prior
from surrokit.arguments import check_positions
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.potentials import Ball, Potential, SummedPotential, unnormalized_of
from surrokit.predictive.rows import RowPredictor
from surrokit.shown.target import ShownTarget
from surrokit.targets.gaussian import GaussianPrior
from surrokit.types import Capabilities, FloatArray, IntArray
from surrokit_dask import tasks
from surrokit_dask.block import Family
from surrokit_dask.draws import PartitionDraws
from surrokit_dask.expansion import DaskExpansion, Rest
from surrokit_dask.partitions import Partitions, import_dask, partitions_of
from surrokit_dask.store import Store

_LOOK = 4096  # rows by which scales of columns are judged

_OFFERED: Capabilities = frozenset(
    {can.GRADIENT, can.GRADIENT_ALONE, can.HESSIAN, can.CONVEX, *can.OF_ROWS}
)
AHEAD = 4096
"""Rows that are drawn ahead of time, unless told otherwise."""


class DaskRegression(ShownTarget):
    """U of the coefficients: a sum over the rows of all partitions, and a normal prior.

    Rows stay where they are. Sums travel, and rows that are drawn. Partitions are summed up in
    their order, so that neither the number of workers nor their speed changes a bit.

    Parameters
    ----------
    family
        Which regression it is.
    partitions
        The rows.
    prior
        Normal; None for a flat one.
    ahead
        Rows that are drawn ahead of time.
    """

    def __init__(
        self, family: Family, partitions: Partitions, prior: GaussianPrior | None, ahead: int
    ) -> None:
        self._family, self._partitions, self._ahead = family, partitions, ahead
        self._store = Store(partitions.fetch)
        first = partitions.fetch(np.zeros(1, dtype=np.int64))
        like: SummedPotential = family.potential(first, prior)
        self.dim: int = like.dim
        self.unnormalized = unnormalized_of(like)
        """What may lack its normalising constant."""
        self._predictor: RowPredictor | None = getattr(like, "predictor", None)
        self._capabilities = (like.capabilities & _OFFERED) | {can.ROWS_DRAWN}
        self._rest = _rest(prior, self.dim)

    @property
    def n_rows(self) -> int:
        """Number of terms."""
        return self._partitions.n_rows

    @property
    def predictor(self) -> RowPredictor | None:
        """What predicts responses of new rows, as arrays in memory."""
        return self._predictor

    @property
    def capabilities(self) -> Capabilities:
        """What it offers besides the value."""
        return self._capabilities

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), at coefficients of shape (n, dim): one pass."""
        b = check_positions(positions, self.dim)
        return self._partitions.sum("value", b) + self._rest.value(b)

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U, shape (n,), and its gradient, shape (n, dim): one pass."""
        b = check_positions(positions, self.dim)
        value, gradient = self._rest.value(b), self._rest.gradient(b)
        found = self._partitions.map(tasks.evaluate, "value_and_gradient", b)
        for some in found:
            if isinstance(some, tuple):
                value, gradient = value + some[0], gradient + some[1]
        return value, gradient

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient of U alone, shape (n, dim): one pass."""
        b = check_positions(positions, self.dim)
        return self._partitions.sum("gradient", b) + self._rest.gradient(b)

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return second derivatives, shape (n, dim, dim): one pass."""
        b = check_positions(positions, self.dim)
        return self._partitions.sum("hessian", b) + np.diag(self._rest.precision)

    def column_moments(self, rows: IntArray | None = None) -> FloatArray | None:
        """Return the mean of x_i x_i^T over some rows, shape (dim, dim); no prior is in it.

        Parameters
        ----------
        rows : ndarray of int, shape (m,), optional
            Rows that are fetched; None for as many as a look at the columns takes.
        """
        if rows is None:
            rows = np.linspace(0, self.n_rows - 1, min(self.n_rows, _LOOK)).astype(np.int64)
        alone: Any = self.select(rows)
        found: FloatArray | None = alone.column_moments()
        return found

    def expand(self, centre: FloatArray, order: int = 2) -> DaskExpansion:
        """Return the expansions of all terms at ``centre (dim,)``: one pass.

        Raises
        ------
        ShapeError
            If the centre is not one position.
        """
        at = np.array(centre, dtype=np.float64)
        if at.shape != (self.dim,):
            raise ShapeError(f"centre must have shape ({self.dim},), got {at.shape}")
        sums = [each for each in self._partitions.map(tasks.expand, at, order) if each is not None]
        return DaskExpansion(
            partitions=self._partitions,
            family=self._family,
            rest=self._rest,
            store=self._store,
            centre=at,
            order=order,
            level=float(sum(each.value for each in sums)),
            gradient=np.asarray(sum(each.gradient for each in sums)),
            hessian=np.asarray(sum(each.hessian for each in sums)),
            third=np.asarray(sum(each.third for each in sums)) if order == 3 else None,
        )

    def row_bounds(
        self, factor: FloatArray, order: int = 2, ball: Ball | None = None
    ) -> FloatArray:
        """Return psi_i, shape (n_rows,): all of them travel, as they do not for draws."""
        found = self._partitions.map(tasks.bounds, np.asarray(factor), order, ball)
        return np.concatenate(found)

    def row_draws(
        self, factor: FloatArray, order: int = 2, ball: Ball | None = None
    ) -> PartitionDraws:
        """Return draws of rows by their bounds, which stay where the rows are: one pass."""
        bounds = self._partitions.delayed(tasks.bounds, np.asarray(factor), order, ball)
        return PartitionDraws(self._partitions, bounds, self._store, self._ahead)

    def select(self, rows: IntArray) -> Potential:
        """Return the sum of some rows' terms alone, fetched, without the prior."""
        distinct, places = np.unique(np.asarray(rows, dtype=np.int64), return_inverse=True)
        return self._family.potential(self._partitions.fetch(distinct).select(places))


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
    ahead: int = AHEAD,
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
    ahead
        Rows that are drawn ahead of time, at least 1. Where rows are read again, one pass
        serves as many.

    Raises
    ------
    ConfigurationError
        If Dask is not installed, or settings make no sense.
    ShapeError
        If partitions do not fit each other, or hold no row.
    """
    import_dask()
    if family in ("multinomial", "ordinal"):
        raise ConfigurationError(
            f"the family of partitioned rows cannot be {family!r}, as a partition may lack a "
            "class; give the rows as arrays"
        )
    if ahead < 1:
        raise ConfigurationError(f"ahead must be at least 1, got {ahead}")
    given = {"scale": scale, "degrees": degrees, "size": size, "shape": shape}
    settings = {name: number for name, number in given.items() if number is not None}
    columns = {"response": response, "offset": offset, "weights": weights, "event": event}
    others = {name: column for name, column in columns.items() if column is not None}
    kind = Family(name=family, settings=settings)
    partitions = partitions_of(kind, design, others, persist)
    normal = gaussian_prior(0.0, prior) if isinstance(prior, int | float) else prior
    return DaskRegression(kind, partitions, normal, ahead)


def _rest(prior: GaussianPrior | None, dim: int) -> Rest:
    if prior is None:
        return Rest(mean=np.zeros(dim), precision=np.zeros(dim))
    return Rest(
        mean=np.broadcast_to(prior.mean, (dim,)).copy(),
        precision=np.broadcast_to(prior.sd**-2.0, (dim,)).copy(),
    )
