"""Weighted least squares of values and gradients: rows, columns, and their normal equations.

Each position brings 1 + dim equations, yet no factor of dim appears in the cost of normal
equations. With the gradient of column j as alpha_j(z) (a_j + b_j z), where (a_j, b_j) = p_j is its
direction (:mod:`surrokit_networks.nodes`; b is zero but for radial nodes), the sum over components
of products of gradients is

    (alpha^T alpha) o (a a^T) + M + M^T,  M = (alpha o (Z p^T))^T (alpha o b),

in products of matrices with one row for each position.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import numpy as np

from surrokit.limits import check_deadline
from surrokit.types import BoolArray, FloatArray
from surrokit_networks.nodes import SCRATCH, Nodes
from surrokit_networks.trend import TrendColumns

_BY_POSITION = ("whitened", "targets", "gradients", "value_weights", "gradient_weights")


@attrs.frozen(kw_only=True, eq=False)
class Equations:
    """f(z_n) = t_n, and grad f(z_n) = g_n where that is known.

    ``whitened (n, dim)`` are z, ``targets (n, m)`` t, of order one about zero for the sake of
    rounding, and ``gradients (n, m, dim)`` g: m problems with the same left side. Both kinds of
    weights (n,) are those of squared errors; where no gradient is known, it and its weight are
    zero. ``count`` are independent equations for each target: what is down-weighted counts
    less, copies once. ``trains_level`` says whether a constant, free of the ridge, is fitted too.
    """

    whitened: FloatArray
    targets: FloatArray
    gradients: FloatArray
    value_weights: FloatArray
    gradient_weights: FloatArray
    count: float
    trains_level: bool

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def has_gradients(self) -> bool:
        """Whether any gradient is known."""
        return bool(self.gradient_weights.any())

    @property
    def mass(self) -> float:
        """Sum of all weights."""
        return float(self.value_weights.sum() + self.gradient_weights.sum())

    @property
    def total_weight(self) -> float:
        """Sum of the weights of values and of gradients' components."""
        dim = self.whitened.shape[1]
        return float(self.value_weights.sum() + dim * self.gradient_weights.sum())

    @property
    def n_rows(self) -> int:
        """How many equations there are for each target."""
        dim = self.whitened.shape[1]
        return int((self.value_weights > 0).sum() + dim * (self.gradient_weights > 0).sum())

    @property
    def components(self) -> int:
        """By how much an equation's squared error is multiplied to bound Var(V - U).

        In whitened coordinates the squared error of a gradient bounds the variance of that of the
        value (the inequality of Poincare for a normal density).
        """
        return self.whitened.shape[1] if self.has_gradients else 1

    def take(self, rows: slice | BoolArray) -> Equations:
        """Return the equations of some positions, with the count in proportion to their number."""
        some: dict[str, Any] = {name: getattr(self, name)[rows] for name in _BY_POSITION}
        part = attrs.evolve(self, **some)
        return attrs.evolve(part, count=self.count * part.n_rows / max(self.n_rows, 1))

    def less_quadratic(self, matrix: FloatArray) -> Equations:
        """Return the equations for what is left of one target over z^T matrix z / 2."""
        pull = self.whitened @ matrix
        value = 0.5 * np.einsum("nd,nd->n", self.whitened, pull)
        known = self.gradient_weights > 0
        left = np.where(known[:, None, None], self.gradients - pull[:, None, :], 0.0)
        return attrs.evolve(self, targets=self.targets - value[:, None], gradients=left)


def join(parts: Sequence[Equations]) -> Equations:
    """Return the equations of several sets of positions, at least one, as one set."""
    whole: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in _BY_POSITION
    }
    return attrs.evolve(parts[0], **whole, count=sum(part.count for part in parts))


@attrs.frozen(kw_only=True, eq=False)
class Basis:
    """The columns of a regression: a trend in monomials, then nodes."""

    trend: TrendColumns
    nodes: Nodes

    def __len__(self) -> int:
        return len(self.trend) + len(self.nodes)

    def features(self, z: FloatArray) -> FloatArray:
        """Return every column at whitened positions (n, dim), shape (n, len(self))."""
        trend, _ = self.trend.features_and_slopes(z)
        monomials = self.trend.by_monomials(trend.T.copy()).T
        return np.concatenate([monomials, self.nodes.features(z)], axis=1)

    def jacobian(self, z: FloatArray) -> FloatArray:
        """Return the gradient of every column, shape (n, dim, len(self)): few rows at a time."""
        _, slopes = self.trend.features_and_slopes(z)
        columns = (slopes[:, None, :] * self.trend.directions.T).transpose(2, 0, 1).copy()
        monomials = self.trend.by_monomials(columns).transpose(1, 2, 0)
        first = self.nodes.activation.first(self.nodes.arguments(z))
        return np.concatenate(
            [monomials, self.nodes.lower(z, first[:, None, :] * self.nodes.vectors.T)], axis=2
        )


def _blocks(equations: Equations, scratch: int) -> Iterator[Equations]:
    """Yield equations a few positions at a time, each of which takes so many numbers of scratch."""
    size = max(64, SCRATCH // max(1, scratch))
    for start in range(0, len(equations), size):
        check_deadline()
        yield equations.take(slice(start, start + size))


def write_out(basis: Basis, equations: Equations) -> Iterator[FloatArray]:
    """Yield sqrt(w) [1, trend, nodes, targets], shape (rows, lead + k + m), block by block.

    Rows of values come first in each block, then rows of gradients. The column of ones, with zeros
    in rows of gradients, is there only if the level is trained.
    """
    lead, k, m = int(equations.trains_level), len(basis), equations.targets.shape[1]
    per_position = 1 + equations.whitened.shape[1] * equations.has_gradients
    for block in _blocks(equations, (k + m + 1) * per_position):
        used = block.value_weights > 0
        ones = np.ones((int(used.sum()), lead))
        columns = [ones, basis.features(block.whitened[used]), block.targets[used]]
        values = np.concatenate(columns, axis=1)
        values *= np.sqrt(block.value_weights[used])[:, None]
        if not equations.has_gradients:
            yield values
            continue
        used = block.gradient_weights > 0
        slopes = np.zeros((int(used.sum()), block.whitened.shape[1], lead + k + m))
        slopes[:, :, lead : lead + k] = basis.jacobian(block.whitened[used])
        slopes[:, :, lead + k :] = block.gradients[used].transpose(0, 2, 1)
        slopes *= np.sqrt(block.gradient_weights[used])[:, None, None]
        yield np.vstack([values, slopes.reshape(-1, slopes.shape[2])])


@attrs.frozen(kw_only=True, eq=False)
class NormalEquations:
    """Sums over rows; those of two sets of rows add up.

    They are weighted products of columns, ``gram (lead + k, lead + k)`` with the constant first, if
    it is trained, of columns and targets, ``right (lead + k, m)``, and of targets, ``squares
    (m,)``; and ``mass``, the sum of all weights.
    """

    gram: FloatArray
    right: FloatArray
    squares: FloatArray
    mass: float

    def __add__(self, other: NormalEquations) -> NormalEquations:
        return NormalEquations(
            gram=self.gram + other.gram,
            right=self.right + other.right,
            squares=self.squares + other.squares,
            mass=self.mass + other.mass,
        )

    def without_level(self) -> NormalEquations:
        """Return the equations with the constant profiled out, by taking off weighted means."""
        sums, weight = self.gram[0, 1:], float(self.gram[0, 0])
        means = sums / weight
        return NormalEquations(
            gram=self.gram[1:, 1:] - np.outer(sums, means),
            right=self.right[1:] - np.outer(means, self.right[0]),
            squares=self.squares - self.right[0] ** 2 / weight,
            mass=self.mass,
        )


def normal_equations(basis: Basis, equations: Equations) -> NormalEquations:
    """Gather the normal equations of a basis, those of the trend as additive nodes."""
    trend, nodes, size, m = basis.trend, basis.nodes, len(basis), equations.targets.shape[1]
    dim = equations.whitened.shape[1]
    vectors = np.zeros((size, nodes.vectors.shape[1]))
    vectors[: len(trend), :dim], vectors[len(trend) :] = trend.directions, nodes.vectors
    gram, slope_gram, mixed = (np.zeros((size, size)) for _ in range(3))
    right, sums, squares, totals = np.zeros((size, m)), np.zeros(size), np.zeros(m), np.zeros(m)
    for block in _blocks(equations, size * max(1, m // 4)):
        z, weights = block.whitened, block.value_weights
        pairs = zip(trend.features_and_slopes(z), nodes.features_and_slopes(z), strict=True)
        features, slopes = (np.concatenate(pair, axis=1) for pair in pairs)
        sums += weights @ features
        totals += weights @ block.targets
        right += features.T @ (weights[:, None] * block.targets)
        squares += weights @ np.square(block.targets)
        features *= np.sqrt(weights)[:, None]
        gram += features.T @ features
        if not equations.has_gradients:
            continue
        weights, gradients = block.gradient_weights, block.gradients
        squares += weights @ np.einsum("nmd,nmd->nm", gradients, gradients)
        # First over rows, in one product for all outputs, then over coordinates.
        lifted = nodes.lift_vectors(z, gradients)
        moments = (slopes * weights[:, None]).T @ lifted.reshape(len(z), m * lifted.shape[2])
        right += np.einsum("kmd,kd->km", moments.reshape(size, m, vectors.shape[1]), vectors)
        if nodes.curved:
            along = slopes * (nodes.lift(z) @ vectors.T)
            mixed += along.T @ (slopes * weights[:, None] * vectors[:, dim])
        slopes *= np.sqrt(weights)[:, None]
        slope_gram += slopes.T @ slopes
    if equations.has_gradients:
        own = vectors[:, :dim]
        gram = gram + slope_gram * (own @ own.T) + mixed + mixed.T
    lead = int(equations.trains_level)
    whole, rights = np.empty((lead + size, lead + size)), np.empty((lead + size, m))
    whole[lead:, lead:] = trend.by_monomials(trend.by_monomials(gram).T).T
    rights[lead:] = trend.by_monomials(right)
    if lead:
        whole[0, 0], rights[0] = equations.value_weights.sum(), totals
        whole[0, 1:] = whole[1:, 0] = trend.by_monomials(sums)
    return NormalEquations(gram=whole, right=rights, squares=squares, mass=equations.mass)
