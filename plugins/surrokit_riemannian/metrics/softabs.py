"""The softabs metric: the Hessian with the smooth absolute values of its eigenvalues."""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np
from scipy.linalg import solve_triangular

from surrokit.capabilities import HESSIAN, HESSIAN_DERIVATIVE
from surrokit.contracts.matrices import HESSIAN_FIELD, FormsAt, MatrixField
from surrokit.contracts.potential import Potential
from surrokit.settings import HIDDEN, positive
from surrokit.types import BoolArray, Cache, Capabilities, FloatArray, IntArray
from surrokit_riemannian.metrics.dense import DenseMassMatrix, dense_cache
from surrokit_riemannian.metrics.factors import are_definite, factorise, product
from surrokit_riemannian.metrics.softabs_function import (
    CERTAIN,
    divided_differences,
    softabs,
    softabs_slope,
)

HARDNESS = 30.0
"""Default of the hardness. The metric then equals the Hessian wherever no curvature has fallen
below two thirds of the typical one, and takes the target to be at most 5.5 of its standard
deviations wide. With a harder one the metric changes so fast where a curvature crosses zero that
implicit steps have no solution unless they are tiny: on a banana, warm-up finds steps of 0.2 for a
hardness of 10, of 0.06 for 30, and of 0.01 for 100."""


@attrs.frozen(eq=False)
class SoftAbsMetric(DenseMassMatrix):
    """G = L^-T Q diag(l coth(a l)) Q^T L^-1, with Q diag(l) Q^T = L^T H L and H the Hessian.

    Betancourt (2013), arXiv:1212.4693, in units in which the covariance L L^T of the target is
    the identity. G is positive definite and smooth everywhere. Where all l are beyond 19.1 / a it
    equals H to the last digit; that is told by one Cholesky factorisation, and such rows need no
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
    _factor: FloatArray | None = attrs.field(init=False, repr=False)
    _inverse_factor: FloatArray | None = attrs.field(init=False, repr=False)

    @_factor.default
    def _lower(self) -> FloatArray | None:
        if self.covariance is None:
            return None
        return np.asarray(np.linalg.cholesky(self.covariance), dtype=np.float64)

    @_inverse_factor.default
    def _inverted(self) -> FloatArray | None:
        if self._factor is None:
            return None
        identity = np.eye(len(self._factor))
        return np.asarray(solve_triangular(self._factor, identity, lower=True), dtype=np.float64)

    needs: ClassVar[Capabilities] = frozenset({HESSIAN, HESSIAN_DERIVATIVE})
    """The Hessian and its derivative."""

    tunable: ClassVar[bool] = True
    """Always: its units."""

    def adapt(self, covariance: FloatArray) -> SoftAbsMetric:
        """Return the metric in units in which a covariance (dim, dim) is the identity."""
        return attrs.evolve(self, covariance=covariance)

    def factor(self, potential: Potential, positions: FloatArray) -> Cache:
        """Evaluate the Hessian at positions (n, dim), and factorise G."""
        hessian = self.field.matrix(potential, positions)
        n, dim = positions.shape
        certain = are_definite(hessian - (CERTAIN / self.hardness) * self._unit_precision(dim))
        cache = dense_cache(factorise(hessian))
        cache["metric_certain"] = certain.astype(np.float64)
        cache["metric_curvatures"] = np.zeros((n, dim))
        cache["metric_directions"] = np.zeros((n, dim, dim))
        if not certain.all():
            finite = np.isfinite(hessian).all(axis=(1, 2))
            self._soften(cache, hessian, np.flatnonzero(finite & ~certain))
            for array in cache.values():
                array[~finite] = np.nan
        return cache

    def _unit_precision(self, dim: int) -> FloatArray:
        """Return L^-T L^-1, shape (dim, dim)."""
        inverse = self._inverse_factor
        return np.eye(dim) if inverse is None else inverse.T @ inverse

    def _soften(self, cache: dict[str, FloatArray], hessian: FloatArray, rows: IntArray) -> None:
        """Write what belongs to some rows, by their eigenvectors, into the cache."""
        if not rows.size:
            return
        softened = hessian[rows]
        if self._factor is not None:
            softened = self._factor.T @ softened @ self._factor
        values, vectors = np.linalg.eigh(softened)
        curvatures = self.hardness * values
        scales = softabs(curvatures) / self.hardness
        # the symmetric root, which unlike the eigenvectors is one and the same on any machine
        root = (vectors * np.sqrt(scales)[:, None, :]) @ vectors.transpose(0, 2, 1)
        log_determinant = np.log(scales).sum(axis=1)
        directions = vectors
        if self._factor is not None and self._inverse_factor is not None:
            root = self._inverse_factor.T @ root
            directions = self._factor @ vectors
            log_determinant -= 2.0 * np.log(np.diag(self._factor)).sum()
        scaled = directions / np.sqrt(scales)[:, None, :]
        cache["metric_factor"][rows] = root
        cache["metric_inverse"][rows] = scaled @ scaled.transpose(0, 2, 1)
        cache["log_determinant"][rows] = log_determinant
        cache["metric_curvatures"][rows] = curvatures
        cache["metric_directions"][rows] = directions

    def log_determinant_gradient(
        self, potential: Potential, positions: FloatArray, cache: Cache
    ) -> FloatArray:
        """Return tr(G^-1 d_k G) = tr(V diag(f'(l) / f(l)) V^T d_k H), shape (n, dim)."""
        matrices = cache["metric_inverse"]
        rows = np.flatnonzero(_soft(cache))
        if rows.size:
            curvatures, directions = _soften(cache, rows)
            ratio = self.hardness * softabs_slope(curvatures) / softabs(curvatures)
            matrices = matrices.copy()
            matrices[rows] = (directions * ratio[:, None, :]) @ directions.transpose(0, 2, 1)
        return self.field.trace_gradient(potential, positions, matrices)

    def form_gradient(
        self, potential: Potential, positions: FloatArray, cache: Cache, velocities: FloatArray
    ) -> FloatArray:
        """Return u^T d_k G u, shape (n, dim).

        Where G equals H that is one cheap form. Elsewhere it is tr(B d_k H) with
        B = V (J o w w^T) V^T, w = V^-1 u, and J the divided differences of l coth(a l).
        """
        return self.forms_at(potential, positions, cache)(velocities, np.arange(len(positions)))

    def forms_at(self, potential: Potential, positions: FloatArray, cache: Cache) -> FormsAt:
        """Return :meth:`form_gradient` of some rows, with all that velocities do not change."""
        soft = _soft(cache)
        plain = self.field.forms_at(potential, positions)
        if not soft.any():
            return plain
        traces = self.field.traces_at(potential, positions)
        directions = cache["metric_directions"]
        back = directions.transpose(0, 2, 1)
        if self.covariance is not None:
            back = back @ self._unit_precision(positions.shape[1])
        differences = divided_differences(cache["metric_curvatures"])

        def softened(velocities: FloatArray, rows: IntArray) -> FloatArray:
            w = product(back[rows], velocities)
            middle = differences[rows] * w[:, :, None] * w[:, None, :]
            here = directions[rows]
            return traces(here @ middle @ here.transpose(0, 2, 1), rows)

        return _of_both(plain, softened, soft)


def _of_both(plain: FormsAt, softened: FormsAt, soft: BoolArray) -> FormsAt:
    """Return the forms of which those of ``soft (n,)`` rows are another function."""

    def forms(velocities: FloatArray, rows: IntArray) -> FloatArray:
        these = soft[rows]
        if these.all():
            return softened(velocities, rows)
        if not these.any():
            return plain(velocities, rows)
        gradient = np.empty_like(velocities)
        gradient[these] = softened(velocities[these], rows[these])
        gradient[~these] = plain(velocities[~these], rows[~these])
        return gradient

    return forms


def _soft(cache: Cache) -> BoolArray:
    """Return the rows where G differs from H, shape (n,); not those that are NaN."""
    return np.asarray(cache["metric_certain"] == 0.0)


def _soften(cache: Cache, rows: IntArray) -> tuple[FloatArray, FloatArray]:
    return cache["metric_curvatures"][rows], cache["metric_directions"][rows]
