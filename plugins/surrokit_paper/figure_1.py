"""Figure 1: surrogates of few nodes, fitted to few noisy values of x^2 / 2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import attrs
import numpy as np

import surrokit as sk
from surrokit.types import FloatArray
from surrokit_paper.harness import Case, Conditions, Figure, Report, Row, array
from surrokit_paper.methods import DEFAULTS, Method, by_name, processes
from surrokit_paper.pictures import BLACK, GREY, LOOKS, common_legend, drawing

N_NODES = 5
"""Nodes of the networks, and inducing points of FITC, in the paper."""

GRID: FloatArray = np.linspace(-4.0, 4.0, 41)
"""Where curves are kept."""

OF_PAPER = (
    *processes(N_NODES),
    Method("additive", "additive nodes", "additive-paper", {"n_nodes": N_NODES}),
    Method("rbf", "radial nodes", "rbf-paper", {"n_nodes": N_NODES}),
)
METHODS = by_name(*OF_PAPER, *DEFAULTS)
"""The four of the paper, then this project's own settings."""


@attrs.frozen(kw_only=True)
class Figure1(Figure):
    """Section 3.3 and figure 1 of Zhang, Shahbaba and Zhao (2017).

    U(x) = x^2 / 2 is seen at N draws from N(0, 1), with noise; smaller data sets are the beginnings
    of larger ones. Every surrogate is refitted with other nodes, and the curves are averaged.
    """

    name = "figure-1"
    title = "Figure 1: surrogates of U(x) = x^2/2 from a few noisy values"
    quick: ClassVar = {"n_refits": 5, "n_data_sets": 5}
    grid = ("n_points",)

    n_points: tuple[int, ...] = (10, 20, 40)  # N, one panel each
    n_refits: int = 100  # fits to the one data set that is shown
    n_data_sets: int = 100  # others, one fit to each: what one data set shows may be chance
    noise_sd: float = 0.1  # of the values, and of gradients where a surrogate is shown any

    def cases(self) -> list[Case]:
        """Return a case for each surrogate and N."""
        return [{"method": name, "n_points": n} for n in self.n_points for name in METHODS]

    def run(self, case: Case, conditions: Conditions) -> dict[str, Any]:
        """Fit a surrogate again and again; return the mean curve, its spread, and errors."""
        method, n = METHODS[str(case["method"])], int(case["n_points"])
        n_refits = 1 if method.name == "gp" else self.n_refits  # nothing in it is random
        shown = self.data(0, n, conditions)
        curves = _curves(method, shown, n_refits, conditions, 0)
        others = [
            _curves(method, self.data(i, n, conditions), 1, conditions, i)
            for i in range(1, self.n_data_sets + 1)
        ]
        mean = curves.mean(axis=0)
        low, high = np.quantile(curves, [0.1, 0.9], axis=0)
        drawn = {"mean": mean, "low": low, "high": high}
        drawn |= {"points": shown.positions[:, 0], "values": shown.values}
        return {
            **{name: np.round(numbers, 6) for name, numbers in drawn.items()},
            "mean curve": curve_errors(mean[None]),
            "one fit": curve_errors(curves),
            "other data": curve_errors(np.concatenate(others)),
        }

    def data(self, number: int, n: int, conditions: Conditions) -> sk.Evaluations:
        """Return the first n points of a data set; number 0 is the one that is shown."""
        rng = conditions.generator("data", number)
        x, value_noise, gradient_noise = rng.standard_normal((n, 3)).T
        return sk.Evaluations(
            positions=x[:, None],
            values=0.5 * x**2 + self.noise_sd * value_noise,
            gradients=(x + self.noise_sd * gradient_noise)[:, None],
        )

    def report(self, rows: Sequence[Row]) -> Report:
        """Return errors of the mean curve, of one fit, and of one fit to other data."""
        lines = [
            {
                "surrogate": METHODS[row["method"]].label,
                "N": row["n_points"],
                **{
                    f"{of}, {where}": row[of][where]
                    for of in ("mean curve", "one fit", "other data")
                    for where in ("near", "far")
                },
            }
            for row in rows
        ]
        return Report(tables={"": lines})

    def draw(self, rows: Sequence[Row]) -> Any:
        """Return a column for each N: the paper's surrogates above, this project's below."""
        n_points = sorted({row["n_points"] for row in rows})
        whose = {"the paper's settings": OF_PAPER, "this project's": DEFAULTS}
        with drawing(max(2.5 * len(n_points), 4.8), 5.6) as figure:
            axes = figure.subplots(2, len(n_points), sharex=True, sharey=True, squeeze=False)
            for (settings, methods), line in zip(whose.items(), axes, strict=True):
                line[0].set_ylabel(f"potential U(x), in nats\n{settings}")
                for n, ax in zip(n_points, line, strict=True):
                    here = [row for row in rows if row["n_points"] == n]
                    names = [method.name for method in methods]
                    _panel(ax, [row for row in here if row["method"] in names])
                    shown = here[0]["points"], here[0]["values"]
                    ax.plot(*shown, linestyle="none", marker=".", color=GREY, label="observations")
            for n, above, below in zip(n_points, *axes, strict=True):
                above.set_title(f"N = {n}")
                below.set_xlabel("x")
            axes[0, 0].set(xlim=(GRID[0], GRID[-1]), ylim=(-2.0, 9.0))
            common_legend(figure, axes.flat, 3)
        return figure


def _curves(
    method: Method, data: sk.Evaluations, n_fits: int, conditions: Conditions, number: int
) -> FloatArray:
    """Return curves on the grid, shape (n_fits, grid), of fits with different nodes."""

    def fit(method: Method, i: int) -> Any:
        rng = conditions.generator("fit", method.name, len(data), number, i)
        return method.train(data, rng).potential

    if method.name == "rbf":  # as the authors draw the widths of nodes: l^2 of FITC
        scale = float(fit(METHODS["fitc"], 0).hyperparameters.length_scales) ** 2
        method = attrs.evolve(method, settings={**method.settings, "width_scale": scale})
    return np.array([fit(method, i).value(GRID[:, None]) for i in range(n_fits)])


def curve_errors(curves: FloatArray) -> dict[str, float]:
    """Return the median over curves of the errors near and far, in nats; shape (curves, grid)."""
    error = curves - 0.5 * GRID**2
    density = np.exp(-0.5 * GRID**2)
    density /= density.sum()
    level = error @ density
    inside = np.sqrt(np.square(error - level[:, None]) @ density)
    far = np.abs(GRID) >= 2.0
    outside = np.sqrt(np.square(error[:, far] - level[:, None]).mean(axis=1))
    return {"near": float(np.median(inside)), "far": float(np.median(outside))}


def _panel(ax: Any, rows: Sequence[Row]) -> None:
    ax.plot(GRID, 0.5 * GRID**2, color=BLACK, linewidth=2.6, alpha=0.35, label="truth, x²/2")
    for i, row in enumerate(rows):
        look = LOOKS[row["method"]]
        between = array([row["low"], row["high"]])
        ax.fill_between(GRID, *between, color=look["color"], alpha=0.13, linewidth=0)
        label = METHODS[row["method"]].label
        ax.plot(GRID, row["mean"], **look, markevery=(i, 5), label=label)
