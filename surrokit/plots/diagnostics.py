"""Panels of how good draws are and what they cost: ranks, ESS, energy, weights, calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from surrokit.diagnostics import FEWEST_EFFECTIVE, LARGEST_RHAT, MIN_DRAWS, energy_information
from surrokit.plots.panel import (
    BLUE,
    CYCLE,
    GREEN,
    GREY,
    ORANGE,
    VERMILION,
    Panel,
    Sample,
    density,
    describe,
    draw_dots,
    short_name,
)
from surrokit.plots.posterior import after
from surrokit.types import FloatArray


def rank_panels(run: Any, columns: Sequence[int], rhat: FloatArray) -> list[Panel]:
    """Return how the ranks of each chain's draws are spread, a panel for each number.

    Where chains agree, all bars are about equally high (Vehtari et al. 2021,
    doi:10.1214/20-BA1221); ranks are ArviZ's. R-hat is of all numbers of the run.
    """
    sample = Sample.of(run)
    tail = after(sample.note_on_chains)
    return [_ranks(run.titles[i], sample.chains[:, :, i], rhat[i], tail) for i in columns]


def _ranks(name: str, chains: FloatArray, rhat: float, tail: str) -> Panel:
    from arviz_stats.base import array_stats

    (n_chains, n), bins = chains.shape, 16
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
        axes.locator_params(axis="y", nbins=4)

    text = (
        f"Ranks of the draws of {name} by chain, 1 where chains agree: they lie between "
        f"{shares.min():.2f} and {shares.max():.2f} with {n} draws of each of {n_chains} chains; "
        f"R-hat is {rhat:.3f}{tail}."
    )
    return Panel(title=name, text=text, draw=draw, width=2.6, height=1.6)


def trust_panels(run: Any, ess: FloatArray, rhat: FloatArray) -> list[Panel]:
    """Return R-hat and effective draws, energies and weights, as far as the run has them."""
    panels = (_agreement_panel(run, ess, rhat), energy_panel(run), weights_panel(run))
    return [panel for panel in panels if panel is not None]


def _agreement_panel(run: Any, ess: FloatArray, rhat: FloatArray) -> Panel | None:
    known = np.isfinite(ess) & np.isfinite(rhat) & (ess > 0.0)
    if not known.any():
        return None
    worst = int(np.argmax(np.where(known, rhat, -np.inf)))
    name, ess, rhat = run.titles[worst], ess[known], rhat[known]
    good = (rhat <= LARGEST_RHAT) & (ess >= FEWEST_EFFECTIVE)

    def draw(axes: Any) -> None:
        draw_dots(axes, ess[good], rhat[good], colour=BLUE, size=4.0)
        axes.plot(ess[~good], rhat[~good], "D", color=VERMILION, markersize=4)
        axes.axhline(LARGEST_RHAT, color=VERMILION, linestyle="--", linewidth=0.8)
        axes.axvline(FEWEST_EFFECTIVE, color=VERMILION, linestyle="--", linewidth=0.8)
        axes.set_ylim(min(0.998, float(rhat.min()) - 0.001), max(1.02, 1.01 * float(rhat.max())))
        axes.set_xlim(0.0, 1.08 * max(float(ess.max()), FEWEST_EFFECTIVE))
        axes.set(xlabel="effective draws", ylabel="R-hat", title="R-hat and effective draws")
        axes.locator_params(nbins=5)

    text = (
        f"R-hat against effective draws for {len(ess)} numbers: the largest R-hat is "
        f"{rhat.max():.3f} of {name}, the fewest effective draws are {describe(ess.min())}."
    )
    return Panel(title="R-hat and effective draws", text=text, draw=draw)


def energy_panel(run: Any) -> Panel | None:
    """Return energies, and their changes from draw to draw; None without energies.

    Where changes are much narrower than energies, fresh momenta do not reach the tails (Betancourt
    2016, arXiv:1604.00695).
    """
    energy = run.kept.energy
    if not run.exact or energy.shape[1] < MIN_DRAWS or not np.isfinite(energy).all():
        return None
    of_energy = density((energy - energy.mean()).ravel())
    of_changes = density(np.diff(energy, axis=1).ravel())
    if of_energy is None or of_changes is None:
        return None

    def draw(axes: Any) -> None:
        axes.plot(*of_energy, color=BLUE, linestyle="-", label="energy")
        axes.plot(*of_changes, color=ORANGE, linestyle="--", label="its changes")
        axes.set_yticks([])
        axes.set_ylim(bottom=0.0)
        axes.set(xlabel="nats", title="energy, and its changes")
        axes.legend()

    fractions = ", ".join(f"{each:.2f}" for each in energy_information(energy))
    text = (
        "Densities of the energy and of its changes from draw to draw; energy fraction of missing "
        f"information by chain: {fractions}, where 0.3 is the least to go by."
    )
    return Panel(title="energy", text=text, draw=draw)


def weights_panel(run: Any) -> Panel | None:
    """Return weights, the largest first; None without weighted answers."""
    if run.log_weights is None:
        return None
    weights = np.sort(np.exp(run.log_weights.ravel()))[::-1]
    shown = weights[:: -(-len(weights) // 500)]

    def draw(axes: Any) -> None:
        axes.axhline(1.0, color=GREY, linewidth=0.6)
        draw_dots(axes, np.linspace(1, len(weights), len(shown)), shown, colour=GREEN, size=3.0)
        axes.set_ylim(0.0, 1.1 * float(shown.max()))
        axes.set(xlabel="evaluated draws, the largest weight first", title="weights (mean 1)")

    effective = float(np.square(weights.sum()) / np.square(weights).sum())
    text = (
        f"Weights of the {len(weights)} evaluated draws, the largest first, of mean 1: "
        f"the largest is {describe(float(weights[0]))}; alone, without what the surrogate's other "
        f"draws tell, they are worth {effective:.0f} draws of equal weight."
    )
    return Panel(title="weights", text=text, draw=draw)


def cost_panels(run: Any) -> list[Panel]:
    """Return exact calls over time, and acceptance."""
    traces = (run.warmup, run.kept)
    seconds = np.concatenate([trace.seconds for trace in traces])
    moves = np.concatenate([trace.acceptance for trace in traces], axis=1)
    known = ~np.isnan(moves)
    with np.errstate(invalid="ignore"):
        acceptance = np.where(known, moves, 0.0).sum(axis=0) / known.sum(axis=0)
    repairs = [each.iteration for each in run.adaptation.rescues]
    marks = [
        [i for i in places if 0 < i <= len(seconds)]
        for places in (run.adaptation.deployments, repairs)
    ]
    times = ["once" if len(each) == 1 else f"{len(each)} times" for each in marks]
    told = f"surrogates were deployed {times[0]}, and repaired {times[1]}"
    panels = []
    if len(seconds) and any(run.calls.values()):
        panels.append(_calls_panel(run, seconds, marks, told))
    if run.exact and np.isfinite(acceptance).any():
        panels.append(_acceptance_panel(acceptance, len(run.warmup), marks, told))
    return panels


def _mark(axes: Any, marks: Sequence[Sequence[float]]) -> None:
    styles = ((GREEN, "--", "surrogate deployed"), (VERMILION, ":", "repaired"))
    for places, (colour, style, label) in zip(marks, styles, strict=True):
        for i, place in enumerate(places[:: max(-(-len(places) // 30), 1)]):
            named = {} if i else {"label": label}
            axes.axvline(place, color=colour, linestyle=style, linewidth=1.0, **named)


def _calls_panel(run: Any, seconds: FloatArray, marks: list[list[int]], told: str) -> Panel:
    warmup, used = len(run.warmup), {kind: n for kind, n in run.calls.items() if n}
    calls = {k: np.concatenate([run.warmup.calls[k], run.kept.calls[k]]) for k in used}
    step = -(-len(seconds) // 300)
    places = np.unique([*range(0, len(seconds), step), len(seconds) - 1])

    def draw(axes: Any) -> None:
        if warmup:
            axes.axvspan(0.0, seconds[warmup - 1], color=GREY, alpha=0.15, linewidth=0)
        for colour, (kind, counts) in zip(CYCLE, calls.items(), strict=False):
            x, y = np.append(0.0, seconds[places]), np.append(0.0, counts[places])
            axes.plot(x, y, color=colour, label=kind)
        _mark(axes, [[seconds[i - 1] for i in each] for each in marks])
        axes.set(xlabel="seconds (warm-up is grey)", title="exact calls so far", xlim=(0.0, None))
        axes.set_ylim(bottom=0.0)
        axes.legend()

    ended = ", ".join(f"{n} {kind}" for kind, n in used.items())
    text = f"Exact calls over time, by kind: {ended} at the end; {told}."
    return Panel(title="exact calls", text=text, draw=draw)


def _acceptance_panel(
    acceptance: FloatArray, warmup: int, marks: list[list[int]], told: str
) -> Panel:
    n = len(acceptance)
    last = float(np.nanmean(acceptance[warmup:])) if n > warmup else np.nan
    size = max(20, n // 100)  # iterations over which acceptance is averaged
    starts, known = np.arange(0, n, size), np.isfinite(acceptance)
    sums = np.add.reduceat(np.where(known, acceptance, 0.0), starts)
    with np.errstate(invalid="ignore"):
        means = sums / np.add.reduceat(known.astype(float), starts)

    def draw(axes: Any) -> None:
        if warmup:
            axes.axvspan(0, warmup, color=GREY, alpha=0.15, linewidth=0)
        centres = np.minimum(starts + 0.5 * size, n)
        axes.plot(centres, means, color=BLUE, marker="o", markersize=2.5)
        _mark(axes, marks)
        axes.set(xlabel="iteration (warm-up is grey)", title="acceptance", ylim=(0.0, 1.03))
        if any(marks):
            axes.legend(loc="lower right")

    text = f"Acceptance over the iterations: {last:.3f} on average after warm-up; {told}."
    return Panel(title="acceptance", text=text, draw=draw)
