"""Whether the draws are to be trusted: ranks, effective draws, energy, weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from surrokit.diagnostics import MIN_DRAWS, effective_sample_size, energy_information
from surrokit.plots.panel import Panel, describe
from surrokit.plots.sample import Sample, density
from surrokit.plots.style import BLUE, CYCLE, GREEN, GREY, ORANGE, VERMILION, draw_dots, short_name
from surrokit.types import FloatArray

BINS = 16
"""Of ranks."""

STEPS = 8
"""Numbers of draws at which effective draws are counted."""

FEWEST = 100
"""Effective draws that are the least to go by."""

LARGEST_RHAT = 1.01

MOST_WEIGHTS = 500


def rank_panels(run: Any, columns: Sequence[int], rhat: FloatArray) -> list[Panel]:
    """Return a panel for each number: how the ranks of each chain's draws are spread.

    Where chains agree, all bars are about equally high (Vehtari et al. 2021,
    doi:10.1214/20-BA1221); ranks are ArviZ's.

    Parameters
    ----------
    run
        A :class:`~surrokit.result.run.Run`.
    columns
        Places of the numbers.
    rhat : ndarray of shape (dim,)
        R-hat of all numbers of the run.
    """
    from arviz_stats.base import array_stats

    sample = Sample.of(run)
    panels = []
    for column in columns:
        chains = sample.chains[:, :, column]
        ranks: FloatArray = np.reshape(
            array_stats.compute_ranks(chains.ravel(), relative=True), chains.shape
        )
        edges = np.linspace(0.0, 1.0, BINS + 1)
        counts = np.array([np.histogram(chain, edges)[0] for chain in ranks], dtype=np.float64)
        shares = counts / (ranks.shape[1] / BINS)
        name, note = run.titles[column], sample.note_on_chains
        text = (
            f"Ranks of the draws of {name} by chain, 1 where chains agree: they lie between "
            f"{shares.min():.2f} and {shares.max():.2f} with {ranks.shape[1]} draws of each of "
            f"{len(ranks)} chains; R-hat is {rhat[column]:.3f}{'; ' + note if note else ''}."
        )
        spread = 2.0 / np.sqrt(max(ranks.shape[1] / BINS, 1.0))
        draw = partial(_draw_ranks, title=short_name(name), shares=shares, spread=spread)
        panels.append(Panel(title=name, text=text, draw=draw, width=2.6, height=1.6))
    return panels


def effective_panel(run: Any, columns: Sequence[int]) -> Panel | None:
    """Return a panel of effective draws against draws, for the worst of some numbers.

    Parameters
    ----------
    run
        A :class:`~surrokit.result.run.Run`.
    columns
        Places of the numbers.
    """
    chains = Sample.of(run).chains
    if not run.exact or chains.shape[1] < STEPS * MIN_DRAWS:
        return None
    draws = run.draws[:, :, list(columns)]
    ends = np.linspace(0, draws.shape[1], STEPS + 1).astype(int)[1:]
    ess = np.array([effective_sample_size(draws[:, :end]) for end in ends])
    counts = ends * len(draws)
    order = np.argsort(np.nan_to_num(ess[-1], nan=-1.0))[: len(CYCLE) - 2]
    worst = int(order[0])
    text = (
        f"Effective draws against draws: the fewest are those of {run.titles[columns[worst]]}, "
        f"{describe(ess[-1, worst])} of {counts[-1]}. They grow in proportion where chains mix."
    )
    names = {run.titles[columns[i]]: ess[:, i] for i in order}
    return Panel(
        title="effective draws",
        text=text,
        draw=partial(_draw_effective, counts=counts, by_name=names),
    )


def agreement_panel(run: Any, ess: FloatArray, rhat: FloatArray) -> Panel | None:
    """Return a panel of R-hat against effective draws, a dot for each number.

    Parameters
    ----------
    run
        A :class:`~surrokit.result.run.Run`.
    ess, rhat : ndarray of shape (dim,)
        Its figures.
    """
    known = np.isfinite(ess) & np.isfinite(rhat) & (ess > 0.0)
    if not known.any():
        return None
    worst = int(np.argmax(np.where(known, rhat, -np.inf)))
    text = (
        f"R-hat against effective draws for {int(known.sum())} numbers: the largest R-hat is "
        f"{rhat[worst]:.3f} of {run.titles[worst]}, the fewest effective draws are "
        f"{describe(float(ess[known].min()))}."
    )
    draw = partial(_draw_agreement, ess=ess[known], rhat=rhat[known])
    return Panel(title="R-hat and effective draws", text=text, draw=draw)


def energy_panel(run: Any) -> Panel | None:
    """Return a panel of energies, and of their changes from draw to draw; None without energies.

    Where changes are much narrower than energies, fresh momenta do not reach the tails (Betancourt
    2016, arXiv:1604.00695).

    Parameters
    ----------
    run
        A :class:`~surrokit.result.run.Run`.
    """
    energy = run.kept.energy
    if not run.exact or energy.shape[1] < MIN_DRAWS or not np.isfinite(energy).all():
        return None
    fractions = energy_information(energy)
    centred = (energy - energy.mean()).ravel()
    changes = np.diff(energy, axis=1).ravel()
    if density(centred) is None or density(changes) is None:
        return None
    text = (
        "Densities of the energy and of its changes from draw to draw; energy fraction of missing "
        f"information by chain: {', '.join(f'{each:.2f}' for each in fractions)}, where 0.3 is the "
        "least to go by."
    )
    draw = partial(_draw_energy, centred=centred, changes=changes)
    return Panel(title="energy", text=text, draw=draw)


def weights_panel(run: Any) -> Panel | None:
    """Return a panel of weights, the largest first; None without weighted answers.

    Parameters
    ----------
    run
        A :class:`~surrokit.result.run.Run`.
    """
    if run.log_weights is None:
        return None
    weights = np.sort(np.exp(run.log_weights.ravel()))[::-1]
    effective = float(np.square(weights.sum()) / np.square(weights).sum())
    text = (
        f"Weights of the {len(weights)} draws that were paid for, the largest first, of mean 1: "
        f"the largest is {describe(float(weights[0]))}; alone, without what the surrogate's other "
        f"draws tell, they are worth {effective:.0f} draws of equal weight."
    )
    return Panel(title="weights", text=text, draw=partial(_draw_weights, weights=weights))


def ratios_panel(run: Any) -> Panel | None:
    """Return a panel of the surrogates' errors in weighted answers; None without these.

    Parameters
    ----------
    run
        A :class:`~surrokit.result.run.Run`.
    """
    if run.answer is None:
        return None
    errors = [-each.log_ratios for each in run.answer.rounds]
    errors = [each - np.nanmedian(each) for each in errors]
    spreads = [float(np.nanstd(each[np.isfinite(each)])) for each in errors]
    told = ", ".join(f"{spread:.2g}" for spread in spreads)
    text = (
        "Exact potential less surrogate at the draws that were paid for, round by round: standard "
        f"deviations {told} nats."
    )
    draw = partial(_draw_ratios, errors=errors)
    return Panel(title="surrogate's error by round", text=text, draw=draw)


def trust_panels(
    run: Any, columns: Sequence[int], ess: FloatArray, rhat: FloatArray
) -> Iterator[Panel]:
    """Yield all panels of this file but those of ranks, as far as the run has what they show.

    Parameters
    ----------
    run
        A :class:`~surrokit.result.run.Run`.
    columns
        Numbers whose effective draws are followed.
    ess, rhat : ndarray of shape (dim,)
        Figures of all numbers of the run.
    """
    for panel in (
        agreement_panel(run, ess, rhat),
        effective_panel(run, columns),
        energy_panel(run),
        weights_panel(run),
        ratios_panel(run),
    ):
        if panel is not None:
            yield panel


def _draw_ranks(axes: Any, *, title: str, shares: FloatArray, spread: float) -> None:
    edges = np.linspace(0.0, 1.0, BINS + 1)
    axes.axhspan(1.0 - spread, 1.0 + spread, color=GREY, alpha=0.15, linewidth=0)
    axes.axhline(1.0, color=GREY, linewidth=0.6)
    for colour, row in zip(CYCLE, shares, strict=False):
        axes.stairs(row, edges, color=colour, linewidth=1.0, baseline=None)
    axes.set_ylim(0.0, max(2.0, 1.1 * float(shares.max())))
    axes.set(xlabel="rank among all chains", xlim=(0.0, 1.0))
    axes.set_title(title)
    axes.locator_params(axis="y", nbins=4)


def _draw_effective(axes: Any, *, counts: FloatArray, by_name: dict[str, FloatArray]) -> None:
    for colour, (name, ess) in zip(CYCLE, by_name.items(), strict=False):
        axes.plot(counts, ess, "o-", color=colour, markersize=2.5, label=short_name(name))
    axes.axhline(FEWEST, color=VERMILION, linestyle="--", linewidth=0.8)
    axes.set(xlabel="draws of all chains", title="effective draws, the worst numbers")
    axes.set_ylim(bottom=0.0)
    axes.legend(fontsize=7, labelspacing=0.2)
    axes.locator_params(nbins=5)


def _draw_agreement(axes: Any, *, ess: FloatArray, rhat: FloatArray) -> None:
    good = (rhat <= LARGEST_RHAT) & (ess >= FEWEST)
    draw_dots(axes, ess[good], rhat[good], colour=BLUE, size=4.0)
    axes.plot(ess[~good], rhat[~good], "D", color=VERMILION, markersize=4)
    axes.axhline(LARGEST_RHAT, color=VERMILION, linestyle="--", linewidth=0.8)
    axes.axvline(FEWEST, color=VERMILION, linestyle="--", linewidth=0.8)
    axes.set_ylim(min(0.998, float(rhat.min()) - 0.001), max(1.02, 1.01 * float(rhat.max())))
    axes.set_xlim(0.0, 1.08 * max(float(ess.max()), FEWEST))
    axes.set(xlabel="effective draws", ylabel="R-hat", title="R-hat and effective draws")
    axes.locator_params(nbins=5)


def _draw_energy(axes: Any, *, centred: FloatArray, changes: FloatArray) -> None:
    for colour, style, label, values in (
        (BLUE, "-", "energy", centred),
        (ORANGE, "--", "its changes", changes),
    ):
        curve = density(values)
        assert curve is not None
        axes.plot(*curve, color=colour, linestyle=style, label=label)
    axes.set_yticks([])
    axes.set_ylim(bottom=0.0)
    axes.set(xlabel="nats", title="energy, and its changes")
    axes.legend()


def _draw_weights(axes: Any, *, weights: FloatArray) -> None:
    shown = weights[:: -(-len(weights) // MOST_WEIGHTS)]
    places = np.linspace(1, len(weights), len(shown))
    axes.axhline(1.0, color=GREY, linewidth=0.6)
    draw_dots(axes, places, shown, colour=GREEN, size=3.0)
    axes.set_ylim(0.0, 1.1 * float(shown.max()))
    axes.set(xlabel="draws paid for, the largest weight first", title="weights (mean 1)")


def _draw_ratios(axes: Any, *, errors: list[FloatArray]) -> None:
    axes.axhline(0.0, color=GREY, linewidth=0.6)
    begun = 0
    for i, each in enumerate(errors):
        places = np.arange(begun, begun + len(each)) + 1
        draw_dots(axes, places, each, colour=CYCLE[i % len(CYCLE)], size=3.0)
        begun += len(each)
    axes.margins(y=0.1)
    axes.set(
        xlabel="draws paid for, a colour for each round",
        ylabel="nats",
        title="exact less surrogate",
    )
