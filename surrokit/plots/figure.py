"""Figures of one style, and the densities that they show.

Colours are those that colour-blind readers can tell apart (Okabe and Ito 2008).
"""

from __future__ import annotations

import functools
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from surrokit.arguments import load_library
from surrokit.errors import ConfigurationError
from surrokit.output.console import printable
from surrokit.types import FloatArray

INK, GREY = "#000000", "#777777"
BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#E69F00", "#009E73", "#CC79A7"
SKY, VERMILION = "#56B4E9", "#D55E00"

CYCLE = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, GREY, INK)
"""Colours of chains and of kinds of calls, in order."""

_STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.2,
    # names are the user's, and no formulas
    "text.parse_math": False,
    "text.usetex": False,
}

Draw = Callable[[Any], None]  #: Draws on a pair of axes.


@contextmanager
def drawing() -> Iterator[None]:
    """Draw in the block in the pictures' style, if Matplotlib is installed."""
    mpl = load_library("matplotlib", "figures", "for pictures")
    with mpl.rc_context():
        mpl.rcdefaults()  # a reader's own style may be white on black
        mpl.rcParams.update(_STYLE)
        yield


@functools.cache
def _class_of_figures() -> Any:
    from matplotlib.figure import Figure

    class Picture(Figure):
        """A figure that a notebook shows, whether or not it has loaded pyplot."""

        def _repr_png_(self, dpi: int = 110) -> bytes:
            file = io.BytesIO()
            with drawing():
                self.savefig(file, format="png", dpi=dpi)
            return file.getvalue()

    return Picture


def figure_of(
    draws: Sequence[Draw],
    columns: int,
    size: tuple[float, float] = (3.2, 2.1),
    title: str | None = None,
) -> Any:
    """Return a figure of what is drawn, row by row, each of a size in inches."""
    if not draws:
        raise ConfigurationError("there is nothing to show; name parameters that the run has")
    columns = min(columns, len(draws))
    rows = -(-len(draws) // columns)
    with drawing():
        whole = (columns * size[0], rows * size[1])
        figure = _class_of_figures()(figsize=whole, layout="constrained", facecolor="white")
        for i, draw in enumerate(draws, start=1):
            draw(figure.add_subplot(rows, columns, i))
        if title is not None:
            figure.suptitle(title, fontsize=9, x=0.01, ha="left")
    return figure


def short_name(name: str) -> str:
    """Return a name with its middle left out where it is too long for a picture."""
    name, most = printable(" ".join(name.split())), 26
    end = most // 3
    return name if len(name) <= most else f"{name[: most - end - 1]}…{name[-end:]}"


def equally_likely(run: Any, column: int) -> FloatArray:
    """Return equally likely values of one number of a run, shape (n,), by its weights if any."""
    weighted = run.answer or run.by_mode
    if weighted is None:
        return np.asarray(run.draws[:, :, column].ravel())
    known, n = weighted.distribution, 2000
    below, points = known.below[column], known.points[column]
    return np.asarray(np.interp((np.arange(n) + 0.5) / n, below, points))


def density(values: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Return ArviZ's density estimate, places and heights; None where values do not vary."""
    values = values[np.isfinite(values)]
    if len(values) < 4:
        return None
    centre, scale = float(np.median(values)), float(np.ptp(values))
    if not 0.0 < scale < np.inf:
        return None
    from arviz_stats.base import array_stats

    grid, heights, _ = array_stats.kde((values - centre) / scale, grid_len=128)
    return grid * scale + centre, np.asarray(heights / scale)
