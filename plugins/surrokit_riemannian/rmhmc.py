"""Riemannian manifold Hamiltonian Monte Carlo, section 2.2 of the paper."""

from __future__ import annotations

import math
import zlib

import attrs
import numpy as np

from surrokit.contracts.dynamics import Hamiltonian, Integrator, Phase, PositionMetric, Status
from surrokit.contracts.potential import Potential
from surrokit.contracts.sampler import ChainState, Proposal, Tuning
from surrokit.errors import ConfigurationError
from surrokit.kernel.hamiltonian import position_metric, works_by_position
from surrokit.kernel.in_use import potential_in_use, step_in_use
from surrokit.settings import fraction, optional_positive, optional_positive_integer
from surrokit.types import Cache, Capabilities, FloatArray

PATH_LENGTH = 0.5 * math.pi
"""Length of a tuned path. In its own metric a target has unit scale, and a path of a quarter of
the period takes a normal one to an independent draw."""

LONGEST_STEP = 2.0
"""Tuning never takes a longer step. In the metric of a normal target the leapfrog is stable up to
2, and there the implicit midpoint rule, which accepts at any step, turns by a quarter of the
period."""

MAX_STEPS = 512
"""Tuning never asks for longer paths than this, in steps."""

_UNITS = "metric_units"


@attrs.frozen(kw_only=True, eq=False)
class RMHMC:
    """Paths of Hamiltonian dynamics in a metric that changes with position.

    Girolami and Calderhead (2011), doi:10.1111/j.1467-9868.2010.00765.x. Potential and metric are
    always of one potential, exact or a surrogate; the kinetic energies at both ends, with their
    log determinants, are in the correction, so that draws are exact in either case.

    Parameters
    ----------
    integrator
        How to follow a path, in a metric that changes with position.
    metric
        The kinetic energy, of the kind that changes with position.
    step_size
        None leaves it to be tuned.
    n_steps
        Steps in a path; None leaves it to be tuned, to a length of pi / 2.
    randomize
        Draw the number of steps uniformly from {1, ..., n_steps} in each iteration; all chains
        share it.
    target_acceptance
        Mean acceptance on its own potential that tuning of the step size aims at.
    potential
        What it moves on.
    tuning
        What tuning found, for whatever was left free.

    Raises
    ------
    ConfigurationError
        If a setting is out of range, or metric or integrator are of the kind that ``hmc`` takes.
    """

    integrator: Integrator
    metric: PositionMetric
    step_size: float | None = attrs.field(default=None, validator=optional_positive)
    n_steps: int | None = attrs.field(default=None, validator=optional_positive_integer)
    randomize: bool = False
    target_acceptance: float = attrs.field(default=0.8, validator=fraction)
    potential: Potential | None = None
    tuning: Tuning | None = None

    def __attrs_post_init__(self) -> None:
        position_metric(self.metric, "rmhmc")
        if not works_by_position(self.integrator):
            raise ConfigurationError(
                f"rmhmc needs an integrator for metrics that change with position, got "
                f"{type(self.integrator).__name__}, which follows one mass matrix; use "
                "sampler='hmc' for it, or integrator 'generalized-leapfrog'"
            )

    @property
    def needs(self) -> Capabilities:
        """What the integrator and the metric need."""
        return self.integrator.needs | self.metric.needs

    @property
    def tunes(self) -> frozenset[str]:
        """Whatever of step size, number of steps and the metric's units was not given."""
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
        return step_in_use("rmhmc", self.step_size, self.tuning)

    @property
    def max_steps(self) -> int:
        """Steps in a path, given, or enough for a length of pi / 2.

        Tuning may ask for fewer.
        """
        if self.n_steps is not None:
            return self.n_steps
        most = MAX_STEPS
        if self.tuning is not None and self.tuning.n_steps is not None:
            most = self.tuning.n_steps
        return min(max(round(PATH_LENGTH / self.step), 1), most)

    def with_potential(self, potential: Potential) -> RMHMC:
        """Return a copy that moves on another potential."""
        return attrs.evolve(self, potential=potential)

    def drawn(self, rng: np.random.Generator) -> RMHMC:
        """Return a copy in which the number of steps is drawn that all chains share."""
        if not self.randomize:
            return self
        length = int(rng.integers(1, self.max_steps + 1))
        return attrs.evolve(self, n_steps=length, randomize=False)

    def tuned(self, tuning: Tuning) -> RMHMC:
        """Return a copy that uses ``tuning`` for what was left free."""
        known = None if self.tuning is None else self.tuning.covariance
        metric = self.metric
        if tuning.covariance is not None and tuning.covariance is not known and metric.tunable:
            metric = metric.adapted(tuning.covariance)
        step_size = min(tuning.step_size, LONGEST_STEP)
        return attrs.evolve(self, tuning=attrs.evolve(tuning, step_size=step_size), metric=metric)

    def cache(self, positions: FloatArray) -> Cache:
        """Return what the integrator keeps for positions of shape (n, dim).

        And ``metric_units`` (n,), a number that tells in which units the metric was then.
        """
        with np.errstate(all="ignore"):
            cache = self.integrator.cache(self._hamiltonian(), positions)
        return {**cache, _UNITS: np.full(len(positions), self._units())}

    def propose(self, state: ChainState, rng: np.random.Generator) -> Proposal:
        """Follow one path for each chain."""
        cache = state.cache
        if (cache[_UNITS] != self._units()).any():  # the metric has been tuned since
            cache = self.cache(state.positions)
        longest = self.max_steps
        with np.errstate(all="ignore"):  # a path that overflows is a status, not a warning
            momenta = self.metric.draw(rng, cache)
            length = int(rng.integers(1, longest + 1)) if self.randomize else longest
            n_steps = np.full(len(momenta), length)
            end, status = self.integrator.advance(
                self._hamiltonian(),
                Phase(positions=state.positions, momenta=momenta, cache=cache),
                np.full(len(momenta), self.step),
                n_steps,
            )
            before = self.metric.energy(cache, momenta)
            log_correction = before - self.metric.energy(end.cache, end.momenta)
            log_path_ratio = cache["value"] - end.cache["value"] + log_correction
        return Proposal(
            positions=end.positions,
            log_correction=log_correction,
            moved=status == Status.OK,
            status=status,
            cache={**end.cache, _UNITS: np.full(len(momenta), self._units())},
            source=self.potential,
            log_path_ratio=log_path_ratio,
            n_steps=n_steps,
        )

    def _units(self) -> float:
        """Return a number for the covariance that the metric was tuned to; 0 for none."""
        if self.tuning is None or self.tuning.covariance is None or not self.metric.tunable:
            return 0.0
        return 1.0 + zlib.crc32(np.ascontiguousarray(self.tuning.covariance).tobytes())

    def _hamiltonian(self) -> Hamiltonian:
        potential = potential_in_use("rmhmc", self.potential)
        return Hamiltonian(potential=potential, metric=self.metric)
