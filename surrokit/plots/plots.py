"""Pictures of a run, by name: densities, the surrogate's errors, and the cost.

Pairs, ranks, traces and others are ArviZ's, of ``run.to_arviz()``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from surrokit.plots.figure import (
    BLUE,
    CYCLE,
    GREEN,
    GREY,
    INK,
    SKY,
    VERMILION,
    Sample,
    density,
    figure_of,
    short_name,
)
from surrokit.plots.surrogate import LARGE, Comparison
from surrokit.types import FloatArray


class Plots:
    """Pictures of a run; each is a Matplotlib figure, and costs no exact call.

    Weighted answers are shown resampled by their weights, and figures say so. ``parameters`` are
    names of parameters, or of single numbers such as ``w[0]``. Each method raises a
    ConfigurationError if there are no draws, or an argument makes no sense, and a
    MissingDependencyError if Matplotlib is not installed. Other pictures are ArviZ's, by
    :meth:`surrokit.Run.to_arviz`.
    """

    def __init__(self, run: Any) -> None:
        self._run = run

    def marginals(self, parameters: Iterable[str] | None = None, *, interval: float = 0.9) -> Any:
        """Return densities of numbers, by chain and of all, with highest-density intervals.

        By default they are the first 24 numbers.
        """
        run, most = self._run, 24
        sample, n = Sample.of(run), len(run.labels)
        columns, note = list(range(min(n, most))), sample.note
        if parameters is not None:
            columns = run.parameters.find(parameters)
        elif n > most:
            note = "; ".join(filter(None, (note, f"the first {most} of {n} numbers")))
        ends = run.highest_density(interval)
        draws = [partial(_marginal, run.labels[i], sample, i, ends[i]) for i in columns]
        return figure_of(draws, 4, (2.6, 1.7), note)

    def surrogate(self) -> Any:
        """Return the exact potential less the surrogate at draws, over the exact potential.

        Exact values are those that the run has evaluated at its draws. The potential is that of the
        sampling coordinates.
        """
        return figure_of([partial(_errors, Comparison.of(self._run))], 1, (4.0, 2.8))

    def cost(self) -> Any:
        """Return exact calls over time, and acceptance."""
        run = self._run
        seconds = np.concatenate([run.warmup.seconds, run.kept.seconds])
        moves = np.concatenate([run.warmup.acceptance, run.kept.acceptance], axis=1)
        went = run.adaptation
        repairs = [each.iteration for each in went.rescues]
        marks = [
            [i for i in places if 0 < i <= len(seconds)] for places in (went.deployments, repairs)
        ]
        draws = [partial(_calls, run, seconds, marks)] if len(seconds) else []
        if run.exact and np.isfinite(moves).any():
            draws.append(partial(_acceptance, moves, len(run.warmup), marks))
        return figure_of(draws, 2)


def _marginal(name: str, sample: Sample, column: int, ends: FloatArray, axes: Any) -> None:
    values = sample.marginal(column)
    middle, (low, high) = float(np.median(values)), ends
    for colour, chain in zip(CYCLE, sample.chains[:, :, column], strict=False):
        if sample.distribution is None and (curve := density(chain)) is not None:
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
    axes.set_xlabel(f"{middle:.4g}  [{low:.4g}, {high:.4g}]", fontsize=8)


def _errors(found: Comparison, axes: Any) -> None:
    values, errors, large = found.values, found.errors, np.abs(found.errors) > LARGE
    axes.axhline(0.0, color=GREY, linewidth=0.6)
    axes.plot(values[~large], errors[~large], "o", color=BLUE, markersize=2, alpha=0.6)
    axes.plot(values[large], errors[large], "x", color=VERMILION, markersize=4)
    axes.set(xlabel="exact potential above its least, nats", ylabel="exact less surrogate")
    axes.set(title=f"surrogate at draws: error {found.spread:.2g} nats")
    axes.locator_params(nbins=5)


def _mark(axes: Any, marks: Sequence[Sequence[float]]) -> None:
    styles = ((GREEN, "--", "surrogate deployed"), (VERMILION, ":", "repaired"))
    for places, (colour, style, label) in zip(marks, styles, strict=True):
        for i, place in enumerate(places[:: max(-(-len(places) // 30), 1)]):
            named = {} if i else {"label": label}
            axes.axvline(place, color=colour, linestyle=style, linewidth=1.0, **named)


def _calls(run: Any, seconds: FloatArray, marks: list[list[int]], axes: Any) -> None:
    if len(run.warmup):
        axes.axvspan(0.0, seconds[len(run.warmup) - 1], color=GREY, alpha=0.15, linewidth=0)
    for colour, kind in zip(CYCLE, (kind for kind, n in run.calls.items() if n), strict=False):
        counts = np.concatenate([[0], run.warmup.calls[kind], run.kept.calls[kind]])
        axes.plot(np.append(0.0, seconds), counts, color=colour, label=kind)
    _mark(axes, [[seconds[i - 1] for i in each] for each in marks])
    axes.set(xlabel="seconds (warm-up is grey)", title="exact calls so far", xlim=(0.0, None))
    axes.set_ylim(bottom=0.0)
    axes.legend()


def _acceptance(moves: FloatArray, warmup: int, marks: list[list[int]], axes: Any) -> None:
    n, known = moves.shape[1], np.isfinite(moves)
    size = max(20, n // 100)  # iterations over which acceptance is averaged
    starts, each = np.arange(0, n, size), (np.where(known, moves, 0.0), known)
    with np.errstate(invalid="ignore"):
        sums, counts = (np.add.reduceat(one.sum(axis=0), starts) for one in each)
        means = sums / counts
    if warmup:
        axes.axvspan(0, warmup, color=GREY, alpha=0.15, linewidth=0)
    axes.plot(np.minimum(starts + 0.5 * size, n), means, color=BLUE, marker="o", markersize=2.5)
    _mark(axes, marks)
    axes.set(xlabel="iteration (warm-up is grey)", title="acceptance", ylim=(0.0, 1.03))
    if any(marks):
        axes.legend(loc="lower right")
