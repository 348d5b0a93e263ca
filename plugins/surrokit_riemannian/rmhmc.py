"""Riemannian manifold Hamiltonian Monte Carlo, section 2.2 of the paper."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import ClassVar

import attrs

from surrokit.arguments import fraction, optional_positive, optional_positive_integer
from surrokit.interfaces import Integrator, PositionMetric, Sampler, Tuning
from surrokit.kernel.hamiltonian import CountedPaths, demand_kind, left_free
from surrokit.kernel.kernel import adapted
from surrokit.potentials import Potential
from surrokit.types import Capabilities
from surrokit_riemannian.softabs import OwnMetric

PATH_LENGTH = 0.5 * math.pi
"""Length of a tuned path. In its own metric a target has unit scale, and a path of a quarter of
the period takes a normal one to an independent draw."""

LONGEST_STEP = 2.0
"""Tuning never takes a longer step. In the metric of a normal target the leapfrog is stable up to
2, and there the implicit midpoint rule, which accepts at any step, turns by a quarter of the
period."""

MAX_STEPS = 16
"""Tuning never asks for longer paths than this, in steps. Where it would, the metric does not fit:
in one that does, a few steps make a path."""


@attrs.frozen(kw_only=True, eq=False)
class RMHMC(Sampler):
    """Paths of Hamiltonian dynamics in a metric that changes with position.

    Girolami and Calderhead (2011), doi:10.1111/j.1467-9868.2010.00765.x. Potential and metric are
    always of one potential, exact or a surrogate; the kinetic energies at both ends, with their
    log determinants, are in the correction, so that draws are exact in either case.

    Parameters
    ----------
    integrator
        How to follow a path, in a metric that changes with position.
    metric
        The kinetic energy, of the kind that changes with position. Where it is left open and the
        potential has no Hessians, it is the potential's own metric.
    step_size
        None leaves it to be tuned.
    n_steps
        Steps in a path; None leaves it to be tuned, to a length of pi / 2.
    randomize
        Draw the number of steps uniformly from {1, ..., n_steps} in each iteration; all chains
        share it.
    target_acceptance
        Mean acceptance on its own potential that tuning of the step size aims at.

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

    longest_warmup: ClassVar[int] = 200
    """Iterations that are enough after an exploration, where their number is left open: the metric
    knows all scales, and the step size alone is left to be tuned."""

    def __attrs_post_init__(self) -> None:
        demand_kind("rmhmc", self.metric, self.integrator, by_position=True)

    @property
    def needs(self) -> Capabilities:
        """What the integrator and the metric need."""
        return self.integrator.needs | self.metric.needs

    @property
    def tunes(self) -> frozenset[str]:
        """Whatever of step size, number of steps and the metric's units was not given."""
        return left_free(
            step_size=self.step_size is None,
            n_steps=self.n_steps is None,
            metric=self.metric.tunable,
        )

    @property
    def caches_metric(self) -> bool:
        """Whether factors of the metric, which caches hold, are in units that are tuned."""
        return self.metric.tunable

    def suit(self, capabilities: Capabilities, given: Collection[str]) -> RMHMC:
        """Return the sampler for a potential with some capabilities.

        Without Hessians, as of a target with a forward map, the metric is the potential's
        own, if it has one and no metric is among the settings ``given``.
        """
        own = attrs.evolve(self, metric=OwnMetric())
        is_open = "metric" not in given and not self.needs <= capabilities
        return own if is_open and own.needs <= capabilities else self

    def bind(self, potential: Potential, tuning: Tuning) -> CountedPaths:
        """Return the kernel on a potential that uses ``tuning`` for what was left free."""
        step = min(tuning.step_size, LONGEST_STEP) if self.step_size is None else self.step_size
        steps = self.n_steps
        if steps is None:
            most = MAX_STEPS if tuning.n_steps is None else tuning.n_steps
            steps = min(max(round(PATH_LENGTH / step), 1), most)
        return CountedPaths(
            potential=potential,
            integrator=self.integrator,
            metric=adapted(self.metric, tuning.covariance) or self.metric,
            step=step,
            max_steps=steps,
            randomize=self.randomize,
        )
