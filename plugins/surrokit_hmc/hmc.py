"""Hamiltonian Monte Carlo: Algorithm 1, and with a surrogate the second phase of Algorithm 3."""

from __future__ import annotations

import math

import attrs
import numpy as np

from surrokit.contracts.dynamics import Hamiltonian, Integrator, Metric, Phase, Status
from surrokit.contracts.potential import Potential
from surrokit.contracts.sampler import ChainState, Proposal, Tuning
from surrokit.kernel.hamiltonian import constant_integrator, constant_metric
from surrokit.kernel.latest import Latest
from surrokit.settings import fraction, optional_positive, optional_positive_integer, share
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
    _fit: Latest[tuple[Metric, float]] = attrs.field(init=False, repr=False)

    @_fit.default
    def _remember(self) -> Latest[tuple[Metric, float]]:
        return Latest(self._fitted)

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

    def bind(self, potential: Potential, tuning: Tuning) -> HMCKernel:
        """Return the kernel on a potential that uses ``tuning`` for what was left free."""
        metric, longest_path = self._fit(tuning.covariance) or (self.metric, None)
        step = tuning.step_size if self.step_size is None else self.step_size
        return HMCKernel(
            hamiltonian=Hamiltonian(potential=potential, metric=metric),
            integrator=self.integrator,
            metric=metric,
            step=step,
            max_steps=self._max_steps(step, tuning.n_steps, longest_path),
            shortest=self.shortest,
            randomize=self.randomize,
        )

    def _fitted(self, covariance: FloatArray) -> tuple[Metric, float]:
        """Return the metric, and the longest path as a length."""
        metric = self.metric.adapted(covariance) if self.metric.tunable else self.metric
        return metric, PATH_LENGTH * metric.longest_scale(covariance)

    def _max_steps(self, step: float, asked: int | None, longest_path: float | None) -> int:
        given = self.n_steps if self.n_steps is not None else asked
        if given is not None:
            return given
        if longest_path is None:
            return 1
        return min(max(math.ceil(longest_path / step), 1), MAX_STEPS)


@attrs.frozen(kw_only=True, eq=False)
class HMCKernel:
    """Paths on one potential.

    Parameters
    ----------
    hamiltonian
        Potential and metric.
    integrator, metric, shortest, randomize
        As in :class:`HMC`, the metric tuned.
    step
        Step size in use.
    max_steps
        The longest path in steps, given or tuned; 1 while nothing is known.
    """

    hamiltonian: Hamiltonian
    integrator: Integrator
    metric: Metric
    step: float
    max_steps: int
    shortest: float
    randomize: bool

    @property
    def potential(self) -> Potential:
        """What it moves on."""
        return self.hamiltonian.potential

    def drawn(self, rng: np.random.Generator) -> HMCKernel:
        """Return a copy in which the number of steps is drawn that all chains share."""
        if not self.randomize:
            return self
        return attrs.evolve(self, max_steps=self._drawn_length(rng), randomize=False)

    def cache(self, positions: FloatArray) -> Cache:
        """Return what the integrator keeps for positions of shape (n, dim)."""
        return self.integrator.cache(self.hamiltonian, positions)

    def propose(self, state: ChainState, rng: np.random.Generator) -> Proposal:
        """Follow one path for each chain."""
        n, dim = state.positions.shape
        momenta = self.metric.draw(rng, n, dim)
        start = Phase(positions=state.positions, momenta=momenta, cache=state.cache)
        n_steps = np.full(n, self._drawn_length(rng) if self.randomize else self.max_steps)
        with np.errstate(all="ignore"):  # a path that overflows is a status, not a warning
            end, status = self.integrator.advance(
                self.hamiltonian, start, np.full(n, self.step), n_steps
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
