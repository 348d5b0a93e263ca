"""``surrokit reproduce``: tables and figures of the paper, or some of their cases."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from surrokit_paper.harness import Figure

FIGURES = {
    **{f"figure-{i}": f"surrokit_paper.figure_{i}:Figure{i}" for i in (1, 2, 3, 4)},
    "figure-5": "surrokit_paper.figure_4:Figure5",
    **{f"figure-{i}": f"surrokit_paper.figure_{i}:Figure{i}" for i in (6, 7, 8)},
    "table-1": "surrokit_paper.table_1:Table1",
}
"""Where the class of each is, in the order in which ``all`` does them."""


@click.command(short_help="Make tables and figures of the paper again.")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option(
    "--out",
    default="reproduced",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Write pictures, tables and finished cases to this folder.",
)
@click.option(
    "--quick", is_flag=True, help="Use smaller sizes, which take minutes instead of hours."
)
@click.option("--seed", default=1, show_default=True, help="Seed the random numbers.")
@click.option(
    "--data",
    envvar="SURROKIT_DATA",
    type=click.Path(path_type=Path, file_okay=False),
    help="Find data files in this folder, for figures that need some.",
)
@click.option(
    "--set",
    "items",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a setting, as repeats=3, of every figure that has it; repeatable.",
)
def reproduce(
    names: Sequence[str],
    out: Path,
    quick: bool,
    seed: int,
    data: Path | None,
    items: Sequence[str],
) -> None:
    """Make tables and figures of the paper again.

    NAME is table-1, one of figure-1 to figure-8, "all" for every one of them, or some cases of one,
    as table-1/bank or figure-1/gp/10.

    Finished cases are kept in the folder, so an interrupted command goes on where it stopped. What
    cannot be done is left out, and the rest goes on.
    """
    from surrokit.output.console import say
    from surrokit_paper import harness

    conditions = harness.Conditions(seed=seed, data=data)
    asked = _asked(names)
    figures = _figures(asked, quick, items)
    for name, figure in figures.items():
        harness.chosen(figure, asked[name])  # mistakes are told before anything is done
    done = broken = False
    for name, figure in figures.items():
        found = harness.reproduce(figure, out, conditions, asked[name])
        say(found.text(), nl=False)
        if found.rows:
            say(f"written: {', '.join(map(str, found.write(out)))}")
        say()
        if found.waiting:
            sys.exit(130)  # as shells have it after Ctrl-C
        done, broken = done or bool(found.rows), broken or found.broken
    sys.exit(int(broken or not done))


def _asked(names: Iterable[str]) -> dict[str, list[str]]:
    """Return figure to the beginnings of names of its cases."""
    from surrokit.errors import ConfigurationError

    asked: dict[str, list[str]] = {}
    for each in names:
        name, _, case = each.partition("/")
        if name != "all" and name not in FIGURES:
            raise ConfigurationError(
                f"there is no table or figure {name!r}; there are {', '.join(FIGURES)}, and all"
            )
        for one in FIGURES if name == "all" else (name,):
            asked.setdefault(one, []).append(case)
    return {name: asked[name] for name in FIGURES if name in asked}


def _figures(names: Iterable[str], quick: bool, items: Sequence[str]) -> dict[str, Figure]:
    """Return figures with those of the items KEY=VALUE that they have.

    A value that is no Python literal is text; one number or word stands for a tuple of one.
    """
    from surrokit.errors import ConfigurationError

    found: dict[str, Figure] = {}
    known: set[str] = set()
    given = dict(item.partition("=")[::2] for item in items)
    for name in names:
        module, _, cls = FIGURES[name].partition(":")
        figure = getattr(import_module(module), cls)
        fields = {field.name: field.default for field in figure.__attrs_attrs__}
        settings = dict(figure.quick) if quick else {}
        settings |= {key: _value(key, given[key], fields[key]) for key in given.keys() & fields}
        found[name] = figure(**settings)
        known |= set(fields)
    if odd := given.keys() - known:
        raise ConfigurationError(
            f"--set takes KEY=VALUE with one of {', '.join(sorted(known))}, got {odd.pop()!r}"
        )
    return found


def _value(key: str, text: str, default: Any) -> Any:
    from surrokit.errors import ConfigurationError

    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        value = text
    pair = value if isinstance(value, tuple) else (value,)
    like = default if isinstance(default, tuple) else (default,)
    alike = {*map(type, pair)} <= {type(like[0]), int if isinstance(like[0], float) else None}
    several = isinstance(value, tuple) and not isinstance(default, tuple)
    if default is not None and (several or not alike):
        raise ConfigurationError(f"{key} must be like {default!r}, got {value!r}")
    return pair if isinstance(default, tuple) else value
