"""The report of figure 6."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from surrokit.experiments.contract import Cell, Finished, Printed, Report, Table
from surrokit_paper.measures.marginals import Marginals, largest_by_chance

PAPER_ACCEPTANCE = {"hmc": 0.76, "rns": 0.76}
"""Of the simulated data, in table 1."""

LEVEL = 0.99
"""Probability with which runs of one posterior stay under what is called chance here."""

NOTES = (
    "standard errors are those of Monte Carlo, from effective sample sizes; of two runs they add "
    "in squares.",
    "largest differences are over all parameters, those of correlations over the pairs that are "
    f"drawn. Of runs that draw from one posterior, {LEVEL:.0%} stay under the last column in "
    "standard errors.",
    "a step size of 0.045 and paths of up to 6 steps are the paper's, unit masses too; "
    "surrokit as it comes picks everything itself.",
    "seconds are those of the whole run, burn-in and training included.",
)


def report(finished: Sequence[Finished]) -> Report:
    """Return means and standard deviations, differences from HMC, and what the runs cost."""
    rows = {row.settings["method"]: row for row in finished}
    compared = differences(finished)
    acceptance = {method: row.result["acceptance"] for method, row in rows.items()}
    tables = [_draw(finished)]
    if compared:
        tables.append(_differences(compared))
    return Report(
        tables=(*tables, _costs(finished)),
        printed=tuple(
            Printed(
                what=f"acceptance, {rows[method].settings['label']} (table 1)",
                printed=number,
                ours=acceptance[method],
            )
            for method, number in PAPER_ACCEPTANCE.items()
            if method in rows
        ),
        figures={
            "differences_from_hmc": compared,
            "marginals": {
                method: Marginals.from_dict(row.result).to_dict() for method, row in rows.items()
            },
        },
        notes=NOTES,
    )


def differences(finished: Sequence[Finished]) -> list[dict[str, Any]]:
    """Return how far each method's means and standard deviations are from those of HMC.

    Returns
    -------
    list of dict
        ``method``, ``label``; ``mean_apart`` and ``sd_apart``, the largest differences in standard
        errors, with ``mean_parameter`` and ``sd_parameter``, counted from 1; ``mean_in_sds`` and
        ``sd_relative``, the largest ones in standard deviations of the posterior; ``correlation``
        and ``correlation_apart``, among the parameters that are drawn, None for a single one; what
        all stay under by ``chance``, and correlations by ``pairs_chance``. Empty without HMC.
    """
    rows = {row.settings["method"]: row for row in finished}
    exact = rows.pop("hmc", None)
    if exact is None:
        return []
    reference = Marginals.from_dict(exact.result)
    found = []
    for method, row in rows.items():
        marginals = Marginals.from_dict(row.result)
        means = np.abs(marginals.means_apart(reference))
        sds = np.abs(marginals.sds_apart(reference))
        found.append(
            {
                "method": method,
                "label": row.settings["label"],
                "mean_apart": float(means.max()),
                "mean_parameter": int(means.argmax()) + 1,
                "mean_in_sds": float(
                    np.abs((marginals.means - reference.means) / reference.sds).max()
                ),
                "sd_apart": float(sds.max()),
                "sd_parameter": int(sds.argmax()) + 1,
                "sd_relative": float(np.abs(marginals.sds / reference.sds - 1.0).max()),
                **_correlations(row, exact),
                "chance": largest_by_chance(len(means), LEVEL),
            }
        )
    return found


def _correlations(row: Finished, exact: Finished) -> dict[str, float | None]:
    """Return the largest difference of a correlation, by itself and in standard errors.

    Of a normal posterior, products of two parameters forget their past as squares of one do. So
    the error of a correlation is the root of 2 times the relative error of a standard deviation.
    """
    numbers = [number - 1 for number in row.settings["parameters"]]
    if len(numbers) < 2:
        return {"correlation": None, "correlation_apart": None, "pairs_chance": None}
    correlations, variances = [], []
    for one in (row, exact):
        marginals = Marginals.from_dict(one.result)
        relative = (marginals.sd_errors / marginals.sds)[numbers]
        variances.append(2.0 * np.outer(relative, relative))
        correlations.append(np.array(one.result["correlations"], dtype=np.float64))
    apart = np.abs(correlations[0] - correlations[1])
    return {
        "correlation": float(apart.max()),
        "correlation_apart": float((apart / np.sqrt(variances[0] + variances[1])).max()),
        "pairs_chance": largest_by_chance(len(numbers) * (len(numbers) - 1) // 2, LEVEL),
    }


def _draw(finished: Sequence[Finished]) -> Table:
    lines: list[tuple[Cell, ...]] = []
    for parameter in finished[0].settings["parameters"]:
        i = parameter - 1
        for row in finished:
            result = row.result
            lines.append(
                (
                    f"beta_{parameter}",
                    row.settings["label"],
                    result["means"][i],
                    result["mean_errors"][i],
                    result["sds"][i],
                    result["sd_errors"][i],
                    result["ess"][i],
                )
            )
    return Table(
        title="marginals, in log odds",
        columns=(
            "parameter",
            "method",
            "mean",
            "standard error",
            "sd",
            "standard error of the sd",
            "bulk ESS",
        ),
        lines=tuple(lines),
    )


def _differences(compared: Sequence[dict[str, Any]]) -> Table:
    lines: list[tuple[Cell, ...]] = []
    for found in compared:
        label, chance = found["label"], found["chance"]
        lines += [
            (label, "means, in sds", found["mean_in_sds"], found["mean_apart"], chance),
            (label, "sds, relative", found["sd_relative"], found["sd_apart"], chance),
        ]
        if found["correlation"] is not None:
            apart = found["correlation"], found["correlation_apart"], found["pairs_chance"]
            lines.append((label, "correlations", *apart))
    return Table(
        title="largest differences from HMC",
        columns=("method", "of", "largest", "in standard errors", f"{LEVEL:.0%} stay under"),
        lines=tuple(lines),
    )


def _costs(finished: Sequence[Finished]) -> Table:
    return Table.of(
        finished,
        title="runs",
        columns={
            "method": lambda row: row.settings["label"],
            "chains": lambda row: row.result["chains"],
            "acceptance": lambda row: row.result["acceptance"],
            "min bulk ESS": lambda row: min(row.result["ess"]),
            "seconds": lambda row: sum(row.result["seconds"].values()),
            "gradients": lambda row: row.result["calls"]["gradient"],
            "values": lambda row: row.result["calls"]["value"],
        },
    )
