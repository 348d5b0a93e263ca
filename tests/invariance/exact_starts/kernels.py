"""Every sampler with settings of a fixed size, and the potentials that it moves on."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import attrs
import numpy as np

from exact_starts.targets import Case
from surrokit.capabilities import GRADIENT
from surrokit.compose import make
from surrokit.interfaces import Evaluations, LearningProblem, Tuning, changes_with_position
from surrokit.marginals import Warp, fit_marginals
from surrokit.potentials import Potential, with_gradient
from surrokit.types import FloatArray

EXACT = "exact"
SURROGATES: Mapping[str, dict[str, Any]] = {
    "quadratic": {},
    "additive": {},
    "gp": {"n_starts": 1},
}
"""Surrogates and their settings."""

POTENTIALS = (EXACT, *SURROGATES)
"""What there is to move on."""

N_LEARNT = 30  # so few that every surrogate is wrong
HEIGHT, WAVE = 0.7, np.array([1.5, -1.0])  # nats, and per standard deviation
N_TUNED = 100
LEARNING, TUNED = 1, 2  # streams of random numbers


@attrs.frozen(kw_only=True)
class Kernel:
    """A sampler to be tried.

    Parameters
    ----------
    name
        In the table.
    sampler, settings
        A registered sampler, with what is not tuned.
    step
        Its step size as a part of the target's.
    long
        Whether it is too dear for every run of the tests.
    """

    name: str
    sampler: str
    settings: Mapping[str, Any] = attrs.field(factory=dict)
    step: float = 1.0
    long: bool = False

    def make(self) -> Any:
        """Return the sampler, on nothing yet."""
        return make("sampler", self.sampler, **self.settings)

    @property
    def by_position(self) -> bool:
        """Whether its steps are implicit, and so a hundred times dearer than others."""
        return changes_with_position(getattr(self.make(), "metric", None))


_SOFTABS = ("softabs", {"hardness": 5.0})  # with a harder one exact steps in far tails fail

KERNELS = (
    Kernel(name="hmc", sampler="hmc", settings={"n_steps": 4}),
    Kernel(name="hmc, warped", sampler="hmc", settings={"n_steps": 4, "warp": True}),
    Kernel(name="nuts", sampler="nuts", settings={"max_depth": 3}),
    Kernel(name="random-walk", sampler="random-walk"),
    Kernel(name="gaussian", sampler="gaussian", settings={"step_size": 0.8}),
    Kernel(
        name="sub-chain of hmc",
        sampler="sub-chain",
        settings={"kernel": ("hmc", {"n_steps": 2}), "length": 3},
    ),
    Kernel(
        name="sub-chain of random-walk",
        sampler="sub-chain",
        settings={"kernel": "random-walk", "length": 5},
    ),
    Kernel(
        name="rmhmc",
        sampler="rmhmc",
        settings={"n_steps": 1, "metric": _SOFTABS},
        step=0.5,
    ),
    Kernel(
        name="rmhmc, diagonal metric",
        sampler="rmhmc",
        settings={"n_steps": 2, "metric": "hessian-diagonal"},
        step=0.4,
        long=True,
    ),
    Kernel(
        name="rmhmc, implicit midpoint",
        sampler="rmhmc",
        settings={"n_steps": 1, "metric": _SOFTABS, "integrator": "implicit-midpoint"},
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
    learner = make("surrogate", surrogate, **SURROGATES[surrogate]).learner(problem, rng)
    learner.observe(distorted(exact, case.sample(rng, N_LEARNT)))
    return learner.fit()


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
    centre, scale, lean, tail = fit_marginals(draws)
    warp = Warp(centre=centre, scale=scale, lean=lean, tail=tail, covariance=np.eye(draws.shape[1]))
    return attrs.evolve(warp, covariance=np.cov(warp.straighten(draws).T))
