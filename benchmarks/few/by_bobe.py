"""BOBE: one run of its learning loop, held at each number of values and drawn from there."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from few.problems import Counted, Task
from few.scores import distances, unweighted

FIRST = 3
"""Values in the plausible range before the run, for each parameter."""
LOWEST = -1e10
"""What the package itself has in place of minus infinity."""


def of_bobe(task: Task) -> Iterator[dict[str, Any]]:
    """Run BOBE with its defaults, but without its test of convergence.

    Its uniform prior is the wide box. It has no other way to be told of the plausible range than
    values from there, which count as all others do. A step adds several values, thus the last step
    of a budget begins only if all of them fit. Draws are those of nested sampling at the end.
    """
    from BOBE import BOBE, get_dimension_based_defaults

    log_density = Counted(task.log_density())
    low, high = task.plausible()
    dim = len(low)
    first = np.random.default_rng(task.seed).uniform(low, high, (FIRST * dim, dim))
    step = get_dimension_based_defaults(dim)["batch_size"]
    began, scoring = time.perf_counter(), 0.0
    with tempfile.TemporaryDirectory() as folder:
        learner = BOBE(
            log_density,
            param_list=[f"q{i}" for i in range(dim)],
            param_bounds=np.stack(task.bounds()),
            init_train_x=first,
            init_train_y=np.array([max(log_density(z), LOWEST) for z in first]),
            save_dir=folder,
            seed=task.seed,
            verbosity="ERROR",
        )
        for budget in sorted(task.budgets):
            left_out = log_density.calls - int(learner.gp.npoints)  # points it has already
            most = budget - left_out - step + 1
            found = learner.run(min_evals=most, max_evals=most, do_final_ns=True)["samples"]
            seconds = time.perf_counter() - began - scoring
            draws = unweighted(np.asarray(found["x"]), np.asarray(found["weights"]), task.seed)
            row = {"budget": budget, "values": log_density.calls, "seconds": seconds}
            yield {**row, **distances(draws, task.reference)}
            scoring = time.perf_counter() - began - seconds
