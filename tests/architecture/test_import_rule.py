"""Imports point one way: plugins to the core, and never to each other."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from surrokit import capabilities as can
from surrokit.catalogue import default_catalogue
from surrokit.exact_calls import CALL_KINDS
from surrokit.kinds import KINDS

PLUGGY_FILES = {"discovery.py", "hookspecs.py", "markers.py"}
LAZY_SKLEARN = "plugins/surrokit_problems/openml.py"


def imported(tree: ast.AST) -> Iterator[tuple[str, ast.stmt]]:
    """Yield the top-level name of every import, at whatever depth it stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name.partition(".")[0], node) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import in line {node.lineno}; write it in full"
            assert node.module is not None
            yield node.module.partition(".")[0], node


def imported_names(tree: ast.AST) -> set[str]:
    return {name for name, _ in imported(tree)}


def documentation(tree: ast.AST) -> set[int]:
    """Return the nodes that are docstrings, of modules, classes, functions and constants."""
    return {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def strings(tree: ast.AST) -> Iterator[str]:
    skip = documentation(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skip:
            yield node.value


def test_the_core_imports_no_plugin(core_file, tree_of):
    assert not {n for n in imported_names(tree_of(core_file)) if n.startswith("surrokit_")}


def test_the_core_names_no_plugin_package(core_file, tree_of, plugin_names):
    named = {p for text in strings(tree_of(core_file)) for p in plugin_names if p in text}
    assert not named


ORDINARY = {*KINDS, *can.KNOWN, *CALL_KINDS, "once", "gauss-newton"}
"""Names of parts that are words of the core's own."""


def test_the_core_asks_for_parts_by_purpose_and_not_by_name(root, tree_of):
    names = {entry.component.name for entry in default_catalogue()} - ORDINARY
    assert len(names) > 40
    files = [path for path in (root / "surrokit").rglob("*.py") if "testing" not in path.parts]
    named = {path.name: found for path in files if (found := names & set(strings(tree_of(path))))}
    assert named == {}


def test_plugins_do_not_import_each_other(plugin_file, tree_of, plugin_names):
    own = plugin_file.parent
    while own.name not in plugin_names:
        own = own.parent
    assert not imported_names(tree_of(plugin_file)) & (plugin_names - {own.name})


def test_plugins_use_no_private_name_of_the_core(plugin_file, tree_of):
    private = [
        f"{node.module}.{alias.name}"
        for node in ast.walk(tree_of(plugin_file))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("surrokit.")
        for alias in node.names
        if alias.name.startswith("_") or "._" in (node.module or "")
    ]
    assert not private


def test_pluggy_is_imported_in_three_files_only(source_file, tree_of, root):
    allowed = source_file.parent == root / "surrokit" and source_file.name in PLUGGY_FILES
    assert allowed or "pluggy" not in imported_names(tree_of(source_file))


def test_scikit_learn_is_imported_in_its_own_package_only(source_file, tree_of, root):
    path = str(source_file.relative_to(root))
    if path.startswith("plugins/surrokit_sklearn/") or path == LAZY_SKLEARN:
        return
    assert "sklearn" not in imported_names(tree_of(source_file))


def test_the_data_loader_imports_scikit_learn_inside_a_function(tree_of, root):
    tree = tree_of(root / LAZY_SKLEARN)
    at_once = [node for name, node in imported(tree) if name == "sklearn"]
    lazy = [
        node
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for name, node in imported(function)
        if name == "sklearn"
    ]
    assert at_once, f"nothing in {LAZY_SKLEARN} needs scikit-learn any more; drop the exception"
    assert at_once == lazy


@pytest.mark.parametrize(
    "code",
    [
        "import surrokit_hmc.hmc",
        "from surrokit_hmc import hmc",
        "def f():\n    import surrokit_hmc",
    ],
)
def test_the_walk_sees_an_import(code):
    assert imported_names(ast.parse(code)) == {"surrokit_hmc"}


def test_the_walk_sees_a_string_but_no_docstring():
    tree = ast.parse('"""surrokit_hmc"""\nname = "surrokit_gp"\n"""surrokit_x"""')
    assert list(strings(tree)) == ["surrokit_gp"]
