"""Hashes of what came of a run: its draws, its calls, its statistics, never its seconds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

import surrokit as sk
from record.comparison import HASH

OF_ITERATIONS = (
    "values",
    "outputs",
    "accepted",
    "acceptance",
    "path_acceptance",
    "divergent",
    "n_steps",
    "status",
    "step_size",
)
"""Arrays that a run keeps of each iteration, beside draws, calls and seconds."""

_OF_THE_CLOCK = ("second",)
"""A figure under a key that holds one of these depends on the clock."""


def digest(array: Any) -> str | None:
    """Return a hash of the numbers of an array and of its shape; None for None.

    Kinds of integers, and of NaN, are not told apart; numbers are, to the last bit.
    """
    if array is None:
        return None
    numbers = np.asarray(array)
    if numbers.dtype.kind == "f":
        numbers = np.where(np.isnan(numbers), np.nan, numbers.astype(np.float64))
    elif numbers.dtype.kind in "iub":
        numbers = numbers.astype(np.int64)
    else:
        raise TypeError(f"only numbers can be hashed, got an array of {numbers.dtype}")
    found = hashlib.sha256(f"{numbers.dtype.kind}{numbers.shape}".encode())
    found.update(np.ascontiguousarray(numbers).tobytes())
    return HASH + found.hexdigest()[:16]


def of_run(run: sk.Run) -> dict[str, dict[str, Any]]:
    """Return the fingerprint of a run."""
    phases = {"kept": run.kept, "warmup": run.warmup}
    draws, calls, statistics = {}, dict(run.calls), of_adaptation(run)
    calls["failures"] = run.failures
    for phase, trace in phases.items():
        draws[phase] = digest(trace.draws)
        draws[f"{phase} positions"] = digest(trace.positions)
        for kind, counts in trace.calls.items():
            calls[f"{phase} {kind}"] = digest(counts)
        for name in OF_ITERATIONS:
            statistics[f"{phase} {name}"] = digest(getattr(trace, name))
    return {"draws": draws, "calls": calls, "statistics": statistics}


def of_adaptation(run: sk.Run) -> dict[str, Any]:
    """Return what changed in the course of a run, and what it was in the end."""
    adaptation = run.adaptation
    return {
        "stopped": run.stopped,
        "deployments": len(adaptation.deployments),
        "deployed at": digest(np.array(adaptation.deployments, dtype=np.int64)),
        "training rows": adaptation.training_rows,
        "frozen before draws": adaptation.frozen_before_draws,
        "rescues": [rescue.iteration for rescue in adaptation.rescues],
        "restarts": [restart.iteration for restart in adaptation.restarts],
        "mix": adaptation.mix,
        "surrogate": _of_surrogate(run),
        "picked": None if run.choice is None else _names(run.parts),
    }


def _of_surrogate(run: sk.Run) -> str | None:
    """Return the hash of the last surrogate's values where the chains were last."""
    if run.surrogate is None:
        return None
    trace = run.kept if len(run.kept) else run.warmup
    if not len(trace):
        return None
    return digest(run.surrogate.value(np.ascontiguousarray(trace.positions[:, -1])))


def _names(parts: Mapping[str, str]) -> dict[str, str]:
    """Return the names of parts without their settings: how these are written is no figure."""
    return {kind: name.partition("(")[0] for kind, name in parts.items() if kind != "target"}


def of_figures(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fingerprint of plain data: of all numbers that do not depend on the clock."""
    return {
        name: digest(np.array(numbers, dtype=np.float64))
        for name, value in figures.items()
        if not _is_of_the_clock(name) and (numbers := list(_numbers(value)))
    }


def _is_of_the_clock(name: str) -> bool:
    return any(word in name for word in _OF_THE_CLOCK)


def _numbers(value: Any) -> Iterator[float]:
    """Yield the numbers in plain data in the order of their keys; None counts as NaN."""
    if isinstance(value, Mapping):
        for name in sorted(value):
            if not _is_of_the_clock(name):
                yield from _numbers(value[name])
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _numbers(inner)
    elif value is None or isinstance(value, int | float):
        yield np.nan if value is None else float(value)
