"""The potentials that fitted networks are.

:class:`FittedNetwork` learnt U itself, or what a known part leaves of it, and
:class:`FittedEmulator` the outputs of a forward map under an exact energy.
"""

from __future__ import annotations

from functools import cached_property

import attrs
import numpy as np
from scipy.linalg import solve_triangular

from surrokit import capabilities as can
from surrokit.arguments import check_matrices, check_positions, check_vectors
from surrokit.potentials import (
    Energy,
    FormsAt,
    Potential,
    offers_curvatures,
    with_gradient,
    with_gradient_alone,
)
from surrokit.surrogate.quality import FitQuality
from surrokit.targets.differences import gauss_newton
from surrokit.types import BoolArray, Capabilities, FloatArray
from surrokit_networks.border import Beyond, Border
from surrokit_networks.network import Network, NetworkAt

FIRST_ORDER: Capabilities = frozenset({can.GRADIENT, can.GRADIENT_ALONE})
"""What every network of U can do."""

CAPABILITIES: Capabilities = FIRST_ORDER | can.HESSIANS - {can.HESSIAN_PRODUCT}
"""What one of additive nodes can do."""

NORMAL: Capabilities = frozenset({can.CONVEX, can.GAUSSIAN})
"""What a positive definite quadratic without any nodes is besides."""

_QUIET = np.errstate(all="ignore")
"""A position that ran away may overflow."""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class NetworkFit:
    """What both kinds of fit are: frozen, safe to share between threads, with new arrays only.

    Methods raise :class:`~surrokit.errors.ShapeError` unless positions are rows of ``dim`` numbers.
    ``degrees`` is the effective number of parameters of each output, and ``gcv_error`` the
    generalised cross-validation estimate of the mean squared error of an equation: of V - U, a
    component of the whitened gradient, or an output in its unit. ``quality`` is the error at points
    held out from a twin of the fit, None where there were too few.
    """

    network: Network
    n_points: int
    ridge: float
    degrees: float
    gcv_error: float
    quality: FitQuality | None = None

    @property
    def n_nodes(self) -> int:
        """Nodes of the network."""
        return len(self.network.nodes)

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self.network.dim

    def __repr__(self) -> str:
        held_out = "none" if self.quality is None else f"{self.quality.variance:.3g}"
        return (
            f"{type(self).__name__}(dim={self.dim}, n_nodes={self.n_nodes}, "
            f"n_points={self.n_points}, ridge={self.ridge:.3g}, degrees={self.degrees:.1f}, "
            f"gcv_error={self.gcv_error:.3g}, held_out_variance={held_out})"
        )

    def _at(self, positions: FloatArray) -> NetworkAt:
        return self.network.at(check_positions(positions, self.dim))


@attrs.frozen(kw_only=True, eq=False, repr=False)
class FittedNetwork(NetworkFit):
    """V(q) = sum_i v_i a_i(q) + b, equation (10) of the paper, on a trend; in nats.

    Parameters
    ----------
    capabilities
        What it offers; ``gaussian`` if it is a trend of degree two alone, positive definite.
    border
        The region in which the nodes are used. Values and gradients beyond are the border's;
        second derivatives are everywhere the network's, which as a metric may be any.
    known
        A part of U that is added as it is, up to its gradient: the network was fitted to the rest.
    """

    border: Border | None = None
    known: Potential | None = None
    capabilities: Capabilities = attrs.field()

    @capabilities.default
    def _by_nodes(self) -> Capabilities:
        first_alone = self.network.nodes.curved or self.known is not None
        return FIRST_ORDER if first_alone else CAPABILITIES

    @cached_property
    def mean(self) -> FloatArray:
        """Mean of the normal density that a positive definite trend is, shape (dim,)."""
        slope = self.network.whitening.inverse.T @ self.network.trend.linear[:, 0]
        factor = self.factor
        return np.asarray(self.network.whitening.mean - factor @ (factor.T @ slope))

    @cached_property
    def factor(self) -> FloatArray:
        """L, lower triangular of shape (dim, dim); L L^T is its covariance."""
        # The matrix as R R^T with R upper triangular, its factor turned round; L = R^-T.
        matrix = self.hessian(np.zeros((1, self.dim)))[0]
        matrix = 0.5 * (matrix + matrix.T)
        root = np.linalg.cholesky(matrix[::-1, ::-1])[::-1, ::-1]
        factor = solve_triangular(root, np.eye(self.dim), lower=False).T
        return np.ascontiguousarray(factor, dtype=np.float64)

    def value(self, positions: FloatArray) -> FloatArray:
        """Return V, shape (n,), at positions of shape (n, dim)."""
        q = check_positions(positions, self.dim)
        beyond = self._beyond(q)
        if beyond is not None:
            return beyond.raise_values(self.network.value(beyond.pulled)[:, 0])
        value = self.network.value(q)[:, 0]
        return value if self.known is None else value + self.known.value(q)

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient of V, shape (n, dim), at positions of shape (n, dim)."""
        q = check_positions(positions, self.dim)
        if self._beyond(q) is not None:
            return self.value_and_gradient(q)[1]
        gradient = self.network.gradient(q)
        if self.known is None:
            return gradient
        return gradient + with_gradient_alone(self.known).gradient(q)

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return V, shape (n,), and its gradient, shape (n, dim)."""
        q = check_positions(positions, self.dim)
        beyond = self._beyond(q)
        if beyond is not None:
            value, gradient = self.network.value_and_gradient(beyond.pulled)
            return beyond.raise_values(value), beyond.turn_gradients(value, gradient)
        value, gradient = self.network.value_and_gradient(q)
        if self.known is None:
            return value, gradient
        known, slope = with_gradient(self.known).value_and_gradient(q)
        return value + known, gradient + slope

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return the second derivatives of V, shape (n, dim, dim)."""
        return self._at(positions).hessian()

    def hessian_diagonal(self, positions: FloatArray) -> FloatArray:
        """Return the diagonal of the Hessian, shape (n, dim)."""
        return self._at(positions).diagonal()

    def hessian_diagonal_gradient(self, positions: FloatArray, weights: FloatArray) -> FloatArray:
        """Return sum_j c_j d_k G_jj, G the Hessian, shape (n, dim), with c (n, dim)."""
        return self._at(positions).diagonal_gradient(check_vectors(weights, positions))

    def hessian_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k G), shape (n, dim), G the Hessian and A symmetric (n, dim, dim)."""
        return self.hessian_traces_at(positions)(
            check_matrices(matrices, positions), np.arange(len(positions))
        )

    def hessian_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return u^T d_k G u, shape (n, dim), G the Hessian and u of shape (n, dim)."""
        return self.hessian_forms_at(positions)(
            check_vectors(vectors, positions), np.arange(len(positions))
        )

    def hessian_forms_at(self, positions: FloatArray) -> FormsAt:
        """Return :meth:`hessian_form_gradient` of rows of positions (n, dim)."""
        return self._at(positions).form_gradient

    def hessian_traces_at(self, positions: FloatArray) -> FormsAt:
        """Return :meth:`hessian_trace_gradient` of rows of positions (n, dim)."""
        return self._at(positions).trace_gradient

    def is_beyond(self, positions: FloatArray) -> BoolArray:
        """Return which positions (n, dim) lie beyond the border, shape (n,)."""
        q = check_positions(positions, self.dim)
        beyond = self._beyond(q)
        is_beyond = np.zeros(len(q), dtype=bool)
        is_beyond[[] if beyond is None else beyond.rows] = True
        return is_beyond

    def _beyond(self, q: FloatArray) -> Beyond | None:
        """Return how far positions (n, dim) are beyond the border; None where none is."""
        return None if self.border is None or not self.n_nodes else self.border.cross(q)


def emulator_capabilities(energy: Energy) -> Capabilities:
    """Return what an emulator of a forward map can do under an energy.

    No gradient alone: it takes the outputs, and the energy is cheap from there.
    """
    offered = {can.GRADIENT, can.FORWARD, can.JACOBIAN}
    return frozenset(offered | {can.METRIC} if offers_curvatures(energy) else offered)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class FittedEmulator(NetworkFit):
    """V(q) = energy(f(q), q), with f a network in place of an expensive forward map; in nats.

    Only the map is learnt (Algorithm 2 with targets in R^m): misfit, noise scales and priors stay
    exact. Where f runs over to infinity V is ``inf``, never NaN.
    """

    energy: Energy
    mix: FloatArray | None = None  # (k, m): outputs of those of the network; None where these are

    @property
    def capabilities(self) -> Capabilities:
        """Those of :func:`emulator_capabilities`."""
        return emulator_capabilities(self.energy)

    @_QUIET
    def value(self, positions: FloatArray) -> FloatArray:
        """Return V, shape (n,), at positions of shape (n, dim)."""
        return _without_nan(self.energy.value(self.forward(positions), positions))

    @_QUIET
    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return V, shape (n,), and its gradient J^T dV/df + dV/dq, (n, dim), without J."""
        at = self._at(positions)
        outputs = self._mixed(at.outputs)
        value, by_outputs, by_positions = self.energy.value_and_gradients(outputs, positions)
        if self.mix is not None:
            by_outputs = by_outputs @ self.mix.T
        return _without_nan(value), at.pull_back(by_outputs) + by_positions

    @_QUIET
    def metric(self, positions: FloatArray) -> FloatArray:
        """Return the Gauss-Newton matrix, shape (n, dim, dim)."""
        return gauss_newton(self.energy, *self.forward_and_jacobian(positions), positions)

    @_QUIET
    def forward(self, positions: FloatArray) -> FloatArray:
        """Return f, shape (n, m)."""
        return self._mixed(self.network.value(check_positions(positions, self.dim)))

    @_QUIET
    def forward_and_jacobian(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return f, shape (n, m), and its derivatives, shape (n, m, dim)."""
        at = self._at(positions)
        jacobian = at.jacobian()
        if self.mix is not None:
            jacobian = np.einsum("km,nkd->nmd", self.mix, jacobian, optimize=True)
        return self._mixed(at.outputs), jacobian

    def _mixed(self, outputs: FloatArray) -> FloatArray:
        return outputs if self.mix is None else outputs @ self.mix


def _without_nan(values: FloatArray) -> FloatArray:
    return np.where(np.isnan(values), np.inf, values)
