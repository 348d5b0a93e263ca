"""Table 1: four methods on four problems, and this project's own beside them.

The authors count the cost of HMC with two gradients for each leapfrog step. Algorithm 1 taken
literally has two half kicks in each of n steps, a gradient for each, and then one value for the
decision. This project merges half kicks, keeps the gradient between iterations, and gets the value
with the last gradient: n gradients an iteration and no value. A baseline that
costs what the authors' does is then

    seconds as run + (2 n - gradients) t_gradient + (draws - values) t_value,

with t the seconds of one call, measured in the same row at draws of the posterior.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, cast

import attrs
import numpy as np

import surrokit as sk
from surrokit.arguments import (
    not_negative_integer,
    one_of,
    optional_positive_integer,
    positive_integer,
)
from surrokit.potentials import GradientPotential
from surrokit.types import FloatArray
from surrokit_paper.chains import (
    NO_RESCUE,
    SamplingTime,
    largest_by_chance,
    marginals,
    one_chain,
    sampled,
)
from surrokit_paper.harness import Cell, Conditions, Finished, Report, Row, groups, names_field
from surrokit_paper.methods import HMC
from surrokit_paper.pictures import BLACK, BLUE, GREY, VERMILION, common_legend, drawing, panels
from surrokit_paper.problems import A9A, BANK, PDE, SIMULATED, ProblemExperiment
from surrokit_paper.table_1_methods import METHODS, RMHMC, TUNED

RNS_HMC, RNS_RMHMC = "rns-hmc", "rns-rmhmc"


class PrintedLine(NamedTuple):
    """A line of the paper's table: AP; least, median and largest ESS of 5000; seconds a draw."""

    acceptance: float
    ess: tuple[int, int, int]
    seconds: float
    rate: float
    speed_up: float


PRINTED: Mapping[tuple[str, str], PrintedLine] = {
    (SIMULATED, HMC): PrintedLine(0.76, (4351, 5000, 5000), 0.061, 14.17, 1),
    (SIMULATED, RMHMC): PrintedLine(0.80, (1182, 1496, 1655), 3.794, 0.06, 0.004),
    (SIMULATED, RNS_HMC): PrintedLine(0.76, (4449, 4999, 5000), 0.007, 123.56, 8.72),
    (SIMULATED, RNS_RMHMC): PrintedLine(0.82, (1116, 1471, 1662), 0.103, 2.17, 0.15),
    (BANK, HMC): PrintedLine(0.70, (2005, 2454, 3368), 0.061, 6.52, 1),
    (BANK, RMHMC): PrintedLine(0.92, (1769, 2128, 2428), 0.631, 0.56, 0.09),
    (BANK, RNS_HMC): PrintedLine(0.70, (1761, 2358, 3378), 0.007, 52.22, 8.01),
    (BANK, RNS_RMHMC): PrintedLine(0.90, (1974, 2254, 2457), 0.027, 14.41, 2.21),
    (A9A, HMC): PrintedLine(0.72, (1996, 2959, 3564), 0.033, 11.96, 1),
    (A9A, RMHMC): PrintedLine(0.82, (5000, 5000, 5000), 3.492, 0.29, 0.02),
    (A9A, RNS_HMC): PrintedLine(0.68, (1835, 2650, 3203), 0.005, 81.80, 6.84),
    (A9A, RNS_RMHMC): PrintedLine(0.79, (4957, 5000, 5000), 0.370, 2.68, 0.22),
    (PDE, HMC): PrintedLine(0.91, (4533, 5000, 5000), 0.775, 1.17, 1),
    (PDE, RMHMC): PrintedLine(0.80, (5000, 5000, 5000), 4.388, 0.23, 0.20),
    (PDE, RNS_HMC): PrintedLine(0.75, (2306, 3034, 3516), 0.066, 7.10, 6.07),
    (PDE, RNS_RMHMC): PrintedLine(0.66, (2126, 4052, 5000), 0.097, 4.38, 3.74),
}
"""By the names of problem and method; 5000 kept draws of each."""

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


@attrs.frozen(kw_only=True)
class Table1(ProblemExperiment):
    """Section 5 and table 1 of Zhang, Shahbaba and Zhao (2017).

    HMC, RMHMC, RNS-HMC and RNS-RMHMC as the paper sets them up, one chain from 0 with unit masses
    and given step sizes; then methods of this project that the paper does not have. Each row is a
    run of one method on one problem, burn-in and training included, and times single calls of the
    target as well.

    Parameters
    ----------
    burn_in, discard
        Iterations of exact HMC before the kept draws, and how many of them nothing is learnt from.
    draws
        Kept draws, of all chains together.
    settling
        Iterations of exact HMC from 0 that bring RMHMC to where it starts.
    riemannian_burn_in, riemannian_draws
        Iterations of exact RMHMC, which take half a second each. The paper has 5000 and 5000.
    surrogate_riemannian_draws
        Kept draws of RNS-RMHMC.
    warmup
        Of ``trend``, ``gradients`` and ``hmc-tuned``; None for what comes by default.
    n_nodes
        Of the paper's network; None for s as in the paper.
    convex_metric
        Of RNS-RMHMC on the logistic regressions: ``"hessian"`` as in the paper, which ends with an
        error where the network is not convex, or ``"softabs"``.
    methods
        Names of the methods.
    repeats
        Runs of each; figures are averaged.
    """

    name = "table-1"
    title = "Table 1: acceptance, effective draws and seconds of four methods on four problems"
    quick: ClassVar = {
        "burn_in": 150,
        "discard": 30,
        "draws": 200,
        "settling": 50,
        "riemannian_burn_in": 1,
        "riemannian_draws": 5,
        "surrogate_riemannian_draws": 20,
        "warmup": 100,
        "n_nodes": 100,
        "convex_metric": "softabs",
        "n_rows": 10_000,
        "dim": 20,
        "mesh": 10,
    }

    burn_in: int = attrs.field(default=5000, validator=positive_integer)
    discard: int = attrs.field(default=1000, validator=not_negative_integer)
    draws: int = attrs.field(default=5000, validator=positive_integer)
    settling: int = attrs.field(default=300, validator=not_negative_integer)
    riemannian_burn_in: int = attrs.field(default=50, validator=not_negative_integer)
    riemannian_draws: int = attrs.field(default=300, validator=positive_integer)
    surrogate_riemannian_draws: int = attrs.field(default=2000, validator=positive_integer)
    warmup: int | None = attrs.field(default=None, validator=optional_positive_integer)
    n_nodes: int | None = attrs.field(default=None, validator=optional_positive_integer)
    convex_metric: str = attrs.field(default="hessian", validator=one_of("hessian", "softabs"))
    methods: tuple[str, ...] = names_field("methods", METHODS)
    repeats: int = attrs.field(default=1, validator=positive_integer)

    def rows(self) -> list[Row]:
        """Return a row for each problem, repeat, and method that is for it."""
        return [
            Row(
                f"{problem.name}/{name}" + (f"/{repeat}" if self.repeats > 1 else ""),
                {
                    **problem.facts(),
                    "method": name,
                    "repeat": repeat,
                    "settling": self.settling if METHODS[name].settles else 0,
                    "arguments": METHODS[name].arguments(problem, self),
                },
            )
            for problem in self.choose_problems()
            for repeat in range(1, self.repeats + 1)
            for name in self.methods
            if problem.name in METHODS[name].problems
        ]

    def run(self, row: Row, conditions: Conditions) -> dict[str, Any]:
        """Run one method on one problem."""
        problem, method = self.problem(row.settings["problem"]), METHODS[row.settings["method"]]
        keys = (problem.name, row.settings["method"], row.settings["repeat"])
        target = problem.target(conditions, outputs=method.sees_outputs)
        arguments, began = dict(row.settings["arguments"]), time.process_time()
        calls: Mapping[str, int] = {}
        if method.of_paper:
            arguments["initial"] = np.zeros(target.dim)
        if row.settings["settling"]:
            rng, start = conditions.generator("settling", *keys), np.zeros(target.dim)
            settled = one_chain(target, problem, start, rng, warmup=0, draws=self.settling)
            arguments["initial"], calls = settled.draws[0, -1], settled.calls
        if method.of_paper and "surrogate" in arguments:
            arguments["schedule"] = (arguments.get("schedule"), NO_RESCUE)
        timed, rng = SamplingTime(), conditions.generator("row", *keys)
        run = sampled(target, **arguments, seed=rng, observers=[timed])
        result, trained = measure(run), run.seconds["training"]
        times = {"sampling": timed.seconds, "training": trained, "all": timed.ended - began}
        return {
            **result,
            "seconds": times,
            "calls": {kind: n + calls.get(kind, 0) for kind, n in result["calls"].items()},
            "call_seconds": seconds_of_calls(cast(GradientPotential, target), run.draws[0]),
        }

    def report(self, finished: Sequence[Finished]) -> Report:
        """Return the table in the paper's accounting, in an honest one, and posteriors compared."""
        found = summaries(finished)
        compared = agreements(found)
        tables = {
            "The paper's accounting: sampling alone, burn-in and training left out": [
                _sampling_line(one, found) for one in found.values()
            ],
            "min(ESS)/s over HMC's: HMC charged as the authors do, and as it runs here": [
                _speed_line(one, found[one["problem"], HMC])
                for one in found.values()
                if one["method"] != HMC and (one["problem"], HMC) in found
            ],
            "Beside the paper's figures; ESS as percentages of the draws": [
                _paper_line(one, PRINTED[key]) for key, one in found.items() if key in PRINTED
            ],
            "Everything counted: burn-in, exploration, training and warm-up": [
                _full_line(one) for one in found.values()
            ],
            "Posteriors compared with exact HMC: the largest difference over parameters": [
                _posterior_line(one, reference, apart) for one, reference, apart in compared
            ],
        }
        done = {method for _, method in found}
        notes = [f"{m.label}: {m.what}." for name, m in METHODS.items() if name in done]
        notes += [
            f"picked on {one['problem_label']}: {one['choice']}."
            for one in found.values()
            if one["choice"] is not None
        ]
        figures = {
            "methods": [{k: x for k, x in one.items() if k != "result"} for one in found.values()],
            "agreement": [
                {"problem": one["problem"], "method": one["method"], **apart}
                for one, _, apart in compared
            ],
        }
        return Report(
            tables=tables, printed=_printed(found), figures=figures, notes=(*NOTES, *notes)
        )

    def draw(self, finished: Sequence[Finished]) -> Any:
        """Return a panel for each problem: effective draws a second of each method."""
        found = list(summaries(finished).values())
        problems = {one["problem"]: one["problem_label"] for one in found}
        methods = [name for name in METHODS if any(one["method"] == name for one in found)]
        columns, rows = min(len(problems), 2), -(-len(problems) // 2)
        with drawing(2.0 + 3.4 * columns, 1.2 + rows * (0.7 + 0.19 * len(methods))) as figure:
            grid, axes = panels(figure, len(problems))
            for ax, (problem, label) in zip(axes, problems.items(), strict=True):
                _panel(ax, [one for one in found if one["problem"] == problem], methods)
                ax.set_title(label)
            for ax in axes[-columns:]:
                ax.set_xlabel("min(ESS) a second of sampling")
            grid[0, 0].set_yticks(range(len(methods)), [METHODS[name].label for name in methods])
            grid[0, 0].set_ylim(len(methods) - 0.5, -0.5)
            common_legend(figure, axes)
        return figure


def measure(run: sk.Run) -> dict[str, Any]:
    """Return the posterior that a run found, effective draws, and exact calls, as plain data."""
    found, before = marginals(run.draws), run.warmup.calls
    return {
        "acceptance": float(run.acceptance.mean()),
        "chains": len(run.draws),
        "draws": run.draws[..., 0].size,
        "ess_paper": run.ess("paper"),
        "ess_bulk": found["ess"],
        "mean": found["means"],
        "mean_error": found["mean_errors"],
        "sd": found["sds"],
        "sd_error": found["sd_errors"],
        "rhat": float(np.max(run.rhat())),
        "calls": dict(run.calls),
        "sampling_calls": {
            kind: int(calls[-1]) - (int(before[kind][-1]) if len(run.warmup) else 0)
            for kind, calls in run.kept.calls.items()
        },
        "steps": int(run.kept.n_steps.sum()),
        "training_rows": run.adaptation.training_rows,
        "failed_paths": sum(run.path_failures.values()),
        "choice": run.choice,
    }


def seconds_of_calls(target: GradientPotential, positions: FloatArray) -> dict[str, float]:
    """Return the median processor seconds of a ``value``, and of one with its ``gradient``.

    At 64 of the positions, shape (n, dim), far apart in the list, one at a time.
    """
    chosen = positions[np.linspace(0, len(positions) - 1, 64).astype(int)]

    def median(function: Callable[[FloatArray], Any]) -> float:
        function(chosen[:1])  # the first call may set something up
        seconds = []
        for position in chosen:
            began = time.process_time()
            function(position[None])
            seconds.append(time.process_time() - began)
        return float(np.median(seconds))

    return {"value": median(target.value), "gradient": median(target.value_and_gradient)}


def charged_seconds(row: Mapping[str, Any]) -> float:
    """Return seconds of sampling of HMC as the authors count, from the result of a row."""
    calls, cost = row["sampling_calls"], row["call_seconds"]
    gradients = 2 * row["steps"] - calls["gradient"]
    values = row["draws"] - calls["value"]
    saved = gradients * cost["gradient"] + values * cost["value"]
    return float(row["seconds"]["sampling"] + saved)


def ceilings(row: Mapping[str, Any]) -> tuple[float, float]:
    """Return the largest speed-ups that a surrogate which costs nothing can have over this HMC.

    One value an iteration is left. The first is against HMC as it ran here, the second as the
    authors count.
    """
    cost = row["call_seconds"]
    gradient, steps = cost["gradient"] / cost["value"], row["steps"] / row["draws"]
    gradients = row["sampling_calls"]["gradient"] / row["draws"]
    return gradients * gradient, 2 * steps * gradient + 1


def seconds_by_sensitivities(row: Mapping[str, Any], value: float, *, hmc: bool) -> float:
    """Return seconds of sampling if each call solved for the sensitivity to each parameter.

    The authors' code of the elliptic problem has no adjoint equation, and keeps no factorisation:
    a value and a gradient both take 1 + dim assemblies and solves, each as costly as a value here.
    HMC has no other cost; what moves on a surrogate has dim solves for each exact value on top of
    its own seconds.
    """
    dim = len(row["mean"])
    if hmc:
        return float((2 * row["steps"] + row["draws"]) * (1 + dim) * value)
    return float(row["seconds"]["sampling"] + row["sampling_calls"]["value"] * dim * value)


Summary = dict[str, Any]


def summaries(finished: Sequence[Finished]) -> dict[tuple[str, str], Summary]:
    """Return means over repeats for each problem and method with finished rows, in their order.

    ``ess`` is least, median and largest over parameters by the paper's estimator, ``bulk_ess`` the
    least by ranks. Seconds of sampling are those of one kept draw: as run, ``charged_`` (of HMC)
    and ``sensitivity_`` (of the elliptic problem); a rate is min(ESS) a second by each of these.
    """
    found = {}
    for (problem, method), rows in groups(finished, "problem", "method").items():
        of_problem = [row for row in finished if row.settings["problem"] == problem]
        # a busy moment spoils a few
        value = float(np.median([row.result["call_seconds"]["value"] for row in of_problem]))
        found[problem, method] = {
            "problem": problem,
            "problem_label": rows[0].settings["label"],
            "method": method,
            "method_label": METHODS[method].label,
            "runs": len(rows),
            **_means(rows, problem, method, value),
        }
    return found


def _means(rows: Sequence[Finished], problem: str, method: str, value: float) -> Summary:
    results = [row.result for row in rows]
    first, hmc = results[0], method == HMC

    def mean(of: Callable[[Mapping[str, Any]], float]) -> float:
        return float(np.mean([of(result) for result in results]))

    # what sees the outputs, or moves on the exact potential, is not what the formula is for
    learns = "surrogate" in rows[0].settings["arguments"] and not METHODS[method].sees_outputs
    seconds: dict[str, float | None] = {"": mean(lambda r: r["seconds"]["sampling"] / r["draws"])}
    seconds["charged_"] = mean(lambda r: charged_seconds(r) / r["draws"]) if hmc else None
    seconds["sensitivity_"] = None
    if problem == PDE and (hmc or learns):
        seconds["sensitivity_"] = mean(
            lambda r: seconds_by_sensitivities(r, value, hmc=hmc) / r["draws"]
        )
    # least, median and largest, each averaged over runs; None, which becomes NaN, where a run
    # never moved
    numbers = np.array([[r[name] for r in results] for name in ("ess_paper", "ess_bulk")], float)
    quantiles = np.quantile(numbers, [0.0, 0.5, 1.0], axis=2).mean(axis=2).T
    known = [each.tolist() if np.isfinite(each).all() else [None] * 3 for each in quantiles]
    ess, bulk_ess = known[0], known[1][0]
    calls = {kind: float(np.mean([r["calls"][kind] for r in results])) for kind in first["calls"]}
    everything, n_calls = mean(lambda r: r["seconds"]["all"]), sum(calls.values()) - calls["rows"]
    return {
        "acceptance": mean(lambda r: r["acceptance"]),
        "draws": first["draws"],
        "ess": ess,
        "bulk_ess": bulk_ess,
        **{f"{kind}seconds": each for kind, each in seconds.items()},
        **{
            f"{k}rate": _ratio(ess[0], each and each * first["draws"])
            for k, each in seconds.items()
        },
        "ceilings": np.mean([ceilings(r) for r in results], axis=0).tolist() if hmc else None,
        "calls": calls,
        "calls_per_effective_draw": _ratio(n_calls, bulk_ess),
        "all_seconds": everything,
        "full_rate": _ratio(bulk_ess, everything),
        "training_rows": mean(lambda r: r["training_rows"]),
        "rhat": first["rhat"],
        "choice": first["choice"],
        "result": first,
    }


def _ratio(above: float | None, below: float | None) -> float | None:
    return None if above is None or not below else above / below


def agreements(
    found: Mapping[tuple[str, str], Summary],
) -> list[tuple[Summary, Summary, dict[str, float | None]]]:
    """Return each method, what it is compared with, and how far they agree.

    That is exact HMC with everything tuned, or the paper's HMC where that was not run.
    """
    compared = []
    for (problem, _), one in found.items():
        reference = found.get((problem, TUNED)) or found.get((problem, HMC))
        if reference is not None and reference is not one:
            compared.append((one, reference, agreement(one["result"], reference["result"])))
    return compared


def agreement(result: Mapping[str, Any], reference: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the largest differences of two results of :func:`measure` over parameters.

    ``means`` and ``sds`` are in Monte Carlo standard errors of the difference, ``sds_relative`` and
    its error ``sds_error`` parts of the reference; None where one of the samplers never moved.
    """

    def both(name: str) -> list[FloatArray]:
        return [np.array(each[name], dtype=np.float64) for each in (result, reference)]

    def largest(difference: FloatArray, unit: FloatArray) -> float | None:
        with np.errstate(divide="ignore", invalid="ignore"):
            found = float(np.max(np.abs(difference / unit)))
        return found if np.isfinite(found) else None

    (mean, other_mean), (sd, other) = both("mean"), both("sd")
    mean_error, sd_error = np.hypot(*both("mean_error")), np.hypot(*both("sd_error"))
    return {
        "means": largest(mean - other_mean, mean_error),
        "sds": largest(sd - other, sd_error),
        "sds_relative": largest(sd - other, other),
        "sds_error": largest(sd_error, other),
        "chance": largest_by_chance(len(sd)),
    }


def _names(one: Summary) -> dict[str, Cell]:
    return {"problem": one["problem_label"], "method": one["method_label"]}


def _sampling_line(one: Summary, found: Mapping[tuple[str, str], Summary]) -> dict[str, Cell]:
    least, median, largest = one["ess"]
    return {
        **_names(one),
        "AP": one["acceptance"],
        "ESS: least": least,
        "median": median,
        "largest": largest,
        "draws": one["draws"],
        "least, of draws": _ratio(least, one["draws"]),
        "ms a draw": 1e3 * one["seconds"],
        "min(ESS)/s": one["rate"],
        "over HMC's": _ratio(one["rate"], found.get((one["problem"], HMC), {}).get("rate")),
    }


def _speed_line(one: Summary, hmc: Summary) -> dict[str, Cell]:
    as_run, charged = hmc["ceilings"]
    printed = PRINTED.get((one["problem"], one["method"]))
    return {
        **_names(one),
        "paper": printed and printed.speed_up,
        "as the authors count": _ratio(one["rate"], hmc["charged_rate"]),
        "at most": charged,
        "as run": _ratio(one["rate"], hmc["rate"]),
        "at most ": as_run,
        "all sensitivities solved for": _ratio(one["sensitivity_rate"], hmc["sensitivity_rate"]),
    }


def _paper_line(one: Summary, printed: PrintedLine) -> dict[str, Cell]:
    return {
        **_names(one),
        "AP: paper": printed.acceptance,
        "here": one["acceptance"],
        "ESS: paper": _percentages(printed.ess, 5000),
        "here ": _percentages(one["ess"], one["draws"]),
        "s a draw: paper": printed.seconds,
        "as run": one["seconds"],
        "as the authors count": one["charged_seconds"],
        "min(ESS)/s: paper": printed.rate,
        "as run ": one["rate"],
        "as the authors count ": one["charged_rate"],
    }


def _percentages(ess: Sequence[float | None], draws: int) -> str | None:
    return ", ".join(f"{100 * n / draws:.0f}" for n in ess if n is not None) or None


def _full_line(one: Summary) -> dict[str, Cell]:
    calls = one["calls"]
    others = {k: n for k, n in calls.items() if n and k not in ("value", "gradient", "rows")}
    return {
        **_names(one),
        "draws": one["draws"],
        "bulk ESS: least": one["bulk_ess"],
        "R-hat": one["rhat"],
        "values": calls["value"],
        "gradients": calls["gradient"],
        "other calls": ", ".join(f"{n:.0f} {kind}" for kind, n in others.items()) or None,
        "data rows": calls["rows"] or None,
        "calls for each effective draw": one["calls_per_effective_draw"],
        "seconds": one["all_seconds"],
        "effective draws a second": one["full_rate"],
    }


def _posterior_line(
    one: Summary, reference: Summary, apart: Mapping[str, float | None]
) -> dict[str, Cell]:
    return {
        **_names(one),
        "compared with": reference["method_label"],
        "means, in standard errors": apart["means"],
        "sds, in standard errors": apart["sds"],
        "chance gives, once in 100 times": apart["chance"],
        "sds, per cent": apart["sds_relative"] and 100 * apart["sds_relative"],
        "one standard error, per cent": apart["sds_error"] and 100 * apart["sds_error"],
    }


def _printed(found: Mapping[tuple[str, str], Summary]) -> list[tuple[str, Cell, Cell]]:
    known = [(PRINTED[key], one) for key, one in found.items() if key in PRINTED]
    lines: list[tuple[str, Cell, Cell]] = [
        (f"AP, {_what(one)}", printed.acceptance, one["acceptance"]) for printed, one in known
    ]
    for printed, one in known:
        hmc = found.get((one["problem"], HMC))
        if hmc is not None and one is not hmc:
            times = _ratio(one["rate"], hmc["charged_rate"])
            lines.append((f"speed-up, {_what(one)}", printed.speed_up, times))
    return lines


def _what(one: Summary) -> str:
    return f"{one['method_label']}, {one['problem_label']}"


def _panel(ax: Any, found: Sequence[Summary], methods: Sequence[str]) -> None:
    for place in range(len(methods)):
        ax.axhline(place, color=GREY, linewidth=0.3, alpha=0.5, zorder=0)
    lines = {one["method"]: PRINTED.get((one["problem"], one["method"])) for one in found}
    printed = {method: line and line.rate for method, line in lines.items()}
    blue, red = {"marker": "o", "color": BLUE}, {"marker": "s", "color": VERMILION}
    hollow = {"marker": "D", "markerfacecolor": "none", "color": BLACK}
    for label, of, look in (
        ("here, as run", lambda one: one["rate"], blue),
        ("here, HMC charged as the authors do", lambda one: one["charged_rate"], red),
        ("the paper, its machine", lambda one: printed[one["method"]], hollow),
    ):
        rates = [(of(one), methods.index(one["method"])) for one in found]
        known = [(rate, place) for rate, place in rates if rate is not None]
        if known:
            ax.plot(*zip(*known, strict=True), linestyle="none", label=label, **look)
    ax.set_xscale("log")
    ax.tick_params(axis="y", length=0)
