"""A network of random nodes on a trend: a map from positions to m outputs, equation (10).

A potential that is learnt directly is the map with one output. Derivatives of every order that
samplers need are linear maps applied at a batch of positions (:meth:`Network.at`); the Jacobian of
many outputs is formed only where it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import attrs
import numpy as np

from surrokit.errors import ShapeError
from surrokit.surrogate.whitening import Whitening
from surrokit.types import FloatArray, IntArray
from surrokit_networks.nodes import Nodes, row_blocks


@attrs.frozen(kw_only=True, eq=False)
class Polynomial:
    """c_m + l_m . z + z^T P_m z / 2 for each output m: what a trend is once it is fitted.

    ``constant (m,)`` is c, ``linear (dim, m)`` has l_m as columns, and ``matrices (m, dim, dim)``
    are P_m, symmetric; None for degree one.
    """

    constant: FloatArray
    linear: FloatArray
    matrices: FloatArray | None

    @cached_property
    def _columns(self) -> FloatArray | None:
        # P_m as [b, (a, m)]: P z for all outputs is then one product.
        if self.matrices is None:
            return None
        return np.ascontiguousarray(self.matrices.T).reshape(len(self.linear), -1)

    def value(self, z: FloatArray) -> FloatArray:
        """Return the polynomials, shape (n, m), at whitened positions (n, dim)."""
        value: FloatArray = z @ self.linear
        if self._columns is not None:
            products = (z @ self._columns).reshape(len(z), *self.linear.shape)
            value += 0.5 * np.einsum("nd,ndm->nm", z, products)
        value += self.constant
        return value

    def slope(self, z: FloatArray) -> FloatArray:
        """Return the gradient of a single output, shape (n, dim), or (dim,) for degree one."""
        slope = self.linear[:, 0]
        return slope if self.matrices is None else z @ self.matrices[0] + slope

    def slopes(self, z: FloatArray) -> FloatArray:
        """Return the gradient of each output, shape (n, dim, m)."""
        if self._columns is None:
            return np.repeat(self.linear[None], len(z), axis=0)
        return np.asarray((z @ self._columns).reshape(len(z), *self.linear.shape) + self.linear)


@attrs.frozen(kw_only=True, eq=False)
class Network:
    """f_m(q) = sum_i V_im phi_i(z) + c_m + l_m . z + z^T P_m z / 2, z the whitened position.

    ``weights (s, m)`` are V. Every array returned is new. The shapes of positions are not checked;
    those of coefficients must go together, or ShapeError is raised.
    """

    whitening: Whitening
    trend: Polynomial
    nodes: Nodes
    weights: FloatArray = attrs.field(converter=np.asfortranarray)

    def __attrs_post_init__(self) -> None:
        dim, m, trend = self.dim, len(self.trend.constant), self.trend
        for name, array, shape in (
            ("weights", self.weights, (len(self.nodes), m)),
            ("linear", trend.linear, (dim, m)),
            ("matrices", trend.matrices, (m, dim, dim)),
        ):
            if array is not None and array.shape != shape:
                raise ShapeError(f"{name} of a network must have shape {shape}, got {array.shape}")

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return len(self.whitening.mean)

    @cached_property
    def _weighted(self) -> FloatArray:
        """p_i times the weights of a single output, shape (s, ...)."""
        return np.asfortranarray(self.nodes.vectors * self.weights[:, :1])

    @cached_property
    def raw_squares(self) -> FloatArray:
        """Squares of the directions of additive nodes in raw coordinates, shape (s, dim)."""
        return np.square(self.nodes.vectors @ self.whitening.inverse)

    def combine(
        self, positions: FloatArray, scales: FloatArray
    ) -> tuple[Network, FloatArray | None]:
        """Return a network of k combinations of outputs, and the matrix (k, m) back to outputs.

        In units of the scales (m,), squares of what is left out add up to 1e-4 at a position, of n
        on average. What diffuses or is averaged varies in few ways: 41 combinations stand for the
        121 pressures of the elliptic problem. Where more than half as many as outputs are needed,
        the network stays as it is, and there is no matrix.
        """
        _, sizes, directions = np.linalg.svd(self.value(positions) / scales, full_matrices=False)
        left_out = np.cumsum(np.square(sizes[::-1]))[::-1] / len(positions)
        k = max(int(np.sum(left_out > 1e-4)), 1)
        if 2 * k > len(scales):
            return self, None
        turn, trend = directions[:k].T / scales[:, None], self.trend
        matrices = trend.matrices
        fewer = Polynomial(
            constant=trend.constant @ turn,
            linear=trend.linear @ turn,
            matrices=None if matrices is None else np.tensordot(turn.T, matrices, axes=1),
        )
        return attrs.evolve(self, trend=fewer, weights=self.weights @ turn), directions[:k] * scales

    def at(self, positions: FloatArray) -> NetworkAt:
        """Return the outputs and their derivatives at positions of shape (n, dim)."""
        return NetworkAt(self, self.whitening.apply(positions))

    def value(self, positions: FloatArray) -> FloatArray:
        """Return the outputs, shape (n, m), at positions of shape (n, dim)."""
        return self._in_blocks(self._value, self.whitening.apply(positions))

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return a single output, shape (n,), and its gradient, shape (n, dim)."""

        def both(z: FloatArray) -> FloatArray:
            features, slopes = self.nodes.features_and_slopes(z)
            values = self.trend.value(z) + features @ self.weights
            gradients = self.nodes.lower(z, slopes @ self._weighted) + self.trend.slope(z)
            return np.concatenate([values, gradients], axis=1)

        found = self._in_blocks(both, self.whitening.apply(positions))
        return found[:, 0].copy(), self.whitening.pull(found[:, 1:])

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient of a single output alone, shape (n, dim): equation (12)."""
        z = self.whitening.apply(positions)
        return self.whitening.pull(self._in_blocks(self._gradient, z))

    def _value(self, z: FloatArray) -> FloatArray:
        return self.trend.value(z) + self.nodes.features(z) @ self.weights

    def _gradient(self, z: FloatArray) -> FloatArray:
        nodes = self.nodes
        if nodes.activation == "softplus":
            vectors, offsets, weighted, level = self._halves
            slopes = z.dot(vectors)
            slopes += offsets
            np.tanh(slopes, out=slopes)
            gradient: FloatArray = slopes.dot(weighted)
            gradient += level
        else:
            gradient = nodes.lower(z, nodes.features_and_slopes(z)[1] @ self._weighted)
        gradient += self.trend.slope(z)
        return gradient

    @cached_property
    def _halves(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Arrays for the slope of softplus, (1 + tanh(h / 2)) / 2, that have its halves within."""
        # At one position they save a third of the time of a gradient.
        weighted = 0.5 * self._weighted
        return 0.5 * self.nodes.vectors.T, 0.5 * self.nodes.offsets, weighted, weighted.sum(axis=0)

    def _in_blocks(self, function: Callable[[FloatArray], FloatArray], z: FloatArray) -> FloatArray:
        """Return what a function makes of z, of so few rows at a time that they stay cached."""
        # 128 kB. Measured: in larger arrays, which the system maps anew each time, the value and
        # gradient of a thousand nodes at 32 positions took two and a half times as long.
        size = max(1, 16_384 // max(1, len(self.nodes)))
        if len(z) <= size:
            return function(z)
        blocks = [function(z[start : start + size]) for start in range(0, len(z), size)]
        return np.concatenate(blocks)


class NetworkAt:
    """A network at n whitened positions, shape (n, dim).

    All arguments and results are in raw coordinates. What has to do with G is of a single output,
    whose Hessian that is, and of additive nodes.
    """

    def __init__(self, network: Network, z: FloatArray) -> None:
        self.network, self.nodes, self.z = network, network.nodes, z
        self._weights = network.weights[:, 0]

    @property
    def outputs(self) -> FloatArray:
        """The outputs, shape (n, m)."""
        return self.network.trend.value(self.z) + self._first_order[0] @ self.network.weights

    def pull_back(self, by_outputs: FloatArray) -> FloatArray:
        """Return J^T b for each row b of ``by_outputs (n, m)``, shape (n, dim)."""
        gradient = np.einsum("ndm,nm->nd", self.network.trend.slopes(self.z), by_outputs)
        factors = by_outputs @ self.network.weights.T * self._first_order[1]
        gradient += self.nodes.lower(self.z, factors @ self.nodes.vectors)
        return self.network.whitening.pull(gradient)

    def jacobian(self) -> FloatArray:
        """Return J, shape (n, m, dim)."""
        gradients, nodes = self.network.trend.slopes(self.z), self.nodes
        size, lifted = nodes.vectors.shape
        for rows in row_blocks(len(gradients), nodes.vectors.size):
            by_nodes = self._first_order[1][rows, None, :] * nodes.vectors.T
            # One product of many rows takes two thirds of the time of one for each n.
            sums = by_nodes.reshape(-1, size) @ self.network.weights
            gradients[rows] += nodes.lower(
                self.z[rows], sums.reshape(-1, lifted, gradients.shape[2])
            )
        return np.asarray(gradients.transpose(0, 2, 1) @ self.network.whitening.inverse)

    def hessian(self) -> FloatArray:
        """Return G, shape (n, dim, dim)."""
        inverse, vectors = self.network.whitening.inverse, self.nodes.vectors.T
        matrix = np.zeros((len(self.z), len(vectors), len(vectors)))
        for rows in row_blocks(len(self.z), vectors.size):
            np.matmul(self._second[rows, None, :] * vectors, vectors.T, out=matrix[rows])
        if self.network.trend.matrices is not None:
            matrix += self.network.trend.matrices[0]
        return np.asarray(inverse.T @ matrix @ inverse)

    def trace_gradient(self, matrices: FloatArray, rows: IntArray) -> FloatArray:
        """Return tr(A d_k G) at some rows, shape (k, dim), with A in ``matrices (k, dim, dim)``."""
        inverse, vectors = self.network.whitening.inverse, self.nodes.vectors.T
        inside, (d, size) = inverse @ matrices @ inverse.T, vectors.shape
        forms = np.empty((len(inside), size))
        for block in row_blocks(len(inside), vectors.size):
            products = (inside[block].reshape(-1, d) @ vectors).reshape(-1, d, size)
            np.einsum("nks,ks->ns", products, vectors, out=forms[block])
        return self._third_order(forms * self._third[rows])

    def form_gradient(self, vectors: FloatArray, rows: IntArray) -> FloatArray:
        """Return u^T d_k G u at some rows, shape (k, dim): the trace above with A = u u^T."""
        inside = vectors @ self.network.whitening.inverse.T
        return self._third_order(np.square(inside @ self.nodes.vectors.T) * self._third[rows])

    def diagonal(self) -> FloatArray:
        """Return the diagonal of G, shape (n, dim)."""
        inverse = self.network.whitening.inverse
        diagonal: FloatArray = self._second @ self.network.raw_squares
        if self.network.trend.matrices is not None:
            diagonal += np.einsum("ij,ij->j", inverse, self.network.trend.matrices[0] @ inverse)
        return diagonal

    def diagonal_gradient(self, weights: FloatArray) -> FloatArray:
        """Return sum_j c_j d_k G_jj, shape (n, dim): the trace above with A = diag(c)."""
        return self._third_order((weights @ self.network.raw_squares.T) * self._third)

    def _third_order(self, forms: FloatArray) -> FloatArray:
        """Return the sum over nodes of v_i phi'''_i (p_i . A p_i) p_i from its factors of p_i."""
        return self.network.whitening.pull(forms @ self.nodes.vectors)

    @cached_property
    def _first_order(self) -> tuple[FloatArray, FloatArray]:
        """phi_i and phi'_i, each (n, s)."""
        return self.nodes.features_and_slopes(self.z)

    @cached_property
    def _second(self) -> FloatArray:
        """v_i phi''_i of a single output, shape (n, s)."""
        return np.asarray(self.nodes.phi.second(self.nodes.arguments(self.z)) * self._weights)

    @cached_property
    def _third(self) -> FloatArray:
        """v_i phi'''_i of a single output, shape (n, s)."""
        return np.asarray(self.nodes.phi.third(self.nodes.arguments(self.z)) * self._weights)
