"""Small tables of a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from surrokit.shown.elements import Child, Markup, named, tag

MOST_ROWS = 20
"""Rows that a notebook shows; the page and ``print`` show all."""


def table(columns: Sequence[str], rows: Iterable[tuple[str, Sequence[Child]]]) -> Markup:
    """Return a table, of which each row begins with a name.

    Parameters
    ----------
    columns
        Titles of the columns, that of names first.
    rows
        The name and the other cells of each row.
    """
    head = tag("tr", *(tag("th", name, scope="col") for name in columns))
    body = [
        tag("tr", tag("th", named(row), scope="row"), *(tag("td", cell) for cell in cells))
        for row, cells in rows
    ]
    return tag("table", tag("thead", head), tag("tbody", *body))
