"""Ours: an active exploration of each number of values."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import surrokit as sk
from few.problems import Task, potential_of
from few.scores import distances
from surrokit.types import FloatArray
from surrokit_gp.quadratic_surrogate import draw

WALKS = 100
"""Walks on a surrogate: about 50,000 draws, whose own noise in GsKL is below 0.001."""


def of_ours(task: Task) -> Iterator[dict[str, Any]]:
    """Run ours with each budget."""
    value = potential_of(task.problem, task.data)[1]
    ends = zip(*task.plausible(), strict=True)
    ranges = {f"q{i}": (float(low), float(high)) for i, (low, high) in enumerate(ends)}
    target = sk.potential(value, parameters=dict.fromkeys(ranges), plausible=ranges, batched=True)
    for budget in task.budgets:
        began = time.perf_counter()
        explorer = ("active", {"evaluations": budget, "acceptance": 0.9999})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parts = {"sampler": "sub-chain", "surrogate": "quadratic-gp", "explorer": explorer}
            run = sk.sample(target, draws=50, seed=task.seed, **parts)
            seconds = time.perf_counter() - began
        yield {
            "budget": budget,
            "values": budget,
            "seconds": seconds,
            "acceptance": float(np.mean(run.acceptance)),
            **distances(_draws_of(run.surrogate), task.reference),
        }


def _draws_of(fitted: Any) -> FloatArray:
    """Return draws of a fitted process by its own chains, which begin at its lowest points."""
    rngs = np.random.default_rng(1).spawn(WALKS)
    drawn = [draw(fitted.walled, 1.0, rng) for rng in rngs]
    return fitted.whitening.undo(np.concatenate(drawn))
