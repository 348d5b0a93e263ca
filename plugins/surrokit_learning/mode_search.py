"""A search for the mode from several starts, until the same mode has been found twice."""

from __future__ import annotations

import warnings

import attrs
import numpy as np

from surrokit.errors import NumericalError, SamplingWarning
from surrokit.mode import find_mode
from surrokit.protocols import Potential
from surrokit.types import FloatArray

SLICE = 50
"""Evaluations that one step of the search may take."""

SAME_VALUE = 0.5
"""Nats by which two searches for one mode may end apart."""

SAME_PLACE = 1.0
"""Standard deviations by which they may."""

SAME_PART = 0.1
"""Part of the way from the start by which they may, where the standard deviations are unknown."""


@attrs.frozen(kw_only=True, eq=False)
class ModeSearch:
    """How far a search has come: plain data.

    Parameters
    ----------
    starts : ndarray of shape (n, dim)
        Where searches may begin.
    values : ndarray of shape (n,)
        U there.
    used : tuple of int
        Starts that searches began at.
    at : ndarray of shape (dim,), optional
        How far the present search has come; None before it begins.
    position, value, hessian
        The best end so far of a search: position (dim,), U there, and second derivatives (dim,
        dim) or what stands for them; None before any has ended.
    ends : ndarray of shape (k, dim)
        Where each search ended.
    agreed
        Searches that ended at the best place.
    over
        Whether there is nothing left to do.
    """

    starts: FloatArray
    values: FloatArray
    used: tuple[int, ...] = ()
    at: FloatArray | None = None
    position: FloatArray | None = None
    value: float = float("inf")
    hessian: FloatArray | None = None
    ends: FloatArray = attrs.field()
    agreed: int = 0
    over: bool = False

    @ends.default
    def _none(self) -> FloatArray:
        return np.empty((0, self.starts.shape[1]))

    @property
    def best(self) -> FloatArray:
        """The best position so far, shape (dim,)."""
        if self.position is not None:
            return self.position
        start = self.starts[int(np.argmin(self.values))]
        return np.asarray(start) if self.at is None else self.at

    def continued(self, exact: Potential, most: int, searches: int) -> tuple[ModeSearch, int]:
        """Return the search after some more evaluations, and how many these were.

        Parameters
        ----------
        exact
            The target.
        most
            Evaluations that may be paid for.
        searches
            Starts at most to search from.
        """
        search = self if self.at is not None else self._begun()
        assert search.at is not None
        try:
            found = find_mode(exact, search.at, max_calls=max(min(SLICE, most), 1))
        except NumericalError:  # the target is not finite at this start
            return search._ended(search.at, np.inf, None, searches), 1
        steady = np.array_equal(found.position, search.at)
        if found.converged or steady or found.calls >= most:
            search = search._ended(found.position, found.value, found.hessian, searches)
            return search, found.calls
        return attrs.evolve(search, at=found.position), found.calls

    def warn_of_others(self, covariance: FloatArray | None) -> None:
        """Warn if the best mode was found once only, and draws about it leave others out.

        Parameters
        ----------
        covariance : ndarray of shape (dim, dim), optional
            Of the draws.
        """
        if self.agreed >= 2 or len(self.ends) < 2 or self.position is None:
            return
        away = self.ends - self.position
        if covariance is not None:
            distances = np.sqrt(np.einsum("nd,nd->n", away, np.linalg.solve(covariance, away.T).T))
            if distances.max() <= np.sqrt(len(covariance)) + 2.0:
                return
        warnings.warn(
            f"searches for the mode from {len(self.ends)} starts ended at different places, and "
            f"the best of them, with potential {self.value:.6g}, was found once; draws will show "
            "what lies about this one alone. Start elsewhere and compare: initial=..., or use "
            "explorer='sampler'",
            SamplingWarning,
            stacklevel=2,
        )

    def stopped(self) -> ModeSearch:
        """Return the search as it is when there is no time for more of it."""
        if self.position is None and self.at is not None:
            return attrs.evolve(self, position=self.at, over=True)
        return attrs.evolve(self, over=True)

    def _begun(self) -> ModeSearch:
        """Return the search at the best start, or later at the one farthest from what was found."""
        left = [i for i in range(len(self.starts)) if i not in self.used]
        if self.position is None:
            start = min(left, key=lambda i: float(self.values[i]))
        else:
            away = np.linalg.norm(self.starts - self.position, axis=1)
            start = max(left, key=lambda i: float(away[i]))
        return attrs.evolve(self, at=self.starts[start], used=(*self.used, start))

    def _ended(
        self, position: FloatArray, value: float, hessian: FloatArray | None, searches: int
    ) -> ModeSearch:
        """Return the state after one search came to an end."""
        same = self._same(position, value)
        ends = np.vstack([self.ends, position])
        search = attrs.evolve(self, at=None, agreed=self.agreed + same, ends=ends)
        if not same and value < self.value:
            search = attrs.evolve(search, position=position, value=value, hessian=hessian, agreed=1)
        distinct = len(np.unique(self.starts, axis=0))
        over = search.agreed >= 2 or len(self.used) >= min(searches, distinct)
        return attrs.evolve(search, over=over)

    def _same(self, position: FloatArray, value: float) -> bool:
        if self.position is None or not abs(value - self.value) < SAME_VALUE:
            return False
        away = position - self.position
        if self.hessian is not None:
            return bool(away @ self.hessian @ away < SAME_PLACE**2)
        start = self.starts[self.used[-1]] - self.position
        return bool(np.linalg.norm(away) <= SAME_PART * np.linalg.norm(start))
