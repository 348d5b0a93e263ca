"""The picture of table 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from surrokit.experiments.contract import Finished
from surrokit_paper.style import BLACK, BLUE, GREY, VERMILION, common_legend, drawing
from surrokit_paper.table_1.methods import METHODS
from surrokit_paper.table_1.paper import PRINTED
from surrokit_paper.table_1.summary import Summary, summaries


def picture(finished: Sequence[Finished]) -> Any:
    """Return a figure with a panel for each problem: effective draws a second of each method."""
    found = summaries(finished)
    problems = {one.problem: one.problem_label for one in found}
    methods = [name for name in METHODS if any(one.method == name for one in found)]
    columns = min(len(problems), 2)
    rows = -(-len(problems) // columns)
    size = (2.0 + 3.4 * columns, 1.2 + rows * (0.7 + 0.19 * len(methods)))
    with drawing(*size) as figure:
        grid = figure.subplots(rows, columns, sharey=True, squeeze=False)
        axes = list(grid.flat)
        for ax, (problem, label) in zip(axes, problems.items(), strict=False):
            _panel(ax, [one for one in found if one.problem == problem], methods)
            ax.set_title(label)
        for ax in axes[len(problems) :]:
            ax.set_visible(False)
        for ax in axes[max(len(problems) - columns, 0) : len(problems)]:
            ax.set_xlabel("min(ESS) a second of sampling")
        grid[0, 0].set_yticks(range(len(methods)), [METHODS[name].label for name in methods])
        grid[0, 0].set_ylim(len(methods) - 0.5, -0.5)
        common_legend(figure, axes)
    return figure


def _panel(ax: Any, found: Sequence[Summary], methods: Sequence[str]) -> None:
    places = {name: place for place, name in enumerate(methods)}
    for place in range(len(methods)):
        ax.axhline(place, color=GREY, linewidth=0.3, alpha=0.5, zorder=0)
    here = [(one.rate, places[one.method]) for one in found]
    charged = [(one.charged_rate, places[one.method]) for one in found]
    printed = [
        (PRINTED[one.problem, one.method].rate, places[one.method])
        for one in found
        if (one.problem, one.method) in PRINTED
    ]
    _dots(ax, here, label="here, as run", marker="o", color=BLUE)
    _dots(ax, charged, label="here, HMC charged as the authors do", marker="s", color=VERMILION)
    _dots(
        ax, printed, label="the paper, its machine", marker="D", markerfacecolor="none", color=BLACK
    )
    ax.set_xscale("log")
    ax.tick_params(axis="y", length=0)


def _dots(ax: Any, points: Sequence[tuple[float | None, int]], **options: Any) -> None:
    known = [(rate, place) for rate, place in points if rate is not None]
    if known:
        ax.plot(*zip(*known, strict=True), linestyle="none", **options)
