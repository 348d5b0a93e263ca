"""Figure 7, section 5.3: acceptance of HMC on a surrogate that learns on the way.

A chain of exact HMC, past its burn-in, gives the first training points. From then on proposals are
made on the surrogate, which observes each evaluation and is deployed anew ever more rarely
(Algorithm 4). Acceptance is averaged in bins of training points. Step size and number of steps are
those of HMC; masses are one. There is no fallback.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

import surrokit as sk
from surrokit.errors import SurrogateFitError
from surrokit.types import FloatArray
from surrokit_paper.chains import (
    NO_REPAIR,
    Clock,
    Row,
    array,
    burnt_in,
    evaluations,
    generator,
    groups,
    hmc,
    median,
    quantiles,
)
from surrokit_paper.pictures import (
    LOOKS,
    NAMES,
    common_legend,
    drawing,
    line_of,
    panels,
    ticks_at,
)
from surrokit_paper.problems import (
    A9A,
    BANK,
    FEWER,
    LABELS,
    N_NODES,
    PDE,
    SIMULATED,
    SIZES,
    paths_of,
    target_of,
)

TITLE = "Figure 7: acceptance of ARNS-HMC against the number of training points"

LEARNING: dict[str, Any] = {
    **SIZES,
    "repeats": 10,  # runs of each
    "burn_in": 500,  # exact iterations from 0, with a tuned step size; nothing is learnt there
    "n_nodes": None,  # of the paper's network; None for s as in the paper
    # how the paper's network takes in points: "greville" is Proposition 1; "auto" refits while
    # points are few, and then goes on by that
    "updates": "auto",
    # deployments happen with probability (1 + t)^-kappa, t iterations after the starting phase
    "kappa": 0.6,
}
FULL: dict[str, Any] = {
    **LEARNING,
    # training points at the start and at the end: of the paper's network, of this project's
    # defaults, and of the same where they learn a forward map
    "paper_points": (500, 6000),
    "defaults_points": (50, 600),
    "emulator_points": (20, 200),
    "n_bins": 22,  # of training points, in each curve
    "draws": 1000,  # iterations of HMC, for its average acceptance
}
QUICK: dict[str, Any] = {
    **FEWER,
    "repeats": 1,
    "paper_points": (300, 2000),
    "defaults_points": (50, 300),
    "emulator_points": (20, 60),
    "n_bins": 8,
    "burn_in": 50,
    "draws": 100,
    "n_nodes": 500,
}

PAPER_HMC = {SIMULATED: 0.76, BANK: 0.70, A9A: 0.72, PDE: 0.91}
"""Acceptance of HMC in table 1."""


def schemes(problem: str) -> tuple[str, ...]:
    """Return the schemes that apply to a problem: only the elliptic one has a forward map.

    They are the paper's, this project's surrogate of U as it comes, and that of a forward map.
    """
    return ("paper", "defaults", "emulator")[: 3 if problem == PDE else 2]


def surrogate_of(scheme: str, problem: str, sizes: SimpleNamespace) -> tuple[str, dict[str, Any]]:
    """Return a scheme's surrogate with its settings; the defaults choose their own nodes.

    The paper's network is whitened, which its inputs are not: see the page of figure 7.
    """
    if scheme != "paper":
        return "additive", {}
    network = {"trend": "constant", "train_on": "values", "learns": "potential"}
    nodes = sizes.n_nodes or N_NODES[problem]
    return "additive", {**network, "n_nodes": nodes, "updates": sizes.updates}


def adaptive(
    scheme: str, freeze_after: str | None, sizes: SimpleNamespace
) -> tuple[str, dict[str, Any]]:
    """Return the schedule ``greville``, which is Algorithm 4.

    The surrogate freezes after the ``"warmup"``, or never, as in the paper, with None.
    """
    derivatives = "never" if scheme == "paper" else "warmup"
    freezing = {"freeze_after": freeze_after, "derivatives": derivatives}
    return "greville", {"kappa": sizes.kappa, **freezing}


def start_of(case: Row, sizes: SimpleNamespace) -> tuple[FloatArray, np.random.Generator]:
    """Return where the chain of a case starts, and its random numbers.

    All methods of a repeat start from the same place to the last digit, on the same target; the
    cost of the burn-in is no method's.
    """
    problem, method, repeat = case["problem"], case["method"], case["repeat"]
    before = generator(sizes.seed, "burn-in", problem, repeat)
    n_steps = paths_of(problem, sizes)["n_steps"]
    start = burnt_in(target_of(problem, sizes), n_steps, sizes.burn_in, before)
    return start, generator(sizes.seed, "row", method, problem, repeat)


def cases(sizes: SimpleNamespace) -> list[Row]:
    """Return a case for each problem, repeat and method: HMC, and all schemes that apply."""
    return [
        {"problem": problem, "method": method, "repeat": repeat}
        for problem in LABELS
        for repeat in range(1, sizes.repeats + 1)
        for method in ("hmc", *schemes(problem))
    ]


def run(case: Row, sizes: SimpleNamespace) -> Row:
    """Run one chain."""
    problem, method, _ = case.values()
    (start, rng), paths = start_of(case, sizes), paths_of(problem, sizes)
    if method == "hmc":
        run = hmc(target_of(problem, sizes), paths, start, rng, warmup=0, draws=sizes.draws)
        return {"acceptance": float(run.kept.acceptance.mean())}
    first, last = getattr(sizes, f"{method}_points")
    run = hmc(
        target_of(problem, sizes, outputs=method == "emulator"),
        paths,
        start,
        rng,
        surrogate=surrogate_of(method, problem, sizes),
        schedule=(adaptive(method, "warmup", sizes), NO_REPAIR),
        explorer=("sampler", {"evaluations": first}),
        clock=Clock(evaluations=last),
        warmup=2 * last,
        draws=1,
    )
    return _learnt(run, np.linspace(first, last, sizes.n_bins + 1))


def _learnt(run: sk.Run, edges: FloatArray) -> Row:
    """Return acceptance on the surrogate in bins of training points."""
    deployed, trace = run.adaptation.deployments, run.warmup
    if not deployed:
        raise SurrogateFitError(
            f"no surrogate could be fitted within {edges[-1]:.0f} training points; give more"
        )
    first, evaluated = deployed[0], evaluations(trace.calls)
    # what was known when a proposal was made is what had been evaluated before it
    known = evaluated[first - 1 : -1]
    return {
        "edges": edges,
        "acceptance": binned(known, trace.acceptance[0, first:], edges),
        "starting_points": int(evaluated[first - 1]),
    }


def binned(
    points: npt.ArrayLike, acceptance: npt.ArrayLike, edges: npt.ArrayLike
) -> list[float | None]:
    """Return the mean acceptance probability in bins of training points, None in empty ones."""
    bounds, numbers = (np.asarray(each, dtype=np.float64) for each in (edges, acceptance))
    inside = np.searchsorted(bounds, np.asarray(points), side="right") - 1
    return [
        float(numbers[inside == i].mean()) if (inside == i).any() else None
        for i in range(len(bounds) - 1)
    ]


def hmc_acceptance(rows: Sequence[Row]) -> dict[str, float]:
    """Return the average acceptance of HMC on each problem."""
    exact = [row for row in rows if row["method"] == "hmc"]
    return {
        problem: float(np.mean([row["acceptance"] for row in runs]))
        for (problem,), runs in groups(exact, "problem").items()
    }


def curve(runs: Sequence[Row]) -> tuple[FloatArray, FloatArray]:
    """Return ends of bins, and quantiles of 5 %, 50 % and 95 % over runs in each, shape (3, n)."""
    bins = [
        quantiles([{"of": each} for each in numbers], "of", 0.05) or [np.nan] * 3
        for numbers in zip(*(row["acceptance"] for row in runs), strict=True)
    ]
    return array(runs[0]["edges"][1:]), array(bins).T


def report(rows: Sequence[Row], _: SimpleNamespace) -> tuple[dict[str, Any], list[Any]]:
    """Return after how many points 0.9 times HMC's acceptance was reached."""
    exact, lines = hmc_acceptance(rows), []
    printed: list[tuple[str, Any, float | None]] = [
        (f"acceptance of HMC, {name} (table 1)", number, exact[name])
        for name, number in PAPER_HMC.items()
        if name in exact
    ]
    learnt = [row for row in rows if row["method"] != "hmc"]
    for (problem, scheme), runs in groups(learnt, "problem", "method").items():
        ends, (_low, middle, _high) = curve(runs)
        level, quarter = 0.9 * exact.get(problem, np.nan), middle[-max(len(middle) // 4, 1) :]
        last = float(np.nanmean(quarter)) if np.isfinite(quarter).any() else None
        lines.append(
            {
                "problem": LABELS[problem],
                "surrogate": NAMES[scheme],
                "runs": len(runs),
                "HMC's acceptance": exact.get(problem),
                "at the end": last,
                "0.9 of HMC's after": min(ends[middle >= level].tolist(), default=None),
                "starting points": median(runs, "starting_points"),
            }
        )
        if scheme == "paper":
            ratio = last / exact[problem] if last and problem in exact else None
            what = f"ARNS-HMC's acceptance at the end over HMC's, {problem}"
            printed.append((what, "comparable", ratio))
    return {"": lines}, printed


def draw(rows: Sequence[Row], _: SimpleNamespace) -> Any:
    """Return a panel for each problem: acceptance over training points."""
    exact, by_problem = hmc_acceptance(rows), groups(rows, "problem")
    width, height = max(3.6 * min(len(by_problem), 2), 5.0), 2.8 * -(-len(by_problem) // 2)
    with drawing(width, height + 0.8) as figure:
        axes = panels(figure, len(by_problem))
        for ax, ((problem,), of_problem) in zip(axes, by_problem.items(), strict=True):
            if problem in exact:
                ax.axhline(exact[problem], label="HMC, exact: average", **line_of("hmc"))
            for (scheme,), runs in groups(of_problem, "method").items():
                if scheme != "hmc":
                    ends, (low, middle, high) = curve(runs)
                    colour = LOOKS[scheme]["color"]
                    ax.fill_between(ends, low, high, color=colour, alpha=0.2, linewidth=0)
                    ax.plot(ends, middle, markevery=3, **LOOKS[scheme])
            ax.set(xscale="log", ylim=(0.0, 1.0), xlabel="training points")
            ax.set(title=LABELS[problem], ylabel="acceptance probability")
            ticks_at(ax, (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000))
        common_legend(figure, axes)
    return figure
