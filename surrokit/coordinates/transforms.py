"""The map between unbounded coordinates, where samplers move, and parameters with bounds.

The map z -> q is elementwise; matrices of second derivatives follow its chain rule.
"""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.coordinates.parameters import Parameters
from surrokit.types import BoolArray, FloatArray


@attrs.frozen(kw_only=True, eq=False)
class Derivatives:
    """Derivatives for the chain rule at unbounded positions; arrays of shape (n, dim).

    Parameters
    ----------
    first, second
        dq/dz and d2q/dz2, elementwise.
    log_first, log_second
        First and second derivative of log |dq/dz| in z.
    """

    first: FloatArray
    second: FloatArray
    log_first: FloatArray
    log_second: FloatArray


@attrs.frozen(kw_only=True, eq=False)
class Transform:
    """Elementwise map z -> q: identity, lower + exp(z), upper - exp(z), or a scaled logistic.

    Parameters
    ----------
    lower, upper : ndarray of shape (dim,)
        Bounds, infinite where there is none.
    """

    lower: FloatArray
    upper: FloatArray
    _least: FloatArray = attrs.field(init=False)
    _greatest: FloatArray = attrs.field(init=False)
    _above: BoolArray = attrs.field(init=False)
    _below: BoolArray = attrs.field(init=False)
    _between: BoolArray = attrs.field(init=False)

    @_least.default
    def _first_inside(self) -> FloatArray:
        return np.where(np.isfinite(self.lower), np.nextafter(self.lower, np.inf), -np.inf)

    @_greatest.default
    def _last_inside(self) -> FloatArray:
        return np.where(np.isfinite(self.upper), np.nextafter(self.upper, -np.inf), np.inf)

    @_above.default
    def _only_lower(self) -> BoolArray:
        return np.isfinite(self.lower) & ~np.isfinite(self.upper)

    @_below.default
    def _only_upper(self) -> BoolArray:
        return ~np.isfinite(self.lower) & np.isfinite(self.upper)

    @_between.default
    def _both(self) -> BoolArray:
        return np.isfinite(self.lower) & np.isfinite(self.upper)

    @property
    def _bounded(self) -> bool:
        return bool((self._above | self._below | self._between).any())

    @classmethod
    def of(cls, parameters: Parameters) -> Transform:
        """Return the transform for the bounds of parameters."""
        lower, upper = parameters.bounds()
        return cls(lower=lower, upper=upper)

    @property
    def n_user(self) -> int:
        """Numbers in the user's position vector."""
        return len(self.lower)

    @property
    def varies(self) -> BoolArray:
        """Which of the user's numbers are not constant, shape (n_user,): all."""
        return np.ones(self.n_user, dtype=bool)

    def vjp(self, unbounded: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return the gradient in z, shape (n, dim), of what has a ``gradient (n, dim)`` in q."""
        return gradient * self.derivatives(unbounded).first

    def log_jacobian_gradient(self, unbounded: FloatArray) -> FloatArray:
        """Return the gradient of sum log |dq/dz|, shape (n, dim)."""
        return self.derivatives(unbounded).log_first

    @property
    def between(self) -> BoolArray:
        """Whether each number has two bounds, shape (dim,)."""
        return self._between

    def to_bounded(self, unbounded: FloatArray) -> FloatArray:
        """Return q at z, both of shape (..., dim); exp may overflow to ``inf`` far out.

        q stops at the last number inside a bound, so that a density that is infinite on the bound
        is never evaluated there.
        """
        q = np.array(unbounded, dtype=np.float64)
        above, below, between = self._above, self._below, self._between
        with np.errstate(over="ignore"):
            q[..., above] = self.lower[above] + np.exp(q[..., above])
            q[..., below] = self.upper[below] - np.exp(q[..., below])
            width = self.upper[between] - self.lower[between]
            q[..., between] = self.lower[between] + width * _logistic(q[..., between])
        if self._bounded:
            np.clip(q, self._least, self._greatest, out=q)
        return q

    def to_unbounded(self, bounded: FloatArray) -> FloatArray:
        """Return z at q, both of shape (..., dim); infinite or NaN on or outside the bounds."""
        z = np.array(bounded, dtype=np.float64)
        above, below, between = self._above, self._below, self._between
        with np.errstate(divide="ignore", invalid="ignore"):
            z[..., above] = np.log(z[..., above] - self.lower[above])
            z[..., below] = np.log(self.upper[below] - z[..., below])
            inside = z[..., between]
            z[..., between] = np.log(inside - self.lower[between]) - np.log(
                self.upper[between] - inside
            )
        return z

    def log_jacobian(self, unbounded: FloatArray) -> FloatArray:
        """Return sum log |dq/dz|, shape (n,), at z of shape (n, dim)."""
        z = unbounded
        between = self._between
        total = z[:, self._above].sum(axis=1) + z[:, self._below].sum(axis=1)
        if between.any():
            inner = z[:, between]
            size = np.abs(inner)
            width = np.log(self.upper[between] - self.lower[between])
            total = total + (width - size - 2.0 * np.log1p(np.exp(-size))).sum(axis=1)
        return np.asarray(total, dtype=np.float64)

    def derivatives(self, unbounded: FloatArray) -> Derivatives:
        """Return derivatives for the chain rule at z of shape (n, dim)."""
        z = unbounded
        first, second = np.ones_like(z), np.zeros_like(z)
        log_first, log_second = np.zeros_like(z), np.zeros_like(z)
        with np.errstate(over="ignore"):
            for mask, sign in ((self._above, 1.0), (self._below, -1.0)):
                first[:, mask] = second[:, mask] = sign * np.exp(z[:, mask])
                log_first[:, mask] = 1.0
        between = self._between
        if between.any():
            p, rest = _logistic(z[:, between]), _logistic(-z[:, between])
            slope = p * rest  # not p (1 - p), which loses the upper tail
            width = self.upper[between] - self.lower[between]
            first[:, between] = width * slope
            second[:, between] = width * slope * (rest - p)
            log_first[:, between] = rest - p
            log_second[:, between] = -2.0 * slope
        return Derivatives(first=first, second=second, log_first=log_first, log_second=log_second)

    def third_derivatives(self, unbounded: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return d3q/dz3 and the third derivative of log |dq/dz|, each shape (n, dim)."""
        z = unbounded
        third, log_third = np.zeros_like(z), np.zeros_like(z)
        with np.errstate(over="ignore"):
            third[:, self._above] = np.exp(z[:, self._above])
            third[:, self._below] = -np.exp(z[:, self._below])
        between = self._between
        if between.any():
            p, rest = _logistic(z[:, between]), _logistic(-z[:, between])
            slope = p * rest
            width = self.upper[between] - self.lower[between]
            third[:, between] = width * slope * (np.square(rest - p) - 2.0 * slope)
            log_third[:, between] = -2.0 * slope * (rest - p)
        return third, log_third


def _logistic(z: FloatArray) -> FloatArray:
    # unlike the form with tanh, this one keeps the lower tail down to the smallest number
    with np.errstate(over="ignore"):
        return 1.0 / (1.0 + np.exp(-z))


def congruent(matrices: FloatArray, d: Derivatives) -> FloatArray:
    """Return q'_i M_ij q'_j, shape (n, dim, dim), of ``matrices (n, dim, dim)``; a new array."""
    return np.asarray(matrices * d.first[:, :, None] * d.first[:, None, :])


def cross(weights: FloatArray, matrices: FloatArray, d: Derivatives) -> FloatArray:
    """Return sum_j A_kj M_kj q'_j, shape (n, dim), with A in ``weights (n, dim, dim)``."""
    return np.asarray(np.einsum("nkj,nkj,nj->nk", weights, matrices, d.first))


def products(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return the product of each matrix (dim, dim) with its own vector, shape (n, dim)."""
    return np.asarray(np.matmul(matrices, vectors[:, :, None])[:, :, 0])


def plus_diagonal(matrices: FloatArray, diagonals: FloatArray) -> FloatArray:
    """Add ``diagonals (n, dim)`` to matrices (n, dim, dim), in place, and return them."""
    dim = diagonals.shape[1]
    matrices[:, np.arange(dim), np.arange(dim)] += diagonals
    return matrices
