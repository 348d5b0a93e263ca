"""Figure 6: posterior marginals by HMC and by HMC on a surrogate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import attrs
import numpy as np

from surrokit.errors import ConfigurationError
from surrokit.types import FloatArray
from surrokit_paper.chains import (
    MARGINALS,
    NO_RESCUE,
    largest_by_chance,
    marginals,
    one_chain,
    sampled,
)
from surrokit_paper.harness import Case, Cell, Conditions, Report, Row, array
from surrokit_paper.methods import HMC
from surrokit_paper.pictures import LOOKS, drawing
from surrokit_paper.problems import SIMULATED, ProblemFigure

METHODS = {HMC: "HMC", "rns": "RNS-HMC", "defaults": "surrokit as it comes"}

LEVEL = 0.99
"""Probability with which runs of one posterior stay under what is called chance here."""

_MASSES = (0.9, 0.5)  # of the draws, inside the contours


@attrs.frozen(kw_only=True)
class Figure6(ProblemFigure):
    """Section 5.1 and figure 6 of Zhang, Shahbaba and Zhao (2017), on its simulated data.

    HMC and RNS-HMC run as in the paper: one chain from 0, unit masses, step size 0.045, paths of
    up to 6 steps, so many iterations of exact HMC as burn-in, and as many again that are kept. The
    network is fitted once, to the states of the burn-in, as in the authors' code. A third run is
    ``surrokit.sample(target)`` as it comes. No run knows of another, and no random number is
    shared.
    """

    name = "figure-6"
    title = "Figure 6: marginals of the simulated logistic regression by HMC and RNS-HMC"
    quick: ClassVar = {
        "burn_in": 600,
        "discard": 100,
        "draws": 1500,
        "n_nodes": 500,
        "parameters": (1, 6, 11, 16),
        "n_rows": 10_000,
        "dim": 20,
    }

    burn_in: int = 5000  # iterations of exact HMC before any draw is kept
    discard: int = 1000  # those of them, from the first on, that nothing is learnt from
    draws: int = 5000  # kept by HMC and RNS-HMC
    n_nodes: int = 2000  # of the paper's network
    ridge: float = 1e-6
    parameters: tuple[int, ...] = (1, 11, 21, 31, 41)  # that are drawn, counted from 1
    n_shown: int = 1600  # about so many draws of these are kept for the picture

    def __attrs_post_init__(self) -> None:
        if not 1 <= min(self.parameters) <= max(self.parameters) <= self.dim:
            raise ConfigurationError(
                f"parameters must be numbers from 1 to dim, which is {self.dim}, got "
                f"{self.parameters}"
            )

    def cases(self) -> list[Case]:
        """Return a case for each method."""
        return [{"method": name} for name in METHODS]

    def run(self, case: Case, conditions: Conditions) -> dict[str, Any]:
        """Run one method."""
        problem, method = self.problem(SIMULATED), case["method"]
        target, rng = problem.target(conditions), conditions.generator("row", method)
        if method == "defaults":
            run = sampled(target, seed=rng)
        else:
            learning: dict[str, Any] = {"warmup": self.burn_in, "draws": self.draws}
            if method == "rns":
                states = {"iterations": self.burn_in, "discard": self.discard}
                network = {"n_nodes": self.n_nodes, "ridge": self.ridge}
                learning |= {
                    "surrogate": ("additive-paper", network),
                    "schedule": ("once", NO_RESCUE),
                    "explorer": ("sampler", {**states, "learn_from": "states"}),
                }
            run = one_chain(target, problem, np.zeros(target.dim), rng, **learning)
        columns = [number - 1 for number in self.parameters]
        chosen = run.draws.reshape(-1, run.draws.shape[2])[:, columns]
        with np.errstate(invalid="ignore"):  # a parameter that never moved
            correlations = np.atleast_2d(np.corrcoef(chosen.T))
        return {
            "chains": len(run.draws),
            "acceptance": float(run.kept.acceptance.mean()),
            "seconds": sum(run.seconds.values()),
            "gradients": int(run.calls["gradient"]),
            "values": int(run.calls["value"]),
            **marginals(run.draws),
            "parameters": self.parameters,
            "shown": np.round(chosen[:: max(len(chosen) // self.n_shown, 1)], 6),
            "correlations": correlations,
        }

    def report(self, rows: Sequence[Row]) -> Report:
        """Return means and standard deviations, differences from HMC, and what the runs cost."""
        titles = ("mean", "standard error", "sd", "standard error of the sd", "bulk ESS")
        columns = dict(zip(titles, MARGINALS, strict=True))
        by_parameter = [
            {
                "parameter": f"beta_{number}",
                "method": METHODS[row["method"]],
                **{title: row[name][number - 1] for title, name in columns.items()},
            }
            for number in rows[0]["parameters"]
            for row in rows
        ]
        costs = [
            {
                "method": METHODS[row["method"]],
                "chains": row["chains"],
                "acceptance": row["acceptance"],
                "min bulk ESS": min(row["ess_bulk"]),
                "seconds": row["seconds"],
                "gradients": row["gradients"],
                "values": row["values"],
            }
            for row in rows
        ]
        exact = [row for row in rows if row["method"] == HMC]
        compared = [line for hmc in exact for row in rows for line in differences(row, hmc)]
        return Report(
            tables={
                "marginals, in log odds": by_parameter,
                "largest differences from HMC": compared,
                "runs": costs,
            },
            printed=[
                (f"acceptance, {METHODS[row['method']]} (table 1)", 0.76, row["acceptance"])
                for row in rows
                if row["method"] in (HMC, "rns")  # the paper has the same for both
            ],
        )

    def draw(self, rows: Sequence[Row]) -> Any:
        """Return a triangle of panels: densities on the diagonal, contours of pairs below it."""
        numbers = rows[0]["parameters"]
        subscripts = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
        labels = [f"β{str(number).translate(subscripts)} (log odds)" for number in numbers]
        n, draws = len(numbers), [array(row["shown"]) for row in rows]
        ends = np.concatenate(draws).min(axis=0), np.concatenate(draws).max(axis=0)
        grids = list(np.linspace(*ends, 50).T)
        with drawing(max(1.55 * n, 4.0), max(1.55 * n, 4.0)) as figure:
            axes = figure.subplots(n, n, sharex="col", squeeze=False)
            for (i, j), ax in np.ndenumerate(axes):
                if j > i:
                    ax.axis("off")
                    continue
                shown = [i] if i == j else [j, i]
                for row, array_of in zip(rows, draws, strict=True):
                    _draw(ax, row["method"], array_of[:, shown], [grids[each] for each in shown])
                ax.locator_params(nbins=4)
                if j or i == j:
                    ax.set_yticklabels([])
            for label, ax, first in zip(labels, axes[-1], axes[:, 0], strict=True):
                ax.set_xlabel(label)
                first.set_ylabel(label)
            axes[0, 0].set_ylabel("density")
            inside = " and ".join(f"{mass:.0%}" for mass in reversed(_MASSES))
            figure.legend(
                *axes[0, 0].get_legend_handles_labels(),
                loc="upper right",
                title=f"contours hold {inside} of the draws",
                alignment="left",
            )
        return figure


def differences(row: Row, exact: Row) -> list[Mapping[str, Cell]]:
    """Return how far a run is from one of HMC, if it is another.

    Standard deviations are compared on the scale of logarithms, where an error does not grow with
    what it is the error of. Of a normal posterior, products of two parameters forget their past as
    squares of one do: the error of a correlation is the root of 2 times the relative error of an
    sd.
    """
    if row["method"] == exact["method"]:
        return []
    runs = [{name: array(each[name]) for name in MARGINALS} for each in (row, exact)]
    mine, theirs = runs
    relative = [each["sd_error"] / each["sd"] for each in runs]
    off = np.abs(mine["mean"] - theirs["mean"])
    ratio = mine["sd"] / theirs["sd"]
    numbers = np.array(row["parameters"]) - 1
    pairs = np.tril_indices(len(numbers), -1)
    correlations = [array(each["correlations"])[pairs] for each in (row, exact)]
    errors = [2.0 * np.outer(each[numbers], each[numbers])[pairs] for each in relative]
    apart = np.abs(correlations[0] - correlations[1])
    kinds = {
        "means, in sds": (off / theirs["sd"], off / np.hypot(*(r["mean_error"] for r in runs))),
        "sds, relative": (np.abs(ratio - 1.0), np.abs(np.log(ratio)) / np.hypot(*relative)),
        "correlations": (apart, apart / np.sqrt(sum(errors))),
    }
    return [
        {
            "method": METHODS[row["method"]],
            "of": of,
            "largest": float(largest.max()),
            "in standard errors": float(in_errors.max()),
            f"{LEVEL:.0%} stay under": largest_by_chance(largest.size, LEVEL),
        }
        for of, (largest, in_errors) in kinds.items()
        if largest.size
    ]


def _draw(ax: Any, method: str, draws: FloatArray, grids: Sequence[FloatArray]) -> None:
    """Draw the density of one parameter, or contours of that of two."""
    from scipy.stats import gaussian_kde

    density, colour = gaussian_kde(draws.T), LOOKS[method]["color"]
    # HMC is a broad line below the others, to show agreement
    line, width = ("-", 2.6) if method == HMC else (LOOKS[method]["linestyle"], 1.2)
    ax.set_xlim(grids[0][0], grids[0][-1])
    if len(grids) == 1:
        look = {"color": colour, "linestyle": line, "linewidth": width}
        ax.plot(grids[0], density(grids[0]), label=METHODS[method], **look)
        ax.set_ylim(bottom=0.0)
        return
    points = np.stack(np.meshgrid(*grids), axis=-1)
    heights = density(points.reshape(-1, 2).T).reshape(points.shape[:2])
    levels = np.quantile(density(draws.T), [1.0 - mass for mass in _MASSES])
    look = {"colors": colour, "linewidths": width, "linestyles": [line] * len(levels)}
    ax.contour(*grids, heights, levels=levels, **look)
    ax.set_ylim(grids[1][0], grids[1][-1])
