"""Files import one another one way, room by room.

A room is a folder of files. A file that stands beside folders is a room by itself. Imports for
types alone, and imports inside functions, count like all others.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

import pytest
from trees import walked

FACES = {f"surrokit{folder}/__init__.py" for folder in ("", "/testing")}

Graph = Mapping[str, set[str]]


def module_name(path: str) -> str:
    """Return how a file is imported; a package is called by its folder."""
    parts = PurePosixPath(path).with_suffix("").parts
    parts = parts[1:] if parts[0] == "plugins" else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(tree: ast.AST, modules: set[str]) -> Iterator[str]:
    """Yield every module of ours that a file imports, at whatever depth and for whatever end."""
    for node in walked(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                if inner in modules or node.module in modules:
                    yield inner if inner in modules else str(node.module)


def graph_of(trees: Mapping[str, ast.AST]) -> dict[str, set[str]]:
    named = {module_name(path): tree for path, tree in trees.items()}
    names = set(named)
    return {name: set(imported(tree, names)) - {name} for name, tree in named.items()}


def rooms_of(paths: Mapping[str, ast.AST]) -> dict[str, str]:
    """Return module to room."""
    folders = {str(PurePosixPath(path).parent) for path in paths}
    with_folders = {str(PurePosixPath(folder).parent) for folder in folders}
    return {
        module_name(path): path if folder in with_folders else folder
        for path in paths
        for folder in [str(PurePosixPath(path).parent)]
    }


def between(graph: Graph, rooms: Mapping[str, str]) -> dict[str, set[str]]:
    """Return the graph of rooms that a graph of modules makes."""
    made: dict[str, set[str]] = {room: set() for room in rooms.values()}
    for module, others in graph.items():
        made[rooms[module]] |= {rooms[other] for other in others} - {rooms[module]}
    return made


def circles(graph: Graph) -> list[list[str]]:
    """Return the groups in which everything leads to everything else."""
    reached = {node: _reached(graph, node) for node in graph}
    groups = {
        tuple(sorted(other for other in reached[node] if node in reached[other])) for node in graph
    }
    return [list(group) for group in sorted(groups) if group]


def _reached(graph: Graph, start: str) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        new = graph[waiting.pop()] - found
        found |= new
        waiting += new
    return found


@pytest.fixture(scope="module")
def graph(source_trees) -> Graph:
    """Module to the modules that it imports."""
    return graph_of(source_trees)


def test_no_files_import_one_another_in_a_circle(graph):
    assert circles(graph) == []


def test_rooms_import_one_way(graph, source_trees):
    assert circles(between(graph, rooms_of(source_trees))) == []


def test_a_room_is_entered_file_by_file(core_trees):
    """Importing one file of a room costs that file alone: its ``__init__`` is a docstring."""
    entries = {path: tree for path, tree in core_trees.items() if path.endswith("/__init__.py")}
    busy = {path for path, tree in entries.items() if len(tree.body) > 1}
    assert busy == FACES


def test_faces_are_for_others(graph):
    """Our own files import from the rooms, which say more and cost less."""
    faces = {"surrokit.plugin"}
    assert [name for name, others in graph.items() if others & faces] == []


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"a": {"b"}, "b": {"c"}, "c": set()}, []),
        ({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}, [["a", "b", "c"]]),
        ({"a": {"b"}, "b": {"a"}, "c": {"d"}, "d": {"c"}}, [["a", "b"], ["c", "d"]]),
    ],
)
def test_a_circle_is_found(given, found):
    assert circles(given) == found
