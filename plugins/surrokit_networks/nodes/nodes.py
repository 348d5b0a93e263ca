"""What nodes are: the features of a network whose output is linear in its weights."""

from __future__ import annotations

from typing import Protocol

from surrokit.surrogate.whitening import Whitening
from surrokit.types import FloatArray


class WeightedNodes(Protocol):
    """The sum z(q) = sum_i v_i a_i(q), equation (10) without b, as a function of raw positions.

    Every array returned is new, and no argument is changed. The shapes of arguments are not
    checked.
    """

    def value(self, positions: FloatArray) -> FloatArray:
        """Return z, shape (n,), at positions of shape (n, dim)."""
        ...

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient of z, shape (n, dim)."""
        ...

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return z, shape (n,), and its gradient, shape (n, dim)."""
        ...

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return the second derivatives of z, shape (n, dim, dim)."""
        ...

    def hessian_product(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return the Hessian times u, shape (n, dim), with u in ``vectors (n, dim)``."""
        ...

    def hessian_diagonal(self, positions: FloatArray) -> FloatArray:
        """Return the diagonal of the Hessian, shape (n, dim)."""
        ...

    def hessian_diagonal_gradient(self, positions: FloatArray, weights: FloatArray) -> FloatArray:
        """Return sum_j c_j d_k G_jj for each k, shape (n, dim), with c in ``weights (n, dim)``."""
        ...

    def hessian_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return tr(A d_k G) for each k, shape (n, dim).

        G is the Hessian of z, and each row has its own symmetric A, in ``matrices`` of shape
        (n, dim, dim).
        """
        ...

    def hessian_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return u^T d_k G u for each k, shape (n, dim).

        G is the Hessian of z, and each row has its own u, in ``vectors`` of shape (n, dim).
        """
        ...


class Nodes(Protocol):
    """Nodes a_i of whitened positions, before they have weights."""

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        ...

    def __len__(self) -> int:
        """Return how many nodes there are."""
        ...

    def features(self, whitened: FloatArray) -> FloatArray:
        """Return a_i at whitened positions (n, dim), shape (n, len(self))."""
        ...

    def weighted(self, weights: FloatArray, whitening: Whitening) -> WeightedNodes:
        """Return the sum of nodes with weights (s,), as a function of positions not whitened."""
        ...
