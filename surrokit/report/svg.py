"""Panels as vector graphics that are part of a page."""

from __future__ import annotations

import io
import re
import warnings

from markupsafe import Markup

from surrokit.plots.panel import INK, PALETTE, Panel, drawing, new_figure
from surrokit.shown.html import printable

COLOURS = {
    INK: "currentColor",
    **{colour.lower(): f"var(--{name})" for name, colour in PALETTE.items()},
}
"""Colours of pictures to those of the page, which differ in light and dark."""

_PICTURE = Markup(
    '<svg role="img" aria-labelledby="{name}-title" aria-describedby="{name}-text" '
    'viewBox="{view}" width="{width:.0f}" height="{height:.0f}">'
    '<title id="{name}-title">{title}</title><desc id="{name}-text">{text}</desc>{inside}</svg>'
)


def inline_svg(panel: Panel, name: str) -> Markup:
    """Return a panel as an element of a page, with its text for readers who do not see it.

    ``name`` is another one for each panel of a page.
    """
    import matplotlib as mpl

    file = io.StringIO()
    with warnings.catch_warnings(), drawing():
        mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": name})
        figure = new_figure(panel.width, panel.height)
        panel.draw(figure.add_subplot())
        # letters are the reader's, who may have more of them
        warnings.filterwarnings("ignore", message="Glyph", category=UserWarning)
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    written = re.sub(r"<(metadata|style).*?</\1>|<!--.*?-->", "", file.getvalue(), flags=re.DOTALL)
    start, inside = re.findall(r"(<svg[^>]*>)(.*)</svg>", written, flags=re.DOTALL)[0]
    used = {"".join(each) for each in re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', inside)}
    inside = re.sub(r' id="([^"]*)"', lambda m: m[0] if m[1] in used else "", inside)
    inside = re.sub(r' (d|transform|x|y|style|points)="([^"]*)"', _shorten, inside)
    inside = re.sub(r">\s+<", "><", inside).strip()
    return _PICTURE.format(
        name=name,
        view=re.findall('viewBox="([^"]*)"', start)[0],
        width=panel.width * 96.0,  # pixels in an inch, by CSS
        height=panel.height * 96.0,
        title=printable(panel.title),
        text=printable(panel.text),
        inside=Markup(inside),
    )


def _shorten(attribute: re.Match[str]) -> str:
    """Leave out digits and blanks that nobody sees, and fonts and colours that are the page's."""
    key, value = attribute.groups()
    value = re.sub(r"-?\d+\.\d{3,}", lambda m: f"{round(float(m[0]), 2):g}", value)
    value = " ".join(value.split())
    if key == "style":
        font = r"font: (?:[a-z]+ )*([\d.]+px)[^;]*|font-family:[^;]*;?"
        value = re.sub(font, lambda m: f"font-size: {m[1]}" if m[1] else "", value)
        value = re.sub("#[0-9a-fA-F]{6}", lambda m: COLOURS.get(m[0].lower(), m[0]), value)
    return f' {key}="{value}"'
