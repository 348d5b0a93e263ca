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


def typical_excess(dim: int) -> float:
    """Return the largest typical height of a posterior's draws above the least U, in nats."""
    return 2.0 * dim + 10.0


@attrs.frozen(kw_only=True, eq=False)
class TrainingRows:
    """Distinct points with finite values, in an order that does not depend on how they came.

    As equations of a process they are the n values, then the derivatives at k of the positions in
    the first coordinate, and so on. In x = z / l a value is met up to noise of variance
    (sigma^2 + noise_sd^2) / copies + tail_sd^2, and so is a derivative.
    """

    positions: FloatArray  # q (n, dim); z in equations
    values: FloatArray  # U (n,), the mean of repeats; less a trend in equations
    gradients: FloatArray  # of the values, (n, dim); NaN in rows without
    copies: FloatArray  # number of evaluations, (n,)
    tail_sd: FloatArray  # noise of a far-tail row's own, in nats, (n,); 0 for the others
    kind: MeanKind = "zero"  # mean function of the equations
    noise_sd: FloatArray = attrs.field()  # of one value, in nats, (n,); NaN where not known

    @noise_sd.default
    def _exact(self) -> FloatArray:
        return np.zeros(len(self.values))

    def __len__(self) -> int:
        return len(self.values)

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return int(self.positions.shape[1])

    @cached_property
    def gradient_rows(self) -> IntArray:
        """Rows with a gradient, shape (k,)."""
        return np.flatnonzero(np.isfinite(self.gradients).all(axis=1))

    @property
    def n_equations(self) -> int:
        """Number of values and derivatives."""
        return len(self) + len(self.gradient_rows) * self.dim

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
            rows = rows.take(are_near(rows.positions, 1e4))
        positions = rows.positions + 0.0  # -0 becomes 0
        groups = Groups.of(positions, rows.weights)
        n, dim = len(groups.first), positions.shape[1]
        # relative to the first value, so that equal values have just that mean
        origin = rows.values[groups.first]
        weights = np.ones(len(rows)) if rows.weights is None else rows.weights
        with np.errstate(over="ignore", invalid="ignore"):
            beyond = np.bincount(
                groups.group, (rows.values - origin[groups.group]) * weights, minlength=n
            )
        known = None if rows.gradients is None else groups.first_known(rows.gradients)
        distinct = cls(
            positions=positions[groups.first],
            values=origin + np.where(np.isfinite(beyond), beyond, 0.0) / groups.copies,
            gradients=np.full((n, dim), np.nan) if known is None else known,
            copies=groups.copies,
            tail_sd=np.zeros(n),
            noise_sd=np.zeros(n) if rows.noise_sd is None else groups.first_known(rows.noise_sd),
        )
        if tail == "full" or not n:
            return distinct
        with np.errstate(over="ignore"):
            excess, typical = distinct.values - distinct.values.min(), typical_excess(dim)
            tail_sd = 0.1 * (np.maximum(excess, typical) ** 2 / typical - typical)
        spared = np.sort(excess)[: 2 * dim + 4][-1]
        weighted = attrs.evolve(distinct, tail_sd=np.minimum(tail_sd, 1e100))
        return weighted.take(np.flatnonzero(excess <= max(20.0 * typical, spared)))

    def take(self, rows: IntArray | BoolArray) -> TrainingRows:
        """Return the rows chosen by an index or a mask."""
        names = ("positions", "values", "gradients", "copies", "tail_sd", "noise_sd")
        return attrs.evolve(self, **{name: getattr(self, name)[rows] for name in names})

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

    def demand(self, least: int, n_observed: int, advice: str = "") -> None:
        """Raise SurrogateFitError, with advice, unless there are at least so many points."""
        if len(self) < least:
            raise SurrogateFitError(
                f"a Gaussian process in {self.dim} dimensions needs at least {least} distinct "
                f"points with a finite value, got {len(self)} ({n_observed} rows were observed); "
                f"explore for longer, {advice}or pass evaluations that are already made"
            )

    # --- as equations ---

    def about(self, whitening: Whitening, kind: MeanKind, trend: Polynomial) -> TrainingRows:
        """Return the equations in z of a whitening about a mean function, less a trend in z."""
        z = whitening.apply(self.positions)
        return attrs.evolve(
            self,
            positions=z,
            values=self.values - trend.value(z),
            gradients=self.gradients @ whitening.factor - trend.gradient(z),
            kind=kind,
        )

    @cached_property
    def basis(self) -> FloatArray:
        """Basis functions at all positions, shape (n, p)."""
        return features(self.kind, self.positions)

    @property
    def noise_shares(self) -> FloatArray:
        """Share of sigma^2 that each equation has, shape (n_equations,)."""
        return self._stack(1.0 / self.copies)

    def noise(self, noise_sd: float) -> FloatArray:
        """Return the variance of each equation's noise in x = z / l, shape (n_equations,)."""
        known = np.square(self.tail_sd) + np.square(np.nan_to_num(self.noise_sd)) / self.copies
        return self.noise_shares * noise_sd**2 + self._stack(known)

    def _stack(self, by_row: FloatArray) -> FloatArray:
        return np.concatenate([by_row, np.tile(by_row[self.gradient_rows], self.dim)])

    def targets(self, length_scales: FloatArray) -> FloatArray:
        """Return values and derivatives in x, shape (n_equations,)."""
        gradients = self.gradients[self.gradient_rows] * length_scales
        return np.concatenate([self.values, gradients.T.ravel()])

    def design(self, length_scales: FloatArray) -> FloatArray:
        """Return the basis functions and their derivatives in x, shape (n_equations, p)."""
        gradients = feature_gradients(self.kind, self.positions[self.gradient_rows])
        scaled = (gradients * length_scales[:, None]).transpose(1, 0, 2)
        return np.concatenate([self.basis, *scaled])
