"""The style of pictures: readable in print, and without telling all colours apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import attrs

# Okabe and Ito (2008), Color Universal Design
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILION, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#666666"

RC: dict[str, Any] = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "legend.handlelength": 3.2,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
    "figure.facecolor": "white",
}
"""Settings of Matplotlib under which every picture is made."""


@attrs.frozen
class Look:
    """Colour, marker and line of one method; any one of them tells it apart.

    Parameters
    ----------
    colour, marker, line
        As Matplotlib takes them.
    """

    colour: str
    marker: str
    line: Any

    def options(self) -> dict[str, Any]:
        """Return keywords for ``plot`` and ``errorbar``."""
        return {"color": self.colour, "marker": self.marker, "linestyle": self.line}


LOOKS: dict[str, Look] = {
    "gp": Look(VERMILION, "s", "-"),
    "fitc": Look(PURPLE, "^", "--"),
    "additive": Look(BLUE, "o", "-"),
    "rbf": Look(ORANGE, "D", "-."),
    "additive-default": Look(SKY, "v", (0, (4, 1, 1, 1, 1, 1))),
    "additive-gradients": Look(GREEN, "P", (0, (7, 2))),
    "hmc": Look(GREY, "x", ":"),
    "paper": Look(BLUE, "o", "-"),
    "defaults": Look(VERMILION, "s", (0, (7, 2))),
    "emulator": Look(GREEN, "D", (0, (4, 1, 1, 1))),
    "rns": Look(BLUE, "^", (0, (4, 1, 1, 1))),
    "arns": Look(VERMILION, "s", "-"),
}
"""By the name of the method, or of the scheme of a surrogate."""


_LEGEND_COLUMN = 2.5  # inches


@contextmanager
def drawing(width: float, height: float) -> Iterator[Any]:
    """Lend a :class:`matplotlib.figure.Figure` of a size in inches, in the style of all of them."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(RC):
        yield Figure(figsize=(width, height), layout="constrained")


def ticks_at(ax: Any, sizes: Sequence[int], **options: Any) -> None:
    """Mark an axis of x at some sizes and nowhere else; options are those of ``set_xticks``."""
    from matplotlib.ticker import NullLocator

    ax.set_xticks(sizes, [str(size) for size in sizes], **options)
    ax.xaxis.set_minor_locator(NullLocator())


def ticks_among(ax: Any, sizes: Sequence[int]) -> None:
    """Mark an axis of x at those of some sizes that it reaches."""
    low, high = ax.get_xlim()
    ticks_at(ax, [size for size in sizes if low <= size <= high])


def common_legend(
    figure: Any, axes: Any, columns: int | None = None, last: str | None = None
) -> None:
    """Put one legend for all axes below a figure.

    Parameters
    ----------
    figure
        A :class:`matplotlib.figure.Figure` with constrained layout.
    axes
        Its axes; entries of one name are shown once.
    columns
        How many; None for as many as fit.
    last
        Entries that end in this come after all others.
    """
    entries: dict[str, Any] = {}
    for ax in axes:
        handles, labels = ax.get_legend_handles_labels()
        entries.update(dict(zip(labels, handles, strict=True)))
    if last is not None:
        entries = dict(sorted(entries.items(), key=lambda entry: entry[0].endswith(last)))
    if entries:
        columns = columns or max(int(figure.get_figwidth() / _LEGEND_COLUMN), 1)
        figure.legend(
            list(entries.values()), list(entries), loc="outside lower center", ncols=columns
        )
