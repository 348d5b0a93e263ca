"""The picture of figure 6."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from surrokit.experiments.contract import Finished
from surrokit.types import FloatArray
from surrokit_paper.style import LOOKS, drawing

_PANEL = 1.55  # inches
_N_GRID = 50
_MASSES = (0.9, 0.5)  # of the draws, inside the contours
_WIDTHS = {"hmc": 2.6, "rns": 1.2, "defaults": 1.2}
_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def picture(finished: Sequence[Finished]) -> Any:
    """Return a triangle of panels: densities on the diagonal, contours of pairs below it."""
    parameters = finished[0].settings["parameters"]
    n = len(parameters)
    draws = [(row, np.array(row.result["shown"])) for row in finished]
    grids = _grids([array for _, array in draws])
    size = max(_PANEL * n, 4.0)
    with drawing(size, size) as figure:
        axes = figure.subplots(n, n, sharex="col", squeeze=False)
        for i in range(n):
            for j in range(n):
                ax = axes[i, j]
                if j > i:
                    ax.axis("off")
                    continue
                for row, array in draws:
                    _panel(ax, row, array[:, [j, i]] if i > j else array[:, [i]], grids, j, i)
                _finish(ax, grids, j, i)
        for j, parameter in enumerate(parameters):
            label = "β" + str(parameter).translate(_SUBSCRIPTS)
            axes[-1, j].set_xlabel(f"{label} (log odds)")
            if j:
                axes[j, 0].set_ylabel(f"{label} (log odds)")
        axes[0, 0].set_ylabel("density")
        _legend(figure, axes[0, 0])
    return figure


def _grids(draws: Sequence[FloatArray]) -> list[FloatArray]:
    """Return where densities are evaluated, for each parameter."""
    together = np.concatenate(draws)
    low, high = together.min(axis=0), together.max(axis=0)
    return [np.linspace(*ends, _N_GRID) for ends in zip(low, high, strict=True)]


def _panel(
    ax: Any, row: Finished, draws: FloatArray, grids: Sequence[FloatArray], j: int, i: int
) -> None:
    from scipy.stats import gaussian_kde

    method = row.settings["method"]
    look = LOOKS[method]
    # HMC is a broad line below the others, so that agreement is seen
    line = "-" if method == "hmc" else look.line
    density = gaussian_kde(draws.T)
    if i == j:
        ax.plot(
            grids[i],
            density(grids[i]),
            color=look.colour,
            linewidth=_WIDTHS[method],
            linestyle=line,
            label=row.settings["label"],
        )
        return
    points = np.stack(np.meshgrid(grids[j], grids[i]), axis=-1)
    heights = density(points.reshape(-1, 2).T).reshape(points.shape[:2])
    levels = np.quantile(density(draws.T), [1.0 - mass for mass in _MASSES])
    ax.contour(
        grids[j],
        grids[i],
        heights,
        levels=levels,
        colors=look.colour,
        linewidths=_WIDTHS[method],
        linestyles=[line] * len(levels),
    )


def _finish(ax: Any, grids: Sequence[FloatArray], j: int, i: int) -> None:
    from matplotlib.ticker import MaxNLocator

    ax.set_xlim(grids[j][0], grids[j][-1])
    ax.xaxis.set_major_locator(MaxNLocator(3))
    if i == j:
        ax.set_yticks([])
        ax.set_ylim(bottom=0.0)
        return
    ax.set_ylim(grids[i][0], grids[i][-1])
    ax.yaxis.set_major_locator(MaxNLocator(3))
    if j:
        ax.set_yticklabels([])


def _legend(figure: Any, ax: Any) -> None:
    inside = " and ".join(f"{mass:.0%}" for mass in reversed(_MASSES))
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="upper right",
        title=f"contours hold {inside} of the draws",
        alignment="left",
    )
