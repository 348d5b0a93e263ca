"""Explorers, and what they find."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import attrs
import numpy as np

from surrokit.contracts.potential import Potential
from surrokit.contracts.sampler import ChainState, Tuning
from surrokit.coordinates.transforms import Transform
from surrokit.types import BoolArray, Capabilities, FloatArray, IntArray

if TYPE_CHECKING:
    from surrokit.contracts.learner import Evaluations
    from surrokit.contracts.sampler import StepInfo


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

    def take(self, rows: BoolArray | IntArray) -> Modes:
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

    def tell(self, transform: Transform) -> Modes:
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


@attrs.frozen(kw_only=True, eq=False)
class Findings:
    """What an exploration hands to the run.

    Parameters
    ----------
    chains : ChainState
        Where the chains are; their exact values are known.
    covariance : ndarray of shape (dim, dim), optional
        Estimated covariance of the target.
    step_size : float, optional
        A step size that worked.
    mode : ndarray of shape (dim,), optional
        Where the target is densest, as far as it was looked for.
    tuning : Tuning, optional
        What the run's own sampler needs, found on the surrogate; then the run searches for nothing.
    acceptance : float, optional
        Predicted probability of accepting an independent draw from the surrogate.
    modes : Modes, optional
        What searches for modes have found, if there were any.
    """

    chains: ChainState
    covariance: FloatArray | None
    step_size: float | None
    mode: FloatArray | None = None
    tuning: Tuning | None = None
    acceptance: float | None = None
    modes: Modes | None = None


class ExplorationState(Protocol):
    """What an explorer carries from step to step."""

    @property
    def chains(self) -> ChainState:
        """Where the chains are."""

    @property
    def info(self) -> StepInfo | None:
        """What the last step did to them."""


class Exploration(Protocol):
    """An explorer that is bound: looks around with exact evaluations before a surrogate takes over.

    ``run`` drives it, step by step, so that progress, budgets and interrupts work.
    """

    def start(self, positions: FloatArray, warmup: int) -> Any:
        """Return the state at starting ``positions (n, dim)``, for a warm-up of that length."""

    def step(self, state: Any, rng: np.random.Generator) -> Any:
        """Return the state after one more iteration."""

    def learn(self, state: Any, paid: Evaluations) -> tuple[Any, Evaluations]:
        """Return the state that knows what was paid for, and the rows to learn from."""

    def wants_fit(self, state: Any) -> bool:
        """Return whether the learner, which has observed the rows, shall be fitted and shown.

        An explorer that looks where a surrogate points asks for one; others return False.
        """

    def inform(self, state: Any, surrogate: Potential | None) -> Any:
        """Return the state that knows a fitted ``surrogate``; None where fitting failed."""

    def done(self, state: Any) -> bool:
        """Return whether to stop."""

    def findings(self, state: Any) -> Findings:
        """Return what was found."""


class Explorer(Protocol):
    """Settings of an exploration, until it is bound."""

    @property
    def needs(self) -> Capabilities:
        """What the exact potential must offer."""

    def bind(self, potential: Potential, calls: int | None = None) -> Exploration:
        """Return the exploration of a potential.

        Parameters
        ----------
        potential
            The exact one.
        calls
            How many exact calls the run's budget leaves to it, for one that plans ahead; None
            without a budget.
        """
