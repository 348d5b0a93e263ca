"""The kernel of a run: a bound sampler, a correction, and the chains that they move."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

import attrs
import numpy as np

from surrokit.interfaces import (
    ChainState,
    Correction,
    Decider,
    Findings,
    Kernel,
    Proposal,
    Sampler,
    StepInfo,
    Tuning,
)
from surrokit.kernel.jumps import Jumps, jumps_of, modes_of
from surrokit.kernel.tuning import Tuner, moves_by_gradients
from surrokit.limits import check_deadline
from surrokit.potentials import Potential
from surrokit.types import Cache, FloatArray, IntArray

Owner = TypeVar("Owner")
Result = TypeVar("Result")


def latest(
    method: Callable[[Owner, FloatArray], Result],
) -> Callable[[Owner, FloatArray | None], Result | None]:
    """Let a method of a sampler remember its result for the latest covariance; None for None.

    Tuning binds a sampler anew in every iteration, but the covariance (dim, dim) changes only a few
    times, and a matrix decomposition is made only then. Covariances are compared by identity.
    """
    known: WeakKeyDictionary[Owner, tuple[FloatArray, Result]] = WeakKeyDictionary()

    @wraps(method)
    def remembering(self: Owner, covariance: FloatArray | None) -> Result | None:
        if covariance is None:
            return None
        last = known.get(self)
        if last is None or last[0] is not covariance:
            last = known[self] = covariance, method(self, covariance)
        return last[1]

    return remembering


@latest
def adapted(metric: Any, covariance: FloatArray) -> Any:
    """Return a metric in units of a covariance (dim, dim); None without one."""
    return metric.adapt(covariance)


class Binding:
    """Binds a sampler anew whenever its potential or its tuning changes.

    The kernel bound last is ``bound``, or None before one is needed.
    """

    def __init__(self, sampler: Sampler, potential: Potential, chains: int) -> None:
        self.sampler = sampler
        self.potential = potential
        self.bound: Kernel | None = None
        self._tuner = Tuner.start(sampler, 0, chains, potential.dim)
        self.tuning = self._tuner.tuning
        self._stale = False

    @property
    def kernel(self) -> Kernel:
        """The kernel that moves the chains now."""
        if self.bound is None:
            self.bound = self.sampler.bind(self.potential, self.tuning)
        return self.bound

    @property
    def identity(self) -> tuple[object, ...]:
        """The objects that make up the kernel; whenever it changes, one of them is another."""
        return self.sampler, self.potential, self.tuning

    @property
    def tuned_sampler(self) -> Sampler:
        """The sampler, with its tuning if that was ever used."""
        if self.bound is None or not self.sampler.tunes or self.tuning is self.sampler.tuning:
            return self.sampler
        settings = self.sampler
        if isinstance(settings, TunedSampler):
            settings = settings.sampler
        return cast("Sampler", TunedSampler(sampler=settings, tuning=self.tuning))

    def bind_to(self, potential: Potential) -> None:
        """Move on another potential from here on; earlier caches belong to the old one."""
        self.potential = potential
        self.bound = self.sampler.bind(potential, self.tuning)

    # --- tuning ---

    @property
    def has_converged(self) -> bool:
        """Whether the last two windows of a warm-up agree about the covariance."""
        return self._tuner.converged

    def tune(
        self,
        n_iterations: int,
        *,
        covariance: FloatArray | None,
        step_size: float | None,
        tuning: Tuning | None = None,
        arrived: bool = False,
    ) -> None:
        """Begin a warm-up; see :meth:`surrokit.kernel.tuning.Tuner.start`."""
        tuner = Tuner.start(
            self.sampler,
            n_iterations,
            len(self._tuner.recent),
            self.potential.dim,
            arrived=arrived,
            covariance=covariance,
            step_size=step_size,
            tuning=tuning,
        )
        self._use(tuner)

    def update(self, state: ChainState, info: StepInfo) -> None:
        """Tune by a transition, after which the chains are in ``state``."""
        positions, modes = state.positions, modes_of(self.potential)
        if modes is not None:  # between modes jumps lead, and the metric is that within them
            positions = modes.away(positions)
        self._use(self._tuner.update(positions, info, state.cache.get("gradient")))

    def learn(self, covariance: FloatArray | None) -> None:
        """Use a covariance (dim, dim) that was estimated elsewhere, if there is one."""
        if covariance is not None:
            self._use(attrs.evolve(self._tuner, covariance=covariance))

    def tune_afresh(self) -> None:
        """Go on tuning, on a very different potential."""
        self._use(self._tuner.restart())

    def end_tuning(self) -> None:
        """Keep the tuning from here on, though the warm-up may have ended early."""
        self._use(self._tuner.end_tuning())

    def freeze(self) -> None:
        """Keep the tuning as it is from here on."""
        self._use(self._tuner.end())

    def _use(self, tuner: Tuner) -> None:
        changed = tuner.covariance is not self.tuning.covariance
        self._stale |= changed and self.sampler.caches_metric
        self._tuner, self.tuning = tuner, tuner.tuning
        self.bound = self.sampler.bind(self.potential, self.tuning)

    # --- caches ---

    def cache(self, positions: FloatArray) -> Cache:
        """Return the kernel's cache for chains at ``positions (n, dim)``."""
        self._stale = False
        return self.kernel.cache(positions)

    def look_up(self, state: ChainState) -> ChainState:
        """Return a state with a new cache of this kernel."""
        return attrs.evolve(state, cache=self.cache(state.positions))

    def renew(self, state: ChainState) -> ChainState:
        """Return a state that has a cache of this kernel, with the cache brought up to date.

        A metric that takes its units from the covariance keeps its factors in the cache. They are
        remade after retuning, since a kernel that mixed two metrics would have no invariant
        density.
        """
        return self.look_up(state) if self._stale else state


@attrs.frozen(kw_only=True, eq=False)
class TunedSampler:
    """A tuned sampler, for use without a warm-up; a warm-up tunes it afresh.

    All other attributes, ``bind`` included, are those of the sampler.
    """

    sampler: Sampler
    tuning: Tuning

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.sampler, name)
        # a sampler inside is tuned as well
        return attrs.evolve(self, sampler=found) if name == "kernel" else found


STEPS = (1.0, 0.5, 0.25)
"""Parts of the tuned step size that transitions take in turn. A step that is right on the average
is too long for narrow tails: chains would neither enter nor leave them, all of them alike, and
look as if they had mixed."""


def warm_up(
    moves: Binding,
    decider: Decider,
    starts: FloatArray,
    n_transitions: int,
    rng: np.random.Generator,
) -> Iterator[tuple[ChainState, StepInfo]]:
    """Run chains from ``starts (chains, dim)``, and tune their kernel after each transition."""
    state = decider.start(starts, moves.cache(starts), moves.kernel.potential)
    for _ in range(n_transitions):
        check_deadline()
        state = moves.renew(state)
        state, info = decider.decide(state, moves.kernel.propose(state, rng), rng)
        state = jump(moves.kernel, decider, state, rng)
        moves.update(state, info)
        yield state, info


def follow(
    sampler: Sampler,
    potential: Potential,
    tuning: Tuning,
    decider: Decider,
    state: ChainState,
    rng: np.random.Generator,
) -> Iterator[ChainState]:
    """Run tuned chains without end, with the tuned step size and shorter ones in turn."""
    steps = [tuning.step_size * part for part in STEPS]
    kernels = [sampler.bind(potential, attrs.evolve(tuning, step_size=step)) for step in steps]
    for kernel in itertools.cycle(kernels):
        check_deadline()
        state, _ = decider.decide(state, kernel.propose(state, rng), rng)
        state = jump(kernel, decider, state, rng)
        yield state


def jump(
    kernel: Kernel, decider: Decider, state: ChainState, rng: np.random.Generator
) -> ChainState:
    """Let chains jump between the modes of the surrogate they move on; any other has no jumps."""
    jumps = jumps_of(kernel.potential)
    if jumps is not None:
        state, _ = decider.decide(state, jumps.propose(kernel, state, rng), rng)
    return state


AHEAD = 125
"""Transitions that are made at once where proposals do not depend on where chains are.

It does not depend on how many draws are asked for: a run that goes on is to be the longer one."""


def move_ahead(
    kernel: Kernel, decider: Decider, state: ChainState, n: int, rng: np.random.Generator
) -> Iterator[tuple[ChainState, StepInfo]]:
    """Yield n transitions of chains with independent proposals, decided in a few batches.

    The decider goes by estimates of U, and not by its values, which are NaN at all of them.
    First every proposal is decided on as if the one before had been accepted. Where it was not, the
    next one is decided on once more, from where the chain then is, until no decision is from a
    wrong place. Whether a decision is made again depends on those before it alone, and it is made
    with new random numbers, so that transitions have the law of single ones.
    """
    chains = len(state.positions)
    batch = _rows(state, np.tile(np.arange(chains), n))
    proposal = decider.estimate(kernel.propose(batch, rng), rng)
    # places: of the chains as they are, then of all proposals
    places = ChainState(
        positions=np.concatenate([state.positions, proposal.positions]),
        values=np.concatenate([state.values, np.full(n * chains, np.nan)]),
        estimates=None
        if state.estimates is None or proposal.estimates is None
        else np.concatenate([state.estimates, proposal.estimates]),
        cache={k: np.concatenate([state.cache[k], each]) for k, each in proposal.cache.items()},
    )
    own = np.arange(chains, (n + 1) * chains).reshape(n, chains)
    before, wrong = own.ravel() - chains, np.arange(n * chains)
    decided: dict[str, Any] = {}
    while wrong.size:
        there = _rows(places, before[wrong])
        again = Proposal(
            positions=proposal.positions[wrong],
            log_correction=proposal.cache["value"][wrong] - there.cache["value"],
            status=proposal.status[wrong],
            cache={name: array[wrong] for name, array in proposal.cache.items()},
            source=proposal.source,
            estimates=None if proposal.estimates is None else proposal.estimates[wrong],
        )
        _, info = decider.decide(there, again, rng)
        for name in ("accepted", "acceptance", "path_acceptance", "status", "divergent", "n_steps"):
            found = getattr(info, name)
            decided.setdefault(name, np.empty(n * chains, found.dtype))[wrong] = found
        accepted = np.where(decided["accepted"].reshape(n, chains), own, 0)
        at = np.maximum.accumulate(np.vstack([np.arange(chains), accepted]))
        wrong, before = np.flatnonzero(at[:-1].ravel() != before), at[:-1].ravel()
    for i, place in enumerate(at[1:]):
        row = slice(i * chains, (i + 1) * chains)
        yield _rows(places, place), StepInfo(**{name: each[row] for name, each in decided.items()})


def _rows(state: ChainState, rows: IntArray) -> ChainState:
    return ChainState(
        positions=state.positions[rows],
        values=state.values[rows],
        cache={name: array[rows] for name, array in state.cache.items()},
        estimates=None if state.estimates is None else state.estimates[rows],
    )


class Moves(Binding):
    """The run's own kernel on the target or a ready surrogate, with the state of the chains."""

    def __init__(
        self,
        sampler: Sampler,
        correction: Correction,
        target: Potential,
        chains: int,
        surrogate: Potential | None = None,
    ) -> None:
        super().__init__(sampler, surrogate or target, chains)
        self.target = target
        self.correction = correction
        self.decider = correction.bind(target)
        self.chains: ChainState | None = None
        self.covariance: FloatArray | None = None
        self.step_size: float | None = None
        # transitions that are made already, and the state that the next of them begins from
        self._ahead: Iterator[tuple[ChainState, StepInfo]] = iter(())
        self._from: ChainState | None = None

    @property
    def state(self) -> ChainState:
        """State of the chains, once they have begun."""
        assert self.chains is not None
        return self.chains

    @property
    def positions(self) -> FloatArray:
        """Positions of the chains, shape (n, dim)."""
        return self.state.positions

    @property
    def identity(self) -> tuple[object, ...]:
        """The objects that move the chains and decide; on any change one of them is another."""
        return *super().identity, self.decider

    def take_in(self, findings: Findings) -> None:
        """Adopt the findings of an exploration so far."""
        self.chains, self.covariance = findings.chains, findings.covariance
        self.step_size = findings.step_size

    def export_state(self, findings: Findings) -> Findings:
        """Return findings with the chains as they are, for another kernel."""
        return attrs.evolve(
            findings,
            chains=self.state,
            covariance=self.covariance,
            step_size=None,
            tuning=None,
            acceptance=None,
        )

    def start_tuning(self, n_iterations: int, tuning: Tuning | None, *, arrived: bool) -> None:
        """Begin a warm-up of so many iterations, with all that is known."""
        self.tune(
            n_iterations,
            covariance=self.covariance,
            step_size=self.step_size,
            tuning=tuning,
            arrived=arrived,
        )

    def start(self, positions: FloatArray) -> ChainState:
        """Return the state of chains that begin at ``positions (n, dim)``."""
        return self.decider.start(positions, self.cache(positions), self.kernel.potential)

    def forgotten(self, positions: FloatArray) -> float:
        """Return 1 minus the correlation of successive positions, shape (chains, n, dim).

        By the covariance in use.
        """
        if self.covariance is None:
            return 1.0
        steps = np.diff(positions, axis=1).reshape(-1, positions.shape[2])
        try:
            whitened = np.linalg.solve(np.linalg.cholesky(self.covariance), steps.T)
        except np.linalg.LinAlgError:  # no estimate from a singular covariance
            return 1.0
        return float(0.5 * np.square(whitened).mean())

    # --- moving ---

    def transition(self, rng: np.random.Generator, *, tune: bool, ahead: int = AHEAD) -> StepInfo:
        """Make one transition of all chains; of independent ones ``ahead``, if U decides none."""
        self.step_size = self.kernel.step
        is_free = self.kernel.is_independent and not (tune and self.sampler.tunes)
        if is_free and self.state.estimates is not None:
            made = next(self._ahead, None) if self._from is self.chains else None
            if made is None:
                self._ahead = move_ahead(self.kernel, self.decider, self.state, ahead, rng)
                made = next(self._ahead)
            self.chains, info = made
            self._from = self.chains
            return info
        state = self.renew(self.state)
        self.chains, info = self.decider.decide(state, self.kernel.propose(state, rng), rng)
        if tune:
            self.update(self.chains, info)
        return info

    def jump(self, jumps: Jumps, rng: np.random.Generator) -> StepInfo:
        """Let all chains jump, if they are accepted."""
        state = self.renew(self.state)
        proposal = jumps.propose(self.kernel, state, rng)
        self.chains, info = self.decider.decide(state, proposal, rng)
        return info

    def move_to(self, state: ChainState, *, tune: bool) -> None:
        """Adopt the state to which another kernel brought the chains."""
        if tune:
            self._use(self._tuner.skip(state.positions))
        self.chains = self.look_up(state)

    def move_on(self, potential: Potential) -> None:
        """Move on another potential from here on."""
        self.bind_to(potential)
        self.chains = self.look_up(self.state)

    def load_state(self, findings: Findings) -> None:
        """Go on from where another kernel left the chains."""
        self.take_in(findings)
        self.chains = self.look_up(self.state)
        self._begin_deciding()

    def prepare(self, near: FloatArray) -> bool:
        """Let the correction evaluate what it must know; return whether that changed it."""
        prepared = self.decider.prepare(near)
        if prepared is self.decider:
            return False
        self.decider = prepared
        self.chains = attrs.evolve(self.state, estimates=None)  # another decider's
        if not np.isfinite(self.state.values).all():
            self._begin_deciding()
        return True

    def _begin_deciding(self) -> None:
        state = self.state
        self.chains = self.decider.start(state.positions, state.cache, self.kernel.potential)

    def _use(self, tuner: Tuner) -> None:
        super()._use(tuner)
        self.covariance = self.tuning.covariance


class ExactMoves(Binding):
    """An exact kernel beside the run's own, tuned separately, on the exact potential."""

    def __init__(self, sampler: Sampler, decider: Decider, target: Potential, chains: int) -> None:
        super().__init__(sampler, target, chains)
        self._decider = decider
        self._last: ChainState | None = None

    @property
    def step(self) -> float | None:
        """The step size in use."""
        return self.kernel.step

    @property
    def moves_by_gradients(self) -> bool:
        """Whether its transitions follow gradients."""
        return moves_by_gradients(self.sampler)

    @property
    def identity(self) -> tuple[object, ...]:
        """The objects that move the chains and decide; on any change one of them is another."""
        return *super().identity, self._decider

    def decide_by(self, decider: Decider) -> None:
        """Use another decider from here on, bound to the exact potential."""
        self._decider = decider
        self._last = None

    def transition(
        self, state: ChainState, rng: np.random.Generator, *, tune: bool
    ) -> tuple[ChainState, StepInfo]:
        """Make one exact transition of all chains.

        The cache of ``state`` may be of any potential; that of the new one is of the exact one.
        """
        last = self._last
        if last is None or last.positions is not state.positions:
            state = self.look_up(state)
        else:  # the cache of the last transition, so that nothing is evaluated twice
            state = self.renew(attrs.evolve(state, cache=last.cache))
        self._last, info = self._decider.decide(state, self.kernel.propose(state, rng), rng)
        if tune:
            self.update(self._last, info)
        return self._last, info
