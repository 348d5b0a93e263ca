"""Many weighted sums of the same additive nodes."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.types import FloatArray
from surrokit_networks.nodes.activations import Core, Elementwise
from surrokit_networks.nodes.additive import AdditiveNodes
from surrokit_networks.nodes.outer import bilinear_forms
from surrokit_networks.nodes.row_blocks import cached_blocks, row_blocks


@attrs.frozen(kw_only=True, eq=False)
class AdditiveOutputs:
    """sum_i V_im k(h_i) for each output m, with h = z directions + biases.

    With a(x) = t x + k(r x) (see :class:`~surrokit_networks.nodes.activations.Core`) this is the
    sum of nodes a(w_i . z + b_i) less what is linear in z: :meth:`constant` and :meth:`linear` give
    that, for a trend to take.

    Parameters
    ----------
    core, second
        k, with t and r; and the second derivative of a.
    directions : ndarray of shape (dim, s)
        r w_i as columns.
    biases : ndarray of shape (s,)
        r b_i.
    weights : ndarray of shape (s, m)
        V, in Fortran order. Measured: products of few rows with it and with its transpose are then
        both fast; in C order the latter takes two to three times as long.
    """

    core: Core
    second: Elementwise
    directions: FloatArray
    biases: FloatArray
    weights: FloatArray

    @classmethod
    def of(cls, nodes: AdditiveNodes, weights: FloatArray) -> AdditiveOutputs:
        """Return the sums of nodes with ``weights (s, m)``."""
        rate = nodes.activation.core.rate
        return cls(
            core=nodes.activation.core,
            second=nodes.activation.second,
            directions=np.ascontiguousarray(rate * nodes.directions.T),
            biases=rate * nodes.biases,
            weights=np.array(weights, dtype=np.float64, order="F"),
        )

    def constant(self) -> FloatArray:
        """Return t sum_i V_im b_i, shape (m,)."""
        return np.asarray(self.core.tilt / self.core.rate * (self.biases @ self.weights))

    def linear(self) -> FloatArray:
        """Return t sum_i V_im w_i as columns, shape (dim, m)."""
        return np.asarray(self.core.tilt / self.core.rate * (self.directions @ self.weights))

    def value(self, whitened: FloatArray) -> FloatArray:
        """Return the sums, shape (n, m), at whitened positions (n, dim)."""
        n, (size, n_outputs) = len(whitened), self.weights.shape
        outputs = np.empty((n, n_outputs))
        for rows in cached_blocks(n, size):
            outputs[rows] = self.core.value(self._arguments(whitened[rows])) @ self.weights
        return outputs

    def linearise(self, whitened: FloatArray) -> LinearisedAdditive:
        """Return the sums and their derivatives at whitened positions (n, dim)."""
        n, (size, n_outputs) = len(whitened), self.weights.shape
        outputs, slopes = np.empty((n, n_outputs)), np.empty((n, size))
        for rows in cached_blocks(n, size):
            values, slopes[rows] = self.core.both(self._arguments(whitened[rows]))
            outputs[rows] = values @ self.weights
        return LinearisedAdditive(outputs=outputs, steepness=slopes, whitened=whitened, sums=self)

    def bends(self, whitened: FloatArray) -> FloatArray:
        """Return k''(h_i), shape (n, s), at whitened positions (n, dim)."""
        rate = self.core.rate
        arguments = self._arguments(whitened)
        arguments /= rate
        bends = self.second(arguments)
        bends /= rate**2
        return bends

    def _arguments(self, whitened: FloatArray) -> FloatArray:
        arguments: FloatArray = whitened @ self.directions
        arguments += self.biases
        return arguments


@attrs.frozen(kw_only=True, eq=False)
class LinearisedAdditive:
    """Sums of additive nodes at some positions.

    Parameters
    ----------
    outputs : ndarray of shape (n, m)
        The sums.
    steepness : ndarray of shape (n, s)
        k'(h_i).
    whitened : ndarray of shape (n, dim)
        z.
    sums
        Which sums.
    """

    outputs: FloatArray
    steepness: FloatArray
    whitened: FloatArray
    sums: AdditiveOutputs

    def pull_back(self, by_outputs: FloatArray) -> FloatArray:
        """Return J^T b for each row b of ``by_outputs (n, m)``, shape (n, dim)."""
        by_nodes = by_outputs @ self.sums.weights.T
        by_nodes *= self.steepness
        return np.asarray(by_nodes @ self.sums.directions.T)

    def push(self, vectors: FloatArray) -> FloatArray:
        """Return J u for each row u of ``vectors (n, dim)``, shape (n, m)."""
        along = vectors @ self.sums.directions
        along *= self.steepness
        return np.asarray(along @ self.sums.weights)

    def slopes(self) -> FloatArray:
        """Return J^T, shape (n, dim, m)."""
        directions, weights = self.sums.directions, self.sums.weights
        dim, size = directions.shape
        n, n_outputs = self.outputs.shape
        slopes = np.empty((n, dim, n_outputs))
        for rows in row_blocks(n, dim * size):
            by_nodes = self.steepness[rows, None, :] * directions
            # as one product of many rows, which takes two thirds of the time of one for each n
            slopes[rows] = (by_nodes.reshape(-1, size) @ weights).reshape(-1, dim, n_outputs)
        return slopes

    def hessian_product(self, weights: FloatArray) -> FloatArray:
        """Return sum_i k''(h_i) w_i (sum_m V_im w_i . W_m), shape (n, dim), for W (n, m, dim)."""
        sums = self.sums
        bent = bilinear_forms(weights, sums.weights, sums.directions)
        bent *= sums.bends(self.whitened)
        return np.asarray(bent @ sums.directions.T)

    def hessian_form(self, by_outputs: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return the same for W = b u^T, with rows b (n, m) and u (n, dim)."""
        bent = by_outputs @ self.sums.weights.T
        bent *= vectors @ self.sums.directions
        bent *= self.sums.bends(self.whitened)
        return np.asarray(bent @ self.sums.directions.T)
