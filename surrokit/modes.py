"""Modes that searches found, and how far the searches speak against others."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from surrokit.coordinates.constraints import CoordinateMap
from surrokit.types import BoolArray, FloatArray, IntArray

NEGLIGIBLE = 1e-4
"""Share of the probability, by Laplace approximations, below which a mode is neglected."""


def _whole(numbers: npt.ArrayLike) -> IntArray:
    return np.asarray(numbers, dtype=np.int64)


def _yes_or_no(numbers: npt.ArrayLike) -> BoolArray:
    return np.asarray(numbers, dtype=bool)


@attrs.frozen(kw_only=True)
class Searches:
    """Where ``n`` searches for modes ended, unfinished ones included."""

    ended: tuple[int, ...]  # at each mode
    n: int
    unseen: float  # bound, of probability 0.95, of the part of others that would end elsewhere
    concave: bool = False  # whether the target is log-concave, so that there is no other mode


@attrs.frozen(kw_only=True, eq=False)
class Evidences:
    """Evidences and masses of modes by the draws of a run; arrays have shape (k,).

    A mode that no chain was at has the mass of its Laplace approximation, with errors that are NaN.
    Where chains stay apart, ends of searches that they go between are one mode, and the lowest of
    them has its mass.

    Parameters
    ----------
    logs, errors
        Logarithm of the integral of exp(-U) over what is nearest to each mode, and its standard
        error; NaN where only masses are known.
    masses, mass_errors
        Share of the probability at each mode, and its standard error.
    separate
        Whether chains stayed at their modes, so that draws count by these masses.
    doubt
        Why they do not, though chains stayed at their modes; None where they do, or went.
    """

    logs: FloatArray
    errors: FloatArray
    masses: FloatArray
    mass_errors: FloatArray
    separate: bool = False
    doubt: str | None = None

    def describe(self, rows: IntArray, places: list[str]) -> str:
        """Return masses and log evidences of some modes at places, in a sentence."""
        lines, most = [], 8
        for k, place in zip(rows, places, strict=True):
            mass, error = self.masses[k], self.mass_errors[k]
            line = f"{place}: mass {mass:.3g}"
            line += " by its Laplace approximation" if np.isnan(error) else f" +- {error:.2g}"
            if not np.isnan(self.errors[k]):
                line += f", log Z {self.logs[k]:.5g} +- {self.errors[k]:.2g}"
            lines.append(line)
        rest = [f"and {len(lines) - most} more"] if len(lines) > most else []
        return f"Masses of modes: {'; '.join([*lines[:most], *rest])}."


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
    reliable : bool
        Whether mass lies about them as their covariances predict. If not, searches ended in
        funnels, where the density is high and hardly any mass is, or in shapes unlike a normal one.
    converged : ndarray of shape (k,)
        Whether a search found nothing left to gain at each mode. Where none did, they were cut off
        there, on the way to another one perhaps. By default all.
    concave : bool
        Whether the target is log-concave, so that there is no other mode.
    places : ndarray of shape (k, dim)
        The positions in the user's coordinates; by default in the sampling coordinates.
    evidences
        What draws say of their masses; None before there are draws.
    """

    positions: FloatArray
    values: FloatArray
    covariances: FloatArray
    ended: IntArray = attrs.field(converter=_whole)
    unfinished: int = 0
    reliable: bool = True
    converged: BoolArray = attrs.field(
        default=attrs.Factory(lambda self: np.ones(len(self.values), bool), True),
        converter=_yes_or_no,
    )
    concave: bool = False
    places: FloatArray = attrs.Factory(lambda self: self.positions, True)
    evidences: Evidences | None = None

    @classmethod
    def join(cls, parts: Sequence[Modes]) -> Modes:
        """Return the modes of at least one part after another."""
        names = ("positions", "values", "covariances", "ended", "converged", "places")
        arrays: dict[str, Any] = {
            name: np.concatenate([getattr(each, name) for each in parts]) for name in names
        }
        return attrs.evolve(parts[0], evidences=None, **arrays)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def searches(self) -> int:
        """Number of all searches, unfinished ones included."""
        return int(self.ended.sum()) + self.unfinished

    @property
    def laplace(self) -> FloatArray:
        """Logarithm of the integral of each Laplace approximation, shape (k,)."""
        dim = self.positions.shape[1]
        halves = 0.5 * np.linalg.slogdet(self.covariances)[1]
        return np.asarray(0.5 * dim * np.log(2.0 * np.pi) + halves - self.values)

    @property
    def masses(self) -> FloatArray:
        """Share of the probability at each mode, shape (k,): by draws, or else by Laplace."""
        return _shares(self.laplace) if self.evidences is None else self.evidences.masses

    @property
    def matters(self) -> BoolArray:
        """Whether each mode is more than negligible by Laplace approximations, shape (k,)."""
        return np.asarray(_shares(self.laplace) >= NEGLIGIBLE)

    @property
    def doubtful(self) -> BoolArray:
        """Which modes are neglected for their volume alone, in more than ten dimensions, (k,).

        There few gradients leave volumes unknown by many nats. They are nearly as high as another.
        """
        high = self.values <= self.values.min() + 3.0
        return np.asarray(high & ~self.matters & (self.positions.shape[1] > 10))

    @property
    def covariance(self) -> FloatArray:
        """Covariance of the mixture of all Laplace approximations, shape (dim, dim)."""
        away = self.positions - self.masses @ self.positions
        return np.asarray(self.covariance_within + (away.T * self.masses) @ away)

    @property
    def covariance_within(self) -> FloatArray:
        """Mean covariance of the Laplace approximations, shape (dim, dim).

        Jumps lead from mode to mode, and other moves need not be as wide as all of them.
        """
        return np.asarray(np.sum(self.masses[:, None, None] * self.covariances, axis=0))

    def away(self, positions: FloatArray) -> FloatArray:
        """Return positions (n, dim) less the mode that each is at."""
        return np.asarray(positions - self.positions[self.nearest(positions)])

    def unseen(self, joined: BoolArray | None = None) -> tuple[float, float]:
        """Return which part of further searches would end at no known mode, and an upper bound.

        The estimate is Good and Turing's (Good 1953, doi:10.1093/biomet/40.3-4.237): the part of
        the searches that ended where no other did. The bound has a probability of 0.95, as if
        each search by itself were one of these or not. It is no part of the mass.

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
        bound = betaincinv(once + 1.0, all_of_them - once, 0.95)
        return once / all_of_them, float(bound)

    @property
    def hidden(self) -> float:
        """Expected number of modes at which no search has ended, if others are found as easily.

        That is the sum of exp(-n_k) over modes at which n_k searches ended; a mode that few starts
        lead to is not counted.
        """
        found = self.ended[self.matters]
        return 0.0 if self.concave else float(np.exp(-found).sum())

    @property
    def rare(self) -> BoolArray:
        """Which modes of some mass less than a tenth as many searches found as another, (k,).

        Where such are, how often a mode is found says little of its mass, and others may be missed.
        """
        return np.asarray((self.masses >= 0.05) & (10 * self.ended <= self.ended.max()))

    def name_places(self, labels: list[str], sds: FloatArray) -> list[str]:
        """Return each mode's place in words, by the four numbers in which modes differ most.

        ``sds (n,)`` are scales of the user's numbers. These need not be the sampling coordinates: a
        simplex has one more.
        """
        apart, most = np.ptp(self.places, axis=0), 4
        apart[apart > 0] /= np.maximum(sds[apart > 0], np.finfo(float).tiny)
        columns = np.sort(np.argsort(-apart, kind="stable")[:most])
        rest = ", ..." if len(labels) > most else ""
        return [
            ", ".join(f"{labels[i]} = {place[i]:.4g}" for i in columns) + rest
            for place in self.places
        ]

    def count(self) -> Searches:
        """Return where searches ended."""
        ended = tuple(map(int, self.ended))
        return Searches(ended=ended, n=self.searches, unseen=self.unseen()[1], concave=self.concave)

    def take(self, rows: BoolArray | IntArray) -> Modes:
        """Return the modes chosen by an index or a mask."""
        names = ("positions", "values", "covariances", "ended", "converged", "places")
        taken = {name: getattr(self, name)[rows] for name in names}
        return attrs.evolve(self, evidences=None, **taken)

    def nearest(self, positions: FloatArray) -> IntArray:
        """Return the mode (n,) whose Laplace approximation is densest at ``positions (n, dim)``."""
        return np.asarray(np.argmax(self.log_shares(positions), axis=0))

    def turns(self, positions: FloatArray) -> IntArray:
        """Return how many earlier rows of ``positions (n, dim)`` are at the mode of each, (n,)."""
        at = self.nearest(positions)
        return np.array([np.sum(at[:i] == k) for i, k in enumerate(at)], dtype=np.int64)

    @cached_property
    def _precisions(self) -> FloatArray:
        inverses = np.linalg.inv(self.covariances)
        return np.asarray(0.5 * (inverses + np.swapaxes(inverses, 1, 2)))

    def log_shares(self, positions: FloatArray) -> FloatArray:
        """Return the log share of each Laplace approximation, not normalised, in their sum, (k, n).

        That is in the density at ``positions (n, dim)``.
        """
        return self.look(positions)[0]

    def look(self, positions: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return :meth:`log_shares`, and of each approximation of U its gradients (k, n, dim).

        With them come squared distances (k, n) from the modes, in their own sds.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # far from all modes
            away = positions - self.positions[:, None]
            pulls = away @ self._precisions
            squares = np.vecdot(away, pulls)
            logs = -self.values[:, None] - 0.5 * squares
            return np.asarray(logs - np.logaddexp.reduce(logs, axis=0)), pulls, squares

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
            "evidences": None if self.evidences is None else attrs.asdict(self.evidences),
            "ended": self.ended.tolist(),
            "unseen": self.unseen(),
            "reliable": self.reliable,
            "searches": self.searches,
        }

    def __repr__(self) -> str:
        return f"<Modes: {len(self)}, by {self.searches} searches>"


def _shares(logs: FloatArray) -> FloatArray:
    """Return the shares that logarithms (k,) are of, of sum one."""
    shares = np.exp(logs - logs.max())
    return np.asarray(shares / shares.sum())


def describe_searches(searches: Searches | None) -> str | None:
    """Return how far searches for modes speak against others; None where there is no other."""
    if searches is None:
        return "no search for modes was made: one near which no chain began may have any mass"
    if searches.concave:
        return None
    ended = searches.ended
    places = "one place" if len(ended) == 1 else f"{len(ended)} ({', '.join(map(str, ended))})"
    return (
        f"{sum(ended)} of {searches.n} searches for modes ended at {places}; at most "
        f"{searches.unseen:.0%} of further ones would end elsewhere (probability 0.95). A mode "
        "that few starts lead to, such as a narrow one, may still have any mass"
    )
