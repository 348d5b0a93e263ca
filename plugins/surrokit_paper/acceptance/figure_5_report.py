"""The report of figure 5."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from surrokit.experiments.contract import Cell, Finished, Printed, Report, Table
from surrokit_paper.acceptance.grid import METHODS, PAPER
from surrokit_paper.acceptance.grid_summary import NOTES, GridSummary, Tried, section

SECTION_DIM, SECTION_NODES, SECTION_POINTS = 32, 1000, 1600
"""Where the paper cuts through its heat map."""

LEVEL = 0.9
"""Part of HMC's acceptance that counts as comparable to it."""

_FEW, _MANY = 500, 2000
"""The two numbers of training points of which the paper tells."""


def report(finished: Sequence[Finished]) -> Report:
    """Return the heat map as a table, every surrogate by N, and the paper's statements.

    Parameters
    ----------
    finished
        Rows of figure 5; of several numbers of parameters 32, or the largest.
    """
    found = GridSummary.of(finished)
    dim = section(found.dims, SECTION_DIM)
    return Report(
        tables=(_heat_map(found, dim), _sections(found, dim)),
        printed=_print(found, dim),
        figures=attrs.asdict(found),
        notes=NOTES,
    )


def points_needed(found: GridSummary, curve: Sequence[Tried]) -> int | None:
    """Return from how many points on acceptance is at 0.9 of HMC's or above; None if it ends below.

    Parameters
    ----------
    found
        What HMC's acceptance is in.
    curve
        One surrogate, by rising numbers of points.
    """
    since: int | None = None
    for tried in curve:
        if found.ratio(tried) < LEVEL:
            since = None
        elif since is None:
            since = tried.n_points
    return since


def _heat_map(found: GridSummary, dim: int) -> Table:
    nodes = found.sizes("n_nodes", PAPER.name)
    lines: list[tuple[Cell, ...]] = []
    for n_points in found.sizes("n_points", PAPER.name):
        by_nodes = {
            tried.n_nodes: tried.acceptance.median
            for tried in found.curve(PAPER.name, dim=dim, n_points=n_points)
        }
        lines.append((n_points, *(by_nodes.get(size) for size in nodes)))
    hmc = found.hmc[dim]
    return Table(
        title=(
            f"median acceptance, the paper's network, by N and its nodes s; d = {dim}, "
            f"HMC {hmc.median:.2f}, runs: {hmc.runs}"
        ),
        columns=("N", *(f"s = {size}" for size in nodes)),
        lines=tuple(lines),
    )


def _sections(found: GridSummary, dim: int) -> Table:
    nodes = section(found.sizes("n_nodes", PAPER.name), SECTION_NODES)
    labels = {method.name: method.label for method in METHODS}
    tried: list[Tried] = []
    needed = {}
    for method in METHODS:
        n_nodes = nodes if method.name == PAPER.name else None
        curve = found.curve(method.name, dim=dim, n_nodes=n_nodes)
        needed[method.name] = points_needed(found, curve)
        tried += curve
    return Table.of(
        tried,
        title="by training points: acceptance, and processor seconds of a fit",
        columns={
            "surrogate": lambda one: labels[one.method],
            "s": lambda one: one.nodes_used,
            "N": lambda one: one.n_points,
            "10 %": lambda one: one.acceptance.low,
            "median": lambda one: one.acceptance.median,
            "90 %": lambda one: one.acceptance.high,
            "training, s": lambda one: one.training_seconds,
            f"{LEVEL} of HMC's from N": lambda one: needed[one.method],
        },
    )


def _print(found: GridSummary, dim: int) -> tuple[Printed, ...]:
    nodes = section(found.sizes("n_nodes", PAPER.name), SECTION_NODES)
    curve = found.curve(PAPER.name, dim=dim, n_nodes=nodes)
    by_points = {tried.n_points: tried for tried in curve}
    few, many = by_points.get(_FEW), by_points.get(_MANY)
    return (
        Printed(
            what=f"acceptance with {_FEW} points, s = {nodes}",
            printed="around 0.1",
            ours=None if few is None else few.acceptance.median,
        ),
        Printed(
            what=f"acceptance with {_MANY} points over HMC's, s = {nodes}",
            printed="comparable",
            ours=None if many is None else found.ratio(many),
        ),
        Printed(
            what=f"points from which on it is at {LEVEL} of HMC's, s = {nodes}",
            printed="around 2000",
            ours=points_needed(found, curve),
        ),
    )
