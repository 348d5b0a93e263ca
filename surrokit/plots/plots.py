"""Pictures of a run, by name: densities, pairs, ranks, the surrogate's errors, and the cost.

What else ArviZ draws, such as traces, forests and energies, it draws of ``run.to_arviz()``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from surrokit.errors import ConfigurationError
from surrokit.plots.figure import (
    BLUE,
    CYCLE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    SKY,
    VERMILION,
    Sample,
    density,
    figure_of,
    in_rows,
    short_name,
)
from surrokit.plots.surrogate import LARGE, Comparison
from surrokit.types import FloatArray

AT_ONCE = 60  #: Numbers among which all pairs are compared; of more, the first ones.

_MOST_DOTS = 400  # in a picture of a pair


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

    def __repr__(self) -> str:
        names = ", ".join(name for name in vars(type(self)) if not name.startswith("_"))
        return f"<Plots: {names}>"

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
        return figure_of(in_rows(draws, min(4, len(draws))), (2.6, 1.7), note)

    def pairs(self, parameters: Iterable[str] | None = None) -> Any:
        """Return draws of each pair of 2 to 6 numbers, with diverged paths as crosses.

        By default they are the 4 numbers with the largest rank correlations.
        """
        run, most = self._run, 6
        columns = most_correlated(run, 4) if parameters is None else run.parameters.find(parameters)
        if not 2 <= len(columns) <= most:
            raise ConfigurationError(
                f"pairs takes 2 to {most} numbers, got {len(columns)}; name some of them in "
                "parameters="
            )
        sample = Sample.of(run)
        strength = _correlations(sample.rows)
        rows = sample.rows[:: -(-len(sample.rows) // _MOST_DOTS)]
        diverged = run.draws[run.kept.divergent][:_MOST_DOTS] if run.exact else run.draws[:0, 0]
        at = {}
        for j, second in enumerate(columns):
            for i, first in enumerate(columns[:j]):
                names, both = (run.labels[first], run.labels[second]), [first, second]
                dots = rows[:, both], diverged[:, both]
                at[j - 1, i] = partial(_pair, names, *dots, strength[first, second])
        return figure_of(at, (2.6, 2.3), sample.note)

    def ranks(self, parameters: Iterable[str] | None = None) -> Any:
        """Return how the ranks of each chain's draws are spread, by default of 12 numbers.

        These have the largest R-hat. Where chains agree, all lines are about equally high (Vehtari
        et al. 2021, doi:10.1214/20-BA1221).
        """
        run = self._run
        chains, rhat = Sample.of(run).chains, np.nan_to_num(run.rhat(), nan=np.inf)
        worst = np.sort(np.argsort(-rhat, kind="stable")[:12])
        columns = worst.tolist() if parameters is None else run.parameters.find(parameters)
        draws = [partial(_ranks, run.labels[i], chains[:, :, i]) for i in columns]
        before = None if run.answer is None else "chains on the surrogate, before weights"
        return figure_of(in_rows(draws, min(4, len(draws))), (2.6, 1.6), before)

    def surrogate(self, parameters: Iterable[str] | None = None) -> Any:
        """Return the surrogate against the exact potential: at draws, and along lines.

        Lines go through the mean of the draws, by default along the 4 numbers with the largest rank
        correlations; the other numbers go along as they do in the draws. Exact values are those
        that the run has evaluated at its draws: a dot is as far from the curve as the exact
        potential is from the surrogate at that draw. The potential is that of the sampling
        coordinates.
        """
        run, found = self._run, Comparison.of(self._run)
        free = run.kept.positions.shape[2]
        if free == len(run.labels):
            named = parameters is not None
            columns = run.parameters.find(parameters) if named else most_correlated(run, 4)
        elif parameters is None:
            columns = list(range(min(free, 4)))
        else:
            raise ConfigurationError(
                "parameters cannot be named here: constraints tie numbers together, and the "
                "surrogate has others; leave parameters out"
            )
        lines = [partial(_line, found, column) for column in columns]
        return figure_of(in_rows([partial(_errors, found), *lines], 3))

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
        return figure_of(in_rows(draws, 2))


def strongest_pairs(run: Any) -> list[tuple[int, int]]:
    """Return all pairs of the first :data:`AT_ONCE` numbers, by their rank correlations."""
    strength = np.abs(_correlations(Sample.of(run).rows[:, :AT_ONCE]))
    return sorted(combinations(range(len(strength)), 2), key=lambda pair: -strength[pair])


def most_correlated(run: Any, n: int) -> list[int]:
    """Return the places of at most n numbers of the strongest pairs, in order."""
    found = dict.fromkeys(i for pair in strongest_pairs(run) for i in pair)
    return sorted([*found][:n]) or [0]


def _correlations(rows: FloatArray) -> FloatArray:
    """Return rank correlations of all pairs, 0 for numbers that do not vary."""
    ranks = np.argsort(np.argsort(rows, axis=0), axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(np.atleast_2d(np.corrcoef(ranks, rowvar=False)))


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


def _pair(
    names: tuple[str, str], rows: FloatArray, diverged: FloatArray, correlation: float, axes: Any
) -> None:
    axes.plot(*rows.T, "o", color=BLUE, markersize=1.5, alpha=0.5)
    axes.plot(*diverged.T, "x", color=VERMILION, markersize=5)
    axes.set(xlabel=short_name(names[0]), ylabel=short_name(names[1]))
    axes.locator_params(nbins=4)
    axes.set_title(f"rank correlation {correlation:.2f}", fontsize=8)


def _ranks(name: str, chains: FloatArray, axes: Any) -> None:
    from arviz_stats.base import array_stats

    n, bins = chains.shape[1], 16
    ranks = np.reshape(array_stats.compute_ranks(chains.ravel(), relative=True), chains.shape)
    edges = np.linspace(0.0, 1.0, bins + 1)
    shares = np.array([np.histogram(chain, edges)[0] for chain in ranks]) / (n / bins)
    spread = 2.0 / np.sqrt(max(n / bins, 1.0))
    axes.axhspan(1.0 - spread, 1.0 + spread, color=GREY, alpha=0.15, linewidth=0)
    axes.axhline(1.0, color=GREY, linewidth=0.6)
    for colour, row in zip(CYCLE, shares, strict=False):
        axes.stairs(row, edges, color=colour, linewidth=1.0, baseline=None)
    axes.set_ylim(0.0, max(2.0, 1.1 * float(shares.max())))
    axes.set(xlabel="rank among all chains", xlim=(0.0, 1.0), title=short_name(name))


def _errors(found: Comparison, axes: Any) -> None:
    values, errors, large = found.values, found.errors, np.abs(found.errors) > LARGE
    axes.axhline(0.0, color=GREY, linewidth=0.6)
    axes.plot(values[~large], errors[~large], "o", color=BLUE, markersize=2, alpha=0.6)
    axes.plot(values[large], errors[large], "x", color=VERMILION, markersize=4)
    axes.set(xlabel="exact potential above its least, nats", ylabel="exact less surrogate")
    axes.set(title=f"surrogate at draws: error {found.spread:.2g} nats")
    axes.locator_params(nbins=5)


def _line(found: Comparison, column: int, axes: Any) -> None:
    at = found.line(column)
    x, curve = found.place(at, column), found.surrogate_at(at)
    curve -= curve[len(curve) // 2]
    axes.plot(x, curve, color=BLUE, label="surrogate")
    where = found.place(found.positions, column)
    inside, order = (where >= x.min()) & (where <= x.max()), np.argsort(x)
    heights = np.interp(where, x[order], curve[order]) + found.errors
    dots = {"color": ORANGE, "markersize": 2, "alpha": 0.7, "label": "exact at draws"}
    axes.plot(where[inside], heights[inside], "o", **dots)
    top = float(np.nanquantile(curve, 0.97))
    axes.set_ylim(np.nanmin(curve) - 0.5, max(top, 1.0) + 0.5)
    axes.set(ylabel="nats", title=short_name(found.label(column)))
    axes.legend(loc="upper center")
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
