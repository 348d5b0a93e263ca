"""The picture of figure 4."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from surrokit.experiments.contract import Finished
from surrokit_paper.acceptance.figure_4_report import SECTION_DIM, SECTION_NODES
from surrokit_paper.acceptance.grid import GRADIENTS, METHODS, PAPER, VALUES
from surrokit_paper.acceptance.grid_summary import GridSummary, coefficients, section
from surrokit_paper.acceptance.heat_map import ACCEPTANCE, draw_curve, headroom, heat_map, level
from surrokit_paper.style import LOOKS, common_legend, drawing


def picture(finished: Sequence[Finished]) -> Any:
    """Return a figure with three panels: acceptance over s and d, over s, and over d."""
    found = GridSummary.of(finished)
    n = {method.name: max(found.sizes("n_points", method.name)) for method in METHODS}
    with drawing(11.0, 4.2) as figure:
        left, middle, right = figure.subplots(1, 3, width_ratios=(1.35, 1.0, 1.0))
        _map(figure, left, found, n[PAPER.name])
        _over_nodes(middle, found, n)
        _over_dims(right, found, n)
        for ax in (middle, right):
            ax.set(ylim=(0.0, headroom(found)), ylabel=ACCEPTANCE)
        common_legend(figure, (right,))
    return figure


def _map(figure: Any, ax: Any, found: GridSummary, n: int) -> None:
    nodes = found.sizes("n_nodes", PAPER.name)
    known = {
        (tried.dim, tried.n_nodes): tried.acceptance.median
        for tried in found.curve(PAPER.name, n_points=n)
    }
    image = heat_map(
        ax,
        [[known.get((dim, size), np.nan) for size in nodes] for dim in found.dims],
        nodes,
        found.dims,
        inside=[[size >= coefficients(dim) for size in nodes] for dim in found.dims],
    )
    ax.set(xlabel="hidden nodes s", ylabel="parameters d")
    ax.set_title(
        f"{ACCEPTANCE}, the paper's network, N = {n};\n"
        "line: as many nodes as a quadratic has coefficients"
    )
    figure.colorbar(image, ax=ax)


def _over_nodes(ax: Any, found: GridSummary, n: dict[str, int]) -> None:
    dim = section(found.dims, SECTION_DIM)
    level(ax, "hmc", found.hmc[dim].median)
    draw_curve(ax, found.curve(PAPER.name, dim=dim, n_points=n[PAPER.name]), "n_nodes", PAPER.label)
    for method in (VALUES, GRADIENTS):
        for tried in found.curve(method.name, dim=dim, n_points=n[method.name]):
            level(ax, method.name, tried.acceptance.median)
    ax.set(xlabel="hidden nodes s of the paper's network", title=f"d = {dim}; {_points_shown(n)}")


def _over_dims(ax: Any, found: GridSummary, n: dict[str, int]) -> None:
    nodes = section(found.sizes("n_nodes", PAPER.name), SECTION_NODES)
    hmc = [found.hmc[dim].median for dim in found.dims]
    ax.plot(found.dims, hmc, label="HMC, exact", **LOOKS["hmc"].options())
    for method in METHODS:
        curve = found.curve(
            method.name,
            n_nodes=nodes if method.name == PAPER.name else None,
            n_points=n[method.name],
        )
        draw_curve(ax, curve, "dim", method.label)
    ax.set_xticks(found.dims)
    ax.set(xlabel="parameters d", title=f"s = {nodes}; {_points_shown(n)}")


def _points_shown(n: dict[str, int]) -> str:
    return f"N = {n[PAPER.name]}, with gradients {n[GRADIENTS.name]}"
