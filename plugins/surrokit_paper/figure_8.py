"""Figure 8: error of the mean against running time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import attrs
import numpy as np
import numpy.typing as npt

from surrokit.diagnostics import mean_error, r_hat
from surrokit.potentials import Potential, with_gradient
from surrokit.types import FloatArray
from surrokit_paper.chains import NO_RESCUE, Clock, one_chain, sampled
from surrokit_paper.figure_7 import EMULATOR, PAPER, SCHEMES, LearningFigure, schemes
from surrokit_paper.harness import Case, Cell, Conditions, Report, Row, array, groups, median
from surrokit_paper.methods import HMC
from surrokit_paper.pictures import LOOKS, common_legend, drawing, line_of
from surrokit_paper.problems import LABELS, PROBLEMS, PaperProblem

REFERENCE = "reference"
"""A case; the other methods are HMC, and ``rns-`` and ``arns-`` with the name of a scheme."""

KINDS = {HMC: "HMC", "rns": "RNS-HMC", "arns": "ARNS-HMC"}
"""First words of methods, and what the legend says."""


@attrs.frozen(kw_only=True)
class Figure8(LearningFigure):
    """Section 5.3 and figure 8 of Zhang, Shahbaba and Zhao (2017).

    |mean of the draws up to t - E q| / |E q| against t, for HMC, for RNS-HMC, whose surrogate is
    trained once, and for ARNS-HMC, whose surrogate learns on the way. Each runs one chain for the
    same time, training included; both of the latter begin as exact HMC, and those draws count.
    All chains of a repeat start from one place, where exact HMC came in a burn-in that costs none
    of them anything. Step size and number of steps are the paper's; masses are one.

    In the paper's scheme its network learns from values alone; ARNS-HMC starts from 500 values and
    never freezes. With the defaults this project's surrogate, schedules and explorers are as they
    come, with a warm-up of 1000 iterations, whose draws count too; so where they learn a forward
    map.
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

    seconds: float = 60.0  # length of a run, of the processor
    n_times: int = 40  # at which errors are known, at equal distances of their logarithms
    rns_values: int = 4000  # training points of RNS-HMC in the paper's scheme
    reference_draws: int = 10_000  # of each of four chains, from which E q comes

    def cases(self) -> list[Case]:
        """Return a reference for each problem, and a case for each repeat and method."""
        found: list[Case] = []
        for problem in PROBLEMS:
            learnt = [f"{kind}-{each}" for each in schemes(problem) for kind in ("rns", "arns")]
            found.append({"problem": problem, "method": REFERENCE, "repeat": 1})
            # repeat by repeat, so that whatever else the machine does falls on all methods
            found += [
                {"problem": problem, "method": method, "repeat": repeat}
                for repeat in range(1, self.repeats + 1)
                for method in (HMC, *learnt)
            ]
        return found

    def run(self, case: Case, conditions: Conditions) -> dict[str, Any]:
        """Run one chain, or the reference."""
        if case["method"] == REFERENCE:
            problem = self.problem(str(case["problem"]))
            rng = conditions.generator(REFERENCE, problem.name)
            target, whole = (problem.target(conditions, outputs=each) for each in (False, True))
            return reference_mean(whole, target, self.reference_draws, rng)
        problem, start, rng = self.begin(case, conditions)
        clock, (kind, _, scheme) = Clock(seconds=self.seconds), str(case["method"]).partition("-")
        run = one_chain(
            problem.target(conditions, outputs=scheme == EMULATOR),
            problem,
            start,
            rng,
            clock=clock,
            draws=10**9,  # the clock ends it
            **(self._learning(kind, scheme, problem) if scheme else {"warmup": 0}),
        )
        seconds = np.array(clock.elapsed)
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
            "training_seconds": run.seconds["training"],
        }

    def _learning(self, kind: str, scheme: str, problem: PaperProblem) -> dict[str, Any]:
        ours = scheme != PAPER
        schedule: tuple[str, dict[str, Any]] = "once", {}
        points = None if ours else self.rns_values
        if kind == "arns":
            schedule = self.adaptive(scheme, "warmup" if ours else None)
            points = 50 if ours else 500
        return {
            "surrogate": self.surrogate(scheme, problem),
            # an algorithm of the paper is shown as it is; the defaults have a fallback
            "schedule": schedule if ours else (schedule, NO_RESCUE),
            "explorer": None if points is None else ("sampler", {"evaluations": points}),
            "warmup": 1000 if ours else points,  # this project's default
        }

    def report(self, rows: Sequence[Row]) -> Report:
        """Return a table of errors, and how long each method was better than HMC."""
        truth, found = references(rows), errors(rows)
        known = [
            {
                "problem": LABELS[problem],
                "R-hat": each["rhat"],
                "acceptance": each["acceptance"],
                "standard error over |E q|": each["relative_error"],
                "without control variates": each["plain_error"],
            }
            for problem, each in truth.items()
        ]
        lines, printed = [], list[tuple[str, Cell, Cell]]()
        for (problem, method), each in found.items():
            kind, _, scheme = method.partition("-")
            part, label = part_below_hmc(found, problem, method), KINDS[kind]
            if scheme:
                label += f", {SCHEMES[scheme].label}"
            if kind == "arns":
                what = f"part of the time at which ARNS-HMC errs less than HMC: {problem}, {scheme}"
                printed.append((what, "best overall, lowest early", part))
            tenth = np.searchsorted(each["times"], 0.1 * each["times"][-1])
            lines.append(
                {
                    "problem": LABELS[problem],
                    "method": label,
                    "runs": len(each["runs"]),
                    "draws": median(each["runs"], "draws"),
                    "acceptance": median(each["runs"], "acceptance"),
                    "starting phase, s": each["start"],
                    "training, s": median(each["runs"], "training_seconds"),
                    "error at a tenth of the time": float(each["median"][tenth]),
                    "error at the end": float(each["median"][-1]),
                    "part of the time below HMC's": part,
                }
            )
        return Report(
            tables={"error of the mean": lines, "what E q is known by": known},
            printed=printed,
            notes=_doubts(rows),
        )

    def draw(self, rows: Sequence[Row]) -> Any:
        """Return a row for each scheme and a panel for each problem: error over seconds."""
        found = errors(rows)
        problems = list(dict.fromkeys(row["problem"] for row in rows))
        shown = [s for s in SCHEMES if any(m.endswith(f"-{s}") for _, m in found)] or [PAPER]
        width, height = max(3.2 * len(problems), 6.4), 2.9 * len(shown) + 0.5
        with drawing(width, height) as figure:
            axes = figure.subplots(len(shown), len(problems), sharex=True, squeeze=False)
            for (i, j), ax in np.ndenumerate(axes):
                scheme, problem = shown[i], problems[j]
                if scheme not in schemes(problem):
                    ax.set_axis_off()
                    continue
                for kind in KINDS:
                    each = found.get((problem, kind if kind == HMC else f"{kind}-{scheme}"))
                    if each is not None:
                        _curve(ax, kind, each)
                ax.set(xscale="log", yscale="log", xlabel="processor seconds, training included")
                ax.set_title(f"{LABELS[problem]}\n{SCHEMES[scheme].label}")
                ax.set_ylabel("relative error of the mean")
            common_legend(figure, axes.flat)
        return figure


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


def references(rows: Sequence[Row]) -> dict[str, Row]:
    """Return the finished reference of each problem."""
    return {row["problem"]: row for row in rows if row["method"] == REFERENCE}


Errors = dict[tuple[str, str], dict[str, Any]]
"""By problem and method."""


def errors(rows: Sequence[Row]) -> Errors:
    """Return the errors of each method on each problem that has a reference.

    At each of the ``times`` are ``low``, ``median`` and ``high``, quantiles of 5 %, 50 % and 95 %
    of the relative error over ``runs``, NaN where not all runs know it; the exact starting phase
    takes ``start`` seconds.
    """
    truth, found = references(rows), {}
    for (problem, method), runs in groups(rows, "problem", "method").items():
        if method != REFERENCE and problem in truth:
            curves = [relative_errors(row["means"], truth[problem]["mean"]) for row in runs]
            low, middle, high = np.quantile(curves, [0.05, 0.5, 0.95], axis=0)
            found[problem, method] = {
                "runs": runs,
                "times": array(runs[0]["times"]),
                "low": low,
                "median": middle,
                "high": high,
                "start": median(runs, "starting_seconds"),
            }
    return found


def relative_errors(
    means: Sequence[Sequence[float] | None], expected: Sequence[float]
) -> FloatArray:
    """Return |mean - E q| / |E q| for each mean, NaN where there is none (section 5.3)."""
    truth = np.asarray(expected, dtype=np.float64)
    known = [np.full(len(truth), np.nan) if mean is None else np.asarray(mean) for mean in means]
    return np.asarray(np.linalg.norm(np.array(known) - truth, axis=1) / np.linalg.norm(truth))


def part_below_hmc(found: Errors, problem: str, method: str) -> float | None:
    """Return the part of the time, from twice ARNS-HMC's starting phase on, below HMC's error."""
    scheme = method.partition("-")[2]
    hmc, arns = found.get((problem, HMC)), found.get((problem, f"arns-{scheme}"))
    if hmc is None or arns is None or arns["start"] is None:
        return None
    curves = found[problem, method]["median"], hmc["median"]
    return part_below(hmc["times"], *curves, 2 * arns["start"])


def part_below(
    times: npt.ArrayLike, ours: npt.ArrayLike, theirs: npt.ArrayLike, since: float
) -> float | None:
    """Return the part of the time, from a moment on, at which one curve is below another.

    Each of the rising times stands for the time since the one before it; those at which a curve is
    NaN are left out. None if no time is left.
    """
    moments, first, second = (np.asarray(each, dtype=np.float64) for each in (times, ours, theirs))
    stands_for = moments - np.maximum(np.concatenate([[0.0], moments[:-1]]), since)
    counted = (moments >= since) & np.isfinite(first) & np.isfinite(second)
    total = float(stands_for[counted].sum())
    return float(stands_for[counted & (first < second)].sum()) / total if total > 0 else None


def _doubts(rows: Sequence[Row]) -> list[str]:
    """Return a sentence for each reference that is doubtful, missing, or not much better."""
    truth, found = references(rows), errors(rows)
    missing = sorted({row["problem"] for row in rows} - set(truth))
    said = [f"no errors are known without {problem}/{REFERENCE}/1." for problem in missing]
    for problem, reference in truth.items():
        ends = [each["median"][-1] for (of, _), each in found.items() if of == problem]
        least, off, rhat = (
            np.nanmin([*ends, np.inf]),
            reference["relative_error"],
            reference["rhat"],
        )
        # a third of the error adds 5 % to it
        if rhat is None or not rhat <= 1.01 or off > least / 3:
            said.append(
                f"the reference of {problem} has R-hat {rhat} and is off by about {off:.2g}, where "
                f"the least error is {least:.2g}; raise reference_draws."
            )
    return said


def _curve(ax: Any, kind: str, each: Mapping[str, Any]) -> None:
    known = np.isfinite(each["median"]) & (each["low"] > 0)
    times, low, middle, high = (each[name][known] for name in ("times", "low", "median", "high"))
    ax.fill_between(times, low, high, color=LOOKS[kind]["color"], alpha=0.15, linewidth=0)
    ax.plot(times, middle, markevery=4, label=KINDS[kind], **LOOKS[kind])
    if each["start"] is not None:
        ends = {"linewidth": 0.8, "label": f"{KINDS[kind]}'s starting phase ends"}
        ax.axvline(each["start"], **line_of(kind), **ends)
