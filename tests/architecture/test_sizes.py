"""Functions stay small enough to be read at once."""

from __future__ import annotations

import ast
import math

import pytest

MOST_LINES_OF_A_FUNCTION = 50


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the lines of a function from its ``def`` on, without its docstring."""
    assert function.end_lineno is not None
    lines = function.end_lineno - function.lineno + 1
    first = function.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        assert first.end_lineno is not None
        lines -= first.end_lineno - first.lineno + 1
    return lines


def sizes_of_functions(tree: ast.AST) -> list[tuple[str, int]]:
    functions = (
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return [(function.name, body_lines(function)) for function in functions]


def long_functions(tree: ast.AST) -> dict[str, int]:
    sizes = sizes_of_functions(tree)
    return {name: size for name, size in sizes if size > MOST_LINES_OF_A_FUNCTION}


# Front doors: mostly signature.
LONG_FUNCTIONS = {("surrokit/compose.py", "sample"), ("surrokit/sessions.py", "resume")}


def test_functions_are_short(source_trees):
    found = {(path, name) for path, tree in source_trees.items() for name in long_functions(tree)}
    assert found == LONG_FUNCTIONS


def test_ninety_nine_of_a_hundred_functions_are_read_in_one_look(source_trees):
    sizes = sorted(n for tree in source_trees.values() for _, n in sizes_of_functions(tree))
    assert sizes[math.ceil(0.99 * len(sizes)) - 1] <= 35


@pytest.mark.parametrize(("n", "is_long"), [(49, False), (50, True)])
def test_the_count_leaves_docstrings_out(n, is_long):
    code = 'def f():\n    """One.\n\n    Two.\n    """\n' + "    x = 1\n" * n
    assert bool(long_functions(ast.parse(code))) == is_long
