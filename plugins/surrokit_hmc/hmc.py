"""Hamiltonian Monte Carlo: trajectories of leapfrog steps."""

from __future__ import annotations

import math

import attrs

from surrokit.arguments import (
    fraction,
    optional_positive,
    optional_positive_integer,
)
from surrokit.capabilities import GRADIENT, GRADIENT_ALONE
from surrokit.interfaces import Integrator, Kernel, Metric, Sampler, Tuning
from surrokit.kernel.hamiltonian import CountedPaths, demand_kind, left_free
from surrokit.kernel.kernel import adapted, latest
from surrokit.potentials import Potential
from surrokit.types import Capabilities, FloatArray
from surrokit.warping import bind_warped

PATH_LENGTHS = 0.25 * math.pi, 0.75 * math.pi
"""Bounds of the length of a tuned path, in standard deviations of the widest direction.

On a normal target positions turn by an angle of that length. Its expected cosine is 0, and that of
the squared cosine 0.18: successive draws are uncorrelated, and their squares nearly so. Narrower
bounds would do better there, and worse in heavy tails.
"""

LONGEST = math.pi
"""The longest path while a covariance is learnt, and in coordinates that make heavy tails about
normal: the number of steps is drawn. Shorter paths of drawn lengths are slower far out."""

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
        None leaves it to be tuned. Where ``n_steps`` is tuned, steps are at most this long.
    n_steps
        Longest path in steps. None has paths of about a quarter of the period of the widest
        direction, in as many steps as it takes.
    randomize
        Draw the number of steps uniformly from {1, ..., n_steps} in each iteration, as section 5
        of the paper does, or the length of a tuned path; all chains share it, so that they stay
        one batch.
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

    def bind(self, potential: Potential, tuning: Tuning) -> Kernel:
        """Return the kernel on a potential that uses ``tuning`` for what was left free."""
        if self.warp is False:
            tuning = attrs.evolve(tuning, warp=None)
        return bind_warped(self._plain, potential, tuning)

    def _plain(self, potential: Potential, tuning: Tuning) -> CountedPaths:
        step = tuning.step_size if self.step_size is None else self.step_size
        steps = tuning.n_steps if self.n_steps is None else self.n_steps
        scale, lengths = self._scale(tuning.covariance), None
        if steps is None and scale is not None:
            longest = LONGEST * scale
            if not (tuning.learns or (tuning.warp is not None and tuning.warp.is_curved)):
                low, high = PATH_LENGTHS if self.randomize else (0.5 * math.pi, 0.5 * math.pi)
                lengths, longest = (low * scale, high * scale), high * scale
            steps = min(math.ceil(longest / step), MAX_STEPS)
        return CountedPaths(
            potential=potential,
            integrator=self.integrator,
            metric=adapted(self.metric, tuning.covariance) or self.metric,
            step=step,
            max_steps=steps or 1,
            lengths=lengths,
            randomize=self.randomize,
        )

    @latest
    def _scale(self, covariance: FloatArray) -> float:
        """Return the sd of the widest direction, in the metric that fits a covariance."""
        return self.metric.adapt(covariance).longest_scale(covariance)
