"""Whole runs with and without a cheap model beside the expensive one."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

import surrokit as sk
from surrokit.types import FloatArray

PARTS: dict[str, Any] = {
    "surrogate": "additive",
    "sampler": "sub-chain",
    "explorer": "rounds",
    "progress": False,
}

PAIRS = {  # expensive, cheap: settings of a built-in potential
    "elliptic-pde": ({"mesh": 30}, {"mesh": 10}),
    "lynx-hare": ({}, {"tolerance": 1e-5}),
}


def reference_of(name: str, calls: int) -> tuple[FloatArray, FloatArray]:
    """Return means and standard deviations by many calls of the expensive model, (dim,) each."""
    run = _sample(sk.make("potential", name, **PAIRS[name][0]), calls, 91)
    assert run.answer is not None
    return run.answer.mean().value, run.answer.sd().value


def cheap_run(name: str, seed: int) -> sk.Run:
    """Return a run of the cheap model."""
    return _sample(sk.make("potential", name, **PAIRS[name][1]), 150, seed + 50)


def run_pair(
    name: str,
    calls: int,
    seed: int,
    reference: tuple[FloatArray, FloatArray],
    beside: sk.Run | None,
) -> dict[str, Any]:
    """Return calls and errors of a run, with a run of the cheap model beside it or without.

    The error is the root mean square of those of means, in standard deviations; infinite where
    nothing is accepted. What the answer says of it is ``reported``.
    """
    fine = sk.make("potential", name, **PAIRS[name][0])
    began = time.process_time()
    run = _sample(fine if beside is None else sk.with_cheap(fine, beside), calls, seed)
    row = {"calls": run.total_calls, "seconds": time.process_time() - began, "error": np.inf}
    if run.accepted and run.answer is not None:
        mean = run.answer.mean()
        apart = np.stack([mean.value - reference[0], mean.error]) / reference[1]
        row["error"], row["reported"] = map(float, np.sqrt(np.square(apart).mean(axis=1)))
    return row


def _sample(target: sk.Potential, calls: int, seed: int) -> sk.Run:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sk.sample(target, correction="weights", max_calls=calls, seed=seed, **PARTS)
