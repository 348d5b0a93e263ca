"""Targets with exact samplers, in two dimensions.

Each is given by a map from independent standard normals to positions, and its inverse. The map
makes exact draws. The inverse turns a test of exact draws into a test of normals.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from surrokit import capabilities as can
from surrokit.arguments import check_matrices, check_positions, check_vectors
from surrokit.coordinates.transforms import products
from surrokit.shown.target import ShownTarget
from surrokit.types import Capabilities, FloatArray

_BASIC: Capabilities = can.HESSIANS | {can.GRADIENT, can.GRADIENT_ALONE, can.INITIAL}


class ExactCallRefusedError(AssertionError):
    """An exact target was evaluated where nothing may evaluate it."""


class _Seal:
    """The number of open :func:`seal` blocks, in all threads."""

    depth = 0


@contextmanager
def seal() -> Iterator[None]:
    """Refuse every evaluation of every target of this package while the block runs."""
    _Seal.depth += 1
    try:
        yield
    finally:
        _Seal.depth -= 1


class Target(ShownTarget, ABC):
    """A potential whose distribution is known exactly; :attr:`dim` is 2."""

    @property
    def dim(self) -> int:
        """Two."""
        return 2

    @property
    def capabilities(self) -> Capabilities:
        """Gradient, by itself as well, all that concerns the Hessian, and starting positions."""
        return _BASIC

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), at positions of shape (n, 2); ``inf`` outside the support."""
        return self._energy(self._open(positions))

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient of U, shape (n, 2); NaN outside the support."""
        return self._slope(self._open(positions))

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U, shape (n,), and its gradient, shape (n, 2)."""
        q = self._open(positions)
        return self._energy(q), self._slope(q)

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return the second derivatives of U, shape (n, 2, 2)."""
        return self._curvature(self._open(positions))

    def hessian_product(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return the Hessian times u, shape (n, 2), with u in ``vectors (n, 2)``."""
        q = self._open(positions)
        return products(self._curvature(q), check_vectors(vectors, q))

    def hessian_diagonal(self, positions: FloatArray) -> FloatArray:
        """Return the diagonal of the Hessian, shape (n, 2)."""
        return np.array(np.einsum("nkk->nk", self._curvature(self._open(positions))))

    def hessian_diagonal_gradient(self, positions: FloatArray, weights: FloatArray) -> FloatArray:
        """Return sum_j c_j d_k G_jj, G the Hessian, shape (n, 2), with c in ``weights (n, 2)``."""
        q = self._open(positions)
        return np.asarray(np.einsum("nj,njjk->nk", check_vectors(weights, q), self._twist(q)))

    def hessian_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k G), shape (n, 2), with A in ``matrices (n, 2, 2)``."""
        q = self._open(positions)
        weights = check_matrices(matrices, q)
        return np.asarray(np.einsum("nij,nijk->nk", weights, self._twist(q)))

    def hessian_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return u^T d_k G u, shape (n, 2), with u in ``vectors (n, 2)``."""
        q = self._open(positions)
        u = check_vectors(vectors, q)
        return np.asarray(np.einsum("ni,nj,nijk->nk", u, u, self._twist(q)))

    def initial(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return exact draws, shape (n, 2)."""
        return self.sample(rng, n)

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return independent exact draws, shape (n, 2)."""
        return self.from_normals(rng.standard_normal((n, 2)))

    @abstractmethod
    def from_normals(self, normals: FloatArray) -> FloatArray:
        """Return positions, shape (n, 2), made from standard ``normals (n, 2)``."""

    @abstractmethod
    def to_normals(self, positions: FloatArray) -> FloatArray:
        """Return independent standard normals, shape (n, 2), if ``positions`` are exact draws."""

    def _open(self, positions: FloatArray) -> FloatArray:
        if _Seal.depth:
            raise ExactCallRefusedError(
                f"{type(self).__name__} was evaluated at {len(positions)} positions where only "
                "evaluations already paid for may be used"
            )
        return check_positions(positions, 2)

    @abstractmethod
    def _energy(self, q: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _slope(self, q: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _curvature(self, q: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _twist(self, q: FloatArray) -> FloatArray:
        """Return the third derivatives, shape (n, 2, 2, 2): few enough to be written out."""


class MetricTarget(Target):
    """A target with a metric that is positive definite everywhere."""

    @property
    def capabilities(self) -> Capabilities:
        """Also the metric, its derivative and its products."""
        return _BASIC | can.METRICS

    def metric(self, positions: FloatArray) -> FloatArray:
        """Return the metric G, shape (n, 2, 2)."""
        return self._metric(self._open(positions))

    def metric_product(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return G u, shape (n, 2), with u in ``vectors (n, 2)``."""
        q = self._open(positions)
        return products(self._metric(q), check_vectors(vectors, q))

    def metric_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k G), shape (n, 2), with A in ``matrices (n, 2, 2)``."""
        q = self._open(positions)
        weights = check_matrices(matrices, q)
        return np.asarray(np.einsum("nij,nijk->nk", weights, self._metric_slopes(q)))

    def metric_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return u^T d_k G u, shape (n, 2), with u in ``vectors (n, 2)``."""
        q = self._open(positions)
        u = check_vectors(vectors, q)
        return np.asarray(np.einsum("ni,nj,nijk->nk", u, u, self._metric_slopes(q)))

    @abstractmethod
    def _metric(self, q: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _metric_slopes(self, q: FloatArray) -> FloatArray:
        """Return d_k G_ij, shape (n, 2, 2, 2)."""
