"""Panels of the posterior: densities, pairs, chains in order, and intervals below one another."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from surrokit.diagnostics import LARGEST_RHAT, check_probability
from surrokit.plots.panel import (
    BLUE,
    CYCLE,
    GREY,
    INK,
    SKY,
    VERMILION,
    Panel,
    Sample,
    density,
    describe,
    draw_dots,
    percent,
    short_name,
)
from surrokit.types import FloatArray, IntArray

MOST_DOTS = 400  #: Draws in a panel of a pair.
AT_ONCE = 60  #: Numbers among which all pairs are compared; of more, the first ones.

_MOST_POINTS = 300  # of a chain in a panel

Pair = tuple[int, int]


def marginal_panels(run: Any, columns: Sequence[int], interval: float) -> list[Panel]:
    """Return the density of each number, with the highest-density interval of a probability."""
    sample, ends = Sample.of(run), run.highest_density(interval)
    return [_marginal(run.titles[i], sample, i, ends[i], percent(interval)) for i in columns]


def _marginal(name: str, sample: Sample, column: int, ends: FloatArray, held: str) -> Panel:
    values = sample.marginal(column)
    middle, (low, high) = float(np.median(values)), ends
    chains = sample.chains[:, :, column] if sample.distribution is None else ()

    def draw(axes: Any) -> None:
        for colour, chain in zip(CYCLE, chains, strict=False):
            if (curve := density(chain)) is not None:
                axes.plot(*curve, color=colour, linewidth=0.5, alpha=0.7)
        if (curve := density(values)) is None:
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
        axes.set_title(short_name(name))
        axes.set_xlabel(f"{describe(middle)}  [{describe(low)}, {describe(high)}]", fontsize=8)

    text = (
        f"Density of {name}: median {describe(middle)}, {held} highest-density interval from "
        f"{describe(low)} to {describe(high)}{after(sample.note)}."
    )
    return Panel(title=name, text=text, draw=draw, width=2.6, height=1.7)


def after(note: str | None) -> str:
    """Return a note as the end of a sentence."""
    return "" if note is None else f"; {note}"


def pair_panels(run: Any, pairs: Sequence[Pair]) -> list[Panel]:
    """Return the draws of each pair of numbers, with diverged paths as crosses."""
    sample = Sample.of(run)
    ranks = _ranks(sample.rows)
    rows = sample.rows[:: -(-len(sample.rows) // MOST_DOTS)]
    diverged = run.draws[run.kept.divergent] if run.exact else run.draws[:0, 0]
    tail = (f", {len(diverged)} paths diverged" if len(diverged) else "") + after(sample.note)
    return [_pair(run.titles, pair, rows, diverged[:MOST_DOTS], ranks, tail) for pair in pairs]


def _pair(
    titles: list[str],
    pair: Pair,
    rows: FloatArray,
    diverged: FloatArray,
    ranks: IntArray,
    tail: str,
) -> Panel:
    first, second = pair
    names = [titles[first], titles[second]]
    correlation = float(_correlation(ranks[:, [first, second]])[0, 1])

    def draw(axes: Any) -> None:
        draw_dots(axes, rows[:, first], rows[:, second], colour=BLUE, size=2.2, alpha=0.5)
        if len(diverged):
            x, y = diverged[:, first], diverged[:, second]
            axes.plot(x, y, "x", color=VERMILION, markersize=5)
        axes.set(xlabel=short_name(names[0]), ylabel=short_name(names[1]))
        axes.locator_params(nbins=4)
        axes.set_title(f"rank correlation {correlation:.2f}", fontsize=8)

    text = f"Draws of {names[0]} and {names[1]}: rank correlation {correlation:.2f}{tail}."
    return Panel(title=" and ".join(names), text=text, draw=draw, width=2.6, height=2.3)


def strongest_pairs(run: Any, n: int) -> list[Pair]:
    """Return n pairs at most, of the largest rank correlations in absolute value, in their order.

    They are pairs of the first :data:`AT_ONCE` numbers.
    """
    rows = Sample.of(run).rows[:, :AT_ONCE]
    strength = np.abs(_correlation(_ranks(rows)))
    pairs = combinations(range(rows.shape[1]), 2)
    return sorted(pairs, key=lambda pair: -strength[pair])[:n]


def most_correlated(run: Any, n: int) -> list[int]:
    """Return the places of at most n numbers of the strongest pairs, in order."""
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


def trace_panels(run: Any, columns: Sequence[int], rhat: FloatArray) -> list[Panel]:
    """Return the draws of each number by chain, in order; R-hat is of all numbers of the run."""
    sample = Sample.of(run)
    n = sample.chains.shape[1]
    divergent = run.kept.divergent.any(axis=0) if run.exact else np.zeros(n, dtype=bool)
    at, tail = np.flatnonzero(divergent)[:_MOST_POINTS], after(sample.note_on_chains)
    return [_trace(run.titles[i], sample.chains[:, :, i], at, rhat[i], tail) for i in columns]


def _trace(name: str, chains: FloatArray, divergent: IntArray, rhat: float, tail: str) -> Panel:
    n = chains.shape[1]
    text = f"Draws of {name} in {len(chains)} chains, in order; R-hat is {rhat:.3f}{tail}."

    def draw(axes: Any) -> None:
        places = np.arange(0, n, -(-n // _MOST_POINTS))
        for colour, chain in zip(CYCLE, chains, strict=False):
            axes.plot(places, chain[places], color=colour, linewidth=0.6, alpha=0.8)
        if divergent.size:
            ends = np.full(divergent.size, chains.min())
            axes.plot(divergent, ends, "|", color=VERMILION, markersize=7)
        axes.set(title=short_name(name), xlabel="draw", xlim=(0, max(n - 1, 1)))
        axes.locator_params(nbins=5)

    return Panel(title=name, text=text, draw=draw, height=1.6)


def forest_panel(
    run: Any, columns: Sequence[int], interval: float, title: str, rhat: FloatArray
) -> Panel:
    """Return medians and intervals, a row for each of the first 60 columns.

    R-hat is of all numbers of the run; rows where it is large have another mark.
    """
    check_probability(interval)
    sample, shown = Sample.of(run), list(columns[:60])
    middles = np.array([np.median(sample.marginal(column)) for column in shown])
    inner, outer = (run.highest_density(each)[shown] for each in (0.5, interval))
    doubtful = ~(rhat[shown] <= LARGEST_RHAT)
    least, most = (
        f"{run.titles[shown[i]]} at {describe(middles[i])}"
        for i in (int(np.argmin(middles)), int(np.argmax(middles)))
    )
    part = f"first {len(shown)} of {len(columns)}" if len(shown) < len(columns) else ""
    text = (
        f"Medians and {percent(interval)} highest-density intervals of {len(shown)} numbers of "
        f"{title}: the least median is that of {least}, the largest that of {most}"
        f"{f'; the {part} numbers' if part else ''}{after(sample.note)}. The table has all figures."
    )

    def draw(axes: Any) -> None:
        rows = np.arange(len(shown))
        axes.hlines(rows, outer[:, 0], outer[:, 1], color=BLUE, linewidth=1.0)
        axes.hlines(rows, inner[:, 0], inner[:, 1], color=BLUE, linewidth=3.0)
        axes.plot(middles[~doubtful], rows[~doubtful], "o", color=BLUE, markersize=4)
        if doubtful.any():
            label = f"R-hat above {LARGEST_RHAT}, or missing"
            mark = {"color": VERMILION, "markersize": 5, "label": label}
            axes.plot(middles[doubtful], rows[doubtful], "D", **mark)
            axes.figure.legend(loc="outside lower center")
        if (outer[:, 0] < 0.0).any() and (outer[:, 1] > 0.0).any():
            axes.axvline(0.0, color=GREY, linewidth=0.6, linestyle=":")
        axes.set_yticks(rows, [short_name(run.titles[column]) for column in shown])
        axes.set_ylim(len(shown) - 0.4, -0.6)
        axes.set_title(short_name(title) + (f" ({part})" if part else ""))
        axes.locator_params(axis="x", nbins=5)

    height = max(1.6, 0.9 + 0.19 * len(shown))
    return Panel(title=title, text=text, draw=draw, width=3.6, height=height)
