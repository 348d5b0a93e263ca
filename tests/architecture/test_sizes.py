"""Functions stay small enough to be read at once."""

from __future__ import annotations

import ast
import math

from trees import walked

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
        node for node in walked(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return [(function.name, body_lines(function)) for function in functions]


# Front doors: mostly signature.
LONG_FUNCTIONS = {
    ("surrokit/compose.py", "sample"),
    ("surrokit/sessions.py", "resume"),
}


def test_functions_are_short(source_trees):
    """And ninety-nine of a hundred are read in one look."""
    found = [
        (path, name, size)
        for path, tree in source_trees.items()
        for name, size in sizes_of_functions(tree)
    ]
    long = {(path, name) for path, name, size in found if size > MOST_LINES_OF_A_FUNCTION}
    assert long == LONG_FUNCTIONS
    sizes = sorted(size for _, _, size in found)
    assert sizes[math.ceil(0.99 * len(sizes)) - 1] <= 40
