"""The summary of one method on one problem of table 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from surrokit.experiments.contract import Finished
from surrokit_paper.measures.agreement import Agreement
from surrokit_paper.measures.authors_accounting import (
    ceilings,
    charged_seconds,
    seconds_by_sensitivities,
)
from surrokit_paper.measures.repeats import repeats
from surrokit_paper.problems.problems import PDE
from surrokit_paper.table_1.methods import HMC, METHODS, TUNED

_DATA_ROWS = "rows"


@attrs.frozen(kw_only=True)
class Summary:
    """One method on one problem; means over repeats.

    Parameters
    ----------
    problem, problem_label, method, method_label
        Which.
    runs
        How many.
    acceptance
        Part of the kept iterations that were accepted.
    draws
        Kept, of all chains together.
    ess
        Least, median and largest over parameters by the paper's estimator; at most ``draws``.
    bulk_ess
        The least by ranks, of ``arviz``.
    seconds
        Processor seconds of sampling, for one kept draw.
    charged_seconds
        The same with HMC charged as the authors do; None for other methods.
    sensitivity_seconds
        The same if each call of the elliptic problem solved for all sensitivities; None elsewhere.
    ceilings
        Of HMC: the largest speed-ups over it, as run and as charged; else None.
    calls
        Exact calls of the whole run by kind.
    all_seconds
        Processor seconds of the whole run, burn-in and training in.
    training_rows
        Evaluations that a surrogate learnt from.
    rhat
        The largest.
    choice
        What was picked automatically.
    result
        Of the first run, for comparisons.
    """

    problem: str
    problem_label: str
    method: str
    method_label: str
    runs: int
    acceptance: float
    draws: int
    ess: tuple[float | None, float | None, float | None]
    bulk_ess: float | None
    seconds: float
    charged_seconds: float | None
    sensitivity_seconds: float | None
    ceilings: tuple[float, float] | None
    calls: dict[str, float]
    all_seconds: float
    training_rows: float
    rhat: float | None
    choice: str | None
    result: Any = attrs.field(repr=False, eq=False)

    @property
    def rate(self) -> float | None:
        """min(ESS) a second of sampling, as run."""
        return self._rate(self.seconds)

    @property
    def charged_rate(self) -> float | None:
        """The same as the authors count."""
        return self._rate(self.charged_seconds)

    @property
    def sensitivity_rate(self) -> float | None:
        """The same if each call solved for all sensitivities."""
        return self._rate(self.sensitivity_seconds)

    @property
    def full_rate(self) -> float | None:
        """Effective draws by ranks a second, everything counted."""
        return None if self.bulk_ess is None else self.bulk_ess / self.all_seconds

    @property
    def calls_per_effective_draw(self) -> float | None:
        """Positions evaluated for each effective draw by ranks, everything counted."""
        if self.bulk_ess is None:
            return None
        return sum(n for kind, n in self.calls.items() if kind != _DATA_ROWS) / self.bulk_ess

    def _rate(self, seconds: float | None) -> float | None:
        if seconds is None or self.ess[0] is None:
            return None
        return self.ess[0] / (seconds * self.draws)


def summaries(finished: Sequence[Finished]) -> list[Summary]:
    """Return a summary for each problem and method with finished rows, in their order."""
    return [
        _summary(problem, method, rows, _value_seconds(finished, problem))
        for (problem, method), rows in repeats(finished, "problem", "method").items()
    ]


def by_name(found: Sequence[Summary], problem: str, method: str) -> Summary | None:
    """Return one of them; None where it is not finished."""
    return next((s for s in found if (s.problem, s.method) == (problem, method)), None)


def ratio(above: float | None, below: float | None) -> float | None:
    """Return a quotient; None where there is none."""
    return None if above is None or not below else above / below


def agreements(found: Sequence[Summary]) -> list[tuple[Summary, Summary, Agreement]]:
    """Return each method, what it is compared with, and how far they agree.

    The reference is exact HMC with everything tuned, which has the smallest Monte Carlo error of
    the exact samplers; the paper's HMC where that was not run.

    Parameters
    ----------
    found
        All summaries.
    """
    compared = []
    for one in found:
        reference = by_name(found, one.problem, TUNED) or by_name(found, one.problem, HMC)
        if reference is not None and reference is not one:
            compared.append((one, reference, Agreement.of(one.result, reference.result)))
    return compared


def _value_seconds(finished: Sequence[Finished], problem: str) -> float:
    """Return the median over rows of the seconds of a value: a busy moment spoils a few."""
    of_rows = [
        row.result["call_seconds"]["value"]
        for row in finished
        if row.settings["problem"] == problem
    ]
    return float(np.median(of_rows))


def _summary(problem: str, method: str, rows: Sequence[Finished], value_seconds: float) -> Summary:
    results = [row.result for row in rows]
    first, dim = results[0], len(results[0]["mean"])
    is_hmc = method == HMC
    by_solves = [
        seconds_by_sensitivities(result, dim, value_seconds, hmc=is_hmc) / result["draws"]
        for result in results
    ]
    # what sees the outputs, or moves on the exact potential, is not what the formula is for
    learns = "surrogate" in rows[0].settings["arguments"] and not METHODS[method].sees_outputs
    solves = problem == PDE and (is_hmc or learns)
    charged = [charged_seconds(result) / result["draws"] for result in results]
    highest = np.mean([ceilings(result) for result in results], axis=0)
    kinds = first["calls"]
    return Summary(
        problem=problem,
        problem_label=rows[0].settings["label"],
        method=method,
        method_label=METHODS[method].label,
        runs=len(rows),
        acceptance=float(np.mean([result["acceptance"] for result in results])),
        draws=first["draws"],
        ess=_quantiles([result["ess_paper"] for result in results]),
        bulk_ess=_quantiles([result["ess_bulk"] for result in results])[0],
        seconds=float(
            np.mean([result["seconds"]["sampling"] / result["draws"] for result in results])
        ),
        charged_seconds=float(np.mean(charged)) if is_hmc else None,
        sensitivity_seconds=float(np.mean(by_solves)) if solves else None,
        ceilings=(float(highest[0]), float(highest[1])) if is_hmc else None,
        calls={
            kind: float(np.mean([result["calls"][kind] for result in results])) for kind in kinds
        },
        all_seconds=float(np.mean([result["seconds"]["all"] for result in results])),
        training_rows=float(np.mean([result["training_rows"] for result in results])),
        rhat=first["rhat"],
        choice=first["choice"],
        result=first,
    )


def _quantiles(
    runs: Sequence[Sequence[float | None]],
) -> tuple[float | None, float | None, float | None]:
    """Return least, median and largest, each averaged over runs; None where a run never moved."""
    numbers = np.array(runs, dtype=np.float64)  # None becomes NaN
    least, median, largest = (
        float(np.mean(q)) for q in np.quantile(numbers, [0.0, 0.5, 1.0], axis=1)
    )
    if not np.isfinite([least, median, largest]).all():
        return None, None, None
    return least, median, largest
