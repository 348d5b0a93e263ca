"""The report of figure 8."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from surrokit.experiments.contract import Finished, Printed, Report, Table
from surrokit.types import FloatArray
from surrokit_paper.measures.repeats import median, repeats
from surrokit_paper.measures.running_means import part_below, relative_errors
from surrokit_paper.surrogates.schemes import SCHEMES

HMC, REFERENCE = "hmc", "reference"
"""Methods, in names of rows; the others are ``rns-`` and ``arns-`` with the name of a scheme."""

LABELS: Mapping[str, str] = {
    HMC: "HMC",
    **{f"rns-{scheme.name}": f"RNS-HMC, {scheme.label}" for scheme in SCHEMES.values()},
    **{f"arns-{scheme.name}": f"ARNS-HMC, {scheme.label}" for scheme in SCHEMES.values()},
}
"""What tables say."""

LARGEST_RHAT = 1.01
"""Above it a reference is not to be trusted."""

COARSE = 1 / 3
"""A reference whose own error is above this part of those measured with it is too coarse: at a
third it adds 5 % to them."""

NOTES = (
    "the error is |mean of the draws up to t - E q| / |E q|; medians over runs, and bands from 5 % "
    "to 95 % of them. E q comes from a long run on this project's own surrogate, with the gradient "
    "as control variates.",
    "draws of the starting phase and of the warm-up count. The burn-in before does not, nor its "
    "time; it is the same for all methods.",
    "seconds are those of the processor, all threads together, training included.",
    "a surrogate of a forward map learns from Jacobians, and until it is there, exact HMC pays for "
    "them in place of gradients.",
    "times are compared from twice ARNS-HMC's starting phase on; the phase ends with its last "
    "exact iteration, before the first fit.",
    "the paper's network sees whitened inputs: in raw coordinates, which the paper has, the "
    "recursion of its Proposition 1 is numerically meaningless.",
    "a9a: the paper's random projection is lost. On orthonormal directions of the standardised "
    "features its step size gives nearly its acceptance of HMC.",
)


@attrs.frozen(kw_only=True, eq=False)
class Errors:
    """Errors of one method on one problem.

    Parameters
    ----------
    problem, label, method, scheme
        Which; ``scheme`` is None for HMC.
    runs
        How many.
    times : ndarray of shape (n_times,)
        Seconds.
    low, median, high : ndarray of shape (n_times,)
        Quantiles of 5 %, 50 % and 95 % of the relative error over runs; NaN at times that not
        all runs know.
    numbers
        Medians of ``draws``, ``acceptance``, ``starting_seconds``, ``training_seconds``,
        ``deployments`` and ``rescues``; None where there is none.
    """

    problem: str
    label: str
    method: str
    scheme: str | None
    runs: int
    times: FloatArray
    low: FloatArray
    median: FloatArray
    high: FloatArray
    numbers: Mapping[str, float | None]


def references(finished: Sequence[Finished]) -> dict[str, Mapping[str, Any]]:
    """Return the finished reference of each problem."""
    return {
        row.settings["problem"]: row.result
        for row in finished
        if row.settings["method"] == REFERENCE
    }


def errors(finished: Sequence[Finished]) -> list[Errors]:
    """Return the errors of each method on each problem that has a reference."""
    truth = references(finished)
    found = []
    for (problem, method), rows in repeats(finished, "problem", "method").items():
        if method == REFERENCE or problem not in truth:
            continue
        curves = [relative_errors(row.result["means"], truth[problem]["mean"]) for row in rows]
        low, middle, high = np.quantile(curves, [0.05, 0.5, 0.95], axis=0)
        found.append(
            Errors(
                problem=problem,
                label=rows[0].settings["label"],
                method=method,
                scheme=rows[0].settings["scheme"],
                runs=len(rows),
                times=np.asarray(rows[0].result["times"], dtype=np.float64),
                low=low,
                median=middle,
                high=high,
                numbers={name: median(rows, name) for name in _NUMBERS},
            )
        )
    return found


def comparison(found: Sequence[Errors]) -> list[dict[str, Any]]:
    """Return, for each problem and scheme, how much of the time methods err less than HMC.

    Parameters
    ----------
    found
        As :func:`errors` returns them.

    Returns
    -------
    list of dict
        ``problem``, ``scheme``, ``since`` (twice ARNS-HMC's starting phase, in seconds), and
        ``arns`` and ``rns``, parts of the time from then on; None where something is missing.
    """
    by_method = {(e.problem, e.method): e for e in found}
    made = []
    for problem in dict.fromkeys(e.problem for e in found):
        for scheme in dict.fromkeys(e.scheme for e in found if e.scheme is not None):
            hmc = by_method.get((problem, HMC))
            arns = by_method.get((problem, f"arns-{scheme}"))
            start = None if arns is None else arns.numbers["starting_seconds"]
            if hmc is None or start is None:
                continue
            line: dict[str, Any] = {"problem": problem, "scheme": scheme, "since": 2 * start}
            for kind in ("arns", "rns"):
                mine = by_method.get((problem, f"{kind}-{scheme}"))
                line[kind] = (
                    None
                    if mine is None
                    else part_below(hmc.times, mine.median, hmc.median, 2 * start)
                )
            made.append(line)
    return made


def report(finished: Sequence[Finished]) -> Report:
    """Return a table of errors, and how long each method was better than HMC."""
    truth, found = references(finished), errors(finished)
    parts = comparison(found)
    return Report(
        tables=(_errors_table(found, parts), _references_table(truth)),
        printed=tuple(
            Printed(
                what=f"part of the time at which ARNS-HMC errs less than HMC: {line['problem']}, "
                f"{SCHEMES[line['scheme']].label}",
                printed="best overall, lowest early",
                ours=line["arns"],
            )
            for line in parts
        ),
        figures={
            "references": truth,
            "errors": [attrs.asdict(e) for e in found],
            "below_hmc": parts,
        },
        notes=(*NOTES, *_warnings(finished, truth), *_coarse(truth, found)),
    )


_NUMBERS = ("draws", "acceptance", "starting_seconds", "training_seconds", "deployments", "rescues")


def _errors_table(found: Sequence[Errors], parts: Sequence[Mapping[str, Any]]) -> Table:
    return Table.of(
        found,
        title="error of the mean",
        columns={
            "problem": lambda e: e.label,
            "method": lambda e: LABELS[e.method],
            "runs": lambda e: e.runs,
            "draws": lambda e: e.numbers["draws"],
            "acceptance": lambda e: e.numbers["acceptance"],
            "starting phase, s": lambda e: e.numbers["starting_seconds"],
            "training, s": lambda e: e.numbers["training_seconds"],
            "error at a tenth of the time": lambda e: _at(e, 0.1 * e.times[-1]),
            "error at the end": lambda e: _at(e, e.times[-1]),
            "part of the time below HMC's": lambda e: _part_below_hmc(e, parts),
        },
    )


def _references_table(truth: Mapping[str, Mapping[str, Any]]) -> Table:
    return Table.of(
        truth,
        title="what E q is known by",
        columns={
            "problem": lambda problem: problem,
            "R-hat": lambda problem: truth[problem].get("rhat"),
            "acceptance": lambda problem: truth[problem].get("acceptance"),
            "standard error over |E q|": lambda problem: truth[problem].get("relative_error"),
            "without control variates": lambda problem: truth[problem].get("plain_error"),
        },
    )


def _part_below_hmc(e: Errors, parts: Sequence[Mapping[str, Any]]) -> float | None:
    kind = e.method.partition("-")[0]
    return next(
        (p.get(kind) for p in parts if (p["problem"], p["scheme"]) == (e.problem, e.scheme)), None
    )


def _at(e: Errors, time: float) -> float | None:
    value = e.median[np.searchsorted(e.times, time)]
    return float(value) if np.isfinite(value) else None


def _warnings(finished: Sequence[Finished], truth: Mapping[str, Mapping[str, Any]]) -> list[str]:
    found = []
    for problem, reference in truth.items():
        rhat = reference["rhat"]
        if rhat is None or not rhat <= LARGEST_RHAT:
            found.append(
                f"the reference of {problem} has R-hat {rhat}, above {LARGEST_RHAT}: "
                "errors there are not to be trusted; raise reference_draws."
            )
    missing = {row.settings["problem"] for row in finished} - set(truth)
    if missing:
        found.append(
            f"no errors are known without a reference; do the row {sorted(missing)[0]}/reference."
        )
    return found


def _coarse(truth: Mapping[str, Mapping[str, Any]], found: Sequence[Errors]) -> list[str]:
    """Return a sentence for each reference that is not much better than what it judges."""
    said = []
    for problem, reference in truth.items():
        ends = [e.median[-1] for e in found if e.problem == problem and np.isfinite(e.median[-1])]
        if ends and reference["relative_error"] > COARSE * min(ends):
            said.append(
                f"the reference of {problem} is off by about {reference['relative_error']:.2g}, "
                f"and the least error measured with it is {min(ends):.2g}; raise reference_draws."
            )
    return said
