"""GPry: one run of its learning loop, held at each number of values and drawn from there."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from few.problems import Task
from few.scores import distances, unweighted


def of_gpry(task: Task) -> Iterator[dict[str, Any]]:
    """Run GPry with its defaults, but without its test of convergence.

    Its uniform prior is the wide box, and its first points come from the plausible range. A step
    adds several values, thus the last step of a budget begins only if all of them fit. The nested
    sampler of its steps is PolyChord where that is installed, else UltraNest.
    """
    from gpry.gp_acquisition import GPAcquisitionError
    from gpry.run import Runner

    began = time.perf_counter()
    runner = Runner(
        task.log_density(),
        bounds=np.stack(task.bounds(), axis=1),
        ref_bounds=np.stack(task.plausible(), axis=1),
        convergence_criterion=False,
        options={"max_initial": min(task.budgets), "max_total": max(task.budgets)},
        seed=task.seed,
        verbose=1,
    )
    scoring = 0.0
    for budget in sorted(task.budgets):
        runner.max_total = budget - runner.n_points_per_acq + 1
        row: dict[str, Any] = {"budget": budget}
        try:
            runner.run()
        except GPAcquisitionError as error:  # it finds no point worth a value: what it has counts
            runner.generate_mc_sample()
            row["note"] = str(error)
        runner.has_run, runner.loaded_from_checkpoint = False, True  # the next run goes on
        found = runner.last_mc_samples()
        seconds = time.perf_counter() - began - scoring
        draws = unweighted(found["X"], found["w"], task.seed)
        row |= {"values": int(runner.surrogate.n_total), "seconds": seconds}
        yield {**row, **distances(draws, task.reference)}
        scoring = time.perf_counter() - began - seconds
