"""Figure 4: acceptance on a surrogate against its nodes and the number of parameters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any, ClassVar

import attrs

from surrokit_paper.acceptance import (
    GRADIENTS,
    LABELS,
    LEVEL,
    NOTES,
    PAPER,
    AcceptanceGrid,
    Grid,
    coefficients,
    draw_curve,
    draw_over_nodes,
    median,
    picture,
    section,
)
from surrokit_paper.harness import Cell, Finished, Report, sizes_field
from surrokit_paper.methods import HMC
from surrokit_paper.pictures import LOOKS

SECTION_DIM, SECTION_NODES = 32, 2000
"""Where the paper cuts through its heat map."""

_PAPER_DIM = 48  # the size of ours that is nearest to the paper's "about 50"


@attrs.frozen(kw_only=True)
class Figure4(AcceptanceGrid):
    """Section 3.4 and figure 4 of Zhang, Shahbaba and Zhao (2017).

    Acceptance over s and d, with N "sufficiently large"; see
    :class:`surrokit_paper.acceptance.AcceptanceGrid` for how it is measured.

    Parameters
    ----------
    dims
        d. The paper's axes have no numbers.
    n_nodes
        s.
    """

    name = "figure-4"
    title = "Figure 4: acceptance against hidden nodes and number of parameters"
    quick: ClassVar = {
        "dims": (8, 16, 32),
        "n_nodes": (100, 500, 1000),
        "n_points": (1500,),
        "repeats": 1,
    }

    dims: tuple[int, ...] = sizes_field(8, 16, 24, 32, 40, 48, 56, 64)
    n_nodes: tuple[int, ...] = sizes_field(100, 250, 500, 1000, 1500, 2000)

    def report(self, finished: Sequence[Finished]) -> Report:
        """Return the heat map as a table, every surrogate by d, and the paper's statements."""
        found = Grid.of(finished)
        n, nodes = _most_points(found), section(found.sizes("n_nodes"), SECTION_NODES)
        heat_map = [
            {
                "d": dim,
                "runs": int(hmc["runs"]),
                "coefficients of a quadratic": coefficients(dim),
                "HMC": hmc["median"],
                **found.cells(dim=dim, n_points=n[PAPER]),
            }
            for dim, hmc in found.hmc.items()
        ]
        by_dim = [e for m in LABELS for e in found.curve(m, n_nodes=nodes, n_points=n[m])]
        return Report(
            tables={
                f"median acceptance, the paper's network from {n[PAPER]} values, by its nodes s": (
                    heat_map
                ),
                "by number of parameters: acceptance, and processor seconds of a fit": (
                    found.lines(by_dim, "dim")
                ),
            },
            printed=_printed(found, nodes, n[PAPER]),
            figures=attrs.asdict(found),
            notes=NOTES,
        )

    def draw(self, finished: Sequence[Finished]) -> Any:
        """Return three panels: acceptance over s and d, over s, and over d."""
        found = Grid.of(finished)
        n, dim = _most_points(found), section(list(found.hmc), SECTION_DIM)
        return picture(
            found,
            "dim",
            {"n_points": n[PAPER]},
            "as many nodes as a quadratic has coefficients",
            (
                lambda ax: draw_over_nodes(ax, found, dim, n),
                lambda ax: _draw_over_dims(ax, found, n),
            ),
        )


def _most_points(found: Grid) -> dict[str, int]:
    return {method: max(found.sizes("n_points", method)) for method in LABELS}


def _printed(found: Grid, nodes: int, n_points: int) -> list[tuple[str, Cell, Cell]]:
    curve = found.curve(PAPER, n_nodes=nodes, n_points=n_points)
    near = next((each for each in curve if each["dim"] == _PAPER_DIM), None)
    dim = section(list(found.hmc), SECTION_DIM)
    reached = [each["dim"] for each in takewhile(lambda e: found.ratio(e) >= LEVEL, curve)]
    seconds = None if near is None else near["training_seconds"]
    hmc, high = found.hmc[dim]["median"], "relatively high up to d of about 50"
    up_to = f"largest d, of those tried, up to which s = {nodes} has {LEVEL} of HMC's"
    return [
        (f"acceptance of HMC at this step size, d = {dim}", "around 0.7", hmc),
        (
            f"acceptance at d = {_PAPER_DIM}, s = {nodes}",
            high,
            median(near),
        ),
        (up_to, "about 50", reached[-1] if reached else None),
        (f"training at d = {_PAPER_DIM}, s = {nodes}, in seconds", "a few", seconds),
    ]


def _draw_over_dims(ax: Any, found: Grid, n: dict[str, int]) -> None:
    nodes, dims = section(found.sizes("n_nodes"), SECTION_NODES), list(found.hmc)
    exact = [hmc["median"] for hmc in found.hmc.values()]
    ax.plot(dims, exact, label="HMC, exact", **LOOKS[HMC])
    for method in LABELS:
        draw_curve(ax, found.curve(method, n_nodes=nodes, n_points=n[method]), "dim")
    ax.set_xticks(dims)
    points = f"N = {n[PAPER]}, with gradients {n[GRADIENTS]}"
    ax.set(xlabel="parameters d", title=f"s = {nodes}; {points}")
