"""Metrics made positive definite: SoftAbs, and their factors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Self

import attrs
import numpy as np
from scipy.linalg import solve_triangular

from surrokit.arguments import HIDDEN, positive
from surrokit.capabilities import (
    CONVEX,
    HESSIAN,
    HESSIAN_DERIVATIVE,
    HESSIAN_DIAGONAL,
    METRIC,
    METRIC_DERIVATIVE,
)
from surrokit.errors import IndefiniteMetricError
from surrokit.potentials import (
    HESSIAN_FIELD,
    METRIC_FIELD,
    FormsAt,
    MatrixField,
    Potential,
    with_hessian,
    with_hessian_derivative,
    with_hessian_diagonal,
)
from surrokit.types import Cache, Capabilities, FloatArray, IntArray


def lower_factors(matrices: FloatArray) -> FloatArray:
    """Return Cholesky factors of symmetric matrices (n, dim, dim), NaN where there is none."""
    try:
        return np.asarray(np.linalg.cholesky(matrices))
    except np.linalg.LinAlgError:  # of some; column by column the others have theirs
        lower = np.zeros_like(matrices)
    with np.errstate(all="ignore"):
        for j in range(matrices.shape[1]):
            row = lower[:, j, :j]
            root = np.sqrt(matrices[:, j, j] - dot(row, row))  # NaN unless the pivot is positive
            below = np.einsum("nik,nk->ni", lower[:, j + 1 :, :j], row)
            lower[:, j, j] = root
            lower[:, j + 1 :, j] = (matrices[:, j + 1 :, j] - below) / root[:, None]
    diagonal = np.diagonal(lower, axis1=1, axis2=2)
    lower[~((diagonal > 0) & np.isfinite(diagonal)).all(axis=1)] = np.nan
    return lower


def factorise(matrices: FloatArray) -> dict[str, FloatArray]:
    """Return the cache of symmetric matrices (n, dim, dim): see :class:`DenseMassMatrix`.

    It is NaN where a matrix is not positive definite.
    """
    lower = lower_factors(matrices)
    half = np.linalg.inv(lower)
    log_determinant = 2.0 * np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)
    return {
        "metric_factor": lower,
        "metric_inverse": half.transpose(0, 2, 1) @ half,
        "log_determinant": np.asarray(log_determinant),
    }


def product(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    """Return M v for each row, shape (n, dim), from M (n, dim, dim) and v (n, dim)."""
    return np.asarray(np.matmul(matrices, vectors[:, :, None])[:, :, 0])


def dot(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the product of each two rows, shape (n,), of two arrays of shape (n, dim)."""
    return np.asarray(np.einsum("ni,ni->n", first, second))


class PositionKinetic(ABC):
    """The kinetic energy of a mass matrix G(q) by velocities, and by ``log_determinant`` (n,)."""

    @abstractmethod
    def velocity(self, cache: Cache, momenta: FloatArray) -> FloatArray:
        """Return G^-1 p, shape (n, dim)."""

    def energy(self, cache: Cache, momenta: FloatArray) -> FloatArray:
        """Return log det G / 2 + p^T G^-1 p / 2, shape (n,)."""
        return 0.5 * (cache["log_determinant"] + dot(momenta, self.velocity(cache, momenta)))

    def approximate_product(
        self,
        potential: Potential,  # noqa: ARG002
        positions: FloatArray,  # noqa: ARG002
        vectors: FloatArray,  # noqa: ARG002
    ) -> FloatArray | None:
        """Return about G u, shape (n, dim), if that is much cheaper than G."""
        return None


class DenseMassMatrix(PositionKinetic):
    """Momenta of a mass matrix G = F F^T that is kept with its inverse.

    The inverse is needed for the derivative of log det G in any case, and makes a velocity one
    small product.

    ====================  ===============  =========
    in the cache          shape            what
    ====================  ===============  =========
    ``metric_factor``     (n, dim, dim)    F
    ``metric_inverse``    (n, dim, dim)    G^-1
    ``log_determinant``   (n,)             log det G
    ====================  ===============  =========
    """

    field: ClassVar[MatrixField]
    """The matrix of the potential that G is made of."""

    def draw(self, rng: np.random.Generator, cache: Cache) -> FloatArray:
        """Draw momenta from N(0, G), shape (n, dim)."""
        factor = cache["metric_factor"]
        return product(factor, rng.standard_normal(factor.shape[:2]))

    def velocity(self, cache: Cache, momenta: FloatArray) -> FloatArray:
        """Return G^-1 p, shape (n, dim)."""
        return product(cache["metric_inverse"], momenta)

    def momentum(self, cache: Cache, velocities: FloatArray) -> FloatArray:
        """Return G u, shape (n, dim)."""
        factor = cache["metric_factor"]
        return product(factor, product(factor.transpose(0, 2, 1), velocities))

    @abstractmethod
    def forms_at(self, potential: Potential, positions: FloatArray, cache: Cache) -> FormsAt:
        """Return :meth:`form_gradient` of some rows, with all that velocities do not change."""

    def form_gradient(
        self, potential: Potential, positions: FloatArray, cache: Cache, velocities: FloatArray
    ) -> FloatArray:
        """Return u^T d_k G u, shape (n, dim)."""
        return self.forms_at(potential, positions, cache)(velocities, np.arange(len(positions)))

    def approximate_product(
        self, potential: Potential, positions: FloatArray, vectors: FloatArray
    ) -> FloatArray | None:
        """Return the field's matrix times u, shape (n, dim), if that is cheaper than the matrix."""
        if self.field.quick_product not in potential.capabilities:
            return None
        return self.field.product(potential, positions, vectors)


class _Definite(DenseMassMatrix):
    """A matrix of the potential that is factorised as it is; it has no units."""

    tunable: ClassVar[bool] = False
    """Never."""

    def adapt(self, covariance: FloatArray) -> Self:  # noqa: ARG002
        """Return itself."""
        return self

    def factor(self, potential: Potential, positions: FloatArray) -> Cache:
        """Factorise G at positions (n, dim).

        Raises
        ------
        IndefiniteMetricError
            Where it is finite and not positive definite.
        """
        matrices = self.field.matrix(potential, positions)
        cache = factorise(matrices)
        failed = np.flatnonzero(np.isnan(cache["log_determinant"]))
        finite = np.isfinite(matrices[failed]).all(axis=(1, 2))
        failed = failed[finite & np.isfinite(positions[failed]).all(axis=1)]
        if failed.size:
            i = failed[0]
            what = "Hessian" if self.field == HESSIAN_FIELD else "metric"
            least = np.linalg.eigvalsh(matrices[i])[0]
            with np.printoptions(precision=4, threshold=8):
                raise IndefiniteMetricError(
                    f"the {what} of {type(potential).__name__} must be positive definite to be a "
                    f"mass matrix, but has eigenvalue {least:.3g} at position {positions[i]}; use "
                    "metric 'softabs', which is positive definite everywhere (to reject such "
                    "positions would cut them out of the target)"
                )
        return cache

    def log_determinant_gradient(
        self, potential: Potential, positions: FloatArray, cache: Cache
    ) -> FloatArray:
        """Return tr(G^-1 d_k G), shape (n, dim)."""
        return self.field.trace_gradient(potential, positions, cache["metric_inverse"])

    def forms_at(
        self,
        potential: Potential,
        positions: FloatArray,
        cache: Cache,  # noqa: ARG002
    ) -> FormsAt:
        """Return :meth:`form_gradient` of some rows, with all that velocities do not change."""
        return self.field.forms_at(potential, positions)


@attrs.frozen
class OwnMetric(_Definite):
    """G = the potential's own ``metric``, its Fisher information or Gauss-Newton matrix.

    Girolami and Calderhead (2011), doi:10.1111/j.1467-9868.2010.00765.x, section 4; the paper's
    section 2.2.
    """

    field: ClassVar[MatrixField] = METRIC_FIELD

    needs: ClassVar[Capabilities] = frozenset({METRIC, METRIC_DERIVATIVE})
    """The metric and its derivative."""


@attrs.frozen
class HessianMetric(_Definite):
    """G = the Hessian of a convex potential.

    Parameters
    ----------
    trusted
        Take Hessians of potentials that do not say that they are convex.
    """

    field: ClassVar[MatrixField] = HESSIAN_FIELD
    trusted: bool = False

    @property
    def needs(self) -> Capabilities:
        """The Hessian and its derivative, of a convex potential unless it is trusted."""
        convex = frozenset() if self.trusted else frozenset({CONVEX})
        return frozenset({HESSIAN, HESSIAN_DERIVATIVE}) | convex


HARDNESS = 30.0
"""Default of the hardness. The metric then equals the Hessian wherever no curvature has fallen
below two thirds of the typical one, and takes the target to be at most 5.5 of its standard
deviations wide. With a harder one the metric changes so fast where a curvature crosses zero that
implicit steps have no solution unless they are tiny: on a banana, warm-up finds steps of 0.2 for a
hardness of 10, of 0.06 for 30, and of 0.01 for 100."""

CERTAIN = 19.1
"""Beyond this, x coth(x) is x to the last digit of double precision."""

_SERIES = (2 / 3, -4 / 45, 4 / 315, -8 / 4725, 4 / 18711, -5528 / 212837625, 8 / 2606175)
"""Slope of x coth(x) around 0, by odd powers; below 0.2 the next term is 1e-17."""

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(6)


@attrs.frozen(eq=False)
class SoftAbsMetric(DenseMassMatrix):
    """G = L^-T Q diag(l coth(a l)) Q^T L^-1, with Q diag(l) Q^T = L^T H L and H the Hessian.

    Betancourt (2013), arXiv:1212.4693, in units in which the covariance L L^T of the target is
    the identity. G is positive definite and smooth everywhere. Where all l are beyond 19.1 / a it
    equals H to the last digit; one Cholesky factorisation detects that, and such rows need no
    eigenvectors.

    Besides what :class:`DenseMassMatrix` keeps, the cache has ``metric_certain`` (n,), 1 where G
    equals H and else 0; and where it is 0, ``metric_curvatures`` (n, dim), a l, and
    ``metric_directions`` (n, dim, dim), V = L Q with H = V^-T diag(l) V^-1.

    Parameters
    ----------
    hardness
        a. The least eigenvalue of G is 1 / a in these units.
    covariance : ndarray of shape (dim, dim), optional
        The units; None for those of the potential, until they are tuned.

    Raises
    ------
    ConfigurationError
        If the hardness is not positive.
    """

    field: ClassVar[MatrixField] = HESSIAN_FIELD
    hardness: float = attrs.field(default=HARDNESS, validator=positive)
    covariance: FloatArray | None = attrs.field(default=None, metadata=HIDDEN)

    needs: ClassVar[Capabilities] = frozenset({HESSIAN, HESSIAN_DERIVATIVE})
    """The Hessian and its derivative."""

    tunable: ClassVar[bool] = True
    """Always: its units."""

    def adapt(self, covariance: FloatArray) -> SoftAbsMetric:
        """Return the metric in units in which a covariance (dim, dim) is the identity."""
        return attrs.evolve(self, covariance=covariance)

    def _units(self, dim: int) -> tuple[FloatArray, FloatArray]:
        """Return L and its inverse, of shape (dim, dim)."""
        if self.covariance is None:
            return np.eye(dim), np.eye(dim)
        factor = np.asarray(np.linalg.cholesky(self.covariance), dtype=np.float64)
        return factor, np.asarray(solve_triangular(factor, np.eye(dim), lower=True))

    def factor(self, potential: Potential, positions: FloatArray) -> Cache:
        """Evaluate the Hessian at positions (n, dim), and factorise G."""
        hessian = self.field.matrix(potential, positions)
        n, dim = positions.shape
        lower, inverse = self._units(dim)
        above = hessian - (CERTAIN / self.hardness) * (inverse.T @ inverse)
        certain = np.asarray(np.isfinite(lower_factors(above)).all(axis=(1, 2)))
        cache = factorise(hessian)
        cache["metric_certain"] = certain.astype(np.float64)
        cache["metric_curvatures"] = np.zeros((n, dim))
        cache["metric_directions"] = np.zeros((n, dim, dim))
        finite = np.isfinite(hessian).all(axis=(1, 2))
        rows = np.flatnonzero(finite & ~certain)
        if rows.size:
            values, vectors = np.linalg.eigh(lower.T @ hessian[rows] @ lower)
            curvatures, directions = self.hardness * values, lower @ vectors
            scales = softabs(curvatures) / self.hardness
            # the symmetric root, which unlike the eigenvectors is one and the same on any machine
            root = (vectors * np.sqrt(scales)[:, None, :]) @ vectors.transpose(0, 2, 1)
            scaled = directions / np.sqrt(scales)[:, None, :]
            log_units = 2.0 * np.log(np.diag(lower)).sum()
            cache["metric_factor"][rows] = inverse.T @ root
            cache["metric_inverse"][rows] = scaled @ scaled.transpose(0, 2, 1)
            cache["log_determinant"][rows] = np.log(scales).sum(axis=1) - log_units
            cache["metric_curvatures"][rows] = curvatures
            cache["metric_directions"][rows] = directions
        for array in cache.values():
            array[~finite] = np.nan
        return cache

    def log_determinant_gradient(
        self, potential: Potential, positions: FloatArray, cache: Cache
    ) -> FloatArray:
        """Return tr(G^-1 d_k G) = tr(V diag(f'(l) / f(l)) V^T d_k H), shape (n, dim)."""
        matrices = cache["metric_inverse"]
        rows = np.flatnonzero(cache["metric_certain"] == 0.0)
        if rows.size:
            curvatures = cache["metric_curvatures"][rows]
            directions = cache["metric_directions"][rows]
            ratio = self.hardness * softabs_slope(curvatures) / softabs(curvatures)
            matrices = matrices.copy()
            matrices[rows] = (directions * ratio[:, None, :]) @ directions.transpose(0, 2, 1)
        return self.field.trace_gradient(potential, positions, matrices)

    def forms_at(self, potential: Potential, positions: FloatArray, cache: Cache) -> FormsAt:
        """Return :meth:`form_gradient` of some rows, with all that velocities do not change.

        Where G equals H that is one cheap form. Elsewhere it is tr(B d_k H) with
        B = V (J o w w^T) V^T, w = V^-1 u, and J the divided differences of l coth(a l).
        """
        soft = cache["metric_certain"] == 0.0
        plain = self.field.forms_at(potential, positions)
        if not soft.any():
            return plain
        traces = self.field.traces_at(potential, positions)
        directions, (_, inverse) = cache["metric_directions"], self._units(positions.shape[1])
        back = directions.transpose(0, 2, 1) @ (inverse.T @ inverse)
        differences = divided_differences(cache["metric_curvatures"])

        def forms(velocities: FloatArray, rows: IntArray) -> FloatArray:
            gradient, these = np.empty_like(velocities), soft[rows]
            if not these.all():
                gradient[~these] = plain(velocities[~these], rows[~these])
            if these.any():
                own = rows[these]
                w = product(back[own], velocities[these])
                middle = differences[own] * w[:, :, None] * w[:, None, :]
                here = directions[own]
                gradient[these] = traces(here @ middle @ here.transpose(0, 2, 1), own)
            return gradient

        return forms


@attrs.frozen(eq=False)
class DiagonalMetric(PositionKinetic):
    """G = diag(h_j coth(a h_j)), with h the diagonal of the Hessian in units of the target.

    Cheap, as in the paper's experiment with a partial differential equation (section 5.2), and
    good where parameters are nearly independent. The cache has ``metric_diagonal`` (n, dim), that
    of G; ``metric_slope`` (n, dim), its derivative in that of the Hessian; and
    ``log_determinant`` (n,).

    Parameters
    ----------
    hardness
        a, in units in which the target's variances are 1.
    variances : ndarray of shape (dim,), optional
        The units; None for those of the potential, until they are tuned.

    Raises
    ------
    ConfigurationError
        If the hardness is not positive.
    """

    hardness: float = attrs.field(default=HARDNESS, validator=positive)
    variances: FloatArray | None = attrs.field(default=None, metadata=HIDDEN)

    needs: ClassVar[Capabilities] = frozenset({HESSIAN, HESSIAN_DERIVATIVE})
    """The Hessian and its derivative; where there is its diagonal alone, that is used."""

    tunable: ClassVar[bool] = True
    """Always: its units."""

    def adapt(self, covariance: FloatArray) -> DiagonalMetric:
        """Return the metric in units in which variances of a covariance (dim, dim) are 1."""
        return attrs.evolve(self, variances=np.diag(covariance).copy())

    def factor(self, potential: Potential, positions: FloatArray) -> Cache:
        """Evaluate the diagonal of the Hessian at positions (n, dim)."""
        if HESSIAN_DIAGONAL in potential.capabilities:
            curvatures = with_hessian_diagonal(potential).hessian_diagonal(positions)
        else:
            hessian = with_hessian(potential).hessian(positions)
            curvatures = np.diagonal(hessian, axis1=1, axis2=2).copy()
        variances = 1.0 if self.variances is None else self.variances
        x = self.hardness * variances * curvatures
        x[~np.isfinite(x).all(axis=1)] = np.nan
        diagonal = softabs(x) / (self.hardness * variances)
        return {
            "metric_diagonal": diagonal,
            "metric_slope": softabs_slope(x),
            "log_determinant": np.asarray(np.log(diagonal).sum(axis=1)),
        }

    def log_determinant_gradient(
        self, potential: Potential, positions: FloatArray, cache: Cache
    ) -> FloatArray:
        """Return tr(G^-1 d_k G), shape (n, dim)."""
        weights = cache["metric_slope"] / cache["metric_diagonal"]
        return _diagonal_gradient(potential, positions, weights)

    def form_gradient(
        self, potential: Potential, positions: FloatArray, cache: Cache, velocities: FloatArray
    ) -> FloatArray:
        """Return u^T d_k G u, shape (n, dim)."""
        weights = cache["metric_slope"] * np.square(velocities)
        return _diagonal_gradient(potential, positions, weights)

    def draw(self, rng: np.random.Generator, cache: Cache) -> FloatArray:
        """Draw momenta from N(0, G), shape (n, dim)."""
        diagonal = cache["metric_diagonal"]
        return np.asarray(np.sqrt(diagonal) * rng.standard_normal(diagonal.shape))

    def velocity(self, cache: Cache, momenta: FloatArray) -> FloatArray:
        """Return G^-1 p, shape (n, dim)."""
        return np.asarray(momenta / cache["metric_diagonal"])

    def momentum(self, cache: Cache, velocities: FloatArray) -> FloatArray:
        """Return G u, shape (n, dim)."""
        return np.asarray(velocities * cache["metric_diagonal"])


def _diagonal_gradient(
    potential: Potential, positions: FloatArray, weights: FloatArray
) -> FloatArray:
    """Return sum_j c_j d_k H_jj, shape (n, dim), from the weights c (n, dim)."""
    if HESSIAN_DIAGONAL in potential.capabilities:
        of_diagonal = with_hessian_diagonal(potential).hessian_diagonal_gradient
        return np.asarray(of_diagonal(positions, weights))
    matrices = weights[:, :, None] * np.eye(weights.shape[1])
    return with_hessian_derivative(potential).hessian_trace_gradient(positions, matrices)


# --- the function ---


def softabs(x: FloatArray) -> FloatArray:
    """Return x coth(x), which is 1 at 0 and close to abs(x) far from it."""
    with np.errstate(invalid="ignore"):
        return np.where(x == 0.0, 1.0, x / np.tanh(x))


def softabs_slope(x: FloatArray) -> FloatArray:
    """Return the derivative of x coth(x)."""
    square = np.square(x)
    series = np.zeros_like(x)
    for coefficient in reversed(_SERIES):
        series = series * square + coefficient
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        slope = 1.0 / np.tanh(x) - x / np.square(np.sinh(x))
    slope = np.where(np.abs(x) > CERTAIN, np.sign(x), slope)
    return np.where(np.abs(x) < 0.2, x * series, slope)


def divided_differences(x: FloatArray) -> FloatArray:
    """Return (f(x_i) - f(x_j)) / (x_i - x_j) for f(x) = x coth(x), and f'(x_i) where i = j.

    From x (n, dim), shape (n, dim, dim). For arguments close to each other it is the mean of the
    slope between them, by Gauss's quadrature with six points, which is exact to rounding here.
    """
    gap = x[:, :, None] - x[:, None, :]
    value = softabs(x)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = (value[:, :, None] - value[:, None, :]) / gap
    close = np.abs(gap) < 0.5
    both = np.arange(x.shape[1])
    close[:, both, both] = False
    found[:, both, both] = softabs_slope(x)
    rows, i, j = np.nonzero(close)
    if rows.size:
        first, second = x[rows, i], x[rows, j]
        between = 0.5 * (first + second)[:, None] + 0.5 * (first - second)[:, None] * _NODES
        found[rows, i, j] = softabs_slope(between) @ (0.5 * _WEIGHTS)
    return found
