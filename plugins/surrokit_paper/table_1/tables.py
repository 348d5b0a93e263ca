"""The tables that table 1 consists of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from surrokit.experiments.contract import Cell, Table
from surrokit_paper.table_1.methods import HMC
from surrokit_paper.table_1.paper import PAPER_DRAWS, PRINTED
from surrokit_paper.table_1.summary import Summary, agreements, by_name, ratio


def paper_accounting(found: Sequence[Summary]) -> Table:
    """Return acceptance, effective draws and seconds of sampling alone."""
    return Table.of(
        found,
        title="The paper's accounting: sampling alone, burn-in and training left out",
        columns={
            "problem": lambda one: one.problem_label,
            "method": lambda one: one.method_label,
            "AP": lambda one: one.acceptance,
            "ESS: least": lambda one: one.ess[0],
            "median": lambda one: one.ess[1],
            "largest": lambda one: one.ess[2],
            "draws": lambda one: one.draws,
            "least, of draws": lambda one: ratio(one.ess[0], one.draws),
            "ms a draw": lambda one: 1e3 * one.seconds,
            "min(ESS)/s": lambda one: one.rate,
            "over HMC's": lambda one: ratio(one.rate, _hmc_rate(found, one.problem)),
        },
    )


def speed_ups(found: Sequence[Summary]) -> Table:
    """Return min(ESS) a second over that of the paper's HMC, in each accounting."""
    lines = []
    for one in found:
        hmc = by_name(found, one.problem, HMC)
        if hmc is None or one is hmc:
            continue
        as_run, charged = hmc.ceilings or (None, None)
        printed = PRINTED.get((one.problem, one.method))
        lines.append(
            (
                one.problem_label,
                one.method_label,
                None if printed is None else printed.speed_up,
                ratio(one.rate, hmc.charged_rate),
                charged,
                ratio(one.rate, hmc.rate),
                as_run,
                ratio(one.sensitivity_rate, hmc.sensitivity_rate),
            )
        )
    return Table(
        title="min(ESS)/s over HMC's: HMC charged as the authors do, and as it runs here",
        columns=(
            "problem",
            "method",
            "paper",
            "as the authors count",
            "at most",
            "as run",
            "at most ",
            "all sensitivities solved for",
        ),
        lines=tuple(lines),
    )


def beside_the_paper(found: Sequence[Summary]) -> Table:
    """Return each printed line with ours beside it."""
    lines = []
    for one in found:
        printed = PRINTED.get((one.problem, one.method))
        if printed is None:
            continue
        lines.append(
            (
                one.problem_label,
                one.method_label,
                printed.acceptance,
                one.acceptance,
                _triple(printed.ess, PAPER_DRAWS),
                _triple(one.ess, one.draws),
                printed.seconds,
                one.seconds,
                one.charged_seconds,
                printed.rate,
                one.rate,
                one.charged_rate,
            )
        )
    return Table(
        title="Beside the paper's figures; ESS as percentages of the draws",
        columns=(
            "problem",
            "method",
            "AP: paper",
            "here",
            "ESS: paper",
            "here ",
            "s a draw: paper",
            "as run",
            "as the authors count",
            "min(ESS)/s: paper",
            "as run ",
            "as the authors count ",
        ),
        lines=tuple(lines),
    )


def honest_costs(found: Sequence[Summary]) -> Table:
    """Return effective draws by ranks, and all that they cost."""
    return Table.of(
        found,
        title="Everything counted: burn-in, exploration, training and warm-up",
        columns={
            "problem": lambda one: one.problem_label,
            "method": lambda one: one.method_label,
            "draws": lambda one: one.draws,
            "bulk ESS: least": lambda one: one.bulk_ess,
            "R-hat": lambda one: one.rhat,
            "values": lambda one: one.calls["value"],
            "gradients": lambda one: one.calls["gradient"],
            "other calls": _others,
            "data rows": lambda one: one.calls["rows"] or None,
            "calls for each effective draw": lambda one: one.calls_per_effective_draw,
            "seconds": lambda one: one.all_seconds,
            "effective draws a second": lambda one: one.full_rate,
        },
    )


def posteriors(found: Sequence[Summary]) -> Table:
    """Return how far posteriors agree with that of exact HMC."""
    lines: list[tuple[Cell, ...]] = [
        (
            one.problem_label,
            one.method_label,
            reference.method_label,
            agreement.means,
            agreement.sds,
            agreement.chance,
            _percent(agreement.sds_relative),
            _percent(agreement.sds_error),
        )
        for one, reference, agreement in agreements(found)
    ]
    return Table(
        title="Posteriors compared with exact HMC: the largest difference over parameters",
        columns=(
            "problem",
            "method",
            "compared with",
            "means, in standard errors",
            "sds, in standard errors",
            "chance gives, once in 100 times",
            "sds, per cent",
            "one standard error, per cent",
        ),
        lines=tuple(lines),
    )


def _hmc_rate(found: Sequence[Summary], problem: str) -> float | None:
    hmc = by_name(found, problem, HMC)
    return None if hmc is None else hmc.rate


def _triple(ess: Sequence[float | None], draws: int) -> str | None:
    if any(number is None for number in ess):
        return None
    return ", ".join(f"{100 * number / draws:.0f}" for number in ess if number is not None)


def _others(one: Summary) -> str | None:
    known: dict[str, Any] = {
        kind: n for kind, n in one.calls.items() if n and kind not in ("value", "gradient", "rows")
    }
    return ", ".join(f"{n:.0f} {kind}" for kind, n in known.items()) or None


def _percent(part: float | None) -> float | None:
    return None if part is None else 100 * part
