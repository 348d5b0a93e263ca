"""The energy of a forward potential with bounded parameters, in unbounded coordinates."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.contracts.forward import (
    Energy,
    energy_capabilities,
    with_curvature_derivatives,
    with_curvatures,
)
from surrokit.coordinates.blocks import CoordinateMap, Scaling, pull_back
from surrokit.coordinates.transforms import Transform, congruent, cross, plus_diagonal
from surrokit.types import Capabilities, FloatArray


@attrs.frozen(eq=False)
class LiftedEnergy:
    """The energy of a forward potential in the user's coordinates, on the whole line.

    Parameters
    ----------
    inner
        Energy in the user's coordinates.
    transform
        The map from the line.
    """

    inner: Energy
    transform: CoordinateMap | Scaling

    @property
    def capabilities(self) -> Capabilities:
        """Nothing beyond gradients."""
        return frozenset()

    def value(self, outputs: FloatArray, positions: FloatArray) -> FloatArray:
        """Return U, shape (n,), Jacobian included."""
        value = self.inner.value(outputs, self.transform.to_bounded(positions))
        return value - self.transform.log_jacobian(positions)

    def value_and_gradients(
        self, outputs: FloatArray, positions: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return U (n,), its gradient in the outputs (n, m), and on the line (n, dim)."""
        value, by_outputs, by_positions = self.inner.value_and_gradients(
            outputs, self.transform.to_bounded(positions)
        )
        lifted = value - self.transform.log_jacobian(positions)
        return lifted, by_outputs, pull_back(self.transform, positions, by_positions)


@attrs.frozen(eq=False)
class BoundedEnergy(LiftedEnergy):
    """The energy of a forward potential with bounded parameters, in unbounded coordinates.

    Its curvatures are passed on, too.
    """

    inner: Energy
    transform: Transform

    @property
    def capabilities(self) -> Capabilities:
        """What the inner energy offers."""
        return energy_capabilities(self.inner)

    def curvatures(
        self, outputs: FloatArray, positions: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the inner curvatures in z, plus the Jacobian's own, which is not negative.

        Shapes (n, m) or (n, m, m), and (n, dim, dim).
        """
        inner = with_curvatures(self.inner)
        by_outputs, by_positions = inner.curvatures(outputs, self.transform.to_bounded(positions))
        d = self.transform.derivatives(positions)
        return by_outputs, plus_diagonal(congruent(by_positions, d), -d.log_second)

    def curvature_gradients(
        self,
        outputs: FloatArray,
        positions: FloatArray,
        by_outputs_weights: FloatArray,
        by_positions_weights: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the gradients of sum(X * C) + tr(B R) in the outputs (n, m), and in z (n, dim).

        C and R are those of :meth:`curvatures`, X and B their weights, of the same shapes.
        """
        inner = with_curvature_derivatives(self.inner)
        d = self.transform.derivatives(positions)
        _, log_third = self.transform.third_derivatives(positions)
        bounded, weights = self.transform.to_bounded(positions), by_positions_weights
        by_outputs, by_positions = inner.curvature_gradients(
            outputs, bounded, by_outputs_weights, congruent(weights, d)
        )
        _, curvature = inner.curvatures(outputs, bounded)
        gradient = d.first * by_positions + 2.0 * d.second * cross(weights, curvature, d)
        return by_outputs, gradient - np.einsum("nkk->nk", weights) * log_third


@attrs.frozen(eq=False)
class ScaledEnergy(LiftedEnergy):
    """The energy of a forward potential in coordinates of like scale.

    Its curvatures are passed on, too.
    """

    transform: Scaling

    @property
    def capabilities(self) -> Capabilities:
        """What the inner energy offers."""
        return energy_capabilities(self.inner)

    def curvatures(
        self, outputs: FloatArray, positions: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the inner curvatures, shapes (n, m) or (n, m, m), and (n, dim, dim) in z."""
        inner = with_curvatures(self.inner)
        by_outputs, by_positions = inner.curvatures(outputs, self.transform.to_bounded(positions))
        return by_outputs, self.transform.pull_form(by_positions)

    def curvature_gradients(
        self,
        outputs: FloatArray,
        positions: FloatArray,
        by_outputs_weights: FloatArray,
        by_positions_weights: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the gradients of sum(X * C) + tr(B R) in the outputs (n, m), and in z (n, dim).

        C and R are those of :meth:`curvatures`, X and B their weights, of the same shapes.
        """
        inner, line = with_curvature_derivatives(self.inner), self.transform.to_bounded(positions)
        weights = self.transform.push_form(by_positions_weights)
        by_outputs, gradient = inner.curvature_gradients(outputs, line, by_outputs_weights, weights)
        return by_outputs, self.transform.pull(gradient)
