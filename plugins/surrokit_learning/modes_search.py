"""Searches for modes from many starts."""

from __future__ import annotations

from itertools import chain, zip_longest
from typing import Any, cast

import attrs
import numpy as np

from surrokit.capabilities import CONVEX, INITIAL
from surrokit.errors import NumericalError
from surrokit.interfaces import Evaluations
from surrokit.limits import check_deadline
from surrokit.mode.descent import Mode, Scales
from surrokit.mode.search import demand_bottom, demand_walls, find_mode, goes_by_values
from surrokit.mode.starts import exchanged, reach_of, spread_positions
from surrokit.model.model import calls_per_gradient
from surrokit.modes import Modes
from surrokit.potentials import Potential
from surrokit.surrogate.whitening import cholesky_factor
from surrokit.types import FloatArray
from surrokit_learning.modes_found import (
    SAME,
    WIDE,
    curved_valley_of,
    inverse_curvature,
    leads_to,
    predicted_covariance,
    same_mode,
    valley_of,
)

LEAST = 3
"""Searches that are made as long as there are starts, whatever they cost; one more where the first
is quick."""

SLICE = 50
"""Evaluations of a search before it goes on in scales by what it has seen, and of a step."""

UNSEEN = 0.1
"""Bound of the part of further searches that end at other modes, and expected number of modes that
are hidden, below which none are made once two searches have found each of several modes."""

CLOSE = 0.01
"""Nats above a mode at which a search may end: 0.14 standard deviations away."""

FAR = 5
"""Further searches for each dimension after the second, where one mode lies beyond all starts."""

LATER, LONGER = 20, 5
"""Evaluations that a later search may take, or twice those of the first one if these are more; and
how many times as many if it is cut off where there may be another mode."""


@attrs.frozen(kw_only=True)
class Limits:
    """What searches may evaluate."""

    total: int
    later: float  # by those after the first; three begin in any case, and may finish
    searches: int | None = None  # starts at most; None for as many as ``later`` allows
    spare: int = 0  # more for each mode after the first, while more may be found
    most: float = np.inf  # in all, whatever is found
    beside: int = 0  # gradients beside the first mode, on top of these; twice if it lies far out

    @staticmethod
    def unnoticed(calls: int | None) -> int:
        """Return how many calls are few beside those of a run, which are limited or not."""
        return int(0.01 * (4000 if calls is None else calls))


@attrs.define(eq=False)
class _Search:
    at: FloatArray
    rows: Evaluations  # seen where there are no second derivatives
    calls: int = 0
    most: float = np.inf  # of them
    longer: bool = False  # whether it was to go on, though it was cut off
    found: Mode | None = None  # how far it has come
    leads: int | None = None  # the known mode that the rest of its way leads to
    over: bool = False
    ended: bool = False  # at a mode, known or not
    is_news: bool = False  # whether that was not known, or not so low

    def gradient_at(self, position: FloatArray) -> FloatArray | None:
        """Return the gradient seen at a position (dim,); None at any other."""
        here = np.flatnonzero((self.rows.positions == position).all(axis=1))
        gradients = self.rows.gradients
        return None if not len(here) or gradients is None else np.asarray(gradients[here[0]])

    @property
    def left(self) -> float | None:
        """Nats that a search may still gain, by predicted scales; None where nothing is known."""
        found = cast(Mode, self.found)
        if found.decrement is not None or self.gradient_at(found.position) is None:
            return found.decrement
        covariance = predicted_covariance(found.position, found.gradient, self.rows)
        return float(0.5 * found.gradient @ covariance @ found.gradient)


class ModeSearch:
    """Searches on one target, the first from the best of ``starts (n, dim)`` by U there.

    More starts follow when a mode is known. The mode that each search that has ended ``led`` to is
    -1 for none; ``lowest`` is the least potential that any has come to.
    """

    def __init__(
        self,
        exact: Potential,
        starts: FloatArray,
        values: FloatArray,
        limits: Limits,
    ) -> None:
        order = np.argsort(values != np.min(values), kind="stable")
        _, first = np.unique(starts[order], axis=0, return_index=True)
        self.starts: FloatArray = starts[order][np.sort(first)]
        self.led: list[int] = []
        self.calls: list[int] = []
        self._begun = 0  # searches that have begun at a start, and ended
        self._without_valley = 0  # gradients of looks for curved valleys where there was none
        self.lowest: Mode | None = None
        self.over = self._widened = False
        self._least = LEAST
        self._reach: float | None = None
        self._exact, self._limits = exact, limits
        self._ends: list[Mode] = []  # the different places where searches ended
        self._covariances: list[FloatArray] = []  # there
        self._rows: list[Evaluations] = []  # that each search has seen
        self._modes: Modes | None = None
        self._begin()

    @property
    def best(self) -> FloatArray:
        """The best position so far, shape (dim,)."""
        return np.asarray(self.starts[0]) if self.lowest is None else self.lowest.position

    @property
    def found(self) -> Modes | None:
        """The modes, that of least potential first; None before a search has ended."""
        if self._modes is None:
            return None
        return self._modes.take(np.argsort(self._modes.values, kind="stable"))

    @property
    def n_evaluated(self) -> int:
        """Evaluations so far."""
        return sum(self.calls) + self._now.calls

    def step(self, rng: np.random.Generator) -> None:
        """Go on for about :data:`SLICE` more evaluations; the generator is for more starts.

        TargetError is raised if no distribution may have such a target.
        """
        before = self.n_evaluated
        while not self.over and self.n_evaluated < before + SLICE:
            check_deadline()
            self._go_on(self._now)
            if self._now.over and self._join(self._now):
                self._begun += 1
                self._exchange(self._now)
                self._widen(rng)
                self._begin()
            extra, spent = self._spare, sum(self.calls[1:])
            enough = self._begun >= self._least and spent >= self._limits.later + extra
            enough = enough and not self._is_rough
            self.over = enough or self._begun >= min(self._most_starts, len(self.starts))
            self.over = self.over or self.n_evaluated >= self._limits.total + extra

    @property
    def _most_starts(self) -> int:
        if CONVEX in self._exact.capabilities:
            return 1
        given, usual = self._limits.searches, min(8 + self._exact.dim, 12)
        return usual * max(2 * self._new - 1, 1) + self._astray if given is None else given

    @property
    def _new(self) -> int:
        """How many modes matter beside the first, while further searches may find others.

        In a funnel searches end at more and more places, and nearly all have no mass.
        """
        modes = self._modes
        if modes is None or len(modes) < 2:
            return 0
        part, bound = modes.unseen()
        left = part > 0.0 or bound > UNSEEN or modes.hidden > UNSEEN
        known = max(int(np.count_nonzero(modes.matters & modes.converged)) - 1, 0)
        return known if left else 0

    @property
    def _is_rough(self) -> bool:
        """Whether each search has ended at a mode of its own: the deepest is hardly among them."""
        modes = self._modes
        return modes is not None and bool((modes.ended.max() == 1) & modes.converged.all())

    @property
    def _spare(self) -> int:
        limits = self._limits
        more = limits.spare * self._new + self._astray + self._without_valley
        return int(min(more, max(limits.most - limits.total, 0)))

    @property
    def _astray(self) -> int:
        """How much more to look where the first mode lies beyond all starts.

        A plane is full of the usual ones; in more dimensions more may be hidden. What is found
        there says that as much again is worth it.
        """
        if self._reach is None:
            return 0
        most, modes = self._limits.beside, self._modes
        if modes is not None and np.count_nonzero(modes.matters) > 1:
            return 2 * most
        return min(FAR * max(self._exact.dim - 2, 0), most)

    def _widen(self, rng: np.random.Generator) -> None:
        """Add starts, once a mode is known, and again while searches find new ones."""
        most, begun, modes = self._most_starts, self._begun, self._modes
        is_wide = self._widened and begun < len(self.starts)
        if is_wide or modes is None or begun >= most:
            return
        mode, covariance = modes.positions[0], modes.covariances[0]
        # a search that creeps goes down a funnel, and others would
        quick = bool(modes.converged[0]) and self.calls[0] <= LATER
        if not self._widened and self._limits.searches is None and quick:
            far = reach_of(self._exact, self.starts, mode[None])
            self._reach = None if far is None else float(far.max())
            most = self._most_starts
        reach: float | FloatArray | None = self._reach
        if self._widened and reach is None:
            reach = reach_of(self._exact, self.starts[:begun], modes.positions[modes.matters])
        self._least = LEAST + int(quick)
        more, others = max(most - len(self.starts), 0), self.starts[begun:]
        added = more_starts(self._exact, mode, covariance, others, more, rng, reach, quick=quick)
        self.starts, self._widened = np.vstack([self.starts[:begun], added]), True

    def _begin(self) -> None:
        at = self.starts[min(self._begun, len(self.starts) - 1)]
        most = max(LATER, 2 * self.calls[0]) if self._begun else np.inf
        self._now = _Search(at, Evaluations.empty(self._exact.dim), most=most)

    # --- one search ---

    def _go_on(self, search: _Search) -> None:
        """Search on for a slice from where a search is."""
        exact, total = self._exact, self._limits.total + self._spare
        allowed = min(total - self.n_evaluated, search.most - search.calls)
        most = int(max(min(SLICE, allowed), 1))
        seen: list[tuple[FloatArray, float, FloatArray]] = []

        def watch(*at: Any) -> bool:
            seen.append(at)
            search.leads = leads_to(self._modes, *at)
            return search.leads is not None

        slope = search.gradient_at(search.at)
        scales = None  # by values a search finds its own
        if slope is not None and not goes_by_values(exact):
            covariance = predicted_covariance(search.at, slope, search.rows)
            scales = Scales(covariance=covariance)
        elif self._modes is not None and not goes_by_values(exact):
            known = self._modes
            scales = Scales(covariance=known.covariances[0], least=known.values[0])
        try:
            found = find_mode(
                exact, search.at, max_calls=most, tolerance=CLOSE, until=watch, scales=scales
            )
        except NumericalError:  # the target is not finite at this start
            search.calls, search.over = search.calls + 1, True
            return
        still = np.array_equal(found.position, search.at)
        search.at, search.found = found.position, found
        search.calls += found.calls
        if _curvature_of(found) is None and seen:
            positions, values, gradients = map(np.array, zip(*seen, strict=True))
            rows = Evaluations(positions=positions, values=values, gradients=gradients)
            search.rows = Evaluations.join([search.rows, rows], exact.dim)
        if search.leads is not None:
            search.over = True
            return
        at_rest = still or found.converged
        if not self._ends:
            self._demand_a_density(search, at_rest=at_rest)
        if self.lowest is None or found.value < self.lowest.value:
            self.lowest = found
        if at_rest:
            search.leads = same_mode(self._modes, found.position, found.value)
            # in the scales of a known mode a search may creep on its way to another
            search.ended = still or slope is not None or search.leads is not None
            search.ended = search.ended or (search.left or 0.0) < CLOSE
        search.over = search.ended or allowed <= found.calls

    def _demand_a_density(self, search: _Search, *, at_rest: bool) -> None:
        """Raise where no distribution may have such a target."""
        exact, found = self._exact, cast(Mode, search.found)
        demand_bottom(exact, found)
        if not at_rest:
            return
        price, looked, gradients = calls_per_gradient(exact), exact, None
        if found.hessian is None and price == 1:
            # what is seen far out is nothing to learn from, and shortens no search
            looked = cast(Any, exact).fork(keep=False) if hasattr(exact, "fork") else exact
            gradients, found = search.rows.gradients, attrs.evolve(found, converged=True)
        taken = demand_walls(looked, found, gradients, beside=self._limits.beside)
        search.calls += 0 if gradients is not None else -(-taken // price)

    def _join(self, search: _Search) -> bool:
        """Take note of where a search has ended: at a known mode, at another, or nowhere.

        Return False where it is to go on.
        """
        found, led, ended = search.found, search.leads, search.ended
        if found is not None and self.lowest is not None and led is None:
            ended = ended or found.value <= self.lowest.value + self._exact.dim + WIDE
        if ended and led is None and found is not None:
            led = same_mode(self._modes, found.position, found.value)
            if led is None:
                led = self._in_valley_of(search, found)
            if led is None and self._goes_on(search):
                return False
            if led is None:
                led = len(self._ends)
                self._ends.append(found)
                search.is_news = True
        if ended and led is not None and found is not None:
            search.is_news |= found.value < self._ends[led].value - SAME
            self._ends[led] = min(self._ends[led], found, key=lambda mode: mode.value)
        self.led.append(-1 if led is None else led)
        self.calls.append(search.calls)
        self._rows.append(search.rows)
        if led is not None:
            self._covariances[led : led + 1] = [self._covariance(led)]
        if self._ends:
            self._modes = Modes(  # with what is known of them by now
                positions=np.stack([end.position for end in self._ends]),
                values=np.array([end.value for end in self._ends]),
                covariances=np.stack(self._covariances),
                ended=np.array([self.led.count(k) for k in range(len(self._ends))]),
                unfinished=self.led.count(-1),
                converged=np.array([end.converged for end in self._ends]),
                concave=CONVEX in self._exact.capabilities,
            )
        return True

    def _in_valley_of(self, search: _Search, found: Mode) -> int | None:
        """Return the known end that lies in one valley with a search's, straight or curved."""
        exact, most = self._exact, self._limits.total - self.n_evaluated
        led, calls = valley_of(exact, self._ends, found, most)
        if led is None and self._ends:
            covariance = self._covariance_of(found, [search.rows])
            led, more = curved_valley_of(exact, self._ends, found, covariance, most - calls)
            calls, self._without_valley = (
                calls + more,
                self._without_valley + (more if led is None else 0),
            )
        search.calls += calls
        return led

    def _exchange(self, search: _Search) -> None:
        """Take note of the modes to which exchanges of numbers lead from one that is new.

        By one value it is known whether the density is the same there; all that was seen about the
        one mode then holds about the other. None is made where calls are few.
        """
        exact, found, modes = self._exact, search.found, self._modes
        if found is None or modes is None or not search.is_news:
            return
        if not modes.matters[self.led[-1]]:  # what has no mass needs no counterpart
            return
        orders = exchanged(exact, found.position)
        if 2 * len(orders) > self._limits.beside or CONVEX in exact.capabilities:
            return
        for order in orders:
            at, rows, hessian = found.position[order], search.rows, found.hessian
            if same_mode(self._modes, at, found.value) is not None:
                continue
            value = float(exact.value(at[None])[0])
            if not np.isclose(value, found.value, rtol=1e-8):
                self.calls[-1] += 1
                continue
            end = attrs.evolve(
                found,
                position=at,
                value=value,
                gradient=found.gradient[order],
                hessian=None if hessian is None else hessian[np.ix_(order, order)],
            )
            seen = Evaluations(
                positions=rows.positions[:, order],
                values=rows.values,
                gradients=None if rows.gradients is None else rows.gradients[:, order],
            )
            other = _Search(at, seen, calls=1, found=end, over=True, ended=True)
            self._join(other)
            self._exchange(other)

    def _goes_on(self, search: _Search) -> bool:
        """Return whether a search goes on that was cut off, for another time.

        What is lower than all modes, and has more than a nat to go, is a funnel as a rule.
        """
        found, left = search.found, self._limits.total + self._spare - self.n_evaluated
        if search.ended or search.longer or found is None or not self._ends or left <= 0:
            return False
        more = np.inf if search.left is None else search.left
        if more > 1.0 and found.value < min(end.value for end in self._ends):
            return False
        search.longer, search.over, search.most = True, False, LONGER * search.most
        return True

    def _covariance(self, k: int) -> FloatArray:
        rows = [rows for rows, led in zip(self._rows, self.led, strict=True) if led == k]
        return self._covariance_of(self._ends[k], rows)

    def _covariance_of(self, end: Mode, rows: list[Evaluations]) -> FloatArray:
        if (curvature := _curvature_of(end)) is not None:
            return inverse_curvature(curvature)
        rows_there = Evaluations.join(rows, self._exact.dim)
        return predicted_covariance(end.position, end.gradient, rows_there)


def _curvature_of(end: Mode) -> FloatArray | None:
    """Return second derivatives at the end of a search; None where differences failed: all zero."""
    return end.hessian if end.hessian is not None and end.hessian.any() else None


def more_starts(
    exact: Potential,
    mode: FloatArray,
    covariance: FloatArray,
    others: FloatArray,
    n: int,
    rng: np.random.Generator,
    reach: float | FloatArray | None = None,
    *,
    quick: bool = True,
) -> FloatArray:
    """Return n starts more than others (m, dim) to look for modes from, the most telling first.

    The others are where chains start: the farthest first, in turn with starts about the first mode
    that was found, and with such as are spread over everything. Of those about a mode that was
    ``quick`` to find, which take the fewest evaluations, one comes before all; in a funnel it would
    lead deeper. They lie along orthogonal axes, then
    the other way, ten standard deviations, times the root of the dimension, away:
    of 2 dim such starts one lies beyond the middle between this mode and any other of the same
    shape within 20 standard deviations. But e^20 is far for a logarithm. A target that draws its
    own starts knows where it makes sense, and they stay there. Where the mode lies beyond all
    starts, with a ``reach`` for others, these are only spread.
    """
    farthest = others[np.argsort(-np.linalg.norm(others - mode, axis=1), kind="stable")]
    if not n:
        return farthest
    families, dim = [farthest, spread_positions(exact, rng, n, others, reach)], len(mode)
    if INITIAL not in exact.capabilities and reach is None:
        draws = [rng.standard_normal((dim, dim)) for _ in range(-(-n // (2 * dim)))]
        bases = [np.linalg.qr(each)[0] for each in draws]
        axes = np.concatenate([sign * basis for basis in bases for sign in (1.0, -1.0)])[:n]
        moves = 10.0 * np.sqrt(dim) * axes @ cholesky_factor(covariance).T
        most = np.maximum(20.0, 5.0 * np.sqrt(np.diag(covariance)))
        over = np.maximum(np.max(np.abs(moves) / most, axis=1, keepdims=True), 1.0)
        about = mode + moves / over
        lead = int(quick)
        families = [about[:lead], farthest, about[lead:], families[1]]
    turns = chain.from_iterable(zip_longest(*families))
    starts = [start for start in turns if start is not None][: len(others) + n]
    return np.reshape(starts, (-1, dim))
