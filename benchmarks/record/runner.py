"""Doing the runs of the record: hashes of draws, calls and statistics, never of seconds."""

from __future__ import annotations

import hashlib
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import surrokit as sk
from record.clock import CLOCK, stopwatch


def all_runs() -> dict[str, Callable[[], Any]]:
    """Return every run by its name."""
    from record import of_experiments, of_limits, of_repairs, of_samplers, of_surrogates, of_targets

    found: dict[str, Callable[[], Any]] = {}
    for room in (of_samplers, of_surrogates, of_targets, of_repairs, of_limits, of_experiments):
        runs = room.runs()
        if twice := found.keys() & runs.keys():
            raise ValueError(f"two runs are named {', '.join(sorted(twice))}")
        found |= runs
    return found


def package_folder() -> Path:
    """Return where the surrokit that runs lives: a record of another would show nothing."""
    return Path(sk.__file__).parent


def recorded(
    runs: Mapping[str, Callable[[], Any]], told: Callable[[str, float], None]
) -> dict[str, Any]:
    """Do runs, and return their record."""
    found = {}
    for name, run in runs.items():
        began = stopwatch()
        found[name] = fingerprint_of(run)
        told(name, stopwatch() - began)
    made_with = {"python": sys.version.split()[0]}
    made_with |= {name: metadata.version(name) for name in ("numpy", "scipy", "scikit-learn")}
    return {"made_with": made_with, "runs": found}


def fingerprint_of(run: Callable[[], Any]) -> dict[str, dict[str, Any]]:
    """Do a run, and return its fingerprint, its warnings counted.

    A run may return what :func:`surrokit.sample` does, or a fingerprint; an exception is taken down
    with what was drawn before it.
    """
    CLOCK.reset()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            outcome, raised = run(), None
        except Exception as error:
            outcome, raised = getattr(error, "partial", None), type(error).__name__
        found = of_run(outcome) if isinstance(outcome, sk.Run) else dict(outcome or {})
        found["statistics"] = {**found.get("statistics", {}), "raised": raised}
    counted = Counter(warning.category.__name__ for warning in caught)
    ours = ("SamplingWarning", "EvaluationWarning")
    found["statistics"]["warnings"] = {name: counted[name] for name in ours}
    return found


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
    return "#" + found.hexdigest()[:16]


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
    trace, values = run.kept if len(run.kept) else run.warmup, None
    if run.surrogate is not None and len(trace):  # where the chains were last
        values = digest(run.surrogate.value(np.ascontiguousarray(trace.positions[:, -1])))
    return {
        "stopped": run.stopped,
        "deployments": len(adaptation.deployments),
        "deployed at": digest(np.array(adaptation.deployments, dtype=np.int64)),
        "training rows": adaptation.training_rows,
        "frozen before draws": adaptation.frozen_before_draws,
        "rescues": [rescue.iteration for rescue in adaptation.rescues],
        "mix": adaptation.mix,
        "surrogate": values,
        "picked": None if run.choice is None else _names(run.parts),
    }


def _names(parts: Mapping[str, str]) -> dict[str, str]:
    """Return the names of parts without their settings: how these are written is no figure."""
    return {kind: name.partition("(")[0] for kind, name in parts.items() if kind != "target"}


def of_figures(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fingerprint of plain data: of all numbers that do not depend on the clock."""
    return {
        name: digest(np.array(numbers, dtype=np.float64))
        for name, value in figures.items()
        if "second" not in name and (numbers := list(_numbers(value)))
    }


def _numbers(value: Any) -> Iterator[float]:
    """Yield the numbers in plain data in the order of their keys; None counts as NaN."""
    if isinstance(value, Mapping):
        for name in sorted(value):
            if "second" not in name:
                yield from _numbers(value[name])
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _numbers(inner)
    elif value is None or isinstance(value, int | float):
        yield np.nan if value is None else float(value)
