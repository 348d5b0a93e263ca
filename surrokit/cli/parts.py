"""Tables of parts for the command line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from surrokit.output.console import plain_table, terminal
from surrokit.registry.catalogue import default_catalogue
from surrokit.registry.docstrings import without_markup
from surrokit.registry.kinds import KINDS, Kind
from surrokit.registry.settings import COMPUTED, REQUIRED, Setting

if TYPE_CHECKING:
    from surrokit.registry.catalogue import Entry


def kind_and_names(words: tuple[str, ...]) -> tuple[Kind | None, tuple[str, ...]]:
    """Return the kind that stands before names, if one does, and the names.

    A word alone that is both a kind and a name is the name.
    """
    kind = next((kind for kind in KINDS if words[:1] == (kind,)), None)
    named = {name for _, name in default_catalogue().entries}
    if kind is None or (len(words) == 1 and words[0] in named):
        return None, words
    return kind, words[1:]


def part_rows(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    """Return parts as plain data: kind, name, plugin, summary, settings, references.

    This imports the modules of the parts, which hold the settings.

    Raises
    ------
    PluginError
        If a part cannot be imported.
    """
    return [
        {
            "kind": entry.component.kind,
            "name": entry.component.name,
            "plugin": entry.plugin,
            "summary": entry.component.summary,
            "settings": {name: _row(entry, each) for name, each in entry.settings().items()},
            "references": list(entry.component.references),
        }
        for entry in entries
    ]


def _row(entry: Entry, setting: Setting) -> dict[str, Any]:
    part = entry.component.parts.get(setting.name)
    if part is None:
        default, takes = _plain(setting.default), setting.limits or setting.type
    else:
        default = part.default or f"the run's own {part.kind}"
        takes = f"a part of kind {part.kind}"
    return {"default": default, "takes": takes, "help": setting.help}


def _plain(default: Any) -> Any:
    if default is REQUIRED:
        return "required"
    if default is COMPUTED:
        return "from the others"
    return default if isinstance(default, bool | int | float | str | None) else str(default)


def print_parts(entries: Iterable[Entry]) -> None:
    """Print a table of parts, without importing their modules."""
    table = plain_table(("kind", "name", "plugin", "what it is"))
    for entry in entries:
        part = entry.component
        table.add_row(part.kind, part.name, entry.plugin, part.summary)
    terminal().print(table)


def print_settings(rows: Iterable[dict[str, Any]]) -> None:
    """Print parts one by one, with a table of the settings of each.

    Parameters
    ----------
    rows
        Parts from :func:`part_rows`.
    """
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
