"""The picture of figure 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from surrokit.experiments.contract import Finished
from surrokit.types import FloatArray
from surrokit_paper.style import BLACK, GREY, LOOKS, common_legend, drawing
from surrokit_paper.surrogates.methods import Method

OURS = ("additive-default", "additive-gradients")
"""Drawn in a row of their own."""

_MARK_EVERY = 5


def picture(finished: Sequence[Finished], grid: FloatArray, methods: Sequence[Method]) -> Any:
    """Return a figure with a column for each N: the paper's surrogates above, ours below.

    Parameters
    ----------
    finished
        Rows of figure 1.
    grid : ndarray of shape (n,)
        Where the curves are kept.
    methods
        In the order of the legend.
    """
    sizes = sorted({row.settings["n_points"] for row in finished})
    paper = [method.name for method in methods if method.name not in OURS]
    width = max(2.5 * len(sizes), 4.8)
    with drawing(width, 5.6) as figure:
        axes = figure.subplots(2, len(sizes), sharex=True, sharey=True, squeeze=False)
        for names, line in zip((paper, OURS), axes, strict=True):
            for n, ax in zip(sizes, line, strict=True):
                rows = {
                    row.settings["method"]: row for row in finished if row.settings["n_points"] == n
                }
                _panel(ax, [rows[name] for name in names if name in rows], grid)
                _points(ax, next(iter(rows.values())))
        for n, ax in zip(sizes, axes[0], strict=True):
            ax.set_title(f"N = {n}")
        for ax in axes[-1]:
            ax.set_xlabel("x")
        axes[0, 0].set(xlim=(grid[0], grid[-1]), ylim=(-2.0, 9.0))
        for ax, whose in zip(axes[:, 0], ("the paper's settings", "this project's"), strict=True):
            ax.set_ylabel(f"potential U(x), in nats\n{whose}")
        common_legend(figure, axes.flat, 3)
    return figure


def _panel(ax: Any, rows: Sequence[Finished], grid: FloatArray) -> None:
    ax.plot(grid, 0.5 * grid**2, color=BLACK, linewidth=2.6, alpha=0.35, label="truth, x²/2")
    for i, row in enumerate(rows):
        look = LOOKS[row.settings["method"]]
        low, mean, high = (
            np.array(row.result[which], dtype=np.float64) for which in ("low", "mean", "high")
        )
        ax.fill_between(grid, low, high, color=look.colour, alpha=0.13, linewidth=0)
        ax.plot(
            grid, mean, **look.options(), markevery=(i, _MARK_EVERY), label=row.settings["label"]
        )


def _points(ax: Any, row: Finished) -> None:
    points, values = row.result["points"], row.result["values"]
    ax.plot(points, values, linestyle="none", marker=".", color=GREY, label="observations")
