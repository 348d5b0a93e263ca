"""The rows of a regression written out, and what a regression returns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import attrs
import numpy as np

from surrokit.types import FloatArray
from surrokit_networks.solving.basis import Basis
from surrokit_networks.solving.equations import Equations
from surrokit_networks.solving.normal_equations import blocks


class Counted(Protocol):
    """What an expected error must know of the equations that were fitted."""

    @property
    def count(self) -> float:
        """How many independent equations there are for each target."""

    @property
    def total_weight(self) -> float:
        """Sum of the weights of values and of gradients' components."""


@attrs.frozen(kw_only=True, eq=False)
class Solution:
    """A fitted linear combination of the columns of a basis.

    Parameters
    ----------
    trend : ndarray of shape (p, m)
        Coefficients of the trend's monomials.
    weights : ndarray of shape (s, m)
        v of each node.
    level : ndarray of shape (m,)
        The constants added.
    ridge
        lambda in lambda |v|^2.
    degrees
        Effective number of parameters, trend and level included.
    error
        Mean squared error of an equation to expect at new points, by generalised
        cross-validation, summed over targets; ``inf`` where the fit has as many degrees of
        freedom as equations.
    """

    trend: FloatArray
    weights: FloatArray
    level: FloatArray
    ridge: float
    degrees: float
    error: float

    @property
    def finite(self) -> bool:
        """Whether all numbers are finite."""
        arrays = (self.trend, self.weights, self.level)
        return all(bool(np.isfinite(array).all()) for array in arrays)


def write_out(basis: Basis, equations: Equations, block_rows: int | None) -> Iterator[FloatArray]:
    """Yield sqrt(w) [1, trend, nodes, targets], shape (rows, lead + k + m), block by block.

    Rows of values come first in each block, then rows of gradients. The column of ones, with zeros
    in rows of gradients, is there only if the level is trained.
    """
    per_position = 1 if equations.gradients is None else 1 + equations.whitened.shape[1]
    width = len(basis) + equations.n_outputs + 1
    for block in blocks(equations, width * per_position, block_rows):
        values = _values(basis, block)
        yield values if block.gradients is None else np.vstack([values, _gradients(basis, block)])


def _values(basis: Basis, block: Equations) -> FloatArray:
    used = block.value_weights > 0
    lead, k = int(block.trains_level), len(basis)
    rows = np.empty((int(used.sum()), lead + k + block.n_outputs))
    rows[:, :lead] = 1.0
    rows[:, lead : lead + k] = basis.features(block.whitened[used])
    rows[:, lead + k :] = block.targets[used]
    rows *= np.sqrt(block.value_weights[used])[:, None]
    return rows


def _gradients(basis: Basis, block: Equations) -> FloatArray:
    assert block.gradients is not None
    used = block.gradient_weights > 0
    lead, k = int(block.trains_level), len(basis)
    rows = np.zeros((int(used.sum()), block.whitened.shape[1], lead + k + block.n_outputs))
    rows[:, :, lead : lead + k] = basis.jacobian(block.whitened[used])
    rows[:, :, lead + k :] = block.gradients[used].transpose(0, 2, 1)
    rows *= np.sqrt(block.gradient_weights[used])[:, None, None]
    return rows.reshape(-1, rows.shape[2])


def expected_error(equations: Counted, residual_squares: float, degrees: float) -> float:
    """Return the generalised cross-validation error of a fit (Golub, Heath and Wahba 1979).

    Parameters
    ----------
    equations
        What was fitted.
    residual_squares
        Weighted sum of squared residuals, over all targets.
    degrees
        Effective number of parameters for each target.
    """
    spare = 1.0 - degrees / equations.count
    if spare <= 1e-10:
        return float("inf")
    return float(residual_squares / equations.total_weight / spare**2)
