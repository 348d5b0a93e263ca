"""A regression whose rows are partitions of a Dask collection, and expansions of its terms."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit import gaussian_prior
from surrokit.arguments import check_positions
from surrokit.errors import ConfigurationError, ShapeError
from surrokit.potentials import (
    Ball,
    Potential,
    RowExpansion,
    SummedPotential,
    of_order,
    unnormalized_of,
)
from surrokit.predictive.rows import RowPredictor
from surrokit.shown.target import ShownTarget
from surrokit.targets.gaussian import GaussianPrior
from surrokit.types import Capabilities, FloatArray, IntArray
from surrokit_dask.draws import PartitionDraws, Store
from surrokit_dask.partitions import Block, Family, Partitions, import_dask, partitions_of

_LOOK = 4096  # rows by which scales of columns are judged
_FLAT = GaussianPrior(mean=np.zeros(()), sd=np.array(np.inf))

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
        self._prior = _FLAT if prior is None else prior

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
        return self._sum("value", b) + self._prior.value_and_gradient(b)[0]

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U, shape (n,), and its gradient, shape (n, dim): one pass."""
        b = check_positions(positions, self.dim)
        value, gradient = self._prior.value_and_gradient(b)
        for values, gradients in self._partitions.evaluate("value_and_gradient", b):
            value, gradient = value + values, gradient + gradients
        return value, gradient

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient of U alone, shape (n, dim): one pass."""
        b = check_positions(positions, self.dim)
        return self._sum("gradient", b) + self._prior.value_and_gradient(b)[1]

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return second derivatives, shape (n, dim, dim): one pass."""
        b = check_positions(positions, self.dim)
        precision = np.broadcast_to(self._prior.sd**-2.0, (self.dim,))
        return self._sum("hessian", b) + np.diag(precision)

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
        level, gradient, hessian, third = zip(
            *self._partitions.map(_expand, at, order), strict=True
        )
        return DaskExpansion(
            partitions=self._partitions,
            family=self._family,
            prior=self._prior,
            store=self._store,
            centre=at,
            order=order,
            level=float(sum(level)),
            gradient=np.asarray(sum(gradient)),
            hessian=np.asarray(sum(hessian)),
            third=np.asarray(sum(third)) if order == 3 else None,
        )

    def row_bounds(
        self, factor: FloatArray, order: int = 2, ball: Ball | None = None
    ) -> FloatArray:
        """Return psi_i, shape (n_rows,): all of them travel, as they do not for draws."""
        found = self._partitions.map(_bounds, np.asarray(factor), order, ball)
        return np.concatenate(found)

    def row_draws(
        self, factor: FloatArray, order: int = 2, ball: Ball | None = None
    ) -> PartitionDraws:
        """Return draws of rows by their bounds, which stay where the rows are: one pass."""
        bounds = self._partitions.delayed(_bounds, np.asarray(factor), order, ball)
        return PartitionDraws(self._partitions, bounds, self._store, self._ahead)

    def select(self, rows: IntArray) -> Potential:
        """Return the sum of some rows' terms alone, fetched, without the prior."""
        distinct, places = np.unique(np.asarray(rows, dtype=np.int64), return_inverse=True)
        return self._family.potential(self._partitions.fetch(distinct).select(places))

    def _sum(self, method: str, positions: FloatArray) -> FloatArray:
        """Return what a method gives for all partitions, added up in their order."""
        return np.asarray(sum(self._partitions.evaluate(method, positions)), dtype=np.float64)


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
    kind = Family(family, settings)
    partitions = partitions_of(kind, design, others, persist)
    normal = gaussian_prior(0.0, prior) if isinstance(prior, int | float) else prior
    return DaskRegression(kind, partitions, normal, ahead)


def _expand(block: Block, centre: FloatArray, order: int) -> tuple[Any, ...]:
    """Return the sums of a partition's terms at a point, and of their derivatives."""
    found = block.potential.expand(centre, **of_order(order))
    return float(found.value(centre[None])[0]), found.gradient, found.hessian, found.third


def _bounds(block: Block, factor: FloatArray, order: int, ball: Ball | None) -> FloatArray:
    """Return psi, shape (rows,)."""
    return np.asarray(block.potential.row_bounds(factor, **of_order(order, ball)))


def _increases(
    block: Block, centre: FloatArray, order: int, before: FloatArray, after: FloatArray
) -> Any:
    return block.potential.expand(centre, **of_order(order)).increases(before, after)


@attrs.define(kw_only=True, eq=False)
class DaskExpansion:
    """Expansions of all terms at one point: sums of all rows, and the rows that were fetched."""

    partitions: Partitions
    family: Family
    prior: GaussianPrior  # kept as it is
    store: Store
    centre: FloatArray  # where the terms were expanded
    order: int
    level: float  # sum of the terms there, in nats
    gradient: FloatArray  # and so are these sums of their derivatives
    hessian: FloatArray
    third: FloatArray | None  # if the order is 3
    _local: RowExpansion | None = attrs.field(default=None, init=False)
    _version: int = attrs.field(default=-1, init=False)

    def value(self, positions: FloatArray) -> FloatArray:
        """Return V, shape (n,), at positions of shape (n, dim); nothing travels."""
        h = positions - self.centre
        slopes = self.gradient + 0.5 * h @ self.hessian
        if self.third is not None:
            dim = len(self.centre)
            matrices = (h @ self.third.reshape(dim, -1)).reshape(-1, dim, dim)
            slopes += np.einsum("nij,nj->ni", matrices, h) / 6.0
        total = np.einsum("ni,ni->n", slopes, h) + self.level
        return np.asarray(total + self.prior.value_and_gradient(positions)[0])

    def remainders(self, positions: FloatArray, rows: IntArray, owners: IntArray) -> FloatArray:
        """Return D_i(q), shape (m,), for pairs of a row and a position."""
        places = self.store.places(rows)
        return self._expanded().remainders(positions, places, owners)

    def changes(
        self, before: FloatArray, after: FloatArray, rows: IntArray, owners: IntArray
    ) -> FloatArray:
        """Return D_i(q') - D_i(q), shape (m,), for pairs of a row and a move."""
        places = self.store.places(rows)
        return self._expanded().changes(before, after, places, owners)

    def increases(self, before: FloatArray, after: FloatArray) -> FloatArray:
        """Return sum_i max(0, D_i(q') - D_i(q)) over all rows, shape (n,): one pass."""
        found = self.partitions.map(_increases, self.centre, self.order, before, after)
        return np.asarray(sum(found), dtype=np.float64)

    def _expanded(self) -> RowExpansion:
        """Return the expansions of the rows that are here."""
        if self._local is None or self._version != self.store.version:
            potential = self.family.potential(self.store.columns)
            self._local = potential.expand(self.centre, **of_order(self.order))
            self._version = self.store.version
        return self._local
