"""Chains, draw by draw."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from surrokit.plots.panel import Panel
from surrokit.plots.sample import Sample
from surrokit.plots.style import CYCLE, VERMILION, short_name
from surrokit.types import BoolArray, FloatArray

MOST_POINTS = 300
"""Of a chain in a panel."""


def trace_panels(run: Any, columns: Sequence[int], rhat: FloatArray) -> list[Panel]:
    """Return a panel for each number: the draws of each chain, in order.

    Parameters
    ----------
    run
        A :class:`~surrokit.result.run.Run`.
    columns
        Places of the numbers.
    rhat : ndarray of shape (dim,)
        R-hat of all numbers of the run.
    """
    sample = Sample.of(run)
    divergent = run.kept.divergent if run.exact else None
    return [
        Panel(
            title=run.titles[column],
            text=(
                f"Draws of {run.titles[column]} in {len(sample.chains)} chains, in order; R-hat is "
                f"{rhat[column]:.3f}"
                f"{'; ' + sample.note_on_chains if sample.note_on_chains else ''}."
            ),
            draw=partial(
                _draw,
                title=short_name(run.titles[column]),
                chains=sample.chains[:, :, column],
                divergent=divergent,
            ),
            width=3.2,
            height=1.6,
        )
        for column in columns
    ]


def _draw(axes: Any, *, title: str, chains: FloatArray, divergent: BoolArray | None) -> None:
    n = chains.shape[1]
    places = np.arange(0, n, -(-n // MOST_POINTS))
    for colour, chain in zip(CYCLE, chains, strict=False):
        axes.plot(places, chain[places], color=colour, linewidth=0.6, alpha=0.8)
    if divergent is not None and (where := np.flatnonzero(divergent.any(axis=0))).size:
        ends = np.full(min(where.size, MOST_POINTS), chains.min())
        axes.plot(where[:MOST_POINTS], ends, "|", color=VERMILION, markersize=7)
    axes.set_title(title)
    axes.set_xlabel("draw")
    axes.set_xlim(0, max(n - 1, 1))
    axes.locator_params(nbins=5)
