"""Descriptions of parameters, read from numpydoc docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from itertools import pairwise

_UNDERLINE = re.compile(r"-{3,}$")
_ROLE = re.compile(r":[a-z:]+:`(~[\w.]*\.)?([^`]+)`")


def parameter_texts(docstring: str | None) -> dict[str, tuple[str, str]]:
    """Return parameter to type and description; either may be empty.

    Parameters
    ----------
    docstring
        In numpydoc's form, whose section Parameters is read.
    """
    types: dict[str, str] = {}
    texts: dict[str, str] = {}
    names: list[str] = []
    for line in _section(inspect.cleandoc(docstring or ""), "Parameters"):
        if line and not line[0].isspace():
            before, _, kind = line.partition(" : ")
            names = [name.strip(" *") for name in before.split(",")]
            types |= dict.fromkeys(names, kind.strip())
            texts |= dict.fromkeys(names, "")
        elif line:
            texts |= {name: f"{texts[name]} {line.strip()}".strip() for name in names}
    return {name: (types[name], text) for name, text in texts.items()}


def without_markup(text: str) -> str:
    """Return a text without the markup of literals and references."""
    return _ROLE.sub(r"\2", text).replace("``", "")


def _section(text: str, title: str) -> Iterator[str]:
    """Yield the lines under a title, up to the next title."""
    inside = False
    for line, following in pairwise([*text.splitlines(), ""]):
        if _UNDERLINE.match(following):
            inside = line == title
        elif inside and not _UNDERLINE.match(line):
            yield line
