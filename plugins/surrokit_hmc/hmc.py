"""Hamiltonian Monte Carlo: trajectories of leapfrog steps."""

from __future__ import annotations

import math

import attrs

from surrokit.arguments import (
    fraction,
    optional_positive,
    optional_positive_integer,
    positive,
    share,
)
from surrokit.capabilities import GRADIENT, GRADIENT_ALONE
from surrokit.interfaces import Integrator, Metric, Sampler, Tuning
from surrokit.kernel.hamiltonian import CountedPaths, demand_kind, left_free
from surrokit.kernel.kernel import adapted, latest
from surrokit.potentials import Potential
from surrokit.types import Capabilities, FloatArray
from surrokit.warping import Warped, WarpedKernel

PATH_LENGTH = math.pi
"""Longest path in standard deviations of the widest direction, unless told otherwise.

With the length uniform up to pi the expected cosine is 0: on a Gaussian, successive draws of the
widest direction are then uncorrelated.
"""

MAX_STEPS = 512
"""Tuning never asks for longer paths than this, in steps."""


@attrs.frozen(kw_only=True, eq=False)
class HMC(Sampler):
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
    path_length
        Longest path that tuning asks for, in standard deviations of the widest direction. Longer
        ones may suit parameters with long flat tails, with ``shortest`` of about 1/2.
    target_acceptance
        Mean acceptance on its own potential that tuning of the step size aims at.
    warp
        Follow paths in coordinates in which each parameter by itself is about normal, learnt in
        warm-up. The metric is in these coordinates then. It takes an integrator that keeps value
        and gradient of positions, and no more. On narrow straight ridges it does harm: they
        become curved. None does so for parameters whose draws in warm-up have heavy tails on both
        sides, where step size, number of steps and metric are left to be tuned, too.

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
    path_length: float = attrs.field(default=PATH_LENGTH, validator=positive)
    target_acceptance: float = attrs.field(default=0.8, validator=fraction)
    warp: bool | None = None

    def __attrs_post_init__(self) -> None:
        demand_kind("hmc", self.metric, self.integrator)

    @property
    def needs(self) -> Capabilities:
        """What the integrator needs."""
        return self.integrator.needs

    @property
    def tunes(self) -> frozenset[str]:
        """Whatever of step size, number of steps and metric was not given, and a warp."""
        return left_free(
            step_size=self.step_size is None,
            n_steps=self.n_steps is None,
            metric=self.metric.tunable,
            warp=self.warp is True,
            heavy_warp=self.warp is None
            and self.integrator.needs <= {GRADIENT, GRADIENT_ALONE}
            and {self.step_size, self.n_steps} == {None}
            and self.metric.tunable,
        )

    def bind(self, potential: Potential, tuning: Tuning) -> CountedPaths | WarpedKernel:
        """Return the kernel on a potential that uses ``tuning`` for what was left free."""
        if self.warp is False or tuning.warp is None:
            return self._plain(potential, tuning)
        warped = Warped(potential, tuning.warp)
        straight = attrs.evolve(tuning, covariance=tuning.warp.covariance)
        return WarpedKernel(inner=self._plain(warped, straight), warped=warped)

    def _plain(self, potential: Potential, tuning: Tuning) -> CountedPaths:
        step = tuning.step_size if self.step_size is None else self.step_size
        steps = tuning.n_steps if self.n_steps is None else self.n_steps
        if steps is None:
            longest = self._longest(tuning.covariance) or 0.0
            steps = min(max(math.ceil(longest / step), 1), MAX_STEPS)
        return CountedPaths(
            potential=potential,
            integrator=self.integrator,
            metric=adapted(self.metric, tuning.covariance) or self.metric,
            step=step,
            max_steps=steps,
            shortest=self.shortest,
            randomize=self.randomize,
        )

    @latest
    def _longest(self, covariance: FloatArray) -> float:
        """Return the longest path as a length, in the metric that fits a covariance."""
        return self.path_length * self.metric.adapt(covariance).longest_scale(covariance)
