"""The potential that a fitted forward map is, under an exact energy."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.contracts.forward import Energy, offers_curvature_derivatives, offers_curvatures
from surrokit.shapes import check_matrices, check_positions, check_vectors, check_weights
from surrokit.surrogate.quality import FitQuality
from surrokit.surrogate.shown import ShownFit
from surrokit.targets.curvature import (
    gauss_newton,
    gauss_newton_form_gradient,
    gauss_newton_product,
    gauss_newton_trace_gradient,
)
from surrokit.types import Capabilities, FloatArray
from surrokit_networks.outputs.network import OutputNetwork
from surrokit_networks.outputs.warped import WarpedNetwork


def emulator_capabilities(energy: Energy) -> Capabilities:
    """Return what an emulator of a forward map can do under an energy.

    Gradient, and the forward map with its first and second derivatives; also the Gauss-Newton
    matrix and its products where the energy offers curvatures, and the derivative of that where it
    offers theirs. No gradient alone: it takes the outputs, and the energy is cheap from there.
    """
    offered = {can.GRADIENT, can.FORWARD, can.JACOBIAN, can.FORWARD_HESSIAN}
    if offers_curvatures(energy):
        offered |= {can.METRIC, can.METRIC_PRODUCT}
    if offers_curvature_derivatives(energy):
        offered.add(can.METRIC_DERIVATIVE)
    return frozenset(offered)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class FittedEmulator(ShownFit):
    """V(q) = energy(f(q), q), with f a network in place of an expensive forward map; in nats.

    Only the map is learnt (Algorithm 2 with targets in R^m): misfit, noise scales and priors stay
    exact. Where f runs over to infinity V is ``inf``, never NaN. Frozen and safe to share between
    threads. Every array it returns is new. Methods raise :class:`~surrokit.errors.ShapeError`
    unless positions are rows of ``dim`` numbers. Those of the metric raise
    :class:`~surrokit.errors.CapabilityError` unless the energy offers curvatures, and for the
    metric's derivative also theirs.

    Parameters
    ----------
    network
        f.
    energy
        The cheap exact part of the target.
    n_nodes
        How many nodes f has.
    n_points
        Distinct points that it was fitted to.
    ridge
        lambda that held the weights back, in the units of the fit.
    degrees
        Effective number of parameters of each output.
    gcv_error
        Generalised cross-validation estimate of the mean squared error of an equation, in the
        units of the fit.
    quality : FitQuality or None
        Error at points held out from a twin of the fit; None where there were too few.
    """

    network: OutputNetwork | WarpedNetwork
    energy: Energy
    n_nodes: int
    n_points: int
    ridge: float
    degrees: float
    gcv_error: float
    quality: FitQuality | None = None

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return self.network.dim

    @property
    def capabilities(self) -> Capabilities:
        """Those of :func:`emulator_capabilities`."""
        return emulator_capabilities(self.energy)

    def __repr__(self) -> str:
        held_out = "none" if self.quality is None else f"{self.quality.variance:.3g}"
        return (
            f"FittedEmulator(dim={self.dim}, n_nodes={self.n_nodes}, n_points={self.n_points}, "
            f"ridge={self.ridge:.3g}, degrees={self.degrees:.1f}, gcv_error={self.gcv_error:.3g}, "
            f"held_out_variance={held_out})"
        )

    def value(self, positions: FloatArray) -> FloatArray:
        """Return V, shape (n,), at positions of shape (n, dim)."""
        q = check_positions(positions, self.dim)
        with np.errstate(all="ignore"):  # a position that ran away may overflow
            return _without_nan(self.energy.value(self.network.value(q), q))

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return V, shape (n,), and its gradient J^T dV/df + dV/dq, shape (n, dim).

        The Jacobian J is not formed.
        """
        q = check_positions(positions, self.dim)
        with np.errstate(all="ignore"):
            at = self.network.linearise(q)
            value, by_outputs, by_positions = self.energy.value_and_gradients(at.outputs, q)
            return _without_nan(value), at.pull_back(by_outputs) + by_positions

    def metric(self, positions: FloatArray) -> FloatArray:
        """Return the Gauss-Newton matrix J^T C J + R, shape (n, dim, dim).

        C and R are the energy's curvatures (:class:`surrokit.contracts.forward.CurvedEnergy`).
        """
        q = check_positions(positions, self.dim)
        with np.errstate(all="ignore"):
            at = self.network.linearise(q)
            return gauss_newton(self.energy, at.outputs, at.jacobian(), q)

    def metric_product(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return G u, G the metric, shape (n, dim), with u in ``vectors (n, dim)``.

        Neither the Jacobian nor G is formed.
        """
        q = check_positions(positions, self.dim)
        u = check_vectors(vectors, q)
        with np.errstate(all="ignore"):
            return gauss_newton_product(self.energy, self.network.linearise(q), q, u)

    def metric_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k G), G the metric and A in ``matrices (n, dim, dim)``, shape (n, dim)."""
        q = check_positions(positions, self.dim)
        a = check_matrices(matrices, q)
        with np.errstate(all="ignore"):
            return gauss_newton_trace_gradient(self.energy, self.network.linearise(q), q, a)

    def metric_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return u^T d_k G u, G the metric, shape (n, dim), with u in ``vectors (n, dim)``.

        The Jacobian is not formed.
        """
        q = check_positions(positions, self.dim)
        u = check_vectors(vectors, q)
        with np.errstate(all="ignore"):
            return gauss_newton_form_gradient(self.energy, self.network.linearise(q), q, u)

    def forward(self, positions: FloatArray) -> FloatArray:
        """Return f, shape (n, m)."""
        q = check_positions(positions, self.dim)
        with np.errstate(all="ignore"):
            return self.network.value(q)

    def forward_and_jacobian(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return f, shape (n, m), and its derivatives, shape (n, m, dim)."""
        q = check_positions(positions, self.dim)
        with np.errstate(all="ignore"):
            at = self.network.linearise(q)
            return at.outputs, at.jacobian()

    def forward_hessian_product(self, positions: FloatArray, weights: FloatArray) -> FloatArray:
        """Return sum over m and i of W_mi d_i d_k f_m, shape (n, dim), for W (n, m, dim)."""
        q = check_positions(positions, self.dim)
        w = check_weights(weights, q)
        with np.errstate(all="ignore"):
            return self.network.linearise(q).hessian_product(w)


def _without_nan(values: FloatArray) -> FloatArray:
    return np.where(np.isnan(values), np.inf, values)
