"""Panels of a run: densities, pairs, ranks, the surrogate's errors, and what the run cost.

What else ArviZ draws, such as traces, forests and energies, it draws of ``run.to_arviz()``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import attrs
import numpy as np

from surrokit.errors import ConfigurationError
from surrokit.limits import one_thread
from surrokit.plots.panel import (
    BLUE,
    CYCLE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    SKY,
    VERMILION,
    Panel,
    Sample,
    density,
    short_name,
)
from surrokit.potentials import Potential
from surrokit.types import FloatArray

AT_ONCE = 60  #: Numbers among which all pairs are compared; of more, the first ones.
LARGE = 0.5  #: Error of a surrogate in nats from which on a dot is marked.

_MOST_DOTS = 400

Pair = tuple[int, int]

# --- the posterior ---


def marginal_panels(run: Any, columns: Sequence[int], interval: float) -> list[Panel]:
    """Return the density of each number, with the highest-density interval of a probability."""
    sample, ends = Sample.of(run), run.highest_density(interval)
    return [_marginal(run.titles[i], sample, i, ends[i], interval) for i in columns]


def _marginal(name: str, sample: Sample, column: int, ends: FloatArray, held: float) -> Panel:
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
        axes.set_xlabel(f"{middle:.4g}  [{low:.4g}, {high:.4g}]", fontsize=8)

    text = (
        f"Density of {name}: median {middle:.4g}, {percent(held)} highest-density interval from "
        f"{low:.4g} to {high:.4g}."
    )
    return Panel(text=text, draw=draw, width=2.6, height=1.7)


def percent(probability: float) -> str:
    """Return a probability in percent, with all of its digits."""
    return f"{100.0 * probability:.6g}%"


def pair_panels(run: Any, pairs: Sequence[Pair]) -> list[Panel]:
    """Return the draws of each pair of numbers, with diverged paths as crosses."""
    rows = Sample.of(run).rows
    strength, shown = _correlations(rows), rows[:: -(-len(rows) // _MOST_DOTS)]
    diverged = run.draws[run.kept.divergent] if run.exact else run.draws[:0, 0]
    return [_pair(run.titles, each, shown, diverged[:_MOST_DOTS], strength[each]) for each in pairs]


def _pair(
    titles: list[str], pair: Pair, rows: FloatArray, diverged: FloatArray, correlation: float
) -> Panel:
    (first, second), (x, y) = pair, (titles[i] for i in pair)

    def draw(axes: Any) -> None:
        axes.plot(rows[:, first], rows[:, second], "o", color=BLUE, markersize=1.5, alpha=0.5)
        axes.plot(diverged[:, first], diverged[:, second], "x", color=VERMILION, markersize=5)
        axes.set(xlabel=short_name(x), ylabel=short_name(y))
        axes.locator_params(nbins=4)
        axes.set_title(f"rank correlation {correlation:.2f}", fontsize=8)

    text = f"Draws of {x} and {y}: rank correlation {correlation:.2f}."
    return Panel(text=text, draw=draw, width=2.6, height=2.3)


def _correlations(rows: FloatArray) -> FloatArray:
    """Return rank correlations of all pairs, 0 for numbers that do not vary."""
    ranks = np.argsort(np.argsort(rows, axis=0), axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(np.atleast_2d(np.corrcoef(ranks, rowvar=False)))


def strongest_pairs(run: Any, n: int) -> list[Pair]:
    """Return n pairs at most, of the largest rank correlations in absolute value, in their order.

    They are pairs of the first :data:`AT_ONCE` numbers.
    """
    strength = np.abs(_correlations(Sample.of(run).rows[:, :AT_ONCE]))
    return sorted(combinations(range(len(strength)), 2), key=lambda pair: -strength[pair])[:n]


def most_correlated(run: Any, n: int) -> list[int]:
    """Return the places of at most n numbers of the strongest pairs, in order."""
    found = dict.fromkeys(i for pair in strongest_pairs(run, AT_ONCE**2) for i in pair)
    return sorted([*found][:n]) or [0]


def rank_panels(run: Any, columns: Sequence[int], rhat: FloatArray) -> list[Panel]:
    """Return how the ranks of each chain's draws are spread, a panel for each number.

    Where chains agree, all lines are about equally high (Vehtari et al. 2021,
    doi:10.1214/20-BA1221); ranks are ArviZ's. R-hat is of all numbers of the run.
    """
    chains = Sample.of(run).chains
    return [_ranks(run.titles[i], chains[:, :, i], rhat[i]) for i in columns]


def _ranks(name: str, chains: FloatArray, rhat: float) -> Panel:
    from arviz_stats.base import array_stats

    n, bins = chains.shape[1], 16
    ranks = np.reshape(array_stats.compute_ranks(chains.ravel(), relative=True), chains.shape)
    edges = np.linspace(0.0, 1.0, bins + 1)
    shares = np.array([np.histogram(chain, edges)[0] for chain in ranks]) / (n / bins)
    spread = 2.0 / np.sqrt(max(n / bins, 1.0))

    def draw(axes: Any) -> None:
        axes.axhspan(1.0 - spread, 1.0 + spread, color=GREY, alpha=0.15, linewidth=0)
        axes.axhline(1.0, color=GREY, linewidth=0.6)
        for colour, row in zip(CYCLE, shares, strict=False):
            axes.stairs(row, edges, color=colour, linewidth=1.0, baseline=None)
        axes.set_ylim(0.0, max(2.0, 1.1 * float(shares.max())))
        axes.set(xlabel="rank among all chains", xlim=(0.0, 1.0), title=short_name(name))

    text = (
        f"Ranks of the draws of {name} by chain, 1 where chains agree: they lie between "
        f"{shares.min():.2f} and {shares.max():.2f}; R-hat is {rhat:.3f}."
    )
    return Panel(text=text, draw=draw, width=2.6, height=1.6)


# --- the surrogate ---


@attrs.frozen(kw_only=True, eq=False)
class Comparison:
    """A surrogate V, and the exact potential U at the draws of a run, without an exact call."""

    surrogate: Potential
    run: Any
    positions: FloatArray  # where U is known, in sampling coordinates, shape (n, dim)
    values: FloatArray  # U there, above the least
    errors: FloatArray  # U - V there, less its median: potentials are known up to a constant

    @classmethod
    def of(cls, run: Any) -> Comparison:
        """Return that of a :class:`~surrokit.result.run.Run`."""
        if run.surrogate is None:
            raise ConfigurationError(
                "this run has no surrogate to look at: it was exact throughout, or was opened from "
                "a file, which holds none; sample with a surrogate, or use surrokit.resume"
            )
        positions, exact = run.kept.positions.reshape(-1, run.kept.positions.shape[2]), run.kept
        known = np.flatnonzero(np.isfinite(values := exact.values.reshape(-1)))
        if len(known) < 2:
            raise ConfigurationError("there are no draws to look at a surrogate by; draw some")
        known = known[:: -(-len(known) // _MOST_DOTS)]
        at, values = positions[known], values[known]
        apart = values - _value(run.surrogate, at)
        middle = np.nanmedian(apart) if np.isfinite(apart).any() else 0.0
        return cls(
            surrogate=run.surrogate,
            run=run,
            positions=at,
            values=values - values.min(),
            errors=apart - middle,
        )

    def line(self, column: int) -> FloatArray:
        """Return positions (81, dim) through the mean, 3 sds of a number to each side.

        The other numbers go along as they do in the draws, by their regression on this one.
        """
        draws = self.run.kept.positions.reshape(-1, self.positions.shape[1])
        along = np.atleast_2d(np.cov(draws, rowvar=False))[column]
        sd = np.sqrt(along[column]) or 1.0
        return np.asarray(draws.mean(axis=0) + np.linspace(-3.0, 3.0, 81)[:, None] * (along / sd))

    def place(self, positions: FloatArray, column: int) -> FloatArray:
        """Return where positions are on the axis of a number, in the user's coordinates if any."""
        user = self.run.kept.transform.to_bounded(positions)
        return np.asarray((user if user.shape == positions.shape else positions)[:, column])


def _value(potential: Potential, positions: FloatArray) -> FloatArray:
    with one_thread():
        values = np.asarray(potential.value(positions), dtype=np.float64)
    return np.where(np.isfinite(values), values, np.nan)


def surrogate_panels(run: Any, columns: Sequence[int] = ()) -> list[Panel]:
    """Return the surrogate's errors at draws, and lines along columns through the posterior."""
    found = Comparison.of(run)
    values, errors, large = found.values, found.errors, np.abs(found.errors) > LARGE
    spread = float(np.nanstd(errors)) if np.isfinite(errors).any() else np.nan

    def draw(axes: Any) -> None:
        axes.axhline(0.0, color=GREY, linewidth=0.6)
        axes.plot(values[~large], errors[~large], "o", color=BLUE, markersize=2, alpha=0.6)
        axes.plot(values[large], errors[large], "x", color=VERMILION, markersize=4)
        axes.set(xlabel="exact potential above its least, nats", ylabel="exact less surrogate")
        axes.set(title=f"surrogate at draws: error {spread:.2g} nats")
        axes.locator_params(nbins=5)

    text = (
        f"Exact potential less surrogate at {len(errors)} draws: standard deviation {spread:.2g} "
        f"nats; {int(large.sum())} draws are off by more than {LARGE} nats."
    )
    return [Panel(text=text, draw=draw), *(_line(found, column) for column in columns)]


def _line(found: Comparison, column: int) -> Panel:
    run, at = found.run, found.line(column)
    same = len(run.titles) == at.shape[1]
    name = (run.titles if same else run.parameters.labels_on_line)[column]

    def draw(axes: Any) -> None:
        x, curve = found.place(at, column), _value(found.surrogate, at)
        curve -= curve[len(curve) // 2]
        axes.plot(x, curve, color=BLUE, label="surrogate")
        where = found.place(found.positions, column)
        inside, order = (where >= x.min()) & (where <= x.max()), np.argsort(x)
        heights = np.interp(where, x[order], curve[order]) + found.errors
        dots = {"color": ORANGE, "markersize": 2, "alpha": 0.7, "label": "exact at draws"}
        axes.plot(where[inside], heights[inside], "o", **dots)
        top = float(np.nanquantile(curve, 0.97))
        axes.set_ylim(np.nanmin(curve) - 0.5, max(top, 1.0) + 0.5)
        axes.set(ylabel="nats", title=short_name(name))
        axes.legend(loc="upper center")
        axes.locator_params(nbins=5)

    text = f"Surrogate along {name} through the mean of the draws, with the exact potential there."
    return Panel(text=text, draw=draw)


# --- the cost ---


def cost_panels(run: Any) -> list[Panel]:
    """Return exact calls over time, and acceptance."""
    traces = (run.warmup, run.kept)
    repairs = [each.iteration for each in (*run.adaptation.rescues, *run.adaptation.restarts)]
    seconds = np.concatenate([trace.seconds for trace in traces])
    marks = [
        [i for i in places if 0 < i <= len(seconds)]
        for places in (run.adaptation.deployments, repairs)
    ]
    panels = []
    if len(seconds) and any(run.calls.values()):
        panels.append(_calls_panel(run, seconds, marks))
    moves = np.concatenate([trace.acceptance for trace in traces], axis=1)
    known = ~np.isnan(moves)
    if run.exact and known.any():
        panels.append(_acceptance_panel(np.where(known, moves, 0.0), known, len(run.warmup), marks))
    return panels


def _mark(axes: Any, marks: Sequence[Sequence[float]]) -> None:
    styles = ((GREEN, "--", "surrogate deployed"), (VERMILION, ":", "repaired"))
    for places, (colour, style, label) in zip(marks, styles, strict=True):
        for i, place in enumerate(places[:: max(-(-len(places) // 30), 1)]):
            named = {} if i else {"label": label}
            axes.axvline(place, color=colour, linestyle=style, linewidth=1.0, **named)


def _calls_panel(run: Any, seconds: FloatArray, marks: list[list[int]]) -> Panel:
    warmup, used = len(run.warmup), {kind: n for kind, n in run.calls.items() if n}

    def draw(axes: Any) -> None:
        if warmup:
            axes.axvspan(0.0, seconds[warmup - 1], color=GREY, alpha=0.15, linewidth=0)
        for colour, kind in zip(CYCLE, used, strict=False):
            counts = np.concatenate([[0], run.warmup.calls[kind], run.kept.calls[kind]])
            axes.plot(np.append(0.0, seconds), counts, color=colour, label=kind)
        _mark(axes, [[seconds[i - 1] for i in each] for each in marks])
        axes.set(xlabel="seconds (warm-up is grey)", title="exact calls so far", xlim=(0.0, None))
        axes.set_ylim(bottom=0.0)
        axes.legend()

    ended = ", ".join(f"{n} {kind}" for kind, n in used.items())
    return Panel(text=f"Exact calls over time, by kind: {ended} at the end.", draw=draw)


def _acceptance_panel(
    moves: FloatArray, known: FloatArray, warmup: int, marks: list[list[int]]
) -> Panel:
    n = moves.shape[1]
    size = max(20, n // 100)  # iterations over which acceptance is averaged
    starts = np.arange(0, n, size)
    with np.errstate(invalid="ignore"):
        sums, counts = (np.add.reduceat(each.sum(axis=0), starts) for each in (moves, known))
        means, last = sums / counts, moves[:, warmup:].sum() / known[:, warmup:].sum()

    def draw(axes: Any) -> None:
        if warmup:
            axes.axvspan(0, warmup, color=GREY, alpha=0.15, linewidth=0)
        centres = np.minimum(starts + 0.5 * size, n)
        axes.plot(centres, means, color=BLUE, marker="o", markersize=2.5)
        _mark(axes, marks)
        axes.set(xlabel="iteration (warm-up is grey)", title="acceptance", ylim=(0.0, 1.03))
        if any(marks):
            axes.legend(loc="lower right")

    times = ["once" if len(each) == 1 else f"{len(each)} times" for each in marks]
    text = (
        f"Acceptance over the iterations: {last:.3f} on average after warm-up; surrogates were "
        f"deployed {times[0]}, and repaired {times[1]}."
    )
    return Panel(text=text, draw=draw)
