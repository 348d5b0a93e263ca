"""The picture of figure 8."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from surrokit.experiments.contract import Finished
from surrokit_paper.figure_8.report import HMC, Errors, errors
from surrokit_paper.style import LOOKS, common_legend, drawing
from surrokit_paper.surrogates.schemes import EMULATOR, SCHEMES

KINDS = {"hmc": "HMC", "rns": "RNS-HMC", "arns": "ARNS-HMC"}
"""First words of methods, and what the legend says."""

_WIDTH, _HEIGHT = 3.2, 2.9  # inches of a panel


def picture(finished: Sequence[Finished]) -> Any:
    """Return a figure with a panel for each problem and scheme that applies: error over seconds."""
    found = errors(finished)
    labels = {row.settings["problem"]: row.settings["label"] for row in finished}
    grid = panels(found) or [[(problem, None) for problem in labels]]
    columns = max(len(row) for row in grid)
    size = max(_WIDTH * columns, 6.4), _HEIGHT * len(grid) + 0.5
    with drawing(*size) as figure:
        axes = figure.subplots(len(grid), columns, sharex=True, squeeze=False)
        for line, row in zip(axes, grid, strict=True):
            for ax, (problem, scheme) in zip(line, row, strict=False):
                _panel(ax, [e for e in found if e.problem == problem], scheme, labels[problem])
            for ax in line[len(row) :]:
                ax.set_axis_off()
        _label_the_edges(axes)
        common_legend(figure, axes.ravel())
    return figure


def panels(found: Sequence[Errors]) -> list[list[tuple[str, str | None]]]:
    """Return problem and scheme of each panel, row by row.

    Problems to which the same schemes apply are side by side, one scheme below the other. One that
    has a forward map has a row of its own, for there is one scheme more.

    Parameters
    ----------
    found
        As :func:`~surrokit_paper.figure_8.report.errors` returns them.
    """
    schemes: dict[str, dict[str | None, None]] = {e.problem: {} for e in found}
    for e in found:
        if e.scheme is not None:
            schemes[e.problem][e.scheme] = None
    alone = [problem for problem in schemes if EMULATOR.name in schemes[problem]]
    together = [problem for problem in schemes if problem not in alone]
    below = dict.fromkeys(scheme for problem in together for scheme in schemes[problem])
    rows = [[(problem, scheme) for problem in together] for scheme in below or [None]]
    return [
        *(row for row in rows if row),
        *([(problem, scheme) for scheme in schemes[problem]] for problem in alone),
    ]


def _panel(ax: Any, found: Sequence[Errors], scheme: str | None, label: str) -> None:
    for e in found:
        if e.method == HMC or e.scheme == scheme:
            _curve(ax, e)
    title = label if scheme is None else f"{label}\n{SCHEMES[scheme].label}"
    ax.set(xscale="log", yscale="log", title=title)


def _label_the_edges(axes: Any) -> None:
    """Name the axes of the first panel of each row, and of the last of each column."""
    for row in axes:
        row[0].set_ylabel("relative error of the mean")
    for column in axes.T:
        last = [ax for ax in column if ax.axison][-1]
        last.set_xlabel("processor seconds, training included")
        last.xaxis.set_tick_params(labelbottom=True)


def _curve(ax: Any, e: Errors) -> None:
    kind = e.method.partition("-")[0]
    look = LOOKS[kind]
    known = np.isfinite(e.median) & (e.low > 0)
    if not known.any():
        return
    times = e.times[known]
    ax.fill_between(times, e.low[known], e.high[known], color=look.colour, alpha=0.15, linewidth=0)
    ax.plot(times, e.median[known], markevery=4, label=KINDS[kind], **look.options())
    start = e.numbers["starting_seconds"]
    if start is not None:
        ax.axvline(
            start,
            color=look.colour,
            linestyle=look.line,
            linewidth=0.8,
            label=f"{KINDS[kind]}'s starting phase ends",
        )
