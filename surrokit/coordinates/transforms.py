"""Maps between the user's coordinates and the line."""

from __future__ import annotations

from functools import cached_property

import attrs
import numpy as np

from surrokit.coordinates.constraints import Constraint, CoordinateMap
from surrokit.coordinates.models import ModelMap
from surrokit.coordinates.parameters import Parameters
from surrokit.types import BoolArray, FloatArray, Pair

_LOG_ROOT = 0.5 * np.log(2.0 * np.pi)


@attrs.frozen(kw_only=True, eq=False)
class Derivatives:
    """Derivatives of an elementwise map for the chain rule; arrays of shape (n, dim).

    They are those of q by z, and those of log |dq/dz|, to third order.
    """

    first: FloatArray
    second: FloatArray
    third: FloatArray
    log_first: FloatArray
    log_second: FloatArray
    log_third: FloatArray

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
        inside: FloatArray,
        across: FloatArray,
        diagonal: FloatArray,
        gradient: FloatArray | None = None,
    ) -> FloatArray:
        """Return sum_ij A_ij d_k G_ij, shape (n, dim), for G_ij = q'_i M_ij q'_j and curvature.

        ``inside``, ``across`` and ``diagonal`` are sum_ij A_ij q'_i q'_j dM_ij/dq_k,
        sum_j A_kj M_kj q'_j, and A_kk.
        """
        added = -self.log_third if gradient is None else gradient * self.third - self.log_third
        return self.first * inside + 2.0 * self.second * across + diagonal * added


@attrs.define(kw_only=True, eq=False, slots=False)
class Transform(CoordinateMap):
    """Elementwise map z -> q: identity, lower + exp(z), upper - exp(z), or a scaled normal cdf.

    A uniform density between two bounds is standard normal on the line, and one that is cut off at
    a bound has a tail like that of a normal density there.

    Parameters
    ----------
    lower, upper : ndarray of shape (dim,)
        Bounds, infinite where there is none.
    """

    lower: FloatArray
    upper: FloatArray

    @classmethod
    def of(cls, parameters: Parameters) -> Transform:
        """Return the transform for the bounds of parameters."""
        lower, upper = parameters.bounds()
        return cls(lower=lower, upper=upper)

    @property
    def n_user(self) -> int:
        """Numbers in the user's position vector."""
        return len(self.lower)

    @cached_property
    def between(self) -> BoolArray:
        """Whether each number has two bounds, shape (dim,)."""
        return np.asarray(np.isfinite(self.lower) & np.isfinite(self.upper))

    @cached_property
    def _one_sided(self) -> tuple[tuple[BoolArray, FloatArray, float], ...]:
        """Which numbers have one bound, these bounds, and the sign of what is added to them."""
        low, high = np.isfinite(self.lower) & ~self.between, np.isfinite(self.upper) & ~self.between
        return (low, self.lower[low], 1.0), (high, self.upper[high], -1.0)

    @cached_property
    def _ends(self) -> Pair:
        """Return the last numbers inside of the bounds."""
        low, high = np.nextafter(self.lower, np.inf), np.nextafter(self.upper, -np.inf)
        return (
            np.where(np.isfinite(self.lower), low, -np.inf),
            np.where(np.isfinite(self.upper), high, np.inf),
        )

    def vjp(self, z: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return g q'."""
        return gradient * self.derivatives(z).first

    def volume(self, z: FloatArray) -> Pair:
        """Return sum log |dq/dz|, shape (n,), and its gradient."""
        return self.log_jacobian(z), self.derivatives(z).log_first

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
        from scipy.special import ndtr

        q, between = np.array(z, dtype=np.float64), self.between
        with np.errstate(over="ignore"):
            for mask, bound, sign in self._one_sided:
                q[..., mask] = bound + sign * np.exp(q[..., mask])
            width = self.upper[between] - self.lower[between]
            q[..., between] = self.lower[between] + width * ndtr(q[..., between])
        return self.clip(q)

    def clip(self, q: FloatArray) -> FloatArray:
        """Return q, moved to within the bounds."""
        return np.clip(q, *self._ends)

    def to_unbounded(self, q: FloatArray) -> FloatArray:
        """Return z at q, both of shape (..., dim); infinite or NaN on or outside the bounds."""
        from scipy.special import ndtri

        z, between = np.array(q, dtype=np.float64), self.between
        with np.errstate(divide="ignore", invalid="ignore"):
            for mask, bound, sign in self._one_sided:
                z[..., mask] = np.log(sign * (z[..., mask] - bound))
            low, high, inside = self.lower[between], self.upper[between], z[..., between]
            below, above = (inside - low) / (high - low), (high - inside) / (high - low)
            z[..., between] = np.where(below < above, ndtri(below), -ndtri(above))
        return z

    def log_jacobian(self, z: FloatArray) -> FloatArray:
        """Return sum log |dq/dz|, shape (n,)."""
        width = (self.upper - self.lower)[self.between]
        with np.errstate(over="ignore"):
            squares = np.square(z[:, self.between]).sum(axis=1)
        total = np.log(width).sum() - _LOG_ROOT * len(width) - 0.5 * squares
        for mask, _, _ in self._one_sided:
            total = total + z[:, mask].sum(axis=1)
        return np.asarray(total)

    def derivatives(self, z: FloatArray) -> Derivatives:
        """Return derivatives for the chain rule at z of shape (n, dim)."""
        first, between = np.ones_like(z), self.between
        second, third, log_first, log_second, log_third = np.zeros((5, *z.shape))
        with np.errstate(over="ignore"):
            for mask, _, sign in self._one_sided:
                first[:, mask] = second[:, mask] = third[:, mask] = sign * np.exp(z[:, mask])
                log_first[:, mask] = 1.0
        if between.any():
            at, width = z[:, between], self.upper[between] - self.lower[between]
            with np.errstate(over="ignore"):
                slope = width * np.exp(-0.5 * np.square(at) - _LOG_ROOT)
            first[:, between], second[:, between] = slope, -at * slope
            third[:, between] = at * (at * slope) - slope
            log_first[:, between], log_second[:, between] = -at, -1.0
        return Derivatives(
            first=first,
            second=second,
            third=third,
            log_first=log_first,
            log_second=log_second,
            log_third=log_third,
        )


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
        parts = [np.broadcast_to(of.between, at.stop - at.start) for at, _, of in self.blocks]
        return np.concatenate(parts)

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

    def volume(self, z: FloatArray) -> Pair:
        """Return the sum of the blocks' volumes, and its gradient."""
        values, gradients = zip(
            *(of.volume(z[:, line]) for line, _, of in self.blocks), strict=True
        )
        return np.asarray(np.sum(values, axis=0)), np.concatenate(gradients, axis=1)

    def vjp(self, z: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return those of the blocks."""
        parts = [of.vjp(z[:, line], gradient[:, user]) for line, user, of in self.blocks]
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

    @log_volume.default
    def _log_volume(self) -> float:
        return float(np.linalg.slogdet(self.matrix)[1])

    @property
    def n_user(self) -> int:
        """Numbers on the line."""
        return len(self.shift)

    @property
    def apart(self) -> BoolArray:
        """Which coordinates of z are those of the line as they are, shape (dim,)."""
        same = np.all(self.matrix == np.eye(len(self.shift)), axis=1)
        return np.asarray(same & (self.shift == 0.0))

    def to_bounded(self, z: FloatArray) -> FloatArray:
        """Return x, shape (..., dim), at z of shape (..., dim)."""
        # not z A^T, which would round by how many rows there are
        return np.asarray(np.einsum("...j,ij->...i", z, self.matrix) + self.shift)

    def to_unbounded(self, q: FloatArray) -> FloatArray:
        """Return z, shape (n, dim), at x of shape (n, dim)."""
        return np.asarray(np.linalg.solve(self.matrix, (q - self.shift).T).T)

    def volume(self, z: FloatArray) -> Pair:
        """Return log |det A|, shape (n,), and zeros."""
        return np.full(len(z), self.log_volume), np.zeros(z.shape)

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

    def volume(self, z: FloatArray) -> Pair:
        """Return the sum of both, shape (n,), and its gradient."""
        value, gradient = self.inner.volume(self.scaling.to_bounded(z))
        return value + self.scaling.log_volume, self.scaling.pull(gradient)

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
