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
        t; should be of order one about zero, for the sake of rounding.
    gradients : ndarray of shape (n, m, dim) or None
        g, finite in every row; None if there are none at all.
    value_weights : ndarray of shape (n,)
        Weights of the squared errors of values; all zero to train on gradients alone.
    gradient_weights : ndarray of shape (n,)
        Weights of the squared lengths of gradient errors; zero where no gradient is known.
    count : float
        How many independent equations there are for each target: what is down-weighted counts
        less, and copies count once.
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
    """The columns of a regression: a trend in monomials, then nodes.

    Parameters
    ----------
    trend
        Free of the ridge.
    network
        Held back by the ridge; None for a trend alone.
    """

    trend: TrendColumns
    network: Nodes | None

    @property
    def n_trend(self) -> int:
        """Columns of the trend."""
        return len(self.trend)

    @property
    def n_nodes(self) -> int:
        """Columns of the network."""
        return 0 if self.network is None else len(self.network)

    def __len__(self) -> int:
        return self.n_trend + self.n_nodes

    def features(self, z: FloatArray) -> FloatArray:
        """Return every column at whitened positions (n, dim), shape (n, len(self))."""
        features = np.empty((len(z), len(self)))
        trend, _ = self.trend.features_and_slopes(z)
        features[:, : self.n_trend] = self.trend.by_monomials(trend.T.copy()).T
        if self.network is not None:
            features[:, self.n_trend :] = self.network.features(z)
        return features

    def jacobian(self, z: FloatArray) -> FloatArray:
        """Return the gradient of every column, shape (n, dim, len(self)): few rows at a time."""
        jacobian = np.empty((*z.shape, len(self)))
        _, slopes = self.trend.features_and_slopes(z)
        columns = (slopes[:, None, :] * self.trend.directions.T).transpose(2, 0, 1).copy()
        jacobian[:, :, : self.n_trend] = self.trend.by_monomials(columns).transpose(1, 2, 0)
        if self.network is not None:
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
        names = attrs.fields_dict(NormalEquations)
        return NormalEquations(**{n: getattr(self, n) + getattr(other, n) for n in names})

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
    n_outputs, trend = equations.n_outputs, basis.trend
    products = _Products(basis, n_outputs)
    squares, target_sums = np.zeros(n_outputs), np.zeros(n_outputs)
    for block in blocks(equations, len(basis) * max(1, n_outputs // 4), block_rows):
        products.add(block)
        squares += block.value_weights @ np.square(block.targets)
        target_sums += block.value_weights @ block.targets
        if block.gradients is not None:
            lengths = np.einsum("nmd,nmd->nm", block.gradients, block.gradients)
            squares += block.gradient_weights @ lengths
    gram = trend.by_monomials(trend.by_monomials(products.whole_gram()).T).T
    return NormalEquations(
        gram=gram,
        right=trend.by_monomials(products.right),
        squares=squares,
        sums=trend.by_monomials(products.sums),
        target_sums=target_sums,
        weight=float(equations.value_weights.sum()),
        mass=equations.mass,
    )


class _Products:
    """Sums of products of columns; those of the trend as additive nodes."""

    def __init__(self, basis: Basis, n_outputs: int) -> None:
        self._trend, self._nodes = basis.trend, basis.network
        self._vectors = basis.trend.directions
        if basis.network is not None:
            self._vectors = np.concatenate([self._vectors, basis.network.vectors])
        size = len(basis)
        self._gram = np.zeros((size, size))
        self._slopes: FloatArray | None = None
        self._mixed: FloatArray | None = None
        self.right = np.zeros((size, n_outputs))
        self.sums = np.zeros(size)

    def add(self, block: Equations) -> None:
        """Take in the rows of a block."""
        features, slopes = self._columns(block.whitened)
        self.sums += block.value_weights @ features
        self.right += features.T @ (block.value_weights[:, None] * block.targets)
        features *= np.sqrt(block.value_weights)[:, None]
        self._gram += features.T @ features
        if block.gradients is not None:
            self._add_gradients(slopes, block, block.gradients)

    def _add_gradients(self, slopes: FloatArray, block: Equations, gradients: FloatArray) -> None:
        n, m, dim = gradients.shape
        weights, z, p = block.gradient_weights, block.whitened, len(self._trend)
        # First over rows, in one product for all outputs, then over coordinates.
        moments = (slopes * weights[:, None]).T @ gradients.reshape(n, -1)
        self.right += np.einsum("kmd,kd->km", moments.reshape(-1, m, dim), self._vectors)
        if self._nodes is not None and self._nodes.curvatures is not None:
            beta = slopes[:, p:] * -self._nodes.curvatures
            along = slopes * (z @ self._vectors.T)
            along[:, p:] += beta * (0.5 * np.einsum("nd,nd->n", z, z))[:, None]
            beta *= weights[:, None]
            self.right[p:] += beta.T @ np.einsum("nd,nmd->nm", z, gradients)
            mixed = along.T @ beta
            self._mixed = mixed if self._mixed is None else self._mixed + mixed
        slopes *= np.sqrt(weights)[:, None]
        product = slopes.T @ slopes
        self._slopes = product if self._slopes is None else self._slopes + product

    def whole_gram(self) -> FloatArray:
        """Return the products of columns, of values and gradients, shape (k, k)."""
        gram = self._gram
        if self._slopes is not None:
            gram = gram + self._slopes * (self._vectors @ self._vectors.T)
        if self._mixed is not None:
            p = len(self._trend)
            gram[:, p:] += self._mixed
            gram[p:] += self._mixed.T
        return gram

    def _columns(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        trend = self._trend.features_and_slopes(z)
        if self._nodes is None:
            return trend[0].copy(), trend[1]
        nodes = self._nodes.features_and_slopes(z)
        if not len(self._trend):
            return nodes
        features, slopes = (np.concatenate(pair, axis=1) for pair in zip(trend, nodes, strict=True))
        return features, slopes
