"""Elements of a page, in which all text is escaped unless it is markup already."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import TypeAlias

VOID = frozenset({"meta", "input", "br", "link"})
"""Elements without an end."""


class Markup(str):
    """Text that is HTML already; plain text is none."""

    __slots__ = ()


Child: TypeAlias = str | None
"""Markup, text that is escaped, or nothing."""


def printable(text: str) -> str:
    """Return text with a mark in place of control characters, and of those that turn writing.

    Parameters
    ----------
    text
        Anything.
    """
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text
    )


def escape(text: str) -> Markup:
    """Return text as HTML shows it, with a mark in place of each control character.

    Parameters
    ----------
    text
        Anything.
    """
    if isinstance(text, Markup):
        return text
    return Markup(html.escape(printable(text), quote=True))


def join(children: Iterable[Child]) -> Markup:
    """Return several pieces as one.

    Parameters
    ----------
    children
        Pieces, of which text is escaped.
    """
    return Markup("".join(escape(child) for child in children if child is not None))


def tag(name: str, /, *children: Child, **attributes: str | bool | None) -> Markup:
    """Return an element.

    Parameters
    ----------
    name
        Such as ``p``.
    *children
        What is in it; text is escaped.
    **attributes
        ``class_`` is ``class``, and ``aria_label`` is ``aria-label``. True stands alone; None and
        False are left out.
    """
    given = "".join(
        f" {_attribute(key)}" + ("" if value is True else f'="{escape(str(value))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    start = Markup(f"<{name}{given}>")
    return start if name in VOID else Markup(f"{start}{join(children)}</{name}>")


def _attribute(key: str) -> str:
    return key.removesuffix("_").replace("_", "-")


def named(name: str) -> Markup:
    """Return a user's name, whose direction of writing is its own.

    Parameters
    ----------
    name
        Any text.
    """
    return tag("bdi", name)


def items(pairs: Iterable[tuple[str, Child]]) -> Markup:
    """Return a list of words and what they stand for, without those that stand for nothing.

    Parameters
    ----------
    pairs
        Words, and what stands beside them.
    """
    rows = [join([tag("dt", word), tag("dd", what)]) for word, what in pairs if what is not None]
    return tag("dl", *rows)
