"""Chains as the paper runs them, how they are timed and ended, and what they say of a posterior."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

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


def sampled(target: Potential, *, stop: StopAt | None = None, **settings: Any) -> sk.Run:
    """Run :func:`surrokit.sample`, which only ``stop`` may end early.

    Whatever else ends it raises KeyboardInterrupt: half a run is no result to keep.
    """
    if stop is not None:
        settings["observers"] = [stop]
    run = sk.sample(target, progress=False, **settings)
    if not (run.complete or (stop is not None and stop.reached)):
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
    paths = {"step_size": problem.step_size, "n_steps": problem.n_steps}
    return hmc(target, paths, chains=1, initial=start, seed=rng, **settings)


def burnt_in(
    target: Potential, problem: PaperProblem, n_iterations: int, rng: np.random.Generator
) -> FloatArray:
    """Return where exact HMC is after so many iterations from 0, shape (dim,).

    Its step size is tuned: at 0 the potential is more curved than where the posterior is, and a
    step that fits there may be rejected for long. The same generator brings every method to the
    same place; its cost is no method's.
    """
    start = np.zeros(target.dim)
    if not n_iterations:
        return start
    with warnings.catch_warnings():
        # a step that is only tried out may lead to where the target has no value
        warnings.simplefilter("ignore", EvaluationWarning)
        length = {"chains": 1, "warmup": n_iterations, "draws": 1}
        run = hmc(target, {"n_steps": problem.n_steps}, initial=start, seed=rng, **length)
    return np.asarray(run.draws[0, -1], dtype=np.float64)


class SamplingTime:
    """An observer that knows how long the kept draws of a run took the processor.

    Seconds of the processor, all threads together, are not stretched by other programs.
    """

    def __init__(self) -> None:
        self.surrokit_run_started()

    @property
    def seconds(self) -> float:
        """Processor seconds from the first kept iteration to the last."""
        return self.ended - self._began

    def surrokit_run_started(self, **_: object) -> None:
        """Begin, for a run without warm-up."""
        self._began = self.ended = time.process_time()
        self._draws = False

    def surrokit_transition_done(self, info: IterationInfo, **_: object) -> None:
        """Begin anew after every iteration that is not kept."""
        self.ended = time.process_time()
        self._draws = info.stage == "sampling"
        if not self._draws:
            self._began = self.ended

    def surrokit_surrogate_deployed(self, **_: object) -> None:
        """Begin anew after a fit that comes between warm-up and kept iterations."""
        if not self._draws:
            self._began = self.ended = time.process_time()


class StopAt:
    """An observer that interrupts a run once it has taken so long, or evaluated so much.

    Seconds are those of the processor. The run then returns what was drawn, as after Ctrl-C;
    ``reached`` distinguishes the two, and ``elapsed`` has the seconds after each iteration.
    """

    def __init__(self, *, seconds: float = np.inf, evaluations: float = np.inf) -> None:
        self._limits = seconds, evaluations
        self.surrokit_run_started()

    def surrokit_run_started(self, **_: object) -> None:
        """Begin."""
        self._began, self.reached = time.process_time(), False
        self.elapsed: list[float] = []

    def surrokit_transition_done(self, info: IterationInfo, **_: object) -> None:
        """Note the time, and interrupt if enough was spent."""
        self.elapsed.append(time.process_time() - self._began)
        seconds, most = self._limits
        if self.elapsed[-1] >= seconds or evaluations(info.calls) >= most:
            self.reached = True
            raise KeyboardInterrupt


def evaluations(calls: Mapping[str, Counts]) -> Counts:
    """Return at how many positions U or its forward map was evaluated, with derivatives or not."""
    return calls["value"] + calls["gradient"] + calls["forward"] + calls["jacobian"] + calls["vjp"]


MARGINALS = ("means", "mean_errors", "sds", "sd_errors", "ess")
"""Means and sds of each parameter with Monte Carlo standard errors, and bulk ESS."""


def marginals(draws: FloatArray) -> dict[str, FloatArray]:
    """Return :data:`MARGINALS` of draws (chains, draws, dim), shape (dim,) each.

    The error of an sd is that of the mean of squared deviations, over twice the sd.
    """
    means, sds = draws.mean(axis=(0, 1)), draws.std(axis=(0, 1), ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):  # a parameter that never moved
        sd_errors = mean_error(np.square(draws - means)) / (2.0 * sds)
    found = means, mean_error(draws), sds, sd_errors, effective_sample_size(draws, "bulk")
    return dict(zip(MARGINALS, found, strict=True))


def largest_by_chance(n: int, level: float = 0.99) -> float:
    """Return what n standard normal numbers, signs aside, all stay under with some probability.

    At least that where they are correlated (Sidak 1967, doi:10.1080/01621459.1967.10482935).
    """
    from scipy.special import ndtri

    return float(ndtri(0.5 + 0.5 * level ** (1.0 / n)))


def quantiles(numbers: Sequence[float] | FloatArray, low: float = 0.1) -> dict[str, float]:
    """Return a ``low`` quantile, the median and a ``high`` quantile of numbers over runs.

    By default 80 % lie between, as in the error bars of figure 3.
    """
    found = np.quantile(numbers, [low, 0.5, 1 - low]).tolist()
    return dict(zip(("low", "median", "high"), found, strict=True))
