"""Chains as the paper runs them, how they are timed and ended, and fits outside a run."""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import attrs
import numpy as np

import surrokit as sk
from surrokit.capabilities import GRADIENT
from surrokit.errors import EvaluationWarning
from surrokit.interfaces import LearningProblem
from surrokit.potentials import Potential, with_gradient
from surrokit.progress import IterationInfo
from surrokit.types import FloatArray, IntArray

Counts = TypeVar("Counts", int, IntArray)

NO_REPAIR = sk.Safety(repairs=0)
"""An algorithm of the paper is shown as it is, without a fallback."""


def generator(seed: int, *keys: str | int) -> np.random.Generator:
    """Return a generator that depends on nothing but the seed and these keys."""
    words = np.frombuffer(hashlib.sha256(repr(keys).encode("utf-8")).digest(), dtype=np.uint32)
    return np.random.default_rng([seed, *(int(word) for word in words)])


def sampled(target: Potential, *, clock: Clock | None = None, **settings: Any) -> sk.Run:
    """Run :func:`surrokit.sample`, timed by a clock, which alone may end it early.

    Whatever else ends it raises KeyboardInterrupt: half a run is no result to keep.
    """
    observers = [] if clock is None else [clock]
    run = sk.sample(target, progress=False, observers=observers, **settings)
    if not (run.complete or (clock is not None and clock.reached)):
        raise KeyboardInterrupt
    return run


def hmc(
    target: Potential,
    paths: Mapping[str, Any],
    start: FloatArray,
    rng: np.random.Generator,
    **settings: Any,
) -> sk.Run:
    """Run HMC with unit masses from a start, one chain by default.

    Its number of steps is drawn from {1, ..., n_steps} unless the settings of its paths say not.
    """
    settings = {"chains": 1, "initial": start, "seed": rng, **settings}
    return sampled(target, sampler=("hmc", {"metric": "identity", **paths}), **settings)


def burnt_in(
    target: Potential, n_steps: int, n_iterations: int, rng: np.random.Generator
) -> FloatArray:
    """Return where exact HMC is after so many iterations from 0, shape (dim,).

    Its step size is tuned: at 0 the potential is more curved than where the posterior is, and a
    step that fits there may be rejected for long.
    """
    with warnings.catch_warnings():
        # a step that is only tried out may lead to where the target has no value
        warnings.simplefilter("ignore", EvaluationWarning)
        lengths = {"warmup": n_iterations, "draws": 1}
        run = hmc(target, {"n_steps": n_steps}, np.zeros(target.dim), rng, **lengths)
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


# --- surrogates outside a run ---


def train(
    data: sk.Evaluations,
    rng: np.random.Generator,
    surrogate: str = "additive",
    *,
    gradients: bool = False,
    **settings: Any,
) -> tuple[Any, float]:
    """Return a surrogate that was fitted to evaluations, and the processor's seconds of that.

    It is shown gradients if asked for, else values alone.
    """
    data = data if gradients else attrs.evolve(data, gradients=None)
    offered = frozenset({GRADIENT} if gradients else ())
    problem = LearningProblem(dim=data.positions.shape[1], capabilities=offered)
    learner = sk.make("surrogate", surrogate, **settings).learner(problem, rng)
    began = time.process_time()
    learner.observe(data)
    return learner.fit(), time.process_time() - began


def processes(n_inducing: int) -> dict[str, dict[str, Any]]:
    """Return the paper's Gaussian processes: exact, and FITC with so many inducing points.

    They have one length scale and raw coordinates, and hyperparameters by the marginal likelihood
    of all points.
    """
    settings = {
        "mean": "constant",
        "whiten": False,
        "tail": "full",
        "n_search": None,
        "max_signal": 1e4,
    }
    inducing = {"n_inducing": n_inducing, "inducing": "data"}
    return {
        "gp": {"surrogate": "gp", **settings},
        "fitc": {"surrogate": "fitc", **settings, **inducing},
    }


DEFAULTS: dict[str, dict[str, Any]] = {
    "additive-default": {},
    "additive-gradients": {"gradients": True},
}
"""This project's own settings, from values alone and from gradients too."""


def evaluated(target: Potential, positions: FloatArray) -> sk.Evaluations:
    """Return values and gradients at positions, shape (n, dim)."""
    values, gradients = with_gradient(target).value_and_gradient(positions)
    return sk.Evaluations(positions=positions, values=values, gradients=gradients)


# --- rows of finished cases ---

Row = dict[str, Any]


def groups(rows: Sequence[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    """Return the rows for each combination of what sets them apart, in order."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    return found


def quantiles(rows: Sequence[Row], name: str, low: float = 0.1) -> list[float] | None:
    """Return a low quantile, the median and a high one over the rows that know a number."""
    known = [row[name] for row in rows if row.get(name) is not None]
    return np.quantile(known, [low, 0.5, 1 - low]).tolist() if known else None


def median(rows: Sequence[Row], name: str) -> float | None:
    """Return the median of a number over the rows that know it."""
    found = quantiles(rows, name)
    return None if found is None else found[1]


def array(numbers: Any) -> FloatArray:
    """Return numbers of a row as an array; None becomes NaN."""
    return np.array(numbers, dtype=np.float64)
