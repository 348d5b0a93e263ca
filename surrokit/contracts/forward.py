"""Forward maps, and the energies of their outputs."""

from __future__ import annotations

from typing import Protocol, cast

from surrokit.capabilities import FORWARD, FORWARD_HESSIAN
from surrokit.contracts.potential import Potential, Typed
from surrokit.errors import CapabilityError
from surrokit.types import Capabilities, FloatArray


class Energy(Protocol):
    """The cheap exact part of a forward potential: U(q) = energy(forward(q), q).

    An energy that can do more names it in an attribute ``capabilities``, a frozenset of names;
    without the attribute it can do no more than this (see :class:`CurvedEnergy`).
    """

    def value(self, outputs: FloatArray, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), from outputs of shape (n, m) and positions of shape (n, dim)."""

    def value_and_gradients(
        self, outputs: FloatArray, positions: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return U (n,), its gradient in the outputs (n, m), and in the positions (n, dim)."""


class CurvedEnergy(Energy, Protocol):
    """An energy with ``curvatures`` among its capabilities: what Gauss-Newton matrices take.

    With J the Jacobian of the forward map, J^T C J + R is the Gauss-Newton matrix of U: C and R
    stand for the second derivatives of the energy in the outputs and in the positions. Where
    those are not positive semi-definite everywhere, they are to be replaced by what is, such as
    the Fisher information of a noise scale or the precision of a prior in the coordinates in
    which it is normal. Mixed derivatives are left out.
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
            C, by its diagonals where it has nothing else. Positive semi-definite.
        by_positions : ndarray of shape (n, dim, dim)
            R, positive semi-definite.
        """


class ForwardPotential(Potential, Protocol):
    """A potential with capability ``forward``, and perhaps ``jacobian``."""

    @property
    def energy(self) -> Energy:
        """The cheap exact part."""

    def forward(self, positions: FloatArray) -> FloatArray:
        """Return the outputs of the expensive map, shape (n, m)."""

    def forward_and_jacobian(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the outputs, shape (n, m), and their derivatives, shape (n, m, dim)."""


class ForwardHessianPotential(ForwardPotential, Protocol):
    """A forward potential with capability ``forward-hessian``."""

    def forward_hessian_product(self, positions: FloatArray, weights: FloatArray) -> FloatArray:
        """Return sum over m and i of W_mi d_i d_k F_m for each k, shape (n, dim).

        F is the forward map, and each row has its own W, in ``weights`` of shape (n, m, dim).
        """


class CurvedDerivativeEnergy(CurvedEnergy, Protocol):
    """An energy with ``curvature-derivatives`` among its capabilities.

    Its curvatures C and R can be differentiated, and so can the Gauss-Newton matrix J^T C J + R.
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
            Of the forward map.
        positions : ndarray of shape (n, dim)
            Where they were evaluated.
        by_outputs_weights : ndarray of the shape of C
            X; symmetric where C is a matrix.
        by_positions_weights : ndarray of shape (n, dim, dim)
            B, symmetric.

        Returns
        -------
        by_outputs : ndarray of shape (n, m)
            Gradient in the outputs.
        by_positions : ndarray of shape (n, dim)
            Gradient in the positions, with the outputs held.
        """


class ForwardDerivatives(Protocol):
    """m outputs F at n positions, with their first and second derivatives.

    Where a map can do so, none of these forms the derivative of each output.
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

with_forward_hessian = Typed[ForwardHessianPotential](FORWARD_HESSIAN)
"""A potential that gives second derivatives of its outputs."""

CURVATURES = "curvatures"
"""What an energy names in its ``capabilities``: ``curvatures(outputs, positions)``."""


CURVATURE_DERIVATIVES = "curvature-derivatives"
"""What an energy names beside it if it has ``curvature_gradients`` as well."""


def energy_capabilities(energy: Energy) -> Capabilities:
    """Return what an energy can do beyond its gradients; nothing if it does not say.

    Parameters
    ----------
    energy
        Any energy; the attribute ``capabilities`` is optional.
    """
    offered: Capabilities = getattr(energy, "capabilities", frozenset())
    return offered


def offers_curvatures(energy: Energy) -> bool:
    """Return whether Gauss-Newton matrices can be made with an energy."""
    return CURVATURES in energy_capabilities(energy)


def with_curvatures(energy: Energy) -> CurvedEnergy:
    """Return the energy, typed as one that gives its curvatures.

    Raises
    ------
    CapabilityError
        If it does not.
    """
    if not offers_curvatures(energy):
        raise CapabilityError(
            f"a Gauss-Newton matrix needs an energy with 'curvatures' among its capabilities, but "
            f"{type(energy).__name__} does not offer them; give it a method curvatures(outputs, "
            "positions), or, for data with noise_sd, a prior that has a metric"
        )
    return cast(CurvedEnergy, energy)


def offers_curvature_derivatives(energy: Energy) -> bool:
    """Return whether an energy has curvatures, and their derivatives as well."""
    return {CURVATURES, CURVATURE_DERIVATIVES} <= energy_capabilities(energy)


def with_curvature_derivatives(energy: Energy) -> CurvedDerivativeEnergy:
    """Return the energy, typed as one that differentiates its curvatures.

    Raises
    ------
    CapabilityError
        If it does not.
    """
    if not offers_curvature_derivatives(energy):
        raise CapabilityError(
            f"the derivative of a Gauss-Newton matrix needs an energy with 'curvatures' and "
            f"'curvature-derivatives' among its capabilities, but {type(energy).__name__} does not "
            "offer them; give it a method curvature_gradients, or, for data with noise_sd, a prior "
            "that has metric-derivative"
        )
    return cast(CurvedDerivativeEnergy, energy)
