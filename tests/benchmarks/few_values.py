"""Posteriors from a few hundred values without gradients, beside PyVBMC.

All get the same range in which the mass plausibly lies: eight standard deviations wide, its middle
up to one off in each coordinate. Of ours the surrogate is judged that an active exploration of N
values leaves, drawn from by chains that begin at its lowest points; of PyVBMC its last variational
posterior of at most N values, in one run to the largest N. Distances to the reference: the mean of
both Kullback-Leibler divergences of normal densities with the draws' moments (GsKL), and the mean
over coordinates of the total variation (MMTV). In brackets stands the acceptance of exact chains
that the surrogate proposes for. It asserts nothing.

    python tests/benchmarks/few_values.py --data path/to/posteriordb --peers-python path/to/python

Rows are kept in the file of ``--output``, and are not made again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import click
import numpy as np

import intervals
import surrokit as sk
from compare import ONE_THREAD
from real_posteriors.targets import Posterior
from surrokit.types import FloatArray
from surrokit_gp.quadratic.model import Model

Density: TypeAlias = Callable[[FloatArray], FloatArray]

CASES = {
    "lynx-hare": "hudson_lynx_hare-lotka_volterra",
    "hmm": "hmm_example-hmm_example",
    "logmesquite": "mesquite-logmesquite_logvash",
}
PROBLEMS = ("banana", "student", *CASES)
DEGREES, LINKED, DIM = 5.0, 0.7, 4
OFF, HALF_WIDTH = 1.0, 4.0
SHOWN = 4000
"""Draws of which densities are estimated for the total variation."""

FINDS = {"sampler": "sub-chain", "surrogate": "additive", "explorer": "rounds"}


def potential_of(problem: str, data: Path) -> tuple[int, Density]:
    """Return the dimension and U of rows on the whole line."""
    if problem == "banana":
        return 4, intervals.banana().value
    if problem == "student":
        precision = np.linalg.inv(_linked())

        def heavy(q: FloatArray) -> FloatArray:
            squares = np.einsum("ni,ij,nj->n", q, precision, q)
            return 0.5 * (DEGREES + DIM) * np.log1p(squares / DEGREES)

        return DIM, heavy
    posterior = Posterior.read(CASES[problem], data)
    return posterior.case.dim, posterior.values_alone().value


def reference_of(problem: str, data: Path) -> FloatArray:
    """Return draws of the target on the whole line: direct ones, or of a long run by gradients."""
    rng = np.random.default_rng(7)
    if problem == "banana":
        return intervals.draw_banana(rng)[:100_000]
    if problem == "student":
        normal = rng.standard_normal((100_000, DIM)) @ np.linalg.cholesky(_linked()).T
        return normal / np.sqrt(rng.chisquare(DEGREES, len(normal)) / DEGREES)[:, None]
    posterior = Posterior.read(CASES[problem], data)
    run = sk.sample(posterior.with_gradient(), draws=5000, seed=5, **FINDS)
    draws = run.draws.reshape(-1, posterior.case.dim)
    return posterior.values_alone().transform.to_unbounded(draws)


def _linked() -> FloatArray:
    return np.full((DIM, DIM), LINKED) + (1.0 - LINKED) * np.eye(DIM)


def plausible(reference: FloatArray, seed: int) -> tuple[FloatArray, FloatArray]:
    """Return the lower and upper ends of where the mass may lie."""
    low, middle, high = np.quantile(reference, [0.16, 0.5, 0.84], axis=0)
    sds = 0.5 * (high - low)
    off = np.random.default_rng(1000 + seed).uniform(-OFF, OFF, len(sds))
    return middle + (off - HALF_WIDTH) * sds, middle + (off + HALF_WIDTH) * sds


def distances(draws: FloatArray, reference: FloatArray) -> dict[str, float]:
    """Return GsKL and MMTV of draws."""
    moments = [(each.mean(axis=0), np.cov(each.T)) for each in (draws, reference)]
    (mean, covariance), (mean_there, covariance_there) = moments
    inverses = [np.linalg.inv(each) for each in (covariance, covariance_there)]
    away = mean - mean_there
    total = np.trace(inverses[0] @ covariance_there) + np.trace(inverses[1] @ covariance)
    total += away @ (inverses[0] + inverses[1]) @ away - 2 * len(mean)
    return {"gskl": float(0.25 * total), "mmtv": _total_variation(draws, reference)}


def _total_variation(draws: FloatArray, reference: FloatArray) -> float:
    from scipy.stats import gaussian_kde

    found = []
    for ours, theirs in zip(draws.T, reference.T, strict=True):
        ours, theirs = (each[:: max(1, len(each) // SHOWN)] for each in (ours, theirs))
        low, high = np.quantile(np.r_[ours, theirs], [0.0005, 0.9995])
        grid = np.linspace(low - 0.1 * (high - low), high + 0.1 * (high - low), 300)
        apart = np.abs(gaussian_kde(ours)(grid) - gaussian_kde(theirs)(grid))
        found.append(0.5 * float(np.trapezoid(apart, grid)))
    return float(np.mean(found))


def of_ours(problem: str, data: Path, seed: int, budgets: list[int]) -> Iterator[dict[str, Any]]:
    """Run ours with each budget."""
    value = potential_of(problem, data)[1]
    reference = reference_of(problem, data)
    ends = zip(*plausible(reference, seed), strict=True)
    ranges = {f"q{i}": (float(low), float(high)) for i, (low, high) in enumerate(ends)}
    target = sk.potential(value, parameters=dict.fromkeys(ranges), plausible=ranges, batched=True)
    for budget in budgets:
        began = time.perf_counter()
        explorer = ("active", {"evaluations": budget, "acceptance": 0.9999})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parts = {"sampler": "sub-chain", "surrogate": "quadratic-gp", "explorer": explorer}
            run = sk.sample(target, draws=50, seed=seed, **parts)
            seconds = time.perf_counter() - began
        yield {
            "budget": budget,
            "values": budget,
            "seconds": seconds,
            "acceptance": float(np.mean(run.acceptance)),
            **distances(_draws_of(run.surrogate), reference),
        }


def _draws_of(fitted: Any) -> FloatArray:
    """Return draws of a fitted process by its own chains, which begin at its lowest points."""
    model = Model(whitening=fitted.whitening, process=fitted.process)
    rngs = np.random.default_rng(1).spawn(20)
    drawn = [model.draw(fitted.walled, 1.0, rng) for rng in rngs]
    return fitted.whitening.undo(np.concatenate(drawn))


def of_pyvbmc(problem: str, data: Path, seed: int, budgets: list[int]) -> Iterator[dict[str, Any]]:
    """Run PyVBMC once to the largest budget, and take what it had at the others."""
    from pyvbmc import VBMC

    value = potential_of(problem, data)[1]
    reference = reference_of(problem, data)
    low, high = plausible(reference, seed)

    def log_density(z: FloatArray) -> float:
        found = -float(value(np.atleast_2d(np.asarray(z, dtype=np.float64)))[0])
        return found if np.isfinite(found) else -1e10

    np.random.seed(seed)  # noqa: NPY002 - the package draws from NumPy's global generator
    began = time.perf_counter()
    most = {"max_fun_evals": max(budgets), "min_fun_evals": max(budgets), "display": "off"}
    found = VBMC(
        log_density,
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


METHODS = {"surrokit": of_ours, "pyvbmc": of_pyvbmc}


def table(rows: list[dict[str, Any]]) -> str:
    """Return a table of medians over seeds."""
    budgets = sorted({row["budget"] for row in rows})
    lines = [f"| problem | method | {' | '.join(f'{n} values' for n in budgets)} |"]
    lines.append("| --- " * (2 + len(budgets)) + "|")
    for problem in PROBLEMS:
        for method in METHODS:
            cells = []
            for budget in budgets:
                wanted = {"problem": problem, "method": method, "budget": budget}
                few = [row for row in rows if wanted.items() <= row.items()]
                gskl, mmtv = (np.median([row[name] for row in few] or [np.nan]) for name in SCORES)
                rates = [row["acceptance"] for row in few if "acceptance" in row]
                rate = f" ({np.median(rates):.2f})" if rates else ""
                cells.append(f"{gskl:.2g} / {mmtv:.2g}{rate}")
            lines.append(f"| {problem} | {method} | {' | '.join(cells)} |")
    return "\n".join(lines)


SCORES = ("gskl", "mmtv")


@click.command(help=__doc__.partition("\n")[0])
@click.option("--data", required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--output", default="few_values.jsonl", type=click.Path(path_type=Path))
@click.option("--only", multiple=True, type=click.Choice(PROBLEMS), default=PROBLEMS)
@click.option("--methods", multiple=True, type=click.Choice(list(METHODS)), default=list(METHODS))
@click.option("--seeds", default=3, show_default=True)
@click.option("--budgets", default="100,200,400", show_default=True)
@click.option("--peers-python", default=sys.executable, help="Interpreter that has PyVBMC.")
@click.option("--here", type=int, hidden=True)
def main(
    data: Path, output: Path, only: tuple[str, ...], methods: tuple[str, ...], **how: Any
) -> None:
    """Run what is not in the file yet, each in a process of its own, and print the table."""
    budgets = [int(n) for n in how["budgets"].split(",")]
    if how["here"] is not None:
        for row in METHODS[methods[0]](only[0], data, how["here"], budgets):
            kept = {"problem": only[0], "method": methods[0], "seed": how["here"], **row}
            with output.open("a", encoding="utf-8") as file:
                file.write(json.dumps(kept) + "\n")
        return
    for seed in range(1, how["seeds"] + 1):
        for problem in only:
            for method in methods:
                if not _is_done(output, problem, method, seed):
                    python = how["peers_python"] if method == "pyvbmc" else sys.executable
                    words = ["--data", data, "--output", output, "--only", problem]
                    words += ["--methods", method, "--here", seed, "--budgets", how["budgets"]]
                    command = [python, __file__, *map(str, words)]
                    subprocess.run(command, env={**os.environ, **ONE_THREAD}, check=False)
    click.echo(table(_rows(output)))


def _rows(output: Path) -> list[dict[str, Any]]:
    if not output.is_file():
        return []
    return [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]


def _is_done(output: Path, *key: object) -> bool:
    return any((row["problem"], row["method"], row["seed"]) == key for row in _rows(output))


if __name__ == "__main__":
    main()
