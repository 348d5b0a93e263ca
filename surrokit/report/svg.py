"""Panels as vector graphics that are part of a page."""

from __future__ import annotations

import io
import re
import warnings
from xml.etree import ElementTree

from markupsafe import Markup

from surrokit.plots.panel import INK, PALETTE, Panel, drawing, new_figure
from surrokit.shown.html import printable

COLOURS = {
    INK: "currentColor",
    **{colour.lower(): f"var(--{name})" for name, colour in PALETTE.items()},
}
"""Colours of pictures to those of the page, which differ in light and dark."""

_PIXELS = 96.0  # in an inch, by CSS

_COLOUR = re.compile("#[0-9a-fA-F]{6}")
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_FONT = re.compile(r"font: (?:[a-z]+ )*([\d.]+px)[^;]*|font-family:[^;]*;?")
_SPACED = frozenset({"d", "transform", "x", "y", "style", "points"})


def inline_svg(panel: Panel, name: str) -> Markup:
    """Return a panel as an element of a page, with its text for readers who do not see it.

    ``name`` is another one for each panel of a page.

    Raises
    ------
    MissingDependencyError
        If Matplotlib is not installed.
    """
    root = ElementTree.fromstring(_written(panel, name))
    view = root.attrib["viewBox"]
    used = _referenced(root)
    for element in root.iter():
        for child in list(element):
            if child.tag.endswith(("}metadata", "}style")):
                element.remove(child)
        _clean(element, used)
    title, text = f"{name}-title", f"{name}-text"
    root.attrib = {
        "role": "img",
        "aria-labelledby": title,
        "aria-describedby": text,
        "viewBox": view,
        "width": f"{panel.width * _PIXELS:.0f}",
        "height": f"{panel.height * _PIXELS:.0f}",
    }
    for place, (tag, key, words) in enumerate(
        [("title", title, panel.title), ("desc", text, panel.text)]
    ):
        said = ElementTree.Element(tag, {"id": key})
        said.text = printable(words)
        root.insert(place, said)
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _written(panel: Panel, name: str) -> str:
    """Return a panel as Matplotlib writes it, with text as text and ids that the name decides."""
    import matplotlib as mpl

    file = io.StringIO()
    with warnings.catch_warnings(), drawing():
        mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": name})
        figure = new_figure(panel.width, panel.height)
        panel.draw(figure.add_subplot())
        # letters are the reader's, who may have more of them
        warnings.filterwarnings("ignore", message="Glyph", category=UserWarning)
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    return file.getvalue()


def _referenced(root: ElementTree.Element) -> set[str]:
    """Return the ids of elements that others refer to."""
    found: set[str] = set()
    for element in root.iter():
        for key, value in element.attrib.items():
            found |= set(_REFERENCE.findall(value))
            if key.endswith("href"):
                found.add(value.removeprefix("#"))
    return found


def _clean(element: ElementTree.Element, used: set[str]) -> None:
    """Leave out namespaces, ids that nobody uses, blanks and digits that nobody sees."""
    element.tag, element.tail = element.tag.rpartition("}")[2], None
    element.text = element.text if (element.text or "").strip() else None
    named = {key.rpartition("}")[2]: value for key, value in element.attrib.items()}
    element.attrib = {
        key: _shorten(key, value) for key, value in named.items() if key != "id" or value in used
    }


def _shorten(key: str, value: str) -> str:
    if key in _SPACED:
        value = _LONG_NUMBER.sub(lambda found: f"{round(float(found[0]), 2):g}", value)
        value = " ".join(value.split())
    if key == "style":  # fonts are the page's, and so are colours
        value = _FONT.sub(lambda found: f"font-size: {found[1]}" if found[1] else "", value)
        value = _COLOUR.sub(lambda found: COLOURS.get(found[0].lower(), found[0]), value)
    return value
