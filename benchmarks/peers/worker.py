"""Runs one method on one problem, in a process of its own on one processor core.

    python -m peers.worker ORDER

``ORDER`` is JSON: ``problem``, ``method``, ``data``, ``chains``, ``mass``, ``warmup``,
``draws``, ``seconds``, ``seed``, ``core``, ``shares`` and ``result``, the file for the figures.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

COSTS = "costs"
"""Stands for a method; its figures are what calls of the target cost."""


def pin(core: int | None) -> bool:
    """Keep this process, and the threads of every library, on one core; return whether it is."""
    if core is None or not hasattr(os, "sched_setaffinity"):
        return False
    os.sched_setaffinity(0, {core})
    return True


def task_of(order: dict[str, Any]) -> Any:
    """Return the problem with its data, and what may be spent on it."""
    from peers.outcome import Task
    from peers.problems import PRIOR_VARIANCE, PROBLEMS

    problem = PROBLEMS[order["problem"]]
    data = None if order["data"] is None else Path(order["data"])
    design, response = problem.arrays(data)
    target = problem.target(data)
    return Task(
        target=target,
        design=design,
        response=response,
        prior_variance=PRIOR_VARIANCE,
        starts=problem.starts(target.dim, order["chains"], order["seed"]),
        step_size=problem.step_size,
        n_steps=problem.n_steps,
        dense=order["mass"] == "dense",
        warmup=order["warmup"],
        draws=order["draws"],
        seconds=order["seconds"],
        seed=order["seed"],
    )


def line(order: dict[str, Any]) -> dict[str, Any]:
    """Return the figures, or why there are none."""
    from peers.outcome import figures, measured_shares

    task = task_of(order)
    if order["method"] == COSTS:
        return measured_shares(task.target, task.starts, len(task.design))
    from peers.methods import METHODS
    from peers.ours import NotThereError
    from peers.outcome import OverTimeError
    from surrokit.diagnostics import MIN_DRAWS

    method = METHODS[order["method"]]
    try:
        outcome = method.load()(task)
    except NotThereError as error:
        return {"status": "not there", "message": str(error)}
    except OverTimeError as error:
        return {"status": "over time", "message": str(error)}
    except ImportError as error:
        return {"status": "not installed", "message": str(error)}
    n_draws = outcome.draws.shape[1]
    if n_draws < MIN_DRAWS:
        return {"status": "over time", "message": f"{n_draws} draws a chain when the time was over"}
    found = figures(outcome, order["shares"])
    return {"status": "done", "message": "", **found, "versions": method.versions()}


def main() -> None:
    """Do what the order says."""
    order = json.loads(sys.argv[1])
    pinned = pin(order["core"])
    try:
        found = line(order)
    except Exception as error:
        traceback.print_exc()
        found = {"status": "failed", "message": f"{type(error).__name__}: {error}".split("\n")[0]}
    found["pinned"] = pinned
    Path(order["result"]).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
