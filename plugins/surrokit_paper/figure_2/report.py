"""The report of figure 2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from surrokit.experiments.contract import Cell, Finished, Printed, Report, Table
from surrokit_paper.measures.repeats import HIGH, LOW, quantiles, repeats

PAPER = {"hmc": 0.97, "paper": 0.88}
"""Overall acceptance, as the caption of figure 2 has it."""

NOTES = (
    "acceptance is the mean of the exact acceptance probabilities of a chain, and in the table "
    "its mean over repeats, with the standard error of that mean.",
    "the paper gives neither step size nor number of steps; ours are set for its acceptance of "
    "HMC. Its surrogate's acceptance is then measured, in many chains where the paper has one.",
    "the surrogates of one repeat see the same training points: states of exact HMC, as in the "
    "authors' code, repetitions included. The paper's text says accepted proposals.",
    "effective draws are bulk effective draws of the parameter that has fewest, for each draw.",
)


def over_repeats(finished: Sequence[Finished]) -> list[dict[str, Any]]:
    """Return what the repeats of each method say.

    Returns
    -------
    list of dict
        ``method``, ``label``, ``repeats``; ``mean`` of the acceptance, its ``standard_error`` (None
        for a single repeat), ``low``, ``median`` and ``high``; ``ess_per_draw``, a median.
    """
    found = []
    for (method,), rows in repeats(finished, "method").items():
        numbers = np.array([row.result["acceptance"] for row in rows])
        ess = [row.result["ess"] / row.settings["draws"] for row in rows]
        found.append(
            {
                "method": method,
                "label": rows[0].settings["label"],
                "repeats": len(rows),
                "mean": float(numbers.mean()),
                "standard_error": float(numbers.std(ddof=1) / len(rows) ** 0.5)
                if len(rows) > 1
                else None,
                **quantiles(numbers),
                "ess_per_draw": float(np.median(ess)),
            }
        )
    return found


def rows_with_paths(finished: Sequence[Finished]) -> dict[str, Finished]:
    """Return, by method, the rows whose forces and paths were kept."""
    return {row.settings["method"]: row for row in finished if "drawn" in row.result}


def report(finished: Sequence[Finished]) -> Report:
    """Return acceptance over repeats, the paths that are drawn, and the paper's two numbers."""
    groups = over_repeats(finished)
    means = {group["method"]: group["mean"] for group in groups}
    tables = [
        Table.of(
            groups,
            title="acceptance",
            columns={
                "method": lambda group: group["label"],
                "repeats": lambda group: group["repeats"],
                "mean": lambda group: group["mean"],
                "standard error": lambda group: group["standard_error"],
                f"{LOW:.0%} of repeats below": lambda group: group["low"],
                "median": lambda group: group["median"],
                f"{1 - HIGH:.0%} above": lambda group: group["high"],
                "min ESS a draw": lambda group: group["ess_per_draw"],
            },
        )
    ]
    paths = _paths(rows_with_paths(finished))
    if paths:
        tables.append(
            Table(
                title="proposals that are drawn",
                columns=("method", "path", "acceptance", "distance from HMC's"),
                lines=tuple(paths),
            )
        )
    return Report(
        tables=tuple(tables),
        printed=tuple(
            Printed(what=f"overall acceptance, {what}", printed=PAPER[method], ours=means[method])
            for method, what in (("hmc", "HMC"), ("paper", "surrogate"))
            if method in means
        ),
        figures={"over_repeats": groups},
        notes=NOTES,
    )


def _paths(rows: dict[str, Finished]) -> list[tuple[Cell, ...]]:
    """Return a line for each path: where it ends, seen from the end of HMC's."""
    exact = _ends(rows["hmc"]) if "hmc" in rows else None
    lines: list[tuple[Cell, ...]] = []
    for row in rows.values():
        ends = _ends(row)
        for i, acceptance in enumerate(row.result["drawn"]["acceptance"]):
            distance = None if exact is None else float(np.linalg.norm(ends[i] - exact[i]))
            lines.append((row.settings["label"], i + 1, acceptance, distance))
    return lines


def _ends(row: Finished) -> Any:
    return np.array(row.result["drawn"]["paths"])[:, -1]
