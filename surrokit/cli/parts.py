"""Parts on the command line: ``surrokit plugins`` lists them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from surrokit.cli import options
from surrokit.output.console import plain_table, terminal
from surrokit.output.files import write_json
from surrokit.registry.catalogue import default_catalogue
from surrokit.registry.components import (
    COMPUTED,
    KINDS,
    REQUIRED,
    Component,
    Setting,
    without_markup,
)


@click.command(short_help="List the parts, or show the settings of some.")
@click.argument("names", nargs=-1)
@options.json_path(help="Also write JSON here.")
def plugins(names: tuple[str, ...], json_path: Path | None) -> None:
    """List every part: its kind, name and plugin; or show the settings of the parts NAMES.

    A kind before them, such as "sampler hmc", leaves out parts of other kinds with these names.
    """
    catalogue = default_catalogue()
    kind = next((kind for kind in KINDS if names[:1] == (kind,)), None)
    if len(names) == 1 and any(names[0] == name for _, name in catalogue.entries):
        kind = None  # a word alone that is both a kind and a name is the name
    parts = catalogue.find(names if kind is None else names[1:], kind)
    shows_settings = len(names) > (kind is not None)
    rows = part_rows(parts) if shows_settings or json_path is not None else []
    if shows_settings:
        _print_settings(rows)
    else:
        table = plain_table(("kind", "name", "plugin", "what it is"))
        for part in parts:
            table.add_row(part.kind, part.name, part.plugin, part.summary)
        terminal().print(table)
    if json_path is not None:
        write_json(json_path, rows)


def part_rows(parts: Iterable[Component]) -> list[dict[str, Any]]:
    """Return parts as plain data: kind, name, plugin, summary, settings, references.

    This imports the modules of the parts, which hold the settings.
    """
    return [
        {
            "kind": part.kind,
            "name": part.name,
            "plugin": part.plugin,
            "summary": part.summary,
            "settings": {name: _row(part, each) for name, each in part.settings().items()},
            "references": list(part.references),
        }
        for part in parts
    ]


def _row(component: Component, setting: Setting) -> dict[str, Any]:
    default: Any = setting.default
    takes, part = setting.type, component.parts.get(setting.name)
    if part is not None:
        default = part.default or f"the run's own {part.kind}"
        takes = f"a part of kind {part.kind}"
    elif default is REQUIRED:
        default = "required"
    elif default is COMPUTED:
        default = "from the others"
    elif not isinstance(default, bool | int | float | str | None):
        default = str(default)
    return {"default": default, "takes": takes, "help": setting.help}


def _print_settings(rows: Iterable[dict[str, Any]]) -> None:
    console = terminal()
    for row in rows:
        console.print(f"{row['kind']} {row['name']}, of {row['plugin']}: {row['summary']}")
        for reference in row["references"]:
            console.print(f"  {reference}")
        table = plain_table(("setting", "default", "takes", "what it is"))
        for name, setting in row["settings"].items():
            help_ = without_markup(setting["help"])
            table.add_row(name, str(setting["default"]), setting["takes"], help_)
        if row["settings"]:
            console.print(table)
        console.print()
