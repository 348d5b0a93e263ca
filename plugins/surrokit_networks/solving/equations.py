"""Equations of a network: values and gradients at whitened positions, with weights."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from surrokit.types import BoolArray, FloatArray


@attrs.frozen(kw_only=True, eq=False)
class Equations:
    """Weighted least squares: z(q_n) = t_n, and grad z(q_n) = g_n where that is known.

    With m targets at each position there are m problems with the same left side.

    Parameters
    ----------
    whitened : ndarray of shape (n, dim)
        Whitened positions.
    targets : ndarray of shape (n, m)
        What to fit; should be of order one about zero, for the sake of rounding.
    gradients : ndarray of shape (n, m, dim) or None
        Gradients of the targets in whitened coordinates, finite in every row; None if there are
        none at all.
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
        """Return the equations of some positions, with the count in proportion to their weight."""
        part = attrs.evolve(
            self,
            whitened=self.whitened[rows],
            targets=self.targets[rows],
            gradients=None if self.gradients is None else self.gradients[rows],
            value_weights=self.value_weights[rows],
            gradient_weights=self.gradient_weights[rows],
        )
        return attrs.evolve(part, count=self.count * part.n_rows / max(self.n_rows, 1))

    def less(self, values: FloatArray, gradients: FloatArray) -> Equations:
        """Return the equations for what is left once something known is taken off.

        Parameters
        ----------
        values : ndarray of shape (n, m)
            What is known of the targets.
        gradients : ndarray of shape (n, m, dim)
            Its gradients in whitened coordinates.
        """
        left = None
        if self.gradients is not None:
            known = self.gradient_weights > 0
            left = np.where(known[:, None, None], self.gradients - gradients, 0.0)
        return attrs.evolve(self, targets=self.targets - values, gradients=left)

    def along(self, directions: FloatArray) -> Equations:
        """Return the equations of combinations of the targets.

        Parameters
        ----------
        directions : ndarray of shape (m, r)
            The combinations, as columns.
        """
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
        return self.less(value[:, None], pull[:, None, :])


def join(parts: Sequence[Equations]) -> Equations:
    """Return the equations of several sets of positions as one.

    Parameters
    ----------
    parts
        At least one; all of the same dimension and number of targets.
    """
    first = parts[0]
    gradients = None
    if any(part.gradients is not None for part in parts):
        shape = (first.n_outputs, first.whitened.shape[1])
        gradients = np.concatenate(
            [
                np.zeros((len(part), *shape)) if part.gradients is None else part.gradients
                for part in parts
            ]
        )
    return Equations(
        whitened=np.concatenate([part.whitened for part in parts]),
        targets=np.concatenate([part.targets for part in parts]),
        gradients=gradients,
        value_weights=np.concatenate([part.value_weights for part in parts]),
        gradient_weights=np.concatenate([part.gradient_weights for part in parts]),
        count=sum(part.count for part in parts),
        trains_level=first.trains_level,
    )
