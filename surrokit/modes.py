"""The modes that searches have found, and how much each weighs."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from surrokit.transforms import Transform
from surrokit.types import BoolArray, FloatArray, IntArray

NEGLIGIBLE = 1e-4
"""Part of the probability, by Laplace approximations, below which a mode makes no difference."""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Modes:
    """Modes of a target, as far as they were looked for; the one of least potential comes first.

    Parameters
    ----------
    positions : ndarray of shape (k, dim)
        Where they are, in the sampling coordinates.
    values : ndarray of shape (k,)
        U there, in nats; in the sampling coordinates, Jacobian included.
    covariances : ndarray of shape (k, dim, dim)
        Of the Laplace approximation at each, or what gradients nearby tell of it.
    ended : ndarray of shape (k,)
        How many searches ended at each.
    unfinished : int
        Searches that ended nowhere: they took too many evaluations, or could not begin.
    places : ndarray of shape (k, dim)
        The positions in the user's coordinates; the sampling coordinates unless given.
    """

    positions: FloatArray
    values: FloatArray
    covariances: FloatArray
    ended: IntArray
    unfinished: int = 0
    places: FloatArray = attrs.field()

    @places.default
    def _positions(self) -> FloatArray:
        return self.positions

    def __len__(self) -> int:
        return len(self.values)

    @property
    def searches(self) -> int:
        """Searches in all, those that ended nowhere included."""
        return int(self.ended.sum()) + self.unfinished

    @property
    def masses(self) -> FloatArray:
        """Part of the probability at each, by its Laplace approximation; shape (k,)."""
        logs = 0.5 * np.linalg.slogdet(self.covariances)[1] - self.values
        masses = np.exp(logs - logs.max())
        return np.asarray(masses / masses.sum())

    @property
    def matters(self) -> BoolArray:
        """Which of them are more than negligible, shape (k,)."""
        return np.asarray(self.masses >= NEGLIGIBLE)

    @property
    def covariance(self) -> FloatArray:
        """That of the mixture of all Laplace approximations, shape (dim, dim)."""
        masses = self.masses
        away = self.positions - masses @ self.positions
        within: FloatArray = np.sum(masses[:, None, None] * self.covariances, axis=0)
        return np.asarray(within + (away.T * masses) @ away)

    def taken(self, rows: BoolArray | IntArray) -> Modes:
        """Return some of them."""
        return attrs.evolve(
            self,
            positions=self.positions[rows],
            values=self.values[rows],
            covariances=self.covariances[rows],
            ended=self.ended[rows],
            places=self.places[rows],
        )

    def nearest(self, positions: FloatArray) -> IntArray:
        """Return the mode that each of ``positions (n, dim)`` belongs to, shape (n,).

        The one whose Laplace approximation is densest there.
        """
        return np.asarray(np.argmin([self._energy(k, positions) for k in range(len(self))], axis=0))

    def _energy(self, k: int, positions: FloatArray) -> FloatArray:
        return np.asarray(self.values[k] + 0.5 * self.squares(k, positions))

    def squares(self, k: int, positions: FloatArray) -> FloatArray:
        """Return squared distances (n,) of ``positions (n, dim)`` from mode k, in its own sds."""
        away = positions - self.positions[k]
        return np.asarray(np.sum(away * np.linalg.solve(self.covariances[k], away.T).T, axis=1))

    def distances(self, positions: FloatArray) -> FloatArray:
        """Return distances (n,) of ``positions (n, dim)`` from the next mode, in its own sds."""
        squares = [self.squares(k, positions) for k in range(len(self))]
        return np.asarray(np.sqrt(np.min(squares, axis=0)))

    def told(self, transform: Transform) -> Modes:
        """Return them with their places in the user's coordinates."""
        return attrs.evolve(self, places=transform.to_bounded(self.positions))

    def to_dict(self) -> dict[str, Any]:
        """Return them as plain data."""
        return {
            "places": self.places.tolist(),
            "potentials": self.values.tolist(),
            "masses": self.masses.tolist(),
            "ended": self.ended.tolist(),
            "searches": self.searches,
        }

    def __repr__(self) -> str:
        return f"<Modes: {len(self)}, by {self.searches} searches>"
