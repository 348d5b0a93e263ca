"""Figure 5: acceptance on a surrogate against its nodes and its training points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    draw_curve,
    draw_over_nodes,
    median,
    picture,
    section,
)
from surrokit_paper.harness import Cell, Finished, Report, sizes_field
from surrokit_paper.methods import HMC
from surrokit_paper.pictures import line_of, ticks_among

SECTION_DIM, SECTION_NODES, SECTION_POINTS = 32, 1000, 1600
"""Where the paper cuts through its heat map."""

_FEW, _MANY = 500, 2000  # training points for which the paper has words


@attrs.frozen(kw_only=True)
class Figure5(AcceptanceGrid):
    """Section 4 and figure 5 of Zhang, Shahbaba and Zhao (2017).

    Acceptance over s and N with 32 parameters; see
    :class:`surrokit_paper.acceptance.AcceptanceGrid` for how it is measured.

    Parameters
    ----------
    n_nodes
        s. The paper's axes have no numbers.
    n_points
        N, for values alone.
    gradient_points
        N, for gradients too.
    """

    name = "figure-5"
    title = "Figure 5: acceptance against hidden nodes and training points, 32 parameters"
    quick: ClassVar = {
        "n_nodes": (250, 500, 1000),
        "n_points": (250, 500, 1000, 1600),
        "repeats": 1,
    }

    n_nodes: tuple[int, ...] = sizes_field(100, 250, 500, 750, 1000, 1500, 2000)
    n_points: tuple[int, ...] = sizes_field(200, 350, 500, 750, 1000, 1250, 1600, 2000, 3000)
    gradient_points: tuple[int, ...] = sizes_field(10, 25, 50, 100, 200)

    def report(self, finished: Sequence[Finished]) -> Report:
        """Return the heat map as a table, every surrogate by N, and the paper's statements."""
        found = Grid.of(finished)
        dim, nodes = section(list(found.hmc), SECTION_DIM), _nodes(found)
        heat_map = [{"N": n, **found.cells(dim=dim, n_points=n)} for n in found.sizes("n_points")]
        by_points = []
        for method in LABELS:
            curve = found.curve(method, dim=dim, n_nodes=nodes)
            needed = {f"{LEVEL} of HMC's from N": points_needed(found, curve)}
            by_points += [{**line, **needed} for line in found.lines(curve, "n_points")]
        hmc = found.hmc[dim]
        return Report(
            tables={
                "median acceptance, the paper's network, by N and its nodes s; "
                f"d = {dim}, HMC {hmc['median']:.2f}, runs: {hmc['runs']}": heat_map,
                "by training points: acceptance, and processor seconds of a fit": by_points,
            },
            printed=_printed(found, dim, nodes),
            figures=attrs.asdict(found),
            notes=NOTES,
        )

    def draw(self, finished: Sequence[Finished]) -> Any:
        """Return three panels: acceptance over s and N, over N, and over s."""
        found = Grid.of(finished)
        dim = section(list(found.hmc), SECTION_DIM)
        n = dict.fromkeys(LABELS, section(found.sizes("n_points"), SECTION_POINTS))
        n[GRADIENTS] = max(found.sizes("n_points", GRADIENTS))
        return picture(
            found,
            "n_points",
            {"dim": dim},
            "as many nodes and points as a quadratic has coefficients",
            (
                lambda ax: _draw_over_points(ax, found, dim),
                lambda ax: draw_over_nodes(ax, found, dim, n),
            ),
        )


def _nodes(found: Grid) -> int:
    return section(found.sizes("n_nodes"), SECTION_NODES)


def points_needed(found: Grid, curve: Sequence[Mapping[str, Any]]) -> int | None:
    """Return from how many points on acceptance is at 0.9 of HMC's or above; None if it ends below.

    The curve is one surrogate by rising numbers of points.
    """
    since: int | None = None
    for each in curve:
        if found.ratio(each) < LEVEL:
            since = None
        elif since is None:
            since = each["n_points"]
    return since


def _printed(found: Grid, dim: int, nodes: int) -> list[tuple[str, Cell, Cell]]:
    curve = found.curve(PAPER, dim=dim, n_nodes=nodes)
    by_points = {each["n_points"]: each for each in curve}
    few, many, needed = by_points.get(_FEW), by_points.get(_MANY), points_needed(found, curve)
    ratio = None if many is None else found.ratio(many)
    since = f"points from which on it is at {LEVEL} of HMC's, s = {nodes}"
    return [
        (
            f"acceptance with {_FEW} points, s = {nodes}",
            "around 0.1",
            median(few),
        ),
        (f"acceptance with {_MANY} points over HMC's, s = {nodes}", "comparable", ratio),
        (since, "around 2000", needed),
    ]


def _draw_over_points(ax: Any, found: Grid, dim: int) -> None:
    ax.axhline(found.hmc[dim]["median"], label="HMC, exact", **line_of(HMC))
    for method in LABELS:
        draw_curve(ax, found.curve(method, dim=dim, n_nodes=_nodes(found)), "n_points")
    ax.set(xscale="log", xlabel="training points N", title=f"d = {dim}; s = {_nodes(found)}")
    ticks_among(ax, (10, 30, 100, 300, 1000, 3000, 10_000))
