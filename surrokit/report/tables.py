"""Tables of a page: readers sort and search them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from surrokit.shown.elements import Child, Markup, named, tag

SEARCHED_FROM = 12
"""Rows from which on a table can be searched."""


def table(
    title: str, columns: Sequence[str], rows: Iterable[tuple[str, Sequence[Child]]], name: str
) -> Markup:
    """Return a table whose columns can be sorted, and which scrolls by itself where it is wide.

    Parameters
    ----------
    title
        What is in it.
    columns
        Titles of the columns, that of names first.
    rows
        The name and the other cells of each row.
    name
        Of the table, on its page.
    """
    head = tag(
        "tr",
        *(
            tag("th", tag("button", column, type="button"), scope="col", aria_sort="none")
            for column in columns
        ),
    )
    body = [
        tag("tr", tag("th", named(row), scope="row"), *(tag("td", cell) for cell in cells))
        for row, cells in rows
    ]
    whole = tag(
        "table", tag("caption", title), tag("thead", head), tag("tbody", *body), id=f"{name}-table"
    )
    scrolled = tag("div", whole, class_="scroll", tabindex="0", role="region", aria_label=title)
    return tag("div", _search(name, len(body)), scrolled, class_="table")


def _search(name: str, n: int) -> Markup | None:
    if n < SEARCHED_FROM:
        return None
    label = tag("label", "Search by name ", for_=f"{name}-search")
    field = tag("input", type="search", id=f"{name}-search", data_table=f"{name}-table")
    count = tag("output", f"{n} rows", for_=f"{name}-search")
    return tag("p", label, field, " ", count, class_="search")
