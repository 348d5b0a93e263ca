"""Tuning in warm-up: step size by dual averaging, metric by windows, and path lengths."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import attrs
import numpy as np

from surrokit.capabilities import GRADIENT, GRADIENT_ALONE
from surrokit.interfaces import Sampler, StepInfo, Tuning
from surrokit.marginals import Warp, fit_heavy, fit_marginals
from surrokit.potentials import Potential
from surrokit.types import BoolArray, FloatArray

FIRST_LENGTH = 4
"""Transitions in a sub-chain while nothing is known."""

MAX_LENGTH = 512
"""Longest sub-chain that tuning asks for."""

FIRST_STEP_SIZE = 0.5
"""Start of the search for a step size, if nothing better is known."""

STEPS_BEFORE_COVARIANCE = 10
"""Longest path, in steps, while the scales of the target are unknown."""

LEAST_TO_SETTLE = 80
"""Iterations of a window that may tell that the covariance is known well enough."""

LAST = 50
"""Iterations after the last window, for the step size alone."""

_CENTRE = math.log(10.0)  # dual averaging shrinks towards ten times the step size found
_FARTHEST = 200.0  # bound of log step sizes


# --- lengths of sub-chains ---


def _padded(array: FloatArray) -> FloatArray:
    """Return numbers for 1, 2, 4, ... transitions, those that are not given being 0."""
    return np.pad(array, (0, MAX_LENGTH.bit_length() - len(array)))


def _zeros() -> FloatArray:
    return _padded(np.empty(0))


@attrs.frozen(kw_only=True, eq=False)
class LengthSearch:
    """Statistics of sub-chains of 1, 2, 4, ... transitions."""

    normal_variance: float  # of V for a normal distribution: dim / 2
    # for each length: iterations with it, and sums over these of the share of chains with a
    # decision, and of the acceptance per chain, 0 without a decision
    tries: FloatArray = attrs.field(factory=_zeros)
    decisions: FloatArray = attrs.field(factory=_zeros)
    acceptances: FloatArray = attrs.field(factory=_zeros)
    # for each number of transitions: chains seen after it (a longer sub-chain shows shorter ones
    # too), and sums over these of the jump and of (V' - V)^2 / 2
    seen: FloatArray = attrs.field(factory=_zeros)
    jumps: FloatArray = attrs.field(factory=_zeros)
    changes: FloatArray = attrs.field(factory=_zeros)
    # sums over seen[0] chains of V - level at the start, and of its square
    values: float = 0.0
    squares: float = 0.0
    level: float = 0.0  # a value of V, subtracted so that squares do not cancel
    top: int = 1  # exponent of the longest length to try

    def upcoming(self) -> int:
        """Return the length to try next: the one least tried, and the longest of several."""
        return int(2 ** (self.top - int(np.argmin(self.tries[self.top :: -1]))))

    def update(self, info: StepInfo, moving: BoolArray) -> LengthSearch:
        """Return the statistics after an iteration with the :meth:`upcoming` length.

        Parameters
        ----------
        info
            What happened; without an ``excursion`` nothing changes.
        moving : ndarray of bool, shape (chains,)
            Chains that are not stuck.
        """
        excursion = info.excursion
        if excursion is None or not np.isfinite(excursion.values[moving]).all():
            return self
        one, acceptance = _zeros(), info.acceptance[moving]
        one[self.upcoming().bit_length() - 1] = 1.0
        jumps, values = excursion.jumps[moving], excursion.values[moving]
        level = self.level if self.seen[0] else float(values[:, 0].mean())
        n, m = jumps.shape
        found = attrs.evolve(
            self,
            tries=self.tries + one,
            decisions=self.decisions + one * float((~np.isnan(acceptance)).mean()),
            acceptances=self.acceptances + one * float(np.nansum(acceptance) / len(acceptance)),
            seen=self.seen + _padded(np.full(m, float(n))),
            jumps=self.jumps + _padded(jumps.sum(axis=0)),
            changes=self.changes
            + _padded(0.5 * np.square(values[:, 1:] - values[:, :1]).sum(axis=0)),
            values=self.values + float((values[:, 0] - level).sum()),
            squares=self.squares + float(np.square(values[:, 0] - level).sum()),
            level=level,
        )
        return attrs.evolve(found, top=found.top + 1) if found._too_short() else found

    def forgotten(self) -> FloatArray:
        """Return the forgetting after 1, 2, 4, ... transitions: 1 is complete, NaN is unseen.

        It is 1 minus the correlation with the start, of positions or of V, whichever is smaller.
        """
        count = self.seen[0]
        with np.errstate(invalid="ignore", divide="ignore"):
            variance = self.squares / count - (self.values / count) ** 2
            # a variance above the normal one mostly means that chains still come in from the tails
            of_values = self.changes / self.seen / min(variance, self.normal_variance)
            return np.asarray(np.fmin(np.fmin(self.jumps / self.seen, of_values), 1.0))

    def _too_short(self) -> bool:
        """Return whether half of the longest length clearly does not forget enough.

        The test is repeated after every iteration, so it must not pass by chance.
        """
        half = self.top - 1
        if self.tries[half : self.top + 1].min() < 5 or self.top + 1 == len(self.tries):
            return False
        error = np.sqrt(2.0 / self.seen[half])  # relative error of a mean of squared normal numbers
        return bool(self.forgotten()[half] * (1.0 + 2.5 * error) < 0.9)

    def age(self) -> LengthSearch:
        """Return the statistics with a quarter of their weight, after a change of covariance."""
        summed = ("tries", "decisions", "acceptances", "seen", "jumps", "changes")
        names = (*summed, "values", "squares")
        return attrs.evolve(self, **{name: 0.25 * getattr(self, name) for name in names})

    def best(self) -> int:
        """Return the length to keep.

        It is the shortest that gains nearly as much as the best, or twice that length if this gains
        nearly as much too: a correlation of 0.1 then becomes 0.01.
        """
        tried = np.flatnonzero(self.tries)
        if not tried.size:
            return FIRST_LENGTH
        # chains that stayed already count as jumps of 0, so acceptance is that of moves alone
        accepted = self.acceptances[tried] / np.maximum(self.decisions[tried], 1e-300)
        gains = accepted * self.forgotten()[tried]
        good = tried[gains >= 0.9 * gains.max()]
        if not good.size:
            return FIRST_LENGTH
        power = int(good[0])
        return int(2 ** (power + 1 if power + 1 in good else power))


# --- windows, and what is learnt from one ---


def windows(n_iterations: int, *, arrived: bool = False) -> tuple[int, tuple[int, ...]]:
    """Return the iteration after which the first window begins, and the ends of all windows.

    The lengths are Stan's: 75 iterations at the start, windows that double from 25 on, and 50
    iterations at the end for the step size alone. A warm-up of fewer than 150 iterations has one
    window, in proportion; one of fewer than 40 has none. Chains that have ``arrived`` where the
    mass is need no start, and what they begin with may be no more than a guess: their first window
    begins after 5 iterations and takes 10.
    """
    if n_iterations < 40:
        return 0, ()
    first, length = (5, 10) if arrived else (75, 25)
    last = LAST
    if n_iterations < first + last + length:
        first, last = int(0.15 * n_iterations), int(0.25 * n_iterations)
        return first, (n_iterations - last,)
    ends, end = [], first
    while end < n_iterations - last:
        end += length
        length *= 2
        if end + length > n_iterations - last:  # the next one does not fit: stretch this one
            end = n_iterations - last
        ends.append(end)
    return first, tuple(ends)


def pool(
    positions: Sequence[FloatArray],
    gradients: Sequence[FloatArray | None],
    moving: BoolArray,
    known: FloatArray | None = None,
) -> FloatArray | None:
    """Return the covariance within the chains that move, shrunk to its diagonal; None if flat.

    Flat are those, too, that rounding makes singular, as where chains run off along a line.

    Where gradients are known it is X with X cov(g) X = cov(q), which minimises the Fisher
    divergence (Seyboldt, Carlson and Carpenter 2026, arXiv:2603.18845): on a normal target it is
    exact from more positions than dimensions on. The diagonal is that in the coordinates in which
    what was known so far is the identity. In the target's own coordinates it may be much wider than
    the target: where columns of a design are nearly collinear, by a factor of a thousand in the
    directions that are determined best.

    Parameters
    ----------
    positions, gradients
        Of each iteration of a window, shape (chains, dim). Gradients are of use only if they are
        known throughout.
    moving : ndarray of bool, shape (chains,)
        Chains that are not stuck.
    known : ndarray of shape (dim, dim), optional
        The covariance before.
    """
    n = int(moving.sum()) * (len(positions) - 1)
    if n < 1:
        return None
    covariance = _within(positions, moving, n)
    if not _is_usable(covariance):
        return None
    dim = len(covariance)
    slopes = [each for each in gradients if each is not None]
    if n > 2 * dim and len(slopes) == len(positions):
        with np.errstate(all="ignore"):  # what overflows is not used
            tension = _within(slopes, moving, n)
        if _is_usable(tension):
            covariance = _balance(covariance, tension)
    weight = n / (n + 5.0 + dim)
    diagonal = _diagonal(covariance, known)
    shrunk = np.asarray(weight * covariance + (1.0 - weight) * diagonal, dtype=np.float64)
    return None if _cholesky(shrunk) is None else shrunk


def _within(rows: Iterable[FloatArray], moving: BoolArray, n: int) -> FloatArray:
    """Return the mean scatter (dim, dim) of some chains about their own means."""
    mean: FloatArray | float = 0.0
    scatter: FloatArray | float = 0.0
    for count, row in enumerate(rows, start=1):
        deviation = row - mean
        mean = mean + deviation / count
        scatter = scatter + deviation[:, :, None] * (row - mean)[:, None, :]
    total = np.asarray(scatter)[moving].sum(axis=0) / n
    return np.asarray(0.5 * (total + total.T))


def _is_usable(covariance: FloatArray) -> bool:
    return bool(np.isfinite(covariance).all() and (np.diag(covariance) > 0).all())


def _cholesky(covariance: FloatArray) -> FloatArray | None:
    try:
        return np.asarray(np.linalg.cholesky(covariance))
    except np.linalg.LinAlgError:  # singular to rounding
        return None


def _balance(covariance: FloatArray, tension: FloatArray) -> FloatArray:
    """Return X with X cov(g) X = cov(q), or cov(q) where that is singular to rounding."""
    scales = (np.diag(covariance) / np.diag(tension)) ** 0.25
    try:
        root = np.linalg.cholesky(covariance / scales / scales[:, None])
        inside = root.T @ (tension * scales * scales[:, None]) @ root
        eigenvalues, vectors = np.linalg.eigh(0.5 * (inside + inside.T))
    except np.linalg.LinAlgError:
        return covariance
    if not eigenvalues[0] > 1e-14 * eigenvalues[-1]:
        return covariance
    factor = scales[:, None] * (root @ (vectors * eigenvalues**-0.25))
    return np.asarray(factor @ factor.T)


def _diagonal(covariance: FloatArray, known: FloatArray | None) -> FloatArray:
    """Return the diagonal part of a covariance, in coordinates where another is the identity."""
    from scipy.linalg import solve_triangular

    factor = None if known is None else _cholesky(known)
    if factor is None:
        return np.diag(np.diag(covariance))
    half = solve_triangular(factor, covariance, lower=True)
    variance = np.diag(solve_triangular(factor, half.T, lower=True))
    return np.asarray((factor * variance) @ factor.T)


def agree(one: FloatArray, other: FloatArray) -> bool:
    """Return whether two covariances (dim, dim) agree within a factor of 2 in every direction."""
    factor = _cholesky(one)
    if factor is None:
        return False
    between = np.linalg.solve(factor, np.linalg.solve(factor, other).T)
    eigenvalues = np.linalg.eigvalsh(0.5 * (between + between.T))
    return bool(eigenvalues[0] > 0.5 and eigenvalues[-1] < 2.0)


# --- all of a warm-up ---


@attrs.frozen(kw_only=True, eq=False)
class TunerState:
    """A tuner's state as a frozen record of arrays and numbers."""

    iteration: int = 0
    log_step: float  # to try next
    averaged_log_step: float
    centre: float  # log step size towards which dual averaging shrinks
    error: float = 0.0  # running mean of the target acceptance minus the acceptance
    averaged: int  # iterations averaged since the last restart
    searching: int  # iterations of search so far; -1 once the search is over
    direction: int = (
        0  # whether the search doubles (1) or halves (-1); 0 before its first iteration
    )
    recent: FloatArray  # acceptance of each chain of late, (chains,)
    # of the window: positions, and gradients there or None, each of shape (chains, dim)
    kept: tuple[tuple[FloatArray, FloatArray | None], ...] = ()
    covariance: FloatArray | None  # from the last full window, (dim, dim)
    warp: Warp | None  # the same
    settled: bool = False  # did a long window agree with the one before it about the covariance?
    lengths: LengthSearch
    given: Tuning | None  # known from the start, and not searched


def moves_by_gradients(sampler: Sampler) -> bool:
    """Return whether a sampler's moves follow gradients."""
    return bool(sampler.needs & {GRADIENT, GRADIENT_ALONE})


def has_to_approach(sampler: Sampler, potential: Potential, n_iterations: int) -> bool:
    """Return whether a sampler's chains have to look for the mass before they are tuned.

    They do if they move by gradients, which the potential has, if the step size or the metric is
    left to be tuned, and if there is time for it.
    """
    is_free = bool({"step_size", "metric"} & sampler.tunes)
    has_time = n_iterations >= 20
    offered = GRADIENT in potential.capabilities
    return moves_by_gradients(sampler) and is_free and has_time and offered


@attrs.frozen(kw_only=True)
class Tuner:
    """Tunes the settings that a sampler leaves free, over a warm-up of known length.

    Parameters
    ----------
    tunes
        Settings that the sampler leaves free.
    target_acceptance
        Mean acceptance that the step size aims at.
    largest_step
        Upper bound of the step size; a sampler may have an attribute of this name.
    known
        Tuning from an earlier run, which is kept if there is no warm-up.
    """

    tunes: frozenset[str]
    target_acceptance: float
    n_iterations: int
    largest_step: float = math.inf
    arrived: bool = False
    known: Tuning | None = None

    @classmethod
    def of(cls, sampler: Sampler, n_iterations: int, *, arrived: bool = False) -> Tuner:
        """Return the tuner of a sampler."""
        return cls(
            tunes=sampler.tunes,
            target_acceptance=sampler.target_acceptance,
            n_iterations=n_iterations,
            largest_step=sampler.largest_step,
            arrived=arrived,
            known=sampler.tuning,
        )

    def start(
        self,
        chains: int,
        dim: int,
        *,
        covariance: FloatArray | None = None,
        step_size: float | None = None,
        tuning: Tuning | None = None,
    ) -> TunerState:
        """Return the state before the first iteration, with all that is already known.

        Parameters
        ----------
        covariance : ndarray of shape (dim, dim), optional
            Covariance of the target, until a window gives a better one.
        step_size
            Start of the search for a step size.
        tuning
            Tuning found elsewhere, which replaces the search and the estimate of the covariance.
            The step size adapts from there as slowly as at the end of a warm-up.
        """
        step = FIRST_STEP_SIZE if step_size is None else step_size
        if not self.n_iterations and covariance is None and step_size is None:
            tuning = tuning or self.known
        if tuning is not None:
            step, covariance = tuning.step_size, tuning.covariance
        log_step = min(math.log(step), math.log(self.largest_step))
        searching = 0 if self.n_iterations and tuning is None else -1
        return TunerState(
            log_step=log_step,
            averaged_log_step=log_step,
            centre=log_step + (_CENTRE if tuning is None else 0.0),
            # the noise of a few iterations must not undo the evidence of many
            averaged=0 if tuning is None else 100,
            searching=searching,
            recent=np.ones(chains),
            covariance=covariance,
            lengths=LengthSearch(normal_variance=0.5 * dim),
            given=tuning,
            warp=None if tuning is None else tuning.warp,
        )

    def tuning(self, state: TunerState) -> Tuning:
        """Return the tuning for the next iteration, or after the warm-up for all draws."""
        if state.given is not None and state.given is self.known and not self.n_iterations:
            return state.given
        over, given = state.iteration >= self.n_iterations, state.given
        log_step = state.averaged_log_step if over and state.averaged else state.log_step
        n_steps = length = None
        if self._searches_step(state):
            n_steps = 1
        elif given is not None:
            n_steps = given.n_steps
        elif state.covariance is None and "n_steps" in self.tunes:
            n_steps = STEPS_BEFORE_COVARIANCE
        if "length" in self.tunes:
            length = None if given is None else given.length
            if length is None:
                tries = self._tries_lengths(state)
                length = state.lengths.upcoming() if tries else state.lengths.best()
        return Tuning(
            step_size=math.exp(log_step),
            covariance=state.covariance,
            n_steps=n_steps,
            length=length,
            warp=state.warp,
        )

    def update(
        self,
        state: TunerState,
        positions: FloatArray,
        info: StepInfo,
        gradients: FloatArray | None = None,
    ) -> TunerState:
        """Return the state after an iteration.

        Parameters
        ----------
        positions : ndarray of shape (chains, dim)
            Positions of the chains after the iteration.
        info
            What the iteration did to the chains.
        gradients : ndarray of shape (chains, dim), optional
            Those of the potential that chains move on, where they are; with them the covariance
            is known from fewer positions.
        """
        told = ~np.isnan(info.path_acceptance)  # NaN for a chain with nothing to decide
        recent = 0.8 * state.recent + (1 - 0.8) * info.path_acceptance  # of about five iterations
        recent = np.where(told, recent, state.recent)
        before = state
        state = attrs.evolve(state, iteration=state.iteration + 1, recent=recent)
        if not self.tunes:
            return state
        # a chain is stuck below a tenth of the median chain's acceptance
        moving = np.asarray(~(recent < 0.1 * np.median(recent)))
        if self._tries_lengths(before):
            state = attrs.evolve(state, lengths=state.lengths.update(info, moving))
        judged = moving & told
        if "step_size" in self.tunes and judged.any():
            state = self._step(state, float(info.path_acceptance[judged].mean()))
        return self._window(state, positions, moving, gradients)

    def skip(self, state: TunerState, positions: FloatArray) -> TunerState:
        """Return the state after an iteration that another kernel made.

        Its positions count towards the covariance; nothing is learnt about the step size.
        """
        state = attrs.evolve(state, iteration=state.iteration + 1)
        if not self.tunes:
            return state
        return self._window(state, positions, np.ones(len(positions), dtype=bool), None)

    def restart(self, state: TunerState) -> TunerState:
        """Return the state for further tuning on a very different potential.

        A new search starts from the present step size. Positions collected so far are dropped; the
        last covariance stays until the next window ends.
        """
        return attrs.evolve(
            state,
            kept=(),
            searching=0 if state.iteration < self.n_iterations else -1,
            direction=0,
            recent=np.ones_like(state.recent),
            lengths=LengthSearch(normal_variance=state.lengths.normal_variance),
        )

    def settle(self, state: TunerState) -> TunerState:
        """Return the state at the end of a warm-up that ends here, perhaps early.

        The averaged step is frozen, since the last single step may be far from it. An average of
        fewer than ten steps is no better; then the step that the search found is kept, or the one
        before the last if the search was still going up.
        """
        if state.iteration >= self.n_iterations:
            return state
        if state.averaged < 10:
            ahead = math.log(2.0) if state.direction > 0 else 0.0
            found = state.centre - _CENTRE if state.searching < 0 else state.log_step - ahead
            state = attrs.evolve(state, log_step=found, averaged=0)
        return self.end(state)

    def end(self, state: TunerState) -> TunerState:
        """Return the state after the last iteration, with every search over."""
        return attrs.evolve(state, iteration=self.n_iterations, searching=-1)

    def _searches_step(self, state: TunerState) -> bool:
        over = state.iteration >= self.n_iterations
        return state.searching >= 0 and "step_size" in self.tunes and not over

    def _tries_lengths(self, state: TunerState) -> bool:
        known = state.given is not None and state.given.length is not None
        over = state.iteration >= self.n_iterations
        settled = state.covariance is not None and not self._searches_step(state)
        return "length" in self.tunes and settled and not known and not over

    def _step(self, state: TunerState, acceptance: float) -> TunerState:
        most = min(_FARTHEST, math.log(self.largest_step))
        if state.searching >= 0:
            return self._search(state, acceptance, most)
        # Hoffman and Gelman (2014), equation (6), with gamma 0.05, t0 10 and kappa 0.75
        t = state.averaged + 1
        weight = 1.0 / (t + 10.0)
        error = (1 - weight) * state.error + weight * (self.target_acceptance - acceptance)
        log_step = state.centre - math.sqrt(t) / 0.05 * error
        log_step = min(max(log_step, -_FARTHEST), most)
        eta = t**-0.75
        return attrs.evolve(
            state,
            averaged=t,
            error=error,
            log_step=log_step,
            averaged_log_step=eta * log_step + (1 - eta) * state.averaged_log_step,
        )

    def _search(self, state: TunerState, acceptance: float, most: float) -> TunerState:
        """Return the state after an iteration of the search; no log step size exceeds ``most``."""
        high = acceptance > 0.8
        direction = 1 if high else -1
        crossed = state.direction not in (0, direction) or state.searching >= 30
        if not crossed and not (high and state.log_step >= most):
            return attrs.evolve(
                state,
                log_step=min(state.log_step + direction * math.log(2.0), most),
                searching=state.searching + 1,
                direction=direction,
            )
        # of the last two steps tried, the smaller one was accepted
        log_step = state.log_step if high else state.log_step - math.log(2.0)
        return attrs.evolve(
            state,
            searching=-1,
            direction=0,
            log_step=log_step,
            averaged_log_step=log_step,
            centre=log_step + _CENTRE,
            error=0.0,
            averaged=0,
        )

    def _window(
        self,
        state: TunerState,
        positions: FloatArray,
        moving: BoolArray,
        gradients: FloatArray | None,
    ) -> TunerState:
        first, ends = windows(self.n_iterations, arrived=self.arrived)
        if state.given is not None or not ends or not first < state.iteration <= ends[-1]:
            return state
        state = attrs.evolve(state, kept=(*state.kept, (positions, gradients)))
        if state.iteration not in ends:
            return state
        places, slopes = zip(*state.kept, strict=True)
        known = state.covariance
        covariance = pool(places, slopes, moving, known)
        if covariance is None:
            return attrs.evolve(state, kept=())
        restarted = attrs.evolve(
            state,
            kept=(),
            covariance=covariance,
            searching=0,
            direction=0,
            lengths=state.lengths.age(),
            settled=known is not None
            and len(places) >= LEAST_TO_SETTLE
            and agree(known, covariance),
            warp=self._warp(places, slopes, moving, known),
        )
        # in a metric that fits, the step is of order dim^-1/4, so 1 is the better guess
        fits = known is None and "metric" in self.tunes
        return attrs.evolve(restarted, log_step=0.0) if fits else restarted

    def _warp(
        self,
        positions: Sequence[FloatArray],
        gradients: Sequence[FloatArray | None],
        moving: BoolArray,
        known: FloatArray | None,
    ) -> Warp | None:
        """Return the warp for what a window kept of the chains that move; None if they are flat.

        Its covariance is that of all the window's positions in the new coordinates. One for heavy
        tails alone is None, too, where there are none.
        """
        if not self.tunes & {"warp", "heavy_warp"}:
            return None
        rows = np.concatenate([each[moving] for each in positions])
        fitted = fit_marginals(rows) if "warp" in self.tunes else fit_heavy(rows)
        if fitted is None:
            return None
        centre, scale, lean, tail = fitted
        dim = rows.shape[1]
        warp = Warp(centre=centre, scale=scale, lean=lean, tail=tail, covariance=np.eye(dim))
        straight = [warp.straighten(each) for each in positions]
        pulled = [
            None if slopes is None else warp.pull(slopes, z)
            for slopes, z in zip(gradients, straight, strict=True)
        ]
        if known is not None:
            slope = warp.slopes(np.zeros((1, dim)))[0][0]
            known = known / slope / slope[:, None]
        covariance = pool(straight, pulled, moving, known)
        return None if covariance is None else attrs.evolve(warp, covariance=covariance)
