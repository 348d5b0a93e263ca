"""Iterations of explorers, and chains that they put somewhere without a transition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from surrokit.errors import ConfigurationError, PluginError
from surrokit.interfaces import Explored, Status, StepInfo
from surrokit.potentials import Potential, with_gradient
from surrokit.types import FloatArray


def next_of(steps: Iterator[Explored]) -> Explored:
    """Return the next iteration of an exploration.

    Raises
    ------
    PluginError
        If there is none, though the last one was not marked as such.
    """
    for explored in steps:
        return explored
    raise PluginError(
        "the explorer has ended, but its last item was not marked as done; yield it as "
        "Explored(..., done=True)"
    )


def demand_warmup(explorer: str, warmup: int) -> None:
    """Raise unless a warm-up has an iteration for an explorer.

    Raises
    ------
    ConfigurationError
        If it has none.
    """
    if warmup < 1:
        raise ConfigurationError(
            f"explorer {explorer!r} needs a warm-up of at least 1 iteration, got {warmup}; pass "
            "warmup=..., or leave it out"
        )


def evaluate_alone(potential: Potential, positions: FloatArray) -> FloatArray:
    """Return U at positions (n, dim), infinite where anything failed."""
    with np.errstate(all="ignore"):
        values = potential.value(positions)
    return np.where(np.isnan(values), np.inf, values)


def noise_at(potential: Potential, positions: FloatArray) -> FloatArray:
    """Return the standard deviation of the noise of the latest values at positions (n, dim), (n,).

    It is 0 where values are exact, and NaN where it is not known.
    """
    asked: Any = getattr(potential, "noise_sd", None)
    found = None if asked is None else asked(positions)
    return np.zeros(len(positions)) if found is None else np.asarray(found)


def evaluate_with_gradients(
    potential: Potential, positions: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return U at positions (n, dim), infinite where anything failed, and its gradients."""
    with np.errstate(all="ignore"):
        values, gradients = with_gradient(potential).value_and_gradient(positions)
    fine = np.isfinite(values) & np.isfinite(gradients).all(axis=1)
    return np.where(fine, values, np.inf), gradients


def idle(n: int, n_moved: int = 0) -> StepInfo:
    """Return what happened to n chains in a step that moved the first ``n_moved`` of them."""
    moved = np.arange(n) < n_moved
    return StepInfo(
        accepted=moved,
        acceptance=moved.astype(np.float64),
        path_acceptance=np.ones(n),
        status=np.full(n, Status.OK, dtype=np.int64),
        divergent=np.zeros(n, dtype=bool),
        n_steps=np.zeros(n, dtype=np.int64),
    )
