"""Densities of single numbers, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from surrokit.plots.panel import Panel, describe, percent
from surrokit.plots.sample import Sample, density
from surrokit.plots.style import BLUE, CYCLE, INK, SKY, short_name
from surrokit.types import FloatArray


def marginal_panels(run: Any, columns: Sequence[int], interval: float) -> list[Panel]:
    """Return a panel for each number: its density, and its highest-density interval.

    Parameters
    ----------
    run
        A :class:`~surrokit.result.run.Run`.
    columns
        Places of the numbers.
    interval
        Probability of the interval.
    """
    sample, ends = Sample.of(run), run.highest_density(interval)
    panels = []
    for column in columns:
        values = sample.marginal(column)
        middle, (low, high) = float(np.median(values)), ends[column]
        panels.append(
            Panel(
                title=run.titles[column],
                text=(
                    f"Density of {run.titles[column]}: median {describe(middle)}, "
                    f"{percent(interval)} highest-density interval from {describe(low)} to "
                    f"{describe(high)}"
                    f"{'; ' + sample.note if sample.note else ''}."
                ),
                draw=partial(
                    _draw,
                    title=short_name(run.titles[column]),
                    values=values,
                    chains=None if sample.weighted else sample.chains[:, :, column],
                    middle=middle,
                    ends=(float(low), float(high)),
                ),
                width=2.6,
                height=1.7,
            )
        )
    return panels


def _draw(
    axes: Any,
    *,
    title: str,
    values: FloatArray,
    chains: FloatArray | None,
    middle: float,
    ends: tuple[float, float],
) -> None:
    low, high = ends
    for colour, chain in zip(CYCLE, () if chains is None else chains, strict=False):
        if (curve := density(chain)) is not None:
            axes.plot(*curve, color=colour, linewidth=0.5, alpha=0.7)
    curve = density(values)
    if curve is None:
        axes.axvline(middle, color=BLUE)
    else:
        grid, heights = curve
        inside = (grid >= low) & (grid <= high)
        axes.fill_between(grid, heights, where=inside, color=SKY, alpha=0.45, linewidth=0)
        axes.plot(grid, heights, color=BLUE)
        axes.set_ylim(bottom=0.0)
    axes.plot([low, high], [0.0, 0.0], color=INK, linewidth=2.5, clip_on=False)
    axes.plot([middle], [0.0], "o", color=INK, markersize=5, clip_on=False)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.locator_params(axis="x", nbins=5)
    axes.set_title(title)
    axes.set_xlabel(f"{describe(middle)}  [{describe(low)}, {describe(high)}]", fontsize=8)
