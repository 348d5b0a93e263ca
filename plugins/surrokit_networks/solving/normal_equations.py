"""Normal equations of values and gradients, gathered block by block.

Each position brings 1 + dim equations, yet no factor of dim appears in the cost: sums over the
components of gradients come out as entrywise products of s x s matrices. With A the features, D
the slopes and W the directions of additive nodes, the matrix is A^T A + omega (D^T D) o (W W^T).
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np

from surrokit.limits.deadline import check_deadline
from surrokit.types import FloatArray
from surrokit_networks.nodes.additive import AdditiveNodes
from surrokit_networks.nodes.rbf import RbfNodes
from surrokit_networks.solving.basis import Basis
from surrokit_networks.solving.equations import Equations
from surrokit_networks.solving.trend import TrendFeatures

_BLOCK = 2_000_000
"""Numbers in a block of rows, unless a row is longer."""


@attrs.frozen(kw_only=True, eq=False)
class NormalEquations:
    """Sums over rows; those of two sets of rows add up.

    Parameters
    ----------
    gram : ndarray of shape (k, k)
        Weighted products of columns, of values and gradients.
    right : ndarray of shape (k, m)
        Weighted products of columns and targets.
    squares : ndarray of shape (m,)
        Weighted squares of targets.
    sums : ndarray of shape (k,)
        Weighted sums of the columns' values.
    target_sums : ndarray of shape (m,)
        Weighted sums of the targets' values.
    weight
        Sum of the weights of values.
    mass
        Sum of all weights: what the square of a column of ones would be.
    """

    gram: FloatArray
    right: FloatArray
    squares: FloatArray
    sums: FloatArray
    target_sums: FloatArray
    weight: float
    mass: float

    def __add__(self, other: NormalEquations) -> NormalEquations:
        return NormalEquations(
            gram=self.gram + other.gram,
            right=self.right + other.right,
            squares=self.squares + other.squares,
            sums=self.sums + other.sums,
            target_sums=self.target_sums + other.target_sums,
            weight=self.weight + other.weight,
            mass=self.mass + other.mass,
        )

    def without_level(self) -> NormalEquations:
        """Return the equations with a constant profiled out, by taking off weighted means."""
        means = self.sums / self.weight
        return NormalEquations(
            gram=self.gram - np.outer(self.sums, means),
            right=self.right - np.outer(means, self.target_sums),
            squares=self.squares - self.target_sums**2 / self.weight,
            sums=np.zeros_like(self.sums),
            target_sums=np.zeros_like(self.target_sums),
            weight=0.0,
            mass=self.mass,
        )


def normal_equations(
    basis: Basis, equations: Equations, block_rows: int | None = None
) -> NormalEquations:
    """Gather the normal equations of a basis.

    Parameters
    ----------
    basis
        The columns.
    equations
        The rows.
    block_rows : int, optional
        Positions at a time; None for as many as take a few megabytes.
    """
    n_outputs = equations.n_outputs
    products = _products(basis, n_outputs)
    squares, target_sums = np.zeros(n_outputs), np.zeros(n_outputs)
    for block in blocks(equations, len(basis) * max(1, n_outputs // 4), block_rows):
        products.add(block)
        squares += block.value_weights @ np.square(block.targets)
        target_sums += block.value_weights @ block.targets
        if block.gradients is not None:
            lengths = np.einsum("nmd,nmd->nm", block.gradients, block.gradients)
            squares += block.gradient_weights @ lengths
    gram, right, sums = products.sums()
    trend = basis.trend
    gram = trend.by_monomials(trend.by_monomials(gram).T).T
    return NormalEquations(
        gram=gram,
        right=trend.by_monomials(right),
        squares=squares,
        sums=trend.by_monomials(sums),
        target_sums=target_sums,
        weight=float(equations.value_weights.sum()),
        mass=equations.mass,
    )


def blocks(
    equations: Equations, n_columns: int, block_rows: int | None = None
) -> Iterator[Equations]:
    """Yield equations a few positions at a time."""
    size = block_rows or max(64, _BLOCK // max(1, n_columns))
    for start in range(0, len(equations), size):
        check_deadline()
        yield equations.take(slice(start, start + size))


def _products(basis: Basis, n_outputs: int) -> AdditiveProducts | RbfProducts:
    if isinstance(basis.network, RbfNodes):
        return RbfProducts(basis.trend, basis.network, n_outputs)
    return AdditiveProducts(basis.trend, basis.network, n_outputs)


class AdditiveProducts:
    """Products of additive columns: a trend, and a network of additive nodes or none."""

    def __init__(self, trend: TrendFeatures, network: AdditiveNodes | None, n_outputs: int) -> None:
        self._trend, self._network = trend, network
        directions = [trend.directions]
        if network is not None:
            directions.append(network.directions)
        self._directions = np.concatenate(directions)
        size = len(self._directions)
        self._values = np.zeros((size, size))
        self._slopes: FloatArray | None = None
        self._right = np.zeros((size, n_outputs))
        self._sums = np.zeros(size)

    def add(self, block: Equations) -> None:
        """Take in the rows of a block."""
        features, slopes = self._columns(block.whitened)
        self._sums += block.value_weights @ features
        self._right += features.T @ (block.value_weights[:, None] * block.targets)
        features *= np.sqrt(block.value_weights)[:, None]
        self._values += features.T @ features
        if block.gradients is None:
            return
        self._right += pull_back(slopes, self._directions, block)
        slopes *= np.sqrt(block.gradient_weights)[:, None]
        product = slopes.T @ slopes
        self._slopes = product if self._slopes is None else self._slopes + product

    def sums(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return matrix (k, k), right side (k, m) and column sums (k,), over nodes."""
        gram = self._values
        if self._slopes is not None:
            gram = gram + self._slopes * (self._directions @ self._directions.T)
        return gram, self._right, self._sums

    def _columns(self, whitened: FloatArray) -> tuple[FloatArray, FloatArray]:
        trend = self._trend.features_and_slopes(whitened)
        if self._network is None:
            return trend
        nodes = self._network.features_and_slopes(whitened)
        if not len(self._trend):
            return nodes
        features, slopes = (np.concatenate(pair, axis=1) for pair in zip(trend, nodes, strict=True))
        return features, slopes


def pull_back(slopes: FloatArray, directions: FloatArray, block: Equations) -> FloatArray:
    """Return sum_n w_n s'_i(x_ni) (W_i . g_n), shape (k, m): gradients' part of the right side.

    Parameters
    ----------
    slopes : ndarray of shape (n, k)
        s'_i(x_ni) of additive columns.
    directions : ndarray of shape (k, dim)
        W_i.
    block
        Rows with gradients.
    """
    assert block.gradients is not None
    # First over rows, in one product for all outputs, then over coordinates.
    weighted = slopes * block.gradient_weights[:, None]
    moments = weighted.T @ block.gradients.reshape(len(block), -1)
    moments = moments.reshape(len(directions), block.n_outputs, directions.shape[1])
    return np.asarray(np.einsum("kmd,kd->km", moments, directions))


class RbfProducts:
    """Products of radial nodes phi_i = exp(-|z - c_i|^2 / (2 l_i^2)) and a trend under them.

    grad phi_i . grad phi_j = phi_i phi_j (|z|^2 - z . c_i - z . c_j + c_i . c_j) / (l_i^2 l_j^2),
    summed by three products of s x s matrices; and with a trend's node j,
    grad phi_i . grad a_j = -phi_i a'_j (z . w_j - c_i . w_j) / l_i^2.
    """

    def __init__(self, trend: TrendFeatures, network: RbfNodes, n_outputs: int) -> None:
        self._trend = AdditiveProducts(trend, None, n_outputs)
        self._features, self._directions = trend.features_and_slopes, trend.directions
        self._nodes = network
        p, s = len(trend), len(network)
        self._values = np.zeros((s, s))
        self._heights, self._bent = np.zeros((s, s)), np.zeros((s, s))
        self._mixed_values, self._mixed_slopes = np.zeros((p, s)), np.zeros((p, s))
        self._right = np.zeros((s, n_outputs))
        self._sums = np.zeros(s)
        self._has_gradients = False

    def add(self, block: Equations) -> None:
        """Take in the rows of a block."""
        self._trend.add(block)
        whitened, nodes = block.whitened, self._nodes
        heights = nodes.features(whitened)
        trend, slopes = self._features(whitened)
        weighted = heights * block.value_weights[:, None]
        self._sums += weighted.sum(axis=0)
        self._right += weighted.T @ block.targets
        self._mixed_values += trend.T @ weighted
        rooted = heights * np.sqrt(block.value_weights)[:, None]
        self._values += rooted.T @ rooted
        if block.gradients is None:
            return
        self._has_gradients = True
        weighted = heights * block.gradient_weights[:, None]
        self._right -= self._gradients_right(weighted, block)
        rooted = heights * np.sqrt(block.gradient_weights)[:, None]
        self._heights += rooted.T @ rooted
        # w phi_i phi_j (|z|^2 / 2 - z . c_i); with its transpose, all but the centres' own product.
        halves = 0.5 * np.einsum("nd,nd->n", whitened, whitened)
        self._bent += (weighted * (halves[:, None] - whitened @ nodes.centres.T)).T @ heights
        along = (slopes * (whitened @ self._directions.T)).T @ weighted
        self._mixed_slopes += along - (slopes.T @ weighted) * (self._directions @ nodes.centres.T)

    def sums(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return matrix (k, k), right side (k, m) and column sums (k,), over nodes."""
        gram_trend, right_trend, sums_trend = self._trend.sums()
        own, mixed = self._values, self._mixed_values
        if self._has_gradients:
            centres, squares = self._nodes.centres, self._nodes.square_widths
            product = self._bent + self._bent.T + self._heights * (centres @ centres.T)
            own = own + product / np.outer(squares, squares)
            mixed = mixed - self._mixed_slopes / squares
        return (
            np.block([[gram_trend, mixed], [mixed.T, own]]),
            np.concatenate([right_trend, self._right]),
            np.concatenate([sums_trend, self._sums]),
        )

    def _gradients_right(self, weighted: FloatArray, block: Equations) -> FloatArray:
        """Return sum_n w_n phi_ni (z_n - c_i) . g_n / l_i^2, shape (s, m)."""
        assert block.gradients is not None
        centres, squares = self._nodes.centres, self._nodes.square_widths
        along = np.einsum("nd,nmd->nm", block.whitened, block.gradients)
        moments = weighted.T @ block.gradients.reshape(len(block), -1)
        moments = moments.reshape(len(squares), block.n_outputs, centres.shape[1])
        right = weighted.T @ along - np.einsum("smd,sd->sm", moments, centres)
        return np.asarray(right / squares[:, None])
