"""Trials as a new user makes them: default settings, plain targets, and who is wrong silently.

Two modes, twenty correlated dimensions, an epidemic whose solver may fail, a curve through points
with few calls, a log density with its sign turned, and a regression on raw columns from starts far
away. A run is right if R-hat is below 1.02 (two modes: 1.05), means are within 0.12 sd of the truth
and sds within 12 %; where the target is not expected to be easy, a mean may also be within four of
the Monte Carlo errors that the run itself tells. A target with its sign turned must be refused
within two seconds. A run is warned if a finding of its verdict warns, or it was refused with words.

    python benchmarks/trials.py --out trials.jsonl

Each run adds its row to the file as it ends; begun again, the bench goes on where it was, so
changed code needs another file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from harness import Row, add_row, key_of, read_rows, still_to_do, table
from user_trials.catalogue import TRIALS
from user_trials.outcomes import NO_END, OUTCOMES, WRONG_SILENT, Trial, outcome

COLUMNS = (
    "trial",
    *(f"**{each}**" if each == WRONG_SILENT else each for each in OUTCOMES),
    "exact calls",
    "seconds",
    "what was said, or was wrong",
)


def tell(row: Row) -> None:
    """Print a line about a run."""
    said = "; ".join(row["wrong"]) or ", ".join(row["warnings"])
    key = "{} ({}) seed {}".format(*key_of(row))
    click.echo(f"{key:32s} {row['seconds']:6.1f} s  {outcome(row)}{': ' if said else ''}{said}")


def cells(trial: Trial, rows: list[Row]) -> tuple[str, ...]:
    """Return the cells of a trial in the table."""
    found = [outcome(row) for row in rows]
    counts = [bold(found.count(each), each) for each in OUTCOMES]
    calls = between([row["calls"] for row in rows if "calls" in row])
    seconds = between([row["seconds"] for row in rows])
    return f"{trial.name}, {trial.variant}", *counts, calls, seconds, "; ".join(details(rows))


def bold(n: int, each: str) -> str:
    """Return how often something came out; nothing for never."""
    return "" if not n else f"**{n}**" if each == WRONG_SILENT else str(n)


def details(rows: list[Row]) -> Iterator[str]:
    """Yield how often there was which warning, and what was wrong or cut off without one."""
    said = Counter(name for row in rows for name in set(row["warnings"]))
    if said:
        yield "warned of " + ", ".join(f"{name} ({n})" for name, n in said.most_common())
    for row in rows:
        if outcome(row) in (WRONG_SILENT, NO_END):
            yield f"seed {row['seed']}: {', '.join(row['wrong'])}"
        if row.get("stopped") == "max_seconds":
            yield f"seed {row['seed']}: out of time"


def between(values: list[float]) -> str:
    """Return the least and the largest of some values."""
    ends = (
        [f"{end:,.0f}" if end >= 10.0 else f"{end:.1f}" for end in (min(values), max(values))]
        if values
        else []
    )
    return " to ".join(dict.fromkeys(ends))


def report(trials: Iterable[Trial], rows: dict[tuple[str, str, int], Row]) -> str:
    """Return the table of what there is."""
    lines = []
    for trial in trials:
        mine = [row for key, row in rows.items() if key[:2] == (trial.name, trial.variant)]
        if mine:
            lines.append(cells(trial, mine))
    return "\n".join(table(COLUMNS, lines))


@click.command(help=__doc__.partition("\n")[0])
@click.option("--seeds", type=int, help="How many: 1, 2, ... By default 10, of kidscore 20.")
@click.option("--only", multiple=True, metavar="NAME", help="A trial, or a trial and its variant.")
@click.option("--seconds", default=180.0, show_default=True, help="Limit of each run.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("reproduced/trials.jsonl"),
    show_default=True,
)
@click.option("--only-report", is_flag=True, help="The table of what is in the file.")
def main(
    seeds: int | None, only: tuple[str, ...], seconds: float, out: Path, only_report: bool
) -> None:
    """Make the runs that are not in the file, and print the table."""
    out.parent.mkdir(parents=True, exist_ok=True)
    chosen = {(trial.name, trial.variant): trial for trial in TRIALS if named(trial, only)}
    if not chosen:
        raise click.UsageError(
            f"no trial is named like that; there are {sorted({t.name for t in TRIALS})}"
        )
    wanted = [
        (*key, seed)
        for key, trial in chosen.items()
        for seed in range(1, (seeds or trial.seeds) + 1)
    ]
    for name, variant, seed in [] if only_report else still_to_do(wanted, read_rows(out)):
        add_row(out, chosen[name, variant].row(seed, seconds))
        tell(read_rows(out)[name, variant, seed])
    kept = read_rows(out)
    click.echo(report(chosen.values(), {key: kept[key] for key in wanted if key in kept}))


def named(trial: Trial, only: tuple[str, ...]) -> bool:
    """Return whether a trial is asked for."""
    return not only or trial.name in only or f"{trial.name} {trial.variant}" in only


if __name__ == "__main__":
    main()
