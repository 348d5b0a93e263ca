"""Forward maps and the energies of their outputs."""

from __future__ import annotations

from typing import Protocol, cast

from surrokit.capabilities import FORWARD, FORWARD_HESSIAN, VJP
from surrokit.contracts.potential import Potential, Typed
from surrokit.errors import CapabilityError
from surrokit.types import Capabilities, FloatArray


class Energy(Protocol):
    """The cheap exact part of a forward potential: U(q) = energy(forward(q), q).

    An energy with more methods names them in an attribute ``capabilities``, a frozenset; without
    the attribute it has none (see :class:`CurvedEnergy`).
    """

    def value(self, outputs: FloatArray, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), from outputs of shape (n, m) and positions of shape (n, dim)."""

    def value_and_gradients(
        self, outputs: FloatArray, positions: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return U (n,), its gradient in the outputs (n, m), and in the positions (n, dim)."""


class CurvedEnergy(Energy, Protocol):
    """An energy with ``curvatures`` among its capabilities, for Gauss-Newton matrices.

    With J the Jacobian of the forward map, J^T C J + R is the Gauss-Newton matrix of U. C and R
    are the second derivatives of the energy in the outputs and in the positions. Where these are
    not positive semi-definite everywhere, substitutes that are must take their place, such as the
    Fisher information of a noise scale, or the precision of a prior in the coordinates in which
    the prior is normal. Mixed derivatives are left out.
    """

    @property
    def capabilities(self) -> Capabilities:
        """Names of what it can do beyond its gradients."""

    def curvatures(
        self, outputs: FloatArray, positions: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return C and R at outputs of shape (n, m) and positions of shape (n, dim).

        Returns
        -------
        by_outputs : ndarray of shape (n, m) or (n, m, m)
            C, positive semi-definite; only its diagonals where it is diagonal.
        by_positions : ndarray of shape (n, dim, dim)
            R, positive semi-definite.
        """


class ForwardPotential(Potential, Protocol):
    """A potential with capability ``forward``, and perhaps ``jacobian``."""

    @property
    def energy(self) -> Energy:
        """The cheap exact part of U."""

    def forward(self, positions: FloatArray) -> FloatArray:
        """Return the outputs of the expensive map, shape (n, m)."""

    def forward_and_jacobian(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the outputs, shape (n, m), and their derivatives, shape (n, m, dim)."""


class AdjointPotential(ForwardPotential, Protocol):
    """A forward potential with capability ``vjp``, whose gradients need no Jacobian."""

    def forward_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the outputs, shape (n, m), and the gradient of U, shape (n, dim)."""


class ForwardHessianPotential(ForwardPotential, Protocol):
    """A forward potential with capability ``forward-hessian``."""

    def forward_hessian_product(self, positions: FloatArray, weights: FloatArray) -> FloatArray:
        """Return sum over m and i of W_mi d_i d_k F_m for each k, shape (n, dim).

        F is the forward map, and each row has its own W, in ``weights`` of shape (n, m, dim).
        """


class CurvedDerivativeEnergy(CurvedEnergy, Protocol):
    """An energy with ``curvature-derivatives`` among its capabilities.

    It differentiates C and R, so that the Gauss-Newton matrix J^T C J + R can be differentiated.
    """

    def curvature_gradients(
        self,
        outputs: FloatArray,
        positions: FloatArray,
        by_outputs_weights: FloatArray,
        by_positions_weights: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the gradients of sum(X * C) + tr(B R).

        Parameters
        ----------
        outputs : ndarray of shape (n, m)
            Outputs of the forward map.
        positions : ndarray of shape (n, dim)
            Positions of these outputs.
        by_outputs_weights : ndarray of the shape of C
            X; symmetric where C is a matrix.
        by_positions_weights : ndarray of shape (n, dim, dim)
            B, symmetric.

        Returns
        -------
        by_outputs : ndarray of shape (n, m)
            Gradient in the outputs.
        by_positions : ndarray of shape (n, dim)
            Gradient in the positions, with the outputs held fixed.
        """


class ForwardDerivatives(Protocol):
    """m outputs F at n positions, with their first and second derivatives.

    Methods other than ``jacobian`` avoid the whole Jacobian where the map allows that.
    """

    @property
    def outputs(self) -> FloatArray:
        """F, shape (n, m)."""

    def push(self, vectors: FloatArray) -> FloatArray:
        """Return J u for each row u of ``vectors (n, dim)``, shape (n, m)."""

    def pull_back(self, by_outputs: FloatArray) -> FloatArray:
        """Return J^T b for each row b of ``by_outputs (n, m)``, shape (n, dim)."""

    def jacobian(self) -> FloatArray:
        """Return J, shape (n, m, dim)."""

    def hessian_product(self, weights: FloatArray) -> FloatArray:
        """Return sum over m and i of W_mi d_i d_k F_m, shape (n, dim), for W (n, m, dim)."""

    def hessian_form(self, by_outputs: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return the same for W = b u^T, with rows b (n, m) and u (n, dim)."""


with_forward = Typed[ForwardPotential](FORWARD)
"""A potential with a forward map."""

with_vjp = Typed[AdjointPotential](VJP)
"""A potential that gives its outputs and the gradient of U by an adjoint."""

with_forward_hessian = Typed[ForwardHessianPotential](FORWARD_HESSIAN)
"""A potential that gives second derivatives of its outputs."""

CURVATURES = "curvatures"
"""Capability of an energy: ``curvatures(outputs, positions)``."""


CURVATURE_DERIVATIVES = "curvature-derivatives"
"""Capability of an energy that has ``curvature_gradients`` besides."""


def energy_capabilities(energy: Energy) -> Capabilities:
    """Return the capabilities of an energy; none if it has no such attribute."""
    offered: Capabilities = getattr(energy, "capabilities", frozenset())
    return offered


def offers_curvatures(energy: Energy) -> bool:
    """Return whether an energy has what Gauss-Newton matrices need."""
    return CURVATURES in energy_capabilities(energy)


def with_curvatures(energy: Energy) -> CurvedEnergy:
    """Return the energy, typed as one that gives its curvatures.

    Raises
    ------
    CapabilityError
        If the energy lacks the capability.
    """
    if not offers_curvatures(energy):
        raise CapabilityError(
            f"a Gauss-Newton matrix needs an energy with 'curvatures' among its capabilities, but "
            f"{type(energy).__name__} does not offer them; give it a method curvatures(outputs, "
            "positions), or, for data with noise_sd, a prior that has a metric"
        )
    return cast(CurvedEnergy, energy)


def offers_curvature_derivatives(energy: Energy) -> bool:
    """Return whether an energy has curvatures and their derivatives."""
    return {CURVATURES, CURVATURE_DERIVATIVES} <= energy_capabilities(energy)


def with_curvature_derivatives(energy: Energy) -> CurvedDerivativeEnergy:
    """Return the energy, typed as one that differentiates its curvatures.

    Raises
    ------
    CapabilityError
        If the energy lacks either capability.
    """
    if not offers_curvature_derivatives(energy):
        raise CapabilityError(
            f"the derivative of a Gauss-Newton matrix needs an energy with 'curvatures' and "
            f"'curvature-derivatives' among its capabilities, but {type(energy).__name__} does not "
            "offer them; give it a method curvature_gradients, or, for data with noise_sd, a prior "
            "that has metric-derivative"
        )
    return cast(CurvedDerivativeEnergy, energy)
