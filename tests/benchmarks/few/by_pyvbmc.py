"""PyVBMC: one run, and its variational posteriors on the way."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from few.problems import log_density_of, plausible, reference_of
from few.scores import distances

LOWEST = -1e10
"""Stands for a log density of minus infinity, which the package refuses."""


def of_pyvbmc(problem: str, data: Path, seed: int, budgets: list[int]) -> Iterator[dict[str, Any]]:
    """Run PyVBMC once to the largest budget, and take what it had at the others."""
    from pyvbmc import VBMC

    log_density = log_density_of(problem, data)
    reference = reference_of(problem, data)
    low, high = plausible(reference, seed)
    np.random.seed(seed)  # noqa: NPY002 - the package draws from NumPy's global generator
    began = time.perf_counter()
    most = {"max_fun_evals": max(budgets), "min_fun_evals": max(budgets), "display": "off"}
    found = VBMC(
        lambda z: max(log_density(z), LOWEST),
        (0.5 * (low + high))[None],
        plausible_lower_bounds=low[None],
        plausible_upper_bounds=high[None],
        options=most,
    )
    found.optimize()
    seconds, history = time.perf_counter() - began, found.iteration_history
    for budget in budgets:
        done = [k for k, n in enumerate(history["func_count"]) if n <= budget]
        if done:
            draws = history["vp"][done[-1]].sample(20_000)[0]
            values = int(history["func_count"][done[-1]])
            row = {"budget": budget, "values": values, "seconds": seconds}
            yield {**row, **distances(draws, reference)}
