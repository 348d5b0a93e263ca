"""The picture of figure 5."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from surrokit.experiments.contract import Finished
from surrokit_paper.acceptance.figure_5_report import SECTION_DIM, SECTION_NODES, SECTION_POINTS
from surrokit_paper.acceptance.grid import GRADIENTS, METHODS, PAPER, VALUES
from surrokit_paper.acceptance.grid_summary import GridSummary, coefficients, section
from surrokit_paper.acceptance.heat_map import ACCEPTANCE, draw_curve, headroom, heat_map, level
from surrokit_paper.style import common_legend, drawing, ticks_among

_TICKS = (10, 30, 100, 300, 1000, 3000, 10_000)


def picture(finished: Sequence[Finished]) -> Any:
    """Return a figure with three panels: acceptance over s and N, over N, and over s."""
    found = GridSummary.of(finished)
    dim = section(found.dims, SECTION_DIM)
    with drawing(11.0, 4.2) as figure:
        left, middle, right = figure.subplots(1, 3, width_ratios=(1.45, 1.0, 1.0))
        _map(figure, left, found, dim)
        _over_points(middle, found, dim)
        _over_nodes(right, found, dim)
        for ax in (middle, right):
            ax.set(ylim=(0.0, headroom(found)), ylabel=ACCEPTANCE)
        common_legend(figure, (middle,))
    return figure


def _map(figure: Any, ax: Any, found: GridSummary, dim: int) -> None:
    nodes, points = found.sizes("n_nodes", PAPER.name), found.sizes("n_points", PAPER.name)
    known = {
        (tried.n_points, tried.n_nodes): tried.acceptance.median
        for tried in found.curve(PAPER.name, dim=dim)
    }
    least = coefficients(dim)
    image = heat_map(
        ax,
        [[known.get((n, size), np.nan) for size in nodes] for n in points],
        nodes,
        points,
        inside=[[min(n, size) >= least for size in nodes] for n in points],
    )
    ax.set(xlabel="hidden nodes s", ylabel="training points N")
    ax.set_title(
        f"{ACCEPTANCE}, the paper's network, d = {dim};\n"
        "line: as many nodes and points as a quadratic has coefficients"
    )
    figure.colorbar(image, ax=ax)


def _over_points(ax: Any, found: GridSummary, dim: int) -> None:
    nodes = section(found.sizes("n_nodes", PAPER.name), SECTION_NODES)
    level(ax, "hmc", found.hmc[dim].median, "HMC, exact")
    for method in METHODS:
        n_nodes = nodes if method.name == PAPER.name else None
        draw_curve(ax, found.curve(method.name, dim=dim, n_nodes=n_nodes), "n_points", method.label)
    ax.set(xscale="log", xlabel="training points N", title=f"d = {dim}; s = {nodes}")
    ticks_among(ax, _TICKS)


def _over_nodes(ax: Any, found: GridSummary, dim: int) -> None:
    n = section(found.sizes("n_points", PAPER.name), SECTION_POINTS)
    few = max(found.sizes("n_points", GRADIENTS.name))
    level(ax, "hmc", found.hmc[dim].median)
    draw_curve(ax, found.curve(PAPER.name, dim=dim, n_points=n), "n_nodes", PAPER.label)
    for method, size in ((VALUES, n), (GRADIENTS, few)):
        for tried in found.curve(method.name, dim=dim, n_points=size):
            level(ax, method.name, tried.acceptance.median)
    ax.set(xlabel="hidden nodes s of the paper's network")
    ax.set_title(f"d = {dim}; N = {n}, with gradients {few}")
