"""Maps between the user's coordinates and the line."""

from __future__ import annotations

from functools import partial

import attrs
import numpy as np

from surrokit.coordinates.constraints import Constraint, CoordinateMap
from surrokit.coordinates.models import ModelMap
from surrokit.coordinates.parameters import Parameters
from surrokit.types import BoolArray, FloatArray, Pair


@attrs.frozen(kw_only=True, eq=False)
class Derivatives:
    """Derivatives of an elementwise map for the chain rule; arrays of shape (n, dim).

    They are dq/dz and d2q/dz2, and the same of log |dq/dz|. ``third`` are those of third order.
    """

    first: FloatArray
    second: FloatArray
    log_first: FloatArray
    log_second: FloatArray

    def pull(self, slopes: FloatArray) -> FloatArray:
        """Return derivatives in q, shape (n, dim) or (n, m, dim), as those in z."""
        return slopes * (self.first if slopes.ndim == 2 else self.first[:, None, :])

    push = pull  # of directions in z: the map is elementwise

    def pull_form(self, matrices: FloatArray) -> FloatArray:
        """Return q'_i M_ij q'_j, shape (n, dim, dim), of ``matrices (n, dim, dim)``."""
        return np.asarray(matrices * self.first[:, :, None] * self.first[:, None, :])

    push_form = pull_form

    def curvature(self, gradient: FloatArray | None = None) -> FloatArray:
        """Return what the curvature of the map adds to the diagonal of a matrix, shape (n, dim).

        The matrix is the Hessian of what has this gradient in q, or a metric, without one.
        """
        if gradient is None:
            return -self.log_second
        return np.asarray(gradient * self.second - self.log_second)

    def of_form(
        self,
        third: Pair,
        inside: FloatArray,
        across: FloatArray,
        diagonal: FloatArray,
        gradient: FloatArray | None = None,
    ) -> FloatArray:
        """Return sum_ij A_ij d_k G_ij, shape (n, dim), for G_ij = q'_i M_ij q'_j and curvature.

        ``inside``, ``across`` and ``diagonal`` are sum_ij A_ij q'_i q'_j dM_ij/dq_k,
        sum_j A_kj M_kj q'_j, and A_kk; ``third`` is of :meth:`Transform.third_derivatives`.
        """
        added = -third[1] if gradient is None else gradient * third[0] - third[1]
        return self.first * inside + 2.0 * self.second * across + diagonal * added


@attrs.frozen(kw_only=True, eq=False)
class Transform(CoordinateMap):
    """Elementwise map z -> q: identity, lower + exp(z), upper - exp(z), or a scaled logistic.

    Parameters
    ----------
    lower, upper : ndarray of shape (dim,)
        Bounds, infinite where there is none.
    """

    lower: FloatArray
    upper: FloatArray
    between: BoolArray = attrs.field(init=False)
    """Whether each number has two bounds, shape (dim,)."""
    _least: FloatArray = attrs.field(init=False)
    _greatest: FloatArray = attrs.field(init=False)
    _above: BoolArray = attrs.field(init=False)
    _below: BoolArray = attrs.field(init=False)
    _bounded: bool = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        has_lower, has_upper = np.isfinite(self.lower), np.isfinite(self.upper)
        set_once = partial(object.__setattr__, self)
        set_once("_least", np.where(has_lower, np.nextafter(self.lower, np.inf), -np.inf))
        set_once("_greatest", np.where(has_upper, np.nextafter(self.upper, -np.inf), np.inf))
        set_once("_above", has_lower & ~has_upper)
        set_once("_below", ~has_lower & has_upper)
        set_once("between", has_lower & has_upper)
        set_once("_bounded", bool((has_lower | has_upper).any()))

    @classmethod
    def of(cls, parameters: Parameters) -> Transform:
        """Return the transform for the bounds of parameters."""
        lower, upper = parameters.bounds()
        return cls(lower=lower, upper=upper)

    @property
    def n_user(self) -> int:
        """Numbers in the user's position vector."""
        return len(self.lower)

    def vjp(self, z: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return g q'."""
        return gradient * self.derivatives(z).first

    def log_jacobian_gradient(self, z: FloatArray) -> FloatArray:
        """Return the gradient of sum log |dq/dz|, shape (n, dim)."""
        return self.derivatives(z).log_first

    def pull_back(self, z: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return both parts at once: every gradient of a bounded target comes here."""
        d = self.derivatives(z)
        return gradient * d.first - d.log_first

    def pull_outputs(self, z: FloatArray, jacobian: FloatArray) -> FloatArray:
        """Return derivatives of outputs in z, shape (n, m, dim)."""
        return self.derivatives(z).pull(jacobian)

    def to_bounded(self, z: FloatArray) -> FloatArray:
        """Return q at z, both of shape (..., dim); exp may overflow to ``inf`` far out.

        q stops at the last number inside a bound, so that a density that is infinite on the bound
        is never evaluated there.
        """
        q = np.array(z, dtype=np.float64)
        above, below, between = self._above, self._below, self.between
        with np.errstate(over="ignore"):
            q[..., above] = self.lower[above] + np.exp(q[..., above])
            q[..., below] = self.upper[below] - np.exp(q[..., below])
            width = self.upper[between] - self.lower[between]
            q[..., between] = self.lower[between] + width * _logistic(q[..., between])
        if self._bounded:
            np.clip(q, self._least, self._greatest, out=q)
        return q

    def to_unbounded(self, q: FloatArray) -> FloatArray:
        """Return z at q, both of shape (..., dim); infinite or NaN on or outside the bounds."""
        z = np.array(q, dtype=np.float64)
        above, below, between = self._above, self._below, self.between
        with np.errstate(divide="ignore", invalid="ignore"):
            z[..., above] = np.log(z[..., above] - self.lower[above])
            z[..., below] = np.log(self.upper[below] - z[..., below])
            inside = z[..., between]
            z[..., between] = np.log(inside - self.lower[between]) - np.log(
                self.upper[between] - inside
            )
        return z

    def log_jacobian(self, z: FloatArray) -> FloatArray:
        """Return sum log |dq/dz|, shape (n,)."""
        between = self.between
        total = z[:, self._above].sum(axis=1) + z[:, self._below].sum(axis=1)
        if between.any():
            size = np.abs(z[:, between])
            width = np.log(self.upper[between] - self.lower[between])
            total = total + (width - size - 2.0 * np.log1p(np.exp(-size))).sum(axis=1)
        return np.asarray(total, dtype=np.float64)

    def derivatives(self, z: FloatArray) -> Derivatives:
        """Return derivatives for the chain rule at z of shape (n, dim)."""
        first, second = np.ones_like(z), np.zeros_like(z)
        log_first, log_second = np.zeros_like(z), np.zeros_like(z)
        with np.errstate(over="ignore"):
            for mask, sign in ((self._above, 1.0), (self._below, -1.0)):
                first[:, mask] = second[:, mask] = sign * np.exp(z[:, mask])
                log_first[:, mask] = 1.0
        between = self.between
        if between.any():
            p, rest = _logistic(z[:, between]), _logistic(-z[:, between])
            slope = p * rest  # not p (1 - p), which loses the upper tail
            width = self.upper[between] - self.lower[between]
            first[:, between] = width * slope
            second[:, between] = width * slope * (rest - p)
            log_first[:, between] = rest - p
            log_second[:, between] = -2.0 * slope
        return Derivatives(first=first, second=second, log_first=log_first, log_second=log_second)

    def third_derivatives(self, z: FloatArray) -> Pair:
        """Return d3q/dz3 and the third derivative of log |dq/dz|, each shape (n, dim)."""
        third, log_third, between = np.zeros_like(z), np.zeros_like(z), self.between
        with np.errstate(over="ignore"):
            third[:, self._above] = np.exp(z[:, self._above])
            third[:, self._below] = -np.exp(z[:, self._below])
        p, rest = _logistic(z[:, between]), _logistic(-z[:, between])
        slope, width = p * rest, self.upper[between] - self.lower[between]
        third[:, between] = width * slope * (np.square(rest - p) - 2.0 * slope)
        log_third[:, between] = -2.0 * slope * (rest - p)
        return third, log_third


def _logistic(z: FloatArray) -> FloatArray:
    # unlike the form with tanh, this one keeps the lower tail down to the smallest number
    with np.errstate(over="ignore"):
        return 1.0 / (1.0 + np.exp(-z))


def products(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return the product of each matrix (dim, dim) with its own vector, shape (n, dim)."""
    return np.asarray(np.matmul(matrices, vectors[:, :, None])[:, :, 0])


def plus_diagonal(matrices: FloatArray, diagonals: FloatArray) -> FloatArray:
    """Add ``diagonals (n, dim)`` to matrices (n, dim, dim), in place, and return them."""
    dim = diagonals.shape[1]
    matrices[:, np.arange(dim), np.arange(dim)] += diagonals
    return matrices


@attrs.frozen(eq=False)
class Blocks(CoordinateMap):
    """The map of all parameters, one after the other.

    Each block is a slice of the line, one of the user's position, and the parameter's map.
    """

    parameters: Parameters
    blocks: tuple[tuple[slice, slice, Transform | Constraint], ...] = attrs.field(init=False)

    @blocks.default
    def _blocks(self) -> tuple[tuple[slice, slice, Transform | Constraint], ...]:
        found, line, user = [], 0, 0
        for spec in self.parameters.specs.values():
            of = spec.constraint or Transform.of(Parameters({"it": spec}))
            ends = line + spec.free, user + spec.size
            found.append((slice(line, ends[0]), slice(user, ends[1]), of))
            line, user = ends
        return tuple(found)

    @property
    def n_user(self) -> int:
        """Numbers in the user's position vector."""
        return self.parameters.dim

    @property
    def varies(self) -> BoolArray:
        """Which of the user's numbers are not constant, shape (n_user,)."""
        return self.parameters.varies

    @property
    def between(self) -> BoolArray:
        """Whether each number on the line is that of a parameter with two bounds, shape (dim,)."""
        return np.concatenate([of.between for _, _, of in self.blocks])

    def to_bounded(self, z: FloatArray) -> FloatArray:
        """Return q, shape (..., n_user), at z of shape (..., dim)."""
        z = np.asarray(z, dtype=np.float64)
        rows = z.reshape(-1, z.shape[-1])
        parts = [of.to_bounded(rows[:, line]) for line, _, of in self.blocks]
        return np.concatenate(parts, axis=1).reshape(*z.shape[:-1], self.n_user)

    def to_unbounded(self, q: FloatArray) -> FloatArray:
        """Return z, shape (n, dim), at q of shape (n, n_user); NaN where q breaks a constraint."""
        q = np.asarray(q, dtype=np.float64)
        return np.concatenate([of.to_unbounded(q[:, user]) for _, user, of in self.blocks], axis=1)

    def log_jacobian(self, z: FloatArray) -> FloatArray:
        """Return the sum of those of the blocks."""
        return np.asarray(np.sum([of.log_jacobian(z[:, line]) for line, _, of in self.blocks], 0))

    def log_jacobian_gradient(self, z: FloatArray) -> FloatArray:
        """Return those of the blocks."""
        parts = [of.log_jacobian_gradient(z[:, line]) for line, _, of in self.blocks]
        return np.concatenate(parts, axis=1)

    def vjp(self, z: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return those of the blocks."""
        parts = [of.vjp(z[:, line], gradient[:, user]) for line, user, of in self.blocks]
        return np.concatenate(parts, axis=1)

    def pull_back(self, z: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return those of the blocks."""
        parts = [of.pull_back(z[:, line], gradient[:, user]) for line, user, of in self.blocks]
        return np.concatenate(parts, axis=1)


@attrs.frozen(eq=False)
class Scaling(CoordinateMap):
    """The affine map x = shift + A z, of coordinates z of like scale to those of the line.

    ``log_volume`` is log |det A|, the logarithm of the Jacobian. It has the methods of
    :class:`Derivatives` that a map without curvature needs.
    """

    shift: FloatArray
    matrix: FloatArray
    log_volume: float = attrs.field()
    _factors: FloatArray | None = attrs.field(init=False)

    @_factors.default
    def _diagonal(self) -> FloatArray | None:
        factors = np.diag(self.matrix).copy()
        return factors if np.array_equal(self.matrix, np.diag(factors)) else None

    @log_volume.default
    def _log_volume(self) -> float:
        return float(np.linalg.slogdet(self.matrix)[1])

    @property
    def n_user(self) -> int:
        """Numbers on the line."""
        return len(self.shift)

    @property
    def between(self) -> BoolArray:
        """None of them, shape (dim,)."""
        return np.zeros(len(self.shift), dtype=bool)

    @property
    def apart(self) -> BoolArray:
        """Which coordinates of z are those of the line as they are, shape (dim,)."""
        same = np.all(self.matrix == np.eye(len(self.shift)), axis=1)
        return np.asarray(same & (self.shift == 0.0))

    def to_bounded(self, z: FloatArray) -> FloatArray:
        """Return x, shape (..., dim), at z of shape (..., dim)."""
        if self._factors is not None:  # no sum, which would round by how many rows there are
            return np.asarray(z * self._factors + self.shift)
        return np.asarray(z @ self.matrix.T + self.shift)

    def to_unbounded(self, q: FloatArray) -> FloatArray:
        """Return z, shape (n, dim), at x of shape (n, dim)."""
        return np.asarray(np.linalg.solve(self.matrix, (q - self.shift).T).T)

    def log_jacobian(self, z: FloatArray) -> FloatArray:
        """Return log |det A|, shape (n,), at z of shape (n, dim)."""
        return np.full(len(z), self.log_volume)

    def log_jacobian_gradient(self, z: FloatArray) -> FloatArray:
        """Return zeros, shape (n, dim)."""
        return np.zeros(z.shape)

    def vjp(self, z: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return A^T g."""
        del z
        return self.pull(gradient)

    def derivatives(self, z: FloatArray) -> Scaling:
        """Return the map itself, which is its own derivative and has no curvature."""
        del z
        return self

    def pull(self, gradient: FloatArray) -> FloatArray:
        """Return derivatives (..., dim) in x as those in z."""
        return np.asarray(gradient @ self.matrix)

    def push(self, vectors: FloatArray) -> FloatArray:
        """Return directions (..., dim) in z as those in x."""
        return np.asarray(vectors @ self.matrix.T)

    def pull_form(self, matrices: FloatArray) -> FloatArray:
        """Return A^T M A, second derivatives in z of those in x, (..., dim, dim)."""
        return np.asarray(self.matrix.T @ matrices @ self.matrix)

    def push_form(self, matrices: FloatArray) -> FloatArray:
        """Return A B A^T, (..., dim, dim)."""
        return np.asarray(self.matrix @ matrices @ self.matrix.T)


@attrs.frozen(eq=False)
class Scaled(CoordinateMap):
    """The map from coordinates of like scale to the line, and on to the user's coordinates."""

    scaling: Scaling
    inner: Transform | Blocks | ModelMap

    @property
    def n_user(self) -> int:
        """Numbers in the user's position vector."""
        return self.inner.n_user

    @property
    def varies(self) -> BoolArray:
        """Which of the user's numbers are not constant, shape (n_user,)."""
        return self.inner.varies

    @property
    def between(self) -> BoolArray:
        """Whether each number is that of a parameter with two bounds, shape (dim,)."""
        return self.inner.between & self.scaling.apart

    def to_bounded(self, z: FloatArray) -> FloatArray:
        """Return q, shape (..., n_user), at z of shape (..., dim)."""
        return self.inner.to_bounded(self.scaling.to_bounded(z))

    def to_unbounded(self, q: FloatArray) -> FloatArray:
        """Return z, shape (n, dim), at q of shape (n, n_user)."""
        return self.scaling.to_unbounded(self.inner.to_unbounded(q))

    def log_jacobian(self, z: FloatArray) -> FloatArray:
        """Return the sum of both, shape (n,)."""
        return self.inner.log_jacobian(self.scaling.to_bounded(z)) + self.scaling.log_volume

    def log_jacobian_gradient(self, z: FloatArray) -> FloatArray:
        """Return its gradient, shape (n, dim)."""
        line = self.scaling.to_bounded(z)
        return self.scaling.pull(self.inner.log_jacobian_gradient(line))

    def vjp(self, z: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return that of the scaling, of that of the other."""
        return self.scaling.pull(self.inner.vjp(self.scaling.to_bounded(z), gradient))


def from_line_of(of: CoordinateMap) -> Transform | Blocks | ModelMap:
    """Return the map from the line alone, without the scaling before it."""
    found = of.inner if isinstance(of, Scaled) else of
    assert isinstance(found, Transform | Blocks | ModelMap)
    return found


def map_of(parameters: Parameters) -> Transform | Blocks:
    """Return the map of parameters, elementwise where no constraint ties numbers together."""
    return Blocks(parameters) if parameters.tied else Transform.of(parameters)
