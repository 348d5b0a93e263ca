"""Figure 1: surrogates of few nodes, fitted to few noisy values of x^2 / 2."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, ClassVar

import attrs
import numpy as np

import surrokit as sk
from surrokit.arguments import positive, positive_integer
from surrokit.errors import SurrogateFitError
from surrokit.types import FloatArray
from surrokit_paper.harness import Conditions, Experiment, Finished, Report, Row, sizes_field
from surrokit_paper.methods import DEFAULTS, Method, processes, squared_length_scale, train
from surrokit_paper.pictures import BLACK, GREY, LOOKS, common_legend, drawing

N_NODES = 5
"""Nodes of the networks, and inducing points of FITC, in the paper."""

GRID: FloatArray = np.linspace(-4.0, 4.0, 41)
"""Where curves are kept."""

_WHERE = {
    "near": "root of Var(V - U) under N(0, 1), in nats",
    "far": "root mean square of V - U, its mean under N(0, 1) taken off, where |x| >= 2, in nats",
}
_WHAT = {"error": "mean curve", "error_one_fit": "one fit", "error_other_data": "other data"}
_FROM_FITC = "squared length scale of FITC"
_GP, _FITC = processes(N_NODES)

OF_PAPER = (
    _GP,
    _FITC,
    Method("additive", "additive nodes", "additive-paper", {"n_nodes": N_NODES}),
    Method("rbf", "radial nodes", "rbf-paper", {"n_nodes": N_NODES, "width_scale": _FROM_FITC}),
)
METHODS = (*OF_PAPER, *DEFAULTS)
"""The four of the paper, then this project's own settings."""


@attrs.frozen(kw_only=True)
class Figure1(Experiment):
    """Section 3.3 and figure 1 of Zhang, Shahbaba and Zhao (2017).

    U(x) = x^2 / 2 is seen at N draws from N(0, 1), with noise N(0, noise_sd^2); smaller data sets
    are the beginnings of larger ones. Every surrogate is refitted with other nodes, and the curves
    are averaged.

    Parameters
    ----------
    n_points
        N, one panel each.
    n_refits
        Fits to the one data set that is shown.
    n_data_sets
        Other data sets, to each of which every surrogate is fitted once: what one data set shows
        may be chance.
    noise_sd
        Of the values, and of gradients where a surrogate is shown any.
    """

    name = "figure-1"
    title = "Figure 1: surrogates of U(x) = x^2/2 from a few noisy values"
    quick: ClassVar = {"n_refits": 5, "n_data_sets": 5}

    n_points: tuple[int, ...] = sizes_field(10, 20, 40)
    n_refits: int = attrs.field(default=100, validator=positive_integer)
    n_data_sets: int = attrs.field(default=100, validator=positive_integer)
    noise_sd: float = attrs.field(default=0.1, validator=positive)

    def rows(self) -> list[Row]:
        """Return a row for each surrogate and N."""
        shared = self.settings_without("n_points")
        return [
            Row(f"{method.name}/{n}", {"n_points": n, **method.facts(), **shared})
            for n in self.n_points
            for method in METHODS
        ]

    def run(self, row: Row, conditions: Conditions) -> dict[str, Any]:
        """Fit a surrogate again and again; return the mean curve, its spread, and errors."""
        (method,) = [method for method in METHODS if method.name == row.settings["method"]]
        n: int = row.settings["n_points"]
        n_refits = 1 if method is _GP else self.n_refits  # nothing in it is random
        shown = self.data(0, n, conditions)
        curves = _curves(method, shown, n_refits, conditions, 0)
        if not len(curves):
            raise SurrogateFitError(
                f"{method.label} could be fitted to none of {n_refits} draws of its nodes; use "
                "more points"
            )
        others = np.concatenate(
            [
                _curves(method, self.data(i, n, conditions), 1, conditions, i)
                for i in range(1, self.n_data_sets + 1)
            ]
        )
        mean = curves.mean(axis=0)
        low, high = np.quantile(curves, [0.1, 0.9], axis=0)
        drawn = {"mean": mean, "low": low, "high": high}
        drawn |= {"points": shown.positions[:, 0], "values": shown.values}
        return {
            **{name: np.round(numbers, 6) for name, numbers in drawn.items()},
            "failures": n_refits - len(curves) + self.n_data_sets - len(others),
            "error": curve_errors(mean[None]),
            "error_one_fit": curve_errors(curves),
            "error_other_data": curve_errors(others),
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

    def report(self, finished: Sequence[Finished]) -> Report:
        """Return errors of the mean curve, of one fit, and of one fit to other data."""
        lines = [
            {
                "surrogate": row.settings["label"],
                "N": row.settings["n_points"],
                **{f"{_WHAT[a]}, {b}": row.result[a][b] for a in _WHAT for b in _WHERE},
            }
            for row in finished
        ]
        return Report(
            tables={"": lines},
            figures={"grid": GRID, "where": _WHERE},
            notes=(
                "near: root of Var(V - U) under N(0, 1); far: root mean square of V - U for "
                "2 <= |x| <= 4; both in nats. Of single fits the median is shown.",
                "other data: one fit to each of the other data sets, since a single one may "
                "mislead.",
            ),
        )

    def draw(self, finished: Sequence[Finished]) -> Any:
        """Return a column for each N: the paper's surrogates above, this project's below."""
        n_points = sorted({row.settings["n_points"] for row in finished})
        with drawing(max(2.5 * len(n_points), 4.8), 5.6) as figure:
            axes = figure.subplots(2, len(n_points), sharex=True, sharey=True, squeeze=False)
            for methods, line in zip((OF_PAPER, DEFAULTS), axes, strict=True):
                for n, ax in zip(n_points, line, strict=True):
                    rows = [row for row in finished if row.settings["n_points"] == n]
                    names = [method.name for method in methods]
                    _panel(ax, [row for row in rows if row.settings["method"] in names])
                    shown = rows[0].result["points"], rows[0].result["values"]
                    ax.plot(*shown, linestyle="none", marker=".", color=GREY, label="observations")
            for n, ax in zip(n_points, axes[0], strict=True):
                ax.set_title(f"N = {n}")
            for ax in axes[-1]:
                ax.set_xlabel("x")
            whose = "the paper's settings", "this project's"
            axes[0, 0].set(xlim=(GRID[0], GRID[-1]), ylim=(-2.0, 9.0))
            for ax, settings in zip(axes[:, 0], whose, strict=True):
                ax.set_ylabel(f"potential U(x), in nats\n{settings}")
            common_legend(figure, axes.flat, 3)
        return figure


def _curves(
    method: Method, data: sk.Evaluations, n_fits: int, conditions: Conditions, number: int
) -> FloatArray:
    """Return curves on the grid, shape (at most n_fits, grid), of fits with different nodes."""

    def fit(method: Method, i: int, settings: dict[str, Any]) -> Any:
        rng = conditions.generator("fit", method.name, len(data), number, i)
        return train(method.surrogate, settings, data, rng, method.gradients).potential

    settings = dict(method.settings)
    if settings.get("width_scale") == _FROM_FITC:  # as the authors draw the widths of nodes
        settings["width_scale"] = squared_length_scale(fit(_FITC, 0, dict(_FITC.settings)))
    curves = []
    for i in range(n_fits):
        with contextlib.suppress(SurrogateFitError):
            curves.append(fit(method, i, settings).value(GRID[:, None]))
    return np.reshape(curves, (-1, GRID.size))


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


def _panel(ax: Any, rows: Sequence[Finished]) -> None:
    ax.plot(GRID, 0.5 * GRID**2, color=BLACK, linewidth=2.6, alpha=0.35, label="truth, x²/2")
    for i, row in enumerate(rows):
        look, curve = LOOKS[row.settings["method"]], row.result
        between = np.array([curve["low"], curve["high"]], dtype=np.float64)
        ax.fill_between(GRID, *between, color=look["color"], alpha=0.13, linewidth=0)
        ax.plot(GRID, curve["mean"], **look, markevery=(i, 5), label=row.settings["label"])
