"""Intervals of many numbers below one another."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from surrokit.diagnostics import check_probability
from surrokit.plots.panel import Panel, describe, percent
from surrokit.plots.sample import Sample
from surrokit.plots.style import BLUE, GREY, VERMILION, short_name
from surrokit.types import BoolArray, FloatArray

MOST_ROWS = 60
"""Numbers in one panel."""

LARGEST_RHAT = 1.01

INNER = 0.5
"""Probability of the thick part of an interval."""


def forest_panel(
    run: Any, columns: Sequence[int], interval: float, title: str, rhat: FloatArray
) -> Panel:
    """Return a panel with median and intervals of each number, a row for each.

    Parameters
    ----------
    run
        A :class:`~surrokit.result.run.Run`.
    columns
        Places of the numbers; of more than :data:`MOST_ROWS` the first ones are shown.
    interval
        Probability of the long interval; the short one holds a half of it all.
    title
        What these numbers are.
    rhat : ndarray of shape (dim,)
        R-hat of all numbers of the run.
    """
    check_probability(interval)
    sample, shown = Sample.of(run), list(columns[:MOST_ROWS])
    middles = np.array([np.median(sample.marginal(column)) for column in shown])
    places = [int(np.argmin(middles)), int(np.argmax(middles))]
    least, most = (f"{run.titles[shown[i]]} at {describe(middles[i])}" for i in places)
    left = len(columns) - len(shown)
    more = f"; the first {len(shown)} of {len(columns)} numbers" if left else ""
    return Panel(
        title=title,
        text=(
            f"Medians and {percent(interval)} highest-density intervals of {len(shown)} numbers of "
            f"{title}: the least median is that of {least}, the largest that of {most}"
            f"{more}{'; ' + sample.note if sample.note else ''}. The table has all figures."
        ),
        draw=partial(
            _draw,
            title=short_name(title) + (f" (first {len(shown)} of {len(columns)})" if left else ""),
            names=[short_name(run.titles[column]) for column in shown],
            middles=middles,
            inner=run.highest_density(INNER)[shown],
            outer=run.highest_density(interval)[shown],
            doubtful=~(rhat[shown] <= LARGEST_RHAT),
        ),
        width=3.6,
        height=max(1.6, 0.9 + 0.19 * len(shown)),
    )


def _draw(
    axes: Any,
    *,
    title: str,
    names: list[str],
    middles: FloatArray,
    inner: FloatArray,
    outer: FloatArray,
    doubtful: BoolArray,
) -> None:
    rows = np.arange(len(names))
    axes.hlines(rows, outer[:, 0], outer[:, 1], color=BLUE, linewidth=1.0)
    axes.hlines(rows, inner[:, 0], inner[:, 1], color=BLUE, linewidth=3.0)
    axes.plot(middles[~doubtful], rows[~doubtful], "o", color=BLUE, markersize=4)
    if doubtful.any():
        axes.plot(
            middles[doubtful],
            rows[doubtful],
            "D",
            color=VERMILION,
            markersize=5,
            label=f"R-hat above {LARGEST_RHAT}, or missing",
        )
        axes.figure.legend(loc="outside lower center")
    if (outer[:, 0] < 0.0).any() and (outer[:, 1] > 0.0).any():
        axes.axvline(0.0, color=GREY, linewidth=0.6, linestyle=":")
    axes.set_yticks(rows, names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_title(title)
    axes.locator_params(axis="x", nbins=5)
