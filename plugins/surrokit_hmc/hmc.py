"""Hamiltonian Monte Carlo: Algorithm 1, and with a surrogate the second phase of Algorithm 3."""

from __future__ import annotations

import math

import attrs
import numpy as np

from surrokit.capabilities import GRADIENT, GRADIENT_ALONE
from surrokit.contracts.dynamics import Integrator, Metric, Phase
from surrokit.contracts.potential import Potential
from surrokit.contracts.sampler import ChainState, Tuning
from surrokit.kernel.hamiltonian import constant_integrator, constant_metric
from surrokit.kernel.latest import latest
from surrokit.kernel.paths import CountedPaths
from surrokit.settings import (
    fraction,
    optional_positive,
    optional_positive_integer,
    positive,
    share,
)
from surrokit.types import Capabilities, FloatArray
from surrokit.warping.kernel import WarpedKernel
from surrokit.warping.warped import Warped

PATH_LENGTH = math.pi
"""Longest path in standard deviations of the widest direction, unless told otherwise.

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
        constant_metric(self.metric, "hmc")
        constant_integrator(self.integrator, "hmc")

    @property
    def needs(self) -> Capabilities:
        """What the integrator needs."""
        return self.integrator.needs

    @property
    def tunes(self) -> frozenset[str]:
        """Whatever of step size, number of steps and metric was not given, and a warp."""
        free = {
            "step_size": self.step_size is None,
            "n_steps": self.n_steps is None,
            "metric": self.metric.tunable,
            "warp": self.warp is True,
            "heavy_warp": self._warps_heavy_tails,
        }
        return frozenset(name for name, is_free in free.items() if is_free)

    @property
    def _warps_heavy_tails(self) -> bool:
        fixed = self.step_size is not None or self.n_steps is not None or not self.metric.tunable
        plain = self.integrator.needs <= {GRADIENT, GRADIENT_ALONE}
        return self.warp is None and plain and not fixed

    def bind(self, potential: Potential, tuning: Tuning) -> HMCKernel | WarpedKernel:
        """Return the kernel on a potential that uses ``tuning`` for what was left free."""
        if self.warp is False or tuning.warp is None:
            return self._plain(potential, tuning)
        warped = Warped(potential, tuning.warp)
        straight = attrs.evolve(tuning, covariance=tuning.warp.covariance)
        return WarpedKernel(inner=self._plain(warped, straight), warped=warped)

    def _plain(self, potential: Potential, tuning: Tuning) -> HMCKernel:
        metric, longest_path = self._fit(tuning.covariance) or (self.metric, None)
        step = tuning.step_size if self.step_size is None else self.step_size
        return HMCKernel(
            potential=potential,
            integrator=self.integrator,
            metric=metric,
            step=step,
            max_steps=self._max_steps(step, tuning.n_steps, longest_path),
            shortest=self.shortest,
            randomize=self.randomize,
        )

    @latest
    def _fit(self, covariance: FloatArray) -> tuple[Metric, float]:
        """Return the metric, and the longest path as a length."""
        metric = self.metric.adapt(covariance) if self.metric.tunable else self.metric
        return metric, self.path_length * metric.longest_scale(covariance)

    def _max_steps(self, step: float, asked: int | None, longest_path: float | None) -> int:
        given = self.n_steps if self.n_steps is not None else asked
        if given is not None:
            return given
        if longest_path is None:
            return 1
        return min(max(math.ceil(longest_path / step), 1), MAX_STEPS)


class HMCKernel(CountedPaths[Metric]):
    """Paths in one mass matrix."""

    def draw_momenta(self, rng: np.random.Generator, state: ChainState) -> FloatArray:
        """Draw momenta from N(0, M), shape (n, dim)."""
        return self.metric.draw(rng, *state.positions.shape)

    def kinetic(self, phase: Phase) -> FloatArray:
        """Return p^T M^-1 p / 2, shape (n,)."""
        return self.metric.energy(phase.momenta)
