"""Figure 8: error of the mean against running time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import attrs
import numpy as np
import numpy.typing as npt

from surrokit.arguments import (
    positive,
    positive_integer,
)
from surrokit.diagnostics import mean_error, r_hat
from surrokit.potentials import Potential, with_gradient
from surrokit.types import FloatArray
from surrokit_paper.chains import NO_RESCUE, StopAt, one_chain, sampled
from surrokit_paper.figure_7 import PROJECTION, WHITENED
from surrokit_paper.harness import Cell, Conditions, Finished, Report, Row, groups, names_field
from surrokit_paper.methods import HMC, PAPER, SCHEMES, LearningExperiment, Method, adaptive
from surrokit_paper.pictures import LOOKS, common_legend, drawing, line_of

REFERENCE = "reference"
"""A row; the other methods are HMC, and ``rns-`` and ``arns-`` with the name of a scheme."""

KINDS = {HMC: "HMC", "rns": "RNS-HMC", "arns": "ARNS-HMC"}
"""First words of methods, and what the legend says."""

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
    WHITENED,
    PROJECTION,
)

_MEDIANS = ("draws", "acceptance", "starting_seconds", "training_seconds", "deployments", "rescues")


@attrs.frozen(kw_only=True)
class Figure8(LearningExperiment):
    """Section 5.3 and figure 8 of Zhang, Shahbaba and Zhao (2017).

    |mean of the draws up to t - E q| / |E q| against t, for HMC, for RNS-HMC, whose surrogate is
    trained once, and for ARNS-HMC, whose surrogate learns on the way. Each runs one chain for the
    same time, training included; both of the latter begin as exact HMC, and those draws count.
    All chains of a repeat start from one place, where exact HMC came in a burn-in that costs none
    of them anything. Step size and number of steps are the paper's; masses are one.

    Parameters
    ----------
    schemes
        ``"paper"``: its network, values alone; ARNS-HMC starts from 500 values and never freezes,
        RNS-HMC learns from ``rns_values``. ``"defaults"``: this project's surrogate, schedules and
        explorers as they come, with a warm-up of 1000 iterations, whose draws count too.
        ``"emulator"``: the same where the target has a forward map, which they learn.
    seconds
        Length of a run, in processor seconds.
    n_times
        Times at which errors are known, at equal distances of their logarithms.
    rns_values
        Training points of RNS-HMC in the paper's scheme.
    reference_draws
        Of each of four chains, from which E q comes, with the gradient as control variates.
    """

    name = "figure-8"
    title = "Figure 8: relative error of the mean against running time"
    quick: ClassVar = {
        "repeats": 1,
        "seconds": 2.0,
        "n_times": 20,
        "burn_in": 50,
        "rns_values": 800,
        "n_nodes": 500,
        "reference_draws": 300,
        "n_rows": 10_000,
        "dim": 20,
    }

    schemes: tuple[str, ...] = names_field("schemes", SCHEMES)
    seconds: float = attrs.field(default=60.0, validator=positive)
    n_times: int = attrs.field(default=40, validator=positive_integer)
    rns_values: int = attrs.field(default=4000, validator=positive_integer)
    reference_draws: int = attrs.field(default=10_000, validator=positive_integer)

    def rows(self) -> list[Row]:
        """Return a reference for each problem, and a row for each repeat and method."""
        found = []
        lengths = {"burn_in": self.burn_in, "seconds": self.seconds, "n_times": self.n_times}
        for problem in self.choose_problems():
            facts, name = problem.facts(), problem.name
            reference = {**facts, "method": REFERENCE, "draws": self.reference_draws}
            found.append(Row(f"{name}/{REFERENCE}", reference))
            # repeat by repeat, so that whatever else the machine does falls on all methods
            for repeat in range(1, self.repeats + 1):
                shared = {"repeat": repeat, **facts, **lengths}
                found.append(
                    Row(f"{name}/{HMC}/{repeat}", {**shared, "method": HMC, "scheme": None})
                )
                for scheme in (SCHEMES[each] for each in self.schemes):
                    for kind in ("rns", "arns") if scheme.applies(problem) else ():
                        method = {**self.surrogate(scheme, problem), **self._plan(kind, scheme)}
                        label = f"{name}/{method['method']}/{repeat}"
                        found.append(Row(label, {**shared, **method}))
        return found

    def _plan(self, kind: str, scheme: Method) -> dict[str, Any]:
        ours, schedule, settings = scheme.gradients, "once", {}
        points = None if ours else self.rns_values
        if kind == "arns":
            schedule, points = "greville", 50 if ours else 500
            settings = adaptive(scheme, self.kappa, "warmup" if ours else None)
        return {
            "method": f"{kind}-{scheme.name}",
            "scheme": scheme.name,
            "schedule": schedule,
            "schedule_settings": settings,
            "points": points,
            "warmup": 1000 if ours else points,  # this project's default
            "rescues": ours,
        }

    def run(self, row: Row, conditions: Conditions) -> dict[str, Any]:
        """Run one chain, or the reference."""
        if row.settings["method"] == REFERENCE:
            problem = self.problem(row.settings["problem"])
            rng = conditions.generator(REFERENCE, problem.name)
            target, whole = (problem.target(conditions, outputs=each) for each in (False, True))
            return reference_mean(whole, target, self.reference_draws, rng)
        problem, start, rng = self.begin(row, conditions)
        stop, scheme = StopAt(seconds=self.seconds), SCHEMES[row.settings["scheme"] or PAPER.name]
        run = one_chain(
            problem.target(conditions, outputs=scheme.outputs),
            problem,
            start,
            rng,
            stop=stop,
            draws=10**9,  # the clock ends it
            **_parts(row.settings),
        )
        seconds = np.array(stop.elapsed)
        times = np.geomspace(1e-3 * self.seconds, self.seconds, self.n_times)
        draws = np.concatenate([run.warmup.draws[0], run.kept.draws[0]])
        accepted = np.concatenate([run.warmup.accepted[0], run.kept.accepted[0]])
        deployed = run.adaptation.deployments
        exact = deployed[0] if deployed else len(draws)
        return {
            "times": times,
            "means": means_at(draws, seconds, times),
            "draws": len(draws),
            "acceptance": float(accepted[exact:].mean()) if exact < len(draws) else None,
            "starting_seconds": float(seconds[exact - 1]) if deployed else None,
            "deployments": len(deployed),
            "rescues": len(run.adaptation.rescues),
            "training_seconds": run.seconds["training"],
        }

    def report(self, finished: Sequence[Finished]) -> Report:
        """Return a table of errors, and how long each method was better than HMC."""
        truth, found = references(finished), errors(finished)
        parts = comparison(found)
        columns = {
            "R-hat": "rhat",
            "acceptance": "acceptance",
            "standard error over |E q|": "relative_error",
            "without control variates": "plain_error",
        }
        known = [
            {"problem": problem, **{title: each[name] for title, name in columns.items()}}
            for problem, each in truth.items()
        ]
        return Report(
            tables={
                "error of the mean": [_line(each, parts) for each in found],
                "what E q is known by": known,
            },
            printed=[
                (
                    "part of the time at which ARNS-HMC errs less than HMC: "
                    f"{part['problem']}, {SCHEMES[part['scheme']].label}",
                    "best overall, lowest early",
                    part["arns"],
                )
                for part in parts
            ],
            figures={"references": truth, "errors": found, "below_hmc": parts},
            notes=(*NOTES, *_warnings(finished, truth, found)),
        )

    def draw(self, finished: Sequence[Finished]) -> Any:
        """Return a panel for each problem and scheme that applies: error over seconds."""
        found = errors(finished)
        labels = {row.settings["problem"]: row.settings["label"] for row in finished}
        grid = panels(found) or [[(problem, None) for problem in labels]]
        columns = max(len(row) for row in grid)
        with drawing(max(3.2 * columns, 6.4), 2.9 * len(grid) + 0.5) as figure:
            axes = figure.subplots(len(grid), columns, sharex=True, squeeze=False)
            for line, row in zip(axes, grid, strict=True):
                for ax, (problem, scheme) in zip(line, row, strict=False):
                    mine = [each for each in found if each["problem"] == problem]
                    _panel(ax, mine, scheme, labels[problem])
                for ax in line[len(row) :]:
                    ax.set_axis_off()
                line[0].set_ylabel("relative error of the mean")
            for column in axes.T:
                last = [ax for ax in column if ax.axison][-1]
                last.set_xlabel("processor seconds, training included")
                last.xaxis.set_tick_params(labelbottom=True)
            common_legend(figure, axes.ravel())
        return figure


def _parts(facts: Mapping[str, Any]) -> dict[str, Any]:
    if facts["method"] == HMC:
        return {"warmup": 0}
    points, schedule = facts["points"], (facts["schedule"], facts["schedule_settings"])
    return {
        "surrogate": (facts["surrogate"], facts["surrogate_settings"]),
        # an algorithm of the paper is shown as it is; the defaults have a fallback
        "schedule": schedule if facts["rescues"] else (schedule, NO_RESCUE),
        "explorer": None if points is None else ("sampler", {"evaluations": points}),
        "warmup": facts["warmup"],
    }


def means_at(
    draws: npt.ArrayLike, seconds: npt.ArrayLike, times: npt.ArrayLike
) -> list[list[float] | None]:
    """Return the mean of the draws of a chain, shape (draws, dim), that were there at each time.

    ``seconds`` says when each was there. None before the first draw and after the last one.
    """
    when, at = np.asarray(seconds, dtype=np.float64), np.asarray(times, dtype=np.float64)
    counts = np.searchsorted(when, at, side="right")
    sums = np.cumsum(np.asarray(draws, dtype=np.float64), axis=0)
    return [
        (sums[count - 1] / count).tolist() if count and time <= when[-1] else None
        for count, time in zip(counts, at, strict=True)
    ]


def reference_mean(
    whole: Potential, target: Potential, n_draws: int, rng: np.random.Generator
) -> dict[str, Any]:
    """Return E q from a long run of this project's own, with the gradient as control variates.

    The target with all that it offers is sampled; the one that gives gradients may be cheaper.
    Errors are standard errors of the mean over |E q|, the plain one without control variates.
    """
    run = sampled(whole, surrogate="additive", draws=n_draws, seed=rng)
    positions, exact = run.draws.reshape(-1, run.draws.shape[-1]), with_gradient(target)
    # a few at a time: the gradient of a logistic regression takes memory for rows x positions
    blocks = [
        exact.value_and_gradient(positions[first : first + 100])[1]
        for first in range(0, len(positions), 100)
    ]
    controlled = with_gradients(run.draws, np.concatenate(blocks).reshape(run.draws.shape))
    mean = controlled.mean(axis=(0, 1))
    size = np.linalg.norm(mean)
    return {
        "mean": mean,
        "rhat": float(np.max(r_hat(run.draws))),
        "acceptance": float(run.acceptance.mean()),
        "relative_error": float(np.linalg.norm(mean_error(controlled)) / size),
        "plain_error": float(np.linalg.norm(mean_error(run.draws)) / size),
    }


def with_gradients(draws: FloatArray, gradients: FloatArray) -> FloatArray:
    """Return draws less the part of them that the gradient explains: one mean, less variance.

    The mean of grad U under exp(-U) is 0, so a linear function of it may be taken away. Where U is
    nearly quadratic, next to nothing is left but the mean (Mira, Solgi and Imparato 2013,
    doi:10.1007/s11222-012-9344-6). All arrays have shape (chains, draws, dim).
    """
    dim = draws.shape[-1]
    slopes = gradients.reshape(-1, dim)
    design = np.column_stack([np.ones(len(slopes)), slopes])
    weights = np.linalg.lstsq(design, draws.reshape(-1, dim), rcond=None)[0][1:]
    return draws - gradients @ weights


def references(finished: Sequence[Finished]) -> dict[str, Mapping[str, Any]]:
    """Return the finished reference of each problem."""
    known = [row for row in finished if row.settings["method"] == REFERENCE]
    return {row.settings["problem"]: row.result for row in known}


def errors(finished: Sequence[Finished]) -> list[dict[str, Any]]:
    """Return the errors of each method on each problem that has a reference.

    At each of the ``times`` are ``low``, ``median`` and ``high``, quantiles of 5 %, 50 % and 95 %
    of the relative error over runs, NaN where not all runs know it; ``numbers`` are medians.
    """
    truth, found = references(finished), []
    for (problem, method), rows in groups(finished, "problem", "method").items():
        if method == REFERENCE or problem not in truth:
            continue
        curves = [relative_errors(row.result["means"], truth[problem]["mean"]) for row in rows]
        low, middle, high = np.quantile(curves, [0.05, 0.5, 0.95], axis=0)
        numbers: dict[str, float | None] = {}
        for name in _MEDIANS:
            known = [row.result[name] for row in rows if row.result[name] is not None]
            numbers[name] = float(np.median(known)) if known else None
        found.append(
            {
                "problem": problem,
                "label": rows[0].settings["label"],
                "method": method,
                "scheme": rows[0].settings["scheme"],
                "runs": len(rows),
                "times": np.asarray(rows[0].result["times"], dtype=np.float64),
                "low": low,
                "median": middle,
                "high": high,
                "numbers": numbers,
            }
        )
    return found


def relative_errors(
    means: Sequence[Sequence[float] | None], expected: Sequence[float]
) -> FloatArray:
    """Return |mean - E q| / |E q| for each mean, NaN where there is none (section 5.3)."""
    truth = np.asarray(expected, dtype=np.float64)
    known = [np.full(len(truth), np.nan) if mean is None else np.asarray(mean) for mean in means]
    return np.asarray(np.linalg.norm(np.array(known) - truth, axis=1) / np.linalg.norm(truth))


def comparison(found: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return, for each problem and scheme, in what part of the time methods err less than HMC.

    The time ``since`` twice ARNS-HMC's starting phase, in seconds; None where something is missing.
    """
    by_method = {(each["problem"], each["method"]): each for each in found}
    made = []
    for problem in dict.fromkeys(each["problem"] for each in found):
        for scheme in dict.fromkeys(each["scheme"] for each in found if each["scheme"]):
            hmc, arns = by_method.get((problem, HMC)), by_method.get((problem, f"arns-{scheme}"))
            start = None if arns is None else arns["numbers"]["starting_seconds"]
            if hmc is None or start is None:
                continue
            line = {"problem": problem, "scheme": scheme, "since": 2 * start}
            for kind in ("arns", "rns"):
                mine = by_method.get((problem, f"{kind}-{scheme}"))
                line[kind] = mine and part_below(
                    hmc["times"], mine["median"], hmc["median"], 2 * start
                )
            made.append(line)
    return made


def part_below(
    times: npt.ArrayLike, ours: npt.ArrayLike, theirs: npt.ArrayLike, since: float
) -> float | None:
    """Return the part of the time, from a moment on, at which one curve is below another.

    Each of the rising times stands for the time since the one before it; those at which a curve is
    NaN are left out. None if no time is left.
    """
    moments = np.asarray(times, dtype=np.float64)
    first, second = np.asarray(ours, dtype=np.float64), np.asarray(theirs, dtype=np.float64)
    stands_for = moments - np.maximum(np.concatenate([[0.0], moments[:-1]]), since)
    counted = (moments >= since) & np.isfinite(first) & np.isfinite(second)
    total = float(stands_for[counted].sum())
    return float(stands_for[counted & (first < second)].sum()) / total if total > 0 else None


def _line(each: Mapping[str, Any], parts: Sequence[Mapping[str, Any]]) -> dict[str, Cell]:
    kind, scheme, numbers = each["method"].partition("-")[0], each["scheme"], each["numbers"]
    ours = (part for part in parts if part["problem"] == each["problem"])
    times = each["times"]
    ends = (("error at a tenth of the time", 0.1), ("error at the end", 1.0))
    at = {name: each["median"][np.searchsorted(times, part * times[-1])] for name, part in ends}
    return {
        "problem": each["label"],
        "method": KINDS[kind] + (f", {SCHEMES[scheme].label}" if scheme else ""),
        "runs": each["runs"],
        "draws": numbers["draws"],
        "acceptance": numbers["acceptance"],
        "starting phase, s": numbers["starting_seconds"],
        "training, s": numbers["training_seconds"],
        **{name: float(error) if np.isfinite(error) else None for name, error in at.items()},
        "part of the time below HMC's": next(
            (part.get(kind) for part in ours if part["scheme"] == scheme), None
        ),
    }


def _warnings(
    finished: Sequence[Finished],
    truth: Mapping[str, Mapping[str, Any]],
    found: Sequence[Mapping[str, Any]],
) -> list[str]:
    """Return a sentence for each reference that is doubtful, missing, or not much better."""
    said = [
        f"the reference of {problem} has R-hat {reference['rhat']}, above 1.01: "
        "errors there are not to be trusted; raise reference_draws."
        for problem, reference in truth.items()
        if reference["rhat"] is None or not reference["rhat"] <= 1.01
    ]
    missing = sorted({row.settings["problem"] for row in finished} - set(truth))
    if missing:
        said.append(
            f"no errors are known without a reference; do the row {missing[0]}/{REFERENCE}."
        )
    for problem, reference in truth.items():
        ends = [each["median"][-1] for each in found if each["problem"] == problem]
        least, off = np.nanmin([*ends, np.inf]), reference["relative_error"]
        if off > least / 3:  # which adds 5 % to the errors
            said.append(
                f"the reference of {problem} is off by about {off:.2g}, and the least error "
                f"measured with it is {least:.2g}; raise reference_draws."
            )
    return said


def panels(found: Sequence[Mapping[str, Any]]) -> list[list[tuple[str, str | None]]]:
    """Return problem and scheme of each panel, row by row: a scheme a row, problems side by side.

    A problem with a forward map has a row of its own, for there is one scheme more.
    """
    schemes: dict[str, dict[str | None, None]] = {each["problem"]: {} for each in found}
    for each in found:
        if each["scheme"] is not None:
            schemes[each["problem"]][each["scheme"]] = None
    with_map = [name for name in schemes if any(s and SCHEMES[s].outputs for s in schemes[name])]
    together = [name for name in schemes if name not in with_map]
    below = dict.fromkeys(scheme for name in together for scheme in schemes[name])
    rows = [[(name, scheme) for name in together] for scheme in below or [None]]
    rows += [[(name, scheme) for scheme in schemes[name]] for name in with_map]
    return [row for row in rows if row]


def _panel(ax: Any, found: Sequence[Mapping[str, Any]], scheme: str | None, label: str) -> None:
    for each in found:
        if each["method"] == HMC or each["scheme"] == scheme:
            _curve(ax, each)
    title = label if scheme is None else f"{label}\n{SCHEMES[scheme].label}"
    ax.set(xscale="log", yscale="log", title=title)


def _curve(ax: Any, each: Mapping[str, Any]) -> None:
    kind = each["method"].partition("-")[0]
    known = np.isfinite(each["median"]) & (each["low"] > 0)
    if not known.any():
        return
    times, low, middle, high = (each[name][known] for name in ("times", "low", "median", "high"))
    ax.fill_between(times, low, high, color=LOOKS[kind]["color"], alpha=0.15, linewidth=0)
    ax.plot(times, middle, markevery=4, label=KINDS[kind], **LOOKS[kind])
    start = each["numbers"]["starting_seconds"]
    if start is not None:
        ends = {"linewidth": 0.8, "label": f"{KINDS[kind]}'s starting phase ends"}
        ax.axvline(start, **line_of(kind), **ends)
