"""What potentials with a forward map share: U(q) = energy(forward(q), q)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np

from surrokit import capabilities as can
from surrokit.contracts.forward import Energy
from surrokit.shapes import check_positions
from surrokit.shown.target import ShownTarget
from surrokit.targets.curvature import gauss_newton
from surrokit.types import Capabilities, FloatArray


class PotentialOfOutputs(ShownTarget, ABC):
    """U(q) = energy(forward(q), q), computed from the outputs and their derivatives."""

    energy: Energy

    @property
    @abstractmethod
    def dim(self) -> int:
        """Numbers in a position."""

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities:
        """What it offers besides the value."""

    @abstractmethod
    def forward(self, positions: FloatArray) -> FloatArray:
        """Return the outputs, shape (n, m)."""

    @abstractmethod
    def forward_and_jacobian(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the outputs, shape (n, m), and their derivatives, shape (n, m, dim)."""

    @property
    def unnormalized(self) -> tuple[str, ...]:
        """What of the energy may lack its normalising constant."""
        told: tuple[str, ...] = getattr(self.energy, "unnormalized", ("the energy",))
        return told

    @property
    def observed_data(self) -> Mapping[str, FloatArray]:
        """What the outputs are compared with, as far as the energy tells."""
        told: Mapping[str, FloatArray] = getattr(self.energy, "observed_data", {})
        return told

    @property
    def predictor(self) -> Energy | None:
        """The energy, if it can draw data: it then has ``draw_data``."""
        return self.energy if hasattr(self.energy, "draw_data") else None

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), at positions of shape (n, dim)."""
        q = check_positions(positions, self.dim)
        outputs = self.forward(q)
        return np.full(len(q), np.nan) if _unknown(outputs) else self.energy.value(outputs, q)

    def forward_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the outputs, shape (n, m), and the gradient of U, shape (n, dim).

        By the Jacobian, unless a subclass has an adjoint.
        """
        q = check_positions(positions, self.dim)
        outputs, jacobian = self.forward_and_jacobian(q)
        if _unknown(outputs):
            return outputs, np.full(q.shape, np.nan)
        return outputs, gradient_of_energy(self.energy, outputs, jacobian, q)[1]

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U, shape (n,), and its gradient, shape (n, dim), by the adjoint if any."""
        q = check_positions(positions, self.dim)
        if can.VJP in self.capabilities:
            outputs, gradient = self.forward_and_gradient(q)
            if not _unknown(outputs):
                return self.energy.value(outputs, q), gradient
        else:
            outputs, jacobian = self.forward_and_jacobian(q)
            if not _unknown(outputs):
                return gradient_of_energy(self.energy, outputs, jacobian, q)
        return np.full(len(q), np.nan), np.full(q.shape, np.nan)

    def metric(self, positions: FloatArray) -> FloatArray:
        """Return the Gauss-Newton matrix J^T C J + R, shape (n, dim, dim).

        C and R are the energy's curvatures (:class:`surrokit.contracts.forward.CurvedEnergy`).
        """
        q = check_positions(positions, self.dim)
        outputs, jacobian = self.forward_and_jacobian(q)
        if _unknown(outputs):
            return np.full((*q.shape, self.dim), np.nan)
        return gauss_newton(self.energy, outputs, jacobian, q)


def _unknown(outputs: FloatArray) -> bool:
    """Return whether a map has failed everywhere: the number of its outputs is not known."""
    return bool(outputs.shape[1] == 0)


def gradient_of_energy(
    energy: Energy, outputs: FloatArray, jacobian: FloatArray, positions: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return U, shape (n,), and J^T dU/doutputs + dU/dq, shape (n, dim)."""
    value, by_outputs, by_positions = energy.value_and_gradients(outputs, positions)
    gradient = np.einsum("nm,nmd->nd", by_outputs, jacobian) + by_positions
    return value, gradient
