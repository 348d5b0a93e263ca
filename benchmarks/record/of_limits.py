"""Runs that end early: budgets, good enough draws, interrupts; and sizes at their limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import surrokit as sk
from record.runner import digest, of_run
from record.targets import (
    FIXED,
    Interrupting,
    Slow,
    banana,
    drawn,
    gaussian,
    regression,
    smooth,
)
from surrokit.testing import CountingPotential


def runs() -> Mapping[str, Callable[[], Any]]:
    """Return runs by name."""
    return {**_budgets(), **_interrupts(), **_sizes(), **_observed()}


def _budgets() -> Mapping[str, Callable[[], sk.Run]]:
    learnt = {"surrogate": "additive", "explorer": "rounds", "sampler": "sub-chain"}
    rows = {"sampler": "gaussian", "surrogate": "quadratic", "correction": "subsampled"}
    return {
        "calls/in-exploration": lambda: drawn(smooth(), surrogate="additive", max_calls=100),
        "calls/in-draws": lambda: drawn(smooth(), surrogate="additive", max_calls=800),
        "calls/exact": lambda: drawn(banana(), sampler="nuts", max_calls=1500),
        "calls/open": lambda: drawn(
            smooth(), surrogate="additive", warmup=None, draws=None, max_calls=900
        ),
        "calls/rows": lambda: drawn(regression(n_rows=4000), **rows, max_calls=468),
        "seconds/exact": lambda: drawn(
            Slow(banana(), 0.01), sampler="hmc", warmup=60, draws=None, max_seconds=8.005
        ),
        "ess/surrogate": lambda: drawn(smooth(), **learnt, warmup=None, draws=None, target_ess=400),
        "ess-and-rhat/exact": lambda: drawn(
            banana(), sampler="nuts", draws=None, budget=sk.Budget(target_ess=100, target_rhat=1.05)
        ),
    }


def _interrupts() -> Mapping[str, Callable[[], sk.Run]]:
    def at(iteration: int, target: Any = None, **options: Any) -> sk.Run:
        own = smooth() if target is None else target
        given = {"surrogate": "additive", "observers": [Interrupting(iteration)], **options}
        return drawn(own, **given)

    def late_failure() -> sk.Run:
        left = iter(range(700))

        def value(q: np.ndarray) -> float:
            if next(left, None) is None:
                raise ValueError("late")
            return float(0.5 * q @ q)

        compute = sk.Compute(on_error="raise")
        return drawn(sk.potential(value, dim=2), sampler="random-walk", compute=compute, draws=600)

    return {
        "interrupt/exploring": lambda: at(12),
        "interrupt/warm-up": lambda: at(70, schedule="greville"),
        "interrupt/draws": lambda: at(150),
        "interrupt/rows": lambda: at(
            130,
            regression(n_rows=2000),
            surrogate="quadratic",
            sampler="gaussian",
            correction="subsampled",
        ),
        "error/late": late_failure,
    }


def _sizes() -> Mapping[str, Callable[[], sk.Run]]:
    given = {"step_size": 0.4, "n_steps": 4, "metric": "identity"}
    return {
        "warm-up/none": lambda: drawn(smooth(), sampler="hmc", warmup=0, **FIXED),
        "warm-up/none-ready": lambda: drawn(smooth(), surrogate=gaussian(), warmup=0, **given),
        "warm-up/all-explored": lambda: drawn(
            smooth(), surrogate="additive", explorer=("sampler", {"iterations": 40}), warmup=40
        ),
        "chains/one": lambda: drawn(banana(), sampler="hmc", chains=1),
        "chains/one-learns": lambda: drawn(
            smooth(), surrogate="additive", schedule="greville", chains=1
        ),
        "chains/many": lambda: drawn(smooth(), sampler="nuts", chains=20, warmup=40, draws=10),
        "seed/generator": lambda: drawn(smooth(), sampler="hmc", seed=np.random.default_rng(3)),
    }


class Listener:
    """An observer that takes down what it is told."""

    def __init__(self) -> None:
        self.told: list[list[float]] = []

    def surrokit_run_started(self, run: Any) -> None:
        self.told.append([0, run.dim, run.chains, run.warmup, run.draws])

    def surrokit_transition_done(self, run: Any, state: Any, info: Any) -> None:
        accepted = -1 if info.step is None else int(info.step.accepted.sum())
        paid = sum(info.calls.values())
        stage = ("exploration", "warmup", "sampling").index(info.stage)
        sizes = [run.warmup, run.draws, info.iteration, stage]
        self.told.append([1, *sizes, accepted, paid, float(state.positions.sum())])

    def surrokit_surrogate_deployed(
        self, run: Any, surrogate: Any, evaluations: int, reason: str
    ) -> None:
        at = np.zeros((1, run.dim))
        self.told.append([2, evaluations, float(surrogate.value(at)[0])])

    def surrokit_run_finished(self, run: Any, outcome: sk.Run) -> None:
        self.told.append([3, run.warmup, run.draws, len(outcome.kept)])


def _observed() -> Mapping[str, Callable[[], Any]]:
    def listened(target: Any, **options: Any) -> dict[str, Any]:
        """Draw with a listener, and count what the target itself is asked."""
        listener, counting = Listener(), CountingPotential(target)
        found = of_run(drawn(counting, observers=[listener], **options))
        lengths = [len(event) for event in listener.told]
        flat = [number for event in listener.told for number in event]
        found["statistics"]["observed"] = digest(np.array([*lengths, *flat], dtype=np.float64))
        found["statistics"]["events"] = len(lengths)
        for method, n in sorted(counting.positions.items()):
            found["calls"][f"target {method}"] = [n, counting.batches[method]]
        return found

    return {
        "observed/exact": lambda: listened(smooth(), sampler="hmc"),
        "observed/surrogate": lambda: listened(smooth(), surrogate="additive"),
        "observed/picked": lambda: listened(Slow(smooth(), 0.02), warmup=None),
        "observed/rows": lambda: listened(
            regression(n_rows=2000),
            sampler="gaussian",
            surrogate="quadratic",
            correction="subsampled",
        ),
    }
