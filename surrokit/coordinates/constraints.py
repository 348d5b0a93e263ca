"""Maps from the line, and constraints: simplex, ordered, directions, correlation."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import attrs
import numpy as np

from surrokit.types import BoolArray, FloatArray, Pair


class CoordinateMap(ABC):
    """A smooth map z -> q from the whole space, where samplers move, to arrays in C order.

    Positions come in rows: z of shape (n, free), and q of shape (n, n_user).
    """

    @property
    @abstractmethod
    def n_user(self) -> int:
        """Numbers in q."""

    @property
    def between(self) -> BoolArray:
        """Whether each number of z is that of a number between two bounds, (free,) or (1,)."""
        return np.zeros(1, dtype=bool)

    @property
    def varies(self) -> BoolArray:
        """Which numbers of q are not the same for all z, shape (n_user,): all, in most sets."""
        return np.ones(self.n_user, dtype=bool)

    @abstractmethod
    def to_bounded(self, z: FloatArray) -> FloatArray:
        """Return q at z."""

    @abstractmethod
    def to_unbounded(self, q: FloatArray) -> FloatArray:
        """Return z, one or several, at q; NaN or infinite where q is not inside."""

    @abstractmethod
    def volume(self, z: FloatArray) -> Pair:
        """Return the log of what the map makes of a volume in z, (n,), and its gradient, (n, free).

        A map from more numbers than the set has dimensions adds the log density of what is left
        over, which integrates to a constant.
        """

    @abstractmethod
    def vjp(self, z: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return the gradient in z, shape (n, free), of what has a ``gradient (n, n_user)``."""

    def log_jacobian(self, z: FloatArray) -> FloatArray:
        """Return the log of the volume alone, shape (n,)."""
        return self.volume(z)[0]

    def pull_back(self, z: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return the gradient in z of U - log Jacobian, shape (n, free), from that of U by q."""
        return self.vjp(z, gradient) - self.volume(z)[1]

    def pull_outputs(self, z: FloatArray, jacobian: FloatArray) -> FloatArray:
        """Return derivatives of outputs in z, shape (n, m, free), from those in q."""
        n, m, _ = jacobian.shape
        rows = np.repeat(z, m, axis=0)
        return self.vjp(rows, jacobian.reshape(n * m, -1)).reshape(n, m, -1)


class Constraint(CoordinateMap):
    """A set of arrays q of one shape, and the map onto it."""

    name: ClassVar[str]
    """For files."""
    meaning: ClassVar[str]
    """What q is, for messages."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape of q."""

    @property
    def free(self) -> int:
        """Numbers in z: as many as in q, unless a subclass has another number."""
        return math.prod(self.shape)

    @property
    def n_user(self) -> int:
        """Numbers in q."""
        return math.prod(self.shape)


@attrs.frozen
class _Sized(Constraint):
    """A set of vectors of ``size`` numbers."""

    size: int

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.size,)


def _only_where(inside: BoolArray, z: FloatArray) -> FloatArray:
    return np.where(inside[:, None], z, np.nan)


CLOSE = 1e-8
"""How far a sum or a length that must be 1 may be from it."""

AWAY = 4.0
"""Power of the length that keeps vectors away from the origin.

Without it, where lengths are those of a standard normal vector as in Stan, the density of vectors
is highest at the origin. It has no derivatives there, so searches for modes end where no mode is.

A smaller power makes an unknown angle cheaper (10 gradients an effective draw
with 4, 7 with 2, 5 with 1), and one that is well known worse: of 1,200 paths for a direction known
to 1/17, 1 or 2 diverged with 4, 5 with 2, and 10 to 16 with 1.
"""


def _volume_of_directions(vectors: FloatArray) -> Pair:
    """Return volumes of vectors (n, k, m) whose density by length r is r^AWAY exp(-r^2 / 2).

    The volume is the sum over vectors of a log |z| - |z|^2 / 2, less its log total along a ray. The
    gradient has the shape of the vectors.
    """
    squares, half = np.square(vectors).sum(axis=1), 0.5 * (vectors.shape[1] + AWAY)
    along_a_ray = (half - 1.0) * np.log(2.0) + math.lgamma(half)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = 0.5 * AWAY * np.log(squares) - 0.5 * squares - along_a_ray
        return logs.sum(axis=1), (AWAY / squares[:, None] - 1.0) * vectors


@attrs.frozen
class UnitVector(_Sized):
    """Vectors q = z / |z| of ``size`` numbers; volumes are those of the surface."""

    name = "unit_vector"
    meaning = "a vector of length 1"

    def to_bounded(self, z: FloatArray) -> FloatArray:
        """Return z / |z|; NaN at the origin."""
        with np.errstate(invalid="ignore"):
            return np.asarray(z / np.linalg.norm(z, axis=1, keepdims=True))

    def to_unbounded(self, q: FloatArray) -> FloatArray:
        """Return a vector of the likeliest length in the direction of q."""
        inside = np.abs(np.square(q).sum(axis=1) - 1.0) < CLOSE
        return _only_where(inside, q * np.sqrt(AWAY))

    def volume(self, z: FloatArray) -> Pair:
        """Return that of one direction."""
        value, gradient = _volume_of_directions(z[:, :, None])
        return value, gradient[:, :, 0]

    def vjp(self, z: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return (g - q q^T g) / |z|."""
        q = self.to_bounded(z)
        across = gradient - q * np.einsum("nk,nk->n", q, gradient)[:, None]
        with np.errstate(invalid="ignore"):
            return np.asarray(across / np.linalg.norm(z, axis=1, keepdims=True))


@attrs.frozen
class Circular(Constraint):
    """Angles in (-pi, pi], whose ends are one.

    Each is the direction of a vector in the plane. So chains cross the ends as they cross any other
    angle. z holds all x and then all y.
    """

    shape: tuple[int, ...] = ()
    name = "circular"
    meaning = "angles between -pi and pi"

    @property
    def free(self) -> int:
        """Numbers in z: two for each angle."""
        return 2 * math.prod(self.shape)

    def to_bounded(self, z: FloatArray) -> FloatArray:
        """Return atan2(y, x)."""
        x, y = np.split(z, 2, axis=1)
        return np.asarray(np.arctan2(y, x))

    def to_unbounded(self, q: FloatArray) -> FloatArray:
        """Return vectors of the likeliest length."""
        inside = np.asarray((np.abs(q) <= np.pi).all(axis=1))
        return _only_where(inside, np.sqrt(AWAY) * np.concatenate([np.cos(q), np.sin(q)], axis=1))

    def volume(self, z: FloatArray) -> Pair:
        """Return that of all directions."""
        value, gradient = _volume_of_directions(z.reshape(len(z), 2, -1))
        return value, gradient.reshape(z.shape)

    def vjp(self, z: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return g (-y, x) / (x^2 + y^2)."""
        x, y = np.split(z, 2, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            turn = gradient / (np.square(x) + np.square(y))
        return np.concatenate([-y * turn, x * turn], axis=1)


@attrs.frozen
class Correlation(_Sized):
    """Correlation matrices of ``size`` rows: positive definite, with ones on the diagonal.

    q is L L^T, as in Stan's reference manual, and tanh(z) are canonical partial correlations
    (Lewandowski, Kurowicka and Joe 2009, doi:10.1016/j.jmva.2009.04.008). Volumes are those of the
    numbers below the diagonal. A gradient may be that of a function of all numbers of the matrix:
    those above and below the diagonal are added up.
    """

    name = "correlation"
    meaning = "a symmetric positive definite matrix with ones on its diagonal"

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of q."""
        return (self.size, self.size)

    @property
    def free(self) -> int:
        """Numbers in z: as many as below the diagonal."""
        return self.size * (self.size - 1) // 2

    @property
    def varies(self) -> BoolArray:
        """All but the diagonal vary."""
        return ~np.eye(self.size, dtype=bool).ravel()

    def to_bounded(self, z: FloatArray) -> FloatArray:
        """Return L L^T."""
        factor = self._factor(z)
        q = np.asarray(factor @ np.swapaxes(factor, 1, 2))
        q[:, np.arange(self.size), np.arange(self.size)] = 1.0
        return q.reshape(len(z), -1)

    def to_unbounded(self, q: FloatArray) -> FloatArray:
        """Return atanh of the partial correlations."""
        matrices = q.reshape(-1, *self.shape)
        factor = np.tile(np.eye(self.size), (len(matrices), 1, 1))
        inside = np.isclose(matrices, np.swapaxes(matrices, 1, 2), rtol=0.0, atol=CLOSE)
        found = inside.all(axis=(1, 2))
        found &= (np.abs(np.einsum("nkk->nk", matrices) - 1.0) < CLOSE).all(axis=1)
        for i in np.flatnonzero(found):
            try:
                factor[i] = np.linalg.cholesky(matrices[i])
            except np.linalg.LinAlgError:
                found[i] = False
        left = 1.0 - np.cumsum(np.square(factor), axis=2) + np.square(factor)
        below = self._triangle()
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.arctanh(factor[:, *below] / np.sqrt(left[:, *below]))
        return _only_where(found, z)

    def volume(self, z: FloatArray) -> Pair:
        """Return sum over i > j of (size - j + 1) log(1 - w_ij^2) / 2, j = 1, 2, ..."""
        weights = (self.size - self._triangle()[1]) / 2.0
        return np.asarray(2.0 * (_log_sech(z) @ weights)), -2.0 * weights * np.tanh(z)

    def vjp(self, z: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return (G + G^T) L, led back through the rows of L from their ends."""
        w, sech, room = self._parts(z)
        matrices = gradient.reshape(-1, *self.shape)
        slope = (matrices + np.swapaxes(matrices, 1, 2)) @ self._factor(z)
        found = np.zeros_like(w)
        rest = np.einsum("nkk->nk", slope).copy()  # derivative by what is left of a row's length
        for j in range(self.size - 2, -1, -1):
            below = slice(j + 1, None)
            here, left = slope[:, below, j], room[:, below, j]
            by_w, tail = here * left, rest[:, below] * left
            found[:, below, j] = by_w * np.square(sech[:, below, j])
            found[:, below, j] -= tail * w[:, below, j] * sech[:, below, j]
            rest[:, below] = here * w[:, below, j] + rest[:, below] * sech[:, below, j]
        return found[:, *self._triangle()]

    def _triangle(self) -> tuple[Any, Any]:
        return np.tril_indices(self.size, -1)

    def _parts(self, z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return tanh, sech, and the length that is left of rows of L before each number."""
        w, sech = np.zeros((len(z), *self.shape)), np.ones((len(z), *self.shape))
        w[:, *self._triangle()] = np.tanh(z)
        sech[:, *self._triangle()] = np.exp(_log_sech(z))
        room = np.ones_like(sech)
        room[:, :, 1:] = np.cumprod(sech, axis=2)[:, :, :-1]
        return w, sech, np.tril(room)

    def _factor(self, z: FloatArray) -> FloatArray:
        w, _, room = self._parts(z)
        return (w + np.eye(self.size)) * room


def _log_sech(z: FloatArray) -> FloatArray:
    """Return log(1 - tanh(z)^2) / 2, also far out."""
    size = np.abs(z)
    return np.asarray(np.log(2.0) - size - np.log1p(np.exp(-2.0 * size)))


@attrs.frozen
class Ordered(_Sized):
    """Vectors of ``size`` numbers, each larger than the one before it.

    q_1 = z_1 and q_k = q_{k-1} + exp(z_k), as in Stan's reference manual.
    """

    name = "ordered"
    meaning = "numbers in increasing order"

    def to_bounded(self, z: FloatArray) -> FloatArray:
        """Return cumulative sums of z_1, exp(z_2), exp(z_3), ..."""
        with np.errstate(over="ignore"):
            return np.asarray(np.cumsum(np.hstack([z[:, :1], np.exp(z[:, 1:])]), axis=1))

    def to_unbounded(self, q: FloatArray) -> FloatArray:
        """Return the first number, and logs of the steps after it."""
        steps = np.diff(q, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            inside = np.asarray(np.isfinite(q).all(axis=1) & (steps > 0.0).all(axis=1))
            return _only_where(inside, np.concatenate([q[:, :1], np.log(steps)], axis=1))

    def volume(self, z: FloatArray) -> Pair:
        """Return z_2 + z_3 + ..."""
        gradient = np.ones_like(z)
        gradient[:, 0] = 0.0
        return np.asarray(z[:, 1:].sum(axis=1)), gradient

    def vjp(self, z: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return sums of the gradient from each number on, times the steps' derivatives."""
        later = np.cumsum(gradient[:, ::-1], axis=1)[:, ::-1]
        with np.errstate(over="ignore"):
            return np.asarray(later * np.hstack([np.ones((len(z), 1)), np.exp(z[:, 1:])]))


@attrs.frozen
class Simplex(_Sized):
    """Vectors of ``size`` positive numbers that sum to 1.

    q = softmax(V z) with orthonormal columns V that sum to zero: the inverse of the isometric
    log ratio (Egozcue et al. 2003, doi:10.1023/A:1023818214614), as in Stan's reference manual.
    Volumes are those of the first ``size - 1`` numbers.
    """

    name = "simplex"
    meaning = "positive numbers that sum to 1"
    _basis: FloatArray = attrs.field(init=False, repr=False, eq=False)

    @_basis.default
    def _helmert(self) -> FloatArray:
        basis = np.triu(np.ones((self.size, self.size - 1))) / np.arange(1, self.size)
        basis[np.arange(1, self.size), np.arange(self.size - 1)] = -1.0
        return np.asarray(basis / np.linalg.norm(basis, axis=0))

    @property
    def free(self) -> int:
        """Numbers in z."""
        return self.size - 1

    def to_bounded(self, z: FloatArray) -> FloatArray:
        """Return softmax(V z)."""
        return np.exp(self._log(z))

    def to_unbounded(self, q: FloatArray) -> FloatArray:
        """Return V^T log q."""
        with np.errstate(divide="ignore", invalid="ignore"):
            inside = (q > 0.0).all(axis=1) & (np.abs(q.sum(axis=1) - 1.0) < CLOSE)
            return _only_where(inside, np.log(q) @ self._basis)

    def volume(self, z: FloatArray) -> Pair:
        """Return sum log q_i + log(size) / 2."""
        logs = self._log(z)
        value = logs.sum(axis=1) + 0.5 * np.log(self.size)
        return np.asarray(value), -self.size * (np.exp(logs) @ self._basis)

    def vjp(self, z: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return V^T (diag(q) - q q^T) g."""
        q = self.to_bounded(z)
        mean = np.einsum("nk,nk->n", q, gradient)
        return np.asarray((q * (gradient - mean[:, None])) @ self._basis)

    def _log(self, z: FloatArray) -> FloatArray:
        y = z @ self._basis.T
        y = y - y.max(axis=1, keepdims=True)
        return np.asarray(y - np.log(np.exp(y).sum(axis=1, keepdims=True)))


_BY_SIZE: Mapping[str, type[Any]] = {
    each.name: each for each in (Simplex, Ordered, UnitVector, Correlation)
}


def to_plain(constraint: Constraint | None) -> list[Any] | None:
    """Return a constraint as plain data: its name, and its shape."""
    return None if constraint is None else [constraint.name, list(constraint.shape)]


def from_plain(data: Sequence[Any] | None) -> Constraint | None:
    """Return a constraint from plain data; KeyError if there is none of that name."""
    if data is None:
        return None
    name, shape = data
    made: Constraint
    made = Circular(tuple(shape)) if name == Circular.name else _BY_SIZE[name](shape[0])
    return made
