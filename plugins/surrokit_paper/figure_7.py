"""Figure 7: acceptance of HMC on a surrogate that learns on the way, as training points grow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import attrs
import numpy as np
import numpy.typing as npt

import surrokit as sk
from surrokit.arguments import (
    Limits,
    is_whole,
    positive_integer,
)
from surrokit.errors import SurrogateFitError
from surrokit.types import FloatArray
from surrokit_paper.chains import NO_RESCUE, StopAt, evaluations, one_chain, quantiles
from surrokit_paper.harness import Cell, Conditions, Finished, Report, Row, groups
from surrokit_paper.methods import HMC, PAPER, SCHEMES, LearningExperiment, adaptive
from surrokit_paper.pictures import LOOKS, common_legend, drawing, line_of, panels, ticks_among
from surrokit_paper.problems import A9A, BANK, PDE, SIMULATED

LEVEL = 0.9
"""Part of HMC's acceptance that counts as having reached it."""

PAPER_HMC = {SIMULATED: 0.76, BANK: 0.70, A9A: 0.72, PDE: 0.91}
"""Acceptance of HMC in table 1."""

WHITENED = (
    "the paper's network sees whitened inputs: in raw coordinates, which the paper has, the "
    "recursion of its Proposition 1 is numerically meaningless."
)
PROJECTION = (
    "a9a: the paper's random projection is lost. On orthonormal directions of the standardised "
    "features its step size gives nearly its acceptance of HMC."
)
NOTES = (
    "acceptance is the mean of the exact acceptance probabilities in a bin of training points; the "
    "curve is the median over runs, and its band goes from 5 % to 95 % of them.",
    "training points are the positions at which the target was evaluated since the burn-in, those "
    "along exact paths and rejected proposals included.",
    WHITENED,
    "the paper does not say at which rate its surrogate is deployed anew; (1 + t)^-kappa is ours.",
    PROJECTION,
)

_MEDIANS = ("starting_points", "points", "deployments", "seconds", "training_seconds")


def _points(first: int, last: int) -> Any:
    """Return a field of two whole numbers, which rise."""
    return attrs.field(
        default=(first, last),
        converter=lambda value: tuple(value) if isinstance(value, list | tuple) else (value,),
        validator=Limits(
            "two whole numbers, the first at least 1 and less than the second, as in (50, 600)",
            lambda pair: len(pair) == 2 and all(is_whole(n, 1) for n in pair) and pair[0] < pair[1],
        ),
    )


@attrs.frozen(kw_only=True)
class Figure7(LearningExperiment):
    """Section 5.3 and figure 7 of Zhang, Shahbaba and Zhao (2017).

    A chain of exact HMC, past its burn-in, gives the first training points. From then on
    proposals are made on the surrogate, which observes each evaluation and is deployed anew ever
    more rarely (Algorithm 4). Acceptance is averaged in bins of training points. Step size and
    number of steps are those of HMC; masses are one. There is no fallback.

    Parameters
    ----------
    paper_points, default_points, emulator_points
        Training points at the start and at the end: of the paper's network, which sees values of U
        alone; of this project's defaults, which see gradients too; and of the same where they learn
        a forward map, with Jacobians.
    n_bins
        Of training points, in each curve.
    draws
        Iterations of HMC, for its average acceptance.
    """

    name = "figure-7"
    title = "Figure 7: acceptance of ARNS-HMC against the number of training points"
    quick: ClassVar = {
        "repeats": 1,
        "paper_points": (300, 2000),
        "default_points": (50, 300),
        "emulator_points": (20, 60),
        "n_bins": 8,
        "burn_in": 50,
        "draws": 100,
        "n_nodes": 500,
        "n_rows": 10_000,
        "dim": 20,
    }

    paper_points: tuple[int, int] = _points(500, 6000)
    default_points: tuple[int, int] = _points(50, 600)
    emulator_points: tuple[int, int] = _points(20, 200)
    n_bins: int = attrs.field(default=22, validator=positive_integer)
    draws: int = attrs.field(default=1000, validator=positive_integer)

    def rows(self) -> list[Row]:
        """Return a row for each problem, repeat and method: HMC, and all schemes that apply."""
        found = []
        for problem in self.choose_problems():
            methods: dict[str, dict[str, Any]] = {HMC: {"draws": self.draws}}
            all_points = self.paper_points, self.default_points, self.emulator_points
            for scheme, points in zip(SCHEMES.values(), all_points, strict=True):
                if scheme.applies(problem):
                    methods[scheme.name] = {
                        **self.surrogate(scheme, problem),
                        "schedule_settings": adaptive(scheme, self.kappa, "warmup"),
                        "points": points,
                        "n_bins": self.n_bins,
                    }
            shared = {**problem.facts(), "burn_in": self.burn_in}
            for repeat in range(1, self.repeats + 1):
                for method, facts in methods.items():
                    settings = {"method": method, "repeat": repeat, **shared, **facts}
                    found.append(Row(f"{problem.name}/{method}/{repeat}", settings))
        return found

    def run(self, row: Row, conditions: Conditions) -> dict[str, Any]:
        """Run one chain."""
        method, (problem, start, rng) = row.settings["method"], self.begin(row, conditions)
        if method == HMC:
            target = problem.target(conditions)
            run = one_chain(target, problem, start, rng, warmup=0, draws=self.draws)
            acceptance = float(run.kept.acceptance.mean())
            return {"acceptance": acceptance, "seconds": float(run.kept.seconds[-1])}
        first, last = row.settings["points"]
        run = one_chain(
            problem.target(conditions, outputs=SCHEMES[method].outputs),
            problem,
            start,
            rng,
            surrogate=(row.settings["surrogate"], row.settings["surrogate_settings"]),
            schedule=(("greville", row.settings["schedule_settings"]), NO_RESCUE),
            explorer=("sampler", {"evaluations": first}),
            stop=StopAt(evaluations=last),
            warmup=2 * last,
            draws=1,
        )
        return _learnt(run, np.linspace(first, last, self.n_bins + 1))

    def report(self, finished: Sequence[Finished]) -> Report:
        """Return after how many points 0.9 times HMC's acceptance was reached."""
        hmc, found = hmc_acceptance(finished), summaries(finished)
        lines = [
            {
                "problem": each["label"],
                "surrogate": SCHEMES[each["scheme"]].label,
                "runs": each["runs"],
                "HMC's acceptance": each["hmc"],
                "at the end": each["last"],
                "0.9 of HMC's after": each["reached"],
                "for good after": each["stays"],
                "starting points": each["numbers"]["starting_points"],
                "deployments": each["numbers"]["deployments"],
                "seconds a run": each["numbers"]["seconds"],
            }
            for each in found
        ]
        printed: list[tuple[str, Cell, Cell]] = [
            (f"acceptance of HMC, {name} (table 1)", number, hmc[name])
            for name, number in PAPER_HMC.items()
            if name in hmc
        ]
        for each in found:
            if each["scheme"] == PAPER.name:
                what = f"ARNS-HMC's acceptance at the end over HMC's, {each['problem']}"
                printed.append((what, "comparable", each["last_ratio"]))
        return Report(
            tables={"": lines},
            printed=printed,
            figures={"hmc_acceptance": hmc, "curves": found},
            notes=NOTES,
        )

    def draw(self, finished: Sequence[Finished]) -> Any:
        """Return a panel for each problem: acceptance over training points."""
        labels = {row.settings["problem"]: row.settings["label"] for row in finished}
        hmc, found = hmc_acceptance(finished), summaries(finished)
        width = max(3.6 * min(len(labels), 2), 5.0)
        with drawing(width, 2.8 * -(-len(labels) // 2) + 0.8) as figure:
            grid, axes = panels(figure, len(labels))
            for ax, (problem, label) in zip(axes, labels.items(), strict=True):
                if problem in hmc:
                    ax.axhline(hmc[problem], color=LOOKS[HMC]["color"], label="HMC, exact: average")
                    nearly = {"linewidth": 0.8, "label": f"{LEVEL} of it", **line_of(HMC)}
                    ax.axhline(LEVEL * hmc[problem], **nearly)
                for each in found:
                    if each["problem"] == problem:
                        _band(ax, each)
                ax.set(xscale="log", ylim=(0.0, 1.0), xlabel="training points", title=label)
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
        "path_acceptance": binned(known, trace.path_acceptance[0, first:], edges),
        "starting_points": int(evaluated[first - 1]),
        "starting_iterations": int(first),
        "points": int(evaluated[-1]),
        "deployments": len(deployed),
        "seconds": float(trace.seconds[-1]),
        "training_seconds": run.seconds["training"],
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


def hmc_acceptance(finished: Sequence[Finished]) -> dict[str, float]:
    """Return the average acceptance of HMC on each problem."""
    return {
        problem: float(np.mean([row.result["acceptance"] for row in rows]))
        for (problem, method), rows in groups(finished, "problem", "method").items()
        if method == HMC
    }


def summaries(finished: Sequence[Finished]) -> list[dict[str, Any]]:
    """Return what the runs of each scheme on each problem say; None where it is not known.

    The ``curve`` has the ``ends`` of bins, and quantiles of 5 %, 50 % and 95 % over runs. 0.9 times
    HMC's acceptance is ``reached`` after so many points, and ``stays`` from then on; ``last`` is
    acceptance in the last quarter.
    """
    hmc, found = hmc_acceptance(finished), []
    for (problem, scheme), rows in groups(finished, "problem", "method").items():
        if scheme not in SCHEMES:
            continue
        exact = hmc.get(problem)
        curve: dict[str, Any] = {"ends": rows[0].result["edges"][1:]}
        curve |= {"low": [], "median": [], "high": []}
        for numbers in zip(*(row.result["acceptance"] for row in rows), strict=True):
            seen = [number for number in numbers if number is not None]
            over_runs = quantiles(seen, 0.05) if seen else {}
            for name in ("low", "median", "high"):
                curve[name].append(over_runs.get(name))
        reached, stays = (None, None) if exact is None else passed(curve, LEVEL * exact)
        quarter = curve["median"][-max(len(curve["median"]) // 4, 1) :]
        known = [number for number in quarter if number is not None]
        last = float(np.mean(known)) if known else None
        found.append(
            {
                "problem": problem,
                "label": rows[0].settings["label"],
                "scheme": scheme,
                "runs": len(rows),
                "hmc": exact,
                "curve": curve,
                "numbers": {
                    name: float(np.median([row.result[name] for row in rows])) for name in _MEDIANS
                },
                "reached": reached,
                "stays": stays,
                "last": last,
                "last_ratio": None if last is None or exact is None else last / exact,
            }
        )
    return found


def passed(curve: dict[str, list[Any]], level: float) -> tuple[float | None, float | None]:
    """Return after how many points a median is first at a level, and where it no longer falls."""
    points = zip(curve["ends"], curve["median"], strict=True)
    known = [(end, number >= level) for end, number in points if number is not None]
    at_it = [end for end, enough in known if enough]
    below = max((end for end, enough in known if not enough), default=0)
    return min(at_it, default=None), min((end for end in at_it if end > below), default=None)


def _band(ax: Any, summary: dict[str, Any]) -> None:
    look = LOOKS[summary["scheme"]]
    numbers = np.array([summary["curve"][name] for name in ("ends", "low", "median", "high")])
    ends, low, median, high = numbers.astype(np.float64)[:, [n is not None for n in numbers[2]]]
    ax.fill_between(ends, low, high, color=look["color"], alpha=0.2, linewidth=0)
    ax.plot(ends, median, markevery=3, label=SCHEMES[summary["scheme"]].label, **look)
