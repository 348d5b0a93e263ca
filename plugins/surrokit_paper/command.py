"""``surrokit reproduce``: tables and figures of the paper, or some of their cases.

A figure is a module with a ``TITLE``, settings ``FULL`` and those that are smaller in ``QUICK``,
and functions: ``cases`` of the settings, ``run`` of a case, ``report`` and ``draw`` of finished
rows. The values of a case, joined by slashes, are its name. A row is a case with its result, plain
data; rows are kept in a file, a line each, so that an interrupted command goes on.
"""

from __future__ import annotations

import ast
import hashlib
import json
import sys
import textwrap
import traceback
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

FIGURES = {
    **{f"figure-{i}": f"surrokit_paper.figure_{i}" for i in range(1, 9)},
    "table-1": "surrokit_paper.table_1",
}
"""The module of each, in the order in which ``all`` does them."""


@click.command(short_help="Make tables and figures of the paper again.")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option(
    "--out",
    default="reproduced",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Write pictures, tables and finished cases to this folder.",
)
@click.option("--full", is_flag=True, help="Take the paper's sizes, which may need hours.")
@click.option(
    "--seed",
    default=1,
    show_default=True,
    type=click.IntRange(min=0),
    help="Seed the random numbers.",
)
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
    names: Sequence[str], out: Path, full: bool, seed: int, data: Path | None, items: Sequence[str]
) -> None:
    """Make tables and figures of the paper again, in small sizes that take minutes, or in full.

    NAME is table-1, one of figure-1 to figure-8, "all" for every one of them, or some cases of one,
    as table-1/bank or figure-1/gp/10.

    Finished cases are kept in the folder, so an interrupted command goes on where it stopped. What
    cannot be done is left out, and the rest goes on.
    """
    from surrokit.errors import ConfigurationError
    from surrokit.output.console import say

    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"{error}; give another folder with --out") from error
    asked = _asked(names)
    sizes = _sizes(asked, full, items)
    chosen = {name: _chosen(name, sizes[name], asked[name]) for name in asked}
    done = broken = False
    for name, cases in chosen.items():
        figure, found = import_module(FIGURES[name]), SimpleNamespace(seed=seed, data=data)
        vars(found).update(sizes[name])
        rows, notes, status = _run(name, figure, found, cases, out)
        if rows:
            _write(out / name, figure, rows, found, notes)
        else:
            say("\n".join([figure.TITLE, *notes]))
        say()
        if status == "interrupted":
            sys.exit(130)  # as shells have it after Ctrl-C
        done, broken = done or bool(rows), broken or status == "broken"
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


def _sizes(names: Iterable[str], full: bool, items: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the settings of each figure, with those of the items KEY=VALUE that it has."""
    from surrokit.errors import ConfigurationError

    given = dict(item.partition("=")[::2] for item in items)
    found, known = dict[str, dict[str, Any]](), set[str]()
    for name in names:
        figure = import_module(FIGURES[name])
        sizes = figure.FULL if full else {**figure.FULL, **figure.QUICK}
        set_ = {key: _value(key, given[key], figure.FULL[key]) for key in given if key in sizes}
        found[name], known = {**sizes, **set_}, known | sizes.keys()
    if odd := given.keys() - known:
        raise ConfigurationError(
            f"--set takes KEY=VALUE with one of {', '.join(sorted(known))}, got {odd.pop()!r}"
        )
    return found


def _value(key: str, text: str, default: Any) -> Any:
    """Return a literal of Python or text; one number stands for a tuple of one."""
    from surrokit.errors import ConfigurationError

    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        value = text
    if isinstance(default, tuple) and not isinstance(value, tuple):
        value = (value,)
    one, like = (each[0] if isinstance(each, tuple) else each for each in (value, default))
    alike = isinstance(value, tuple) == isinstance(default, tuple) and (
        type(one) is type(like) or (isinstance(like, float) and type(one) is int)
    )
    if default is not None and not alike:
        raise ConfigurationError(f"{key} must be like {default!r}, got {value!r}")
    return value


def _chosen(name: str, sizes: Mapping[str, Any], starts: Iterable[str]) -> dict[str, bool]:
    """Return whether each case is asked for, by whole first words of its name; "" asks for all."""
    from surrokit.errors import ConfigurationError

    cases = import_module(FIGURES[name]).cases(SimpleNamespace(**sizes))
    chosen = dict.fromkeys(("/".join(map(str, case.values())) for case in cases), False)
    for start in starts:
        found = [case for case in chosen if not start or f"{case}/".startswith(f"{start}/")]
        if not found:
            first = dict.fromkeys(case.partition("/")[0] for case in chosen)
            raise ConfigurationError(
                f"{name} has no case {start!r}; its cases are such as {next(iter(chosen))}, and "
                f"begin with {', '.join(first)}"
            )
        chosen |= dict.fromkeys(found, True)
    return chosen


def _run(
    name: str, figure: Any, sizes: SimpleNamespace, chosen: Mapping[str, bool], out: Path
) -> tuple[list[dict[str, Any]], list[str], str]:
    """Do the cases that are asked for and not kept; return all rows, notes and a status."""
    from surrokit.errors import SurrokitError
    from surrokit.output.console import say
    from surrokit.output.files import plain

    settings = plain({key: each for key, each in vars(sizes).items() if key != "data"})
    versions = [version(package) for package in ("surrokit", "numpy", "scipy")]
    mark = hashlib.sha256(json.dumps([name, settings, versions]).encode()).hexdigest()[:16]
    path = out / f"{name}.rows.jsonl"
    kept, reasons, status = _read(path, mark), dict[str, list[str]](), ""
    try:
        for case, (title, asked) in zip(figure.cases(sizes), chosen.items(), strict=True):
            if title in kept or not asked:
                continue
            if sys.stderr.isatty():
                say(f"{name}/{title}", err=True)
            try:
                kept[title] = plain({**case, **figure.run(case, sizes)}, title)
            except SurrokitError as error:  # a file or a package is missing
                reasons.setdefault(str(error), []).append(title)
                continue
            except Exception as error:
                say(f"Error in {name}/{title}: {traceback.format_exc()}", err=True)
                ended = f"it ended in {type(error).__name__}: {error}"
                reasons.setdefault(ended, []).append(title)
                status = "broken"
                continue
            with path.open("a", encoding="utf-8") as file:
                # a line that was cut short ends here
                line = {"mark": mark, "case": title, "row": kept[title]}
                file.write("\n" + json.dumps(line, allow_nan=False))
    except KeyboardInterrupt:
        status = "interrupted"
    notes = _notes(name, chosen, kept, reasons)
    return [kept[title] for title in chosen if title in kept], notes, status


def _notes(
    name: str,
    chosen: Mapping[str, bool],
    kept: Mapping[str, Any],
    reasons: Mapping[str, Sequence[str]],
) -> list[str]:
    """Return what is missing and why, and where the documentation is."""
    ended = {each for cases in reasons.values() for each in cases} | kept.keys()
    left = [title for title in chosen if title not in ended]
    notes = [f"not done: {_listed(cases)}; {why}" for why, cases in reasons.items()]
    if waiting := [title for title in left if chosen[title]]:
        notes.append(f"still to be done: {_listed(waiting)}; the same command goes on.")
    if others := [title for title in left if not chosen[title]]:
        notes.append(f"not asked for: {_listed(others)}.")
    return [*notes, f"what is run, and what differs from the paper: docs/experiments.md, {name}."]


def _read(path: Path, mark: str) -> dict[str, dict[str, Any]]:
    kept = {}
    for line in path.read_text("utf-8", "replace").splitlines() if path.exists() else ():
        try:
            record = json.loads(line)
            if record["mark"] == mark:
                kept[record["case"]] = dict(record["row"])
        except (ValueError, KeyError, TypeError):
            continue
    return kept


def _listed(names: Sequence[str]) -> str:
    if len(names) <= 3:
        return ", ".join(names)
    return f"{names[0]}, {names[1]} and {len(names) - 2} more"


def _write(
    stem: Path, figure: Any, rows: list[dict[str, Any]], sizes: Any, notes: Iterable[str]
) -> None:
    """Print tables, the paper's figures beside ours and notes; write them, and pictures."""
    from surrokit.output.console import say
    from surrokit.output.files import write_pictures

    tables, printed = figure.report(rows, sizes)
    titles = ("figure", "in the paper", "here")
    beside = [dict(zip(titles, each, strict=True)) for each in printed]
    text = [figure.TITLE]
    for title, lines in [*tables.items(), ("", beside)]:
        text += ["", f"{title}:"] if title and lines else [""] if lines else []
        text += _table(lines)
    text.append("")
    wrapper = textwrap.TextWrapper(
        100, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
    for note in notes:
        text += wrapper.wrap(f"Note: {note}")
    say("\n".join(text))
    paths = [stem.with_name(f"{stem.name}.txt")]
    paths[0].write_text("\n".join(text) + "\n", encoding="utf-8")
    try:
        paths += write_pictures(figure.draw(rows, sizes), stem)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        say("Note: pictures need Matplotlib; run python -m pip install 'surrokit[figures]'")
    say(f"written: {', '.join(map(str, paths))}")


def _table(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    if not lines:
        return []
    cells = [list(lines[0]), *([_cell(value) for value in line.values()] for line in lines)]
    first, *others = [max(map(len, column)) for column in zip(*cells, strict=True)]
    text = []
    for head, *rest in cells:
        figures = [cell.rjust(width) for cell, width in zip(rest, others, strict=True)]
        text.append("  ".join([head.ljust(first), *figures]).rstrip())
    return text


def _cell(value: Any) -> str:
    if value is None or value != value:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
