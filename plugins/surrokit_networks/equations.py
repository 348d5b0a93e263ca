"""Weighted least squares of values and gradients: rows, columns, and their normal equations.

Each position brings 1 + dim equations, yet no factor of dim appears in the cost of normal
equations. With the gradient of column j as alpha_j(z) E_j + beta_j(z) z (see
:mod:`surrokit_networks.nodes`; beta is zero but for radial nodes), the sum over components of
products of gradients is

    (alpha^T alpha) o (E E^T) + M + M^T,  M = (alpha o (z E^T) + beta |z|^2 / 2)^T beta,

in products of matrices with one row for each position.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np

from surrokit.limits import check_deadline
from surrokit.types import BoolArray, FloatArray
from surrokit_networks.nodes import Nodes
from surrokit_networks.trend import TrendColumns

_BLOCK = 2_000_000
"""Numbers in a block of rows, unless a row is longer."""


@attrs.frozen(kw_only=True, eq=False)
class Equations:
    """f(z_n) = t_n, and grad f(z_n) = g_n where that is known.

    With m targets at each position there are m problems with the same left side.

    Parameters
    ----------
    whitened : ndarray of shape (n, dim)
        z.
    targets : ndarray of shape (n, m)
        t; of order one about zero, for the sake of rounding.
    gradients : ndarray of shape (n, m, dim) or None
        g, finite in every row.
    value_weights, gradient_weights : ndarray of shape (n,)
        Weights of squared errors; those of gradients are zero where none is known.
    count
        Independent equations for each target: what is down-weighted counts less, copies once.
    trains_level
        Whether a constant, which no ridge holds back, is fitted too.
    """

    whitened: FloatArray
    targets: FloatArray
    gradients: FloatArray | None
    value_weights: FloatArray
    gradient_weights: FloatArray
    count: float
    trains_level: bool

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def n_outputs(self) -> int:
        """How many targets there are at each position."""
        return int(self.targets.shape[1])

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
        return self.whitened.shape[1] if self.gradient_weights.any() else 1

    def take(self, rows: slice | BoolArray) -> Equations:
        """Return the equations of some positions, with the count in proportion to their number."""
        part = attrs.evolve(
            self,
            whitened=self.whitened[rows],
            targets=self.targets[rows],
            gradients=None if self.gradients is None else self.gradients[rows],
            value_weights=self.value_weights[rows],
            gradient_weights=self.gradient_weights[rows],
        )
        return attrs.evolve(part, count=self.count * part.n_rows / max(self.n_rows, 1))

    def along(self, directions: FloatArray) -> Equations:
        """Return the equations of combinations of the targets, as columns (m, r)."""
        gradients = self.gradients
        return attrs.evolve(
            self,
            targets=self.targets @ directions,
            gradients=None if gradients is None else directions.T @ gradients,
        )

    def less_quadratic(self, matrix: FloatArray) -> Equations:
        """Return the equations for what is left of one target over z^T matrix z / 2."""
        pull = self.whitened @ matrix
        value = 0.5 * np.einsum("nd,nd->n", self.whitened, pull)
        left = None
        if self.gradients is not None:
            known = self.gradient_weights > 0
            left = np.where(known[:, None, None], self.gradients - pull[:, None, :], 0.0)
        return attrs.evolve(self, targets=self.targets - value[:, None], gradients=left)


def join(parts: Sequence[Equations]) -> Equations:
    """Return the equations of several sets of positions, at least one, as one set."""
    shape = (parts[0].n_outputs, parts[0].whitened.shape[1])
    gradients = None
    if any(part.gradients is not None for part in parts):
        none = [np.zeros((len(part), *shape)) for part in parts]
        known = [part.gradients for part in parts]
        pairs = zip(known, none, strict=True)
        gradients = np.concatenate([zero if each is None else each for each, zero in pairs])
    return Equations(
        whitened=np.concatenate([part.whitened for part in parts]),
        targets=np.concatenate([part.targets for part in parts]),
        gradients=gradients,
        value_weights=np.concatenate([part.value_weights for part in parts]),
        gradient_weights=np.concatenate([part.gradient_weights for part in parts]),
        count=sum(part.count for part in parts),
        trains_level=parts[0].trains_level,
    )


@attrs.frozen(kw_only=True, eq=False)
class Basis:
    """The columns of a regression: a trend in monomials, then nodes."""

    trend: TrendColumns
    network: Nodes

    @property
    def n_trend(self) -> int:
        """Columns of the trend."""
        return len(self.trend)

    @property
    def n_nodes(self) -> int:
        """Columns of the network."""
        return len(self.network)

    def __len__(self) -> int:
        return self.n_trend + self.n_nodes

    def features(self, z: FloatArray) -> FloatArray:
        """Return every column at whitened positions (n, dim), shape (n, len(self))."""
        features = np.empty((len(z), len(self)))
        trend, _ = self.trend.features_and_slopes(z)
        features[:, : self.n_trend] = self.trend.by_monomials(trend.T.copy()).T
        features[:, self.n_trend :] = self.network.features(z)
        return features

    def jacobian(self, z: FloatArray) -> FloatArray:
        """Return the gradient of every column, shape (n, dim, len(self)): few rows at a time."""
        jacobian = np.empty((*z.shape, len(self)))
        _, slopes = self.trend.features_and_slopes(z)
        columns = (slopes[:, None, :] * self.trend.directions.T).transpose(2, 0, 1).copy()
        jacobian[:, :, : self.n_trend] = self.trend.by_monomials(columns).transpose(1, 2, 0)
        jacobian[:, :, self.n_trend :] = self.network.gradients(z)
        return jacobian


def blocks(
    equations: Equations, n_columns: int, block_rows: int | None = None
) -> Iterator[Equations]:
    """Yield equations a few positions at a time."""
    size = block_rows or max(64, _BLOCK // max(1, n_columns))
    for start in range(0, len(equations), size):
        check_deadline()
        yield equations.take(slice(start, start + size))


def write_out(
    basis: Basis, equations: Equations, block_rows: int | None = None
) -> Iterator[FloatArray]:
    """Yield sqrt(w) [1, trend, nodes, targets], shape (rows, lead + k + m), block by block.

    Rows of values come first in each block, then rows of gradients. The column of ones, with zeros
    in rows of gradients, is there only if the level is trained.
    """
    lead, k, m = int(equations.trains_level), len(basis), equations.n_outputs
    per_position = 1 if equations.gradients is None else 1 + equations.whitened.shape[1]
    for block in blocks(equations, (k + m + 1) * per_position, block_rows):
        used = block.value_weights > 0
        values = np.empty((int(used.sum()), lead + k + m))
        values[:, :lead] = 1.0
        values[:, lead : lead + k] = basis.features(block.whitened[used])
        values[:, lead + k :] = block.targets[used]
        values *= np.sqrt(block.value_weights[used])[:, None]
        if block.gradients is None:
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

    Parameters
    ----------
    gram : ndarray of shape (lead + k, lead + k)
        Weighted products of columns, of values and gradients; the constant first, if it is trained.
    right : ndarray of shape (lead + k, m)
        Weighted products of columns and targets.
    squares : ndarray of shape (m,)
        Weighted squares of targets.
    mass
        Sum of all weights: what the square of a column of ones would be.
    """

    gram: FloatArray
    right: FloatArray
    squares: FloatArray
    mass: float

    def __add__(self, other: NormalEquations) -> NormalEquations:
        names = attrs.fields_dict(NormalEquations)
        return NormalEquations(**{n: getattr(self, n) + getattr(other, n) for n in names})

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


def normal_equations(
    basis: Basis, equations: Equations, block_rows: int | None = None
) -> NormalEquations:
    """Gather the normal equations of a basis, those of the trend as additive nodes."""
    trend, size, m = basis.trend, len(basis), equations.n_outputs
    vectors = np.concatenate([trend.directions, basis.network.vectors])
    gram, slope_gram, mixed = (np.zeros((size, size)) for _ in range(3))
    right, sums, squares, target_sums = (
        np.zeros((size, m)),
        np.zeros(size),
        np.zeros(m),
        np.zeros(m),
    )
    for block in blocks(equations, size * max(1, m // 4), block_rows):
        features, slopes = _columns(basis, block.whitened)
        sums += block.value_weights @ features
        target_sums += block.value_weights @ block.targets
        right += features.T @ (block.value_weights[:, None] * block.targets)
        squares += block.value_weights @ np.square(block.targets)
        features *= np.sqrt(block.value_weights)[:, None]
        gram += features.T @ features
        if block.gradients is not None:
            squares += block.gradient_weights @ np.einsum(
                "nmd,nmd->nm", block.gradients, block.gradients
            )
            _add_gradients(basis, block, slopes, vectors, right, mixed)
            slopes *= np.sqrt(block.gradient_weights)[:, None]
            slope_gram += slopes.T @ slopes
    if equations.gradients is not None:
        gram = gram + slope_gram * (vectors @ vectors.T) + mixed + mixed.T
    lead = int(equations.trains_level)
    whole, rights = np.empty((lead + size, lead + size)), np.empty((lead + size, m))
    whole[lead:, lead:] = trend.by_monomials(trend.by_monomials(gram).T).T
    rights[lead:] = trend.by_monomials(right)
    if lead:
        whole[0, 0], rights[0] = equations.value_weights.sum(), target_sums
        whole[0, 1:] = whole[1:, 0] = trend.by_monomials(sums)
    return NormalEquations(gram=whole, right=rights, squares=squares, mass=equations.mass)


def _add_gradients(
    basis: Basis,
    block: Equations,
    slopes: FloatArray,
    vectors: FloatArray,
    right: FloatArray,
    mixed: FloatArray,
) -> None:
    """Add products of gradients to right sides, and M to ``mixed``."""
    gradients, weights, z, p = (
        block.gradients,
        block.gradient_weights,
        block.whitened,
        basis.n_trend,
    )
    assert gradients is not None
    n, m, dim = gradients.shape
    # First over rows, in one product for all outputs, then over coordinates.
    moments = (slopes * weights[:, None]).T @ gradients.reshape(n, -1)
    right += np.einsum("kmd,kd->km", moments.reshape(-1, m, dim), vectors)
    if basis.network.curvatures is None:
        return
    beta = slopes[:, p:] * -basis.network.curvatures
    along = slopes * (z @ vectors.T)
    along[:, p:] += beta * (0.5 * np.einsum("nd,nd->n", z, z))[:, None]
    beta *= weights[:, None]
    right[p:] += beta.T @ np.einsum("nd,nmd->nm", z, gradients)
    mixed[:, p:] += along.T @ beta


def _columns(basis: Basis, z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return columns and their slopes at whitened positions, as new arrays."""
    pairs = zip(
        basis.trend.features_and_slopes(z), basis.network.features_and_slopes(z), strict=True
    )
    features, slopes = (np.concatenate(pair, axis=1) for pair in pairs)
    return features, slopes
