"""Imports point one way: plugins to the core, and never to each other."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from trees import walked

from surrokit import capabilities as can
from surrokit.capabilities import CALL_KINDS
from surrokit.registry.catalogue import default_catalogue
from surrokit.registry.components import KINDS

PLUGGY_FILES = {
    "surrokit/registry/discovery.py",
    "surrokit/registry/hooks.py",
}
SKLEARN = "plugins/surrokit_sklearn/"
LAZY_SKLEARN = (
    "plugins/surrokit_problems/real_data.py",
    "plugins/surrokit_learning/survey.py",
)


def imported(tree: ast.AST) -> Iterator[tuple[str, ast.stmt]]:
    """Yield the top-level name of every import, at whatever depth it stands."""
    for node in walked(tree):
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
        for node in walked(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def strings(tree: ast.AST) -> Iterator[str]:
    skip = documentation(tree)
    for node in walked(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skip:
            yield node.value


def test_the_core_imports_no_plugin(core_trees):
    offenders = {
        path: plugins
        for path, tree in core_trees.items()
        if (plugins := {name for name in imported_names(tree) if name.startswith("surrokit_")})
    }
    assert offenders == {}


def test_the_core_names_no_plugin_package(core_trees, plugin_names):
    offenders = {
        path: named
        for path, tree in core_trees.items()
        if (named := {name for text in strings(tree) for name in plugin_names if name in text})
    }
    assert offenders == {}


ORDINARY = {
    *KINDS,
    *can.KNOWN,
    *CALL_KINDS,
    "once",
    "gauss-newton",
    "weights",
    "logistic",
    "identity",
    "metropolis",  # a function of the core
    "jax",  # a library
}
"""Names of parts that are words of the core's own."""


def test_the_core_asks_for_parts_by_purpose_and_not_by_name(core_trees):
    names = {entry.name for entry in default_catalogue()} - ORDINARY
    assert len(names) > 40
    offenders = {
        path: found
        for path, tree in core_trees.items()
        if "testing" not in path.split("/") and (found := names & set(strings(tree)))
    }
    assert offenders == {}


def test_plugins_do_not_import_each_other(plugin_trees, plugin_names):
    offenders = {
        path: others
        for path, tree in plugin_trees.items()
        if (others := imported_names(tree) & (plugin_names - {path.split("/")[1]}))
    }
    assert offenders == {}


def test_plugins_use_no_private_name_of_the_core(plugin_trees):
    offenders = [
        f"{path}: {node.module}.{alias.name}"
        for path, tree in plugin_trees.items()
        for node in walked(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("surrokit.")
        for alias in node.names
        if alias.name.startswith("_") or "._" in (node.module or "")
    ]
    assert offenders == []


def test_pluggy_is_imported_in_two_files_only(source_trees):
    importing = {path for path, tree in source_trees.items() if "pluggy" in imported_names(tree)}
    assert importing == PLUGGY_FILES


def test_scikit_learn_is_imported_in_its_own_package_only(source_trees):
    offenders = [
        path
        for path, tree in source_trees.items()
        if not path.startswith(SKLEARN) and path not in LAZY_SKLEARN
        if "sklearn" in imported_names(tree)
    ]
    assert offenders == []


@pytest.mark.parametrize("path", LAZY_SKLEARN)
def test_others_import_scikit_learn_inside_a_function(plugin_trees, path):
    tree = plugin_trees[path]
    at_once = [node for name, node in imported(tree) if name == "sklearn"]
    lazy = [
        node
        for function in walked(tree)
        if isinstance(function, ast.FunctionDef)
        for name, node in imported(function)
        if name == "sklearn"
    ]
    assert at_once, f"nothing in {path} needs scikit-learn any more; drop the exception"
    assert at_once == lazy
