"""Outputs as sums of a few combinations, along which nearly all of their variation lies."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.types import FloatArray
from surrokit_networks.solving.equations import Equations

_WORTH = 0.5
"""Part of the outputs above which so many combinations are not worth the detour."""


@attrs.frozen(kw_only=True, eq=False)
class OutputMixing:
    """f_m = offset_m + sum_r g_r matrix_rm, from r combinations g to m outputs.

    Parameters
    ----------
    offset : ndarray of shape (m,)
        Outputs where all combinations are 0.
    matrix : ndarray of shape (r, m)
        What each combination adds.
    """

    offset: FloatArray
    matrix: FloatArray

    def outputs(self, combinations: FloatArray) -> FloatArray:
        """Return the outputs, shape (n, m), of combinations (n, r)."""
        outputs: FloatArray = combinations @ self.matrix
        outputs += self.offset
        return outputs


def leading_directions(equations: Equations, left_out: float) -> FloatArray | None:
    """Return orthonormal directions among outputs to which all others add next to nothing.

    What diffuses or is averaged varies in far fewer ways than it has outputs: of the 121 pressures
    of the elliptic problem all but 41 combinations add up to 1e-4 nats squared at a point.

    Parameters
    ----------
    equations
        Values and gradients of the outputs, each output in units of the error that changes U by
        about one nat.
    left_out
        Sum of squares, of values and gradients at a point, that may be left out.

    Returns
    -------
    ndarray of shape (m, r) or None
        None where more than half as many directions as outputs are needed.
    """
    roots = np.sqrt(equations.value_weights)
    rows = [roots[:, None] * equations.targets]
    if equations.gradients is not None:
        roots = np.sqrt(equations.gradient_weights)
        slopes = roots[:, None, None] * equations.gradients.transpose(0, 2, 1)
        rows.append(slopes.reshape(-1, equations.n_outputs))
    table = np.concatenate(rows)
    points = max(float(equations.value_weights.sum()), float(equations.gradient_weights.sum()))
    if not np.isfinite(table).all():
        return None
    # the smaller of both matrices of products tells the same
    few_rows = len(table) < equations.n_outputs
    products = table @ table.T if few_rows else table.T @ table
    squares, vectors = np.linalg.eigh(products)
    n_left = int(np.count_nonzero(np.cumsum(np.maximum(squares, 0.0)) <= left_out * points))
    kept = vectors[:, n_left:]
    n_kept = kept.shape[1]
    if not 0 < n_kept <= _WORTH * equations.n_outputs:
        return None
    if few_rows:
        kept = table.T @ kept / np.sqrt(squares[n_left:])
    return np.asarray(kept)
