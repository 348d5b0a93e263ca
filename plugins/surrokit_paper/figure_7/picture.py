"""The picture of figure 7."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from surrokit.experiments.contract import Finished
from surrokit_paper.figure_7.report import LEVEL, Summary, hmc_acceptance, summaries
from surrokit_paper.style import LOOKS, common_legend, drawing, ticks_among
from surrokit_paper.surrogates.schemes import SCHEMES

_COLUMNS = 2
_WIDTH, _HEIGHT = 3.6, 2.8  # inches of a panel
_TICKS = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)


def picture(finished: Sequence[Finished]) -> Any:
    """Return a figure with a panel for each problem: acceptance over training points."""
    labels = {row.settings["problem"]: row.settings["label"] for row in finished}
    hmc, found = hmc_acceptance(finished), summaries(finished)
    columns = min(len(labels), _COLUMNS)
    rows = -(-len(labels) // columns)
    size = max(_WIDTH * columns, 5.0), _HEIGHT * rows + 0.8
    with drawing(*size) as figure:
        grid = figure.subplots(rows, columns, sharey=True, squeeze=False)
        axes = grid.ravel()[: len(labels)]
        for ax in grid.ravel()[len(labels) :]:
            ax.set_axis_off()
        for ax, (problem, label) in zip(axes, labels.items(), strict=True):
            if problem in hmc:
                _lines(ax, hmc[problem])
            for summary in found:
                if summary.problem == problem:
                    _band(ax, summary)
            ax.set(xscale="log", ylim=(0.0, 1.0), xlabel="training points", title=label)
            ticks_among(ax, _TICKS)
        for row in grid:
            row[0].set_ylabel("acceptance probability")
        common_legend(figure, axes)
    return figure


def _lines(ax: Any, acceptance: float) -> None:
    look = LOOKS["hmc"]
    ax.axhline(acceptance, color=look.colour, linestyle="-", label="HMC, exact: average")
    ax.axhline(
        LEVEL * acceptance,
        color=look.colour,
        linestyle=look.line,
        linewidth=0.8,
        label=f"{LEVEL} of it",
    )


def _band(ax: Any, summary: Summary) -> None:
    curve, look = summary.curve, LOOKS[summary.scheme]
    known = [i for i, middle in enumerate(curve.median) if middle is not None]
    ends = np.array(curve.ends)[known]
    low, median, high = (
        np.array([numbers[i] for i in known], dtype=np.float64)
        for numbers in (curve.low, curve.median, curve.high)
    )
    ax.fill_between(ends, low, high, color=look.colour, alpha=0.2, linewidth=0)
    label = SCHEMES[summary.scheme].label
    ax.plot(ends, median, markevery=3, label=label, **look.options())
