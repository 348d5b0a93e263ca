"""Step size, path length and mass matrix, found in warm-up.

Step size: a short search by halving or doubling, then dual averaging (Hoffman and Gelman 2014,
arXiv:1111.4246, section 3.2) of the acceptance on the potential that the sampler moves on. On a
surrogate it shows the integrator's error alone: a smaller step cannot cure the surrogate.
Covariance: in windows that double in length, as in Stan (Stan reference manual, section
"Hamiltonian Monte Carlo, automatic parameter tuning"), pooled within chains. Length of
sub-chains: see :mod:`surrokit.kernel.lengths`.
"""

from __future__ import annotations

import math

import attrs
import numpy as np

from surrokit.capabilities import GRADIENT, GRADIENT_ALONE
from surrokit.contracts.potential import Potential
from surrokit.contracts.sampler import Sampler, StepInfo, Tuning
from surrokit.kernel.lengths import LengthSearch
from surrokit.kernel.tuner_state import TunerState
from surrokit.kernel.windows import agree, collect, learn_warp, pool, windows
from surrokit.marginals.warp import Warp
from surrokit.types import BoolArray, FloatArray

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


def tuning_of(sampler: Sampler) -> Tuning | None:
    """Return the tuning that a sampler brings from an earlier run, or None."""
    tuning = getattr(sampler, "tuning", None)
    return tuning if isinstance(tuning, Tuning) else None


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
    n_iterations
        Length of the warm-up.
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
            largest_step=getattr(sampler, "largest_step", math.inf),
            arrived=arrived,
            known=tuning_of(sampler),
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
        chains, dim
            Sizes.
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
        state
            The state before the iteration.
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
        emptied = state.empty_window()
        if covariance is None:
            return emptied
        restarted = attrs.evolve(
            emptied,
            covariance=covariance,
            searching=0,
            direction=0,
            lengths=state.lengths.age(),
            settled=_settled(state, covariance),
            warp=self._warp(state, moving),
        )
        # in a metric that fits, the step is of order dim^-1/4, so 1 is the better guess
        fits = state.covariance is None and "metric" in self.tunes
        return attrs.evolve(restarted, log_step=0.0) if fits else restarted

    def _warp(self, state: TunerState, moving: BoolArray) -> Warp | None:
        if "warp" in self.tunes:
            return learn_warp(state, moving)
        return learn_warp(state, moving, heavy=True) if "heavy_warp" in self.tunes else None


def _settled(state: TunerState, covariance: FloatArray) -> bool:
    """Return whether a window leaves the covariance as it was."""
    known = state.covariance
    return state.count >= LEAST_TO_SETTLE and known is not None and agree(known, covariance)


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
