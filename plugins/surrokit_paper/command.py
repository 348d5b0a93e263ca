"""``surrokit reproduce``: one table or figure of the paper, or all of them."""

from __future__ import annotations

import sys
from pathlib import Path

import click

ALL = "all"
NAMES = (*(f"figure-{i}" for i in range(1, 9)), "table-1")
"""Of all tables and figures, whose modules are imported when one is made."""


@click.command(short_help="Make a table or figure of the paper again.")
@click.argument("name", type=click.Choice([*NAMES, ALL]), metavar="NAME")
@click.option(
    "--out",
    default="reproduced",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Write picture, figures and finished rows to this folder.",
)
@click.option(
    "--quick", is_flag=True, help="Use smaller sizes, which take minutes instead of hours."
)
@click.option("--seed", default=1, show_default=True, help="Seed the random numbers.")
@click.option(
    "--only",
    multiple=True,
    metavar="ROW",
    help='Do this row, or those that begin so; with "all", EXPERIMENT or EXPERIMENT/ROW; '
    "repeatable.  [default: all]",
)
@click.option("--fresh", is_flag=True, help="Do finished rows again.")
@click.option(
    "--data",
    envvar="SURROKIT_DATA",
    type=click.Path(path_type=Path),
    help="Find data files in this folder, for experiments that need some.",
)
@click.option(
    "--set",
    "items",
    multiple=True,
    metavar="KEY=VALUE",
    help='Set a setting of the experiment, as repeats=3; with "all", of every experiment that has '
    "it; repeatable.",
)
@click.option("--settings", "listed", is_flag=True, help="List the settings, and do nothing.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Also write JSON here.")
def reproduce(
    name: str,
    out: Path,
    quick: bool,
    seed: int,
    only: tuple[str, ...],
    fresh: bool,
    data: Path | None,
    items: tuple[str, ...],
    listed: bool,
    json_path: Path | None,
) -> None:
    """Make a table or figure of the paper again.

    NAME is table-1, one of figure-1 to figure-8, or "all" for every one of them.

    Finished rows are kept in the folder, so an interrupted command goes on where it stopped. What
    cannot be done is left out, and the rest goes on.
    """
    from surrokit.errors import ConfigurationError
    from surrokit.output.files import write_json
    from surrokit_paper.harness import Conditions, Work
    from surrokit_paper.reproduction import (
        EXPERIMENTS,
        Series,
        check_folders,
        choose,
        list_settings,
        make,
    )

    chosen = choose(only if name == ALL else [f"{name}/{row}" for row in only or ("",)])
    classes = {each: EXPERIMENTS[each] for each in chosen}
    if listed:
        list_settings(classes.values())
        return
    check_folders(data, json_path)
    conditions = Conditions(seed=seed, data=data)
    made = make(classes, items, quick=quick)
    try:
        works = [Work(made[n], out, conditions, only=chosen[n], fresh=fresh) for n in chosen]
    except OSError as error:
        raise ConfigurationError(f"{error}; give another folder with --out") from error
    series = Series(works, out)
    series.do()
    series.summarize(together=name == ALL)
    if json_path is not None:
        figures = series.to_dict()
        write_json(json_path, figures if name == ALL else figures["experiments"].get(name))
    if series.status:
        sys.exit(series.status)
