"""The rows of a regression, a block at a time, and what a regression returns."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np

from surrokit.types import FloatArray
from surrokit_networks.nodes import Nodes

_BLOCK = 2_000_000
"""Numbers in a block of rows, unless a row is longer."""


@attrs.frozen(kw_only=True, eq=False)
class Design:
    """Weighted least squares of targets on features, not yet laid out in memory.

    Parameters
    ----------
    nodes
        What makes the features.
    whitened : ndarray of shape (n, dim)
        Whitened positions.
    targets : ndarray of shape (n,)
        What to fit; should be of order one about zero, for the sake of rounding.
    weights : ndarray of shape (n,)
        Weights of the squared errors.
    count
        How many independent rows there are: n less what is down-weighted.
    trains_level
        Whether a constant, which no ridge holds back, is fitted too. It is profiled out by taking
        weighted means off features and targets.
    block_rows : int, optional
        Rows in a block; None for as many as fit a fixed amount of memory.
    """

    nodes: Nodes
    whitened: FloatArray
    targets: FloatArray
    weights: FloatArray
    count: float
    trains_level: bool
    block_rows: int | None = None

    @property
    def n_rows(self) -> int:
        """Rows."""
        return len(self.targets)

    @property
    def n_features(self) -> int:
        """Features, without the constant."""
        return len(self.nodes)

    def blocks(self) -> Iterator[FloatArray]:
        """Yield sqrt(w) [1, features, target], shape (rows, s + 2), block by block.

        The column of ones is there only if the level is trained.
        """
        size = self.block_rows or max(1, _BLOCK // (self.n_features + 2))
        for start in range(0, self.n_rows, size):
            yield self._block(slice(start, start + size))

    def whole(self) -> FloatArray:
        """Return all rows as one block; for few rows only."""
        return self._block(slice(None))

    def _block(self, rows: slice) -> FloatArray:
        roots = np.sqrt(self.weights[rows])
        lead = int(self.trains_level)
        block = np.empty((len(roots), lead + self.n_features + 1))
        block[:, :lead] = 1.0
        block[:, lead:-1] = self.nodes.features(self.whitened[rows])
        block[:, -1] = self.targets[rows]
        block *= roots[:, None]
        return block


@attrs.frozen(kw_only=True, eq=False)
class Solution:
    """A fitted linear combination of features.

    Parameters
    ----------
    weights : ndarray of shape (s,)
        v.
    level
        The constant added.
    ridge
        lambda in lambda |v|^2.
    degrees
        Effective number of parameters, the level included.
    error
        Mean squared error to expect on new points, by generalised cross-validation, in the units
        of the targets squared; ``inf`` where the fit has as many degrees of freedom as rows.
    """

    weights: FloatArray
    level: float
    ridge: float
    degrees: float
    error: float


def expected_error(design: Design, residual_square: float, degrees: float) -> float:
    """Return the generalised cross-validation error of a fit (Golub, Heath and Wahba 1979).

    Parameters
    ----------
    design
        What was fitted.
    residual_square
        Weighted sum of squared residuals.
    degrees
        Effective number of parameters.
    """
    spare = 1.0 - degrees / design.count
    if spare <= 1e-10:
        return float("inf")
    return float(residual_square / design.weights.sum() / spare**2)
