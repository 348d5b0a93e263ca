"""PyVBMC: one run, and its variational posteriors on the way."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from few.problems import Task
from few.scores import distances

LOWEST = -1e10
"""Stands for a log density of minus infinity, which the package refuses."""


def of_pyvbmc(task: Task) -> Iterator[dict[str, Any]]:
    """Run PyVBMC once to the largest budget, and take what it had at the others."""
    from pyvbmc import VBMC

    log_density = task.log_density()
    low, high = task.plausible()
    np.random.seed(task.seed)  # noqa: NPY002 - the package draws from NumPy's global generator
    began = time.perf_counter()
    most = {
        "max_fun_evals": max(task.budgets),
        "min_fun_evals": max(task.budgets),
        "display": "off",
    }
    found = VBMC(
        lambda z: max(log_density(z), LOWEST),
        (0.5 * (low + high))[None],
        plausible_lower_bounds=low[None],
        plausible_upper_bounds=high[None],
        options=most,
    )
    found.optimize()
    seconds, history = time.perf_counter() - began, found.iteration_history
    for budget in task.budgets:
        done = [k for k, n in enumerate(history["func_count"]) if n <= budget]
        if done:
            draws = history["vp"][done[-1]].sample(20_000)[0]
            values = int(history["func_count"][done[-1]])
            row = {"budget": budget, "values": values, "seconds": seconds}
            yield {**row, **distances(draws, task.reference)}
