"""The potential that a fitted network is."""

from __future__ import annotations

import attrs

from surrokit.capabilities import GRADIENT, GRADIENT_ALONE, HESSIAN
from surrokit.positions import checked_positions
from surrokit.types import Capabilities, FloatArray
from surrokit_networks.nodes import WeightedNodes

CAPABILITIES: Capabilities = frozenset({GRADIENT, GRADIENT_ALONE, HESSIAN})
"""What every fitted network can do."""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class FittedNetwork:
    """V(q) = sum_i v_i a_i(q) + b, equation (10) of the paper, in nats.

    Frozen and safe to share between threads. Every array it returns is new.

    Parameters
    ----------
    dim
        Numbers in a position.
    nodes
        The weighted sum.
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
        Generalised cross-validation estimate of the mean of (V - U)^2 on new points like the
        training points, in nats squared; ``inf`` for a fit that passes through every point.
    """

    dim: int
    nodes: WeightedNodes
    level: float
    n_nodes: int
    n_points: int
    ridge: float
    degrees: float
    gcv_error: float

    @property
    def capabilities(self) -> Capabilities:
        """Gradient, gradient alone, Hessian."""
        return CAPABILITIES

    def __repr__(self) -> str:
        return (
            f"FittedNetwork(dim={self.dim}, n_nodes={self.n_nodes}, n_points={self.n_points}, "
            f"ridge={self.ridge:.3g}, degrees={self.degrees:.1f}, gcv_error={self.gcv_error:.3g})"
        )

    def value(self, positions: FloatArray) -> FloatArray:
        """Return V, shape (n,), at positions of shape (n, dim).

        Raises
        ------
        ShapeError
            If the positions are not rows of ``dim`` numbers.
        """
        value = self.nodes.value(checked_positions(positions, self.dim))
        value += self.level
        return value

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient of V, shape (n, dim), at positions of shape (n, dim).

        Raises
        ------
        ShapeError
            If the positions are not rows of ``dim`` numbers.
        """
        return self.nodes.gradient(checked_positions(positions, self.dim))

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return V, shape (n,), and its gradient, shape (n, dim).

        Raises
        ------
        ShapeError
            If the positions are not rows of ``dim`` numbers.
        """
        value, gradient = self.nodes.value_and_gradient(checked_positions(positions, self.dim))
        value += self.level
        return value, gradient

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return the second derivatives of V, shape (n, dim, dim).

        Raises
        ------
        ShapeError
            If the positions are not rows of ``dim`` numbers.
        """
        return self.nodes.hessian(checked_positions(positions, self.dim))
