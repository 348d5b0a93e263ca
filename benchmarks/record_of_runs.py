"""A record of short seeded runs: a refactoring changes no draw, and this shows it.

Each run is written down as hashes of its draws, of its exact calls by kind and of its statistics,
never of its seconds. Before a refactoring and after it::

    python benchmarks/record_of_runs.py --out before.json
    python benchmarks/record_of_runs.py --compare before.json

The second names every run that differs, and in what, and then ends with status 1. Hashes are for
one machine, one set of versions, and one thread: the script starts itself again with one where need
be. Time passes only where a target says so (:mod:`record.clock`), so what is picked by measured
times is the same again, too. Only the public face of the package is used: whatever moves inside,
this runs unchanged. ``--only nuts`` does the runs of that name alone. Seconds are the processor's.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import click

from record.clock import simulated, stopwatch

ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL")}


@click.command(help=__doc__.partition("\n")[0])
@click.option("--out", type=click.Path(path_type=Path), help="Write the record here.")
@click.option(
    "--compare",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Tell what differs from this record; status 1 if anything does.",
)
@click.option("--only", multiple=True, metavar="PATTERN", help="Part of a name, or a pattern.")
def main(out: Path | None, compare: Path | None, only: tuple[str, ...]) -> None:
    """Do the runs, and write or compare them."""
    before = None if compare is None else json.loads(compare.read_text("utf-8"))
    after = record(only)
    if out is not None:
        out.write_text(json.dumps(after, indent=1) + "\n", encoding="utf-8")
    if before is not None:
        sys.exit(report(before, after, all_runs=not only))


def record(only: tuple[str, ...] = ()) -> Mapping[str, Any]:
    """Do the runs whose names match, and return their record; a line for each as it is done."""
    if "surrokit" in sys.modules:
        raise RuntimeError("a record must begin before surrokit is imported; start Python afresh")
    began = stopwatch()
    with simulated():
        from record.runner import all_runs, package_folder, recorded

        chosen = {
            name: run
            for name, run in all_runs().items()
            if not only or any(fnmatch(name, f"*{pattern}*") for pattern in only)
        }
        if not chosen:
            raise click.ClickException(f"no run is named like {', '.join(only)}")
        click.echo(f"runs of the surrokit in {package_folder()}")
        found = recorded(chosen, lambda name, took: click.echo(f"{took:6.2f} s  {name}"))
    click.echo(f"{len(chosen)} runs in {stopwatch() - began:.0f} s of the processor")
    return found


def report(before: Mapping[str, Any], after: Mapping[str, Any], *, all_runs: bool = True) -> int:
    """Print what differs between two records, and return the exit status."""
    for name, was, now in _unequal(before["made_with"], after["made_with"]):
        click.echo(f"made with other versions, so hashes may differ: {name}: {was}, now {now}")
    found = differences(before, after, all_runs=all_runs)
    for line in found:
        click.echo(f"DIFFERS  {line}")
    click.echo(f"{len(found)} runs differ" if found else f"all {len(after['runs'])} runs are equal")
    return 1 if found else 0


def differences(
    before: Mapping[str, Any], after: Mapping[str, Any], *, all_runs: bool = True
) -> list[str]:
    """Return a line for each run that differs, with the names of what differs in it."""
    found = []
    for name, run in before["runs"].items():
        if name not in after["runs"]:
            found += [f"{name}: only before"] if all_runs else []
        elif run != after["runs"][name]:
            found.append(f"{name}: {_what_differs(run, after['runs'][name])}")
    return found + [f"{name}: only after" for name in after["runs"] if name not in before["runs"]]


def _what_differs(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    groups = []
    for group in dict.fromkeys([*before, *after]):
        told = []
        for name, was, now in _unequal(before.get(group, {}), after.get(group, {})):
            is_hash = any(isinstance(value, str) and value.startswith("#") for value in (was, now))
            told.append(name if is_hash else f"{name} {was} -> {now}")
        if told:
            groups.append(f"{group} ({', '.join(told)})")
    return ", ".join(groups)


def _unequal(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    for name in dict.fromkeys([*before, *after]):
        was, now = before.get(name), after.get(name)
        if was != now:
            yield name, was, now


if __name__ == "__main__":
    # libraries read the number of threads once, when loaded
    if any(os.environ.get(name) != number for name, number in ONE_THREAD.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ONE_THREAD})
    main()
