"""Every sampler with settings of a fixed size, tried on targets from exact draws."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import attrs
import numpy as np
from scipy.special import bdtr, chdtri, ndtri

from exact_starts.densities import Case
from surrokit.capabilities import GRADIENT
from surrokit.compose import make
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import EvaluationWarning
from surrokit.interfaces import (
    Decider,
    Evaluations,
    LearningProblem,
    Tuning,
    changes_with_position,
)
from surrokit.marginals import Warp, fit_warp
from surrokit.modes import Modes
from surrokit.potentials import Potential, with_gradient
from surrokit.surrogate.by_modes import ByModes
from surrokit.testing.parts import transitions
from surrokit.testing.samplers import LEAST_ACCEPTANCE
from surrokit.testing.statistics import Comparison, Verdict, normality
from surrokit.types import FloatArray

EXACT, BY_MODES = "exact", "by modes"
SURROGATES: Mapping[str, dict[str, Any]] = {
    "quadratic": {},
    "additive": {},
    "gp": {},
    BY_MODES: {},
}
"""Surrogates and their settings."""

POTENTIALS = (EXACT, *SURROGATES)
"""What there is to move on."""

N_LEARNT = 30  # so few that every surrogate is wrong
HEIGHT, WAVE = 0.7, np.array([1.5, -1.0])  # nats, and per standard deviation
N_TUNED = 100
LEARNING, TUNED = 1, 2  # streams of random numbers


@attrs.frozen
class Kernel:
    """A registered sampler to be tried."""

    name: str
    sampler: str
    settings: Mapping[str, Any] = attrs.field(factory=dict)  # what is not tuned
    step: float = 1.0  # as a part of the target's
    long: bool = False  # too dear for every run of the tests

    def make(self) -> Any:
        return make("sampler", self.sampler, **self.settings)

    @property
    def by_position(self) -> bool:
        """Whether its steps are implicit, and so a hundred times dearer than others."""
        return changes_with_position(self.make().metric)


_SOFTABS = ("softabs", {"hardness": 5.0})  # with a harder one exact steps in far tails fail

KERNELS = (
    Kernel("hmc", "hmc", {"n_steps": 4}),
    Kernel("hmc, warped", "hmc", {"n_steps": 4, "warp": True}),
    Kernel("nuts", "nuts", {"max_depth": 3}),
    Kernel(
        "walnuts",
        "walnuts",
        {"max_depth": 2, "integrator": ("adaptive-leapfrog", {"max_error": 0.2})},
    ),
    Kernel("random-walk", "random-walk"),
    Kernel("gaussian", "gaussian", {"step_size": 0.8}),
    Kernel("sub-chain of hmc", "sub-chain", {"kernel": ("hmc", {"n_steps": 2}), "length": 3}),
    Kernel("sub-chain of random-walk", "sub-chain", {"kernel": "random-walk", "length": 5}),
    Kernel("rmhmc", "rmhmc", {"n_steps": 1, "metric": _SOFTABS}, step=0.5),
    Kernel(
        "rmhmc, diagonal metric",
        "rmhmc",
        {"n_steps": 2, "metric": "hessian-diagonal"},
        step=0.4,
        long=True,
    ),
    Kernel(
        "rmhmc, implicit midpoint",
        "rmhmc",
        {"n_steps": 1, "metric": _SOFTABS, "integrator": "implicit-midpoint"},
        step=0.6,
        long=True,
    ),
)
"""All of them."""


@lru_cache
def fitted(case: Case, surrogate: str) -> Potential:
    """Return a surrogate of a target, fitted to a few evaluations that are not even right."""
    rng = np.random.default_rng([1301, LEARNING])
    exact = case.exact(frozenset({GRADIENT}))
    problem = LearningProblem(dim=exact.dim, capabilities=exact.capabilities)
    if surrogate == BY_MODES:
        learner = make("surrogate", "quadratic").learner(problem, rng)
        return by_modes(learner, distorted(exact, case.sample(rng, 2 * N_LEARNT)))
    learner = make("surrogate", surrogate, **SURROGATES[surrogate]).learner(problem, rng)
    learner.observe(distorted(exact, case.sample(rng, N_LEARNT)))
    return learner.fit()


def by_modes(learner: Any, rows: Evaluations) -> Potential:
    """Return a surrogate of two modes, jumps between them included, where there are no such."""
    rows = rows.take(np.argsort(rows.values))
    parts = tuple(learner.of_rows(rows.take(slice(i, None, 2))).fit() for i in (0, 1))
    covariances = np.stack([part * np.cov(rows.positions.T) for part in (0.8, 0.3)])
    modes = Modes(
        positions=rows.positions[:2],
        values=rows.values[:2],
        covariances=covariances,
        ended=np.array([2, 2]),
    )
    return ByModes(parts=parts, modes=modes)


def distorted(exact: Potential, positions: FloatArray) -> Evaluations:
    """Return evaluations to which a wave has been added, along a direction of no meaning."""
    values, gradients = with_gradient(exact).value_and_gradient(positions)
    direction = np.linalg.cholesky(np.linalg.inv(np.cov(positions.T))) @ WAVE
    angles = (positions - positions.mean(axis=0)) @ direction
    return Evaluations(
        positions=positions,
        values=values + HEIGHT * np.sin(angles),
        gradients=gradients + HEIGHT * np.cos(angles)[:, None] * direction,
    )


def tuning(kernel: Kernel, case: Case) -> Tuning:
    """Return what is tuned, fixed before any chain starts."""
    draws = case.sample(np.random.default_rng([1301, TUNED]), N_TUNED)
    return Tuning(
        step_size=kernel.step * case.step_size,
        covariance=np.cov(draws.T),
        warp=warp_of(draws) if kernel.settings.get("warp") else None,
    )


def warp_of(draws: FloatArray) -> Warp:
    """Return the warp that a warm-up would learn from draws (n, dim)."""
    warp = fit_warp(draws, every=True)
    assert warp is not None
    return attrs.evolve(warp, covariance=np.cov(warp.straighten(draws).T))


SHARES = (0.01, 0.1, 0.5, 0.9, 0.99)
"""Probabilities of the regions that chains enter and leave."""


def compared(start: FloatArray, end: FloatArray, label: str) -> Verdict:
    """Compare exact draws, some transitions later, with what they must be still.

    Both are standard normals of the target.
    """
    with np.errstate(all="ignore"):
        return Verdict.join([normality(end, label), crossings(start, end, label)])


def crossings(start: FloatArray, end: FloatArray, label: str) -> Verdict:
    """Test whether as many chains entered each of some regions as left it.

    Of the chains that crossed an edge each is as likely to have come as to have gone, whatever
    the kernel, if it leaves the target as it is. So the number of those that came is binomial,
    and a small bias shows even where few chains have moved far.
    """
    found = []
    for (name, inside), (_, still) in zip(_regions(start), _regions(end), strict=True):
        came, went = int((still & ~inside).sum()), int((inside & ~still).sum())
        p_value = min(1.0, 2.0 * float(bdtr(min(came, went), came + went, 0.5)))
        found.append(Comparison(f"{label}{name}, came less went", came - went, p_value))
    return Verdict(tuple(found))


def _regions(normals: FloatArray) -> Iterator[tuple[str, np.ndarray]]:
    squared = np.square(normals).sum(axis=1)
    for share in SHARES:
        for k in range(normals.shape[1]):
            yield f"coordinate {k + 1} in the lowest {share:g}", normals[:, k] < ndtri(share)
        yield f"radius in the least {share:g}", squared < chdtri(normals.shape[1], 1.0 - share)


@attrs.frozen(kw_only=True)
class Size:
    """How much is tried."""

    n_chains: int
    n_by_position: int  # chains of samplers with implicit steps
    n_transitions: int
    seed: int

    def chains(self, kernel: Kernel) -> int:
        return self.n_by_position if kernel.by_position else self.n_chains


SHORT = Size(n_chains=1000, n_by_position=100, n_transitions=3, seed=0)
"""What every run of the tests tries."""

LONG = Size(n_chains=10_000, n_by_position=500, n_transitions=5, seed=1)
"""What takes minutes."""


@attrs.frozen(kw_only=True)
class Outcome:
    """What came of one kernel on one target."""

    potential: str  # what it moved on
    acceptance: float
    verdict: Verdict

    @property
    def tells(self) -> bool:
        """Whether chains moved enough for anything to be tested."""
        return self.acceptance >= LEAST_ACCEPTANCE


def tried(case: Case, kernel: Kernel, size: Size) -> list[Outcome]:
    """Try a kernel on a target, on every potential that it can move on."""
    told = tuning(kernel, case)
    return [
        tried_once(
            case,
            name,
            sampler.bind(potential, told),
            metropolis(exact),
            size.chains(kernel),
            size,
        )
        for name, sampler, potential, exact in settings(case, kernel)
    ]


def settings(case: Case, kernel: Kernel) -> Iterator[tuple[str, Any, Potential, Potential]]:
    """Yield the name of every potential, a sampler for it, itself, and the exact one."""
    sampler = kernel.make()
    for name in POTENTIALS:
        needs = sampler.needs if name == EXACT else frozenset()
        exact = RecordingPotential(case.exact(needs), keep=False)
        potential = exact if name == EXACT else fitted(case, name)
        if name == BY_MODES and "funnel" in case.name:
            continue  # jumps go to where such a V is far too low, and nothing is accepted
        if sampler.needs <= potential.capabilities:
            yield name, sampler, potential, exact
            if not sampler.uses_potential:  # it moves the same on any
                return


def metropolis(exact: Potential) -> Decider:
    """Return the correction that decides by an exact potential."""
    return make("correction", "metropolis").bind(exact)


def tried_once(
    case: Case, potential: str, kernel: Any, decider: Decider, n_chains: int, size: Size
) -> Outcome:
    """Start chains from exact draws, let them go, and compare."""
    rng = np.random.default_rng([1302, size.seed])
    start = case.sample(rng, n_chains)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvaluationWarning)  # one target is NaN in places
        end, acceptance = transitions(kernel, decider, start, size.n_transitions, rng)
    label = f"{case.name}, on {potential}: "
    return Outcome(
        potential=potential,
        acceptance=acceptance,
        verdict=compared(case.to_normals(start), case.to_normals(end), label),
    )
