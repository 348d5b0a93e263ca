"""Fourteen posteriors of posteriordb: who is right, who is wrong, and who says so.

Every method of surrokit's grid on the same densities, from default starts and with default
settings, three seeds each. A run is right if R-hat
is below 1.02, means are within 0.12 sd of the reference's and sds within 12 %. A wrong result
without a warning is the worst that can come out, and stands in bold.

    python benchmarks/posteriors.py --data path/to/posteriordb --output posteriors.jsonl

The folder has one folder for each posterior, with ``data.json`` and ``reference_summary.json``.
Each run is a process of its own with a limit of time, and adds its row to the output as a line of
JSON; begun again, the bench goes on where it was, so changed code needs another file. It needs JAX;
five posteriors have gradients by hand and do without. ``--only``, ``--methods`` and ``--seeds``
take a part, ``--exact`` compares HMC and NUTS with NUTS of nutpie and NumPyro by gradients, ``--only-report`` prints the table of what there is. The method ``control`` is HMC
from the reference's means: it shows that a density is that of the reference.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path

import click

from harness import Key, Row, add_row, key_of, machine, ordered, read_rows, still_to_do
from real_posteriors.cases import CASES
from real_posteriors.judging import verdict
from real_posteriors.methods import DEFAULT_METHODS, EXACT_METHODS, METHODS
from real_posteriors.table import gradients, report


def matching(names: Iterable[str], patterns: Iterable[str]) -> list[str]:
    """Return names that hold one of some patterns; all if there is none."""
    names, patterns = list(names), list(patterns)
    for pattern in patterns:
        if not any(fnmatch(name, f"*{pattern}*") for name in names):
            raise click.ClickException(
                f"no posterior is named like {pattern}; there are {', '.join(names)}"
            )
    return [
        name
        for name in names
        if not patterns or any(fnmatch(name, f"*{pattern}*") for pattern in patterns)
    ]


def tell(row: Row) -> None:
    """Print a line about a row."""
    said = row.get("message") or "; ".join(row["wrong"])
    key = "{:44s} {:14s} seed {}".format(*key_of(row))
    click.echo(f"{key} {row['wall']:6.1f} s  {verdict(row)}{': ' if said else ''}{said}")


def run(key: Key, data: Path, patience: float) -> Row:
    """Run one method on one posterior with one seed, and return its row."""
    kept: Row = dict(zip(("posterior", "method", "seed"), key, strict=True))
    began = time.perf_counter()
    found = ordered({**kept, "data": str(data)}, patience, "real_posteriors.worker")
    return {**kept, **found, "wall": time.perf_counter() - began, "limit": patience}


@click.command(help=__doc__.partition("\n")[0])
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder with a folder for each posterior.",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("reproduced/posteriors.jsonl"),
    show_default=True,
)
@click.option("--only", multiple=True, metavar="PATTERN", help="Part of a posterior's name.")
@click.option("--methods", "--method", multiple=True, type=click.Choice(list(METHODS)))
@click.option("--exact", is_flag=True, help="Exact methods and their peers, and gradients alone.")
@click.option("--seeds", default=3, show_default=True, help="How many: 1, 2, ...")
@click.option("--patience", default=600.0, show_default=True, help="Seconds of each run.")
@click.option("--only-report", is_flag=True, help="The table of what is in the output.")
def main(
    data: Path | None,
    output: Path,
    only: tuple[str, ...],
    methods: tuple[str, ...],
    exact: bool,
    seeds: int,
    patience: float,
    only_report: bool,
) -> None:
    """Run the bench, by default all of it, and print the tables."""
    output.parent.mkdir(parents=True, exist_ok=True)
    posteriors, chosen = (
        matching(CASES, only),
        methods or (EXACT_METHODS if exact else DEFAULT_METHODS),
    )
    wanted = [(p, m, s) for p in posteriors for m in chosen for s in range(1, seeds + 1)]
    if not only_report:
        if data is None:
            raise click.UsageError("the posteriors' folder is needed; name it by --data")
        for key in still_to_do(wanted, read_rows(output)):
            row = run(key, data.resolve(), patience)
            add_row(output, row)
            tell(row)
    rows = read_rows(output)
    there = [rows[key] for key in wanted if key in rows]
    click.echo(gradients(there) if exact else report(there))
    versions = {name: v for row in rows.values() for name, v in row.get("versions", {}).items()}
    click.echo(", ".join(f"{name} {value}" for name, value in {**machine(), **versions}.items()))


if __name__ == "__main__":
    main()
