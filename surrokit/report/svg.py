"""Figures as vector graphics that are part of a page."""

from __future__ import annotations

import io
import itertools
import re
import warnings
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import attrs

from surrokit.plots.panel import Panel, draw_panel
from surrokit.plots.style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    YELLOW,
    drawing,
)
from surrokit.shown.elements import Markup, escape, tag

COLOURS = {
    INK: "currentColor",
    BLUE: "var(--blue)",
    ORANGE: "var(--orange)",
    GREEN: "var(--green)",
    PURPLE: "var(--purple)",
    SKY: "var(--sky)",
    VERMILION: "var(--vermilion)",
    YELLOW: "var(--yellow)",
    GREY: "var(--grey)",
}
"""Colours of pictures to those of the page, which differ in light and dark."""

_PIXELS = 96.0  # in an inch, by CSS

_LEFT_OUT = frozenset({"metadata", "style"})
_COLOUR = re.compile("#[0-9a-fA-F]{6}")
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_FONT = re.compile(r"font: ((?:[a-z]+ )*)([\d.]+px)[^;]*|font-family:[^;]*;?")
_SPACED = frozenset({"d", "transform", "x", "y", "style", "points"})
_NAMES = {colour.lower(): name for colour, name in COLOURS.items()}


@attrs.define(eq=False)
class Drawer:
    """Draws panels of one page, whose elements are all called by names of their own."""

    _numbers: Iterator[int] = attrs.field(factory=itertools.count, init=False)

    def draw(self, panel: Panel, *, caption: bool = False) -> Markup:
        """Return a panel as a figure with its text.

        Parameters
        ----------
        panel
            What is drawn.
        caption
            Whether the text is shown to all readers, or told to those who do not see pictures.

        Raises
        ------
        MissingDependencyError
            If Matplotlib is not installed.
        """
        picture = self._inline(draw_panel(panel), panel)
        below = tag("figcaption", panel.text) if caption else None
        return tag("figure", picture, below)

    def _inline(self, figure: Any, panel: Panel) -> Markup:
        prefix = f"p{next(self._numbers)}"
        root = ElementTree.fromstring(_written(figure))
        names = {name: f"{prefix}-{i}" for i, name in enumerate(sorted(_referenced(root)))}
        title, text = f"{prefix}-title", f"{prefix}-text"
        inside = [
            tag("title", panel.title, id=title),
            tag("desc", panel.text, id=text),
            *(_element(child, names) for child in root if _tag(child) not in _LEFT_OUT),
        ]
        return tag(
            "svg",
            *inside,
            role="img",
            aria_labelledby=title,
            aria_describedby=text,
            viewBox=root.attrib["viewBox"],
            width=f"{panel.width * _PIXELS:.0f}",
            height=f"{panel.height * _PIXELS:.0f}",
        )


def _written(figure: Any) -> str:
    """Return a figure as Matplotlib writes it, with text as text."""
    import matplotlib as mpl

    file = io.StringIO()
    with warnings.catch_warnings(), drawing():
        mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "surrokit"})
        # letters are the reader's, who may have more of them
        warnings.filterwarnings("ignore", message="Glyph", category=UserWarning)
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    return file.getvalue()


def _tag(element: ElementTree.Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _referenced(root: ElementTree.Element) -> set[str]:
    """Return the names of elements that others refer to."""
    found: set[str] = set()
    for element in root.iter():
        for key, value in element.attrib.items():
            found |= set(_REFERENCE.findall(value))
            if key.endswith("href"):
                found.add(value.removeprefix("#"))
    return found


def _element(element: ElementTree.Element, names: dict[str, str]) -> Markup:
    """Return an element as HTML has it."""
    given = ""
    for key, value in element.attrib.items():
        name = key.rpartition("}")[2]
        if name == "id" and value not in names:
            continue
        given += f' {name}="{escape(_attribute(name, value, names))}"'
    children = [_element(child, names) for child in element if _tag(child) not in _LEFT_OUT]
    inside = (escape(element.text or "") if (element.text or "").strip() else "") + "".join(
        children
    )
    name = _tag(element)
    return Markup(f"<{name}{given}>{inside}</{name}>" if inside else f"<{name}{given}/>")


def _attribute(name: str, value: str, names: dict[str, str]) -> str:
    if name == "id":
        return names[value]
    if name == "href":
        return f"#{names[value.removeprefix('#')]}"
    value = _REFERENCE.sub(lambda found: f"url(#{names[found[1]]})", value)
    if name in _SPACED:
        value = _LONG_NUMBER.sub(lambda found: f"{round(float(found[0]), 2):g}", value)
        value = " ".join(value.split())
    if name == "style":
        value = _FONT.sub(_size_alone, value)
        value = _COLOUR.sub(lambda found: _NAMES.get(found[0].lower(), found[0]), value)
    return value


def _size_alone(found: re.Match[str]) -> str:
    """Return the size of a font without its family, which is the page's."""
    return f"font-size: {found[2]}" if found[2] else ""
