"""Figure 7: acceptance of HMC on a surrogate that learns on the way, as training points grow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import attrs
import numpy as np
import numpy.typing as npt

import surrokit as sk
from surrokit.errors import SurrogateFitError
from surrokit.types import FloatArray
from surrokit_paper.chains import NO_RESCUE, Clock, burnt_in, evaluations, one_chain
from surrokit_paper.harness import (
    Case,
    Cell,
    Conditions,
    Report,
    Row,
    array,
    groups,
    median,
    over_repeats,
)
from surrokit_paper.methods import HMC, Method, by_name
from surrokit_paper.pictures import LOOKS, common_legend, drawing, line_of, panels, ticks_among
from surrokit_paper.problems import (
    A9A,
    BANK,
    LABELS,
    PDE,
    PROBLEMS,
    SIMULATED,
    PaperProblem,
    ProblemFigure,
)

LEVEL = 0.9
"""Part of HMC's acceptance that counts as having reached it."""

PAPER_HMC = {SIMULATED: 0.76, BANK: 0.70, A9A: 0.72, PDE: 0.91}
"""Acceptance of HMC in table 1."""

PAPER, DEFAULTS, EMULATOR = "paper", "defaults", "emulator"
SCHEMES = by_name(
    # whitened, which the paper's inputs are not: see the notes
    Method(
        PAPER,
        "the paper's network, values alone",
        settings={"trend": "constant", "train_on": "values", "learns": "potential"},
    ),
    Method(DEFAULTS, "surrokit's defaults, gradients too", gradients=True),
    Method(EMULATOR, "surrokit's defaults, forward map", gradients=True),
)
"""The paper's, this project's surrogate of U as it comes, and of a forward map."""


@attrs.frozen(kw_only=True)
class LearningFigure(ProblemFigure):
    """Runs on surrogates that learn on the way."""

    repeats: int = 10  # runs of each
    burn_in: int = 500  # exact iterations from 0, with a tuned step size; nothing is learnt there
    n_nodes: int | None = None  # of the paper's network; None for s as in the paper
    # how the paper's network takes in points: "greville" is Proposition 1; "auto" refits while
    # points are few, and then goes on by that
    updates: str = "auto"
    # deployments happen with probability (1 + t)^-kappa, t iterations after the starting phase
    kappa: float = 0.6

    def begin(
        self, case: Case, conditions: Conditions
    ) -> tuple[PaperProblem, FloatArray, np.random.Generator]:
        """Return the problem of a case, where its chain starts, and its random numbers.

        All methods of a repeat start from the same place to the last digit, on the same target.
        """
        problem, keys = self.problem(str(case["problem"])), (case["problem"], case["repeat"])
        before = conditions.generator("burn-in", *keys)
        start = burnt_in(problem.target(conditions), problem, self.burn_in, before)
        return problem, start, conditions.generator("row", case["method"], *keys)

    def surrogate(self, scheme: str, problem: PaperProblem) -> tuple[str, dict[str, Any]]:
        """Return a scheme's surrogate with its settings; the defaults choose their own nodes."""
        settings = dict(SCHEMES[scheme].settings)
        if scheme == PAPER:
            settings |= {"n_nodes": self.n_nodes or problem.n_nodes, "updates": self.updates}
        return "additive", settings

    def adaptive(self, scheme: str, freeze_after: str | None) -> tuple[str, dict[str, Any]]:
        """Return the schedule ``greville``, which is Algorithm 4.

        The surrogate freezes after the ``"warmup"``, or never, as in the paper, with None.
        """
        derivatives = "warmup" if SCHEMES[scheme].gradients else "never"
        return "greville", {
            "kappa": self.kappa,
            "freeze_after": freeze_after,
            "derivatives": derivatives,
        }


def schemes(problem: str) -> list[str]:
    """Return the schemes that apply to a problem: only the elliptic one has a forward map."""
    return [name for name in SCHEMES if problem == PDE or name != EMULATOR]


@attrs.frozen(kw_only=True)
class Figure7(LearningFigure):
    """Section 5.3 and figure 7 of Zhang, Shahbaba and Zhao (2017).

    A chain of exact HMC, past its burn-in, gives the first training points. From then on
    proposals are made on the surrogate, which observes each evaluation and is deployed anew ever
    more rarely (Algorithm 4). Acceptance is averaged in bins of training points. Step size and
    number of steps are those of HMC; masses are one. There is no fallback.
    """

    name = "figure-7"
    title = "Figure 7: acceptance of ARNS-HMC against the number of training points"
    quick: ClassVar = {
        "repeats": 1,
        "paper_points": (300, 2000),
        "defaults_points": (50, 300),
        "emulator_points": (20, 60),
        "n_bins": 8,
        "burn_in": 50,
        "draws": 100,
        "n_nodes": 500,
        "n_rows": 10_000,
        "dim": 20,
    }

    # training points at the start and at the end: of the paper's network, of this project's
    # defaults, and of the same where they learn a forward map
    paper_points: tuple[int, ...] = (500, 6000)
    defaults_points: tuple[int, ...] = (50, 600)
    emulator_points: tuple[int, ...] = (20, 200)
    n_bins: int = 22  # of training points, in each curve
    draws: int = 1000  # iterations of HMC, for its average acceptance

    def cases(self) -> list[Case]:
        """Return a case for each problem, repeat and method: HMC, and all schemes that apply."""
        return [
            {"problem": problem, "method": method, "repeat": repeat}
            for problem in PROBLEMS
            for repeat in range(1, self.repeats + 1)
            for method in (HMC, *schemes(problem))
        ]

    def run(self, case: Case, conditions: Conditions) -> dict[str, Any]:
        """Run one chain."""
        method, (problem, start, rng) = str(case["method"]), self.begin(case, conditions)
        if method == HMC:
            target = problem.target(conditions)
            run = one_chain(target, problem, start, rng, warmup=0, draws=self.draws)
            return {"acceptance": float(run.kept.acceptance.mean())}
        first, last = getattr(self, f"{method}_points")
        run = one_chain(
            problem.target(conditions, outputs=method == EMULATOR),
            problem,
            start,
            rng,
            surrogate=self.surrogate(method, problem),
            schedule=(self.adaptive(method, "warmup"), NO_RESCUE),
            explorer=("sampler", {"evaluations": first}),
            clock=Clock(evaluations=last),
            warmup=2 * last,
            draws=1,
        )
        return _learnt(run, np.linspace(first, last, self.n_bins + 1))

    def report(self, rows: Sequence[Row]) -> Report:
        """Return after how many points 0.9 times HMC's acceptance was reached."""
        hmc, lines = hmc_acceptance(rows), list[Mapping[str, Cell]]()
        printed: list[tuple[str, Cell, Cell]] = [
            (f"acceptance of HMC, {name} (table 1)", number, hmc[name])
            for name, number in PAPER_HMC.items()
            if name in hmc
        ]
        for (problem, scheme), runs in groups(rows, "problem", "method").items():
            if scheme == HMC:
                continue
            exact, learning = hmc.get(problem), curve(runs)
            reached, stays = (None, None) if exact is None else passed(learning, LEVEL * exact)
            quarter = learning["median"][-max(len(learning["median"]) // 4, 1) :]
            last = float(np.nanmean(quarter)) if np.isfinite(quarter).any() else None
            lines.append(
                {
                    "problem": LABELS[problem],
                    "surrogate": SCHEMES[scheme].label,
                    "runs": len(runs),
                    "HMC's acceptance": exact,
                    "at the end": last,
                    "0.9 of HMC's after": reached,
                    "for good after": stays,
                    "starting points": median(runs, "starting_points"),
                    "deployments": median(runs, "deployments"),
                    "seconds a run": median(runs, "seconds"),
                }
            )
            if scheme == PAPER:
                what = f"ARNS-HMC's acceptance at the end over HMC's, {problem}"
                printed.append((what, "comparable", last / exact if last and exact else None))
        return Report(tables={"": lines}, printed=printed)

    def draw(self, rows: Sequence[Row]) -> Any:
        """Return a panel for each problem: acceptance over training points."""
        hmc, by_problem = hmc_acceptance(rows), groups(rows, "problem")
        width, height = max(3.6 * min(len(by_problem), 2), 5.0), 2.8 * -(-len(by_problem) // 2)
        with drawing(width, height + 0.8) as figure:
            grid, axes = panels(figure, len(by_problem))
            for ax, ((problem,), of_problem) in zip(axes, by_problem.items(), strict=True):
                if problem in hmc:
                    ax.axhline(hmc[problem], color=LOOKS[HMC]["color"], label="HMC, exact: average")
                    nearly = {"linewidth": 0.8, "label": f"{LEVEL} of it", **line_of(HMC)}
                    ax.axhline(LEVEL * hmc[problem], **nearly)
                for (scheme,), runs in groups(of_problem, "method").items():
                    if scheme != HMC:
                        _band(ax, scheme, curve(runs))
                ax.set(xscale="log", ylim=(0.0, 1.0), xlabel="training points")
                ax.set_title(LABELS[problem])
                ticks_among(ax, (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000))
            for ax in grid[:, 0]:
                ax.set_ylabel("acceptance probability")
            common_legend(figure, axes)
        return figure


def _learnt(run: sk.Run, edges: FloatArray) -> dict[str, Any]:
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
        "deployments": len(deployed),
        "seconds": float(trace.seconds[-1]),
    }


def binned(
    points: npt.ArrayLike, acceptance: npt.ArrayLike, edges: npt.ArrayLike
) -> list[float | None]:
    """Return the mean acceptance probability in bins of training points, None in empty ones."""
    bounds = np.asarray(edges, dtype=np.float64)
    inside = np.searchsorted(bounds, np.asarray(points), side="right") - 1
    numbers = np.asarray(acceptance, dtype=np.float64)
    return [
        float(numbers[inside == i].mean()) if (inside == i).any() else None
        for i in range(len(bounds) - 1)
    ]


def hmc_acceptance(rows: Sequence[Row]) -> dict[str, float]:
    """Return the average acceptance of HMC on each problem."""
    return {
        problem: float(np.mean([row["acceptance"] for row in runs]))
        for (problem, method), runs in groups(rows, "problem", "method").items()
        if method == HMC
    }


def curve(runs: Sequence[Row]) -> dict[str, FloatArray]:
    """Return quantiles of 5 %, 50 % and 95 % over runs in each bin, which ``ends`` there."""
    bins = [
        over_repeats([{"of": each} for each in numbers], "of", 0.05) or {}
        for numbers in zip(*(row["acceptance"] for row in runs), strict=True)
    ]
    found = {name: array([each.get(name) for each in bins]) for name in ("low", "median", "high")}
    return {"ends": array(runs[0]["edges"][1:]), **found}


def passed(learning: Mapping[str, Any], level: float) -> tuple[float | None, float | None]:
    """Return after how many points a median is first at a level, and where it no longer falls."""
    ends, numbers = array(learning["ends"]), array(learning["median"])
    at_it, below = ends[numbers >= level], max(ends[numbers < level], default=0)
    return min(at_it.tolist(), default=None), min(at_it[at_it > below].tolist(), default=None)


def _band(ax: Any, scheme: str, learning: Mapping[str, FloatArray]) -> None:
    known = np.isfinite(learning["median"])
    ends, low, middle, high = (learning[n][known] for n in ("ends", "low", "median", "high"))
    ax.fill_between(ends, low, high, color=LOOKS[scheme]["color"], alpha=0.2, linewidth=0)
    ax.plot(ends, middle, markevery=3, label=SCHEMES[scheme].label, **LOOKS[scheme])
