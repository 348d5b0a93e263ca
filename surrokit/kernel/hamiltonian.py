"""The acceptance of Hamiltonian proposals, and the paths that lead to them."""

from __future__ import annotations

import math
from typing import Self

import attrs
import numpy as np

from surrokit.errors import ConfigurationError
from surrokit.interfaces import (
    OK,
    ChainState,
    Hamiltonian,
    Integrator,
    Kernel,
    Metric,
    Phase,
    PositionMetric,
    Proposal,
    StepInfo,
    changes_with_position,
)
from surrokit.potentials import Potential
from surrokit.types import BoolArray, Cache, FloatArray, IntArray

DIVERGENCE = 1000.0
"""Error of the energy on a path, in nats, beyond which the integrator is not trusted there."""


def metropolis(log_ratio: FloatArray, rng: np.random.Generator) -> tuple[BoolArray, FloatArray]:
    """Accept each chain with probability min(1, exp(log_ratio)).

    Parameters
    ----------
    log_ratio : ndarray of shape (n,)
        Log of the ratio of proposed to current density, with all corrections; NaN never accepts.
    rng
        One uniform number is drawn for every chain, whatever the ratios.

    Returns
    -------
    accepted : ndarray of bool, shape (n,)
    acceptance : ndarray of shape (n,)
        The probabilities used.
    """
    acceptance = np.exp(np.minimum(np.where(np.isnan(log_ratio), -np.inf, log_ratio), 0.0))
    return rng.random(len(log_ratio)) < acceptance, acceptance


def choose(accepted: BoolArray, proposed: FloatArray, current: FloatArray) -> FloatArray:
    """Return proposed rows where accepted, and current ones elsewhere; maybe an array itself."""
    if accepted.all():
        return proposed
    return np.where(accepted.reshape((-1,) + (1,) * (proposed.ndim - 1)), proposed, current)


def state_at(
    exact: Potential, positions: FloatArray, cache: Cache, source: Potential | None
) -> ChainState:
    """Return the state of chains at positions (n, dim), with the values of what decides.

    These are evaluated unless ``cache``, the sampler's on the potential ``source``, has them.
    """
    values = cache["value"] if source is exact else exact.value(positions)
    return ChainState(positions=positions, values=values, cache=cache)


def proposed_values(exact: Potential, state: ChainState, proposal: Proposal) -> FloatArray:
    """Return exact U at proposals, shape (n,), from one batch of those that moved and ended well.

    Others have the value of where their chain is. A proposal on the exact potential has its values.
    """
    if proposal.source is exact:
        return proposal.cache["value"]
    values = state.values.copy()
    rows = np.flatnonzero(proposal.moved & (proposal.status == OK))
    if rows.size:
        values[rows] = exact.value(proposal.positions[rows])
    return values


def carry_out(
    state: ChainState,
    proposal: Proposal,
    values: FloatArray,
    accepted: BoolArray,
    acceptance: FloatArray,
) -> tuple[ChainState, StepInfo]:
    """Return the state after a decision, and what happened.

    Parameters
    ----------
    state, proposal
        Where the chains were, and where they might go.
    values : ndarray of shape (n,)
        Exact U at the proposed positions; NaN where it is not known.
    accepted : ndarray of bool, shape (n,)
        Who goes.
    acceptance : ndarray of shape (n,)
        With what probability, or an unbiased estimate of that.
    """
    # A proposal to stay needs no decision: it would always be "accepted", however stuck the chain
    # is. The same holds for a step too small to change a position in double precision.
    stays = ~proposal.moved
    if (proposal.positions[:, 0] == state.positions[:, 0]).any():
        stays |= (proposal.positions == state.positions).all(axis=1)
    stays &= proposal.status == OK
    if accepted.all():
        after = ChainState(positions=proposal.positions, values=values, cache=proposal.cache)
    else:
        after = ChainState(
            positions=choose(accepted, proposal.positions, state.positions),
            values=choose(accepted, values, state.values),
            cache={
                name: choose(accepted, array, state.cache[name])
                for name, array in proposal.cache.items()
            },
        )
    acceptance = path_acceptance = np.where(stays, np.nan, acceptance)
    divergent = proposal.status != OK
    if proposal.log_path_ratio is not None:
        ratio = np.where(np.isnan(proposal.log_path_ratio), -np.inf, proposal.log_path_ratio)
        ratio = np.where(divergent, -np.inf, ratio)
        divergent = ratio < -DIVERGENCE
        path_acceptance = np.exp(np.minimum(ratio, 0.0))
    if proposal.divergent is not None:
        divergent = divergent | proposal.divergent
    return after, StepInfo(
        accepted=accepted & ~stays,
        acceptance=acceptance,
        path_acceptance=path_acceptance,
        status=proposal.status,
        divergent=divergent,
        n_steps=proposal.n_steps,
        excursion=proposal.excursion,
        energy=proposal.energy,
        ends=proposal.positions if proposal.keeps_source else None,
    )


def take_rows(phase: Phase, rows: IntArray) -> Phase:
    """Return some chains of a phase, as copies."""
    return Phase(
        positions=phase.positions.take(rows, 0),  # several times as fast as an index
        momenta=phase.momenta.take(rows, 0),
        cache={name: array.take(rows, 0) for name, array in phase.cache.items()},
        last_step={name: array.take(rows, 0) for name, array in phase.last_step.items()},
    )


def copy_phase(phase: Phase) -> Phase:
    """Return a phase whose arrays may be written to."""
    cache = {name: array.copy() for name, array in phase.cache.items()}
    return Phase(positions=phase.positions.copy(), momenta=phase.momenta.copy(), cache=cache)


def put_rows(phase: Phase, rows: IntArray, part: Phase) -> None:
    """Write the phase of some chains into that of all, in place."""
    phase.positions[rows], phase.momenta[rows] = part.positions, part.momenta
    for name, array in part.cache.items():
        phase.cache[name][rows] = array
    for name, array in phase.last_step.items():
        array[rows] = part.last_step[name]


# --- parts for one mass matrix, and for one that changes with position ---


def works_by_position(integrator: object) -> bool:
    """Return whether an integrator follows paths in a metric that changes with position.

    Such an integrator has a true attribute ``by_position``.
    """
    return bool(getattr(integrator, "by_position", False))


def demand_kind(
    who: str, metric: object, integrator: object = None, *, by_position: bool = False
) -> None:
    """Reject parts for the other kind of mass matrix: one for all positions, or one by position.

    Raises
    ------
    ConfigurationError
        If the metric, or the integrator where there is one, is not of the kind that ``who`` needs.
    """
    name, found = type(metric).__name__, type(integrator).__name__
    if changes_with_position(metric) and not by_position:
        raise ConfigurationError(
            f"{who} needs a metric with one mass matrix for all positions, got {name}, which "
            "changes with position; use sampler='rmhmc' for it, or metric 'dense', 'diagonal' or "
            "'identity'"
        )
    if by_position and not changes_with_position(metric):
        raise ConfigurationError(
            f"{who} needs a metric that changes with position, got {name}, which does not; use "
            "sampler='hmc' for it, or metric 'softabs'"
        )
    if integrator is not None and works_by_position(integrator) and not by_position:
        raise ConfigurationError(
            f"{who} needs an integrator for one mass matrix, got {found}, which follows metrics "
            "that change with position; use sampler='rmhmc' for it, or integrator 'leapfrog'"
        )
    if integrator is not None and by_position and not works_by_position(integrator):
        raise ConfigurationError(
            f"{who} needs an integrator for metrics that change with position, got {found}, which "
            "follows one mass matrix; use sampler='hmc' for it, or integrator "
            "'generalized-leapfrog'"
        )


def left_free(**free: bool) -> frozenset[str]:
    """Return the names of the settings that are left to be tuned."""
    return frozenset(name for name, is_free in free.items() if is_free)


# --- kernels that follow paths ---


@attrs.frozen(kw_only=True, eq=False)
class PathKernel(Kernel):
    """The common part of kernels that follow paths on a potential, with a step size in use."""

    potential: Potential
    integrator: Integrator
    metric: Metric | PositionMetric
    step: float

    @property
    def hamiltonian(self) -> Hamiltonian:
        """The Hamiltonian of potential and metric."""
        return Hamiltonian(potential=self.potential, metric=self.metric)

    def cache(self, positions: FloatArray) -> Cache:
        """Return the integrator's cache for positions of shape (n, dim)."""
        return self.integrator.cache(self.hamiltonian, positions)


@attrs.frozen(kw_only=True, eq=False)
class CountedPaths(PathKernel):
    """Paths with one number of steps for all chains, so that the chains stay one batch.

    Parameters
    ----------
    max_steps
        The longest path in steps.
    randomize
        Whether each iteration draws the number uniformly.
    lengths
        Bounds of the length of a path, instead of its number of steps. Each iteration draws it, and
        cuts it into the fewest equal steps that are at most ``step``.
    """

    max_steps: int
    randomize: bool
    lengths: tuple[float, float] | None = None

    def draw_shared(self, rng: np.random.Generator) -> Self:
        """Return a copy in which the number of steps is drawn, and their size with the length."""
        steps, step = self._draw_length(rng)
        return attrs.evolve(self, step=step, max_steps=steps, randomize=False, lengths=None)

    def _draw_length(self, rng: np.random.Generator) -> tuple[int, float]:
        """Return the number of steps of the next paths, and their size."""
        steps, step = self.max_steps, self.step
        if self.lengths is not None:
            length = rng.uniform(*self.lengths)
            steps = min(math.ceil(length / step), steps)
            step = min(length / steps, step)
        elif self.randomize:
            steps = int(rng.integers(1, steps + 1))
        return steps, step

    def propose(self, state: ChainState, rng: np.random.Generator) -> Proposal:
        """Follow one path for each chain."""
        n, hamiltonian = len(state.positions), self.hamiltonian
        with np.errstate(all="ignore"):  # a path that overflows is a status, not a warning
            start = hamiltonian.start(state, rng)
            steps, step = self._draw_length(rng)
            n_steps = np.full(n, steps)
            end, status = self.integrator.advance(hamiltonian, start, np.full(n, step), n_steps)
            kinetic, value = hamiltonian.kinetic(start), start.cache["value"]
            log_correction = kinetic - hamiltonian.kinetic(end)
            log_path_ratio = value - end.cache["value"] + log_correction
        return Proposal(
            positions=end.positions,
            log_correction=log_correction,
            moved=status == OK,
            status=status,
            cache=end.cache,
            source=self.potential,
            log_path_ratio=log_path_ratio,
            n_steps=n_steps,
            energy=value + kinetic,
        )
