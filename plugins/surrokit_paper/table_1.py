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
from surrokit.arguments import one_of
from surrokit.potentials import GradientPotential
from surrokit.types import FloatArray
from surrokit_paper.chains import (
    NO_RESCUE,
    Clock,
    largest_by_chance,
    marginals,
    one_chain,
    sampled,
)
from surrokit_paper.harness import Case, Cell, Conditions, Report, Row, array, groups
from surrokit_paper.methods import HMC
from surrokit_paper.pictures import BLACK, BLUE, GREY, VERMILION, common_legend, drawing, panels
from surrokit_paper.problems import A9A, BANK, LABELS, PDE, PROBLEMS, SIMULATED, ProblemFigure
from surrokit_paper.table_1_methods import METHODS, RMHMC, RNS_HMC, RNS_RMHMC, TUNED


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


@attrs.frozen(kw_only=True)
class Table1(ProblemFigure):
    """Section 5 and table 1 of Zhang, Shahbaba and Zhao (2017).

    HMC, RMHMC, RNS-HMC and RNS-RMHMC as the paper sets them up, one chain from 0 with unit masses
    and given step sizes; then methods of this project that the paper does not have. Each case is a
    run of one method on one problem, burn-in and training included, and times single calls of the
    target as well.
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

    burn_in: int = 5000  # iterations of exact HMC before the kept draws
    discard: int = 1000  # how many of them nothing is learnt from
    draws: int = 5000  # kept, of all chains together
    settling: int = 300  # iterations of exact HMC from 0 that bring RMHMC to where it starts
    riemannian_burn_in: int = 50  # of exact RMHMC, half a second each; the paper has 5000 and 5000
    riemannian_draws: int = 300
    surrogate_riemannian_draws: int = 2000  # kept draws of RNS-RMHMC
    warmup: int | None = None  # of trend, gradients and hmc-tuned; None for what is the default
    n_nodes: int | None = None  # of the paper's network; None for s as in the paper
    # of RNS-RMHMC on the logistic regressions: "hessian" as in the paper, which ends with an error
    # where the network is not convex, or "softabs"
    convex_metric: str = attrs.field(default="hessian", validator=one_of("hessian", "softabs"))
    repeats: int = 1  # runs of each; figures are averaged

    def cases(self) -> list[Case]:
        """Return a case for each problem, repeat, and method that is for it."""
        return [
            {"problem": problem, "method": name, "repeat": repeat}
            for problem in PROBLEMS
            for repeat in range(1, self.repeats + 1)
            for name, method in METHODS.items()
            if problem in method.problems
        ]

    def run(self, case: Case, conditions: Conditions) -> dict[str, Any]:
        """Run one method on one problem."""
        problem, method = self.problem(str(case["problem"])), METHODS[str(case["method"])]
        target = problem.target(conditions, outputs=method.sees_outputs)
        arguments, began = method.arguments(problem, self), time.process_time()
        calls: Mapping[str, int] = {}
        if method.of_paper:
            arguments["initial"] = np.zeros(target.dim)
        if case["method"] == RMHMC and self.settling:
            rng, start = conditions.generator("settling", *case.values()), np.zeros(target.dim)
            settled = one_chain(target, problem, start, rng, warmup=0, draws=self.settling)
            arguments["initial"], calls = settled.draws[0, -1], settled.calls
        if method.of_paper and "surrogate" in arguments:
            arguments["schedule"] = (arguments["schedule"], NO_RESCUE)
        clock, rng = Clock(), conditions.generator("row", *case.values())
        result = measure(sampled(target, **arguments, seed=rng, clock=clock), clock)
        return {
            **result,
            "all_seconds": time.process_time() - began,
            "calls": {kind: n + calls.get(kind, 0) for kind, n in result["calls"].items()},
        } | seconds_of_calls(cast(GradientPotential, target), result.pop("positions"))

    def report(self, rows: Sequence[Row]) -> Report:
        """Return the table in the paper's accounting, in an honest one, and posteriors compared."""
        found = summaries(rows)
        hmc = {problem: one for (problem, method), one in found.items() if method == HMC}
        tables: dict[str, list[Mapping[str, Cell]]] = {
            "The paper's accounting: sampling alone; ESS as percentages of the draws": [
                _paper_line(one) for one in found.values()
            ],
            "min(ESS)/s over HMC's: HMC charged as the authors do, and as it runs here": [
                _speed_line(one, hmc[one["problem"]])
                for one in found.values()
                if one["method"] != HMC and one["problem"] in hmc
            ],
            "Everything counted: burn-in, exploration, training and warm-up": [
                _full_line(one) for one in found.values()
            ],
            "Posteriors compared with exact HMC: the largest difference over parameters": [
                _posterior_line(one, reference)
                for (problem, _), one in found.items()
                # exact HMC with everything tuned, or the paper's HMC where that was not run
                for reference in [found.get((problem, TUNED)) or hmc.get(problem)]
                if reference is not None and reference is not one
            ],
        }
        picked = [one for one in found.values() if one["choice"] is not None]
        notes = [f"picked on {LABELS[one['problem']]}: {one['choice']}." for one in picked]
        return Report(tables=tables, notes=notes)

    def draw(self, rows: Sequence[Row]) -> Any:
        """Return a panel for each problem: effective draws a second of each method."""
        found = list(summaries(rows).values())
        problems = list(dict.fromkeys(one["problem"] for one in found))
        methods = [name for name in METHODS if any(one["method"] == name for one in found)]
        columns, lines = min(len(problems), 2), -(-len(problems) // 2)
        with drawing(2.0 + 3.4 * columns, 1.2 + lines * (0.7 + 0.19 * len(methods))) as figure:
            grid, axes = panels(figure, len(problems))
            for ax, problem in zip(axes, problems, strict=True):
                _panel(ax, [one for one in found if one["problem"] == problem], methods)
                ax.set_title(LABELS[problem])
            for ax in axes[-columns:]:
                ax.set_xlabel("min(ESS) a second of sampling")
            grid[0, 0].set_yticks(range(len(methods)), [METHODS[name].label for name in methods])
            grid[0, 0].set_ylim(len(methods) - 0.5, -0.5)
            common_legend(figure, axes)
        return figure


def measure(run: sk.Run, clock: Clock) -> dict[str, Any]:
    """Return the posterior that a run found, effective draws, seconds and exact calls."""
    before = run.warmup.calls
    return {
        "acceptance": float(run.acceptance.mean()),
        "draws": run.draws[..., 0].size,
        "positions": run.draws[0],
        "ess_paper": run.ess("paper"),
        **marginals(run.draws),
        "rhat": float(np.max(run.rhat())),
        "seconds": clock.sampling,
        "calls": dict(run.calls),
        "sampling_calls": {
            kind: int(calls[-1]) - (int(before[kind][-1]) if len(run.warmup) else 0)
            for kind, calls in run.kept.calls.items()
        },
        "steps": int(run.kept.n_steps.sum()),
        "choice": run.choice,
    }


def seconds_of_calls(target: GradientPotential, positions: FloatArray) -> dict[str, float]:
    """Return the median processor seconds of a ``value``, and of one with its ``gradient``.

    At 64 of the positions, shape (n, dim), far apart in the list, one at a time.
    """
    chosen = positions[np.linspace(0, len(positions) - 1, 64).astype(int)]

    def timed(function: Callable[[FloatArray], Any]) -> float:
        function(chosen[:1])  # the first call may set something up
        seconds = []
        for position in chosen:
            began = time.process_time()
            function(position[None])
            seconds.append(time.process_time() - began)
        return float(np.median(seconds))

    return {
        "value_seconds": timed(target.value),
        "gradient_seconds": timed(target.value_and_gradient),
    }


def charged_seconds(row: Row) -> float:
    """Return seconds of sampling of HMC as the authors count."""
    calls = row["sampling_calls"]
    gradients, values = 2 * row["steps"] - calls["gradient"], row["draws"] - calls["value"]
    saved = gradients * row["gradient_seconds"] + values * row["value_seconds"]
    return float(row["seconds"] + saved)


def ceilings(row: Row) -> tuple[float, float]:
    """Return the largest speed-ups that a surrogate which costs nothing can have over this HMC.

    One value an iteration is left. The first is against HMC as it ran here, the second as the
    authors count.
    """
    gradient, steps = row["gradient_seconds"] / row["value_seconds"], row["steps"] / row["draws"]
    gradients = row["sampling_calls"]["gradient"] / row["draws"]
    return gradients * gradient, 2 * steps * gradient + 1


Summary = dict[str, Any]


def summaries(rows: Sequence[Row]) -> dict[tuple[str, str], Summary]:
    """Return means over repeats for each problem and method with finished rows, in their order.

    ``ess`` is least, median and largest over parameters by the paper's estimator, ``bulk_ess`` the
    least by ranks; None where a run never moved. Seconds of sampling are those of one kept draw: as
    run, and ``charged_`` (of HMC); a rate is min(ESS) a second by each of these. Of other numbers
    those of the first run are there.
    """
    found = {}
    for (problem, method), runs in groups(rows, "problem", "method").items():
        draws = runs[0]["draws"]
        ess, bulk = (
            np.quantile([array(row[name]) for row in runs], [0.0, 0.5, 1.0], axis=1).mean(axis=1)
            for name in ("ess_paper", "ess_bulk")
        )
        known = np.isfinite(ess).all()
        least, bulk_ess = (float(each[0]) if known else None for each in (ess, bulk))
        kinds = {
            "": [row["seconds"] for row in runs],
            "charged_": [charged_seconds(row) if method == HMC else None for row in runs],
        }
        one: Summary = {**runs[0], "ess": ess.tolist() if known else [None] * 3}
        for kind, seconds in kinds.items():
            each = None if None in seconds else float(np.mean(array(seconds))) / draws
            one[f"{kind}seconds"], one[f"{kind}rate"] = each, _ratio(least, each and each * draws)
        for name in ("acceptance", "all_seconds"):
            one[name] = float(np.mean([row[name] for row in runs]))
        one["calls"] = {k: float(np.mean([row["calls"][k] for row in runs])) for k in one["calls"]}
        one["bulk_ess"], one["runs"] = bulk_ess, len(runs)
        found[problem, method] = one
    return found


def _ratio(above: float | None, below: float | None) -> float | None:
    return None if above is None or not below else above / below


def _names(one: Summary) -> dict[str, Cell]:
    return {"problem": LABELS[one["problem"]], "method": METHODS[one["method"]].label}


def _speed_line(one: Summary, hmc: Summary) -> dict[str, Cell]:
    as_run, charged = ceilings(hmc)
    printed = PRINTED.get((one["problem"], one["method"]))
    return {
        **_names(one),
        "paper": printed and printed.speed_up,
        "as the authors count": _ratio(one["rate"], hmc["charged_rate"]),
        "at most": charged,
        "as run": _ratio(one["rate"], hmc["rate"]),
        "at most ": as_run,
    }


def _paper_line(one: Summary) -> dict[str, Cell]:
    printed = PRINTED.get((one["problem"], one["method"]))
    return {
        **_names(one),
        "draws": one["draws"],
        "AP: paper": printed and printed.acceptance,
        "here": one["acceptance"],
        "ESS: paper": printed and _percentages(printed.ess, 5000),
        "here ": _percentages(one["ess"], one["draws"]),
        "s a draw: paper": printed and printed.seconds,
        "as run": one["seconds"],
        "as the authors count": one["charged_seconds"],
        "min(ESS)/s: paper": printed and printed.rate,
        "as run ": one["rate"],
        "as the authors count ": one["charged_rate"],
    }


def _percentages(ess: Sequence[float | None], draws: int) -> str | None:
    return ", ".join(f"{100 * n / draws:.0f}" for n in ess if n is not None) or None


def _full_line(one: Summary) -> dict[str, Cell]:
    calls = one["calls"]
    others = {k: n for k, n in calls.items() if n and k not in ("value", "gradient", "rows")}
    n_calls = sum(calls.values()) - calls["rows"]
    return {
        **_names(one),
        "draws": one["draws"],
        "bulk ESS: least": one["bulk_ess"],
        "R-hat": one["rhat"],
        "values": calls["value"],
        "gradients": calls["gradient"],
        "other calls": ", ".join(f"{n:.0f} {kind}" for kind, n in others.items()) or None,
        "data rows": calls["rows"] or None,
        "calls for each effective draw": _ratio(n_calls, one["bulk_ess"]),
        "seconds": one["all_seconds"],
        "effective draws a second": _ratio(one["bulk_ess"], one["all_seconds"]),
    }


def _posterior_line(one: Summary, reference: Summary) -> dict[str, Cell]:
    """Return the largest differences over parameters; None where a sampler never moved."""

    def both(name: str) -> tuple[FloatArray, FloatArray]:
        return array(one[name]), array(reference[name])

    def largest(difference: FloatArray, unit: FloatArray) -> float | None:
        with np.errstate(divide="ignore", invalid="ignore"):
            found = float(np.max(np.abs(difference / unit)))
        return found if np.isfinite(found) else None

    (mean, other_mean), (sd, other) = both("mean"), both("sd")
    mean_error, sd_error = np.hypot(*both("mean_error")), np.hypot(*both("sd_error"))
    return {
        **_names(one),
        "compared with": METHODS[reference["method"]].label,
        "means, in standard errors": largest(mean - other_mean, mean_error),
        "sds, in standard errors": largest(sd - other, sd_error),
        "chance gives, once in 100 times": largest_by_chance(len(sd)),
        "sds, per cent": largest(100.0 * (sd - other), other),
        "one standard error, per cent": largest(100.0 * sd_error, other),
    }


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
