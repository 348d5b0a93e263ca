"""Hamiltonian Monte Carlo: Algorithm 1, and with a surrogate the second phase of Algorithm 3."""

from __future__ import annotations

import math

import attrs
import numpy as np

from surrokit.contracts.dynamics import Hamiltonian, Integrator, Metric, Phase, Status
from surrokit.contracts.potential import Potential
from surrokit.contracts.sampler import ChainState, Proposal, Tuning
from surrokit.kernel.hamiltonian import constant_integrator, constant_metric
from surrokit.kernel.in_use import potential_in_use, step_in_use
from surrokit.settings import HIDDEN, fraction, optional_positive, optional_positive_integer, share
from surrokit.types import Cache, Capabilities, FloatArray

PATH_LENGTH = math.pi
"""Longest path in standard deviations of the widest direction.

With the length uniform up to pi the expected cosine is 0: on a Gaussian, successive draws of the
widest direction are then uncorrelated.
"""

MAX_STEPS = 512
"""Tuning never asks for longer paths than this, in steps."""


@attrs.frozen(kw_only=True, eq=False)
class HMC:
    """Paths of Hamiltonian dynamics with fresh momenta, section 2.1 of the paper.

    Parameters
    ----------
    integrator
        How to follow a path.
    metric
        The kinetic energy.
    step_size
        None leaves it to be tuned.
    n_steps
        Longest path in steps; None leaves it to be tuned.
    randomize
        Draw the number of steps uniformly from {1, ..., n_steps} in each iteration, as section 5
        of the paper does; all chains share it, so that they stay one batch.
    shortest
        Part of ``n_steps`` below which no number is drawn. With 1/3 paths from tuning turn most
        positions round: on a normal target their expected correlation is -0.41 instead of 0, that
        of squares 0.40 instead of 0.5. They take a third more steps, which on a surrogate matter
        little.
    target_acceptance
        Mean acceptance on its own potential that tuning of the step size aims at.
    potential
        What it moves on.
    tuning, longest_path
        What tuning found: for whatever was left free, and the longest path as a length.

    Raises
    ------
    ConfigurationError
        If a setting is out of range, or metric or integrator are of the kind that ``rmhmc`` takes.
    """

    integrator: Integrator
    metric: Metric
    step_size: float | None = attrs.field(default=None, validator=optional_positive)
    n_steps: int | None = attrs.field(default=None, validator=optional_positive_integer)
    randomize: bool = True
    shortest: float = attrs.field(default=0.0, validator=share)
    target_acceptance: float = attrs.field(default=0.8, validator=fraction)
    potential: Potential | None = None
    tuning: Tuning | None = None
    longest_path: float | None = attrs.field(default=None, metadata=HIDDEN)

    def __attrs_post_init__(self) -> None:
        constant_metric(self.metric, "hmc")
        constant_integrator(self.integrator, "hmc")

    @property
    def needs(self) -> Capabilities:
        """What the integrator needs."""
        return self.integrator.needs

    @property
    def tunes(self) -> frozenset[str]:
        """Whatever of step size, number of steps and metric was not given."""
        free = {
            "step_size": self.step_size is None,
            "n_steps": self.n_steps is None,
            "metric": self.metric.tunable,
        }
        return frozenset(name for name, is_free in free.items() if is_free)

    @property
    def step(self) -> float:
        """The step size in use, given or tuned.

        Raises
        ------
        ConfigurationError
            If it is neither.
        """
        return step_in_use("hmc", self.step_size, self.tuning)

    @property
    def max_steps(self) -> int:
        """The longest path in steps, given or tuned; 1 while nothing is known."""
        if self.n_steps is not None:
            return self.n_steps
        if self.tuning is not None and self.tuning.n_steps is not None:
            return self.tuning.n_steps
        if self.longest_path is None:
            return 1
        return min(max(math.ceil(self.longest_path / self.step), 1), MAX_STEPS)

    def with_potential(self, potential: Potential) -> HMC:
        """Return a copy that moves on another potential."""
        return attrs.evolve(self, potential=potential)

    def drawn(self, rng: np.random.Generator) -> HMC:
        """Return a copy in which the number of steps is drawn that all chains share."""
        if not self.randomize:
            return self
        length = self._drawn_length(rng)
        return attrs.evolve(self, n_steps=length, randomize=False)

    def tuned(self, tuning: Tuning) -> HMC:
        """Return a copy that uses ``tuning`` for what was left free."""
        if self.tuning is not None and tuning.covariance is self.tuning.covariance:
            return attrs.evolve(self, tuning=tuning)  # saves factoring the same matrix again
        if tuning.covariance is None:
            return attrs.evolve(self, tuning=tuning, longest_path=None)
        metric = self.metric.adapted(tuning.covariance) if self.metric.tunable else self.metric
        longest_path = PATH_LENGTH * metric.longest_scale(tuning.covariance)
        return attrs.evolve(self, tuning=tuning, metric=metric, longest_path=longest_path)

    def cache(self, positions: FloatArray) -> Cache:
        """Return what the integrator keeps for positions of shape (n, dim)."""
        return self.integrator.cache(self._hamiltonian(), positions)

    def propose(self, state: ChainState, rng: np.random.Generator) -> Proposal:
        """Follow one path for each chain."""
        hamiltonian = self._hamiltonian()
        n, dim = state.positions.shape
        momenta = self.metric.draw(rng, n, dim)
        start = Phase(positions=state.positions, momenta=momenta, cache=state.cache)
        length = self._drawn_length(rng) if self.randomize else self.max_steps
        n_steps = np.full(n, length)
        with np.errstate(all="ignore"):  # a path that overflows is a status, not a warning
            end, status = self.integrator.advance(
                hamiltonian, start, np.full(n, self.step), n_steps
            )
            log_correction = self.metric.energy(momenta) - self.metric.energy(end.momenta)
            log_path_ratio = state.cache["value"] - end.cache["value"] + log_correction
        return Proposal(
            positions=end.positions,
            log_correction=log_correction,
            moved=status == Status.OK,
            status=status,
            cache=end.cache,
            source=self.potential,
            log_path_ratio=log_path_ratio,
            n_steps=n_steps,
        )

    def _drawn_length(self, rng: np.random.Generator) -> int:
        longest = self.max_steps
        return int(rng.integers(max(math.ceil(self.shortest * longest), 1), longest + 1))

    def _hamiltonian(self) -> Hamiltonian:
        potential = potential_in_use("hmc", self.potential)
        return Hamiltonian(potential=potential, metric=self.metric)
