"""The report of figure 4."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from surrokit.experiments.contract import Cell, Finished, Printed, Report, Table
from surrokit_paper.acceptance.grid import METHODS, PAPER
from surrokit_paper.acceptance.grid_summary import NOTES, GridSummary, Tried, coefficients, section

SECTION_DIM, SECTION_NODES = 32, 2000
"""Where the paper cuts through its heat map."""

LEVEL = 0.9
"""Part of HMC's acceptance that counts as relatively high."""

_PAPER_DIM = 48
"""The size of ours that is nearest to the paper's "about 50"."""


def report(finished: Sequence[Finished]) -> Report:
    """Return the heat map as a table, every surrogate by d, and the paper's statements."""
    found = GridSummary.of(finished)
    n_points = max(found.sizes("n_points", PAPER.name))
    return Report(
        tables=(_heat_map(found, n_points), _sections(found)),
        printed=_print(found, n_points),
        figures=attrs.asdict(found),
        notes=NOTES,
    )


def _heat_map(found: GridSummary, n_points: int) -> Table:
    nodes = found.sizes("n_nodes", PAPER.name)
    lines: list[tuple[Cell, ...]] = []
    for dim in found.dims:
        by_nodes = {
            tried.n_nodes: tried.acceptance.median
            for tried in found.curve(PAPER.name, dim=dim, n_points=n_points)
        }
        hmc = found.hmc[dim]
        cells = (by_nodes.get(size) for size in nodes)
        lines.append((dim, hmc.runs, coefficients(dim), hmc.median, *cells))
    return Table(
        title=f"median acceptance, the paper's network from {n_points} values, by its nodes s",
        columns=(
            "d",
            "runs",
            "coefficients of a quadratic",
            "HMC",
            *(f"s = {size}" for size in nodes),
        ),
        lines=tuple(lines),
    )


def _sections(found: GridSummary) -> Table:
    nodes = section(found.sizes("n_nodes", PAPER.name), SECTION_NODES)
    labels = {method.name: method.label for method in METHODS}
    tried: list[Tried] = []
    for method in METHODS:
        n_nodes = nodes if method.name == PAPER.name else None
        n = max(found.sizes("n_points", method.name))
        tried += found.curve(method.name, n_nodes=n_nodes, n_points=n)
    return Table.of(
        tried,
        title="by number of parameters: acceptance, and processor seconds of a fit",
        columns={
            "surrogate": lambda one: labels[one.method],
            "s": lambda one: one.nodes_used,
            "N": lambda one: one.n_points,
            "d": lambda one: one.dim,
            "10 %": lambda one: one.acceptance.low,
            "median": lambda one: one.acceptance.median,
            "90 %": lambda one: one.acceptance.high,
            "training, s": lambda one: one.training_seconds,
        },
    )


def _print(found: GridSummary, n_points: int) -> tuple[Printed, ...]:
    nodes = section(found.sizes("n_nodes", PAPER.name), SECTION_NODES)
    curve = found.curve(PAPER.name, n_nodes=nodes, n_points=n_points)
    near = next((tried for tried in curve if tried.dim == _PAPER_DIM), None)
    dim = section(found.dims, SECTION_DIM)
    return (
        Printed(
            what=f"acceptance of HMC at this step size, d = {dim}",
            printed="around 0.7",
            ours=found.hmc[dim].median,
        ),
        Printed(
            what=f"acceptance at d = {_PAPER_DIM}, s = {nodes}",
            printed="relatively high up to d of about 50",
            ours=None if near is None else near.acceptance.median,
        ),
        Printed(
            what=f"largest d, of those tried, up to which s = {nodes} has {LEVEL} of HMC's",
            printed="about 50",
            ours=_high_up_to(found, curve),
        ),
        Printed(
            what=f"training at d = {_PAPER_DIM}, s = {nodes}, in seconds",
            printed="a few",
            ours=None if near is None else near.training_seconds,
        ),
    )


def _high_up_to(found: GridSummary, curve: Sequence[Tried]) -> int | None:
    """Return the largest number of parameters up to which acceptance is at 0.9 of HMC's."""
    reached = None
    for tried in curve:
        if found.ratio(tried) < LEVEL:
            break
        reached = tried.dim
    return reached
