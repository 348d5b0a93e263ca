"""The report of figure 7."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from surrokit.experiments.contract import Finished, Printed, Report, Table
from surrokit_paper.measures.acceptance_curve import Curve
from surrokit_paper.measures.repeats import median, repeats
from surrokit_paper.surrogates.schemes import SCHEMES

LEVEL = 0.9
"""Part of HMC's acceptance that counts as having reached it."""

PAPER_HMC = {"simulated": 0.76, "bank": 0.70, "a9a": 0.72, "pde": 0.91}
"""Acceptance of HMC in table 1."""

NOTES = (
    "acceptance is the mean of the exact acceptance probabilities in a bin of training points; the "
    "curve is the median over runs, and its band goes from 5 % to 95 % of them.",
    "training points are the positions at which the target was evaluated since the burn-in, those "
    "along exact paths and rejected proposals included.",
    "the paper's network sees whitened inputs: in raw coordinates, which the paper has, the "
    "recursion of its Proposition 1 is numerically meaningless.",
    "the paper does not say at which rate its surrogate is deployed anew; (1 + t)^-kappa is ours.",
    "a9a: the paper's random projection is lost. On orthonormal directions of the standardised "
    "features its step size gives nearly its acceptance of HMC.",
)


@attrs.frozen(kw_only=True)
class Summary:
    """What the runs of one scheme on one problem say.

    Parameters
    ----------
    problem, label, scheme
        Which.
    runs
        How many.
    hmc
        Average acceptance of HMC; None if it was not run.
    curve
        Acceptance over training points.
    numbers
        Medians of ``starting_points``, ``points``, ``deployments``, ``seconds`` and
        ``training_seconds``.
    """

    problem: str
    label: str
    scheme: str
    runs: int
    hmc: float | None
    curve: Curve
    numbers: dict[str, float | None]

    @property
    def reached(self) -> float | None:
        """After how many points 0.9 times HMC's acceptance is reached, at first."""
        return None if self.hmc is None else self.curve.reached(LEVEL * self.hmc)

    @property
    def stays(self) -> float | None:
        """After how many points it is reached for good."""
        return None if self.hmc is None else self.curve.stays(LEVEL * self.hmc)

    @property
    def last_ratio(self) -> float | None:
        """Acceptance in the last quarter of the curve over HMC's."""
        if self.hmc is None or self.curve.last is None:
            return None
        return self.curve.last / self.hmc


def hmc_acceptance(finished: Sequence[Finished]) -> dict[str, float]:
    """Return the average acceptance of HMC on each problem."""
    return {
        problem: float(np.mean([row.result["acceptance"] for row in rows]))
        for (problem, method), rows in repeats(finished, "problem", "method").items()
        if method == "hmc"
    }


def summaries(finished: Sequence[Finished]) -> list[Summary]:
    """Return a summary for each problem and scheme with finished rows, in their order."""
    hmc = hmc_acceptance(finished)
    groups = repeats(finished, "problem", "method")
    return [
        Summary(
            problem=problem,
            label=rows[0].settings["label"],
            scheme=scheme,
            runs=len(rows),
            hmc=hmc.get(problem),
            curve=Curve.over_runs(
                rows[0].result["edges"], [row.result["acceptance"] for row in rows]
            ),
            numbers={name: median(rows, name) for name in _NUMBERS},
        )
        for (problem, scheme), rows in groups.items()
        if scheme in SCHEMES
    ]


def report(finished: Sequence[Finished]) -> Report:
    """Return the table, and the paper's acceptances of HMC beside ours."""
    found = summaries(finished)
    hmc = hmc_acceptance(finished)
    return Report(
        tables=(
            Table.of(
                found,
                columns={
                    "problem": lambda summary: summary.label,
                    "surrogate": lambda summary: SCHEMES[summary.scheme].label,
                    "runs": lambda summary: summary.runs,
                    "HMC's acceptance": lambda summary: summary.hmc,
                    "at the end": lambda summary: summary.curve.last,
                    "0.9 of HMC's after": lambda summary: summary.reached,
                    "for good after": lambda summary: summary.stays,
                    "starting points": lambda summary: summary.numbers["starting_points"],
                    "deployments": lambda summary: summary.numbers["deployments"],
                    "seconds a run": lambda summary: summary.numbers["seconds"],
                },
            ),
        ),
        printed=tuple(_print(found, hmc)),
        figures={
            "hmc_acceptance": hmc,
            "curves": [
                {
                    **attrs.asdict(summary),
                    "reached": summary.reached,
                    "stays": summary.stays,
                    "last_ratio": summary.last_ratio,
                }
                for summary in found
            ],
        },
        notes=NOTES,
    )


_NUMBERS = ("starting_points", "points", "deployments", "seconds", "training_seconds")


def _print(found: Sequence[Summary], hmc: dict[str, float]) -> list[Printed]:
    figures = [
        Printed(what=f"acceptance of HMC, {problem} (table 1)", printed=number, ours=hmc[problem])
        for problem, number in PAPER_HMC.items()
        if problem in hmc
    ]
    figures += [
        Printed(
            what=f"ARNS-HMC's acceptance at the end over HMC's, {summary.problem}",
            printed="comparable",
            ours=summary.last_ratio,
        )
        for summary in found
        if summary.scheme == "paper"
    ]
    return figures
