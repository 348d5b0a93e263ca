"""The rooms of the source, in the order in which they import one another, read from the code."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[2]


def rooms() -> dict[str, list[Path]]:
    """Return each room of the core, a folder or a file beside folders, with its files."""
    found: dict[str, list[Path]] = {}
    for path in sorted((ROOT / "surrokit").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        if parts != ("surrokit", "__init__") and parts != ("surrokit", "__main__"):
            found.setdefault(".".join(parts[:2]), []).append(path)
    return found


def ordered() -> list[str]:
    """Return the rooms, each behind those that it imports."""
    found = rooms()
    graph = {room: _imported(files, set(found)) - {room} for room, files in found.items()}
    sorter = TopologicalSorter(graph)
    sorter.prepare()
    names: list[str] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        names += ready
        sorter.done(*ready)
    return names


def first_line(path: Path) -> str:
    """Return the first line of a module's docstring."""
    docstring = ast.get_docstring(ast.parse(path.read_text("utf-8")))
    return (docstring or "").partition("\n")[0]


def files_of(room: str) -> list[Path]:
    """Return the files of a room, without the docstring that a folder has."""
    return [path for path in rooms()[room] if path.name != "__init__.py"]


def describe(room: str) -> str:
    """Return a room's own words for what is in it: of its folder, or of its file."""
    start = [path for path in rooms()[room] if path.name == "__init__.py"]
    return first_line((start or rooms()[room])[0])


def plugins() -> dict[str, str]:
    """Return each plugin's package, with its own words for what is in it."""
    folders = sorted(path for path in (ROOT / "plugins").glob("surrokit_*") if path.is_dir())
    return {path.name: first_line(path / "__init__.py") for path in folders}


def _imported(files: list[Path], names: set[str]) -> set[str]:
    found: set[str] = set()
    for path in files:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                modules = [str(node.module), *(f"{node.module}.{a.name}" for a in node.names)]
            else:
                continue
            found |= {".".join(name.split(".")[:2]) for name in modules} & names
    return found
