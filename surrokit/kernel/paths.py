"""Kernels that follow Hamiltonian paths."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Generic, Self, TypeVar

import attrs
import numpy as np

from surrokit.contracts.dynamics import (
    Hamiltonian,
    Integrator,
    Metric,
    Phase,
    PositionMetric,
    Status,
)
from surrokit.contracts.potential import Potential
from surrokit.contracts.sampler import ChainState, Proposal
from surrokit.types import Cache, FloatArray

Kinetic = TypeVar("Kinetic", Metric, PositionMetric)


@attrs.frozen(kw_only=True, eq=False)
class PathKernel(Generic[Kinetic]):
    """The common part of kernels that follow paths.

    Parameters
    ----------
    potential
        Potential of the paths.
    integrator
        Integrator of the paths.
    metric
        Kinetic energy, tuned.
    step
        Step size in use.
    """

    potential: Potential
    integrator: Integrator
    metric: Kinetic
    step: float

    @property
    def hamiltonian(self) -> Hamiltonian:
        """The Hamiltonian of potential and metric."""
        return Hamiltonian(potential=self.potential, metric=self.metric)

    def cache(self, positions: FloatArray) -> Cache:
        """Return the integrator's cache for positions of shape (n, dim)."""
        return self.integrator.cache(self.hamiltonian, positions)


@attrs.frozen(kw_only=True, eq=False)
class CountedPaths(PathKernel[Kinetic]):
    """Paths with one number of steps for all chains, so that the chains stay one batch.

    Parameters
    ----------
    max_steps
        The longest path in steps.
    randomize
        Whether each iteration draws the number uniformly.
    shortest
        Share of ``max_steps`` below which no number is drawn.
    """

    max_steps: int
    randomize: bool
    shortest: float = 0.0

    @abstractmethod
    def draw_momenta(self, rng: np.random.Generator, state: ChainState) -> FloatArray:
        """Draw momenta, shape (n, dim)."""

    @abstractmethod
    def kinetic(self, phase: Phase) -> FloatArray:
        """Return K, shape (n,)."""

    def draw_shared(self, rng: np.random.Generator) -> Self:
        """Return a copy in which the number of steps is drawn."""
        return attrs.evolve(self, max_steps=self._length(rng), randomize=False)

    def propose(self, state: ChainState, rng: np.random.Generator) -> Proposal:
        """Follow one path for each chain."""
        n = len(state.positions)
        with np.errstate(all="ignore"):  # a path that overflows is a status, not a warning
            momenta = self.draw_momenta(rng, state)
            start = Phase(positions=state.positions, momenta=momenta, cache=state.cache)
            n_steps = np.full(n, self._length(rng))
            end, status = self.integrator.advance(
                self.hamiltonian, start, np.full(n, self.step), n_steps
            )
            kinetic, value = self.kinetic(start), start.cache["value"]
            log_correction = kinetic - self.kinetic(end)
            log_path_ratio = value - end.cache["value"] + log_correction
        return Proposal(
            positions=end.positions,
            log_correction=log_correction,
            moved=status == Status.OK,
            status=status,
            cache=end.cache,
            source=self.potential,
            log_path_ratio=log_path_ratio,
            n_steps=n_steps,
            energy=value + kinetic,
        )

    def _length(self, rng: np.random.Generator) -> int:
        longest = self.max_steps
        if not self.randomize:
            return longest
        return int(rng.integers(max(math.ceil(self.shortest * longest), 1), longest + 1))
