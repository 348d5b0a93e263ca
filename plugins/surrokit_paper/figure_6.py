"""Figure 6: posterior marginals by HMC and by HMC on a surrogate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import attrs
import numpy as np

from surrokit.arguments import (
    not_negative_integer,
    optional_positive_integer,
    positive,
    positive_integer,
)
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
from surrokit_paper.harness import Conditions, Experiment, Finished, Report, Row, sizes_field
from surrokit_paper.methods import HMC, Method
from surrokit_paper.pictures import LOOKS, drawing
from surrokit_paper.problems import PAPER_ROWS, PaperProblem, simulated_problem

RNS, DEFAULTS = "rns", "defaults"

LEVEL = 0.99
"""Probability with which runs of one posterior stay under what is called chance here."""

NOTES = (
    "standard errors are those of Monte Carlo, from effective sample sizes; of two runs they add "
    "in squares.",
    "largest differences are over all parameters, those of correlations over the pairs that are "
    f"drawn. Of runs that draw from one posterior, {LEVEL:.0%} stay under the last column in "
    "standard errors.",
    "a step size of 0.045 and paths of up to 6 steps are the paper's, unit masses too; "
    "surrokit as it comes picks everything itself.",
    "seconds are those of the whole run, burn-in and training included.",
)

_MASSES = (0.9, 0.5)  # of the draws, inside the contours


@attrs.frozen(kw_only=True)
class Figure6(Experiment):
    """Section 5.1 and figure 6 of Zhang, Shahbaba and Zhao (2017), on its simulated data.

    HMC and RNS-HMC run as in the paper: one chain from 0, unit masses, step size 0.045, paths of
    up to 6 steps, so many iterations of exact HMC as burn-in, and as many again that are kept. The
    network is fitted once, to the states of the burn-in, as in the authors' code. A third run is
    ``surrokit.sample(target)`` as it comes. No run knows of another, and no random number is
    shared.

    Parameters
    ----------
    burn_in
        Iterations of exact HMC before any draw is kept.
    discard
        Those of them, from the first on, that nothing is learnt from.
    draws
        Kept by HMC and RNS-HMC.
    n_nodes
        Of the paper's network; None for s as in the paper.
    ridge
        Of the paper's network.
    parameters
        Which parameters are drawn, counted from 1.
    n_shown
        About so many draws of these are kept for the picture.
    n_rows, dim
        Of the simulated data.

    Raises
    ------
    ConfigurationError
        If a setting is out of range, or a parameter beyond ``dim``.
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

    burn_in: int = attrs.field(default=5000, validator=positive_integer)
    discard: int = attrs.field(default=1000, validator=not_negative_integer)
    draws: int = attrs.field(default=5000, validator=positive_integer)
    n_nodes: int | None = attrs.field(default=None, validator=optional_positive_integer)
    ridge: float = attrs.field(default=1e-6, validator=positive)
    parameters: tuple[int, ...] = sizes_field(1, 11, 21, 31, 41)
    n_shown: int = attrs.field(default=1600, validator=positive_integer)
    n_rows: int = attrs.field(default=PAPER_ROWS, validator=positive_integer)
    dim: int = attrs.field(default=50, validator=positive_integer)

    def __attrs_post_init__(self) -> None:
        if self.discard >= self.burn_in:
            raise ConfigurationError(
                f"discard must be less than burn_in, which is {self.burn_in}, got {self.discard}"
            )
        if max(self.parameters) > self.dim:
            raise ConfigurationError(
                f"parameters must be numbers from 1 to dim, which is {self.dim}, got "
                f"{self.parameters}; name others with parameters"
            )

    @property
    def _problem(self) -> PaperProblem:
        return simulated_problem(self.n_rows, self.dim)

    def rows(self) -> list[Row]:
        """Return a row for each method."""
        problem = self._problem
        network = {"n_nodes": self.n_nodes or problem.n_nodes, "ridge": self.ridge}
        exact = Method(HMC, "HMC", "none")
        rns = Method(RNS, "RNS-HMC", "additive-paper", network)
        defaults = Method(DEFAULTS, "surrokit as it comes", "automatic")
        shared = {"parameters": self.parameters, "n_shown": self.n_shown, **problem.facts()}
        lengths = {"burn_in": self.burn_in, "draws": self.draws}
        return [
            Row(method.name, {**shared, **method.facts(), **more})
            for method, more in (
                (exact, lengths),
                (rns, {**lengths, "discard": self.discard}),
                (defaults, {}),
            )
        ]

    def run(self, row: Row, conditions: Conditions) -> dict[str, Any]:
        """Run one method."""
        target, method = self._problem.target(conditions), row.settings["method"]
        rng = conditions.generator("row", method)
        if method == DEFAULTS:
            run = sampled(target, seed=rng)
        else:
            learning: dict[str, Any] = {}
            if method == RNS:
                states = {"iterations": self.burn_in, "discard": self.discard}
                learning = {
                    "surrogate": (row.settings["surrogate"], row.settings["surrogate_settings"]),
                    "schedule": ("once", NO_RESCUE),
                    "explorer": ("sampler", {**states, "learn_from": "states"}),
                }
            learning |= {"warmup": self.burn_in, "draws": self.draws}
            run = one_chain(target, self._problem, np.zeros(target.dim), rng, **learning)
        columns = [number - 1 for number in self.parameters]
        chosen = run.draws.reshape(-1, run.draws.shape[2])[:, columns]
        with np.errstate(invalid="ignore"):  # a parameter that never moved
            correlations = np.atleast_2d(np.corrcoef(chosen.T))
        return {
            "choice": run.choice or "",
            "chains": len(run.draws),
            "acceptance": float(run.kept.acceptance.mean()),
            "seconds": dict(run.seconds),
            "calls": {kind: int(number) for kind, number in run.calls.items()},
            **marginals(run.draws),
            "shown": np.round(chosen[:: max(len(chosen) // self.n_shown, 1)], 6),
            "correlations": correlations,
        }

    def report(self, finished: Sequence[Finished]) -> Report:
        """Return means and standard deviations, differences from HMC, and what the runs cost."""
        rows = {row.settings["method"]: row for row in finished}
        compared = differences(finished)
        costs = [
            {
                "method": label,
                "chains": found["chains"],
                "acceptance": found["acceptance"],
                "min bulk ESS": min(found["ess"]),
                "seconds": sum(found["seconds"].values()),
                "gradients": found["calls"]["gradient"],
                "values": found["calls"]["value"],
            }
            for label, found in ((row.settings["label"], row.result) for row in finished)
        ]
        return Report(
            tables={
                "marginals, in log odds": _lines(finished),
                "largest differences from HMC": _difference_lines(compared),
                "runs": costs,
            },
            printed=[
                (f"acceptance, {row.settings['label']} (table 1)", 0.76, row.result["acceptance"])
                for method, row in rows.items()
                if method in (HMC, RNS)  # the paper has the same for both
            ],
            figures={
                "differences_from_hmc": compared,
                "marginals": {
                    method: {name: row.result[name] for name in MARGINALS}
                    for method, row in rows.items()
                },
            },
            notes=NOTES,
        )

    def draw(self, finished: Sequence[Finished]) -> Any:
        """Return a triangle of panels: densities on the diagonal, contours of pairs below it."""
        numbers = finished[0].settings["parameters"]
        subscripts = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
        labels = [f"β{str(number).translate(subscripts)} (log odds)" for number in numbers]
        n, draws = len(numbers), [np.array(row.result["shown"]) for row in finished]
        ends = np.concatenate(draws).min(axis=0), np.concatenate(draws).max(axis=0)
        grids = list(np.linspace(*ends, 50).T)
        with drawing(max(1.55 * n, 4.0), max(1.55 * n, 4.0)) as figure:
            axes = figure.subplots(n, n, sharex="col", squeeze=False)
            for (i, j), ax in np.ndenumerate(axes):
                if j > i:
                    ax.axis("off")
                    continue
                for row, array in zip(finished, draws, strict=True):
                    shown = [i] if i == j else [j, i]
                    _draw(ax, row, array[:, shown], [grids[each] for each in shown])
                _finish(ax, grids, i, j)
                if i == n - 1:
                    ax.set_xlabel(labels[j])
                if j == 0:
                    ax.set_ylabel(labels[i] if i else "density")
            inside = " and ".join(f"{mass:.0%}" for mass in reversed(_MASSES))
            figure.legend(
                *axes[0, 0].get_legend_handles_labels(),
                loc="upper right",
                title=f"contours hold {inside} of the draws",
                alignment="left",
            )
        return figure


def differences(finished: Sequence[Finished]) -> list[dict[str, Any]]:
    """Return how far each method's means and standard deviations are from those of HMC, if known.

    What is ``apart`` is so in standard errors. Standard deviations are compared on the scale of
    logarithms, where an error does not grow with what it is the error of.
    """
    rows = {row.settings["method"]: row for row in finished}
    if HMC not in rows:
        return []
    exact = rows.pop(HMC)
    theirs = _arrays(exact)
    found = []
    for method, row in rows.items():
        mine = _arrays(row)
        difference, ratios = np.abs(mine["means"] - theirs["means"]), mine["sds"] / theirs["sds"]
        means = difference / np.hypot(mine["mean_errors"], theirs["mean_errors"])
        relative = np.hypot(*(each["sd_errors"] / each["sds"] for each in (mine, theirs)))
        sds = np.abs(np.log(ratios)) / relative
        found.append(
            {
                "method": method,
                "label": row.settings["label"],
                "mean_apart": float(means.max()),
                "mean_parameter": int(means.argmax()) + 1,
                "mean_in_sds": float((difference / theirs["sds"]).max()),
                "sd_apart": float(sds.max()),
                "sd_parameter": int(sds.argmax()) + 1,
                "sd_relative": float(np.abs(ratios - 1.0).max()),
                **_correlations(row, exact),
                "chance": largest_by_chance(len(means), LEVEL),
            }
        )
    return found


def _lines(finished: Sequence[Finished]) -> list[dict[str, Any]]:
    titles = ("mean", "standard error", "sd", "standard error of the sd", "bulk ESS")
    return [
        {
            "parameter": f"beta_{number}",
            "method": row.settings["label"],
            **{
                title: row.result[name][number - 1]
                for title, name in zip(titles, MARGINALS, strict=True)
            },
        }
        for number in finished[0].settings["parameters"]
        for row in finished
    ]


def _arrays(row: Finished) -> dict[str, FloatArray]:
    """Return the marginals of a row; None becomes NaN."""
    return {name: np.array(row.result[name], dtype=np.float64) for name in MARGINALS}


def _correlations(row: Finished, exact: Finished) -> dict[str, float | None]:
    # of a normal posterior, products of two parameters forget their past as squares of one do: the
    # error of a correlation is the root of 2 times the relative error of a standard deviation
    numbers = [number - 1 for number in row.settings["parameters"]]
    if len(numbers) < 2:
        return {"correlation": None, "correlation_apart": None, "pairs_chance": None}
    correlations, variances = [], []
    for each in (row, exact):
        known = _arrays(each)
        relative = (known["sd_errors"] / known["sds"])[numbers]
        variances.append(2.0 * np.outer(relative, relative))
        correlations.append(np.array(each.result["correlations"], dtype=np.float64))
    apart = np.abs(correlations[0] - correlations[1])
    return {
        "correlation": float(apart.max()),
        "correlation_apart": float((apart / np.sqrt(variances[0] + variances[1])).max()),
        "pairs_chance": largest_by_chance(len(numbers) * (len(numbers) - 1) // 2, LEVEL),
    }


def _difference_lines(compared: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    kinds = {
        "means, in sds": ("mean_in_sds", "mean_apart", "chance"),
        "sds, relative": ("sd_relative", "sd_apart", "chance"),
        "correlations": ("correlation", "correlation_apart", "pairs_chance"),
    }
    titles = ("largest", "in standard errors", f"{LEVEL:.0%} stay under")
    return [
        {
            "method": found["label"],
            "of": of,
            **{title: found[name] for title, name in zip(titles, names, strict=True)},
        }
        for found in compared
        for of, names in kinds.items()
        if found[names[0]] is not None
    ]


def _look(row: Finished) -> tuple[str, Any, float]:
    """Return colour, line and width; HMC is a broad line below the others, to show agreement."""
    look, exact = LOOKS[row.settings["method"]], row.settings["method"] == HMC
    return look["color"], "-" if exact else look["linestyle"], 2.6 if exact else 1.2


def _draw(ax: Any, row: Finished, draws: FloatArray, grids: Sequence[FloatArray]) -> None:
    """Draw the density of one parameter, or contours of that of two."""
    from scipy.stats import gaussian_kde

    density = gaussian_kde(draws.T)
    colour, line, width = _look(row)
    if len(grids) == 1:
        look = {"color": colour, "linestyle": line, "linewidth": width}
        ax.plot(grids[0], density(grids[0]), label=row.settings["label"], **look)
        return
    points = np.stack(np.meshgrid(*grids), axis=-1)
    heights = density(points.reshape(-1, 2).T).reshape(points.shape[:2])
    levels = np.quantile(density(draws.T), [1.0 - mass for mass in _MASSES])
    look = {"colors": colour, "linewidths": width, "linestyles": [line] * len(levels)}
    ax.contour(*grids, heights, levels=levels, **look)


def _finish(ax: Any, grids: Sequence[FloatArray], i: int, j: int) -> None:
    from matplotlib.ticker import MaxNLocator

    ax.set_xlim(grids[j][0], grids[j][-1])
    ax.xaxis.set_major_locator(MaxNLocator(3))
    if i == j:
        ax.set_yticks([])
        ax.set_ylim(bottom=0.0)
        return
    ax.set_ylim(grids[i][0], grids[i][-1])
    ax.yaxis.set_major_locator(MaxNLocator(3))
    if j:
        ax.set_yticklabels([])
