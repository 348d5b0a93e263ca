"""Figure 5, section 4: acceptance of HMC on surrogates, over nodes s and training points N.

There are 32 parameters. The paper's axes have no numbers. How is in :mod:`surrokit_paper.figure_4`.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from surrokit_paper import figure_4
from surrokit_paper.chains import Row, median
from surrokit_paper.figure_4 import cases, curve, draw, exact, nodes_of, run, table

__all__ = ["FULL", "QUICK", "TITLE", "cases", "draw", "report", "run"]

TITLE = "Figure 5: acceptance against hidden nodes and training points, 32 parameters"

FULL: dict[str, Any] = {
    **figure_4.FULL,
    "dims": (32,),
    "n_nodes": (100, 250, 500, 750, 1000, 1500, 2000),
    "n_points": (200, 350, 500, 750, 1000, 1250, 1600, 2000, 3000),
    "gradient_points": (10, 25, 50, 100, 200),
    "over": "n_points",
    "cuts": (1000, 1600),
}
QUICK: dict[str, Any] = {
    "n_nodes": (250, 500, 1000),
    "n_points": (250, 500, 1000, 1600),
    "repeats": 1,
}


def report(rows: Sequence[Row], sizes: SimpleNamespace) -> tuple[dict[str, Any], list[Any]]:
    """Return the table, acceptance with few and many points, and where it becomes comparable."""
    s = nodes_of(rows, sizes)
    found = curve(rows, "n_points", "paper", n_nodes=s)
    medians = {n: median(runs, "acceptance") or 0.0 for n, runs in found.items()}
    ratio = {n: each / exact(rows, max(sizes.dims)) for n, each in medians.items()}
    below = max((n for n in ratio if ratio[n] < 0.9), default=0)
    since = next((n for n in ratio if n > below), None)
    return {"medians over repeats": table(rows)}, [
        (f"acceptance with 500 points, s = {s}", "around 0.1", medians.get(500)),
        (f"acceptance with 2000 points over HMC's, s = {s}", "comparable", ratio.get(2000)),
        (f"points from which on it is at 0.9 of HMC's, s = {s}", "around 2000", since),
    ]
