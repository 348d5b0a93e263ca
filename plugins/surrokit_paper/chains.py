"""Chains as the paper runs them, how they are timed and ended, and what they say of a posterior."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from scipy.special import ndtri

import surrokit as sk
from surrokit.diagnostics import effective_sample_size, mean_error
from surrokit.errors import EvaluationWarning
from surrokit.potentials import Potential
from surrokit.progress import IterationInfo
from surrokit.types import FloatArray, IntArray
from surrokit_paper.problems import PaperProblem

Counts = TypeVar("Counts", int, IntArray)

NO_RESCUE = sk.Safety(rescues=0)
"""An algorithm of the paper is shown as it is, without a fallback."""


def sampled(target: Potential, *, clock: Clock | None = None, **settings: Any) -> sk.Run:
    """Run :func:`surrokit.sample`, timed by a clock, which alone may end it early.

    Whatever else ends it raises KeyboardInterrupt: half a run is no result to keep.
    """
    observers = [] if clock is None else [clock]
    run = sk.sample(target, progress=False, observers=observers, **settings)
    if not (run.complete or (clock is not None and clock.reached)):
        raise KeyboardInterrupt
    return run


def hmc(target: Potential, paths: Mapping[str, Any], **settings: Any) -> sk.Run:
    """Run HMC with unit masses; its number of steps is drawn from {1, ..., n_steps} by default."""
    return sampled(target, sampler=("hmc", {"metric": "identity", **paths}), **settings)


def one_chain(
    target: Potential,
    problem: PaperProblem,
    start: FloatArray,
    rng: np.random.Generator,
    **settings: Any,
) -> sk.Run:
    """Run one chain with the problem's steps from a start, as :func:`sampled` does."""
    return hmc(target, problem.paths, chains=1, initial=start, seed=rng, **settings)


def burnt_in(
    target: Potential, problem: PaperProblem, n_iterations: int, rng: np.random.Generator
) -> FloatArray:
    """Return where exact HMC is after so many iterations from 0, shape (dim,).

    Its step size is tuned: at 0 the potential is more curved than where the posterior is, and a
    step that fits there may be rejected for long. The same generator brings every method to the
    same place; its cost is no method's.
    """
    start = np.zeros(target.dim)
    with warnings.catch_warnings():
        # a step that is only tried out may lead to where the target has no value
        warnings.simplefilter("ignore", EvaluationWarning)
        length = {"chains": 1, "warmup": n_iterations, "draws": 1}
        run = hmc(target, {"n_steps": problem.n_steps}, initial=start, seed=rng, **length)
    return np.asarray(run.draws[0, -1], dtype=np.float64)


class Clock:
    """An observer that times a run, and interrupts it once it has taken or evaluated so much.

    Seconds are those of the processor, all threads together, which other programs do not stretch.
    An interrupted run returns what was drawn, as after Ctrl-C; ``reached`` distinguishes the two.
    """

    def __init__(self, *, seconds: float = np.inf, evaluations: float = np.inf) -> None:
        self._limits = seconds, evaluations
        self.surrokit_run_started()

    @property
    def sampling(self) -> float:
        """Seconds from the first kept iteration to the last."""
        return self._now - self._kept_since

    def surrokit_run_started(self, **_: object) -> None:
        """Begin."""
        self._began = self._now = self._kept_since = time.process_time()
        self._draws = self.reached = False
        self.elapsed: list[float] = []

    def surrokit_transition_done(self, info: IterationInfo, **_: object) -> None:
        """Note the time, and interrupt if enough was spent."""
        self._now = time.process_time()
        self.elapsed.append(self._now - self._began)
        self._draws = info.stage == "sampling"
        if not self._draws:
            self._kept_since = self._now
        seconds, most = self._limits
        if self.elapsed[-1] >= seconds or evaluations(info.calls) >= most:
            self.reached = True
            raise KeyboardInterrupt

    def surrokit_surrogate_deployed(self, **_: object) -> None:
        """Leave out a fit that comes between warm-up and kept iterations."""
        if not self._draws:
            self._now = self._kept_since = time.process_time()


def evaluations(calls: Mapping[str, Counts]) -> Counts:
    """Return at how many positions U or its forward map was evaluated, with derivatives or not."""
    return calls["value"] + calls["gradient"] + calls["forward"] + calls["jacobian"] + calls["vjp"]


MARGINALS = ("mean", "mean_error", "sd", "sd_error", "ess_bulk")
"""Mean and sd of each parameter with Monte Carlo standard errors, and bulk ESS."""


def marginals(draws: FloatArray) -> dict[str, FloatArray]:
    """Return :data:`MARGINALS` of draws (chains, draws, dim), shape (dim,) each.

    The error of an sd is that of the mean of squared deviations, over twice the sd.
    """
    mean, sd = draws.mean(axis=(0, 1)), draws.std(axis=(0, 1), ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):  # a parameter that never moved
        sd_error = mean_error(np.square(draws - mean)) / (2.0 * sd)
    found = mean, mean_error(draws), sd, sd_error, effective_sample_size(draws, "bulk")
    return dict(zip(MARGINALS, found, strict=True))


def largest_by_chance(n: int, level: float = 0.99) -> float:
    """Return what n standard normal numbers, signs aside, all stay under with some probability.

    At least that where they are correlated (Sidak 1967, doi:10.1080/01621459.1967.10482935).
    """
    return float(ndtri(0.5 + 0.5 * level ** (1.0 / n)))
