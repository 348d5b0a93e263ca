"""Pictures of a run, by name: densities, the surrogate's errors, and the cost.

Pairs, ranks, traces and others are ArviZ's, of ``run.to_arviz()``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from surrokit.errors import ConfigurationError
from surrokit.limits import one_thread
from surrokit.plots.figure import (
    BLUE,
    CYCLE,
    GREEN,
    GREY,
    INK,
    SKY,
    VERMILION,
    density,
    equally_likely,
    figure_of,
    short_name,
)
from surrokit.types import FloatArray

LARGE = 0.5  #: Error of a surrogate in nats from which on a dot is marked.


def note_on_draws(run: Any) -> str | None:
    """Return what a reader must know of draws; None where nothing."""
    if run.answer is not None:
        return "weighted answers, by their weights"
    return None if run.by_mode is None else "weighted by mode"


class Plots:
    """Pictures of a run; each is a Matplotlib figure, and costs no exact call.

    Weighted answers are shown by their weights, which figures mention. ``parameters`` are
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
        if not run.draws.shape[1]:
            raise ConfigurationError("there are no draws to show; draw some first")
        n, note = len(run.labels), note_on_draws(run)
        columns = list(range(min(n, most)))
        if parameters is not None:
            columns = run.parameters.find(parameters)
        elif n > most:
            note = "; ".join(filter(None, (note, f"the first {most} of {n} numbers")))
        ends = run.highest_density(interval)
        draws = [partial(_marginal, run, i, ends[i]) for i in columns]
        return figure_of(draws, 4, (2.6, 1.7), note)

    def surrogate(self) -> Any:
        """Return the exact potential less the surrogate at draws, over the exact potential.

        Exact values are those that the run has evaluated at its draws. The potential is that of the
        sampling coordinates.
        """
        return figure_of([partial(_errors, *errors_of(self._run))], 1, (4.0, 2.8))

    def cost(self) -> Any:
        """Return exact calls over time, and acceptance."""
        run = self._run
        seconds = np.concatenate([run.warmup.seconds, run.kept.seconds])
        moves = np.concatenate([run.warmup.acceptance, run.kept.acceptance], axis=1)
        went = run.adaptation
        repairs = [each.iteration for each in went.repairs]
        marks = [
            [i for i in places if 0 < i <= len(seconds)] for places in (went.deployments, repairs)
        ]
        draws = [partial(_calls, run, seconds, marks)] if len(seconds) else []
        if run.by_chains and np.isfinite(moves).any():
            draws.append(partial(_acceptance, moves, len(run.warmup), marks))
        return figure_of(draws, 2)


def _marginal(run: Any, column: int, ends: FloatArray, axes: Any) -> None:
    values = equally_likely(run, column)
    middle, (low, high) = float(np.median(values)), ends
    for colour, chain in zip(CYCLE, run.draws[:, :, column], strict=False):
        if run.log_weights is None and (curve := density(chain)) is not None:
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
    axes.set_title(short_name(run.labels[column]))
    axes.set_xlabel(f"{middle:.4g}  [{low:.4g}, {high:.4g}]", fontsize=8)


def errors_of(run: Any) -> tuple[FloatArray, FloatArray]:
    """Return U above its least, and U - V less its median, at up to 400 draws of a run.

    U is the exact potential, which the run has evaluated there, and V the surrogate; potentials are
    known up to a constant.
    """
    most = 400
    if run.surrogate is None:
        raise ConfigurationError(
            "this run has no surrogate to look at: it was exact throughout, or was opened from a "
            "file, which holds none; sample with a surrogate, or use surrokit.resume"
        )
    at, values = run.kept.positions.reshape(-1, run.kept.positions.shape[2]), run.kept.values
    known = np.flatnonzero(np.isfinite(values))
    if len(known) < 2:
        raise ConfigurationError("there are no draws to look at a surrogate by; draw some")
    known = known[:: -(-len(known) // most)]
    exact = values.ravel()[known]
    with one_thread():
        found = np.asarray(run.surrogate.value(at[known]), dtype=np.float64)
    apart = exact - np.where(np.isfinite(found), found, np.nan)
    apart -= np.nanmedian(apart) if np.isfinite(apart).any() else 0.0
    return exact - exact.min(), apart


def _errors(values: FloatArray, errors: FloatArray, axes: Any) -> None:
    large = np.abs(errors) > LARGE
    axes.axhline(0.0, color=GREY, linewidth=0.6)
    axes.plot(values[~large], errors[~large], "o", color=BLUE, markersize=2, alpha=0.6)
    axes.plot(values[large], errors[large], "x", color=VERMILION, markersize=4)
    axes.set(xlabel="exact potential above its least, nats", ylabel="exact less surrogate")
    axes.set(title=f"surrogate at draws: error {np.nanstd(errors):.2g} nats")
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
