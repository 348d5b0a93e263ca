"""The potential that a fitted network is."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.contracts.matrices import FormsAt
from surrokit.shapes import check_matrices, check_positions, check_vectors
from surrokit.surrogate.quality import FitQuality
from surrokit.surrogate.shown import ShownFit
from surrokit.types import BoolArray, Capabilities, FloatArray
from surrokit_networks.nodes.nodes import WeightedNodes
from surrokit_networks.regression.border import Beyond, Border
from surrokit_networks.regression.polynomial import Polynomial

CAPABILITIES: Capabilities = can.HESSIANS | {can.GRADIENT, can.GRADIENT_ALONE}
"""What every fitted network can do."""

NORMAL: Capabilities = frozenset({can.CONVEX, can.GAUSSIAN})
"""What a positive definite quadratic without any nodes is besides."""

FEW = 4
"""Values of one row in so many are computed by themselves; more rows with all gradients."""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class FittedNetwork(ShownFit):
    """V(q) = sum_i v_i a_i(q) + b, equation (10) of the paper, on a trend; in nats.

    Frozen and safe to share between threads. Every array it returns is new. Methods raise
    :class:`~surrokit.errors.ShapeError` unless positions are rows of ``dim`` numbers.

    Parameters
    ----------
    dim
        Numbers in a position.
    trend : Polynomial or None
        What is added to the nodes; None for a constant.
    nodes : WeightedNodes or None
        The weighted sum; None for a trend alone.
    level
        b.
    n_nodes
        How many nodes the sum has.
    n_points
        Distinct points that it was fitted to.
    ridge
        lambda in lambda |v|^2.
    degrees
        Effective number of parameters.
    gcv_error
        Generalised cross-validation estimate of the mean squared error of an equation (of V - U,
        or of a component of the whitened gradient) on new points like the training points; ``inf``
        for a fit that passes through every point.
    quality : FitQuality or None
        Error at points held out from a twin of the fit; None where there were too few.
    convex
        Whether it is known to be a trend of degree two alone, with a positive definite matrix.
    border : Border or None
        How far the nodes are believed. Values and gradients beyond are the border's; second
        derivatives are everywhere those of the sum, which as a metric may be any.
    """

    dim: int
    trend: Polynomial | None
    nodes: WeightedNodes | None
    level: float
    n_nodes: int
    n_points: int
    ridge: float
    degrees: float
    gcv_error: float
    quality: FitQuality | None = None
    convex: bool = False
    border: Border | None = None

    @property
    def capabilities(self) -> Capabilities:
        """Gradient, by itself as well, and all that concerns the Hessian.

        A trend alone that is convex is ``gaussian`` too.
        """
        return CAPABILITIES | NORMAL if self.convex else CAPABILITIES

    @property
    def mean(self) -> FloatArray:
        """Mean of the normal density that a convex trend is, shape (dim,)."""
        return self._normal()[0]

    @property
    def factor(self) -> FloatArray:
        """L, lower triangular of shape (dim, dim); L L^T is the covariance of a convex trend."""
        return self._normal()[1]

    def __repr__(self) -> str:
        held_out = "none" if self.quality is None else f"{self.quality.variance:.3g}"
        return (
            f"FittedNetwork(dim={self.dim}, n_nodes={self.n_nodes}, n_points={self.n_points}, "
            f"ridge={self.ridge:.3g}, degrees={self.degrees:.1f}, gcv_error={self.gcv_error:.3g}, "
            f"held_out_variance={held_out})"
        )

    def value(self, positions: FloatArray) -> FloatArray:
        """Return V, shape (n,), at positions of shape (n, dim)."""
        q = check_positions(positions, self.dim)
        beyond = self._beyond(q)
        if beyond is not None:
            return beyond.raise_values(self._value(beyond.pull_in(q)))
        return self._value(q)

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient of V, shape (n, dim), at positions of shape (n, dim)."""
        q = check_positions(positions, self.dim)
        beyond = self._beyond(q)
        if beyond is None:
            return self._gradient(q)
        pulled = beyond.pull_in(q)
        if FEW * len(beyond.rows) > len(q):
            values, gradients = self._value_and_gradient(pulled)
            return beyond.turn_gradients(values[beyond.rows], gradients)
        # gradients alone take half of the time, and only few rows need values
        return beyond.turn_gradients(self._value(pulled[beyond.rows]), self._gradient(pulled))

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return V, shape (n,), and its gradient, shape (n, dim)."""
        q = check_positions(positions, self.dim)
        beyond = self._beyond(q)
        if beyond is None:
            return self._value_and_gradient(q)
        value, gradient = self._value_and_gradient(beyond.pull_in(q))
        turned = beyond.turn_gradients(value[beyond.rows], gradient)
        return beyond.raise_values(value), turned

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return the second derivatives of V, shape (n, dim, dim)."""
        q = check_positions(positions, self.dim)
        if self.nodes is None:
            flat = np.zeros((*q.shape, self.dim))
            return flat if self.trend is None else self.trend.hessian(q)
        hessian = self.nodes.hessian(q)
        if self.trend is not None:
            hessian += self.trend.matrix
        return hessian

    def hessian_product(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return the Hessian times u, shape (n, dim), with u in ``vectors (n, dim)``."""
        q = check_positions(positions, self.dim)
        u = check_vectors(vectors, q)
        product = np.zeros_like(q) if self.nodes is None else self.nodes.hessian_product(q, u)
        if self.trend is not None:
            product += u @ self.trend.matrix
        return product

    def hessian_diagonal(self, positions: FloatArray) -> FloatArray:
        """Return the diagonal of the Hessian, shape (n, dim)."""
        q = check_positions(positions, self.dim)
        diagonal = np.zeros_like(q) if self.nodes is None else self.nodes.hessian_diagonal(q)
        if self.trend is not None:
            diagonal += np.diag(self.trend.matrix)
        return diagonal

    def hessian_diagonal_gradient(self, positions: FloatArray, weights: FloatArray) -> FloatArray:
        """Return sum_j c_j d_k G_jj, G the Hessian, shape (n, dim), with c (n, dim)."""
        q = check_positions(positions, self.dim)
        c = check_vectors(weights, q)
        if self.nodes is None:
            return np.zeros_like(q)
        return self.nodes.hessian_diagonal_gradient(q, c)

    def hessian_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k G), shape (n, dim), G the Hessian and A symmetric (n, dim, dim)."""
        q = check_positions(positions, self.dim)
        matrices = check_matrices(matrices, q)
        if self.nodes is None:
            return np.zeros_like(q)
        return self.nodes.hessian_trace_gradient(q, matrices)

    def hessian_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return u^T d_k G u, shape (n, dim), G the Hessian and u of shape (n, dim)."""
        q = check_positions(positions, self.dim)
        vectors = check_vectors(vectors, q)
        if self.nodes is None:
            return np.zeros_like(q)
        return self.nodes.hessian_form_gradient(q, vectors)

    def hessian_forms_at(self, positions: FloatArray) -> FormsAt:
        """Return :meth:`hessian_form_gradient` of rows of positions (n, dim)."""
        return self._at(positions, "hessian_forms_at", "hessian_form_gradient")

    def hessian_traces_at(self, positions: FloatArray) -> FormsAt:
        """Return :meth:`hessian_trace_gradient` of rows of positions (n, dim)."""
        return self._at(positions, "hessian_traces_at", "hessian_trace_gradient")

    def _at(self, positions: FloatArray, prepared: str, plain: str) -> FormsAt:
        q = check_positions(positions, self.dim)
        if self.nodes is None:
            return lambda factors, rows: np.zeros((len(rows), self.dim))  # noqa: ARG005
        prepare: Callable[[FloatArray], FormsAt] | None = getattr(self.nodes, prepared, None)
        if prepare is not None:
            return prepare(q)
        method: Callable[[FloatArray, FloatArray], FloatArray] = getattr(self.nodes, plain)
        return lambda factors, rows: method(q[rows], factors)

    def is_beyond(self, positions: FloatArray) -> BoolArray:
        """Return which positions (n, dim) lie beyond the border, shape (n,)."""
        q = check_positions(positions, self.dim)
        is_beyond = np.zeros(len(q), dtype=bool)
        beyond = self._beyond(q)
        if beyond is not None:
            is_beyond[beyond.rows] = True
        return is_beyond

    def _beyond(self, q: FloatArray) -> Beyond | None:
        """Return how far positions (n, dim) are beyond the border; None where none is."""
        return None if self.border is None or self.nodes is None else self.border.cross(q)

    def _value(self, q: FloatArray) -> FloatArray:
        value = np.full(len(q), self.level)
        if self.nodes is not None:
            value += self.nodes.value(q)
        if self.trend is not None:
            value += self.trend.value(q)
        return value

    def _gradient(self, q: FloatArray) -> FloatArray:
        if self.nodes is None:
            return np.zeros_like(q) if self.trend is None else self.trend.gradient(q)
        gradient = self.nodes.gradient(q)
        if self.trend is not None:
            gradient += self.trend.gradient(q)
        return gradient

    def _value_and_gradient(self, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        if self.nodes is None:
            return self._value(q), self._gradient(q)
        value, gradient = self.nodes.value_and_gradient(q)
        value += self.level
        if self.trend is not None:
            trend, slope = self.trend.value_and_gradient(q)
            value += trend
            gradient += slope
        return value, gradient

    def _normal(self) -> tuple[FloatArray, FloatArray]:
        assert self.convex and self.trend is not None and self.nodes is None  # noqa: PT018
        return self.trend.normal()
