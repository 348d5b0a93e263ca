"""A target in the user's coordinates, on the whole line."""

from __future__ import annotations

from typing import cast

import attrs
import numpy as np

from surrokit.contracts.forward import AdjointPotential, ForwardPotential
from surrokit.contracts.potential import (
    GradientAlonePotential,
    GradientPotential,
    InitialPotential,
    Potential,
)
from surrokit.coordinates.blocks import (
    CoordinateMap,
    Scaling,
    map_of,
    pull_back,
    pull_back_outputs,
)
from surrokit.coordinates.parameters import Parameters
from surrokit.errors import ShapeError
from surrokit.model.model import Wrapper
from surrokit.shapes import check_positions
from surrokit.shown.target import ShownTarget
from surrokit.types import FloatArray


@attrs.frozen(eq=False)
class LiftedPotential(Wrapper, ShownTarget):
    """A potential in the user's coordinates q, as one of z on the whole line, Jacobian included.

    U(z) = U(q(z)) - log Jacobian. Of values, gradients and forward maps this is the chain rule.

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
    transform: CoordinateMap = attrs.field(init=False)

    @transform.default
    def _transform(self) -> CoordinateMap:
        return map_of(self.parameters)

    def __attrs_post_init__(self) -> None:
        if self.parameters.dim != self.inner.dim:
            raise ShapeError(
                f"parameters hold {self.parameters.dim} numbers, but the potential takes "
                f"{self.inner.dim}; declare every number of the position vector"
            )

    @property
    def dim(self) -> int:
        """Numbers in a position on the line."""
        return self.inner.dim

    @property
    def own_map(self) -> CoordinateMap | Scaling:
        """The map to the coordinates of the inner potential."""
        return self.transform

    def outside(self, positions: FloatArray) -> FloatArray:
        """Return positions on the line for the user's."""
        return self.own_map.to_unbounded(positions)

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U at positions on the line of shape (n, dim), shape (n,)."""
        z = check_positions(positions, self.dim)
        return self.inner.value(self.own_map.to_bounded(z)) - self.own_map.log_jacobian(z)

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U, shape (n,), and its gradient in z, shape (n, dim)."""
        z = check_positions(positions, self.dim)
        inner = cast(GradientPotential, self.inner)
        value, gradient = inner.value_and_gradient(self.own_map.to_bounded(z))
        return value - self.own_map.log_jacobian(z), pull_back(self.own_map, z, gradient)

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient in z, shape (n, dim)."""
        z = check_positions(positions, self.dim)
        inner = cast(GradientAlonePotential, self.inner)
        return pull_back(self.own_map, z, inner.gradient(self.own_map.to_bounded(z)))

    def forward(self, positions: FloatArray) -> FloatArray:
        """Return the outputs, shape (n, m)."""
        z = check_positions(positions, self.dim)
        return cast(ForwardPotential, self.inner).forward(self.own_map.to_bounded(z))

    def forward_and_jacobian(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the outputs, shape (n, m), and their derivatives in z, shape (n, m, dim)."""
        z = check_positions(positions, self.dim)
        inner = cast(ForwardPotential, self.inner)
        outputs, jacobian = inner.forward_and_jacobian(self.own_map.to_bounded(z))
        return outputs, pull_back_outputs(self.own_map, z, jacobian)

    def forward_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the outputs, shape (n, m), and the gradient of U in z, shape (n, dim)."""
        z = check_positions(positions, self.dim)
        inner = cast(AdjointPotential, self.inner)
        outputs, gradient = inner.forward_and_gradient(self.own_map.to_bounded(z))
        return outputs, pull_back(self.own_map, z, gradient)

    def initial(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return starting positions on the line, shape (n, dim)."""
        return self.own_map.to_unbounded(cast(InitialPotential, self.inner).initial(rng, n))
