"""Draws of two numbers against one another."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from surrokit.plots.panel import Panel
from surrokit.plots.sample import Sample
from surrokit.plots.style import BLUE, VERMILION, draw_dots, short_name
from surrokit.types import FloatArray, IntArray

MOST_DOTS = 400
"""Draws in one panel."""

AT_ONCE = 60
"""Numbers among which all pairs are compared; of more, the first ones."""

Pair = tuple[int, int]


def pair_panels(run: Any, pairs: Sequence[Pair]) -> list[Panel]:
    """Return a panel of draws for each pair of numbers.

    Parameters
    ----------
    run
        A :class:`~surrokit.result.run.Run`.
    pairs
        Places of the two numbers.
    """
    sample = Sample.of(run)
    rows, ranks = sample.thin_rows(MOST_DOTS), _ranks(sample.rows)
    diverged = run.draws[run.kept.divergent] if run.exact else run.draws[:0, 0]
    panels = []
    for i, j in pairs:
        names = run.titles[i], run.titles[j]
        correlation = float(_correlation(ranks[:, [i, j]])[0, 1])
        panels.append(
            Panel(
                title=f"{names[0]} and {names[1]}",
                text=(
                    f"Draws of {names[0]} and {names[1]}: rank correlation {correlation:.2f}"
                    f"{f', {len(diverged)} paths diverged' if len(diverged) else ''}"
                    f"{'; ' + sample.note if sample.note else ''}."
                ),
                draw=partial(
                    _draw,
                    names=(short_name(names[0]), short_name(names[1])),
                    rows=rows[:, [i, j]],
                    diverged=diverged[:MOST_DOTS, [i, j]],
                    correlation=correlation,
                ),
                width=2.6,
                height=2.3,
            )
        )
    return panels


def strongest_pairs(run: Any, n: int, columns: Sequence[int] | None = None) -> list[Pair]:
    """Return the pairs of numbers that tell most of one another, the strongest first.

    They are those of the largest rank correlations, in absolute value.

    Parameters
    ----------
    run
        A :class:`~surrokit.result.run.Run`.
    n
        Pairs at most.
    columns
        Places among which to look; None for the first :data:`AT_ONCE` numbers.
    """
    rows = Sample.of(run).rows
    among = list(range(min(rows.shape[1], AT_ONCE)) if columns is None else columns)
    strength = np.abs(_correlation(_ranks(rows[:, among])))
    pairs = sorted(combinations(range(len(among)), 2), key=lambda pair: -strength[pair])
    return [(among[i], among[j]) for i, j in pairs[:n]]


def numbers_that_matter(run: Any, n: int) -> list[int]:
    """Return the places of at most n numbers that tell most of one another, in order."""
    found: list[int] = []
    for pair in strongest_pairs(run, AT_ONCE**2):
        found += [column for column in pair if column not in found]
        if len(found) >= n:
            break
    return sorted(found[:n]) or [0]


def _ranks(rows: FloatArray) -> IntArray:
    return np.argsort(np.argsort(rows, axis=0), axis=0)


def _correlation(ranks: IntArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(np.atleast_2d(np.corrcoef(ranks, rowvar=False)))


def _draw(
    axes: Any, *, names: tuple[str, str], rows: FloatArray, diverged: FloatArray, correlation: float
) -> None:
    draw_dots(axes, rows[:, 0], rows[:, 1], colour=BLUE, size=2.2, alpha=0.5)
    if len(diverged):
        axes.plot(diverged[:, 0], diverged[:, 1], "x", color=VERMILION, markersize=5)
    axes.set_xlabel(names[0])
    axes.set_ylabel(names[1])
    axes.locator_params(nbins=4)
    axes.set_title(f"rank correlation {correlation:.2f}", fontsize=8)
