"""The style of pictures: readable in print, and where some colours look alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

# Okabe and Ito (2008), Color Universal Design
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILION, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#666666"

_RC: dict[str, Any] = {
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

LOOKS: Mapping[str, dict[str, Any]] = {
    name: {"color": colour, "marker": marker, "linestyle": line}
    for name, colour, marker, line in (
        ("gp", VERMILION, "s", "-"),
        ("fitc", PURPLE, "^", "--"),
        ("additive", BLUE, "o", "-"),
        ("rbf", ORANGE, "D", "-."),
        ("additive-default", SKY, "v", (0, (4, 1, 1, 1, 1, 1))),
        ("additive-gradients", GREEN, "P", (0, (7, 2))),
        ("hmc", GREY, "x", ":"),
        ("paper", BLUE, "o", "-"),
        ("defaults", VERMILION, "s", (0, (7, 2))),
        ("emulator", GREEN, "D", (0, (4, 1, 1, 1))),
        ("rns", BLUE, "^", (0, (4, 1, 1, 1))),
        ("arns", VERMILION, "s", "-"),
    )
}
"""Keywords for ``plot`` by name of the method or scheme; any one identifies it."""


def line_of(name: str) -> dict[str, Any]:
    """Return colour and line of a method or scheme, for what has no markers."""
    return {key: LOOKS[name][key] for key in ("color", "linestyle")}


@contextmanager
def drawing(width: float, height: float) -> Iterator[Any]:
    """Lend a :class:`matplotlib.figure.Figure` of a size in inches, in the style of all of them."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_RC):
        yield Figure(figsize=(width, height), layout="constrained")


def error_bars(
    ax: Any, x: Sequence[float], over_runs: Sequence[Mapping[str, float]], **options: Any
) -> None:
    """Draw medians over runs, with bars to the quantiles ``low`` and ``high``."""
    middle = [each["median"] for each in over_runs]
    below = [each["median"] - each["low"] for each in over_runs]
    above = [each["high"] - each["median"] for each in over_runs]
    ax.errorbar(x, middle, [below, above], capsize=2, elinewidth=0.8, **options)


def panels(figure: Any, n: int) -> tuple[Any, list[Any]]:
    """Return a grid of axes, at most two beside each other, and the n of them that are in use."""
    columns = min(n, 2)
    grid = figure.subplots(-(-n // columns), columns, sharey=True, squeeze=False)
    for ax in grid.flat[n:]:
        ax.set_axis_off()
    return grid, list(grid.flat[:n])


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
    """Put one legend for all axes below a figure with constrained layout.

    Entries of one name are shown once, those that end in ``last`` after all others.
    """
    entries: dict[str, Any] = {}
    for ax in axes:
        handles, labels = ax.get_legend_handles_labels()
        entries.update(dict(zip(labels, handles, strict=True)))
    if last is not None:
        entries = dict(sorted(entries.items(), key=lambda entry: entry[0].endswith(last)))
    if entries:
        columns = columns or max(int(figure.get_figwidth() / 2.5), 1)
        figure.legend(
            list(entries.values()), list(entries), loc="outside lower center", ncols=columns
        )
