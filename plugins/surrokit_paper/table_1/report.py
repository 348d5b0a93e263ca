"""The report of table 1."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from surrokit.experiments.contract import Finished, Printed, Report
from surrokit_paper.table_1.methods import HMC, METHODS
from surrokit_paper.table_1.paper import PRINTED
from surrokit_paper.table_1.summary import Summary, agreements, by_name, ratio, summaries
from surrokit_paper.table_1.tables import (
    beside_the_paper,
    honest_costs,
    paper_accounting,
    posteriors,
    speed_ups,
)

NOTES = (
    "seconds are those of the processor, all threads together. Of the first three tables they are "
    "those of the kept draws alone, exact decisions included, as in the paper.",
    "ESS is the paper's estimator, at most the number of draws; the fourth table has the bulk ESS "
    "by ranks, which may exceed it.",
    "here HMC pays one gradient a leapfrog step, and gets its value with the last. As the authors "
    "count it pays two gradients a step and a value: seconds as run + (2 steps - gradients paid) "
    "x seconds of a gradient + (draws - values paid) x seconds of a value, with the seconds of "
    "single calls measured in the same row at draws of the posterior. Only HMC is charged so.",
    "'at most' is what a surrogate could reach that costs nothing and mixes as HMC does, since one "
    "exact value an iteration is left.",
    "the authors' code of the elliptic problem makes 21 assemblies and solves at each call, values "
    "included; here a gradient takes one factorisation and two solves, by the adjoint equation. "
    "The last column of the second table charges 21 solves for every call of both.",
    "RNS-RMHMC learns from a burn-in of exact HMC, the paper's from one of exact RMHMC, which "
    "would take an hour here. Exact RMHMC makes fewer draws, after as many iterations of exact HMC "
    "from 0 as the setting 'settling' says, which count as its burn-in.",
    "implicit equations of RMHMC are solved to 1e-10 and each path is tried back; the authors make "
    "five passes.",
    "a9a: the paper's random projection is lost. On orthonormal directions of the standardised "
    "features its step size of HMC gives nearly its acceptance and effective draws. The step size "
    "of RMHMC is tuned again for its acceptance of 0.82, and is 0.4 where the paper has 0.5.",
    "elliptic PDE: the paper's data are not given; ours are drawn from the model with a fixed "
    "seed.",
    "methods with four chains are tuned in their own warm-up; 'a draw' is that of one chain. The "
    "last of them, exact HMC, is what posteriors are compared with.",
)


def report(finished: Sequence[Finished]) -> Report:
    """Return the table in the paper's accounting, in an honest one, and posteriors compared."""
    found = summaries(finished)
    hidden = attrs.fields(Summary).result
    return Report(
        tables=(
            paper_accounting(found),
            speed_ups(found),
            beside_the_paper(found),
            honest_costs(found),
            posteriors(found),
        ),
        printed=tuple(_print(found)),
        figures={
            "methods": [attrs.asdict(one, filter=attrs.filters.exclude(hidden)) for one in found],
            "agreement": [
                {"problem": one.problem, "method": one.method, **attrs.asdict(agreement)}
                for one, _, agreement in agreements(found)
            ],
        },
        notes=NOTES + _settings(found) + _choices(found),
    )


def _print(found: Sequence[Summary]) -> list[Printed]:
    figures = []
    for one in found:
        printed = PRINTED.get((one.problem, one.method))
        if printed is not None:
            name = f"{one.method_label}, {one.problem_label}"
            figures.append(
                Printed(what=f"AP, {name}", printed=printed.acceptance, ours=one.acceptance)
            )
    for one in found:
        printed, hmc = PRINTED.get((one.problem, one.method)), by_name(found, one.problem, HMC)
        if printed is not None and hmc is not None and one is not hmc:
            figures.append(
                Printed(
                    what=f"speed-up, {one.method_label}, {one.problem_label}",
                    printed=printed.speed_up,
                    ours=ratio(one.rate, hmc.charged_rate),
                )
            )
    return figures


def _settings(found: Sequence[Summary]) -> tuple[str, ...]:
    done = {one.method for one in found}
    return tuple(f"{m.label}: {m.what}." for name, m in METHODS.items() if name in done)


def _choices(found: Sequence[Summary]) -> tuple[str, ...]:
    return tuple(
        f"picked on {one.problem_label}: {one.choice}." for one in found if one.choice is not None
    )
