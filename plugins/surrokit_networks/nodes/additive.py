"""Additive nodes a(w . z + b)."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.contracts.matrices import FormsAt
from surrokit.surrogate.whitening import Whitening
from surrokit.types import FloatArray, IntArray
from surrokit_networks.nodes.activations import Activation, Core, Elementwise
from surrokit_networks.nodes.outer import quadratic_forms, weighted_outer
from surrokit_networks.nodes.row_blocks import cached_blocks


@attrs.frozen(kw_only=True, eq=False)
class AdditiveNodes:
    """Nodes a(w_i . z + b_i), the additive kind of section 3.1 of the paper.

    Parameters
    ----------
    directions : ndarray of shape (s, dim)
        w_i.
    biases : ndarray of shape (s,)
        b_i (d_i in the paper).
    activation
        a and its derivatives.
    """

    directions: FloatArray
    biases: FloatArray
    activation: Activation

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return int(self.directions.shape[1])

    def __len__(self) -> int:
        return len(self.biases)

    def arguments(self, whitened: FloatArray) -> FloatArray:
        """Return w_i . z + b_i, shape (n, s), at whitened positions (n, dim)."""
        arguments: FloatArray = whitened @ self.directions.T
        arguments += self.biases
        return arguments

    def features(self, whitened: FloatArray) -> FloatArray:
        """Return a(w_i . z + b_i), shape (n, s), at whitened positions (n, dim)."""
        return self.activation.value(self.arguments(whitened))

    def slopes(self, whitened: FloatArray) -> FloatArray:
        """Return a'(w_i . z + b_i), shape (n, s), at whitened positions (n, dim)."""
        core = self.activation.core
        return _slopes(core.slope(_scale(self.arguments(whitened), core.rate)), core)

    def features_and_slopes(self, whitened: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return a and a' of w_i . z + b_i, each (n, s), for little more than one of them."""
        core = self.activation.core
        arguments = self.arguments(whitened)
        linear = core.tilt * arguments if core.tilt else None
        features, slopes = core.both(_scale(arguments, core.rate))
        if linear is not None:
            features += linear
        return features, _slopes(slopes, core)

    def with_weights(self, weights: FloatArray, whitening: Whitening) -> WeightedAdditive:
        """Return the sum with ``weights (s,)``; the whitening is folded into the directions."""
        directions = self.directions @ whitening.inverse
        biases = self.biases - directions @ whitening.mean
        core = self.activation.core
        return WeightedAdditive(
            core=core,
            second=self.activation.second,
            third=self.activation.third,
            arguments=np.ascontiguousarray(core.rate * directions.T),
            biases=core.rate * biases,
            weights=weights.copy(),
            slopes=np.ascontiguousarray(core.rate * (directions.T * weights)).T,
            tilt=core.tilt * (weights @ directions),
            level=core.tilt * float(weights @ biases),
        )


def _scale(arguments: FloatArray, rate: float) -> FloatArray:
    if rate != 1.0:
        arguments *= rate
    return arguments


def _slopes(slopes: FloatArray, core: Core) -> FloatArray:
    """Turn slopes of k into those of a(x) = t x + k(r x)."""
    slopes = _scale(slopes, core.rate)
    if core.tilt:
        slopes += core.tilt
    return slopes


@attrs.frozen(kw_only=True, eq=False)
class WeightedAdditive:
    """sum_i v_i a(w_i . q + b_i), with everything linear folded into a few arrays.

    With a(x) = t x + k(r x) (see :class:`~surrokit_networks.nodes.activations.Core`) the sum is
    level + tilt . q + sum_i v_i k(h_i), where h = q arguments + biases.

    Parameters
    ----------
    core, second, third
        k, and the second and the third derivative of a.
    arguments : ndarray of shape (dim, s)
        r w_i as columns. Measured: a product of few rows with an array of this layout takes less
        than half the time of one with its transpose.
    biases : ndarray of shape (s,)
        r b_i.
    weights : ndarray of shape (s,)
        v_i.
    slopes : ndarray of shape (s, dim)
        r v_i w_i, in Fortran order for the same reason.
    tilt : ndarray of shape (dim,)
        t sum_i v_i w_i.
    level
        t sum_i v_i b_i.
    """

    core: Core
    second: Elementwise
    third: Elementwise
    arguments: FloatArray
    biases: FloatArray
    weights: FloatArray
    slopes: FloatArray
    tilt: FloatArray
    level: float

    def value(self, positions: FloatArray) -> FloatArray:
        """Return the sum, shape (n,), at positions of shape (n, dim)."""
        values = np.empty(len(positions))
        for rows in cached_blocks(len(positions), len(self.biases)):
            q = positions[rows]
            values[rows] = self._value(self.core.value(self._arguments(q)), q)
        return values

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient, shape (n, dim): equation (12)."""
        return self._gradient(self.core.slope(self._arguments(positions)))

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the sum, shape (n,), and its gradient, shape (n, dim)."""
        values, gradients = np.empty(len(positions)), np.empty(positions.shape)
        for rows in cached_blocks(len(positions), len(self.biases)):
            q = positions[rows]
            features, slopes = self.core.both(self._arguments(q))
            values[rows], gradients[rows] = self._value(features, q), self._gradient(slopes)
        return values, gradients

    def hessian(self, positions: FloatArray) -> FloatArray:
        """Return sum_i v_i a''(w_i . q + b_i) w_i w_i^T, shape (n, dim, dim)."""
        return weighted_outer(self._curvatures(positions), self.arguments)

    def hessian_product(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return sum_i v_i a''(w_i . q + b_i) (w_i . u) w_i, shape (n, dim)."""
        curvatures = self._curvatures(positions)
        curvatures *= vectors @ self.arguments
        return np.asarray(curvatures @ self.arguments.T)

    def hessian_diagonal(self, positions: FloatArray) -> FloatArray:
        """Return sum_i v_i a''(w_i . q + b_i) w_ij^2, shape (n, dim)."""
        return np.asarray(self._curvatures(positions) @ np.square(self.arguments).T)

    def hessian_diagonal_gradient(self, positions: FloatArray, weights: FloatArray) -> FloatArray:
        """Return sum_i v_i a'''(w_i . q + b_i) (sum_j c_j w_ij^2) w_i, shape (n, dim)."""
        return self._bent(positions, np.asarray(weights @ np.square(self.arguments)))

    def hessian_trace_gradient(self, positions: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return sum_i v_i a'''(w_i . q + b_i) (w_i^T A w_i) w_i, shape (n, dim)."""
        return self._bent(positions, quadratic_forms(matrices, self.arguments))

    def hessian_form_gradient(self, positions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return sum_i v_i a'''(w_i . q + b_i) (w_i . u)^2 w_i, shape (n, dim)."""
        along: FloatArray = vectors @ self.arguments
        return self._bent(positions, np.square(along, out=along))

    def hessian_forms_at(self, positions: FloatArray) -> FormsAt:
        """Return :meth:`hessian_form_gradient` of rows of positions (n, dim)."""
        bends = self._bends(positions)

        def forms(vectors: FloatArray, rows: IntArray) -> FloatArray:
            along: FloatArray = vectors @ self.arguments
            np.square(along, out=along)
            along *= bends if len(rows) == len(bends) else bends[rows]
            return np.asarray(along @ self.slopes)

        return forms

    def hessian_traces_at(self, positions: FloatArray) -> FormsAt:
        """Return :meth:`hessian_trace_gradient` of rows of positions (n, dim)."""
        bends = self._bends(positions)

        def traces(matrices: FloatArray, rows: IntArray) -> FloatArray:
            forms = quadratic_forms(matrices, self.arguments)
            forms *= bends if len(rows) == len(bends) else bends[rows]
            return np.asarray(forms @ self.slopes)

        return traces

    def _curvatures(self, positions: FloatArray) -> FloatArray:
        """Return v_i a'' / r^2, shape (n, s): the factors of outer products of r w_i."""
        rate = self.core.rate
        arguments = self._arguments(positions)
        arguments /= rate
        curvatures = self.second(arguments)
        curvatures *= self.weights / rate**2
        return curvatures

    def _bent(self, positions: FloatArray, forms: FloatArray) -> FloatArray:
        """Return sum_i v_i a''' w_i times a form of r w_i, given in shape (n, s)."""
        forms *= self._bends(positions)
        return np.asarray(forms @ self.slopes)

    def _bends(self, positions: FloatArray) -> FloatArray:
        """Return the third derivatives of a over r^3, shape (n, s)."""
        rate = self.core.rate
        arguments = self._arguments(positions)
        arguments /= rate
        return np.asarray(self.third(arguments) / rate**3)

    def _arguments(self, positions: FloatArray) -> FloatArray:
        arguments: FloatArray = positions @ self.arguments
        arguments += self.biases
        return arguments

    def _value(self, values: FloatArray, positions: FloatArray) -> FloatArray:
        total: FloatArray = values @ self.weights
        total += positions @ self.tilt
        total += self.level
        return total

    def _gradient(self, slopes: FloatArray) -> FloatArray:
        gradient: FloatArray = slopes @ self.slopes
        gradient += self.tilt
        return gradient
