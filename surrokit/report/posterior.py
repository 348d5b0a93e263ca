"""The second section of a page: the posterior."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from surrokit.plots.forest import forest_panel
from surrokit.plots.marginals import marginal_panels
from surrokit.plots.pairs import AT_ONCE, pair_panels, strongest_pairs
from surrokit.plots.panel import percent
from surrokit.plots.sample import Sample
from surrokit.report.svg import Drawer
from surrokit.report.tables import table
from surrokit.shown.elements import Child, Markup, join, tag
from surrokit.types import FloatArray

ALL = 24
"""Numbers of which each has a picture; of more, the first and the worst have."""

FIRST, WORST = 6, 6
"""Of more than that."""

PAIRS = 6
"""Pairs of numbers that are shown."""

VECTOR = 3
"""Numbers of a parameter from which on it has a forest."""

FORESTS = 6
"""Parameters that have a forest at most."""

LARGEST_RHAT, FEWEST_EFFECTIVE = 1.01, 100

_COLUMNS = {
    "mean": "mean",
    "sd": "sd",
    "q50": "median",
    "hdi_low": "from",
    "hdi_high": "to",
    "ess": "ESS",
    "rhat": "R-hat",
    "mcse": "error of mean",
}


@attrs.frozen(kw_only=True)
class Shown:
    """Which numbers of a run have pictures.

    Parameters
    ----------
    columns
        Their places.
    why
        What a reader is told of those left out; None where all are shown.
    """

    columns: list[int]
    why: str | None = None

    @classmethod
    def of(cls, summary: Any) -> Shown:
        """Return all numbers of a summary, or of many the first and the worst."""
        n = len(summary.labels)
        if n <= ALL:
            return cls(columns=list(range(n)))
        rhat = np.nan_to_num(summary["rhat"], nan=np.inf)
        order = np.lexsort([summary["ess"], -rhat])
        first = list(range(FIRST))
        worst = [int(column) for column in order if column >= FIRST][:WORST]
        why = (
            f"Of {n} numbers, the first {FIRST} and the {WORST} others with the largest R-hat have "
            "pictures; the table has all."
        )
        return cls(columns=[*first, *worst], why=why)


def section(run: Any, summary: Any, interval: float, drawer: Drawer) -> Markup:
    """Return the section.

    Parameters
    ----------
    run
        A :class:`~surrokit.result.run.Run` with draws.
    summary
        Its summary, with intervals.
    interval
        Their probability.
    drawer
        Draws its pictures.
    """
    shown, note = Shown.of(summary), Sample.of(run).note
    marginals = [drawer.draw(panel) for panel in marginal_panels(run, shown.columns, interval)]
    parts: list[Child] = [
        tag("p", f"Pictures are of {note}.") if note else None,
        figures(summary, interval),
        tag("h3", "Densities"),
        tag(
            "p",
            f"Shaded and on the line below: the {percent(interval)} highest-density interval; the "
            "dot is the median. Thin lines are single chains. ",
            shown.why,
        ),
        tag("div", *marginals, class_="pictures"),
        *_pairs(run, drawer),
        *_forests(run, interval, summary["rhat"], drawer),
    ]
    return join(parts)


def figures(summary: Any, interval: float) -> Markup:
    """Return a table of all numbers.

    Parameters
    ----------
    summary
        Of a run, with intervals.
    interval
        Their probability.
    """
    told = zip(summary.titles, (row for _, row in summary.rows()), strict=True)
    rows = [(label, [_cell(name, row[name]) for name in _COLUMNS]) for label, row in told]
    title = f"All numbers; from and to are ends of {percent(interval)} highest-density intervals"
    return table(title, ["parameter", *_COLUMNS.values()], rows, "numbers")


def _cell(column: str, value: float) -> Child:
    if np.isnan(value):
        text, doubtful = "missing", column in ("rhat", "ess")
    else:
        form = {"ess": ".0f", "rhat": ".3f"}.get(column, ".4g")
        text = format(value, form)
        doubtful = (column == "rhat" and value > LARGEST_RHAT) or (
            column == "ess" and value < FEWEST_EFFECTIVE
        )
    return tag("span", f"{text} !", class_="doubtful") if doubtful else text


def _pairs(run: Any, drawer: Drawer) -> Sequence[Child]:
    if len(run.labels) < 2:
        return []
    found = [drawer.draw(panel) for panel in pair_panels(run, strongest_pairs(run, PAIRS))]
    among = f", among the first {AT_ONCE} numbers" if len(run.labels) > AT_ONCE else ""
    return [
        tag("h3", "Pairs"),
        tag("p", f"Numbers that tell most of one another, by rank correlation{among}."),
        tag("div", *found, class_="pictures"),
    ]


def _forests(run: Any, interval: float, rhat: FloatArray, drawer: Drawer) -> Sequence[Child]:
    slices = run.parameters.slices()
    vectors = [name for name, spec in run.parameters.specs.items() if spec.size >= VECTOR]
    if not vectors:
        return []
    everything = range(len(run.labels))
    panels = [
        forest_panel(run, everything[slices[name]], interval, name, rhat)
        for name in vectors[:FORESTS]
    ]
    left = len(vectors) - len(panels)
    more = f" {left} more such parameters are in the table." if left else ""
    return [
        tag("h3", "Parameters with several numbers"),
        tag("p", f"Medians, intervals of 50% (thick) and {percent(interval)} (thin).{more}"),
        tag("div", *(drawer.draw(panel) for panel in panels), class_="pictures"),
    ]
