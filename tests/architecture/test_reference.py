"""What built-in plugins use of the core is public: a stranger finds all of it in the reference."""

from __future__ import annotations

import ast
import re

import pytest
from trees import walked

import surrokit

DIRECTIVE = re.compile(r"^\.\. auto(\w+):: ([\w.]+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def documented(root):
    pages = (root / "docs" / "reference").rglob("*.md")
    return {name for page in pages for _, name in DIRECTIVE.findall(page.read_text("utf-8"))}


def imports_of_the_core(trees):
    for tree in trees.values():
        for node in walked(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "surrokit":
                yield from ((node.module, alias.name) for alias in node.names)


def is_documented(module, name, documented):
    in_front = name in surrokit.__all__ and name in documented
    return in_front or not documented.isdisjoint({module, f"{module}.{name}"})


def test_what_plugins_import_from_the_core_is_in_the_reference(plugin_trees, documented):
    used = set(imports_of_the_core(plugin_trees))
    assert len(used) > 100
    assert sorted(f"{m}.{n}" for m, n in used if not is_documented(m, n, documented)) == []
