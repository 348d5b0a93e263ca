"""The no-U-turn sampler, with points drawn by their weights."""

from __future__ import annotations

import attrs
import numpy as np

from surrokit.arguments import fraction, optional_positive, positive_integer, share
from surrokit.interfaces import ChainState, Integrator, Kernel, Metric, Proposal, Sampler, Tuning
from surrokit.kernel.hamiltonian import PathKernel, demand_kind, left_free
from surrokit.kernel.kernel import adapted
from surrokit.potentials import Potential
from surrokit.types import Capabilities
from surrokit.warping import bind_warped
from surrokit_hmc.trajectories import Trajectories


@attrs.frozen(kw_only=True, eq=False)
class NUTS(Sampler):
    """Paths that double until they turn back, and one point of them, drawn by weight.

    Hoffman and Gelman (2014, arXiv:1111.4246), in the multinomial form of Betancourt (2017,
    arXiv:1701.02434, appendix A): points count by exp(-H), the sample of the newer half is
    preferred, and a path ends where going on at either end would soon shorten it. That test takes
    both ends alike, and all subtrees. Given a path, drawing from it satisfies detailed balance,
    and each of its points makes the same path equally often. So a move is reversible for exp(-V),
    and c = V(q') - V(q).

    Parameters
    ----------
    integrator
        How to follow a path.
    metric
        The kinetic energy.
    step_size
        None leaves it to be tuned.
    max_depth
        A path has at most 2 to this power points.
    slowed
        A path ends where the momentum at one of its ends, along the way, is down to this share of
        its mean over the path. At 0 that is where it turns back. Doubled just before it turns, a
        path comes round to where it was: squares of positions then forget slowly, at twice the
        cost. With 0.45 it ends after three quarters of half a period.
    target_acceptance
        Mean acceptance over the points of a path that tuning of the step size aims at.

    Raises
    ------
    ConfigurationError
        If a setting is out of range, or metric or integrator are of the kind that ``rmhmc`` takes.
    """

    integrator: Integrator
    metric: Metric
    step_size: float | None = attrs.field(default=None, validator=optional_positive)
    max_depth: int = attrs.field(default=10, validator=positive_integer)
    slowed: float = attrs.field(default=0.45, validator=share)
    target_acceptance: float = attrs.field(default=0.8, validator=fraction)

    def __attrs_post_init__(self) -> None:
        demand_kind("nuts", self.metric, self.integrator)

    @property
    def needs(self) -> Capabilities:
        """What the integrator needs."""
        return self.integrator.needs

    @property
    def tunes(self) -> frozenset[str]:
        """Step size and metric, unless they were given, and a warp where both are free."""
        free = {"step_size": self.step_size is None, "metric": self.metric.tunable}
        return left_free(**free, heavy_warp=all(free.values()))

    def bind(self, potential: Potential, tuning: Tuning) -> Kernel:
        """Return the kernel on a potential that uses ``tuning`` for what was left free."""
        return bind_warped(self._plain, potential, tuning)

    def _plain(self, potential: Potential, tuning: Tuning) -> NUTSKernel:
        depth = self.max_depth
        if self.step_size is None and tuning.n_steps is not None:  # short paths in the search
            depth = min(depth, (tuning.n_steps + 1).bit_length() - 1)
        return NUTSKernel(
            potential=potential,
            integrator=self.integrator,
            metric=adapted(self.metric, tuning.covariance) or self.metric,
            step=tuning.step_size if self.step_size is None else self.step_size,
            depth=depth,
            slowed=self.slowed,
        )


@attrs.frozen(kw_only=True, eq=False)
class NUTSKernel(PathKernel):
    """Paths on one potential."""

    depth: int  # most doublings
    slowed: float

    def propose(self, state: ChainState, rng: np.random.Generator) -> Proposal:
        """Draw a point of a new path for each chain."""
        with np.errstate(all="ignore"):  # a path that overflows has diverged
            hamiltonian = self.hamiltonian
            start = hamiltonian.start(state, rng)
            trajectories = Trajectories(
                hamiltonian, self.integrator, start, self.step, rng, slowed=self.slowed
            )
            for depth in range(self.depth):
                if not trajectories.double(depth):
                    break
            return trajectories.draw()
