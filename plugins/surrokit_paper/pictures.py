"""The style of pictures: readable in print, and where some colours look alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

# Okabe and Ito (2008), Color Universal Design
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILION, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#666666"

_DASHES = (0, (4, 1, 1, 1))

_LOOKS: tuple[tuple[str, str, str, str, Any], ...] = (
    ("gp", "GP", VERMILION, "s", "-"),
    ("fitc", "FITC", PURPLE, "^", "--"),
    ("additive", "additive nodes", BLUE, "o", "-"),
    ("rbf", "radial nodes", ORANGE, "D", "-."),
    ("additive-default", "additive, surrokit's defaults", SKY, "v", (0, (4, 1, 1, 1, 1, 1))),
    ("additive-gradients", "the same, from gradients too", GREEN, "P", (0, (7, 2))),
    ("hmc", "HMC, exact", GREY, "x", ":"),
    ("paper", "the paper's network, values alone", BLUE, "o", "-"),
    ("values", "surrokit's defaults, values alone", SKY, "v", _DASHES),
    ("defaults", "surrokit's defaults, gradients too", VERMILION, "s", (0, (7, 2))),
    ("emulator", "surrokit's defaults, forward map", GREEN, "D", _DASHES),
    ("rns", "RNS-HMC", BLUE, "^", _DASHES),
    ("arns", "ARNS-HMC", VERMILION, "s", "-"),
)

NAMES = {name: label for name, label, *_ in _LOOKS}
"""What tables and legends call methods and surrogates."""

LOOKS: dict[str, dict[str, Any]] = {
    name: {"color": colour, "marker": marker, "linestyle": line, "label": label}
    for name, label, colour, marker, line in _LOOKS
}
"""Keywords for ``plot``; colour, marker or line alone identifies each."""


def line_of(name: str) -> dict[str, Any]:
    """Return colour and line of a method, for what has no markers."""
    return {key: LOOKS[name][key] for key in ("color", "linestyle")}


@contextmanager
def drawing(width: float, height: float) -> Iterator[Any]:
    """Lend a :class:`matplotlib.figure.Figure` of a size in inches, in the style of all of them."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    style = {
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
    with mpl.rc_context(style):
        yield Figure(figsize=(width, height), layout="constrained")


def error_bars(ax: Any, x: Sequence[float], spreads: Sequence[Any], look: dict[str, Any]) -> None:
    """Draw medians with bars, of (low, median, high) at each x."""
    low, middle, high = zip(*spreads, strict=True)
    below = [m - each for m, each in zip(middle, low, strict=True)]
    above = [each - m for m, each in zip(middle, high, strict=True)]
    ax.errorbar(x, middle, [below, above], capsize=2, elinewidth=0.8, **look)


def panels(figure: Any, n: int) -> list[Any]:
    """Return n pairs of axes, at most two beside each other."""
    columns = min(n, 2)
    grid = figure.subplots(-(-n // columns), columns, sharey=True, squeeze=False)
    for ax in grid.flat[n:]:
        ax.set_axis_off()
    return list(grid.flat[:n])


def ticks_at(ax: Any, places: Sequence[int]) -> None:
    """Mark an axis of x at some places, as far as it reaches, and nowhere else."""
    from matplotlib.ticker import NullLocator

    low, high = ax.get_xlim()
    shown = [place for place in places if low <= place <= high]
    ax.set_xticks(shown, [str(place) for place in shown])
    ax.xaxis.set_minor_locator(NullLocator())


def common_legend(figure: Any, axes: Any) -> None:
    """Put one legend for all axes below the figure; entries of one name are shown once."""
    entries: dict[str, Any] = {}
    for ax in axes:
        handles, labels = ax.get_legend_handles_labels()
        entries.update(dict(zip(labels, handles, strict=True)))
    if entries:
        columns = max(int(figure.get_figwidth() / 2.5), 1)
        place = {"loc": "outside lower center", "ncols": columns}
        figure.legend(list(entries.values()), list(entries), **place)
