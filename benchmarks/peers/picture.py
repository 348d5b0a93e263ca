"""The picture: effective draws a second, and for each gradient, on logarithmic axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("agg")

import matplotlib.pyplot as plt
from matplotlib.ticker import LogLocator, NullFormatter

from peers.table import trusted

# Okabe and Ito (2008), Color Universal Design; marker and colour both tell the kinds apart
LOOKS = {
    "surrokit": ("#0072B2", "o", "surrokit with a surrogate"),
    "baseline": ("#E69F00", "s", "surrokit's HMC without one"),
    "peer": ("#000000", "^", "others"),
}
COLUMNS = (
    ("rate", "rate_squares", "effective draws a second"),
    ("per_call", "per_call_squares", "effective draws a gradient"),
)
RC = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "surrokit",
    "figure.facecolor": "white",
}


def draw(problems: Sequence[Mapping[str, Any]], folder: Path, name: str) -> list[Path]:
    """Write the picture as PNG and SVG, one row of panels a problem; return the files."""
    with mpl.rc_context(RC):
        heights = [0.7 + len(_lines(results)) for results in problems]
        figure, axes = plt.subplots(
            len(problems),
            2,
            figsize=(7.2, 0.6 + 0.19 * sum(heights)),
            height_ratios=heights,
            sharex="col",
            sharey="row",
            squeeze=False,
            layout="constrained",
        )
        for row, results in zip(axes, problems, strict=True):
            for axis, column in zip(row, COLUMNS, strict=True):
                _panel(axis, _lines(results), column)
            row[0].set_title(results["title"], x=-0.02)
        for axis, (_, _, label) in zip(axes[-1], COLUMNS, strict=True):
            axis.set_xlabel(label)
        _legend(figure)
        files = [folder / f"{name}.{kind}" for kind in ("png", "svg")]
        for file in files:
            extra = {"metadata": {"Date": None}} if file.suffix == ".svg" else {"dpi": 150}
            figure.savefig(file, bbox_inches="tight", **extra)
        plt.close(figure)
    return files


def _lines(results: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(results["lines"].values())


def _panel(axis: plt.Axes, lines: Sequence[Mapping[str, Any]], column: Any) -> None:
    plain, squares, _ = column
    for height, line in enumerate(lines):
        if line["status"] != "done":
            place = {"transform": axis.get_yaxis_transform(), "va": "center", "color": "#555555"}
            axis.text(0.02, height, line["status"], fontsize=7, **place)
            continue
        colour, marker, _ = LOOKS[line["kind"]]
        alpha = 1.0 if trusted(line) else 0.3
        options = {"marker": marker, "color": colour, "alpha": alpha, "linestyle": "none"}
        if line[plain]:
            axis.plot(line[plain], height, markersize=5, **options)
        if line[squares]:
            axis.plot(line[squares], height, markersize=5, markerfacecolor="none", **options)
    axis.set_xscale("log")
    axis.xaxis.set_major_locator(LogLocator(numticks=12))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.set_yticks(range(len(lines)), [line["title"].replace("`", "") for line in lines])
    axis.set_ylim(len(lines) - 0.4, -0.6)
    axis.grid(axis="x", color="#DDDDDD", linewidth=0.5)
    axis.set_axisbelow(True)
    axis.tick_params(axis="y", length=0)


def _legend(figure: plt.Figure) -> None:
    handles = [
        plt.Line2D([], [], color=colour, marker=marker, linestyle="none", label=label)
        for colour, marker, label in LOOKS.values()
    ]
    figure.legend(
        handles=handles,
        loc="outside upper center",
        ncols=3,
        title="filled: q; hollow: (q - mean)²; pale: R-hat above 1.05",
    )
