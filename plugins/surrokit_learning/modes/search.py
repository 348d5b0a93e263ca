"""Searches for modes from many starts, and what they have found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import attrs
import numpy as np

from surrokit.capabilities import CONVEX
from surrokit.contracts.explorer import Modes
from surrokit.errors import NumericalError
from surrokit.interfaces import Evaluations
from surrokit.limits import SEARCHING, check_deadline, stage
from surrokit.mode.descent import Mode, Scales
from surrokit.mode.search import (
    demand_bottom,
    demand_walls,
    demand_walls_by_gradients,
    find_mode,
    goes_by_values,
)
from surrokit.model.model import calls_per_gradient
from surrokit.potentials import Potential
from surrokit.types import FloatArray
from surrokit_learning.modes.abreast import run_abreast
from surrokit_learning.modes.curvature import foretold_covariance
from surrokit_learning.modes.limits import LEAST, Limits
from surrokit_learning.modes.starts import more_starts
from surrokit_learning.modes.watch import ModeWatch, same_mode, valley_of
from surrokit_learning.region.design import inverse_curvature
from surrokit_learning.region.region import WIDE

SLICE = 50
"""Evaluations that one step may take, and a search that has begun a few more."""

SPAN = 20
"""Evaluations of one search between two looks at the scales that gradients tell of."""

CLOSE = 0.01
"""Nats above a mode at which a search may end: 0.14 standard deviations away."""

LATER = 20
"""Evaluations that a later search may take, or twice those of the first one if these are more."""

STALLED = 1.0
"""Nats that a first search by values must gain in :data:`SLICE` evaluations to go on."""


@attrs.frozen(kw_only=True, eq=False)
class ModeSearch:
    """How far searches have come: plain data.

    Parameters
    ----------
    starts : ndarray of shape (n, dim)
        Where searches may begin; the first one is the best, more follow when a mode is known.
    widened
        Whether these have been added.
    at : ndarray of shape (dim,), optional
        How far the present search has come; None between two.
    spent
        Evaluations by it so far.
    calls, led
        Of each search that has ended: evaluations, and the mode that it led to; -1 for none.
    lowest : Mode, optional
        The least potential that any search has come to.
    ends : tuple of Mode
        The different places where searches ended.
    modes : Modes, optional
        What is known of them; None before a search has ended.
    rows, searched
        What searches saw on the way where no second derivatives were to be had, and which of the
        searches each row belongs to.
    concave
        Whether the target is log-concave, so that there is one mode alone.
    over
        Whether there is nothing left to do.
    """

    starts: FloatArray
    widened: bool = False
    at: FloatArray | None = None
    spent: int = 0
    calls: tuple[int, ...] = ()
    led: tuple[int, ...] = ()
    lowest: Mode | None = None
    ends: tuple[Mode, ...] = ()
    modes: Modes | None = None
    rows: Evaluations = attrs.field()
    searched: tuple[int, ...] = ()
    concave: bool = False
    over: bool = False

    @rows.default
    def _none(self) -> Evaluations:
        return Evaluations.empty(self.starts.shape[1])

    @classmethod
    def among(cls, starts: FloatArray, values: FloatArray) -> ModeSearch:
        """Return a search that begins at the best of some ``starts (n, dim)`` of U ``values``."""
        order = np.argsort(values != np.min(values), kind="stable")
        _, first = np.unique(starts[order], axis=0, return_index=True)
        return cls(starts=starts[order][np.sort(first)])

    @property
    def best(self) -> FloatArray:
        """The best position so far, shape (dim,)."""
        return np.asarray(self.starts[0]) if self.lowest is None else self.lowest.position

    @property
    def hessian(self) -> FloatArray | None:
        """Second derivatives at the best position, or what stands for them, where known."""
        return None if self.lowest is None else self.lowest.hessian

    @property
    def found(self) -> Modes | None:
        """The modes, that of least potential first; None before a search has ended."""
        if self.modes is None:
            return None
        return self.modes.take(np.argsort(self.modes.values, kind="stable"))

    @property
    def paid(self) -> int:
        """Evaluations so far."""
        return sum(self.calls) + self.spent

    @stage(SEARCHING)
    def step(self, exact: Potential, limits: Limits, rng: np.random.Generator) -> ModeSearch:
        """Return the search after about :data:`SLICE` more evaluations.

        Parameters
        ----------
        exact
            The target.
        limits
            What may be paid for.
        rng
            Generator, for more starts.

        Raises
        ------
        TargetError
            If the target falls and falls before any search has ended.
        """
        search, before = attrs.evolve(self, concave=CONVEX in exact.capabilities), self.paid
        given = limits
        while not search.over and search.paid < before + SLICE:
            check_deadline()
            limits = given.more() if search._finds_more else given
            abreast = search._abreast(exact, limits)
            if abreast > 1:
                search = search._continue_abreast(exact, limits, abreast)
            else:
                search = search._continue(exact, limits)
            if search.at is None:
                search = search._widen(exact, limits, rng)._judge(exact, limits)
            if search.paid >= limits.total:
                search = search.stop()
        return search

    @property
    def _finds_more(self) -> bool:
        """Whether searches have found several modes, and one of them once."""
        return len(self.ends) > 1 and self.modes is not None and self.modes.unseen()[0] > 0.0

    def stop(self) -> ModeSearch:
        """Return the search when there is no time for more; the present one led nowhere."""
        cut_off = not self.over and self.modes is not None
        return attrs.evolve(self._lead_to(-1) if cut_off else self, over=True)

    # --- several searches ---

    def _abreast(self, exact: Potential, limits: Limits) -> int:
        """Return how many searches to make in step: those that would be made in any case."""
        if self.modes is None or self.at is not None or goes_by_values(exact):
            return 1
        begun, later = len(self.led), self.calls[1:]
        n = LEAST - begun
        if begun >= LEAST:
            n = int((limits.later - sum(later)) / max(*later, 1))
        most = min(limits.starts(exact), len(self.starts)) - begun
        return min(n, most, (limits.total - self.paid) // self._longest)

    def _continue_abreast(self, exact: Potential, limits: Limits, n: int) -> ModeSearch:
        """Return the state after n searches, none of which has known what the others found."""

        def search_from(k: int) -> Callable[[Potential], ModeSearch]:
            start = self.starts[len(self.led) + k]
            state = attrs.evolve(self, starts=np.vstack([self.starts[: len(self.led)], start]))

            def search(potential: Potential) -> ModeSearch:
                ended = state._continue(potential, limits)
                while ended.at is not None:
                    ended = ended._continue(potential, limits)
                return ended

            return search

        search = self
        for ended in run_abreast(exact, [search_from(k) for k in range(n)]):
            search = search._join(exact, limits, ended, known=len(self.ends), rows=len(self.rows))
        return search

    def _join(
        self, exact: Potential, limits: Limits, ended: ModeSearch, *, known: int, rows: int
    ) -> ModeSearch:
        """Return the state with one more search, which began when so much was known."""
        lows = [mode for mode in (self.lowest, ended.lowest) if mode is not None]
        search = self._with_rows(ended.rows.take(np.arange(rows, len(ended.rows))))
        lowest = min(lows, key=lambda mode: mode.value)
        search = attrs.evolve(search, spent=ended.calls[-1], lowest=lowest)
        led = ended.led[-1]
        if led == known == len(self.ends):
            return attrs.evolve(search, ends=(*self.ends, ended.ends[led]))._lead_to(led)
        if led == known:  # others have found modes meanwhile, and it may be one of these
            return search._end(exact, limits, ended.ends[led])
        return search._lower_end(led, ended.ends[led]) if led >= 0 else search._lead_to(-1)

    # --- one search ---

    @property
    def _longest(self) -> int:
        """Evaluations that a later search may take."""
        return max(LATER, 2 * self.calls[0])

    def _continue(self, exact: Potential, limits: Limits) -> ModeSearch:
        at = self.starts[len(self.led)] if self.at is None else self.at
        watch = ModeWatch(self.modes, exact.dim)
        span = SPAN if calls_per_gradient(exact) == 1 else SLICE
        if self.led:
            span = self._longest - self.spent
        most = max(min(span, limits.total - self.paid), 1)
        # by values a search would leave them aside
        scales = None if goes_by_values(exact) else self._scales(at)
        try:
            found = find_mode(
                exact, at, max_calls=most, tolerance=CLOSE, until=watch, scales=scales
            )
        except NumericalError:  # the target is not finite at this start
            return attrs.evolve(self, spent=1)._lead_to(-1)
        search = attrs.evolve(self, spent=self.spent + found.calls)
        if found.hessian is None:
            search = search._with_rows(watch.seen())
        if watch.mode is not None:
            return search._lead_to(watch.mode)
        if not self.ends:
            search = search._demand_a_density(exact, limits, found, at)
        if self.lowest is None or found.value < self.lowest.value:
            search = attrs.evolve(search, lowest=found)
        if np.array_equal(found.position, at) or self._stalls(exact, found):
            return search._end(exact, limits, found)
        own = self._slope(at) is not None  # the search went by scales of its own
        if found.converged and (own or self.led or search._is_close(found)):
            return search._end(exact, limits, found, sure=own)
        if self.led and found.calls >= most:
            return search._give_up(exact, limits, found)
        return attrs.evolve(search, at=found.position)

    def _demand_a_density(
        self, exact: Potential, limits: Limits, found: Mode, at: FloatArray
    ) -> ModeSearch:
        """Return the state after a look at whether a distribution may have such a target."""
        demand_bottom(exact, found)
        rows = self._rows_of().gradients
        ended = found.converged or np.array_equal(found.position, at)
        plain = found.hessian is None and calls_per_gradient(exact) == 1
        if ended and plain and rows is not None:
            # what is seen far out is nothing to learn from, and shortens no search
            aside = cast(Any, exact).fork(keep=False) if hasattr(exact, "fork") else exact
            demand_walls_by_gradients(aside, found, rows, most=limits.beside)
        values = demand_walls(exact, found)
        return attrs.evolve(self, spent=self.spent + -(-values // calls_per_gradient(exact)))

    def _give_up(self, exact: Potential, limits: Limits, found: Mode) -> ModeSearch:
        """Return the state after a search that took too long; low places count as where it ends."""
        assert self.lowest is not None
        if found.value <= self.lowest.value + exact.dim + WIDE:
            return self._end(exact, limits, found)
        return self._lead_to(-1)

    def _scales(self, at: FloatArray) -> Scales | None:
        """Return what is known by now of the covariance about where a search may lead."""
        foretold = self._foretold(at)
        if foretold is not None:
            return Scales(covariance=foretold)
        if self.modes is not None:
            return Scales(covariance=self.modes.covariances[0], least=self.modes.values[0])
        return None

    def _foretold(self, at: FloatArray) -> FloatArray | None:
        """Return the covariance foretold at a position (dim,) that this search has seen."""
        slope = self._slope(at)
        return None if slope is None else foretold_covariance(at, slope, self._rows_of())

    def _rows_of(self) -> Evaluations:
        """Return what the present search has seen."""
        return self.rows.take(np.array(self.searched, dtype=int) == len(self.led))

    def _slope(self, at: FloatArray) -> FloatArray | None:
        """Return the gradient (dim,) that a search saw at a position (dim,); None at any other."""
        here = np.flatnonzero((self.rows.positions == at).all(axis=1))
        if not len(here) or self.rows.gradients is None:
            return None
        return np.asarray(self.rows.gradients[here[0]])

    def _is_close(self, found: Mode) -> bool:
        """Return whether a search that gains no more is near a mode by the scales foretold, too."""
        if found.decrement is not None:
            return found.decrement < CLOSE
        covariance = self._foretold(found.position)
        if covariance is None:
            return True
        return bool(0.5 * found.gradient @ covariance @ found.gradient < CLOSE)

    def _stalls(self, exact: Potential, found: Mode) -> bool:
        """Return whether the first search gains next to nothing for many values.

        In a narrow valley that bends there is no end to it, and other starts may do better.
        """
        if self.led or self.at is None or self.lowest is None or calls_per_gradient(exact) == 1:
            return False
        return self.lowest.value - found.value < STALLED

    def _with_rows(self, rows: Evaluations) -> ModeSearch:
        joined = Evaluations.join([self.rows, rows], self.starts.shape[1])
        searched = (*self.searched, *[len(self.led)] * len(rows))
        return attrs.evolve(self, rows=joined, searched=searched)

    def _end(
        self, exact: Potential, limits: Limits, found: Mode, *, sure: bool = True
    ) -> ModeSearch:
        """Return the state after a search ended at a known mode, or at another.

        One that is not sure goes on before there is another: in the scales of a known mode it may
        creep on its way there.
        """
        known, search = same_mode(self.modes, found.position, found.value), self
        if known is None:
            known, calls = valley_of(exact, self.ends, found, most=limits.total - self.paid)
            search = attrs.evolve(self, spent=self.spent + calls)
        if known is None and not (sure or self._is_close(found)):
            return attrs.evolve(search, at=found.position)
        if known is None:
            return attrs.evolve(search, ends=(*self.ends, found))._lead_to(len(self.ends))
        return search._lower_end(known, found)

    def _lower_end(self, known: int, found: Mode) -> ModeSearch:
        """Return the state after a search that led to a known mode, perhaps lower than before."""
        ends = list(self.ends)
        ends[known] = min(ends[known], found, key=lambda mode: mode.value)
        return attrs.evolve(self, ends=tuple(ends))._lead_to(known)

    def _lead_to(self, mode: int) -> ModeSearch:
        """Return the state after a search that led to a mode, or nowhere."""
        led, calls = (*self.led, mode), (*self.calls, self.spent)
        search = attrs.evolve(self, at=None, spent=0, led=led, calls=calls)
        return attrs.evolve(search, modes=search._complete_modes()) if self.ends else search

    def _complete_modes(self) -> Modes:
        """Return the modes with what is known of them by now."""
        return Modes(
            positions=np.stack([end.position for end in self.ends]),
            values=np.array([end.value for end in self.ends]),
            covariances=np.stack([self._covariance(k) for k in range(len(self.ends))]),
            ended=np.array([self.led.count(k) for k in range(len(self.ends))]),
            unfinished=self.led.count(-1),
            converged=np.array([end.converged for end in self.ends]),
            concave=self.concave,
        )

    def _covariance(self, k: int) -> FloatArray:
        end = self.ends[k]
        if end.hessian is not None:
            return inverse_curvature(end.hessian)
        led = np.array(self.led)[np.array(self.searched)]
        rows = self.rows.take(np.asarray(led == k))
        return foretold_covariance(end.position, end.gradient, rows)

    # --- whether there is another ---

    def _widen(self, exact: Potential, limits: Limits, rng: np.random.Generator) -> ModeSearch:
        """Return the search with more starts, once a mode is known."""
        most, begun = limits.starts(exact), len(self.led)
        if self.widened or self.modes is None or begun >= most:
            return self
        more = more_starts(
            exact,
            self.modes.positions[0],
            self.modes.covariances[0],
            self.starts[begun:],
            max(most - len(self.starts), 0),
            rng,
        )
        return attrs.evolve(self, starts=np.vstack([self.starts[:begun], more]), widened=True)

    def _judge(self, exact: Potential, limits: Limits) -> ModeSearch:
        """Return the search, over if no other one is to begin."""
        begun = len(self.led)
        paid = begun >= LEAST and sum(self.calls[1:]) >= limits.later
        most = min(limits.starts(exact), len(self.starts))
        return attrs.evolve(self, over=paid or begun >= most)
