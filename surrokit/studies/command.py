"""``surrokit study``, ``ask`` and ``tell``: models that no program can call, by way of tables."""

from __future__ import annotations

import csv
import io
import itertools
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from surrokit.coordinates.parameters import Declaration
from surrokit.errors import ConfigurationError
from surrokit.output.console import say
from surrokit.types import FloatArray

if TYPE_CHECKING:
    from surrokit.studies.study import Study

_COLUMNS = {"gradients": "gradient", "outputs": "outputs"}
_FILE = click.argument("file", type=click.Path(path_type=Path))


@click.command("study", short_help="Begin a study of a model that cannot be called.")
@_FILE
@click.argument("parameters", nargs=-1, required=True)
@click.option("--gradients", is_flag=True, help="Ask for the gradient of each log density too.")
@click.option(
    "--max-calls", type=int, default=None, help="Ask for so many evaluations of the model at most."
)
@click.option(
    "--seed", type=int, default=None, help="Seed the random numbers, for reproducible draws."
)
def study_command(file: Path, parameters: tuple[str, ...], **settings: Any) -> None:
    """Begin a study: FILE keeps it, and each of PARAMETERS is a number of the model.

    A parameter is a name, perhaps with bounds: x, rate=0: or share=0:1.
    """
    from surrokit.studies.study import study

    if file.exists():
        raise ConfigurationError(f"{file} is there already; ask and tell it, or give another file")
    _say(study(file, parameters=dict(map(_declared, parameters)), **settings))


def _declared(text: str) -> tuple[str, Declaration]:
    name, _, bounds = text.partition("=")
    parts = bounds.split(":") if bounds else ["", ""]
    try:
        low, high = (float(part) if part else None for part in parts)
    except ValueError:
        raise ConfigurationError(
            f"{text!r} is no parameter; write x, or rate=0: or share=0:1 with bounds"
        ) from None
    return name, (low, high)


@click.command("ask", short_help="Print positions at which a study wants results.")
@_FILE
@click.option(
    "--n",
    type=int,
    default=None,
    help="Print so many positions.  [default: all that are wanted by now]",
)
def ask_command(file: Path, n: int | None) -> None:
    """Print a table of positions at which the model is to be evaluated."""
    study = _open(file)
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(study.description.parameters.labels)
    writer.writerows(study.ask(n).tolist())
    # the names of columns are asked for again: they are changed for a screen alone
    if sys.stdout.isatty():
        say(table.getvalue(), nl=False)
    else:
        sys.stdout.write(table.getvalue())
    _say(study, err=True)


@click.command("tell", short_help="Read results for a study from a table.")
@_FILE
@click.argument("table", type=click.Path(path_type=Path))
@click.option(
    "--quantity",
    "named",
    metavar="NAME",
    multiple=True,
    help="Read a quantity besides, from the column NAME, or NAME[0], NAME[1], ...",
)
def tell_command(file: Path, table: Path, named: tuple[str, ...]) -> None:
    """Read a TABLE of positions and results: a column for each number.

    Results are in the column log_density, and in gradient[0], gradient[1], ... where the study asks
    for gradients, or in outputs[0], outputs[1], ... where it has data. A field that is empty or nan
    means that the model has failed.
    """
    study = _open(file)
    labels, shapes = study.description.parameters.labels, study.description.shapes
    names = {
        name: [f"{_COLUMNS[name]}[{i}]" for i in range(int(np.prod(shape)))] if shape else [name]
        for name, shape in shapes.items()
    }
    rows = _read(table)
    for name in named:  # by the places of an array, or else one number
        places = (f"{name}[{i}]" for i in itertools.count())
        names[name] = [*itertools.takewhile(rows[0].__contains__, places)] or [name]
    numbers = _numbers(table, rows, [*labels, *(each for part in names.values() for each in part)])
    ends = np.cumsum([len(labels), *map(len, names.values())])[:-1]
    positions, *parts = np.split(numbers, ends, axis=1)
    found = {
        name: part[:, 0] if names[name] == [name] else part
        for name, part in zip(names, parts, strict=True)
    }
    quantities = {name: found.pop(name) for name in named}
    study.tell(positions, **found, quantities=quantities or None)
    _say(study)


COMMANDS = (study_command, ask_command, tell_command)


def _open(file: Path) -> Study:
    from surrokit.studies.study import study

    if not file.exists():
        raise ConfigurationError(f"there is no {file}; begin it with: surrokit study {file} x y")
    return study(file)


def _say(study: Study, *, err: bool = False) -> None:
    left = len(study.ask())
    reported = (
        "the study is done; look at it with: surrokit show" if study.done else f"{left} wanted"
    )
    say(f"{study.path}: {reported}", err=err)


def _read(table: Path) -> list[list[str]]:
    """Return the fields of a table, the names of columns first."""
    try:
        with table.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.reader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigurationError(f"cannot read {table}: {error}; give a table as .csv") from error
    if not rows or any(len(row) != len(rows[0]) for row in rows):
        raise ConfigurationError(
            f"{table} is no table: its first row must name the columns, and each row must have a "
            "field for each of them"
        )
    return [[name.strip() for name in rows[0]], *rows[1:]]


def _numbers(table: Path, rows: list[list[str]], names: list[str]) -> FloatArray:
    """Return columns of a table as numbers, shape (n, len(names))."""
    head = rows[0]
    if missing := [name for name in names if name not in head]:
        raise ConfigurationError(
            f"{table} has no column {', '.join(missing)}; it has {', '.join(head)}"
        )
    found = np.empty((len(rows) - 1, len(names)))
    for j, name in enumerate(names):
        for i, row in enumerate(rows[1:]):
            field = row[head.index(name)]
            try:
                found[i, j] = float(field.strip() or "nan")
            except ValueError:
                raise ConfigurationError(
                    f"{field!r} in column {name} of {table} is no number; write nan where the "
                    "model failed"
                ) from None
    return found
