"""What pictures share: colours that colour-blind readers can tell apart, sizes, and figures."""

from __future__ import annotations

import functools
import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from surrokit.errors import MissingDependencyError
from surrokit.shown.elements import printable

# Okabe and Ito (2008), Color Universal Design
INK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILION, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
GREY = "#777777"

CYCLE = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, GREY, INK)
"""Colours of chains and of kinds of calls, in order."""

LONGEST_NAME = 26
"""Characters of a name in a picture; tables have all of them."""

_RESOLUTION = 110

_SETTINGS = {
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


@contextmanager
def drawing() -> Iterator[None]:
    """Draw in the block in the pictures' style.

    Raises
    ------
    MissingDependencyError
        If Matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise MissingDependencyError(
            "Matplotlib is needed for pictures and is not installed; run python -m pip install "
            "'surrokit[figures]'"
        ) from error
    with mpl.rc_context():
        mpl.rcdefaults()  # a reader's own style may be white on black
        mpl.rcParams.update(_SETTINGS)
        yield


@functools.cache
def _class_of_figures() -> Any:
    from matplotlib.figure import Figure

    class Picture(Figure):
        """A figure that a notebook shows, whether or not it has loaded pyplot."""

        def _repr_png_(self) -> bytes:
            file = io.BytesIO()
            self.savefig(file, format="png", dpi=_RESOLUTION)
            return file.getvalue()

    return Picture


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure, in inches, that is no business of pyplot's."""
    return _class_of_figures()(figsize=(width, height), layout="constrained", facecolor="white")


def short_name(name: str) -> str:
    """Return a name with its middle left out where it is too long for a picture."""
    name = printable(" ".join(name.split()))
    if len(name) <= LONGEST_NAME:
        return name
    end = LONGEST_NAME // 3
    return f"{name[: LONGEST_NAME - end - 1]}…{name[-end:]}"


def draw_dots(axes: Any, x: Any, y: Any, *, colour: str, size: float = 2.0, **kwargs: Any) -> None:
    """Draw many dots as one path, which takes a tenth of the room of as many markers.

    Parameters
    ----------
    axes
        To draw on.
    x, y : ndarray of shape (n,)
        Where.
    colour, size
        Size is in points.
    **kwargs
        Further settings of the path, such as ``alpha``.
    """
    import numpy as np
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    known = np.isfinite(x) & np.isfinite(y)
    x, y = np.asarray(x)[known], np.asarray(y)[known]
    if not len(x):
        return
    # a line of hardly any length and with round ends is a dot
    corners = np.repeat(np.column_stack([x, y]), 2, axis=0)
    corners[1::2, 0] += (float(np.ptp(x)) or 1.0) / 1000.0
    path = Path(corners, np.tile([Path.MOVETO, Path.LINETO], len(x)))
    path.should_simplify = False
    dots = PathPatch(path, edgecolor=colour, facecolor="none", linewidth=size, **kwargs)
    dots.set_capstyle("round")
    dots.set_snap(False)
    axes.add_patch(dots)
    axes.update_datalim(np.column_stack([x, y]))
    axes.autoscale_view()
