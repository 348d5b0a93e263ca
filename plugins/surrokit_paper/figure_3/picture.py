"""The picture of figure 3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from surrokit.experiments.contract import Finished
from surrokit_paper.figure_3.report import over_repeats
from surrokit_paper.style import LOOKS, common_legend, drawing, ticks_at
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
    groups = over_repeats(finished)
    with drawing(9.0, 4.2) as figure:
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
            ticks_at(ax, sorted({g["n_points"] for g in groups if g["n_points"]}), rotation=45)
        axes[1].set_ylim(-0.02, 1.0)
        axes[0].set_title("hyperparameters included")
        axes[2].set_title("of kept draws, without training")
        common_legend(figure, axes, 3, _GIVEN)
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
