"""The rows that a process is conditioned on, and the equations that they are to its kernel."""

from __future__ import annotations

from functools import cached_property

import attrs
import numpy as np

from surrokit.errors import SurrogateFitError
from surrokit.interfaces import Evaluations
from surrokit.surrogate.training import Groups, Tail, are_finite, are_near
from surrokit.surrogate.whitening import Whitening
from surrokit.types import BoolArray, FloatArray, IntArray
from surrokit_gp.trend import MeanKind, Polynomial, feature_gradients, features

_RAN_AWAY = 1e4  # median distances from the median beyond which a point is no draw of anything
_USELESS = 20.0  # excess over the least U, in typical ones, from which on a row is left out
_TAIL_SHARE = 0.1  # part of it that a far-tail row may be off by, for each typical one


@attrs.frozen(kw_only=True, eq=False)
class TrainingRows:
    """Distinct points with finite values, and how well their values are to be met.

    In an order that does not depend on that in which they came. A value is met up to noise of
    variance sigma^2 / copies + tail_sd^2.
    """

    positions: FloatArray  # (n, dim)
    values: FloatArray  # U (n,); the mean where it was evaluated several times
    gradients: FloatArray  # of U, (n, dim); NaN in rows without
    copies: FloatArray  # number of evaluations, (n,)
    tail_sd: FloatArray  # noise of a far-tail row's own, in nats, (n,); 0 for the others

    def __len__(self) -> int:
        return len(self.values)

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return int(self.positions.shape[1])

    @property
    def with_gradient(self) -> BoolArray:
        """Whether each row has a gradient, shape (n,)."""
        return np.asarray(np.isfinite(self.gradients).all(axis=1))

    def take(self, rows: IntArray | BoolArray) -> TrainingRows:
        """Return the rows chosen by an index or a mask."""
        return TrainingRows(**{name: array[rows] for name, array in attrs.asdict(self).items()})

    def draw(
        self, number: int, rng: np.random.Generator, among: IntArray | None = None
    ) -> IntArray:
        """Return at most so many rows drawn at random ``among (m,)`` some, or all, in order.

        Those in the far tail come only after all others.
        """
        order = rng.permutation(len(self) if among is None else among)
        last = np.argsort(self.tail_sd[order] > 0.0, kind="stable")
        return np.sort(order[last[:number]])

    def spread(self) -> FloatArray:
        """Return the weight of each row in the covariance of positions, shape (n,)."""
        return np.asarray(1.0 / (1.0 + np.square(self.tail_sd / typical_excess(self.dim))))

    @classmethod
    def of(cls, observed: Evaluations, tail: Tail) -> TrainingRows:
        """Return the rows of evaluations that are of use.

        Dropped are rows whose value is not finite (failed evaluations, points outside the
        support), and points that ran away, more than 10^4 median distances from the median in
        some coordinate. Repeats of a position, such as a chain's rejections leave behind, become
        one row with less noise.

        A GP with little noise would bend to the steep start of a burn-in wherever it lies, so
        with ``tail="down-weighted"`` a row whose U exceeds the least value by e, more than
        c = 2 dim + 10, gets noise of its own with standard deviation (e^2 / c - c) / 10 nats. c
        covers what is typical of a posterior (about dim / 2). Beyond 20 c, where a row says
        nothing any more, it is left out, as long as 2 dim + 4 rows remain.
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
        """Raise SurrogateFitError, with advice, unless there are at least so many points."""
        if len(self) < least:
            raise SurrogateFitError(
                f"a Gaussian process in {self.dim} dimensions needs at least {least} distinct "
                f"points with a finite value, got {len(self)} ({n_observed} rows were observed); "
                f"explore for longer, {advice}or pass evaluations that are already paid for"
            )

    def demand_range(self) -> None:
        """Raise SurrogateFitError if values are so far apart that their squares overflow."""
        low, high = self.values.min(), self.values.max()
        with np.errstate(over="ignore", invalid="ignore"):
            total = np.square(self.values - low).sum()
        if not np.isfinite(total):
            raise SurrogateFitError(
                f"the values of the training rows range over [{low:.3g}, {high:.3g}], and their "
                "squares overflow; rescale U, or explore until the chains have settled"
            )


def typical_excess(dim: int) -> float:
    """Return the largest typical height of a posterior's draws above the least U, in nats."""
    return 2.0 * dim + 10.0


@attrs.frozen(kw_only=True, eq=False)
class Frame:
    """The coordinates of a fit.

    The mean function is a polynomial in whitened w = L^-1 (q - mu). The kernel sees z, which is w,
    or q - mu with ``whiten=False``.
    """

    whitening: Whitening
    whiten: bool

    @property
    def kernel(self) -> Whitening:
        """The map from q to z."""
        return self.whitening if self.whiten else self.whitening.shift

    @property
    def chain(self) -> FloatArray:
        """dw/dz, shape (dim, dim)."""
        return np.eye(len(self.whitening.mean)) if self.whiten else self.whitening.inverse


@attrs.frozen(kw_only=True, eq=False)
class Observations:
    """Values, and derivatives at k of the positions, as equations of a process.

    The equations are the n values, then the derivatives in the first coordinate, and so on. The
    noise of a derivative along one length scale is that of the value.
    """

    rows: TrainingRows  # positions z, values less a trend, gradients in z
    kind: MeanKind  # the mean function, a polynomial in w
    chain: FloatArray  # dw/dz, (dim, dim)

    @cached_property
    def gradient_rows(self) -> IntArray:
        """Rows with a gradient, shape (k,)."""
        return np.flatnonzero(self.rows.with_gradient)

    @cached_property
    def basis(self) -> FloatArray:
        """Basis functions at all positions, shape (n, p)."""
        return features(self.kind, self.rows.positions @ self.chain.T)

    @cached_property
    def _basis_gradients(self) -> FloatArray:
        whitened = self.rows.positions[self.gradient_rows] @ self.chain.T
        slopes = feature_gradients(self.kind, whitened)
        return np.asarray(np.einsum("ij,kip->kjp", self.chain, slopes))

    @classmethod
    def of(
        cls, rows: TrainingRows, frame: Frame, kind: MeanKind, trend: Polynomial
    ) -> Observations:
        """Return training rows as equations about a mean function, less a trend in w."""
        kernel, chain = frame.kernel, frame.chain
        z = kernel.apply(rows.positions)
        w = z @ chain.T
        moved = attrs.evolve(
            rows,
            positions=z,
            values=rows.values - trend.value(w),
            gradients=rows.gradients @ kernel.factor - trend.gradient(w) @ chain,
        )
        return cls(rows=moved, kind=kind, chain=chain)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def n_equations(self) -> int:
        """Number of values and derivatives."""
        return len(self) + len(self.gradient_rows) * self.rows.dim

    def take(self, rows: IntArray) -> Observations:
        """Return the equations of some positions, shape (m,)."""
        return Observations(rows=self.rows.take(rows), kind=self.kind, chain=self.chain)

    def near(self) -> Observations:
        """Return the equations of positions that are not in the far tail, if there are two."""
        rows = np.flatnonzero(self.rows.tail_sd == 0.0)
        return self if len(rows) in (0, 1, len(self)) else self.take(rows)

    def size_left(self) -> float:
        """Return the root mean square of what a constant and the basis leave of the values.

        Without the far tail; zero where there are no more values than basis functions.
        """
        near = self.near()
        basis = np.column_stack([np.ones(len(near)), near.basis])
        if basis.shape[1] >= len(near):
            return 0.0
        values = near.rows.values
        left = values - basis @ np.linalg.lstsq(basis, values, rcond=None)[0]
        return float(np.sqrt(np.mean(np.square(left))))

    def noise(self, noise_sd: float) -> FloatArray:
        """Return the variance of each equation's noise in x = z / l, shape (n_equations,)."""
        return self.noise_shares() * noise_sd**2 + self._stack(np.square(self.rows.tail_sd))

    def noise_shares(self) -> FloatArray:
        """Return the share of sigma^2 that each equation has, shape (n_equations,)."""
        return self._stack(1.0 / self.rows.copies)

    def _stack(self, by_row: FloatArray) -> FloatArray:
        return np.concatenate([by_row, np.tile(by_row[self.gradient_rows], self.rows.dim)])

    def targets(self, length_scales: FloatArray) -> FloatArray:
        """Return values and derivatives in x, shape (n_equations,)."""
        gradients = self.rows.gradients[self.gradient_rows] * length_scales
        return np.concatenate([self.rows.values, gradients.T.ravel()])

    def design(self, length_scales: FloatArray) -> FloatArray:
        """Return the basis functions and their derivatives in x, shape (n_equations, p)."""
        gradients = (self._basis_gradients * length_scales[:, None]).transpose(1, 0, 2)
        n = len(self.gradient_rows) * self.rows.dim
        return np.concatenate([self.basis, gradients.reshape(n, self.basis.shape[1])])
