"""The nodes of a file's syntax tree, which most rules look at."""

from __future__ import annotations

import ast
from functools import cache


@cache
def walked(tree: ast.AST) -> list[ast.AST]:
    return list(ast.walk(tree))
