"""Tuning in warm-up: step size by dual averaging, metric by windows, and path lengths."""

from __future__ import annotations

import math

import attrs
import numpy as np

from surrokit.capabilities import GRADIENT, GRADIENT_ALONE
from surrokit.interfaces import Excursion, Sampler, StepInfo, Tuning
from surrokit.marginals import Warp, fit_heavy, fit_marginals
from surrokit.potentials import Potential
from surrokit.types import BoolArray, FloatArray

FIRST_LENGTH = 4
"""Transitions in a sub-chain while nothing is known."""

MAX_LENGTH = 512
"""Longest sub-chain that tuning asks for."""

_FORGOTTEN = 0.9  # 1 minus a correlation that is low enough
_AS_GOOD = 0.9  # share of the best gain that counts as equally good
_TRIES = 5  # iterations at a length before a longer one is considered
_CLEARLY = 2.5  # standard errors by which forgetting must fall short
_KEPT = 0.25  # weight of observations under an earlier covariance
_NO_DECISION = 1e-300  # makes 0 accepted of 0 decided a rate of 0


def _zeros() -> FloatArray:
    return np.zeros(MAX_LENGTH.bit_length())


def _add_at(array: FloatArray, power: int, by: float) -> FloatArray:
    raised = array.copy()
    raised[power] += by
    return raised


@attrs.frozen(kw_only=True, eq=False)
class LengthSearch:
    """Statistics of sub-chains of 1, 2, 4, ... transitions.

    Parameters
    ----------
    tries, decisions, acceptances : ndarray
        For each length: the number of iterations with it, and sums over these iterations of the
        share of chains with a decision and of the acceptance per chain, 0 without a decision.
    seen, jumps, changes : ndarray
        For each number of transitions: the number of chains seen after it (a longer sub-chain
        shows shorter ones too), and sums over these chains of the jump and of (V' - V)^2 / 2.
    values, squares
        Sums over ``seen[0]`` chains of V - ``level`` at the start and of its square.
    level
        A value of V, subtracted so that squares do not cancel.
    normal_variance
        Variance of V for a normal distribution: dim / 2.
    top
        Exponent of the longest length to try.
    """

    normal_variance: float

    tries: FloatArray = attrs.field(factory=_zeros)
    decisions: FloatArray = attrs.field(factory=_zeros)
    acceptances: FloatArray = attrs.field(factory=_zeros)
    seen: FloatArray = attrs.field(factory=_zeros)
    jumps: FloatArray = attrs.field(factory=_zeros)
    changes: FloatArray = attrs.field(factory=_zeros)
    values: float = 0.0
    squares: float = 0.0
    level: float = 0.0
    top: int = 1

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
        power = self.upcoming().bit_length() - 1
        acceptance = info.acceptance[moving]
        found = attrs.evolve(
            self,
            tries=_add_at(self.tries, power, 1.0),
            decisions=_add_at(self.decisions, power, float((~np.isnan(acceptance)).mean())),
            acceptances=_add_at(
                self.acceptances, power, float(np.nansum(acceptance) / len(acceptance))
            ),
        )._saw(excursion, moving)
        return attrs.evolve(found, top=found.top + 1) if found._too_short() else found

    def _saw(self, excursion: Excursion, moving: BoolArray) -> LengthSearch:
        jumps, values = excursion.jumps[moving], excursion.values[moving]
        level = self.level if self.seen[0] else float(values[:, 0].mean())
        n, m = jumps.shape
        found = {name: getattr(self, name).copy() for name in ("seen", "jumps", "changes")}
        found["seen"][:m] += n
        found["jumps"][:m] += jumps.sum(axis=0)
        found["changes"][:m] += 0.5 * np.square(values[:, 1:] - values[:, :1]).sum(axis=0)
        return attrs.evolve(
            self,
            values=self.values + float((values[:, 0] - level).sum()),
            squares=self.squares + float(np.square(values[:, 0] - level).sum()),
            level=level,
            **found,
        )

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
        if self.tries[half : self.top + 1].min() < _TRIES or self.top + 1 == len(self.tries):
            return False
        error = np.sqrt(2.0 / self.seen[half])  # relative error of a mean of squared normal numbers
        return bool(self.forgotten()[half] * (1.0 + _CLEARLY * error) < _FORGOTTEN)

    def age(self) -> LengthSearch:
        """Return the statistics with less weight, after a change of the covariance."""
        names = (
            "tries",
            "decisions",
            "acceptances",
            "seen",
            "jumps",
            "changes",
            "values",
            "squares",
        )
        return attrs.evolve(self, **{name: _KEPT * getattr(self, name) for name in names})

    def best(self) -> int:
        """Return the length to keep.

        It is the shortest that gains nearly as much as the best, or twice that length if this gains
        nearly as much too: a correlation of 0.1 then becomes 0.01.
        """
        tried = np.flatnonzero(self.tries)
        if not tried.size:
            return FIRST_LENGTH
        # chains that stayed already count as jumps of 0, so acceptance is that of moves alone
        accepted = self.acceptances[tried] / np.maximum(self.decisions[tried], _NO_DECISION)
        gains = accepted * self.forgotten()[tried]
        good = tried[gains >= _AS_GOOD * gains.max()]
        if not good.size:
            return FIRST_LENGTH
        power = int(good[0])
        return int(2 ** (power + 1 if power + 1 in good else power))


@attrs.frozen(kw_only=True, eq=False)
class TunerState:
    """A tuner's state as a frozen record of arrays and numbers.

    Parameters
    ----------
    log_step, averaged_log_step
        Log step size to try next, and its average.
    error
        Running mean of the target acceptance minus the acceptance.
    centre
        Log step size towards which dual averaging shrinks.
    averaged
        Iterations averaged since the last restart.
    searching
        Iterations of search so far; -1 once the search is over.
    direction
        Whether the search doubles (1) or halves (-1); 0 before its first iteration.
    recent : ndarray of shape (chains,)
        Recent acceptance of each chain.
    count
        Positions of each chain in the window.
    mean : ndarray of shape (chains, dim)
        Mean of these positions.
    scatter : ndarray of shape (chains, dim, dim)
        Sum of outer products of their deviations from the mean.
    covariance : ndarray of shape (dim, dim), optional
        Covariance from the last full window.
    lengths
        Search for the length of sub-chains.
    given : Tuning, optional
        Tuning known from the start, which is not searched.
    settled
        Whether a long window agreed with the one before it about the covariance.
    kept
        For a sampler that asks for a warp: positions of the window, and gradients there or None,
        all of shape (chains, dim).
    warp : Warp, optional
        From the last full window.
    """

    iteration: int
    log_step: float
    averaged_log_step: float
    error: float
    centre: float
    averaged: int
    searching: int
    direction: int
    recent: FloatArray
    count: int
    mean: FloatArray
    scatter: FloatArray
    slope: FloatArray | None
    tension: FloatArray | None
    covariance: FloatArray | None
    lengths: LengthSearch
    given: Tuning | None
    settled: bool = False
    kept: tuple[tuple[FloatArray, FloatArray | None], ...] = ()
    warp: Warp | None = None

    def empty_window(self) -> TunerState:
        """Return the state without the positions collected so far."""
        return attrs.evolve(
            self,
            count=0,
            mean=np.zeros_like(self.mean),
            scatter=np.zeros_like(self.scatter),
            slope=np.zeros_like(self.mean),
            tension=np.zeros_like(self.scatter),
            kept=(),
        )


LAST = 50
"""Iterations after the last window, for the step size alone."""

_FAINT = 1e-14  # of the largest eigenvalue, the least that is more than rounding
_AGREED = 2.0  # factor by which variances of two windows may differ


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


def collect(
    state: TunerState, positions: FloatArray, gradients: FloatArray | None = None
) -> TunerState:
    """Return the state after positions, shape (n, dim), were added to the window.

    Gradients there, of the same shape, are of use only if they are known throughout a window.
    """
    count = state.count + 1
    mean, scatter = _add(state.mean, state.scatter, positions, count)
    slope, tension = None, None
    if gradients is not None and state.slope is not None and state.tension is not None:
        with np.errstate(all="ignore"):  # what overflows is not used
            slope, tension = _add(state.slope, state.tension, gradients, count)
    return attrs.evolve(
        state, count=count, mean=mean, scatter=scatter, slope=slope, tension=tension
    )


def _add(
    mean: FloatArray, scatter: FloatArray, rows: FloatArray, count: int
) -> tuple[FloatArray, FloatArray]:
    """Return mean and scatter of each chain with one more row (n, dim)."""
    deviation = rows - mean
    mean = mean + deviation / count
    return mean, scatter + deviation[:, :, None] * (rows - mean)[:, None, :]


def pool(state: TunerState, moving: BoolArray) -> FloatArray | None:
    """Return the covariance within the chains that move, shrunk to its diagonal; None if flat.

    Flat are those, too, that rounding makes singular, as where chains run off along a line.

    Where gradients are known it is their compromise with the positions, see :func:`_balance`. The
    diagonal is that in the coordinates in which what was known so far is the identity. In the
    target's own coordinates it may be much wider than the target: where columns of a design are
    nearly collinear, by a factor of a thousand in the directions that are determined best.
    """
    n = int(moving.sum()) * (state.count - 1)
    if n < 1:
        return None
    covariance = _within(state.scatter, moving, n)
    if not _is_usable(covariance):
        return None
    if state.tension is not None:
        covariance = _balance(covariance, _within(state.tension, moving, n), n)
    dim = len(covariance)
    weight = n / (n + 5.0 + dim)
    diagonal = _diagonal(covariance, state.covariance)
    shrunk = np.asarray(weight * covariance + (1.0 - weight) * diagonal, dtype=np.float64)
    try:
        np.linalg.cholesky(shrunk)
    except np.linalg.LinAlgError:
        return None
    return shrunk


def learn_warp(state: TunerState, moving: BoolArray, *, heavy: bool = False) -> Warp | None:
    """Return the warp for what a window kept of the chains that move; None if they are flat.

    Its covariance is that of all the window's positions in the new coordinates, by :func:`pool`.
    One for ``heavy`` tails alone is None, too, where there are none.
    """
    positions = np.concatenate([rows[moving] for rows, _ in state.kept])
    fitted = fit_heavy(positions) if heavy else fit_marginals(positions)
    if fitted is None:
        return None
    centre, scale, lean, tail = fitted
    dim = positions.shape[1]
    warp = Warp(centre=centre, scale=scale, lean=lean, tail=tail, covariance=np.eye(dim))
    straight = attrs.evolve(state.empty_window(), covariance=_about_centre(warp, state.covariance))
    for rows, gradients in state.kept:
        z = warp.straighten(rows)
        pulled = None if gradients is None else warp.pull(gradients, z)
        straight = collect(straight, z, pulled)
    covariance = pool(straight, moving)
    return None if covariance is None else attrs.evolve(warp, covariance=covariance)


def _about_centre(warp: Warp, known: FloatArray | None) -> FloatArray | None:
    """Return a covariance (dim, dim) of x as one of z, by the slopes of a warp at its centre."""
    if known is None:
        return None
    slope = warp.slopes(np.zeros((1, len(known))))[0][0]
    return np.asarray(known / slope / slope[:, None])


def agree(one: FloatArray, other: FloatArray) -> bool:
    """Return whether two covariances (dim, dim) agree within a factor of 2 in every direction."""
    try:
        factor = np.linalg.cholesky(one)
    except np.linalg.LinAlgError:
        return False
    between = np.linalg.solve(factor, np.linalg.solve(factor, other).T)
    eigenvalues = np.linalg.eigvalsh(0.5 * (between + between.T))
    return bool(eigenvalues[0] > 1.0 / _AGREED and eigenvalues[-1] < _AGREED)


def _within(scatter: FloatArray, moving: BoolArray, n: int) -> FloatArray:
    """Return the mean scatter (dim, dim) of some chains about their own means."""
    mean = scatter[moving].sum(axis=0) / n
    return np.asarray(0.5 * (mean + mean.T))


def _is_usable(covariance: FloatArray) -> bool:
    return bool(np.isfinite(covariance).all() and (np.diag(covariance) > 0).all())


def _balance(covariance: FloatArray, tension: FloatArray, n: int) -> FloatArray:
    """Return X with X cov(g) X = cov(q), or cov(q) where that of the gradients is of no use.

    It minimises the Fisher divergence (Seyboldt, Carlson and Carpenter 2026, arXiv:2603.18845). On
    a normal target it is exact from more positions than dimensions on.
    """
    dim = len(covariance)
    if n <= 2 * dim or not _is_usable(tension):
        return covariance
    scales = (np.diag(covariance) / np.diag(tension)) ** 0.25
    try:
        root = np.linalg.cholesky(covariance / scales / scales[:, None])
        inside = root.T @ (tension * scales * scales[:, None]) @ root
        eigenvalues, vectors = np.linalg.eigh(0.5 * (inside + inside.T))
    except np.linalg.LinAlgError:
        return covariance
    if not eigenvalues[0] > _FAINT * eigenvalues[-1]:
        return covariance
    factor = scales[:, None] * (root @ (vectors * eigenvalues**-0.25))
    return np.asarray(factor @ factor.T)


def _diagonal(covariance: FloatArray, known: FloatArray | None) -> FloatArray:
    """Return the diagonal part of a covariance, in coordinates where another is the identity."""
    from scipy.linalg import solve_triangular

    own = np.diag(np.diag(covariance))
    if known is None:
        return own
    try:
        factor = np.linalg.cholesky(known)
    except np.linalg.LinAlgError:  # singular to rounding, so there are no such coordinates
        return own
    half = solve_triangular(factor, covariance, lower=True)
    variance = np.diag(solve_triangular(factor, half.T, lower=True))
    return np.asarray((factor * variance) @ factor.T)


FIRST_STEP_SIZE = 0.5
"""Start of the search for a step size, if nothing better is known."""

STEPS_BEFORE_COVARIANCE = 10
"""Longest path, in steps, while the scales of the target are unknown."""

LEAST_TO_SETTLE = 80
"""Iterations of a window that may tell that the covariance is known well enough."""

LEAST_TO_APPROACH = 20
"""Iterations from which on there is time to look where the mass is."""

_SEARCH_ACCEPTANCE = 0.8  # the search ends where acceptance crosses this
_MAX_SEARCH = 30
_GAMMA, _T0, _KAPPA = 0.05, 10.0, 0.75  # Hoffman and Gelman (2014), equation (6)
_CENTRE = math.log(10.0)  # as there, shrink towards ten times the step size found
_TOLD = 100  # weight of a step size from elsewhere, in iterations
_AVERAGED = 10  # with fewer iterations of dual averaging its average is not trusted
_FORGET = 0.8  # a chain's recent acceptance remembers about five iterations
_FARTHEST = 200.0  # bound of log step sizes
_STUCK = 0.1  # below this part of the median chain's acceptance a chain is stuck


def moves_by_gradients(sampler: Sampler) -> bool:
    """Return whether a sampler's moves follow gradients."""
    return bool(sampler.needs & {GRADIENT, GRADIENT_ALONE})


def has_to_approach(sampler: Sampler, potential: Potential, n_iterations: int) -> bool:
    """Return whether a sampler's chains have to look for the mass before they are tuned.

    They do if they move by gradients, which the potential has, if the step size or the metric is
    left to be tuned, and if there is time for it.
    """
    is_free = bool({"step_size", "metric"} & sampler.tunes)
    has_time = n_iterations >= LEAST_TO_APPROACH
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
            iteration=0,
            log_step=log_step,
            averaged_log_step=log_step,
            error=0.0,
            centre=log_step + (_CENTRE if tuning is None else 0.0),
            # the noise of a few iterations must not undo the evidence of many
            averaged=0 if tuning is None else _TOLD,
            searching=searching,
            direction=0,
            recent=np.ones(chains),
            count=0,
            mean=np.zeros((chains, dim)),
            scatter=np.zeros((chains, dim, dim)),
            slope=np.zeros((chains, dim)),
            tension=np.zeros((chains, dim, dim)),
            covariance=covariance,
            lengths=LengthSearch(normal_variance=0.5 * dim),
            given=tuning,
            warp=None if tuning is None else tuning.warp,
        )

    def tuning(self, state: TunerState) -> Tuning:
        """Return the tuning for the next iteration, or after the warm-up for all draws."""
        if state.given is not None and state.given is self.known and not self.n_iterations:
            return state.given
        over = state.iteration >= self.n_iterations
        log_step = state.averaged_log_step if over and state.averaged else state.log_step
        return Tuning(
            step_size=math.exp(log_step),
            covariance=state.covariance,
            n_steps=self._n_steps(state),
            length=self._length(state) if "length" in self.tunes else None,
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
        recent = _FORGET * state.recent + (1 - _FORGET) * info.path_acceptance
        recent = np.where(told, recent, state.recent)
        before = state
        state = attrs.evolve(state, iteration=state.iteration + 1, recent=recent)
        if not self.tunes:
            return state
        moving = np.asarray(~(recent < _STUCK * np.median(recent)))
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
        return self._window(state, positions, np.ones(len(positions), dtype=bool))

    def restart(self, state: TunerState) -> TunerState:
        """Return the state for further tuning on a very different potential.

        A new search starts from the present step size. Positions collected so far are dropped; the
        last covariance stays until the next window ends.
        """
        return attrs.evolve(
            state.empty_window(),
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
        if state.averaged < _AVERAGED:
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

    def _n_steps(self, state: TunerState) -> int | None:
        if self._searches_step(state):
            return 1
        if state.given is not None:
            return state.given.n_steps
        unknown = state.covariance is None and "n_steps" in self.tunes
        return STEPS_BEFORE_COVARIANCE if unknown else None

    def _length(self, state: TunerState) -> int:
        if state.given is not None and state.given.length is not None:
            return state.given.length
        return state.lengths.upcoming() if self._tries_lengths(state) else state.lengths.best()

    def _tries_lengths(self, state: TunerState) -> bool:
        known = state.given is not None and state.given.length is not None
        over = state.iteration >= self.n_iterations
        settled = state.covariance is not None and not self._searches_step(state)
        return "length" in self.tunes and settled and not known and not over

    def _step(self, state: TunerState, acceptance: float) -> TunerState:
        most = min(_FARTHEST, math.log(self.largest_step))
        if state.searching >= 0:
            return _search(state, acceptance, most)
        t = state.averaged + 1
        weight = 1.0 / (t + _T0)
        error = (1 - weight) * state.error + weight * (self.target_acceptance - acceptance)
        log_step = state.centre - math.sqrt(t) / _GAMMA * error
        log_step = min(max(log_step, -_FARTHEST), most)
        eta = t**-_KAPPA
        return attrs.evolve(
            state,
            averaged=t,
            error=error,
            log_step=log_step,
            averaged_log_step=eta * log_step + (1 - eta) * state.averaged_log_step,
        )

    def _window(
        self,
        state: TunerState,
        positions: FloatArray,
        moving: BoolArray,
        gradients: FloatArray | None = None,
    ) -> TunerState:
        first, ends = windows(self.n_iterations, arrived=self.arrived)
        if state.given is not None or not ends or not first < state.iteration <= ends[-1]:
            return state
        state = collect(state, positions, gradients)
        if self.tunes & {"warp", "heavy_warp"}:
            state = attrs.evolve(state, kept=(*state.kept, (positions, gradients)))
        if state.iteration not in ends:
            return state
        covariance = pool(state, moving)
        emptied, known = state.empty_window(), state.covariance
        if covariance is None:
            return emptied
        restarted = attrs.evolve(
            emptied,
            covariance=covariance,
            searching=0,
            direction=0,
            lengths=state.lengths.age(),
            settled=known is not None
            and state.count >= LEAST_TO_SETTLE
            and agree(known, covariance),
            warp=self._warp(state, moving),
        )
        # in a metric that fits, the step is of order dim^-1/4, so 1 is the better guess
        fits = known is None and "metric" in self.tunes
        return attrs.evolve(restarted, log_step=0.0) if fits else restarted

    def _warp(self, state: TunerState, moving: BoolArray) -> Warp | None:
        if not self.tunes & {"warp", "heavy_warp"}:
            return None
        return learn_warp(state, moving, heavy="warp" not in self.tunes)


def _search(state: TunerState, acceptance: float, most: float) -> TunerState:
    """Return the state after an iteration of the search; no log step size exceeds ``most``."""
    high = acceptance > _SEARCH_ACCEPTANCE
    direction = 1 if high else -1
    over = state.direction not in (0, direction) or state.searching >= _MAX_SEARCH
    over = over or (high and state.log_step >= most)
    if not over:
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
