"""The picture of figure 3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from surrokit.experiments.contract import Finished
from surrokit_paper.figure_3.report import over_repeats
from surrokit_paper.style import LOOKS, RC
from surrokit_paper.surrogates.methods import Method

PANELS = (
    ("training_seconds", "training time, in processor seconds", "log"),
    ("acceptance", "acceptance rate", "linear"),
    ("mean_ess_per_second", "mean ESS a processor second", "log"),
)
"""Quantity, label and scale of each panel."""

_GIVEN = ", hyperparameters given"


def picture(finished: Sequence[Finished], methods: Sequence[Method]) -> Any:
    """Return a figure with three panels over N: training time, acceptance, efficiency.

    Parameters
    ----------
    finished
        Rows of figure 3.
    methods
        In the order of the legend.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    groups = over_repeats(finished)
    with mpl.rc_context(RC):
        figure = Figure(figsize=(9.0, 4.2), layout="constrained")
        axes = figure.subplots(1, len(PANELS))
        for ax, (quantity, label, scale) in zip(axes, PANELS, strict=True):
            for method in methods:
                mine = [g for g in groups if g["method"] == method.name and quantity in g]
                _curve(ax, sorted(mine, key=lambda group: group["n_points"]), quantity)
                if quantity == "training_seconds":
                    _thin_curve(ax, sorted(mine, key=lambda group: group["n_points"]))
            ax.set(xscale="log", xlabel="training points N", ylabel=label)
            if scale == "log":
                ax.set_yscale("log", nonpositive="mask")
            _ticks(ax, sorted({g["n_points"] for g in groups if g["n_points"]}))
        axes[1].set_ylim(-0.02, 1.0)
        axes[0].set_title("hyperparameters included")
        axes[2].set_title("of kept draws, without training")
        _legend(figure, axes)
    return figure


def _curve(ax: Any, groups: Sequence[dict[str, Any]], quantity: str) -> None:
    if not groups:
        return
    look = LOOKS[groups[0]["method"]]
    label = groups[0]["label"]
    middle = [group[quantity]["median"] for group in groups]
    if not groups[0]["n_points"]:
        ax.axhline(middle[0], color=look.colour, linestyle=look.line, label=label)
        return
    below = [m - group[quantity]["low"] for m, group in zip(middle, groups, strict=True)]
    above = [group[quantity]["high"] - m for m, group in zip(middle, groups, strict=True)]
    sizes = [group["n_points"] for group in groups]
    ax.errorbar(
        sizes, middle, [below, above], capsize=2, elinewidth=0.8, label=label, **look.options()
    )


def _thin_curve(ax: Any, groups: Sequence[dict[str, Any]]) -> None:
    """Draw what the paper timed: a fit with hyperparameters that are known."""
    known = [group for group in groups if "solve_seconds" in group]
    if known:
        ax.plot(
            [group["n_points"] for group in known],
            [group["solve_seconds"]["median"] for group in known],
            color=LOOKS[known[0]["method"]].colour,
            linewidth=0.8,
            linestyle=":",
            label=f"{known[0]['label']}{_GIVEN}",
        )


def _ticks(ax: Any, sizes: Sequence[int]) -> None:
    from matplotlib.ticker import NullLocator

    ax.set_xticks(sizes, [str(size) for size in sizes], rotation=45)
    ax.xaxis.set_minor_locator(NullLocator())


def _legend(figure: Any, axes: Any) -> None:
    entries: dict[str, Any] = {}
    for ax in axes:
        handles, labels = ax.get_legend_handles_labels()
        entries.update(dict(zip(labels, handles, strict=True)))
    labels = sorted(entries, key=lambda label: label.endswith(_GIVEN))
    handles = [entries[label] for label in labels]
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
