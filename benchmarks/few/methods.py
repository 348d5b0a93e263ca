"""Ours, GPry, PyVBMC and BOBE: one run of each, scored at each number of values."""

from __future__ import annotations

import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

import surrokit as sk
from few.problems import Counted, Task, potential_of
from few.targets import distances, draws_of
from surrokit.types import FloatArray

RESAMPLED = 20_000


def unweighted(draws: FloatArray, weights: FloatArray | None, seed: int) -> FloatArray:
    """Return draws of equal weight out of weighted ones."""
    if weights is None:
        return draws
    rng = np.random.default_rng(seed)
    return draws[rng.choice(len(draws), RESAMPLED, p=weights / np.sum(weights))]


def of_ours(task: Task) -> Iterator[dict[str, Any]]:
    """Run ours with each budget."""
    value = potential_of(task.problem, task.data)[1]
    ends = zip(*task.plausible(), strict=True)
    ranges = {f"q{i}": (float(low), float(high)) for i, (low, high) in enumerate(ends)}
    target = sk.potential(value, parameters=dict.fromkeys(ranges), plausible=ranges, batched=True)
    for budget in task.budgets:
        began = time.perf_counter()
        explorer = ("active", {"evaluations": budget, "acceptance": 0.9999})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parts = {"sampler": "sub-chain", "surrogate": "quadratic-gp", "explorer": explorer}
            run = sk.sample(target, draws=50, seed=task.seed, **parts)
            seconds = time.perf_counter() - began
        draws = run.kept.transform.to_bounded(draws_of(run.surrogate))
        yield {
            "budget": budget,
            "values": budget,
            "seconds": seconds,
            "acceptance": float(np.mean(run.acceptance)),
            **distances(draws, task.reference),
        }


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


FIRST = 3
"""Values in the plausible range before the run, for each parameter."""


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


SCORES = ("gskl", "mmtv")


def table(rows: list[dict[str, Any]], problems: Iterable[str], methods: Iterable[str]) -> str:
    """Return a table of a line for each problem and method, and a column for each budget."""
    budgets = sorted({row["budget"] for row in rows})
    lines = [f"| problem | method | {' | '.join(f'{n} values' for n in budgets)} |"]
    lines.append("| --- " * (2 + len(budgets)) + "|")
    methods = list(methods)
    for problem in problems:
        for method in methods:
            keys = [{"problem": problem, "method": method, "budget": n} for n in budgets]
            cells = [_cell([row for row in rows if key.items() <= row.items()]) for key in keys]
            lines.append(f"| {problem} | {method} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(rows: list[dict[str, Any]]) -> str:
    """Return the medians of what ended, and how many did not for which reason."""
    ended = [row for row in rows if "status" not in row]
    said = []
    if ended:
        gskl, mmtv = (np.median([row[name] for row in ended]) for name in SCORES)
        rates = [row["acceptance"] for row in ended if "acceptance" in row]
        said.append(f"{gskl:.2g} / {mmtv:.2g}" + (f" ({np.median(rates):.2f})" if rates else ""))
    counts = Counter(row["status"] for row in rows if "status" in row)
    said += [f"{count} {status}" for status, count in counts.items()]
    return ", ".join(said) or "-"
