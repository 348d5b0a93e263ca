"""Weighted ridge regression of values, gradients and Jacobians, and its ridge: equation (11).

Each position brings 1 + dim equations, yet no factor of dim appears in the cost of normal
equations. With the gradient of column j as alpha_j(z) (a_j + b_j z), where (a_j, b_j) = p_j is its
direction (:mod:`surrokit_networks.nodes`; b is zero but for radial nodes), the sum over components
of products of gradients is

    (alpha^T alpha) o (a a^T) + M + M^T,  M = (alpha o (Z p^T))^T (alpha o b),

in products of matrices with one row for each position.

Level and trend, F, are free of the ridge. With F = Q R they are projected out of nodes and targets,
and what is left of the nodes' columns is U diag(sigma) V^T: a :class:`Spectrum`, in which every
ridge is a division. It comes from the rows written out, or where these are many from the normal
equations. That squares the condition number, which features of whitened positions bear, as ridges
below the rounding error are not considered; in the paper's raw coordinates it would be lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any, Literal, Self, TypeAlias

import attrs
import numpy as np
from scipy.linalg import cho_solve

from surrokit.limits import check_deadline
from surrokit.types import BoolArray, FloatArray
from surrokit_networks.nodes import SCRATCH, Nodes

Degree: TypeAlias = Literal[0, 1, 2]
"""Degree of the polynomial under a network."""

ROUNDING = 4.0 * float(np.finfo(np.float64).eps)
"""Eigenvalues below this are noise, in units of the trace before anything was projected out, or of
the sum of weights: nodes that hardly see the training points get no weight for it."""

COST = 1.05
"""Equations that generalised cross-validation counts for each degree of freedom.

With 1, the rule of the books, where there are about as many rows as nodes the ridge comes out far
too small in a few cases of a hundred, and the fit explodes (measured: error 17 where the best ridge
gives 0.26); with 1.05 it never did. Factors from 1.2 on throw away what exact values contain."""

_BY_POSITION = ("whitened", "targets", "gradients", "value_weights", "gradient_weights")


@attrs.frozen(kw_only=True, eq=False)
class Equations:
    """f(z_n) = t_n, and grad f(z_n) = g_n where that is known.

    ``whitened (n, dim)`` are z, ``targets (n, m)`` t, of order one about zero for the sake of
    rounding, and ``gradients (n, m, dim)`` g: m problems with the same left side. Weights (n,) are
    those of squared errors; where no gradient is known, it and its weight are zero. ``count`` are
    independent equations for each target: what is down-weighted counts less, copies once.
    """

    whitened: FloatArray
    targets: FloatArray
    gradients: FloatArray
    value_weights: FloatArray
    gradient_weights: FloatArray
    count: float

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def has_gradients(self) -> bool:
        """Whether any gradient is known."""
        return bool(self.gradient_weights.any())

    @property
    def total_weight(self) -> float:
        """Sum of the weights of values and of gradients' components."""
        dim = self.whitened.shape[1]
        return float(self.value_weights.sum() + dim * self.gradient_weights.sum())

    @property
    def n_rows(self) -> int:
        """How many equations there are for each target."""
        dim = self.whitened.shape[1]
        return int((self.value_weights > 0).sum() + dim * (self.gradient_weights > 0).sum())

    def take(self, rows: slice | BoolArray) -> Equations:
        """Return the equations of some positions, with the count in proportion to their number."""
        some: dict[str, Any] = {name: getattr(self, name)[rows] for name in _BY_POSITION}
        part = attrs.evolve(self, **some)
        return attrs.evolve(part, count=self.count * part.n_rows / max(self.n_rows, 1))

    def less_quadratic(self, matrix: FloatArray) -> Equations:
        """Return the equations for what is left of one target over z^T matrix z / 2."""
        pull = self.whitened @ matrix
        value = 0.5 * np.einsum("nd,nd->n", self.whitened, pull)
        known = self.gradient_weights > 0
        left = np.where(known[:, None, None], self.gradients - pull[:, None, :], 0.0)
        return attrs.evolve(self, targets=self.targets - value[:, None], gradients=left)

    @classmethod
    def join(cls, parts: Sequence[Equations]) -> Equations:
        """Return several sets of equations as one."""
        whole: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts]) for name in _BY_POSITION
        }
        return cls(**whole, count=sum(part.count for part in parts))


@attrs.frozen(kw_only=True, eq=False)
class Basis:
    """The columns of a regression: a constant if there is a level, a trend, then nodes.

    A trend's columns are nodes: z_k, and for degree two z_k^2 / 2 and (z_k + z_l)^2 / 2.
    """

    nodes: Nodes
    degree: Degree
    level: bool = True

    def __len__(self) -> int:
        return self.n_free + len(self.nodes)

    @property
    def n_free(self) -> int:
        """Columns free of the ridge."""
        return self.level + n_coefficients(self.nodes.dim, self.degree)

    @cached_property
    def parts(self) -> tuple[Nodes, ...]:
        """All columns as nodes, kind by kind."""
        dim = self.nodes.dim
        units, (first, second) = np.eye(dim), np.triu_indices(dim, 1)
        sums = np.concatenate([units, units[first] + units[second]])
        found = [Nodes.additive(np.zeros((1, dim)), np.zeros(1), "one")] if self.level else []
        trend = (
            Nodes.additive(units, np.zeros(dim), "identity"),
            Nodes.additive(sums, np.zeros(len(sums)), "square"),
        )
        return (*found, *trend[: self.degree], self.nodes)

    def features(self, z: FloatArray) -> FloatArray:
        """Return every column at whitened positions (n, dim), shape (n, len(self))."""
        return np.concatenate([part.features(z) for part in self.parts], axis=1)

    def jacobian(self, z: FloatArray) -> FloatArray:
        """Return the gradient of every column, shape (n, dim, len(self)): few rows at a time."""
        slopes = [
            part.lower(z, part.features_and_slopes(z)[1][:, None, :] * part.vectors.T)
            for part in self.parts
        ]
        return np.concatenate(slopes, axis=2)

    def polynomial(
        self, coefficients: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray | None]:
        """Return constants (m,), slopes (dim, m) and symmetric matrices (m, dim, dim).

        They come from coefficients of all columns (k, m); the matrices are None for degree one.
        """
        dim, m = self.nodes.dim, coefficients.shape[1]
        level = coefficients[0] if self.level else np.zeros(m)
        trend = coefficients[self.level : self.n_free]
        slope = trend[:dim] if self.degree else np.zeros((dim, m))
        if self.degree < 2:
            return level, slope, None
        sums = self.parts[-2].vectors
        bent = (trend[dim:].T[:, None, :] * sums.T) @ sums
        return level, slope, bent


def n_coefficients(dim: int, degree: Degree) -> int:
    """Return how many coefficients a polynomial has, the constant left out."""
    return (0, dim, dim + dim * (dim + 1) // 2)[degree]


def _blocks(equations: Equations, scratch: int) -> Iterator[Equations]:
    """Yield equations a few positions at a time, each of which takes so many numbers of scratch."""
    size = max(64, SCRATCH // max(1, scratch))
    for start in range(0, len(equations), size):
        check_deadline()
        yield equations.take(slice(start, start + size))


def write_out(basis: Basis, equations: Equations) -> Iterator[FloatArray]:
    """Yield sqrt(w) [columns, targets], shape (rows, k + m), block by block.

    Rows of values come first in each block, then rows of gradients.
    """
    k, m, dim = len(basis), equations.targets.shape[1], equations.whitened.shape[1]
    for block in _blocks(equations, (k + m) * (1 + dim * equations.has_gradients)):
        used = block.value_weights > 0
        columns = [basis.features(block.whitened[used]), block.targets[used]]
        rows = [np.concatenate(columns, axis=1) * np.sqrt(block.value_weights[used])[:, None]]
        used = block.gradient_weights > 0
        if used.any():
            columns = [basis.jacobian(block.whitened[used]), block.gradients[used].swapaxes(1, 2)]
            slopes = np.concatenate(columns, axis=2)
            slopes *= np.sqrt(block.gradient_weights[used])[:, None, None]
            rows.append(slopes.reshape(-1, k + m))
        yield np.vstack(rows)


def triangle_of(rows: Iterable[FloatArray]) -> FloatArray:
    """Return R of the QR factorisation of all rows, at most as many rows as columns."""
    triangle: FloatArray | None = None
    for block in rows:
        both = block if triangle is None else np.vstack([triangle, block])
        triangle = np.asarray(np.linalg.qr(both, mode="r"), dtype=np.float64)
    assert triangle is not None
    return triangle


@attrs.frozen(kw_only=True, eq=False)
class NormalEquations:
    """Sums over rows: columns by columns (k, k), by targets (k, m), and squares of targets (m,)."""

    gram: FloatArray
    right: FloatArray
    squares: FloatArray

    def __add__(self, other: NormalEquations) -> NormalEquations:
        return NormalEquations(
            gram=self.gram + other.gram,
            right=self.right + other.right,
            squares=self.squares + other.squares,
        )

    def coefficients(self, n_free: int, ridge: float) -> FloatArray:
        """Return the minimiser (k, m) of the squared error + ridge |v|^2, the first columns free.

        LinAlgError is raised if there is none. It takes a tenth of the time of a spectrum.
        """
        matrix, noise = self.gram.copy(), ROUNDING * float(np.trace(self.gram))
        np.einsum("kk->k", matrix)[n_free:] += ridge
        root = _cholesky(matrix, noise)
        return np.asarray(cho_solve((root, True), self.right, check_finite=False))


def normal_equations(basis: Basis, equations: Equations) -> NormalEquations:
    """Gather the normal equations of a basis."""
    nodes, size, m = basis.nodes, len(basis), equations.targets.shape[1]
    dim = equations.whitened.shape[1]
    vectors = np.zeros((size, nodes.vectors.shape[1]))
    vectors[: basis.n_free, :dim] = np.concatenate(
        [np.empty((0, dim)), *(part.vectors for part in basis.parts[:-1])]
    )
    vectors[basis.n_free :] = nodes.vectors
    gram, slope_gram, mixed = (np.zeros((size, size)) for _ in range(3))
    right, squares = np.zeros((size, m)), np.zeros(m)
    for block in _blocks(equations, size * max(1, m // 4)):
        z, weights, targets = block.whitened, block.value_weights, block.targets
        pairs = [part.features_and_slopes(z) for part in basis.parts]
        features, slopes = (np.concatenate(each, axis=1) for each in zip(*pairs, strict=True))
        right += features.T @ (weights[:, None] * targets)
        squares += weights @ np.square(targets)
        features *= np.sqrt(weights)[:, None]
        gram += features.T @ features
        if not equations.has_gradients:
            continue
        weights, gradients = block.gradient_weights, block.gradients
        squares += weights @ np.einsum("nmd,nmd->nm", gradients, gradients)
        # First over rows, in one product for all outputs, then over coordinates.
        lifted = nodes.lift_vectors(z, gradients)
        moments = (slopes * weights[:, None]).T @ lifted.reshape(len(z), m * lifted.shape[2])
        right += np.einsum("kmd,kd->km", moments.reshape(size, m, vectors.shape[1]), vectors)
        if nodes.curved:
            along = slopes * (nodes.lift(z) @ vectors.T)
            mixed += along.T @ (slopes * weights[:, None] * vectors[:, dim])
        slopes *= np.sqrt(weights)[:, None]
        slope_gram += slopes.T @ slopes
    own = vectors[:, :dim]
    gram += slope_gram * (own @ own.T) + mixed + mixed.T
    return NormalEquations(gram=gram, right=right, squares=squares)


@attrs.frozen(kw_only=True, eq=False)
class Solution:
    """Coefficients (k, m) of level, trend and nodes, and what to expect of them.

    ``degrees`` is the effective number of parameters of a target, and ``error`` the mean squared
    error of an equation, summed over targets (:func:`expected_error`).
    """

    coefficients: FloatArray
    ridge: float
    degrees: float
    error: float


def expected_error(count: float, weight: float, residual_squares: float, degrees: float) -> float:
    """Return the generalised cross-validation error of a fit (Golub, Heath and Wahba 1979).

    ``count`` and ``degrees`` are independent equations and effective parameters of each target,
    ``weight`` that of values and of gradients' components. The error is infinite where there are as
    many degrees of freedom as equations.
    """
    spare = 1.0 - degrees / count
    return float("inf") if spare <= 1e-10 else float(residual_squares / weight / spare**2)


@attrs.frozen(kw_only=True, eq=False)
class Spectrum:
    """A regression in the basis where it separates into one number at a time.

    Of the nodes' columns, with the free ones projected out, ``singular (r,)`` are sigma and
    ``vectors (s, r)`` V; ``left (r, m)`` is U^T T. What no combination of columns reaches has the
    sum of squares ``unreachable``. ``inverse (f, f)`` is R^-1, ``cross (f, s)`` the product of Q^T
    and the nodes' columns, and ``known (f, m)`` that of Q^T and targets. Squares of sigma have the
    rounding error ``noise``.
    """

    singular: FloatArray
    vectors: FloatArray
    left: FloatArray
    unreachable: float
    inverse: FloatArray
    cross: FloatArray
    known: FloatArray
    noise: float

    @classmethod
    def of_rows(cls, rows: Iterable[FloatArray], n_free: int, m: int, mass: float) -> Self:
        """Return that of rows [columns, targets] with the targets in the last m columns.

        The ``mass`` is the sum of all weights.
        """
        triangle = triangle_of(rows)
        top, targets = triangle[:n_free], triangle[n_free:, -m:]
        u, singular, vectors = np.linalg.svd(triangle[n_free:, n_free:-m], full_matrices=False)
        left = u.T @ targets
        whole = cls(
            singular=singular,
            vectors=vectors.T,
            left=left,
            unreachable=float(np.square(targets - u @ left).sum()),
            # a direction in which no position varies has no say
            inverse=np.asarray(np.linalg.pinv(top[:, :n_free]), np.float64),
            cross=top[:, n_free:-m],
            known=top[:, -m:],
            noise=ROUNDING * mass,
        )
        rounding = max(triangle.shape) * np.finfo(float).eps
        return whole.above(rounding * float(singular.max(initial=0.0)))

    @classmethod
    def of_sums(cls, sums: NormalEquations, n_free: int, mass: float) -> Self:
        """Return that of normal equations; LinAlgError if the trend has no Cholesky factor."""
        free, nodes = sums.gram[:n_free], sums.gram[n_free:, n_free:]
        root = _cholesky(free[:, :n_free], ROUNDING * float(np.trace(free)))
        inverse: FloatArray = np.asarray(np.linalg.solve(root, np.eye(n_free)), np.float64).T
        cross, known = inverse.T @ free[:, n_free:], inverse.T @ sums.right[:n_free]
        # a level takes up what features have in common, which would count as rounding otherwise
        own = np.trace(nodes) - (np.square(cross[0]).sum() if n_free else 0.0)
        noise = ROUNDING * max(float(own), mass)
        squares, vectors = np.linalg.eigh(nodes - cross.T @ cross)
        singular, vectors = np.sqrt(squares[squares > noise]), vectors[:, squares > noise]
        left = vectors.T @ (sums.right[n_free:] - cross.T @ known) / singular[:, None]
        reached = float(np.square(known).sum() + np.square(left).sum())
        return cls(
            singular=singular,
            vectors=vectors,
            left=left,
            unreachable=max(0.0, float(sums.squares.sum()) - reached),
            inverse=inverse,
            cross=cross,
            known=known,
            noise=noise,
        )

    def above(self, least: float) -> Self:
        """Return the spectrum with singular values of at least ``least`` alone."""
        kept = self.singular > least
        return attrs.evolve(
            self,
            singular=self.singular[kept],
            vectors=self.vectors[:, kept],
            left=self.left[kept],
        )

    def cross_validated(self, count: float, cost: float = COST) -> float:
        """Return the ridge with the least generalised cross-validation score, the largest of them.

        The score is RSS / (n - cost degrees)^2, and infinite where there are not so many degrees of
        freedom, n the ``count`` of independent equations.
        """
        squares = np.square(self.singular)
        # Where every feature is constant any ridge will do.
        largest = float(squares.max(initial=0.0)) or 1.0
        ridges = np.maximum(np.logspace(4.0, -13.0, 103) * largest, self.noise)
        held = ridges[:, None] / (squares + ridges[:, None])
        residuals = self.unreachable + held**2 @ np.square(self.left).sum(axis=1)
        spare = count - cost * (len(self.known) + (1.0 - held).sum(axis=1))
        scores = np.full(len(ridges), np.inf)
        np.divide(residuals, spare**2, out=scores, where=spare > 0.0)
        return float(ridges[np.argmin(scores)])

    def coefficients(self, ridge: float) -> FloatArray:
        """Return the minimiser of the weighted squared error + ridge |v|^2, shape (k, m).

        With ridge 0 it is that of least |v|: v = H^+ T of Algorithm 2.
        """
        weights = self.vectors @ (self.left * (self.singular / (self.singular**2 + ridge))[:, None])
        return np.vstack([self.inverse @ (self.known - self.cross @ weights), weights])

    def solution(self, equations: Equations, ridge: float) -> Solution:
        """Return the coefficients with the error to expect of them."""
        held = ridge / (self.singular**2 + ridge)
        degrees = float(len(self.known) + (1.0 - held).sum())
        residual = self.unreachable + float(held**2 @ np.square(self.left).sum(axis=1))
        return Solution(
            coefficients=self.coefficients(ridge),
            ridge=ridge,
            degrees=degrees,
            error=expected_error(equations.count, equations.total_weight, residual, degrees),
        )


def _cholesky(matrix: FloatArray, noise: float) -> FloatArray:
    """Return the factor of a matrix, with as little added to its diagonal as it takes."""
    for jitter in (0.0, 1.0, 1e2, 1e4, 1e6):
        try:
            return np.asarray(np.linalg.cholesky(matrix + jitter * noise * np.eye(len(matrix))))
        except np.linalg.LinAlgError:
            continue
    return np.asarray(np.linalg.cholesky(matrix + 1e8 * noise * np.eye(len(matrix))))


def solve(
    basis: Basis, equations: Equations, ridge: float | None, held: BoolArray | None = None
) -> tuple[Solution, FloatArray | None]:
    """Return the solution, and coefficients of a twin, which the rows ``held (n,)`` are not shown.

    A ridge of None is chosen by generalised cross-validation of all rows; the twin has the same.
    NumPy's LinAlgError is raised if the numbers cannot be handled.
    """
    m, n_free = equations.targets.shape[1], basis.n_free
    twin: Callable[[float], FloatArray] | None = None
    exact = ridge is not None and (ridge == 0.0 or not equations.has_gradients)
    if exact or equations.n_rows < len(basis.nodes):

        def spectrum(some: Equations) -> Spectrum:
            return Spectrum.of_rows(write_out(basis, some), n_free, m, some.total_weight)

        whole = spectrum(equations)
        twin = None if held is None else spectrum(equations.take(~held)).coefficients
    else:
        shown = equations if held is None else equations.take(~held)
        sums = normal_equations(basis, shown)
        if held is not None:
            twin = partial(sums.coefficients, n_free)
            sums = sums + normal_equations(basis, equations.take(held))
        whole = Spectrum.of_sums(sums, n_free, equations.total_weight)
    if ridge is None:
        ridge = whole.cross_validated(equations.count)
    return whole.solution(equations, ridge), None if twin is None else twin(ridge)
