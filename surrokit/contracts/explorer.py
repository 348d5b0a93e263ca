"""Explorers and their findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

import attrs
import numpy as np

from surrokit.coordinates.transforms import CoordinateMap
from surrokit.interfaces import ChainState, Tuning
from surrokit.potentials import Potential
from surrokit.types import BoolArray, Capabilities, FloatArray, IntArray

if TYPE_CHECKING:
    from surrokit.interfaces import Evaluations, StepInfo


NEGLIGIBLE = 1e-4
"""Share of the probability, by Laplace approximations, below which a mode is neglected."""

_PROBABILITY = 0.95  # of the bound of what no search has seen


@attrs.frozen(kw_only=True)
class Searches:
    """Where searches for modes ended.

    Parameters
    ----------
    ended
        Number of searches that ended at each mode.
    n
        Number of all searches, unfinished ones included.
    unseen
        Upper bound, of a probability of 0.95, of the part of further searches that would end at no
        known mode.
    concave
        Whether the target is log-concave, so that there is no other mode.
    """

    ended: tuple[int, ...]
    n: int
    unseen: float
    concave: bool = False


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Modes:
    """The modes of a target that searches found, the one of least potential first.

    Parameters
    ----------
    positions : ndarray of shape (k, dim)
        Positions of the modes, in the sampling coordinates.
    values : ndarray of shape (k,)
        U at the modes, in nats, with the Jacobian of the sampling coordinates.
    covariances : ndarray of shape (k, dim, dim)
        Covariance of the Laplace approximation at each mode, or an estimate from gradients nearby.
    ended : ndarray of shape (k,)
        Number of searches that ended at each mode.
    unfinished : int
        Searches that ended at no mode: they took too many evaluations, or could not begin.
    believed : bool
        Whether mass lies about them as their covariances foretell. If not, searches ended in necks,
        where the density is high and hardly any mass is, or in shapes unlike a normal one.
    converged : ndarray of shape (k,)
        Whether a search found nothing left to gain at each mode. Where none did, they were cut off
        there, on the way to another one perhaps. By default all.
    concave : bool
        Whether the target is log-concave, so that there is no other mode.
    places : ndarray of shape (k, dim)
        The positions in the user's coordinates; by default in the sampling coordinates.
    """

    positions: FloatArray
    values: FloatArray
    covariances: FloatArray
    ended: IntArray
    unfinished: int = 0
    believed: bool = True
    converged: BoolArray = attrs.field()
    concave: bool = False
    places: FloatArray = attrs.field()

    @converged.default
    def _all(self) -> BoolArray:
        return np.ones(len(self.values), dtype=bool)

    @places.default
    def _positions(self) -> FloatArray:
        return self.positions

    def __len__(self) -> int:
        return len(self.values)

    @property
    def searches(self) -> int:
        """Number of all searches, unfinished ones included."""
        return int(self.ended.sum()) + self.unfinished

    @property
    def masses(self) -> FloatArray:
        """Share of the probability at each mode, by Laplace approximations; shape (k,)."""
        logs = 0.5 * np.linalg.slogdet(self.covariances)[1] - self.values
        masses = np.exp(logs - logs.max())
        return np.asarray(masses / masses.sum())

    @property
    def matters(self) -> BoolArray:
        """Whether each mode is more than negligible, shape (k,)."""
        return np.asarray(self.masses >= NEGLIGIBLE)

    @property
    def covariance(self) -> FloatArray:
        """Covariance of the mixture of all Laplace approximations, shape (dim, dim)."""
        masses = self.masses
        away = self.positions - masses @ self.positions
        within: FloatArray = np.sum(masses[:, None, None] * self.covariances, axis=0)
        return np.asarray(within + (away.T * masses) @ away)

    def unseen(self, joined: BoolArray | None = None) -> tuple[float, float]:
        """Return which part of further searches would end at no known mode, and an upper bound.

        The estimate is Good and Turing's (Good 1953, doi:10.1093/biomet/40.3-4.237): the part of
        the searches that ended where no other did. The bound has a probability of 0.95, as if
        each search by itself were one of these or not. Where there are none it is the exact form of
        the rule of three. It is a part of the searches, and not of the mass.

        Parameters
        ----------
        joined : ndarray of shape (k,), optional
            Modes between which chains go freely, which count as one.
        """
        from scipy.special import betaincinv

        if self.concave:
            return 0.0, 0.0
        ended = np.where(self.converged, self.ended, np.maximum(self.ended, 2))
        if joined is not None and joined.any():
            ended = np.append(ended[~joined], ended[joined].sum())
        once, all_of_them = int((ended == 1).sum()), int(self.ended.sum())
        if once >= all_of_them:
            return 1.0, 1.0
        bound = betaincinv(once + 1.0, all_of_them - once, _PROBABILITY)
        return once / all_of_them, float(bound)

    def count(self) -> Searches:
        """Return where searches ended."""
        ended = tuple(map(int, self.ended))
        return Searches(ended=ended, n=self.searches, unseen=self.unseen()[1], concave=self.concave)

    def take(self, rows: BoolArray | IntArray) -> Modes:
        """Return the modes chosen by an index or a mask."""
        return attrs.evolve(
            self,
            positions=self.positions[rows],
            values=self.values[rows],
            covariances=self.covariances[rows],
            ended=self.ended[rows],
            converged=self.converged[rows],
            places=self.places[rows],
        )

    def nearest(self, positions: FloatArray) -> IntArray:
        """Return the mode (n,) whose Laplace approximation is densest at ``positions (n, dim)``."""
        return np.asarray(np.argmin([self._energy(k, positions) for k in range(len(self))], axis=0))

    def _energy(self, k: int, positions: FloatArray) -> FloatArray:
        return np.asarray(self.values[k] + 0.5 * self.squares(k, positions))

    def squares(self, k: int, positions: FloatArray) -> FloatArray:
        """Return squared distances (n,) of ``positions (n, dim)`` from mode k, in its own sds."""
        away = positions - self.positions[k]
        return np.asarray(np.sum(away * np.linalg.solve(self.covariances[k], away.T).T, axis=1))

    def distances(self, positions: FloatArray) -> FloatArray:
        """Return distances (n,) of ``positions (n, dim)`` from the nearest mode, in its own sds."""
        squares = [self.squares(k, positions) for k in range(len(self))]
        return np.asarray(np.sqrt(np.min(squares, axis=0)))

    def tell(self, transform: CoordinateMap) -> Modes:
        """Return the modes with their places in the user's coordinates."""
        return attrs.evolve(self, places=transform.to_bounded(self.positions))

    def to_dict(self) -> dict[str, Any]:
        """Return the modes as plain data."""
        return {
            "places": self.places.tolist(),
            "potentials": self.values.tolist(),
            "masses": self.masses.tolist(),
            "ended": self.ended.tolist(),
            "unseen": self.unseen(),
            "believed": self.believed,
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
        State of the chains, with exact values.
    covariance : ndarray of shape (dim, dim), optional
        Estimated covariance of the target.
    step_size : float, optional
        A step size that worked.
    mode : ndarray of shape (dim,), optional
        Position of the highest density found.
    tuning : Tuning, optional
        Tuning of the run's own sampler, found on the surrogate; the run then searches for none.
    acceptance : float, optional
        Predicted probability of accepting an independent draw from the surrogate.
    modes : Modes, optional
        Modes that searches have found, if there were searches.
    missed : int
        Places at which the target went on where the surrogate's mass ended, when the exploration
        ended for want of evaluations.
    at_draws : bool
        Whether the chains are at draws of the target, so that they have nothing to forget.
    """

    chains: ChainState
    covariance: FloatArray | None
    step_size: float | None
    mode: FloatArray | None = None
    tuning: Tuning | None = None
    acceptance: float | None = None
    modes: Modes | None = None
    missed: int = 0
    at_draws: bool = False


@attrs.frozen(kw_only=True, eq=False)
class Past:
    """Draws that earlier runs have made of a target, by chains that agree.

    Parameters
    ----------
    positions : ndarray of shape (n, dim)
        The draws, in the sampling coordinates.
    values : ndarray of shape (n,)
        Exact U there, in nats.
    """

    positions: FloatArray
    values: FloatArray

    def __len__(self) -> int:
        return len(self.values)


@attrs.frozen(kw_only=True, eq=False)
class Start:
    """What a run hands to an explorer.

    Parameters
    ----------
    potential
        The exact potential. Calls are counted, and evaluations kept; a call raises where a limit
        of the run is reached.
    positions : ndarray of shape (n, dim)
        Where the chains start.
    warmup
        Length of the warm-up of which the exploration is part.
    evaluated
        Returns the evaluations since it was last called.
    fit
        Lets the run's learner observe rows, and returns a surrogate of all that it has observed;
        None where none can be fitted.
    calls
        Exact calls that the run's budget leaves to the exploration; None without a budget.
    past
        Draws of earlier runs on the same target, whose evaluations the learner has observed; None
        without.
    """

    potential: Potential
    positions: FloatArray
    warmup: int
    evaluated: Callable[[], Evaluations]
    fit: Callable[[Evaluations], Potential | None]
    calls: int | None = None
    past: Past | None = None


@attrs.frozen(kw_only=True, eq=False)
class Explored:
    """One iteration of an exploration.

    Parameters
    ----------
    findings
        What has been found so far.
    step
        What the iteration did to the chains; None where the record shall have no row of it.
    rows
        Evaluations to learn from that ``fit`` was not given.
    done
        Whether the exploration is over; none follows then.
    """

    findings: Findings
    step: StepInfo | None = None
    rows: Evaluations | None = None
    done: bool = False


class Explorer(Protocol):
    """Settings of an exploration, which evaluates before a surrogate takes over."""

    @property
    def needs(self) -> Capabilities:
        """What the exact potential must offer."""

    def explore(self, start: Start, rng: np.random.Generator) -> Iterator[Explored]:
        """Explore a potential, and yield after each iteration, for the run to record.

        The first item has the chains at their starts, and takes nothing from the generator. A run
        that finds the target not finite there explores anew from other starts. The last item is
        marked ``done``. A run whose limit is reached asks for no more.

        Parameters
        ----------
        start
            The potential, and all else that the run hands over.
        rng
            The run's generator.

        Yields
        ------
        Explored
            The chains at their starts, then each iteration.
        """


def describe_searches(searches: Searches | None) -> str:
    """Return in a sentence how far searches for modes speak against others; None for no search."""
    if searches is None:
        return (
            "Modes: no search was made, so one near which no chain began may hold any part of the "
            "mass."
        )
    if searches.concave:
        return "Modes: one, since the target is log-concave."
    ended, several = searches.ended, len(searches.ended) > 1
    which = f"{len(ended)} ({', '.join(map(str, ended))})" if several else "one"
    return (
        f"Modes: {sum(ended)} of {searches.n} searches ended at {which}; with a probability of "
        f"0.95 at most {searches.unseen:.0%} of further ones end at another, which may hold any "
        "part of the mass."
    )
