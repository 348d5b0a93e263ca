"""Figure 8, section 5.3: error of the mean against running time.

|mean of the draws up to t - E q| / |E q| against t, for HMC, for RNS-HMC, whose surrogate is
trained once, and for ARNS-HMC, whose surrogate learns on the way. Each runs one chain for the same
time, training included; both of the latter begin as exact HMC, and those draws count. All chains of
a repeat start from one place, where exact HMC came in a burn-in that costs none of them anything.
Step size and number of steps are the paper's; masses are one.

In the paper's scheme its network learns from values alone; ARNS-HMC starts from 500 values and
never freezes. With the defaults this project's surrogate, schedules and explorers are as they come,
with a warm-up of 1000 iterations, whose draws count too; so where they learn a forward map.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from surrokit.diagnostics import mean_error, r_hat
from surrokit.potentials import with_gradient
from surrokit.types import FloatArray
from surrokit_paper.chains import (
    NO_REPAIR,
    Clock,
    Row,
    array,
    generator,
    groups,
    hmc,
    median,
    sampled,
)
from surrokit_paper.figure_7 import LEARNING, adaptive, schemes, start_of, surrogate_of
from surrokit_paper.pictures import LOOKS, NAMES, common_legend, drawing, line_of
from surrokit_paper.problems import FEWER, LABELS, paths_of, target_of

TITLE = "Figure 8: relative error of the mean against running time"

FULL: dict[str, Any] = {
    **LEARNING,
    "seconds": 60.0,  # length of a run, of the processor
    "n_times": 40,  # at which errors are known, at equal distances of their logarithms
    "rns_values": 4000,  # training points of RNS-HMC in the paper's scheme
    "reference_draws": 10_000,  # of each of four chains, from which E q comes
}
QUICK: dict[str, Any] = {
    **FEWER,
    "repeats": 1,
    "seconds": 2.0,
    "n_times": 20,
    "burn_in": 50,
    "rns_values": 800,
    "n_nodes": 500,
    "reference_draws": 300,
}


def cases(sizes: SimpleNamespace) -> list[Row]:
    """Return a reference for each problem, and a case for each repeat and method."""
    found: list[Row] = []
    for problem in LABELS:
        learnt = [f"{kind}-{each}" for each in schemes(problem) for kind in ("rns", "arns")]
        found.append({"problem": problem, "method": "reference", "repeat": 1})
        # repeat by repeat, so that whatever else the machine does falls on all methods
        found += [
            {"problem": problem, "method": method, "repeat": repeat}
            for repeat in range(1, sizes.repeats + 1)
            for method in ("hmc", *learnt)
        ]
    return found


def run(case: Row, sizes: SimpleNamespace) -> Row:
    """Run one chain, or the reference."""
    problem, method, _ = case.values()
    if method == "reference":
        return reference_mean(problem, sizes)
    start, rng = start_of(case, sizes)
    clock, (kind, _, scheme) = Clock(seconds=sizes.seconds), method.partition("-")
    run = hmc(
        target_of(problem, sizes, outputs=scheme == "emulator"),
        paths_of(problem, sizes),
        start,
        rng,
        clock=clock,
        draws=10**9,  # the clock ends it
        **(_learning(kind, scheme, problem, sizes) if scheme else {"warmup": 0}),
    )
    seconds = np.array(clock.elapsed)
    times = np.geomspace(1e-3 * sizes.seconds, sizes.seconds, sizes.n_times)
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


def _learning(kind: str, scheme: str, problem: str, sizes: SimpleNamespace) -> dict[str, Any]:
    ours = scheme != "paper"
    schedule: tuple[str, dict[str, Any]] = "once", {}
    points = None if ours else sizes.rns_values
    if kind == "arns":
        schedule = adaptive(scheme, "warmup" if ours else None, sizes)
        points = 50 if ours else 500
    return {
        "surrogate": surrogate_of(scheme, problem, sizes),
        # an algorithm of the paper is shown as it is; the defaults have a fallback
        "schedule": schedule if ours else (schedule, NO_REPAIR),
        "explorer": None if points is None else ("sampler", {"evaluations": points}),
        "warmup": 1000 if ours else points,  # this project's default
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


def reference_mean(problem: str, sizes: SimpleNamespace) -> Row:
    """Return E q from a long run of this project's own, with the gradient as control variates.

    The target with all that it offers is sampled; the one that gives gradients may be cheaper. The
    error is the standard error of the mean over |E q|.
    """
    rng = generator(sizes.seed, "reference", problem)
    whole, exact = (target_of(problem, sizes, outputs=each) for each in (True, False))
    run = sampled(whole, surrogate="additive", draws=sizes.reference_draws, seed=rng)
    positions, gradient = run.draws.reshape(-1, run.draws.shape[-1]), with_gradient(exact)
    # a few at a time: the gradient of a logistic regression takes memory for rows x positions
    blocks = [
        gradient.value_and_gradient(positions[first : first + 100])[1]
        for first in range(0, len(positions), 100)
    ]
    controlled = with_gradients(run.draws, np.concatenate(blocks).reshape(run.draws.shape))
    mean = controlled.mean(axis=(0, 1))
    error = np.linalg.norm(mean_error(controlled)) / np.linalg.norm(mean)
    return {"mean": mean, "rhat": float(np.max(r_hat(run.draws))), "relative_error": float(error)}


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


def errors(rows: Sequence[Row]) -> dict[tuple[str, str], Row]:
    """Return the errors of each method on each problem that has a reference.

    At each of the ``times`` are ``curves``, quantiles of 5 %, 50 % and 95 % of the relative error
    over runs, NaN where not all runs know it; the exact starting phase takes ``start`` seconds.
    """
    truth = {row["problem"]: array(row["mean"]) for row in rows if row["method"] == "reference"}
    found = {}
    for (problem, method), runs in groups(rows, "problem", "method").items():
        if method != "reference" and problem in truth:
            mean = truth[problem]
            none = np.full(len(mean), np.nan)
            means = array([[none if m is None else m for m in row["means"]] for row in runs])
            off = np.linalg.norm(means - mean, axis=2) / np.linalg.norm(mean)
            found[problem, method] = {
                "runs": runs,
                "times": array(runs[0]["times"]),
                "curves": np.quantile(off, [0.05, 0.5, 0.95], axis=0),
                "start": median(runs, "starting_seconds"),
            }
    return found


def part_below(
    times: npt.ArrayLike, ours: npt.ArrayLike, theirs: npt.ArrayLike, since: float
) -> float | None:
    """Return the part of the time, from a moment on, at which one curve is below another.

    Each of the rising times stands for the time since the one before it; those at which a curve is
    NaN are left out. None if no time is left.
    """
    moments, first, second = map(array, (times, ours, theirs))
    stands_for = moments - np.maximum(np.concatenate([[0.0], moments[:-1]]), since)
    counted = (moments >= since) & np.isfinite(first) & np.isfinite(second)
    total = float(stands_for[counted].sum())
    return float(stands_for[counted & (first < second)].sum()) / total if total > 0 else None


def report(rows: Sequence[Row], __: SimpleNamespace) -> tuple[dict[str, Any], list[Any]]:
    """Return errors, and at which part of the time they are below HMC's.

    Time counts from twice ARNS-HMC's starting phase on.
    """
    found, lines, printed = errors(rows), [], []
    for (problem, method), each in found.items():
        kind, _, scheme = method.partition("-")
        exact, arns = (found.get((problem, name)) for name in ("hmc", f"arns-{scheme}"))
        middle, part = each["curves"][1], None
        if exact is not None and arns is not None and arns["start"] is not None:
            part = part_below(each["times"], middle, exact["curves"][1], 2 * arns["start"])
        if kind == "arns":
            what = f"part of the time at which ARNS-HMC errs less than HMC: {problem}, {scheme}"
            printed.append((what, "best overall, lowest early", part))
        tenth = np.searchsorted(each["times"], 0.1 * each["times"][-1])
        line = {
            "problem": LABELS[problem],
            "method": NAMES[kind] + (f", {NAMES[scheme]}" if scheme else ""),
            "runs": len(each["runs"]),
            "draws": median(each["runs"], "draws"),
            "acceptance": median(each["runs"], "acceptance"),
            "starting phase, s": each["start"],
            "training, s": median(each["runs"], "training_seconds"),
            "error at a tenth of the time": float(middle[tenth]),
            "error at the end": float(middle[-1]),
            "part of the time below HMC's": part,
        }
        lines.append(line)
    known = [
        {
            "problem": LABELS[row["problem"]],
            "R-hat": row["rhat"],
            "standard error over |E q|": row["relative_error"],
        }
        for row in rows
        if row["method"] == "reference"
    ]
    return {"error of the mean": lines, "what E q is known by": known}, printed


def draw(rows: Sequence[Row], _: SimpleNamespace) -> Any:
    """Return a row for each scheme and a panel for each problem: error over seconds."""
    found, problems = errors(rows), list(dict.fromkeys(row["problem"] for row in rows))
    shown = [s for s in schemes("pde") if any(m.endswith(f"-{s}") for _, m in found)] or ["paper"]
    with drawing(max(3.2 * len(problems), 6.4), 2.9 * len(shown) + 0.5) as figure:
        axes = figure.subplots(len(shown), len(problems), sharex=True, squeeze=False)
        for (i, j), ax in np.ndenumerate(axes):
            scheme, problem = shown[i], problems[j]
            if scheme not in schemes(problem):
                ax.set_axis_off()
                continue
            for method in ("hmc", f"rns-{scheme}", f"arns-{scheme}"):
                if (problem, method) in found:
                    _curve(ax, method.partition("-")[0], found[problem, method])
            ax.set(xscale="log", yscale="log", xlabel="processor seconds, training included")
            ax.set_title(f"{LABELS[problem]}\n{NAMES[scheme]}")
            ax.set_ylabel("relative error of the mean")
            ax.tick_params(labelbottom=True)
        common_legend(figure, axes.flat)
    return figure


def _curve(ax: Any, kind: str, each: Row) -> None:
    low, middle, high = each["curves"]
    colour = LOOKS[kind]["color"]
    ax.fill_between(each["times"], low, high, color=colour, alpha=0.15, linewidth=0)
    ax.plot(each["times"], middle, markevery=4, **LOOKS[kind])
    if each["start"] is not None:
        ends = {"linewidth": 0.8, "label": f"{NAMES[kind]}'s starting phase ends"}
        ax.axvline(each["start"], **line_of(kind), **ends)
