"""Kernels broken on purpose, each on a target where that shows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import attrs
import numpy as np

from exact_starts.kernels import KERNELS, Kernel, tuning
from exact_starts.targets import CASES
from exact_starts.trying import Outcome, Size, metropolis, settings, tried_once
from mutants import (
    EndsWhenMoved,
    KineticEnergyLeftOut,
    NetForStuckChains,
    RefusesFarPoints,
    StopsAtFirstMove,
    SurrogateDecides,
)
from surrokit.compose import make
from surrokit.interfaces import Decider, Proposal, Tuning
from surrokit.potentials import Potential
from surrokit.testing.wrappers import Wrapped
from surrokit.types import FloatArray
from surrokit.warping import WarpedKernel

Spoil = Callable[[Any, Potential], tuple[Any, Decider]]
"""From a sampler and the exact potential to a broken sampler, or what is broken and decides."""

SIZE = Size(n_chains=4000, n_by_position=1000, n_transitions=4, seed=2)
"""Chains of the controls."""


class NaNIsZero(Wrapped):
    """Takes what cannot be evaluated, recorded as ``inf``, for a value of zero."""

    def value(self, positions: FloatArray) -> FloatArray:
        values = self.inner.value(positions)
        return np.where(np.isinf(values), 0.0, values)


class JacobianLeftOut(Wrapped):
    """Decides by U of the user's coordinates, where the chains move in others."""

    def value(self, positions: FloatArray) -> FloatArray:
        bounded = self.inner.target
        with np.errstate(all="ignore"):
            return bounded.inner.value(bounded.transform.to_bounded(positions))


@attrs.frozen
class VolumeLeftOut:
    """A sampler in warped coordinates whose log correction lacks their volume."""

    inner: Any

    def bind(self, potential: Potential, tuning: Tuning) -> Any:
        warped = self.inner.bind(potential, tuning)
        return _WithoutVolume(inner=warped.inner, warped=warped.warped)


class _WithoutVolume(WarpedKernel):
    def _bent(self, proposal: Proposal, log_volume: FloatArray) -> Proposal:
        sound = super()._bent(proposal, log_volume)
        return attrs.evolve(sound, log_correction=proposal.log_correction)


def _sampler(mutant: Callable[..., Any], **settings: Any) -> Spoil:
    return lambda sampler, exact: (mutant(sampler, **settings), metropolis(exact))


def _decided_by(mutant: Callable[[Potential], Potential]) -> Spoil:
    return lambda sampler, exact: (sampler, metropolis(mutant(exact)))


def _surrogate_decides(sampler: Any, exact: Potential) -> tuple[Any, Decider]:
    return sampler, SurrogateDecides(make("correction", "metropolis")).bind(exact)


def _stops_at_first_move(sampler: Any, exact: Potential) -> tuple[Any, Decider]:
    del sampler
    return StopsAtFirstMove(length=20, scale=1.0), metropolis(exact)


@attrs.frozen(kw_only=True)
class Control:
    """A kernel broken in one way.

    Parameters
    ----------
    what
        What is wrong.
    case, kernel, potential
        Names of the target, of the sound kernel, and of what it moves on.
    spoil
        Breaks it.
    size
        How many chains, and how long.
    """

    what: str
    case: str
    kernel: str
    potential: str
    spoil: Spoil
    size: Size = SIZE

    @property
    def name(self) -> str:
        """All of this in words."""
        return f"{self.what}: {self.kernel} on {self.potential}, {self.case}"

    @property
    def n_chains(self) -> int:
        """Chains that are started."""
        return self.size.chains(self._sound())

    def outcome(self, *, broken: bool) -> Outcome:
        """Try the broken kernel, or the sound one."""
        case = next(case for case in CASES if case.name == self.case)
        sound = self._sound()
        _, sampler, potential, exact = next(
            found for found in settings(case, sound) if found[0] == self.potential
        )
        decider = metropolis(exact)
        if broken:
            sampler, decider = self.spoil(sampler, exact)
        kernel = sampler.bind(potential, tuning(sound, case))
        return tried_once(case, self.potential, kernel, decider, self.n_chains, self.size)

    def _sound(self) -> Kernel:
        return next(kernel for kernel in KERNELS if kernel.name == self.kernel)


_left_out = partial(Control, spoil=_sampler(KineticEnergyLeftOut))
_jacobian = partial(Control, spoil=_decided_by(JacobianLeftOut))
_surrogate = partial(Control, spoil=_surrogate_decides)

CONTROLS = (
    _left_out(
        what="no log correction",
        case="t, 3 degrees of freedom",
        kernel="hmc",
        potential="exact",
    ),
    _left_out(
        what="no log correction",
        case="a hole of NaN",
        kernel="nuts",
        potential="gp",
    ),
    _left_out(
        what="no log correction",
        case="Gamma(0.3)",
        kernel="sub-chain of random-walk",
        potential="quadratic",
    ),
    _left_out(
        what="no log correction",
        case="two normals",
        kernel="gaussian",
        potential="quadratic",
    ),
    _left_out(
        what="no log correction",
        case="two normals",
        kernel="rmhmc",
        potential="quadratic",
    ),
    Control(
        what="no volume",
        case="t, 3 degrees of freedom",
        kernel="hmc, warped",
        potential="exact",
        spoil=_sampler(VolumeLeftOut),
    ),
    Control(
        what="far points refused",
        case="Beta(0.3, 5)",
        kernel="hmc",
        potential="quadratic",
        spoil=_sampler(RefusesFarPoints, radius=4.0),
    ),
    _surrogate(
        what="the surrogate decides",
        case="normal cut by inf",
        kernel="sub-chain of hmc",
        potential="quadratic",
    ),
    _surrogate(
        what="the surrogate decides",
        case="a step in U",
        kernel="hmc",
        potential="gp",
    ),
    _surrogate(
        what="the surrogate decides",
        case="rotated normal",
        kernel="gaussian",
        potential="quadratic",
    ),
    _jacobian(
        what="no Jacobian",
        case="normals cut by bounds",
        kernel="random-walk",
        potential="exact",
    ),
    _jacobian(
        what="no Jacobian",
        case="Beta(1/2, 1/2)",
        kernel="nuts",
        potential="quadratic",
    ),
    Control(
        what="NaN is accepted",
        case="a hole of NaN",
        kernel="random-walk",
        potential="exact",
        spoil=_decided_by(NaNIsZero),
    ),
    Control(
        what="stops at the first move",
        case="banana",
        kernel="sub-chain of random-walk",
        potential="exact",
        spoil=_stops_at_first_move,
        size=attrs.evolve(SIZE, n_chains=8000),
    ),
    Control(
        what="ends when it has moved",
        case="Gamma(0.3)",
        kernel="nuts",
        potential="exact",
        spoil=_sampler(EndsWhenMoved),
    ),
    Control(
        what="a net for stuck chains",
        case="banana",
        kernel="hmc",
        potential="quadratic",
        spoil=_sampler(NetForStuckChains, patience=3),
        size=attrs.evolve(SIZE, n_chains=16_000, n_transitions=30),
    ),
)
