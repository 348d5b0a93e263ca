"""The columns of a regression: a trend, and the nodes of a network on top of it."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.types import FloatArray
from surrokit_networks.nodes.additive import AdditiveNodes
from surrokit_networks.nodes.nodes import Nodes
from surrokit_networks.solving.trend import TrendFeatures


@attrs.frozen(kw_only=True, eq=False)
class Basis:
    """Features of whitened positions: trend first, in monomials, then nodes.

    Parameters
    ----------
    trend
        Free of the ridge.
    network
        Held back by the ridge; None for a trend alone.
    """

    trend: TrendFeatures
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

    def features(self, whitened: FloatArray) -> FloatArray:
        """Return every column at whitened positions (n, dim), shape (n, len(self))."""
        features = np.empty((len(whitened), len(self)))
        trend, _ = self.trend.features_and_slopes(whitened)
        features[:, : self.n_trend] = self.trend.by_monomials(trend.T.copy()).T
        if self.network is not None:
            features[:, self.n_trend :] = self.network.features(whitened)
        return features

    def jacobian(self, whitened: FloatArray) -> FloatArray:
        """Return the gradient of every column, shape (n, dim, len(self)): few rows at a time."""
        jacobian = np.empty((*whitened.shape, len(self)))
        _, slopes = self.trend.features_and_slopes(whitened)
        columns = (slopes[:, None, :] * self.trend.directions.T).transpose(2, 0, 1).copy()
        jacobian[:, :, : self.n_trend] = self.trend.by_monomials(columns).transpose(1, 2, 0)
        if self.network is not None:
            jacobian[:, :, self.n_trend :] = node_gradients(self.network, whitened)
        return jacobian


def combine(
    basis: Basis, coefficients: FloatArray, whitened: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return a combination of columns, shape (n,), and its gradient, shape (n, dim).

    Parameters
    ----------
    basis
        The columns.
    coefficients : ndarray of shape (len(basis),)
        Of the trend's monomials, then of the nodes.
    whitened : ndarray of shape (n, dim)
        Where.
    """
    slope, matrix = basis.trend.slope_and_matrix(coefficients[: basis.n_trend, None])
    pull = whitened @ matrix[0]
    values = np.einsum("nd,nd->n", whitened, 0.5 * pull + slope[:, 0])
    gradients = pull + slope[:, 0]
    network, weights = basis.network, coefficients[basis.n_trend :]
    if network is None:
        return values, gradients
    if isinstance(network, AdditiveNodes):
        features, slopes = network.features_and_slopes(whitened)
        return values + features @ weights, gradients + (slopes * weights) @ network.directions
    features = network.features(whitened)
    pulls = features * (weights / network.square_widths)
    gradients += pulls @ network.centres - whitened * pulls.sum(axis=1)[:, None]
    return values + features @ weights, gradients


def node_gradients(nodes: Nodes, whitened: FloatArray) -> FloatArray:
    """Return the gradient of every node, shape (n, dim, s), at whitened positions (n, dim)."""
    if isinstance(nodes, AdditiveNodes):
        slopes = nodes.slopes(whitened)
        return np.asarray(slopes[:, None, :] * nodes.directions.T)
    pulls = nodes.features(whitened) / nodes.square_widths
    return np.asarray(pulls[:, None, :] * (nodes.centres.T - whitened[:, :, None]))
