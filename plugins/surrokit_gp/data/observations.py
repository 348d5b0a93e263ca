"""Observations of a process, in the coordinates that its kernel sees."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.surrogate.whitening import Whitening
from surrokit.types import FloatArray, IntArray
from surrokit_gp.data.mean_functions import MeanKind, Polynomial, feature_slopes, features
from surrokit_gp.data.training_rows import TrainingRows


@attrs.frozen(kw_only=True, eq=False)
class Frame:
    """The coordinates of a fit.

    The mean function is a polynomial in whitened w = L^-1 (q - mu). The kernel sees z, which is w
    or, with ``whiten=False``, q - mu.

    Parameters
    ----------
    whitening
        From q to w.
    whiten
        Whether z is w.
    """

    whitening: Whitening
    whiten: bool

    @property
    def kernel(self) -> Whitening:
        """From q to z."""
        return self.whitening if self.whiten else self.whitening.shift

    @property
    def chain(self) -> FloatArray:
        """dw/dz, shape (dim, dim)."""
        return np.eye(len(self.whitening.mean)) if self.whiten else self.whitening.inverse


@attrs.frozen(kw_only=True, eq=False)
class Observations:
    """Values, and derivatives at some of the positions, as equations of a process.

    The equations are the n values, then the first column of ``slopes``, and so on.

    Parameters
    ----------
    positions : ndarray of shape (n, dim)
        z.
    values : ndarray of shape (n,)
        What the process and its mean function add up to there.
    basis : ndarray of shape (n, p)
        Basis functions of the mean function.
    copies, tail_sd : ndarrays of shape (n,)
        The noise of a value has variance sigma^2 / copies + tail_sd^2; that of a derivative along
        one length scale is the same.
    slope_rows : ndarray of shape (k,)
        At which positions derivatives are known.
    slopes : ndarray of shape (k, dim)
        Gradients in z there.
    slope_basis : ndarray of shape (k, dim, p)
        Derivatives of the basis functions in z there.
    """

    positions: FloatArray
    values: FloatArray
    basis: FloatArray
    copies: FloatArray
    tail_sd: FloatArray
    slope_rows: IntArray
    slopes: FloatArray
    slope_basis: FloatArray

    def __len__(self) -> int:
        return len(self.values)

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return int(self.positions.shape[1])

    @property
    def n_equations(self) -> int:
        """Values and derivatives."""
        return len(self.values) + self.slopes.size

    @classmethod
    def of_rows(
        cls,
        rows: TrainingRows,
        slope_rows: IntArray,
        frame: Frame,
        kind: MeanKind,
        trend: Polynomial | None = None,
    ) -> Observations:
        """Return training rows as equations.

        Parameters
        ----------
        rows
            The rows.
        slope_rows : ndarray of shape (k,)
            Rows whose gradients are used.
        frame
            The coordinates.
        kind
            The mean function.
        trend : Polynomial, optional
            What is taken off first, as a function of w.
        """
        whitened = frame.whitening.apply(rows.positions)
        at_slopes = whitened[slope_rows]
        values = rows.values
        slopes = rows.gradients[slope_rows] @ frame.kernel.factor
        if trend is not None:
            values = values - trend.value(whitened)
            slopes = slopes - trend.gradient(at_slopes) @ frame.chain
        return cls(
            positions=frame.kernel.apply(rows.positions),
            values=values,
            basis=features(kind, whitened),
            copies=rows.copies,
            tail_sd=rows.tail_sd,
            slope_rows=slope_rows,
            slopes=slopes,
            slope_basis=np.einsum("ij,kip->kjp", frame.chain, feature_slopes(kind, at_slopes)),
        )

    def take(self, rows: IntArray) -> Observations:
        """Return the equations of some positions, shape (m,), given in increasing order."""
        place = np.full(len(self), -1, dtype=np.int64)
        place[rows] = np.arange(len(rows))
        kept = np.flatnonzero(place[self.slope_rows] >= 0)
        return Observations(
            positions=self.positions[rows],
            values=self.values[rows],
            basis=self.basis[rows],
            copies=self.copies[rows],
            tail_sd=self.tail_sd[rows],
            slope_rows=place[self.slope_rows[kept]],
            slopes=self.slopes[kept],
            slope_basis=self.slope_basis[kept],
        )

    def near(self) -> Observations:
        """Return the equations of positions that are not in the far tail, if there are two."""
        rows = np.flatnonzero(self.tail_sd == 0.0)
        return self if len(rows) in (0, 1, len(self)) else self.take(rows)

    def size_left(self) -> float:
        """Return the root mean square of what a constant and the basis leave of the values.

        Without the far tail; zero where there are no more values than basis functions.
        """
        rows = self.near()
        basis = np.column_stack([np.ones(len(rows)), rows.basis])
        if basis.shape[1] >= len(rows):
            return 0.0
        left = rows.values - basis @ np.linalg.lstsq(basis, rows.values, rcond=None)[0]
        return float(np.sqrt(np.mean(np.square(left))))

    def noise(self, noise_sd: float) -> FloatArray:
        """Return the variance of each equation's noise, in scaled coordinates: (n_equations,)."""
        own = self.noise_shares() * noise_sd**2
        own += self._stack(np.square(self.tail_sd))
        return own

    def noise_shares(self) -> FloatArray:
        """Return the share of sigma^2 that each equation has, shape (n_equations,)."""
        return self._stack(1.0 / self.copies)

    def _stack(self, by_row: FloatArray) -> FloatArray:
        return np.concatenate([by_row, np.tile(by_row[self.slope_rows], self.dim)])

    def targets(self, length_scales: FloatArray) -> FloatArray:
        """Return values and derivatives in x = z / l, shape (n_equations,)."""
        return np.concatenate([self.values, (self.slopes * length_scales).T.ravel()])

    def design(self, length_scales: FloatArray) -> FloatArray:
        """Return the basis functions and their derivatives in x = z / l: (n_equations, p)."""
        slopes = (self.slope_basis * length_scales[:, None]).transpose(1, 0, 2)
        return np.concatenate([self.basis, slopes.reshape(self.slopes.size, self.basis.shape[1])])
