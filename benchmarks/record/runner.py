"""Doing the runs of the record."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import surrokit as sk
from record import of_experiments, of_limits, of_repairs, of_samplers, of_surrogates, of_targets
from record.clock import CLOCK, stopwatch
from record.fingerprint import of_run

ROOMS = (of_samplers, of_surrogates, of_targets, of_repairs, of_limits, of_experiments)


def all_runs() -> dict[str, Callable[[], Any]]:
    """Return every run by its name."""
    found: dict[str, Callable[[], Any]] = {}
    for room in ROOMS:
        runs = room.runs()
        if twice := found.keys() & runs.keys():
            raise ValueError(f"two runs are named {', '.join(sorted(twice))}")
        found |= runs
    return found


def package_folder() -> Path:
    """Return where the surrokit that runs lives: a record of another would show nothing."""
    return Path(sk.__file__).parent


def made_with() -> dict[str, str]:
    """Return versions that hashes may depend on."""
    names = ("numpy", "scipy", "scikit-learn")
    return {"python": sys.version.split()[0]} | {name: metadata.version(name) for name in names}


def recorded(
    runs: Mapping[str, Callable[[], Any]], told: Callable[[str, float], None]
) -> dict[str, Any]:
    """Do runs, and return their record."""
    found = {}
    for name, run in runs.items():
        began = stopwatch()
        found[name] = fingerprint_of(run)
        told(name, stopwatch() - began)
    return {"made_with": made_with(), "runs": found}


def fingerprint_of(run: Callable[[], Any]) -> dict[str, dict[str, Any]]:
    """Do a run, and return its fingerprint, its warnings counted.

    A run may return what :func:`surrokit.sample` does, or a fingerprint; an exception is taken down
    with what was drawn before it.
    """
    CLOCK.reset()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = _done(run)
    found["statistics"]["warnings"] = _counted(warning.category.__name__ for warning in caught)
    return found


def _done(run: Callable[[], Any]) -> dict[str, dict[str, Any]]:
    try:
        outcome, raised = run(), None
    except Exception as error:
        outcome, raised = getattr(error, "partial", None), type(error).__name__
    found = of_run(outcome) if isinstance(outcome, sk.Run) else dict(outcome or {})
    found["statistics"] = {**found.get("statistics", {}), "raised": raised}
    return found


def _counted(names: Iterable[str]) -> dict[str, int]:
    ours = ("SamplingWarning", "EvaluationWarning")
    counted = Counter(names)
    return {name: counted[name] for name in ours}
