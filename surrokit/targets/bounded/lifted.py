"""A target in the user's coordinates, on the whole line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self, cast

import attrs
import numpy as np

from surrokit.contracts.counting import Count, with_count
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
from surrokit.coordinates.rowwise import map_rows
from surrokit.errors import ShapeError
from surrokit.shapes import check_positions
from surrokit.shown.target import ShownTarget
from surrokit.types import FloatArray


@attrs.frozen(eq=False)
class LiftedPotential(ShownTarget):
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

    def with_count(self, count: Count) -> Self:
        """Return a copy that reports its calls of the inner potential."""
        return attrs.evolve(self, inner=with_count(self.inner, count))

    def over(self, wrap: Callable[[Potential], Potential]) -> Self:
        """Return a copy of a wrapped inner potential."""
        return attrs.evolve(self, inner=wrap(self.inner))

    def value(self, positions: FloatArray) -> FloatArray:
        """Return U at positions on the line of shape (n, dim), shape (n,)."""
        z = check_positions(positions, self.dim)

        def from_inner(value: FloatArray) -> tuple[FloatArray]:
            return (value - self.own_map.log_jacobian(z),)

        q = self.own_map.to_bounded(z)
        return map_rows(lambda: (self.inner.value(q),), from_inner, len(q))[0]

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U, shape (n,), and its gradient in z, shape (n, dim)."""
        z = check_positions(positions, self.dim)
        inner = cast(GradientPotential, self.inner)

        def from_inner(value: FloatArray, gradient: FloatArray) -> tuple[FloatArray, FloatArray]:
            return value - self.own_map.log_jacobian(z), pull_back(self.own_map, z, gradient)

        q = self.own_map.to_bounded(z)
        return map_rows(lambda: inner.value_and_gradient(q), from_inner, len(q))

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient in z, shape (n, dim)."""
        z = check_positions(positions, self.dim)
        inner = cast(GradientAlonePotential, self.inner)

        def from_inner(gradient: FloatArray) -> tuple[FloatArray]:
            return (pull_back(self.own_map, z, gradient),)

        q = self.own_map.to_bounded(z)
        return map_rows(lambda: (inner.gradient(q),), from_inner, len(q))[0]

    def forward(self, positions: FloatArray) -> FloatArray:
        """Return the outputs, shape (n, m)."""
        z = check_positions(positions, self.dim)
        return cast(ForwardPotential, self.inner).forward(self.own_map.to_bounded(z))

    def forward_and_jacobian(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the outputs, shape (n, m), and their derivatives in z, shape (n, m, dim)."""
        z = check_positions(positions, self.dim)
        inner = cast(ForwardPotential, self.inner)

        def from_inner(outputs: FloatArray, jacobian: FloatArray) -> tuple[FloatArray, FloatArray]:
            return outputs, pull_back_outputs(self.own_map, z, jacobian)

        q = self.own_map.to_bounded(z)
        return map_rows(lambda: inner.forward_and_jacobian(q), from_inner, len(q))

    def forward_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the outputs, shape (n, m), and the gradient of U in z, shape (n, dim)."""
        z = check_positions(positions, self.dim)
        inner = cast(AdjointPotential, self.inner)

        def from_inner(outputs: FloatArray, gradient: FloatArray) -> tuple[FloatArray, FloatArray]:
            return outputs, pull_back(self.own_map, z, gradient)

        q = self.own_map.to_bounded(z)
        return map_rows(lambda: inner.forward_and_gradient(q), from_inner, len(q))

    def initial(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return starting positions on the line, shape (n, dim)."""
        return self.own_map.to_unbounded(cast(InitialPotential, self.inner).initial(rng, n))
