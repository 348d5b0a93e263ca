"""Searches for modes from many starts."""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import chain, zip_longest
from typing import Any, cast

import attrs
import numpy as np

from surrokit.capabilities import CONVEX, INITIAL
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
from surrokit.mode.starts import spread_positions
from surrokit.model.model import calls_per_gradient
from surrokit.modes import Modes
from surrokit.potentials import Potential
from surrokit.types import FloatArray
from surrokit_learning.abreast import run_abreast
from surrokit_learning.designs import cholesky_factor, inverse_curvature
from surrokit_learning.modes_found import ModeWatch, predicted_covariance, same_mode, valley_of
from surrokit_learning.region import WIDE

LEAST = 3
"""Searches that are made as long as there are starts, whatever they cost."""

FEW, MOST = 8, 12
"""Starts to search from at most: the former and one for each dimension, but no more than the
latter."""

SLICE = 50
"""Evaluations that one step may take, and a search that has begun a few more."""

CLOSE = 0.01
"""Nats above a mode at which a search may end: 0.14 standard deviations away."""

LATER = 20
"""Evaluations that a later search may take, or twice those of the first one if these are more."""

STALLED = 1.0
"""Nats that a first search by values must gain in :data:`SLICE` evaluations to go on."""

FAR = 10.0
"""Standard deviations, times the root of the dimension, from a mode to where one looks about it.

Of 2 dim such starts, along orthogonal axes both ways, one lies beyond the middle between this mode
and any other of the same shape within 20 standard deviations.
"""

_MOST, _MOST_SDS = 20.0, 5.0  # by how much a coordinate may differ: e^20 is far for a logarithm
_CALLS, _UNNOTICED = 4000, 0.01  # of a run without a limit at least, and a part of any run's


def unnoticed(calls: int | None) -> int:
    """Return how many calls are few beside those of a run, which are limited or not."""
    return int(_UNNOTICED * (_CALLS if calls is None else calls))


@attrs.frozen(kw_only=True)
class Limits:
    """What searches may evaluate.

    Parameters
    ----------
    total, later
        Evaluations by all searches, and by those after the first. One that has begun may finish,
        and :data:`LEAST` begin in any case.
    searches
        Starts at most; None for as many as ``later`` allows.
    spare
        Evaluations more, in total and by later searches, while a mode is known that one search
        alone has found.
    beside
        Gradients beside the first mode, on top of these.
    """

    total: int
    later: float
    searches: int | None
    spare: int = 0
    beside: int = 0

    def starts(self, exact: Potential) -> int:
        """Return from how many starts to search at most."""
        if CONVEX in exact.capabilities:
            return 1
        return min(FEW + exact.dim, MOST) if self.searches is None else self.searches


class ModeSearch:
    """Searches on one target, the first from the best of some starts.

    Parameters
    ----------
    starts, values : ndarrays of shape (n, dim) and (n,)
        Where searches may begin, and U there; more starts follow when a mode is known.
    surrogate
        Of known evaluations, with capability ``gradient``. A search ends where the target agrees
        with it and it leads to a mode that is known; everywhere else the target is evaluated.

    Attributes
    ----------
    led, calls
        The mode that each search that has ended led to, -1 for none; and its evaluations.
    lowest : Mode or None
        The least potential that any search has come to.
    over
        Whether there is nothing left to do.
    """

    def __init__(
        self,
        exact: Potential,
        starts: FloatArray,
        values: FloatArray,
        limits: Limits,
        surrogate: Potential | None = None,
    ) -> None:
        order = np.argsort(values != np.min(values), kind="stable")
        _, first = np.unique(starts[order], axis=0, return_index=True)
        self.starts: FloatArray = starts[order][np.sort(first)]
        self.led: list[int] = []
        self.calls: list[int] = []
        self.lowest: Mode | None = None
        self.over = False
        self._exact, self._given, self._limits = exact, limits, limits
        self._widened, self._surrogate = False, surrogate
        self._at: FloatArray | None = None  # how far the present search has come
        self._spent = 0  # evaluations by it so far
        self._ends: list[Mode] = []  # the different places where searches ended
        self._modes: Modes | None = None
        self._rows = Evaluations.empty(exact.dim)  # seen where there are no second derivatives
        self._searched: list[int] = []  # by which of the searches

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
        if self._modes is None:
            return None
        return self._modes.take(np.argsort(self._modes.values, kind="stable"))

    @property
    def n_evaluated(self) -> int:
        """Evaluations so far."""
        return sum(self.calls) + self._spent

    @stage(SEARCHING)
    def step(self, rng: np.random.Generator) -> None:
        """Go on for about :data:`SLICE` more evaluations; the generator is for more starts.

        Raises
        ------
        TargetError
            If the target falls and falls before any search has ended.
        """
        before = self.n_evaluated
        while not self.over and self.n_evaluated < before + SLICE:
            check_deadline()
            self._limits = self._allowed()
            abreast = self._abreast()
            if abreast > 1:
                self._go_on_abreast(abreast)
            else:
                self._go_on()
            if self._at is None:
                self._widen(rng)
                begun, most = len(self.led), self._limits.starts(self._exact)
                spent = begun >= LEAST and sum(self.calls[1:]) >= self._limits.later
                self.over = spent or begun >= min(most, len(self.starts))
            if self.n_evaluated >= self._limits.total:
                self.stop()

    def stop(self) -> None:
        """End the searches when there is no time for more; the present one led nowhere."""
        if not self.over and self._modes is not None:
            self._lead_to(-1)
        self.over = True

    def _allowed(self) -> Limits:
        """Return the limits, with what is spare while one of several modes was found once."""
        given = self._given
        if len(self._ends) < 2 or self._modes is None or self._modes.unseen()[0] == 0.0:
            return given
        more = given.spare
        return attrs.evolve(given, total=given.total + more, later=given.later + more, spare=0)

    # --- several searches ---

    def _abreast(self) -> int:
        """Return how many searches to make in step: those that would be made in any case."""
        if self._modes is None or self._at is not None or goes_by_values(self._exact):
            return 1
        begun, later = len(self.led), self.calls[1:]
        n = LEAST - begun
        if begun >= LEAST:
            n = int((self._limits.later - sum(later)) / max(*later, 1))
        most = min(self._limits.starts(self._exact), len(self.starts)) - begun
        return min(n, most, (self._limits.total - self.n_evaluated) // self._longest)

    def _go_on_abreast(self, n: int) -> None:
        """Make n searches, none of which knows what the others find."""
        begun, known, rows = len(self.led), len(self._ends), len(self._rows)

        def search_from(start: FloatArray) -> Callable[[Potential], ModeSearch]:
            one = copy.copy(self)
            one._at = start
            one.led, one.calls = [*self.led], [*self.calls]
            one._ends, one._searched = [*self._ends], [*self._searched]

            def search(potential: Potential) -> ModeSearch:
                one._exact = potential
                while one._at is not None:
                    one._go_on()
                return one

            return search

        starts = self.starts[begun : begun + n]
        for one in run_abreast(self._exact, [search_from(start) for start in starts]):
            self._join(one, known, one._rows.take(np.arange(rows, len(one._rows))))

    def _join(self, one: ModeSearch, known: int, rows: Evaluations) -> None:
        """Take in one more search and its rows, which began when so many modes were known."""
        lows = [mode for mode in (self.lowest, one.lowest) if mode is not None]
        self._add(rows)
        self._spent, self.lowest = one.calls[-1], min(lows, key=lambda mode: mode.value)
        led = one.led[-1]
        if led < 0:
            self._lead_to(-1)
        elif led < known:
            self._lower_end(led, one._ends[led])
        elif known == len(self._ends):
            self._ends.append(one._ends[led])
            self._lead_to(led)
        else:  # others have found modes meanwhile, and it may be one of these
            self._end(one._ends[led])

    # --- one search ---

    @property
    def _longest(self) -> int:
        """Evaluations that a later search may take."""
        return max(LATER, 2 * self.calls[0])

    def _go_on(self) -> None:
        exact = self._exact
        at = self.starts[len(self.led)] if self._at is None else self._at
        watch = ModeWatch(self._modes, exact.dim, self._surrogate)
        span = self._longest - self._spent if self.led else SLICE
        most = max(min(span, self._limits.total - self.n_evaluated), 1)
        # by values a search would leave them aside
        scales = None if goes_by_values(exact) else self._scales(at)
        try:
            found = find_mode(
                exact, at, max_calls=most, tolerance=CLOSE, until=watch, scales=scales
            )
        except NumericalError:  # the target is not finite at this start
            self._spent = 1
            self._lead_to(-1)
            return
        stalls, own = self._stalls(found), self._slope(at) is not None  # by scales of its own
        self._spent += found.calls
        if found.hessian is None:
            self._add(watch.seen())
        if watch.mode is not None:
            self._lead_to(watch.mode)
            return
        if not self._ends:
            self._demand_a_density(found, at)
        if self.lowest is None or found.value < self.lowest.value:
            self.lowest = found
        if np.array_equal(found.position, at) or stalls:
            self._end(found)
        elif found.converged and (own or self.led or self._is_close(found)):
            self._end(found, sure=own)
        elif not self.led or found.calls < most:
            self._at = found.position
        elif found.value <= self.lowest.value + exact.dim + WIDE:
            self._end(found)  # it took too long, but low places count as where it ends
        else:
            self._lead_to(-1)

    def _demand_a_density(self, found: Mode, at: FloatArray) -> None:
        """Raise where no distribution may have such a target."""
        exact = self._exact
        demand_bottom(exact, found)
        rows = self._rows_of().gradients
        ended = found.converged or np.array_equal(found.position, at)
        plain = found.hessian is None and calls_per_gradient(exact) == 1
        if ended and plain and rows is not None:
            # what is seen far out is nothing to learn from, and shortens no search
            aside = cast(Any, exact).fork(keep=False) if hasattr(exact, "fork") else exact
            demand_walls_by_gradients(aside, found, rows, most=self._limits.beside)
        values = demand_walls(exact, found)
        self._spent += -(-values // calls_per_gradient(exact))

    def _scales(self, at: FloatArray) -> Scales | None:
        """Return what is known by now of the covariance about where a search may lead."""
        predicted = self._predicted(at)
        if predicted is not None:
            return Scales(covariance=predicted)
        if self._modes is not None:
            return Scales(covariance=self._modes.covariances[0], least=self._modes.values[0])
        return None

    def _predicted(self, at: FloatArray) -> FloatArray | None:
        """Return the covariance predicted at a position (dim,) that this search has seen."""
        slope = self._slope(at)
        return None if slope is None else predicted_covariance(at, slope, self._rows_of())

    def _rows_of(self) -> Evaluations:
        """Return what the present search has seen."""
        return self._rows.take(np.array(self._searched, dtype=int) == len(self.led))

    def _slope(self, at: FloatArray) -> FloatArray | None:
        """Return the gradient (dim,) that a search saw at a position (dim,); None at any other."""
        here = np.flatnonzero((self._rows.positions == at).all(axis=1))
        if not len(here) or self._rows.gradients is None:
            return None
        return np.asarray(self._rows.gradients[here[0]])

    def _is_close(self, found: Mode) -> bool:
        """Return whether a search that gains no more is near a mode by predicted scales, too."""
        if found.decrement is not None:
            return found.decrement < CLOSE
        covariance = self._predicted(found.position)
        if covariance is None:
            return True
        return bool(0.5 * found.gradient @ covariance @ found.gradient < CLOSE)

    def _stalls(self, found: Mode) -> bool:
        """Return whether the first search gains next to nothing for many values.

        In a narrow valley that bends there is no end to it, and other starts may do better.
        """
        if self.led or self._at is None or self.lowest is None:
            return False
        return calls_per_gradient(self._exact) > 1 and self.lowest.value - found.value < STALLED

    def _add(self, rows: Evaluations) -> None:
        self._rows = Evaluations.join([self._rows, rows], self._exact.dim)
        self._searched += [len(self.led)] * len(rows)

    def _end(self, found: Mode, *, sure: bool = True) -> None:
        """End a search at a known mode, or at another.

        One that is not sure goes on before there is another: in the scales of a known mode it may
        creep on its way there.
        """
        known = same_mode(self._modes, found.position, found.value)
        if known is None:
            most = self._limits.total - self.n_evaluated
            known, calls = valley_of(self._exact, self._ends, found, most)
            self._spent += calls
        if known is not None:
            self._lower_end(known, found)
        elif sure or self._is_close(found):
            self._ends.append(found)
            self._lead_to(len(self._ends) - 1)
        else:
            self._at = found.position

    def _lower_end(self, known: int, found: Mode) -> None:
        """End a search that led to a known mode, perhaps lower than before."""
        self._ends[known] = min(self._ends[known], found, key=lambda mode: mode.value)
        self._lead_to(known)

    def _lead_to(self, mode: int) -> None:
        """Take note that a search led to a mode, or nowhere."""
        self.led.append(mode)
        self.calls.append(self._spent)
        self._at, self._spent = None, 0
        if not (ends := self._ends):
            return
        self._modes = Modes(  # with what is known of them by now
            positions=np.stack([end.position for end in ends]),
            values=np.array([end.value for end in ends]),
            covariances=np.stack([self._covariance(k) for k in range(len(ends))]),
            ended=np.array([self.led.count(k) for k in range(len(ends))]),
            unfinished=self.led.count(-1),
            converged=np.array([end.converged for end in ends]),
            concave=CONVEX in self._exact.capabilities,
        )

    def _covariance(self, k: int) -> FloatArray:
        end = self._ends[k]
        if end.hessian is not None:
            return inverse_curvature(end.hessian)
        led = np.array(self.led)[np.array(self._searched)]
        rows = self._rows.take(np.asarray(led == k))
        return predicted_covariance(end.position, end.gradient, rows)

    def _widen(self, rng: np.random.Generator) -> None:
        """Add starts, once a mode is known."""
        most, begun = self._limits.starts(self._exact), len(self.led)
        if self._widened or self._modes is None or begun >= most:
            return
        more = more_starts(
            self._exact,
            self._modes.positions[0],
            self._modes.covariances[0],
            self.starts[begun:],
            max(most - len(self.starts), 0),
            rng,
        )
        self.starts, self._widened = np.vstack([self.starts[:begun], more]), True


def more_starts(
    exact: Potential,
    mode: FloatArray,
    covariance: FloatArray,
    others: FloatArray,
    n: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Return n starts more than others (m, dim) to look for modes from, the most telling first.

    The others are where chains start: the farthest first, in turn with starts about the first mode
    that was found, by the covariance there, and with such as are spread over everything. A target
    that draws its own starts knows where it makes sense, and they stay there.
    """
    farthest = np.argsort(-np.linalg.norm(others - mode, axis=1), kind="stable")
    if not n:
        return others[farthest]
    families = [others[farthest], spread_positions(exact, rng, n, others)]
    if INITIAL not in exact.capabilities:
        families.insert(1, mode + _about(covariance, n, rng))
    turns = chain.from_iterable(zip_longest(*families))
    starts = [start for start in turns if start is not None][: len(others) + n]
    return np.reshape(starts, (-1, len(mode)))


def _about(covariance: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    """Return moves away from a mode, along orthogonal axes and both ways, shape (n, dim)."""
    dim = len(covariance)
    frames = []
    for _ in range(-(-n // (2 * dim))):
        frame, _ = np.linalg.qr(rng.standard_normal((dim, dim)))
        frames.append(np.stack([frame, -frame], axis=1).reshape(2 * dim, dim))
    moves = FAR * np.sqrt(dim) * np.concatenate(frames)[:n] @ cholesky_factor(covariance).T
    most = np.maximum(_MOST, _MOST_SDS * np.sqrt(np.diag(covariance)))
    over = np.maximum(np.max(np.abs(moves) / most, axis=1, keepdims=True), 1.0)
    return np.asarray(moves / over)
