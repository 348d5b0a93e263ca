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
from surrokit_networks.nodes import (
    Nodes,
    bilinear_forms,
    quadratic_forms,
    row_blocks,
    weighted_outer,
)
from surrokit_networks.trend import Polynomial


@attrs.frozen(kw_only=True, eq=False)
class Mixing:
    """f_m = offset_m + sum_r g_r matrix_rm, from r combinations g to m outputs."""

    offset: FloatArray
    matrix: FloatArray


@attrs.frozen(kw_only=True, eq=False)
class Network:
    """f_m(q) = sum_i V_im phi_i(z) + c_m + l_m . z + z^T P_m z / 2, z the whitened position.

    Every array returned is new. The shapes of positions are not checked.

    Parameters
    ----------
    weights : ndarray of shape (s, m)
        V.
    mixing
        Where the sums are combinations, what makes outputs of them.

    Raises
    ------
    ShapeError
        If the shapes do not go together.
    """

    whitening: Whitening
    trend: Polynomial
    nodes: Nodes
    weights: FloatArray = attrs.field(converter=np.asfortranarray)
    mixing: Mixing | None = None

    def __attrs_post_init__(self) -> None:
        dim, m = self.dim, len(self.trend.constant)
        _check_shape("weights", self.weights, (self.n_nodes, m))
        _check_shape("linear", self.trend.linear, (dim, m))
        if self.trend.matrices is not None:
            _check_shape("matrices", self.trend.matrices, (m, dim, dim))

    @property
    def dim(self) -> int:
        """Numbers in a position."""
        return len(self.whitening.mean)

    @property
    def n_nodes(self) -> int:
        """Nodes."""
        return len(self.nodes)

    @cached_property
    def raw_vectors(self) -> FloatArray:
        """Rows p_i^T dz/dq, shape (s, dim), for diagonals: made when first asked for."""
        return np.asarray(self.nodes.vectors @ self.whitening.inverse)

    @cached_property
    def _weighted(self) -> Nodes:
        """The nodes, with p_i and kappa_i times the weights of a single output."""
        weights, curvatures = self.weights[:, 0], self.nodes.curvatures
        return attrs.evolve(
            self.nodes,
            vectors=self.nodes.vectors * weights[:, None],
            curvatures=None if curvatures is None else curvatures * weights,
        )

    def value(self, positions: FloatArray) -> FloatArray:
        """Return the outputs, shape (n, m), at positions of shape (n, dim)."""
        z = self.whitening.apply(positions)
        outputs = self.trend.value(z)
        for rows in self.nodes.cached_blocks(z):
            outputs[rows] += self.nodes.features(z[rows]) @ self.weights
        return self._mixed(outputs)

    def at(self, positions: FloatArray) -> NetworkAt:
        """Return the outputs and their derivatives at positions of shape (n, dim)."""
        z = self.whitening.apply(positions)
        outputs, slopes = self.trend.value(z), np.empty((len(z), len(self.nodes)))
        for rows in self.nodes.cached_blocks(z):
            features, slopes[rows] = self.nodes.features_and_slopes(z[rows])
            outputs[rows] += features @ self.weights
        return NetworkAt(network=self, z=z, outputs=self._mixed(outputs), slopes=slopes)

    def value_and_gradient(self, positions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return a single output, shape (n,), and its gradient, shape (n, dim)."""
        z = self.whitening.apply(positions)
        values = self.trend.value(z)[:, 0]
        gradients = self.trend.gradient(z)
        weights = self.weights[:, 0]
        for rows in self.nodes.cached_blocks(z):
            features, slopes = self.nodes.features_and_slopes(z[rows])
            values[rows] += features @ weights
            gradients[rows] += self._weighted.combine(z[rows], slopes)
        return values, self.whitening.pull(gradients)

    def gradient(self, positions: FloatArray) -> FloatArray:
        """Return the gradient of a single output alone, shape (n, dim): equation (12)."""
        z = self.whitening.apply(positions)
        gradients = self.trend.gradient(z)
        for rows in self.nodes.cached_blocks(z):
            slopes = self.nodes.activation.first(self.nodes.arguments(z[rows]))
            gradients[rows] += self._weighted.combine(z[rows], slopes)
        return self.whitening.pull(gradients)

    def _mixed(self, outputs: FloatArray) -> FloatArray:
        if self.mixing is None:
            return outputs
        mixed: FloatArray = outputs @ self.mixing.matrix
        mixed += self.mixing.offset
        return mixed


@attrs.define(kw_only=True, eq=False, slots=False)
class NetworkAt:
    """A network at n positions.

    Parameters
    ----------
    z : ndarray of shape (n, dim)
        Whitened positions.
    outputs : ndarray of shape (n, m)
        The outputs there.
    slopes : ndarray of shape (n, s)
        phi' of each node.
    """

    network: Network
    z: FloatArray
    outputs: FloatArray
    slopes: FloatArray

    def pull_back(self, by_outputs: FloatArray) -> FloatArray:
        """Return J^T b for each row b of ``by_outputs (n, m)``, shape (n, dim)."""
        by_outputs = self._by_combinations(by_outputs)
        gradient = self.network.trend.pull_back(self.z, by_outputs)
        by_nodes = by_outputs @ self.network.weights.T
        by_nodes *= self.slopes
        gradient += self._nodes.combine(self.z, by_nodes)
        return self.network.whitening.pull(gradient)

    def push(self, vectors: FloatArray) -> FloatArray:
        """Return J u for each row u of ``vectors (n, dim)``, shape (n, m)."""
        inside = vectors @ self.network.whitening.inverse.T
        pushed = self.network.trend.push(self.z, inside)
        along = self._nodes.along(self.z, inside)
        along *= self.slopes
        pushed += along @ self.network.weights
        mixing = self.network.mixing
        return pushed if mixing is None else np.asarray(pushed @ mixing.matrix)

    def jacobian(self) -> FloatArray:
        """Return J, shape (n, m, dim)."""
        gradients = self.network.trend.slopes(self.z)
        nodes, weights = self._nodes, self.network.weights
        n, dim, m = gradients.shape
        for rows in row_blocks(n, dim * len(nodes)):
            by_nodes = self.slopes[rows, None, :] * nodes.vectors.T
            # One product of many rows takes two thirds of the time of one for each n.
            gradients[rows] += (by_nodes.reshape(-1, len(nodes)) @ weights).reshape(-1, dim, m)
        if nodes.curvatures is not None:
            levels = (self.slopes * nodes.curvatures) @ weights
            gradients -= self.z[:, :, None] * levels[:, None, :]
        if self.network.mixing is not None:
            gradients = gradients @ self.network.mixing.matrix
        return np.asarray(gradients.transpose(0, 2, 1) @ self.network.whitening.inverse)

    def hessian_product(self, weights: FloatArray) -> FloatArray:
        """Return sum over m and i of W_mi d_i d_k f_m, shape (n, dim), for W (n, m, dim).

        With T_i = sum_m V_im W_m node i adds phi''_i (T_i . g_i) g_i - phi'_i kappa_i T_i.
        """
        inside = weights @ self.network.whitening.inverse.T
        if self.network.mixing is not None:
            inside = self.network.mixing.matrix @ inside
        product = self.network.trend.hessian_product(inside)
        nodes, own = self._nodes, self.network.weights
        forms = bilinear_forms(inside, own, nodes.vectors.T)
        if nodes.curvatures is not None:
            along_z = np.matmul(inside, self.z[:, :, None])[:, :, 0]
            forms -= (along_z @ own.T) * nodes.curvatures
            levels = (self.slopes * nodes.curvatures) @ own
            product -= np.einsum("nm,nmd->nd", levels, inside)
        forms *= self._seconds
        product += nodes.combine(self.z, forms)
        return self.network.whitening.pull(product)

    def hessian_form(self, by_outputs: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return the same for W = b u^T, with rows b (n, m) and u (n, dim)."""
        inside = vectors @ self.network.whitening.inverse.T
        by_outputs = self._by_combinations(by_outputs)
        form = self.network.trend.hessian_form(by_outputs, inside)
        nodes = self._nodes
        by_nodes = by_outputs @ self.network.weights.T
        if nodes.curvatures is not None:
            form -= ((by_nodes * self.slopes) @ nodes.curvatures)[:, None] * inside
        by_nodes *= nodes.along(self.z, inside)
        by_nodes *= self._seconds
        form += nodes.combine(self.z, by_nodes)
        return self.network.whitening.pull(form)

    def _by_combinations(self, by_outputs: FloatArray) -> FloatArray:
        mixing = self.network.mixing
        return by_outputs if mixing is None else by_outputs @ mixing.matrix.T

    @property
    def _nodes(self) -> Nodes:
        return self.network.nodes

    @cached_property
    def _seconds(self) -> FloatArray:
        nodes = self._nodes
        return nodes.activation.second(nodes.arguments(self.z))


class HessianAt:
    """The Hessian G of a network with one output at n positions, and its derivative.

    All arguments and results are in raw coordinates. Node i adds to G

        v_i (phi'' g g^T - phi' kappa I),

    and to tr(A d_k G), with A symmetric,

        v_i (phi''' (g^T A g) g_k - phi'' kappa (2 (A g)_k + tr(A) g_k)).
    """

    def __init__(self, network: Network, positions: FloatArray) -> None:
        self._network, self._trend = network, network.trend
        self._inverse = network.whitening.inverse
        self._z = network.whitening.apply(positions)
        self._nodes = network.nodes
        self._h = self._nodes.arguments(self._z)
        self._weights = network.weights[:, 0]

    def matrix(self) -> FloatArray:
        """Return G, shape (n, dim, dim)."""
        nodes, z = self._nodes, self._z
        matrix = weighted_outer(self._second, nodes.vectors.T)
        if nodes.curvatures is not None:
            curved = self._second * nodes.curvatures
            crossed = z[:, :, None] * (curved @ nodes.vectors)[:, None, :]
            matrix -= crossed + crossed.transpose(0, 2, 1)
            matrix += (curved @ nodes.curvatures)[:, None, None] * z[:, :, None] * z[:, None, :]
            matrix -= self._level[:, None, None] * np.eye(z.shape[1])
        if self._trend.matrices is not None:
            matrix += self._trend.matrices[0]
        return np.asarray(self._inverse.T @ matrix @ self._inverse)

    def product(self, vectors: FloatArray) -> FloatArray:
        """Return G u, shape (n, dim), with u in ``vectors (n, dim)``."""
        inside = vectors @ self._inverse.T
        product = np.zeros_like(inside)
        if self._trend.matrices is not None:
            product += inside @ self._trend.matrices[0]
        along = self._nodes.along(self._z, inside)
        product += self._nodes.combine(self._z, self._second * along)
        if self._nodes.curvatures is not None:
            product -= self._level[:, None] * inside
        return np.asarray(product @ self._inverse)

    def diagonal(self) -> FloatArray:
        """Return the diagonal of G, shape (n, dim)."""
        diagonal = np.zeros_like(self._z)
        if self._trend.matrices is not None:
            matrix = self._trend.matrices[0]
            diagonal += np.einsum("ij,ij->j", self._inverse, matrix @ self._inverse)
        second, pulled = self._second, self._network.raw_vectors
        diagonal += second @ np.square(pulled)
        if self._nodes.curvatures is not None:
            own, curved = self._z @ self._inverse, second * self._nodes.curvatures
            diagonal -= 2.0 * own * (curved @ pulled)
            diagonal += (curved @ self._nodes.curvatures)[:, None] * np.square(own)
            diagonal -= self._level[:, None] * np.square(self._inverse).sum(axis=0)
        return diagonal

    def trace_gradient(
        self, matrices: FloatArray, rows: IntArray | slice = slice(None)
    ) -> FloatArray:
        """Return tr(A d_k G) at some rows, shape (k, dim), with A in ``matrices (k, dim, dim)``."""
        z, nodes = self._z[rows], self._nodes
        inside = self._inverse @ matrices @ self._inverse.T
        forms = quadratic_forms(inside, nodes.vectors.T)
        if nodes.curvatures is not None:
            pulled = np.matmul(inside, z[:, :, None])[:, :, 0]
            forms -= 2.0 * (pulled @ nodes.vectors.T) * nodes.curvatures
            forms += np.einsum("nd,nd->n", z, pulled)[:, None] * np.square(nodes.curvatures)
        trace = np.einsum("nkk->n", inside)
        return self._contract(
            forms, trace, lambda g: np.matmul(inside, g[:, :, None])[:, :, 0], rows
        )

    def form_gradient(
        self, vectors: FloatArray, rows: IntArray | slice = slice(None)
    ) -> FloatArray:
        """Return u^T d_k G u at some rows, shape (k, dim): the trace above with A = u u^T."""
        u = vectors @ self._inverse.T
        along = self._nodes.along(self._z[rows], u)
        return self._contract(
            np.square(along, out=along),
            np.einsum("nd,nd->n", u, u),
            lambda g: np.einsum("nd,nd->n", u, g)[:, None] * u,
            rows,
        )

    def diagonal_gradient(self, weights: FloatArray) -> FloatArray:
        """Return sum_j c_j d_k G_jj, shape (n, dim): the trace above with A = diag(c)."""
        nodes, inverse = self._nodes, self._inverse
        pulled = self._network.raw_vectors
        forms = weights @ np.square(pulled).T
        if nodes.curvatures is not None:
            own = self._z @ inverse
            forms -= 2.0 * ((weights * own) @ pulled.T) * nodes.curvatures
            squares = np.einsum("nk,nk->n", weights, np.square(own))
            forms += squares[:, None] * np.square(nodes.curvatures)
        trace = weights @ np.square(inverse).sum(axis=0)
        return self._contract(forms, trace, lambda g: ((g @ inverse) * weights) @ inverse.T)

    def _contract(
        self,
        forms: FloatArray,
        trace: FloatArray,
        apply: Callable[[FloatArray], FloatArray],
        rows: IntArray | slice = slice(None),
    ) -> FloatArray:
        """Return tr(A d_k G) from g^T A g (k, s), tr A (k,) and the map from g to A g."""
        z, nodes = self._z[rows], self._nodes
        forms *= self._third[rows]
        if nodes.curvatures is None:
            return np.asarray(nodes.combine(z, forms) @ self._inverse)
        curved = self._second[rows] * nodes.curvatures
        forms -= curved * trace[:, None]
        return np.asarray(
            (nodes.combine(z, forms) - 2.0 * apply(nodes.combine(z, curved))) @ self._inverse
        )

    @cached_property
    def _second(self) -> FloatArray:
        """v_i phi''_i, shape (n, s)."""
        return self._nodes.activation.second(self._h) * self._weights

    @cached_property
    def _third(self) -> FloatArray:
        """v_i phi'''_i, shape (n, s)."""
        activation = self._nodes.activation
        if activation.third is activation.second:  # the exponential of radial nodes
            return self._second
        return activation.third(self._h) * self._weights

    @cached_property
    def _level(self) -> FloatArray:
        """sum_i v_i phi'_i kappa_i, shape (n,)."""
        assert self._nodes.curvatures is not None
        slopes = self._nodes.activation.first(self._h)
        return np.asarray(slopes @ (self._weights * self._nodes.curvatures))


def _check_shape(name: str, array: FloatArray, shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise ShapeError(f"{name} of a network must have shape {shape}, got {array.shape}")
