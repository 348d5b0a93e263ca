"""Posteriors from a few hundred values without gradients, beside PyVBMC, GPry and BOBE.

    python benchmarks/few_values.py targets --seeds 10

runs surrokit with every choice left to it on seventeen targets, at the budgets at which PyVBMC 1.5
ends on them, and prints medians beside those of PyVBMC. Figures of a run: the error of log Z; GsKL,
the mean of both Kullback-Leibler divergences of normal densities of equal moments; MMTV, the mean
over coordinates of the total variation; whether the answer is usable: log Z and GsKL below 1, MMTV
below 0.2. GsKL and MMTV are those of the surrogate that has learnt from all values, as PyVBMC's are
those of its last variational posterior. Silent is an unusable answer that is accepted. Held is the
part of means, standard deviations and log Z of accepted answers that their 95 % intervals hold.

    python benchmarks/few_values.py peers --data path/to/posteriordb \\
        --python pyvbmc=path/to/python --python gpry=path/to/another --python bobe=path/to/a-third

runs all methods on five problems. They get the same range in which the mass plausibly lies: eight
standard deviations wide, its middle up to one off in each coordinate. GPry and BOBE need a bounded
uniform prior as well: a box with the same middle and twice as wide, outside of which lies at most
about a thousandth of the mass; in the plausible range they have their first values. Of ours the
surrogate is judged that an active exploration of N values leaves, drawn from by chains that begin
at its lowest points; of PyVBMC its last variational posterior of at most N values, in one run to
the largest N; of GPry and BOBE the nested sampling of their own process of at most N values, in one
run without a test of convergence. In brackets stands the acceptance of exact chains that the
surrogate proposes for. It asserts nothing.

``cheap`` runs two expensive models with and without a cheap one beside them.

An interpreter named for a method has its package (PyPI's ``pyvbmc``, ``gpry``, ``BOBE``), surrokit
itself and JAX; packages that refuse one another's JAX thus have one each. Without a name the
present interpreter runs the method. Rows are kept in the file of ``--output``, and draws of the
targets in the folder of that name without its suffix, and are not made again; the first run of a
problem makes its draws, within its patience. A run that fails, or that is not over within
``--patience`` seconds, has rows that say so for each number of values that it did not come to.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import click

from few.cheap import PAIRS, cheap_run, reference_of, run_pair
from few.methods import of_bobe, of_gpry, of_ours, of_pyvbmc, table
from few.problems import PROBLEMS, Task, kept_reference
from few.targets import PYVBMC, case_of, run_one, table_of
from harness import ONE_THREAD, add_row

Row: TypeAlias = dict[str, Any]
Method: TypeAlias = Callable[[Task], Iterator[Row]]

METHODS: dict[str, Method] = {
    "surrokit": of_ours,
    "pyvbmc": of_pyvbmc,
    "gpry": of_gpry,
    "bobe": of_bobe,
}


def _interpreters(_: click.Context, __: click.Parameter, words: tuple[str, ...]) -> dict[str, str]:
    """Read METHOD=INTERPRETER."""
    named = dict.fromkeys(METHODS, sys.executable)
    for word in words:
        method, found, python = word.partition("=")
        if not found or method not in METHODS:
            raise click.BadParameter(f"{word!r} is not METHOD=INTERPRETER of {', '.join(METHODS)}")
        named[method] = python
    return named


@click.group(help=__doc__.partition("\n")[0])
def main() -> None:
    """Seventeen targets by surrokit alone, or five problems by all methods."""


@main.command()
@click.option("--seeds", default=10, show_default=True)
@click.option("--output", default="few_targets.jsonl", type=click.Path(path_type=Path))
@click.option("--only", multiple=True, type=click.Choice(list(PYVBMC)), default=list(PYVBMC))
@click.option("--values", type=int, help="Values of each run, in place of PyVBMC's number.")
def targets(seeds: int, output: Path, only: tuple[str, ...], values: int | None) -> None:
    """Run what is not in the file yet, and print the table."""
    for name in only:
        case = None
        for seed in range(1, seeds + 1):
            key = {"target": name, "seed": seed}
            if not any(key.items() <= row.items() for row in _rows(output)):
                case = case or case_of(name)
                add_row(output, {**key, **run_one(case, values or int(PYVBMC[name][0]), seed)})
    click.echo(table_of(_rows(output), only))


@main.command()
@click.option("--seeds", default=3, show_default=True)
@click.option("--output", default="few_cheap.jsonl", type=click.Path(path_type=Path))
@click.option("--only", multiple=True, type=click.Choice(list(PAIRS)), default=list(PAIRS))
@click.option("--calls", default="25,50,100", show_default=True)
@click.option("--reference", default=700, show_default=True, help="Calls of the reference.")
def cheap(seeds: int, output: Path, only: tuple[str, ...], calls: str, reference: int) -> None:
    """Run an expensive model with and without a cheap one beside it, and print each error."""
    for name in only:
        known = reference_of(name, reference)
        for seed in range(1, seeds + 1):
            first = None
            for n in map(int, calls.split(",")):
                for beside in (False, True):
                    key = {"target": name, "budget": n, "beside": beside, "seed": seed}
                    if any(key.items() <= row.items() for row in _rows(output)):
                        continue
                    if beside and first is None:
                        first = cheap_run(name, seed)
                    found = run_pair(name, n, seed, known, first if beside else None)
                    add_row(output, {**key, **found})
    for row in _rows(output):
        beside = "with cheap" if row["beside"] else "alone"
        click.echo(
            f"{row['target']:14} {beside:10} seed {row['seed']}: {row['calls']:.0f} calls, "
            f"error {row['error']:.4f}, {row['seconds']:.0f} s"
        )


@main.command()
@click.option("--data", required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--output", default="few_values.jsonl", type=click.Path(path_type=Path))
@click.option("--only", multiple=True, type=click.Choice(PROBLEMS), default=PROBLEMS)
@click.option("--methods", multiple=True, type=click.Choice(list(METHODS)), default=list(METHODS))
@click.option("--seeds", default=3, show_default=True)
@click.option("--budgets", default="100,200,400", show_default=True)
@click.option(
    "--python",
    "pythons",
    multiple=True,
    metavar="METHOD=INTERPRETER",
    callback=_interpreters,
    help="Interpreter that has a method's package.",
)
@click.option("--patience", default=900.0, show_default=True, help="Seconds a run may take.")
@click.option("--here", type=int, hidden=True)
def peers(
    data: Path, output: Path, only: tuple[str, ...], methods: tuple[str, ...], **how: Any
) -> None:
    """Run what is not in the file yet, each in a process of its own, and print the table."""
    budgets = [int(n) for n in how["budgets"].split(",")]
    if how["here"] is not None:
        key = {"problem": only[0], "method": methods[0], "seed": how["here"]}
        reference = kept_reference(only[0], data, output.with_suffix(""))
        task = Task(
            problem=only[0], data=data, reference=reference, seed=how["here"], budgets=budgets
        )
        for row in METHODS[methods[0]](task):
            add_row(output, {**key, **row})
        return
    for seed in range(1, how["seeds"] + 1):
        for problem in only:
            for method in methods:
                key = {"problem": problem, "method": method, "seed": seed}
                left = _left(output, key, budgets)
                if left:
                    words = ["--data", data, "--output", output, "--only", problem]
                    words += ["--methods", method, "--here", seed]
                    words += ["--budgets", ",".join(map(str, left))]
                    command = [how["pythons"][method], __file__, "peers", *map(str, words)]
                    _run(command, output, key, left, how["patience"])
    click.echo(table(_rows(output), PROBLEMS, METHODS))


def _run(command: list[str], output: Path, key: Row, budgets: list[int], patience: float) -> None:
    """Run one process, and keep a row that says why for each budget it did not come to."""
    environment = {**os.environ, **ONE_THREAD}
    try:
        process = subprocess.run(
            command,
            env=environment,
            timeout=patience,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
    except subprocess.TimeoutExpired:
        ended = {"status": "over time", "message": f"not finished after {patience:.0f} s"}
    else:
        if process.returncode == 0:
            said = "it made nothing of so few values"
        else:
            said = (process.stderr.strip() or "it said nothing").splitlines()[-1]
        ended = {"status": "failed", "message": said}
    for budget in _left(output, key, budgets):
        add_row(output, {**key, "budget": budget, **ended})


def _rows(output: Path) -> list[Row]:
    if not output.is_file():
        return []
    return [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]


def _left(output: Path, key: Row, budgets: list[int]) -> list[int]:
    """Return the budgets without a row."""
    there = {row["budget"] for row in _rows(output) if key.items() <= row.items()}
    return [budget for budget in budgets if budget not in there]


if __name__ == "__main__":
    main()
