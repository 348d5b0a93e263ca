"""The rows that a process is conditioned on."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.errors import SurrogateFitError
from surrokit.interfaces import Evaluations
from surrokit.surrogate.training import Groups, Tail, are_finite, are_near
from surrokit.types import BoolArray, FloatArray, IntArray

_RAN_AWAY = 1e4
"""Distance from the median, in median distances, beyond which a point is no draw of anything."""

_USELESS = 20.0
"""Excess over the least U, in typical ones, from which on a row is left out."""

_TAIL_SHARE = 0.1
"""Part of the excess over the least U that a far-tail row may be off by, for each typical one."""


@attrs.frozen(kw_only=True, eq=False)
class TrainingRows:
    """Distinct points with finite values, and how well their values are to be met.

    A value is met up to noise of variance sigma^2 / copies + tail_sd^2.

    Parameters
    ----------
    positions : ndarray of shape (n, dim)
        Distinct positions, in an order that does not depend on that in which they came.
    values : ndarray of shape (n,)
        U there; the mean where it was evaluated several times.
    gradients : ndarray of shape (n, dim)
        Gradients of U; rows of NaN where none was paid for.
    copies : ndarray of shape (n,)
        How often the position was seen.
    tail_sd : ndarray of shape (n,)
        Noise of a far-tail row's own, in nats; 0 for the others.
    """

    positions: FloatArray
    values: FloatArray
    gradients: FloatArray
    copies: FloatArray
    tail_sd: FloatArray

    def __len__(self) -> int:
        return len(self.values)

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return int(self.positions.shape[1])

    @property
    def with_gradient(self) -> BoolArray:
        """Which rows have a gradient, shape (n,)."""
        return np.asarray(np.isfinite(self.gradients).all(axis=1))

    @property
    def evaluations(self) -> Evaluations:
        """The rows as exact evaluations."""
        return Evaluations(positions=self.positions, values=self.values, gradients=self.gradients)

    def take(self, rows: IntArray | BoolArray) -> TrainingRows:
        """Return the rows chosen by an index or a mask."""
        return TrainingRows(**{name: array[rows] for name, array in attrs.asdict(self).items()})

    def draw(
        self, number: int, rng: np.random.Generator, among: IntArray | None = None
    ) -> IntArray:
        """Return rows drawn at random, those in the far tail only after all others.

        Parameters
        ----------
        number
            How many, at most as many as there are.
        rng
            Draws them.
        among : ndarray of shape (m,), optional
            From which; None for all.

        Returns
        -------
        ndarray of shape (number,)
            In increasing order.
        """
        order = rng.permutation(len(self) if among is None else among)
        last = np.argsort(self.tail_sd[order] > 0.0, kind="stable")
        return np.sort(order[last[:number]])

    def spread(self) -> FloatArray:
        """Return how much each row counts for the covariance of positions, shape (n,)."""
        return np.asarray(1.0 / (1.0 + np.square(self.tail_sd / typical_excess(self.dim))))

    @classmethod
    def of(cls, observed: Evaluations, tail: Tail) -> TrainingRows:
        """Sort out what was observed.

        Dropped are rows whose value is not finite (failed evaluations, points outside the
        support), and points that ran away, more than 10^4 median distances from the median in
        some coordinate. Repeats of a position, such as a chain's rejections leave behind, become
        one row with less noise.

        A GP with little noise would bend to the steep start of a burn-in wherever it lies, so
        with ``tail="down-weighted"`` a row whose U exceeds the least value by e, more than
        c = 2 dim + 10, gets noise of its own with standard deviation (e^2 / c - c) / 10 nats. c
        covers what is typical of a posterior (about dim / 2). Beyond 20 c, where a row says
        nothing any more, it is left out, as long as 2 dim + 4 rows remain.

        Parameters
        ----------
        observed
            Everything observed.
        tail
            Whether far-tail rows count less.
        """
        rows = observed.take(are_finite(observed))
        if len(rows):
            rows = rows.take(are_near(rows.positions, _RAN_AWAY))
        distinct = cls._distinct(rows)
        if tail == "full" or not len(distinct):
            return distinct
        with np.errstate(over="ignore"):
            excess = distinct.values - distinct.values.min()
            typical = typical_excess(distinct.dim)
            tail_sd = _TAIL_SHARE * (np.maximum(excess, typical) ** 2 / typical - typical)
        spared = np.sort(excess)[: 2 * distinct.dim + 4][-1]
        kept = np.flatnonzero(excess <= max(_USELESS * typical, spared))
        weighted = attrs.evolve(distinct, tail_sd=np.minimum(tail_sd, 1e100))
        return weighted.take(kept)

    @classmethod
    def _distinct(cls, rows: Evaluations) -> TrainingRows:
        positions = rows.positions + 0.0  # -0 becomes 0
        groups = Groups.of(positions, rows.weights)
        first, group = groups.first, groups.group
        # Relative to the first value, so that equal values have just that mean.
        origin = rows.values[first]
        with np.errstate(over="ignore", invalid="ignore"):
            apart = rows.values - origin[group]
            counted = apart if rows.weights is None else apart * rows.weights
            beyond = np.bincount(group, counted, minlength=len(first))
        return cls(
            positions=positions[first],
            values=origin + np.where(np.isfinite(beyond), beyond, 0.0) / groups.copies,
            gradients=np.full_like(positions[first], np.nan)
            if rows.gradients is None
            else groups.first_known(rows.gradients),
            copies=groups.copies,
            tail_sd=np.zeros(len(first)),
        )

    def demand(self, least: int, n_observed: int, advice: str = "") -> None:
        """Raise unless there are enough points.

        Parameters
        ----------
        least
            How many a fit needs.
        n_observed
            How many rows were observed in all.
        advice
            What else would help.

        Raises
        ------
        SurrogateFitError
            If there are fewer.
        """
        if len(self) < least:
            raise SurrogateFitError(
                f"a Gaussian process in {self.dim} dimensions needs at least {least} distinct "
                f"points with a finite value, got {len(self)} ({n_observed} rows were observed); "
                f"explore for longer, {advice}or give evaluations that are already paid for as "
                "warm_start"
            )


def demand_range(values: FloatArray) -> None:
    """Raise if values, shape (n,), are so far apart that their squares overflow.

    Raises
    ------
    SurrogateFitError
        If they are.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        total = np.square(values - values.min()).sum()
    if not np.isfinite(total):
        raise SurrogateFitError(
            f"the values of the training rows range over [{values.min():.3g}, {values.max():.3g}], "
            "and their squares overflow; rescale U, or explore until the chains have settled"
        )


def typical_excess(dim: int) -> float:
    """Return how far above the least U draws from a posterior may well lie, in nats."""
    return 2.0 * dim + 10.0
