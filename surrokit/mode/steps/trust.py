"""A quadratic model of a potential about a position, and the region in which it is trusted."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.types import FloatArray

_FLAT = 1e-12  # of the largest curvature, the most that scales no coordinate
_NOTHING = 1e-8  # of its bound, a correction's denominator below which there is none
_PRECISE = 1e-3  # of the shift of the eigenvalues


@attrs.frozen(kw_only=True, eq=False)
class Model:
    """U(q + s) = value + gradient . s + s^T hessian s / 2.

    Parameters
    ----------
    position : ndarray of shape (dim,)
        q.
    value
        U there.
    gradient : ndarray of shape (dim,)
        Its gradient there.
    hessian : ndarray of shape (dim, dim), optional
        Second derivatives, at least about; None before they were measured.
    is_fresh
        Whether gradient and matrix were measured at this position.
    scales : ndarray of shape (dim,)
        One by the root of the curvature along each coordinate.
    """

    position: FloatArray
    value: float
    gradient: FloatArray
    hessian: FloatArray | None
    is_fresh: bool = False
    scales: FloatArray = attrs.field()

    @scales.default
    def _ones(self) -> FloatArray:
        return np.ones(len(self.position))

    def length(self, step: FloatArray) -> float:
        """Return the length of a step (dim,) in units of the scales."""
        return float(np.linalg.norm(step / self.scales))

    def at(self, position: FloatArray, value: float) -> Model:
        """Return the model moved to another position (dim,), with a gradient that it foretells."""
        assert self.hessian is not None
        gradient = self.gradient + self.hessian @ (position - self.position)
        return attrs.evolve(self, position=position, value=value, gradient=gradient, is_fresh=False)

    def corrected(self, step: FloatArray, value: float, gradient: FloatArray) -> Model:
        """Return the model at the end of a step, with the symmetric correction of rank one.

        Parameters
        ----------
        step : ndarray of shape (dim,)
            From here.
        value
            U at its end.
        gradient : ndarray of shape (dim,)
            The gradient there.
        """
        assert self.hessian is not None
        left = gradient - self.gradient - self.hessian @ step
        along = float(left @ step)
        hessian = self.hessian
        if abs(along) > _NOTHING * float(np.linalg.norm(left * self.scales)) * self.length(step):
            hessian = hessian + np.outer(left, left) / along
        return attrs.evolve(
            self,
            position=self.position + step,
            value=value,
            gradient=gradient,
            hessian=hessian,
            is_fresh=False,
        )

    def measured(self, slopes: FloatArray, hessian: FloatArray) -> Model:
        """Return the model with first and second differences of values.

        Where these are NaN a slope is zero, and the matrix what it was before. A coordinate of
        which nothing is known has the usual curvature of the others, and one that is flat the usual
        scale: else steps along it would know no bounds.

        Parameters
        ----------
        slopes : ndarray of shape (dim,)
            Along each coordinate.
        hessian : ndarray of shape (dim, dim)
            Second derivatives.
        """
        slopes = np.where(np.isnan(slopes), 0.0, slopes)
        if self.hessian is not None:
            hessian = np.where(np.isnan(hessian), self.hessian, hessian)
        sizes = np.abs(np.diag(hessian))
        told = sizes > _FLAT * float(np.max(sizes, where=~np.isnan(sizes), initial=0.0))
        usual = float(np.exp(np.log(sizes[told]).mean())) if told.any() else 0.0
        hessian = np.where(np.isnan(hessian), np.diag(np.full(len(slopes), usual)), hessian)
        scales = np.ones(len(slopes))
        if told.any():
            scales = 1.0 / np.sqrt(np.where(told, sizes, usual))
        return attrs.evolve(self, gradient=slopes, hessian=hessian, scales=scales, is_fresh=True)


def moves_of(steps: FloatArray, downwards: FloatArray) -> FloatArray:
    """Return the moves (2 n + n (n - 1) / 2, n) by which :func:`differences` are made.

    Parameters
    ----------
    steps : ndarray of shape (n,)
        Along each coordinate.
    downwards : ndarray of shape (n,)
        The same, each with the sign that leads down.
    """
    i, j = np.tril_indices(len(steps), -1)
    ahead, pairs = np.diag(steps), np.diag(downwards)[i] + np.diag(downwards)[j]
    return np.concatenate([ahead, -ahead, pairs])


def differences(
    steps: FloatArray, downwards: FloatArray, rises: FloatArray, rounding: float
) -> tuple[FloatArray, FloatArray]:
    """Return slopes (n,) and second derivatives (n, n), NaN where these need what is not finite.

    Where U is finite to one side alone the slope is that to this side.

    Parameters
    ----------
    steps, downwards : ndarrays of shape (n,)
        As for :func:`moves_of`.
    rises : ndarray of shape (2 n + n (n - 1) / 2,)
        How much higher U is after each of the moves.
    rounding
        What is no more than that in the sum of two of them is nothing.
    """
    n = len(steps)
    rises = np.where(np.isfinite(rises), rises, np.nan)
    ahead, back, pairs = rises[:n], rises[n : 2 * n], rises[2 * n :]
    slopes = np.where(np.isnan(ahead), -back, np.where(np.isnan(back), ahead, np.nan)) / steps
    slopes = np.where(np.isnan(slopes), (ahead - back) / (2.0 * steps), slopes)
    bends = np.where(np.abs(ahead + back) <= rounding, 0.0, ahead + back)
    hessian = np.diag(bends / steps**2)
    down = np.where(downwards > 0, ahead, back)
    i, j = np.tril_indices(n, -1)
    hessian[i, j] = hessian[j, i] = (pairs - down[i] - down[j]) / (downwards[i] * downwards[j])
    return slopes, hessian


def least_radius(model: Model) -> float:
    """Return a radius in which the first step is not held back where U is convex."""
    return max(1.0, 1.01 * float(np.linalg.norm(model.gradient * model.scales)))


def step_within(model: Model, radius: float) -> tuple[FloatArray, float, bool]:
    """Return the best step (dim,) no longer than a radius, its gain, and whether it is as long.

    Parameters
    ----------
    model
        With a matrix.
    radius
        In units of the model's scales.
    """
    assert model.hessian is not None
    scales = model.scales
    sizes, vectors = np.linalg.eigh(model.hessian * np.outer(scales, scales))
    pulls = vectors.T @ (model.gradient * scales)

    def along(shift: float) -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.nan_to_num(-pulls / (sizes + shift), nan=0.0)

    at_edge = not (sizes[0] > 0.0 and np.linalg.norm(along(0.0)) <= radius)
    shift = _shift_to(along, max(0.0, -float(sizes[0])), radius) if at_edge else 0.0
    step = (vectors @ along(shift)) * scales
    gain = -float(model.gradient @ step + 0.5 * step @ model.hessian @ step)
    return step, gain, at_edge


def _shift_to(along: object, least: float, radius: float) -> float:
    """Return the shift of eigenvalues at which a step is about as long as the radius."""
    assert callable(along)
    low, high = least, max(2.0 * least, 1.0)
    while np.linalg.norm(along(high)) > radius:
        low, high = high, 4.0 * high
    for _ in range(100):
        if high - low < _PRECISE * high:
            break
        middle = 0.5 * (low + high)
        if np.linalg.norm(along(middle)) > radius:
            low = middle
        else:
            high = middle
    return high
