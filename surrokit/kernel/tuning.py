"""Tuning in warm-up: step size by dual averaging, metric by windows, and path lengths."""

from __future__ import annotations

import math
from typing import Self

import attrs
import numpy as np

from surrokit.capabilities import GRADIENT, GRADIENT_ALONE
from surrokit.interfaces import Sampler, Status, StepInfo, Tuning
from surrokit.marginals import Warp, fit_warp
from surrokit.potentials import Potential
from surrokit.types import BoolArray, FloatArray

FIRST_LENGTH = 4
"""Transitions in a sub-chain while nothing is known."""

MAX_LENGTH = 512
"""Longest sub-chain that tuning asks for."""

STEPS_BEFORE_COVARIANCE = 10
"""Longest path, in steps, while the scales of the target are unknown."""

LAST = 50
"""Iterations after the last window, for the step size alone."""

CONSERVED = 0.9
"""Acceptance of paths that end with a density, above which shorter steps would not help others."""

STUCK = 0.1
"""Acceptance of the last few iterations below which no chain moves."""

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

        Without an ``excursion`` nothing changes. Stuck chains are not ``moving (chains,)``.
        """
        excursion = info.excursion
        if excursion is None or not np.isfinite(excursion.values[moving]).all():
            return self
        one, acceptance = _zeros(), info.acceptance[moving]
        one[self.upcoming().bit_length() - 1] = 1.0
        jumps, values = excursion.jumps[moving], excursion.values[moving]
        level = self.level if self.seen[0] else float(values[:, 0].mean())
        n, m = jumps.shape
        added = {
            "tries": one,
            "decisions": one * float((~np.isnan(acceptance)).mean()),
            "acceptances": one * float(np.nansum(acceptance) / len(acceptance)),
            "seen": _padded(np.full(m, float(n))),
            "jumps": _padded(jumps.sum(axis=0)),
            "changes": _padded(0.5 * np.square(values[:, 1:] - values[:, :1]).sum(axis=0)),
            "values": float((values[:, 0] - level).sum()),
            "squares": float(np.square(values[:, 0] - level).sum()),
        }
        sums = {name: getattr(self, name) + more for name, more in added.items()}
        found = attrs.evolve(self, level=level, **sums)
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
        # chains that stayed already count as jumps of 0, so acceptance is that of moves alone
        accepted = self.acceptances[tried] / np.maximum(self.decisions[tried], 1e-300)
        gains = accepted * self.forgotten()[tried]
        good = tried[gains >= 0.9 * gains.max(initial=0.0)]
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
    if n_iterations < first + LAST + length:
        return int(0.15 * n_iterations), (n_iterations - int(0.25 * n_iterations),)
    ends, end = [], first
    while end < n_iterations - LAST:
        end, length = end + length, 2 * length
        if end + length > n_iterations - LAST:  # the next one does not fit: stretch this one
            end = n_iterations - LAST
        ends.append(end)
    return first, tuple(ends)


def pool(
    positions: FloatArray,
    gradients: FloatArray | None = None,
    known: FloatArray | None = None,
) -> FloatArray | None:
    """Return the covariance within chains, shrunk to its diagonal; None if it is flat.

    Flat are those, too, that rounding makes singular, as where chains run off along a line.

    Where gradients are known it is X with X cov(g) X = cov(q), which minimises the Fisher
    divergence (Seyboldt, Carlson and Carpenter 2026, arXiv:2603.18845): on a normal target it is
    exact from more positions than dimensions on. The diagonal is that in the coordinates in which
    what was known so far is the identity. In the target's own coordinates it may be much wider than
    the target: where columns of a design are nearly collinear, by a factor of a thousand in the
    directions that are determined best.

    Positions and gradients (n, chains, dim) are of each iteration of a window, and
    ``known (dim, dim)`` is the covariance before.
    """
    iterations, chains, dim = positions.shape
    n = chains * (iterations - 1)
    covariance = _within(positions, n)
    if covariance is None:
        return None
    tension = None if gradients is None or n <= 2 * dim else _within(gradients, n)
    if tension is not None:
        covariance = _balance(covariance, tension)
    weight = n / (n + 5.0 + dim)
    factor = None if known is None else _cholesky(known)
    factor = np.eye(dim) if factor is None else factor
    from scipy.linalg import solve_triangular  # late: importing the package stays fast

    half = solve_triangular(factor, covariance, lower=True)
    variance = np.diag(solve_triangular(factor, half.T, lower=True))
    shrunk = weight * covariance + (1.0 - weight) * (factor * variance) @ factor.T
    return None if _cholesky(shrunk) is None else shrunk


def _within(rows: FloatArray, n: int) -> FloatArray | None:
    """Return the scatter (dim, dim) of chains about their own means, over n; None if it is flat."""
    if n < 1:
        return None
    with np.errstate(all="ignore"):  # what overflows is not used
        away = rows - rows.mean(axis=0)
        away[:, (rows == rows[0]).all(axis=(0, 2))] = 0.0  # of chains that stand a mean may round
        away = away.reshape(-1, rows.shape[2])
        total = away.T @ away / n
    return total if np.isfinite(total).all() and (np.diag(total) > 0).all() else None


def _cholesky(covariance: FloatArray) -> FloatArray | None:
    try:
        return np.asarray(np.linalg.cholesky(covariance))
    except np.linalg.LinAlgError:  # singular to rounding
        return None


def _balance(covariance: FloatArray, tension: FloatArray) -> FloatArray:
    """Return X with X cov(g) X = cov(q), or cov(q) where that is singular to rounding."""
    scales = (np.diag(covariance) / np.diag(tension)) ** 0.25
    root = _cholesky(covariance / scales / scales[:, None])
    if root is None:
        return covariance
    inside = root.T @ (tension * scales * scales[:, None]) @ root
    eigenvalues, vectors = np.linalg.eigh(0.5 * (inside + inside.T))
    if not eigenvalues[0] > 1e-14 * eigenvalues[-1]:
        return covariance
    factor = scales[:, None] * (root @ (vectors * eigenvalues**-0.25))
    return np.asarray(factor @ factor.T)


def agree(one: FloatArray, other: FloatArray) -> bool:
    """Return whether two covariances (dim, dim) agree within a factor of 2 in every direction."""
    factor = _cholesky(one)
    if factor is None:
        return False
    between = np.linalg.solve(factor, np.linalg.solve(factor, other).T)
    eigenvalues = np.linalg.eigvalsh(0.5 * (between + between.T))
    return bool(eigenvalues[0] > 0.5 and eigenvalues[-1] < 2.0)


# --- all of a warm-up ---


def moves_by_gradients(sampler: Sampler) -> bool:
    """Return whether a sampler's moves follow gradients."""
    return bool(sampler.needs & {GRADIENT, GRADIENT_ALONE})


def has_to_approach(sampler: Sampler, potential: Potential, n_iterations: int) -> bool:
    """Return whether a sampler's chains have to look for the mass before they are tuned.

    They do if they move by gradients, which the potential has, if the step size or the metric is
    left to be tuned, and if there is time for it.
    """
    is_free = bool({"step_size", "metric"} & sampler.tunes)
    offered = GRADIENT in potential.capabilities
    return moves_by_gradients(sampler) and is_free and n_iterations >= 20 and offered


@attrs.frozen(kw_only=True, eq=False)
class Tuner:
    """Tunes what a sampler leaves free, over a warm-up: each iteration gives the next record."""

    sampler: Sampler
    n_iterations: int
    arrived: bool  # whether the chains are where the mass is
    given: Tuning | None  # known from the start, and not searched
    iteration: int = 0
    log_step: float  # to try next
    averaged_log_step: float
    centre: float  # log step size towards which dual averaging shrinks
    error: float = 0.0  # running mean of the target acceptance minus the acceptance
    averaged: int  # iterations averaged since the last restart
    searching: int  # iterations of search so far; -1 once the search is over
    direction: int = 0  # whether the search doubles (1) or halves (-1); 0 before its first step
    recent: FloatArray  # acceptance of each chain of late, (chains,)
    # of the window: positions, and gradients there or None, each of shape (chains, dim)
    kept: tuple[tuple[FloatArray, FloatArray | None], ...] = ()
    covariance: FloatArray | None  # from the last full window, (dim, dim)
    warp: Warp | None  # the same
    converged: bool = False  # did a long window agree with the one before it about the covariance?
    lengths: LengthSearch

    @classmethod
    def start(
        cls,
        sampler: Sampler,
        n_iterations: int,
        chains: int,
        dim: int,
        *,
        arrived: bool = False,
        covariance: FloatArray | None = None,
        step_size: float | None = None,
        tuning: Tuning | None = None,
    ) -> Self:
        """Return the tuner before the first iteration, with all that is already known.

        Parameters
        ----------
        arrived
            Whether the chains are where the mass is.
        covariance : ndarray of shape (dim, dim), optional
            Covariance of the target, until a window gives a better one.
        step_size
            Start of the search for a step size; 0.5 if nothing better is known.
        tuning
            Tuning found elsewhere, which replaces the search and the estimate of the covariance.
            The step size adapts from there as slowly as at the end of a warm-up. Without a
            warm-up, and if nothing else is known, the sampler's own.
        """
        step = 0.5 if step_size is None else step_size
        if not n_iterations and covariance is None and step_size is None:
            tuning = tuning or sampler.tuning
        if tuning is not None:
            step, covariance = tuning.step_size, tuning.covariance
        log_step = min(math.log(step), math.log(sampler.largest_step))
        return cls(
            sampler=sampler,
            n_iterations=n_iterations,
            arrived=arrived,
            given=tuning,
            log_step=log_step,
            averaged_log_step=log_step,
            centre=log_step + (_CENTRE if tuning is None else 0.0),
            # the noise of a few iterations must not undo the evidence of many
            averaged=0 if tuning is None else 100,
            searching=0 if n_iterations and tuning is None else -1,
            recent=np.ones(chains),
            covariance=covariance,
            lengths=LengthSearch(normal_variance=0.5 * dim),
            warp=None if tuning is None else tuning.warp,
        )

    @property
    def is_over(self) -> bool:
        """Whether all iterations are made."""
        return self.iteration >= self.n_iterations

    @property
    def tuning(self) -> Tuning:
        """The tuning for the next iteration, or after the warm-up for all draws."""
        given, tunes = self.given, self.sampler.tunes
        if given is not None and given is self.sampler.tuning and not self.n_iterations:
            return given
        n_steps = length = None
        if self._searches_step:
            n_steps = 1
        elif given is not None:
            n_steps = given.n_steps
        elif self.covariance is None and "n_steps" in tunes:
            n_steps = STEPS_BEFORE_COVARIANCE
        if "length" in tunes:
            length = None if given is None else given.length
            tries = self._tries_lengths
            length = length or (self.lengths.upcoming() if tries else self.lengths.best())
        log_step = self.averaged_log_step if self.is_over and self.averaged else self.log_step
        return Tuning(
            step_size=math.exp(log_step),
            covariance=self.covariance,
            n_steps=n_steps,
            length=length,
            warp=self.warp,
            learns=self._learns and not self.converged,
        )

    @property
    def _learns(self) -> bool:
        """Whether a window is to come or under way."""
        ends = windows(self.n_iterations, arrived=self.arrived)[1]
        free = bool(ends) and self.given is None and bool(self.sampler.tunes)
        return free and self.iteration < ends[-1]

    def update(
        self, positions: FloatArray, info: StepInfo, gradients: FloatArray | None = None
    ) -> Self:
        """Return the tuner after an iteration that took the chains to positions (chains, dim).

        Gradients are those there of the potential that the chains move on; with them the covariance
        is known from fewer positions.
        """
        reported = ~np.isnan(info.path_acceptance)  # NaN for a chain with nothing to decide
        recent = 0.8 * self.recent + 0.2 * info.path_acceptance  # of about five iterations
        recent = np.where(reported, recent, self.recent)
        after = attrs.evolve(self, iteration=self.iteration + 1, recent=recent)
        # a chain is stuck below a tenth of the median chain's acceptance
        moving = np.asarray(~(recent < 0.1 * np.median(recent)))
        if self._tries_lengths:
            after = attrs.evolve(after, lengths=self.lengths.update(info, moving))
        judged = moving & reported
        if "step_size" in self.sampler.tunes and judged.any():
            acceptance = after._acceptance(info, judged)
            after = after if acceptance is None else after._step(acceptance)
        return after._window(positions, moving, gradients)

    def skip(self, positions: FloatArray) -> Self:
        """Return the tuner after an iteration that another kernel made.

        Its positions count towards the covariance; nothing is learnt about the step size.
        """
        after = attrs.evolve(self, iteration=self.iteration + 1)
        return after._window(positions, np.ones(len(positions), dtype=bool), None)

    def restart(self) -> Self:
        """Return the tuner for further tuning on a very different potential.

        A new search starts from the present step size. Positions collected so far are dropped; the
        last covariance stays until the next window ends.
        """
        return attrs.evolve(
            self,
            kept=(),
            searching=-1 if self.is_over else 0,
            direction=0,
            recent=np.ones_like(self.recent),
            lengths=LengthSearch(normal_variance=self.lengths.normal_variance),
        )

    def end_tuning(self) -> Self:
        """Return the tuner at the end of a warm-up that ends here, perhaps early.

        The averaged step is frozen, since the last single step may be far from it. An average of
        fewer than ten steps is no better; then the step that the search found is kept, or the one
        before the last if the search was still going up.
        """
        if self.is_over:
            return self
        if self.averaged >= 10:
            return self.end()
        ahead = math.log(2.0) if self.direction > 0 else 0.0
        found = self.centre - _CENTRE if self.searching < 0 else self.log_step - ahead
        return attrs.evolve(self.end(), log_step=found, averaged=0)

    def end(self) -> Self:
        """Return the tuner after the last iteration, with every search over."""
        return attrs.evolve(self, iteration=self.n_iterations, searching=-1)

    @property
    def _searches_step(self) -> bool:
        return self.searching >= 0 and "step_size" in self.sampler.tunes and not self.is_over

    @property
    def _tries_lengths(self) -> bool:
        known = self.given is not None and self.given.length is not None
        free = "length" in self.sampler.tunes and not known and not self.is_over
        return free and self.covariance is not None and not self._searches_step

    def _acceptance(self, info: StepInfo, judged: BoolArray) -> float | None:
        """Return the mean acceptance by which steps get longer or shorter; None for as they are.

        Paths that end without density count as rejected, unless the others conserve their energy:
        where a density ends at a bound, paths cross it however short their steps are.
        """
        ended = judged & (info.status != Status.NOT_FINITE)
        if not ended.any() and self.searching < 0 and self.recent.max() > STUCK:
            return None
        mean = float(info.path_acceptance[ended].mean()) if ended.any() else 0.0
        return mean if mean > CONSERVED else float(info.path_acceptance[judged].mean())

    def _step(self, acceptance: float) -> Self:
        # twice the scale of a metric that fits is where leapfrog steps blow up, on walls before
        fits = self.covariance is not None and "metric" in self.sampler.tunes
        bound = math.log(1.25) if fits and moves_by_gradients(self.sampler) else _FARTHEST
        most = min(bound, math.log(self.sampler.largest_step))
        if self.searching >= 0:
            return self._search(acceptance, most)
        # Hoffman and Gelman (2014), equation (6), with gamma 0.05, t0 10 and kappa 0.75
        t = self.averaged + 1
        weight, eta = 1.0 / (t + 10.0), t**-0.75
        error = (1 - weight) * self.error + weight * (self.sampler.target_acceptance - acceptance)
        log_step = min(max(self.centre - math.sqrt(t) / 0.05 * error, -_FARTHEST), most)
        average = eta * log_step + (1 - eta) * self.averaged_log_step
        return attrs.evolve(
            self, averaged=t, error=error, log_step=log_step, averaged_log_step=average
        )

    def _search(self, acceptance: float, most: float) -> Self:
        """Return the tuner after an iteration of the search; no log step size exceeds ``most``."""
        high = acceptance > 0.8
        direction = 1 if high else -1
        crossed = self.direction not in (0, direction) or self.searching >= 30
        if not crossed and not (high and self.log_step >= most):
            log_step = min(self.log_step + direction * math.log(2.0), most)
            searching = self.searching + 1
            return attrs.evolve(self, log_step=log_step, searching=searching, direction=direction)
        # of the last two steps tried, the smaller one was accepted
        log_step = self.log_step if high else self.log_step - math.log(2.0)
        return attrs.evolve(
            self,
            searching=-1,
            direction=0,
            log_step=log_step,
            averaged_log_step=log_step,
            centre=log_step + _CENTRE,
            error=0.0,
            averaged=0,
        )

    def _window(
        self, positions: FloatArray, moving: BoolArray, gradients: FloatArray | None
    ) -> Self:
        first, ends = windows(self.n_iterations, arrived=self.arrived)
        is_inside = bool(ends) and first < self.iteration <= ends[-1]
        if self.given is not None or not is_inside or not self.sampler.tunes:
            return self
        kept = (*self.kept, (positions, gradients))
        if self.iteration not in ends:
            return attrs.evolve(self, kept=kept)
        places = np.stack([at[moving] for at, _ in kept])
        known_slopes = [slopes[moving] for _, slopes in kept if slopes is not None]
        slopes = np.stack(known_slopes) if len(known_slopes) == len(kept) else None
        known, covariance = self.covariance, pool(places, slopes, self.covariance)
        if covariance is None:
            return attrs.evolve(self, kept=())
        warp = self._warp(places, slopes)
        # a long window tells whether the covariance is known well enough; tails take longer
        enough = len(places) >= (40 if warp is None else 80)
        converged = known is not None and enough and agree(known, covariance)
        if warp is not None and warp.scales is not None:
            # each window reaches narrower places, where scales are known better
            converged = False
        # in a metric that fits, the step is of order dim^-1/4, so 1 is the better guess
        fits = known is None and "metric" in self.sampler.tunes
        return attrs.evolve(
            self,
            kept=(),
            covariance=covariance,
            searching=0,
            direction=0,
            lengths=self.lengths.age(),
            converged=converged,
            warp=warp,
            log_step=0.0 if fits else self.log_step,
        )

    def _warp(self, positions: FloatArray, gradients: FloatArray | None) -> Warp | None:
        """Return the warp for what a window kept of the chains that move; None if they are flat.

        Its covariance is that of all the window's positions in the new coordinates. One for heavy
        tails alone is None, too, where there are none.
        """
        tunes, known, dim = self.sampler.tunes, self.covariance, positions.shape[2]
        if not tunes & {"warp", "heavy_warp"}:
            return None
        rows = positions.reshape(-1, dim)
        slopes = None if gradients is None else gradients.reshape(-1, dim)
        warp = fit_warp(rows, slopes, every="warp" in tunes)
        if warp is None:
            return None
        z = warp.straighten(rows)
        pulled = None if slopes is None else warp.pull(slopes, z)
        if warp.scales is not None:
            known = None
        if known is not None:
            slope = warp.slopes(np.zeros((1, dim)))[0][0]
            known = known / slope / slope[:, None]
        pulled = None if pulled is None else pulled.reshape(positions.shape)
        covariance = pool(z.reshape(positions.shape), pulled, known)
        return None if covariance is None else attrs.evolve(warp, covariance=covariance)
