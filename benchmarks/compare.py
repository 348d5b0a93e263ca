"""surrokit against NumPyro, BlackJAX, nutpie, PyMC and Mici on the same data, in one run.

Every method samples the same logistic regressions, in double precision, in a process of its own
that is kept on one processor core, with four chains and the same number of seconds. Warm-up and
training count, compilation is told apart. A method that fails, is not installed or takes far too
long leaves a line that says so.

    python benchmarks/compare.py --data path/to/folder --output results

writes ``results/PROBLEM.json``, and from all of these in the folder ``benchmarks.md``,
``benchmarks.png`` and ``benchmarks.svg``. ``tox -e bench`` does the same in an environment with
all peers. How it is measured: ``docs/explanation/benchmarks.md``.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import click

from harness import machine, ordered
from peers.methods import DEFAULT_METHODS, METHODS
from peers.problems import PROBLEMS
from peers.table import markdown, versions

SETTINGS = ("chains", "seconds", "mass", "warmup", "draws", "seed", "core")
"""Options that the results quote."""

FAR_TOO_LONG, FOR_COMPILATION = 2.0, 60.0
"""A method is stopped after so many times its seconds, and so many more."""


def compared(problem: str, methods: tuple[str, ...], order: dict[str, Any]) -> dict[str, Any]:
    """Run all methods on a problem, one after another."""
    settings = PROBLEMS[problem]
    order = {**order, "problem": problem, "shares": None}
    order["mass"] = order["mass"] or ("dense" if settings.dense else "diagonal")
    order["warmup"] = order["warmup"] or settings.warmup
    order["seconds"] = order["seconds"] or settings.seconds
    patience = FAR_TOO_LONG * order["seconds"] + FOR_COMPILATION
    shares = ordered({**order, "method": "costs"}, patience)
    if "gradient" not in shares:
        raise click.ClickException(f"{problem}: {shares['message']}")
    order["shares"] = {name: value for name, value in shares.items() if name != "pinned"}
    lines = {}
    for name in methods:
        start, method = time.perf_counter(), METHODS[name]
        line = ordered({**order, "method": name}, patience)
        extra = {"title": method.title, "kind": method.kind, "limit": order["seconds"]}
        lines[name] = {**extra, **line}
        _report(line, method.title, time.perf_counter() - start)
    return {
        "name": problem,
        "title": settings.title,
        "shares": order["shares"],
        "settings": {k: order[k] for k in SETTINGS},
        "machine": machine(),
        "lines": lines,
    }


def _report(line: dict[str, Any], title: str, seconds: float) -> None:
    if line["status"] == "done":
        said = ", ".join(
            f"{name} {'none' if line[name] is None else format(line[name], '.3g')}"
            for name in ("rate", "rate_squares", "per_call", "rhat", "acceptance", "draws")
        )
    else:
        said = f"{line['status']}: {line['message']}"
    click.echo(f"  {title:42s} {seconds:6.1f} s: {said}")


def report(folder: Path) -> list[Path]:
    """Write table and picture of all results in a folder; return the files."""
    found = {path.stem: json.loads(path.read_text("utf-8")) for path in folder.glob("*.json")}
    results = [found[name] for name in PROBLEMS if name in found]
    if not results:
        raise click.ClickException(f"{folder} holds no results")
    table = folder / "benchmarks.md"
    text = "\n".join([*map(markdown, results), versions(results[-1]), ""])
    table.write_text(text, encoding="utf-8")
    click.echo(table.read_text("utf-8"))
    try:
        from peers.picture import draw
    except ImportError as error:
        click.echo(f"no picture: {error}", err=True)
        return [table]
    return [table, *draw(results, folder, "benchmarks")]


@click.command()
@click.option("--problem", "problems", multiple=True, type=click.Choice(list(PROBLEMS)))
@click.option("--method", "methods", multiple=True, type=click.Choice(list(METHODS)))
@click.option(
    "--data",
    envvar="SURROKIT_DATA",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder with the data files, as they are or packed as .gz.",
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("reproduced/benchmarks"),
    show_default=True,
)
@click.option("--seconds", type=float, help="For each method; by default the problem's.")
@click.option("--draws", default=5000, show_default=True, help="Most draws a chain.")
@click.option(
    "--mass",
    type=click.Choice(["diagonal", "dense"]),
    help="Mass matrix of the peers; by default the problem's.",
)
@click.option("--warmup", type=int, help="Iterations; by default the problem's.")
@click.option("--chains", default=4, show_default=True)
@click.option("--seed", default=1, show_default=True)
@click.option("--core", type=int, default=-1, help="Processor core; by default the last.")
@click.option("--only-report", is_flag=True, help="Table and picture of results in the folder.")
def main(
    problems: tuple[str, ...],
    methods: tuple[str, ...],
    data: Path | None,
    output: Path,
    core: int,
    only_report: bool,
    **order: Any,
) -> None:
    """Run the comparison, by default all problems and all methods."""
    output.mkdir(parents=True, exist_ok=True)
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    order["core"] = (cores[core] if core < 0 else core) if cores else None
    order["data"] = None if data is None else str(data.resolve())
    for problem in () if only_report else problems or tuple(PROBLEMS):
        start = time.perf_counter()
        click.echo(PROBLEMS[problem].title)
        found = compared(problem, methods or DEFAULT_METHODS, order)
        file = output / f"{problem}.json"
        file.write_text(json.dumps(found, indent=1), encoding="utf-8")
        click.echo(f"  {time.perf_counter() - start:.0f} s in all")
    for file in report(output):
        click.echo(file)


if __name__ == "__main__":
    main()
