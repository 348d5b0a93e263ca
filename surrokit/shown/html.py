"""HTML from templates, in which all text is escaped unless it is markup already."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from jinja2 import Environment

Fact: TypeAlias = tuple[str, str | None]
"""A word, and what stands beside it; None for nothing, so that the word is left out."""

Row: TypeAlias = tuple[str, Sequence[str | None]]
"""The name and the other cells of a row of a table."""

MOST_ROWS = 20  #: Rows that a notebook shows; the page and ``print`` show all.

# All but the ends of lines and tabs that a terminal would obey or not show: control characters, and
# those that change the direction of text. Surrogates stand for bytes that are no text.
_NO_TEXT = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


def printable(text: str) -> str:
    """Return a text with escapes for what is no text: names and messages come from anywhere."""
    return _NO_TEXT.sub(lambda found: ascii(found[0])[1:-1], text)


def render(template: str, **values: Any) -> str:
    """Return a template of the folder ``templates``, filled with values."""
    return _environment().get_template(template).render(values)


def show(kind: str, **values: Any) -> str:
    """Return what a notebook shows of a run, a target or a surrogate: the verdict, facts, a table.

    Values are those of the template ``notebook.html``; what is left out is not shown.
    """
    return render("notebook.html", kind=kind, **values)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # late: imports stay fast

    return Environment(
        loader=PackageLoader("surrokit"),
        autoescape=True,
        finalize=_finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _finalize(value: Any) -> Any:
    """Return what is put into a page: nothing for None, and text that is printable."""
    if value is None:
        return ""
    return type(value)(printable(value)) if isinstance(value, str) else value
