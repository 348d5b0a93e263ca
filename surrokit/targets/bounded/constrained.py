"""A target of which parameters are tied together, on the whole line."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import attrs
import numpy as np

from surrokit import capabilities as can
from surrokit.contracts.counting import Count, with_count
from surrokit.contracts.forward import AdjointPotential, Energy, ForwardPotential
from surrokit.contracts.potential import (
    GradientAlonePotential,
    GradientPotential,
    InitialPotential,
    Potential,
)
from surrokit.coordinates.blocks import Blocks, pull_back, pull_back_outputs
from surrokit.coordinates.parameters import Parameters
from surrokit.coordinates.rowwise import map_rows
from surrokit.errors import ShapeError
from surrokit.shapes import check_positions
from surrokit.types import Capabilities, FloatArray

_KEPT = frozenset({can.GRADIENT, can.GRADIENT_ALONE, can.INITIAL, can.FORWARD})
_KEPT |= {can.JACOBIAN, can.VJP}


@attrs.frozen(eq=False)
class ConstrainedPotential:
    """A potential of constrained arrays q, as one of unbounded z, Jacobian included.

    U(z) = U(q(z)) - log Jacobian. Values, gradients and forward maps are passed on, second
    derivatives are not.

    Parameters
    ----------
    inner
        Potential in the user's coordinates.
    parameters
        Names, shapes, bounds and constraints.

    Raises
    ------
    ShapeError
        If the parameters do not hold as many numbers as the potential takes.
    """

    inner: Potential
    parameters: Parameters
    transform: Blocks = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        if self.parameters.dim != self.inner.dim:
            raise ShapeError(
                f"parameters hold {self.parameters.dim} numbers, but the potential takes "
                f"{self.inner.dim}; declare every number of the position vector"
            )

    @transform.default
    def _transform(self) -> Blocks:
        return Blocks(self.parameters)

    @property
    def dim(self) -> int:
        """Numbers in a position on the line."""
        return self.parameters.free

    @property
    def capabilities(self) -> Capabilities:
        """What the inner potential offers, less second derivatives and all that needs them."""
        return self.inner.capabilities & _KEPT

    def with_count(self, count: Count) -> ConstrainedPotential:
        """Return a copy that reports its calls of the inner potential."""
        return attrs.evolve(self, inner=with_count(self.inner, count))

    def over(self, wrap: Callable[[Potential], Potential]) -> ConstrainedPotential:
        """Return a copy of a wrapped inner potential."""
        return attrs.evolve(self, inner=wrap(self.inner))

    @property
    def energy(self) -> Energy:
        """The inner potential's energy, of outputs and positions on the line."""
        return ConstrainedEnergy(cast(ForwardPotential, self.inner).energy, self.transform)

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U at positions on the line of shape (n, dim), shape (n,)."""
        z = check_positions(positions, self.dim)

        def from_inner(value: FloatArray) -> tuple[FloatArray]:
            return (value - self.transform.log_jacobian(z),)

        q = self.transform.to_bounded(z)
        return map_rows(lambda: (self.inner.value(q),), from_inner, len(q))[0]

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U, shape (n,), and its gradient in z, shape (n, dim)."""
        z = check_positions(positions, self.dim)
        inner = cast(GradientPotential, self.inner)

        def from_inner(value: FloatArray, gradient: FloatArray) -> tuple[FloatArray, FloatArray]:
            lifted = value - self.transform.log_jacobian(z)
            return lifted, pull_back(self.transform, z, gradient)

        q = self.transform.to_bounded(z)
        return map_rows(lambda: inner.value_and_gradient(q), from_inner, len(q))

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient in z, shape (n, dim)."""
        z = check_positions(positions, self.dim)
        inner = cast(GradientAlonePotential, self.inner)

        def from_inner(gradient: FloatArray) -> tuple[FloatArray]:
            return (pull_back(self.transform, z, gradient),)

        q = self.transform.to_bounded(z)
        return map_rows(lambda: (inner.gradient(q),), from_inner, len(q))[0]

    def forward(self, positions: FloatArray) -> FloatArray:
        """Return the outputs, shape (n, m)."""
        z = check_positions(positions, self.dim)
        return cast(ForwardPotential, self.inner).forward(self.transform.to_bounded(z))

    def forward_and_jacobian(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the outputs, shape (n, m), and their derivatives in z, shape (n, m, dim)."""
        z = check_positions(positions, self.dim)
        inner = cast(ForwardPotential, self.inner)

        def from_inner(outputs: FloatArray, jacobian: FloatArray) -> tuple[FloatArray, FloatArray]:
            return outputs, pull_back_outputs(self.transform, z, jacobian)

        q = self.transform.to_bounded(z)
        return map_rows(lambda: inner.forward_and_jacobian(q), from_inner, len(q))

    def forward_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the outputs, shape (n, m), and the gradient of U in z, shape (n, dim)."""
        z = check_positions(positions, self.dim)
        inner = cast(AdjointPotential, self.inner)

        def from_inner(outputs: FloatArray, gradient: FloatArray) -> tuple[FloatArray, FloatArray]:
            return outputs, pull_back(self.transform, z, gradient)

        q = self.transform.to_bounded(z)
        return map_rows(lambda: inner.forward_and_gradient(q), from_inner, len(q))

    def initial(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return starting positions on the line, shape (n, dim)."""
        return self.transform.to_unbounded(cast(InitialPotential, self.inner).initial(rng, n))


@attrs.frozen(eq=False)
class ConstrainedEnergy:
    """The energy of a forward potential with constrained parameters, on the line.

    Parameters
    ----------
    inner
        Energy in the user's coordinates.
    transform
        The map from the line.
    """

    inner: Energy
    transform: Blocks
    capabilities: Capabilities = frozenset()

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
