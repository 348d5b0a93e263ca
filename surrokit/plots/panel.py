"""Panels: single pictures, which figures arrange and pages show one by one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from surrokit.errors import ConfigurationError
from surrokit.plots.style import drawing, new_figure

WIDTH, HEIGHT = 3.2, 2.1
"""Of a panel, in inches."""


@attrs.frozen(kw_only=True, eq=False)
class Panel:
    """A picture with one pair of axes.

    Parameters
    ----------
    title
        What it shows, in a few words.
    text
        What it says, for readers who do not see it.
    draw
        Draws it on axes.
    width, height
        In inches.
    """

    title: str
    text: str
    draw: Callable[[Any], None]
    width: float = WIDTH
    height: float = HEIGHT


def draw_panel(panel: Panel) -> Any:
    """Return a figure of one panel.

    Raises
    ------
    MissingDependencyError
        If Matplotlib is not installed.
    """
    with drawing():
        figure = new_figure(panel.width, panel.height)
        panel.draw(figure.add_subplot())
    return figure


def arrange(panels: Sequence[Panel], *, columns: int = 3, title: str | None = None) -> Any:
    """Return a figure of panels, row by row.

    Parameters
    ----------
    panels
        Any number.
    columns
        Panels side by side at most.
    title
        Of the figure.

    Raises
    ------
    MissingDependencyError
        If Matplotlib is not installed.
    ConfigurationError
        If there is no panel.
    """
    columns = min(columns, len(panels))
    places = {(i // columns, i % columns): panel for i, panel in enumerate(panels)}
    return arrange_at(places, title=title)


def arrange_at(places: Mapping[tuple[int, int], Panel], *, title: str | None = None) -> Any:
    """Return a figure of panels at rows and columns; see :func:`arrange`."""
    if not places:
        raise ConfigurationError("there is nothing to show; name parameters that the run has")
    rows, columns = (max(place[axis] for place in places) + 1 for axis in (0, 1))
    height = sum(
        max((p.height for (at, _), p in places.items() if at == row), default=0.0)
        for row in range(rows)
    )
    width = max(panel.width for panel in places.values())
    with drawing():
        figure = new_figure(columns * width, height)
        grid = figure.add_gridspec(rows, columns)
        for (row, column), panel in places.items():
            panel.draw(figure.add_subplot(grid[row, column]))
        if title is not None:
            figure.suptitle(title, fontsize=9, x=0.01, ha="left")
    return figure


def describe(value: float) -> str:
    """Return a number as pictures tell it."""
    return "missing" if math.isnan(value) else f"{value:.4g}"


def percent(probability: float) -> str:
    """Return a probability as pictures tell it, with all of its digits."""
    return f"{100.0 * probability:.6g}%"
