"""Pages that are made from the code when the documentation is built, so that none goes stale.

A page holds a placeholder, an HTML comment such as ``<!-- generated: parts -->``, and the text
takes its place before the page is parsed.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

PLACEHOLDER = re.compile(r"<!-- generated: ([a-z]+)(?: ([a-z]+))? -->")


def parts(_: str | None) -> str:
    """Return every part of the built-in plugins by kind, with a table of its settings."""
    from surrokit.cli.parts import part_rows
    from surrokit.registry.catalogue import default_catalogue
    from surrokit.registry.components import KINDS

    built_in = [entry for entry in default_catalogue() if entry.plugin.startswith("surrokit[")]
    rows = part_rows(built_in)
    text = []
    for kind in KINDS:
        text += [f"## {kind.capitalize()}", ""]
        text += ["\n".join(_part(row)) for row in rows if row["kind"] == kind]
    return "\n".join(text)


def _part(row: dict[str, Any]) -> list[str]:
    """Return the lines of one part."""
    sources = "; ".join([*row["references"], f"`{row['plugin']}`"])
    lines = [f"### `{row['name']}`", "", f"{_sentence(row['summary'])} From {sources}.", ""]
    if row["settings"]:
        lines += ["| setting | default | takes | what it is |", "|---|---|---|---|"]
    for name, each in row["settings"].items():
        cells = (f"`{name}`", f"`{each['default']}`", _cell(each["takes"]), _cell(each["help"]))
        lines.append("| " + " | ".join(cells) + " |")
    return [*lines, ""]


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:].rstrip('.')}."


def _cell(text: str) -> str:
    """Return words of a docstring as a cell of a table in Markdown."""
    from surrokit.registry.components import without_markup

    pieces = text.split("``")
    pieces[::2] = [re.sub(r"([*<])", r"\\\1", without_markup(piece)) for piece in pieces[::2]]
    return "`".join(pieces).replace("|", "\\|")


def hooks(group: str | None) -> str:
    """Return a heading with the exact argument names, and the docstring, of each hook."""
    from surrokit.registry import hooks as hookspecs

    registers = group == "registration"
    text = []
    for name, function in vars(hookspecs).items():
        if not name.startswith("surrokit_"):
            continue
        if (name == "surrokit_components") == registers:
            arguments = ", ".join(inspect.signature(function).parameters)
            text += [f"### `{name}({arguments})`", "", "```{eval-rst}"]
            text += [f".. autofunction:: surrokit.registry.hooks.{name}", "```", ""]
    return "\n".join(text)


def options(command: str | None) -> str:
    """Return what ``surrokit COMMAND --help`` prints."""
    from click.testing import CliRunner

    from surrokit.cli.main import cli

    arguments = ["--help"] if command is None else [command, "--help"]
    result = CliRunner().invoke(cli, arguments, prog_name="surrokit")
    assert result.exit_code == 0, result.output
    return f"```console\n$ {' '.join(['surrokit', *arguments])}\n{result.output.rstrip()}\n```"


def checks(_: str | None) -> str:
    """Return a table of the conformance checks of each kind, each with its first docstring line."""
    from surrokit.testing.running import CHECKS

    text = []
    for kind, found in CHECKS.items():
        text += [f"### {kind.capitalize()}", "", "| check | level | what it demands |"]
        text.append("|---|---|---|")
        for check in found:
            first = inspect.getdoc(check.function).partition("\n\n")[0].replace("\n", " ")
            text.append(f"| `{check.name}` | {check.level} | {first.replace('|', chr(92) + '|')} |")
        text.append("")
    return "\n".join(text)


def path(_: str | None) -> str:
    """Return a picture of the calls from ``sample`` to the user's function in a tiny run."""
    from call_path import draw, trace_path

    return f"```{{raw}} html\n{draw(trace_path(sampler='hmc'))}\n```"


def house(_: str | None) -> str:
    """Return a table of the rooms of the core, in the order of their imports, and of plugins."""
    from rooms import describe, files_of, ordered, plugins

    text = ["| room | what is in it | files |", "|---|---|---|"]
    for room in ordered():
        files = [path.stem for path in files_of(room)]
        inside = (
            "" if files == [room.partition(".")[2]] else ", ".join(f"`{each}`" for each in files)
        )
        text.append(f"| `{room}` | {_cell(describe(room))} | {inside} |")
    text += ["", "| plugin | what is in it |", "|---|---|"]
    text += [f"| `{name}` | {_cell(words)} |" for name, words in plugins().items()]
    return "\n".join(text)


GENERATORS: dict[str, Callable[[str | None], str]] = {
    "parts": parts,
    "hooks": hooks,
    "options": options,
    "checks": checks,
    "path": path,
    "house": house,
}


def _generated(match: re.Match[str]) -> str:
    return GENERATORS[match[1]](match[2])


def _read(app: Any, docname: str, source: list[str]) -> None:
    if PLACEHOLDER.search(source[0]):
        source[0] = PLACEHOLDER.sub(_generated, source[0])
        app.env.metadata[docname]["generated"] = True


def _outdated(app: Any, env: Any, added: set, changed: set, removed: set) -> list[str]:  # noqa: ARG001
    """Have pages with generated text read again in every build."""
    return [name for name, data in env.metadata.items() if data.get("generated")]


def _plain(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:  # noqa: ARG001
    """Keep the bars of absolute values, and types in words, from being read as markup."""
    for i, line in enumerate(lines):
        pieces = line.split("``")
        pieces[::2] = [piece.replace("|", r"\|") for piece in pieces[::2]]
        text = "``".join(pieces)
        lines[i] = re.sub(r"^(\s*:type [^:]+: )([^*].*)$", r"\1*\2*", text)


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("source-read", _read)
    app.connect("env-get-outdated", _outdated)
    app.connect("autodoc-process-docstring", _plain, priority=900)  # after napoleon
    return {"parallel_read_safe": True, "parallel_write_safe": True}
