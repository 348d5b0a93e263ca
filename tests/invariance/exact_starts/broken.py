"""Kernels broken on purpose, each on a target where that shows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import attrs
import numpy as np

from exact_starts.densities import CASES
from exact_starts.trying import (
    KERNELS,
    Kernel,
    Outcome,
    Size,
    metropolis,
    settings,
    tried_once,
    tuning,
)
from mutants import (
    KineticEnergyLeftOut,
    NetForStuckChains,
    RefusesFarPoints,
    StopsAtFirstMove,
    SurrogateDecides,
)
from surrokit.compose import make
from surrokit.marginals import Scales
from surrokit.testing.wrappers import Wrapped
from surrokit.warping import WarpedKernel


@attrs.frozen
class JumpsUncounted:
    """A sub-chain whose jumps are accepted as if from a symmetric proposal."""

    inner: Any

    def bind(self, potential, tuning):
        bound = self.inner.bind(potential, tuning)
        return attrs.evolve(bound, jumps=_Uncounted(bound.jumps))


@attrs.frozen
class _Uncounted:
    jumps: Any

    def propose(self, kernel, state, rng):
        return attrs.evolve(
            self.jumps.propose(kernel, state, rng), log_correction=np.zeros(len(state.positions))
        )


Spoil = Callable[..., tuple[Any, Any]]
"""From a sampler and the exact potential to a broken sampler, or what is broken and decides."""

SIZE = Size(n_chains=4000, n_by_position=1000, n_transitions=4, seed=2)
"""Chains of the controls."""


class NaNIsZero(Wrapped):
    """Takes what cannot be evaluated, recorded as ``inf``, for a value of zero."""

    def value(self, positions):
        values = self.inner.value(positions)
        return np.where(np.isinf(values), 0.0, values)


class JacobianLeftOut(Wrapped):
    """Decides by U of the user's coordinates, where the chains move in others."""

    def value(self, positions):
        bounded = self.inner.target
        with np.errstate(all="ignore"):
            return bounded.inner.value(bounded.transform.to_bounded(positions))


@attrs.frozen
class VolumeLeftOut:
    """A sampler in warped coordinates whose log correction lacks their volume."""

    inner: Any

    def bind(self, potential, tuning):
        warped = self.inner.bind(potential, tuning)
        return _WithoutVolume(inner=warped.inner, warped=warped.warped)


@attrs.frozen
class ScalesUncounted:
    """A sampler in warped coordinates that takes scales which depend on others for constants."""

    inner: Any

    def bind(self, potential, tuning):
        scales = tuning.warp.scales
        uncounted = _WithoutTheirVolume(locations=scales.locations, logs=scales.logs)
        warp = attrs.evolve(tuning.warp, scales=uncounted)
        return self.inner.bind(potential, attrs.evolve(tuning, warp=warp))


class _WithoutTheirVolume(Scales):
    def log_volume(self, inner):
        return np.zeros(len(inner))


class _WithoutVolume(WarpedKernel):
    def _bent(self, proposal, log_volume):
        sound = super()._bent(proposal, log_volume)
        return attrs.evolve(sound, log_correction=proposal.log_correction)


def _sampler(mutant, **options) -> Spoil:
    return lambda sampler, exact: (mutant(sampler, **options), metropolis(exact))


def _decided_by(mutant) -> Spoil:
    return lambda sampler, exact: (sampler, metropolis(mutant(exact)))


def _surrogate_decides(sampler, exact):
    return sampler, SurrogateDecides(make("correction", "metropolis")).bind(exact)


def _stops_at_first_move(sampler, exact):
    return StopsAtFirstMove(length=20, scale=1.0), metropolis(exact)


@attrs.frozen
class Control:
    """A kernel broken in one way, by the names of its target, kernel and potential."""

    what: str
    spoil: Spoil
    case: str
    kernel: str
    potential: str
    size: Size = SIZE

    @property
    def name(self) -> str:
        return f"{self.what}: {self.kernel} on {self.potential}, {self.case}"

    @property
    def sound(self) -> Kernel:
        return next(kernel for kernel in KERNELS if kernel.name == self.kernel)

    def outcome(self, *, broken: bool) -> Outcome:
        """Try the broken kernel, or the sound one."""
        case = next(case for case in CASES if case.name == self.case)
        found = {name: rest for name, *rest in settings(case, self.sound)}
        sampler, potential, exact = found[self.potential]
        decider = metropolis(exact)
        if broken:
            sampler, decider = self.spoil(sampler, exact)
        kernel = sampler.bind(potential, tuning(self.sound, case))
        n_chains = self.size.chains(self.sound)
        return tried_once(case, self.potential, kernel, decider, n_chains, self.size)


left_out = partial(Control, "no log correction", _sampler(KineticEnergyLeftOut))
jacobian = partial(Control, "no Jacobian", _decided_by(JacobianLeftOut))
surrogate = partial(Control, "the surrogate decides", _surrogate_decides)
no_volume = partial(Control, "no volume", _sampler(VolumeLeftOut))
no_scales = partial(Control, "no volume of scales", _sampler(ScalesUncounted))
no_far = partial(Control, "far points refused", _sampler(RefusesFarPoints, radius=4.0))
nan_passes = partial(Control, "NaN is accepted", _decided_by(NaNIsZero))
stops = partial(Control, "stops at the first move", _stops_at_first_move)
no_ratio = partial(Control, "jumps without their density", _sampler(JumpsUncounted))
net = partial(Control, "a net for stuck chains", _sampler(NetForStuckChains, patience=3))

CONTROLS = (
    left_out("t, 3 degrees of freedom", "hmc", "exact"),
    left_out("a hole of NaN", "nuts", "gp"),
    left_out("Gamma(0.3)", "sub-chain of random-walk", "quadratic"),
    left_out("two normals", "gaussian", "quadratic"),
    left_out("two normals", "rmhmc", "quadratic"),
    no_volume("t, 3 degrees of freedom", "hmc, warped", "exact"),
    no_scales("Neal's funnel", "hmc, warped", "exact"),
    no_far("Beta(0.3, 5)", "hmc", "quadratic"),
    surrogate("normal cut by inf", "sub-chain of hmc", "quadratic"),
    surrogate("a step in U", "hmc", "gp"),
    surrogate("rotated normal", "gaussian", "quadratic"),
    jacobian("normals cut by bounds", "random-walk", "exact"),
    jacobian("Beta(1/2, 1/2)", "nuts", "quadratic"),
    nan_passes("a hole of NaN", "random-walk", "exact"),
    no_ratio("two normals", "sub-chain of hmc", "by modes"),
    stops("banana", "sub-chain of random-walk", "exact", size=attrs.evolve(SIZE, n_chains=8000)),
    net("banana", "hmc", "quadratic", size=attrs.evolve(SIZE, n_chains=16_000, n_transitions=30)),
)
