"""The picture of figure 2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from surrokit.contracts.potential import Potential
from surrokit.experiments.contract import Finished
from surrokit.types import FloatArray
from surrokit_paper.figure_2.report import over_repeats, rows_with_paths
from surrokit_paper.style import BLACK, BLUE, GREEN, GREY, PURPLE, VERMILION, common_legend, drawing

_LEVELS = (0.5, 1.5, 3.0, 6.0, 12.0, 25.0)  # nats above the least U
_FINE = (np.linspace(-3.6, 2.6, 80), np.linspace(-2.3, 2.3, 61))
_PATHS = (BLUE, GREEN, PURPLE)
_ARROW = 0.014  # parts of the width of a panel, for each unit of log(1 + force)
_TITLES = {
    "hmc": "HMC, exact",
    "paper": "HMC on the paper's network",
    "defaults": "HMC on surrokit's defaults",
}


def picture(finished: Sequence[Finished], target: Potential) -> Any:
    """Return a figure of four panels: forces, then paths of HMC and on both surrogates.

    Parameters
    ----------
    finished
        Rows of figure 2.
    target
        The exact potential, for contours.
    """
    rows = rows_with_paths(finished)
    means = {group["method"]: group["mean"] for group in over_repeats(finished)}
    with drawing(7.4, 6.4) as figure:
        axes = figure.subplots(2, 2, sharex=True, sharey=True)
        for ax in axes.flat:
            _contours(ax, target)
        _forces(axes[0, 0], rows)
        axes[0, 0].set_title("forces, as long as log(1 + force)")
        for ax, method in zip(axes.flat[1:], _TITLES, strict=True):
            mean = f", acceptance {means[method]:.2f}" if method in means else ""
            ax.set_title(_TITLES[method] + mean)
            if method in rows:
                _paths(ax, rows[method])
        for ax in axes[-1]:
            ax.set_xlabel("θ₁ (no unit)")
        for ax in axes[:, 0]:
            ax.set_ylabel("θ₂ (no unit)")
        common_legend(figure, axes.flat)
    return figure


def _contours(ax: Any, target: Potential) -> None:
    points = np.stack(np.meshgrid(*_FINE), axis=-1)
    values = target.value(points.reshape(-1, 2)).reshape(points.shape[:2])
    levels = values.min() + np.array(_LEVELS)
    ax.contour(*_FINE, values, levels=levels, colors=GREY, linewidths=0.6, alpha=0.7)


def _forces(ax: Any, rows: dict[str, Finished]) -> None:
    drawn = (("hmc", VERMILION, 0.006, "force: exact"), ("paper", BLUE, 0.003, "force: network"))
    for method, colour, width, label in drawn:
        if method in rows:
            kept = rows[method].result["drawn"]
            points, forces = np.array(kept["points"]), np.array(kept["forces"])
            arrows = _shorten(forces)
            ax.quiver(
                *points.T,
                *arrows.T,
                angles="xy",
                color=colour,
                width=width,
                scale=1.0 / _ARROW,
                scale_units="width",
                label=label,
            )


def _shorten(forces: FloatArray) -> FloatArray:
    """Return vectors of the same directions, as long as log(1 + length)."""
    lengths = np.maximum(np.linalg.norm(forces, axis=1, keepdims=True), 1e-12)
    shortened: FloatArray = forces * np.log1p(lengths) / lengths
    return shortened


def _paths(ax: Any, row: Finished) -> None:
    kept = row.result["drawn"]
    states = np.array(kept["states"])
    points = {"linestyle": "none", "markeredgecolor": BLACK}
    if row.settings["method"] == "paper":
        label = "training points"
        ax.plot(*states.T, "o", markersize=1.6, color=GREY, alpha=0.5, mew=0, label=label)
    for path, colour in zip(np.array(kept["paths"]), _PATHS, strict=True):
        ax.plot(*path.T, color=colour, marker=".", markersize=3, linewidth=0.9)
    ax.plot(*states[-1], marker="s", markersize=8, color=VERMILION, label="start", **points)
    for number, path in enumerate(np.array(kept["paths"]), start=1):
        ax.plot(*path[-1], marker="o", markersize=9, color="white", label="proposal", **points)
        ax.annotate(str(number), path[-1], ha="center", va="center_baseline", fontsize=7)
