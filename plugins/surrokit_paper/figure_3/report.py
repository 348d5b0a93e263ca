"""The report of figure 3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from surrokit.experiments.contract import Finished, Printed, Report, Table
from surrokit_paper.measures.growth import growth_power
from surrokit_paper.measures.repeats import quantiles, repeats

QUANTITIES = (
    "training_seconds",
    "solve_seconds",
    "error",
    "gradient_error",
    "acceptance",
    "mean_ess_per_second",
    "min_ess_per_second",
)
"""Numbers of a result over whose repeats medians are taken."""

NOTES = (
    "training seconds include the optimisation of hyperparameters; the paper's do not. Solving is "
    "what is left of it once they are known.",
    "seconds are those of the processor, all threads together.",
    "effective draws are the mean over the 32 parameters, as the paper has them, by the estimator "
    "of its section 5; seconds are those of the kept draws alone.",
    "the exact potential, without noise, decides every acceptance.",
)


def over_repeats(finished: Sequence[Finished]) -> list[dict[str, Any]]:
    """Return, for each surrogate and N, median and 80 % interval of each quantity.

    Returns
    -------
    list of dict
        ``method``, ``label``, ``n_points`` (0 for the exact potential), ``repeats``, and for each
        quantity that is known ``low``, ``median`` and ``high``.
    """
    found = []
    for (method, n), rows in repeats(finished, "method", "n_points").items():
        group: dict[str, Any] = {
            "method": method,
            "label": rows[0].settings["label"],
            "n_points": n,
            "repeats": len(rows),
        }
        for name in QUANTITIES:
            numbers = [row.result[name] for row in rows if row.result.get(name) is not None]
            if numbers:
                group[name] = quantiles(numbers)
        found.append(group)
    return found


def growth(
    groups: Sequence[dict[str, Any]], quantity: str = "training_seconds"
) -> dict[str, dict[str, float | None]]:
    """Return the power of N with which the training time of each surrogate grows.

    Parameters
    ----------
    groups
        As :func:`over_repeats` returns them.
    quantity
        The time that is meant.

    Returns
    -------
    dict
        Surrogate to ``all``, over every N, and ``upper_half``, over the larger ones, where fixed
        costs weigh less.
    """
    powers = {}
    for method in dict.fromkeys(group["method"] for group in groups):
        pairs = sorted(
            (group["n_points"], group[quantity]["median"])
            for group in groups
            if group["method"] == method and quantity in group
        )
        if pairs:
            powers[method] = {
                "all": growth_power(*zip(*pairs, strict=True)),
                "upper_half": growth_power(*zip(*pairs[len(pairs) // 2 :], strict=True)),
            }
    return powers


def report(finished: Sequence[Finished]) -> Report:
    """Return medians and intervals, powers of growth, and the paper's one number."""
    groups = over_repeats(finished)
    powers = growth(groups)
    order = [group["method"] for group in groups]
    exact = [group for group in groups if not group["n_points"]]
    return Report(
        tables=(
            Table.of(
                sorted(groups, key=lambda group: order.index(group["method"])),
                columns={
                    "surrogate": lambda group: group["label"],
                    "N": lambda group: group["n_points"] or None,
                    "repeats": lambda group: group["repeats"],
                    "training, s": lambda group: _median(group, "training_seconds"),
                    "solving, s": lambda group: _median(group, "solve_seconds"),
                    "error, nats": lambda group: _median(group, "error"),
                    "gradient error": lambda group: _median(group, "gradient_error"),
                    "acceptance": lambda group: _median(group, "acceptance"),
                    "mean ESS/s": lambda group: _median(group, "mean_ess_per_second"),
                    "min ESS/s": lambda group: _median(group, "min_ess_per_second"),
                    "power of N": lambda group: powers.get(group["method"], {}).get("upper_half"),
                },
            ),
        ),
        printed=(
            Printed(
                what="acceptance of HMC at this step size",
                printed="around 0.7",
                ours=_median(exact[0], "acceptance") if exact else None,
            ),
        ),
        figures={
            "over_repeats": groups,
            "power_of_training_time": powers,
            "power_of_solving_time": growth(groups, "solve_seconds"),
        },
        notes=NOTES,
    )


def _median(group: dict[str, Any], name: str) -> float | None:
    return group[name]["median"] if name in group else None
