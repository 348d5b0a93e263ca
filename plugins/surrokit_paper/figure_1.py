"""Figure 1, section 3.3: surrogates of few nodes, fitted to few noisy values of x^2 / 2.

U(x) = x^2 / 2 is seen at N draws from N(0, 1), with noise; smaller data sets are the beginnings of
larger ones. Every surrogate is refitted with other nodes, and the curves are averaged.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

import surrokit as sk
from surrokit.types import FloatArray
from surrokit_paper.chains import DEFAULTS, Row, array, generator, processes, train
from surrokit_paper.pictures import BLACK, GREY, LOOKS, NAMES, common_legend, drawing

TITLE = "Figure 1: surrogates of U(x) = x^2/2 from a few noisy values"

FULL: dict[str, Any] = {
    "n_points": (10, 20, 40),  # N, one panel each
    "n_refits": 100,  # fits to the one data set that is shown
    "n_data_sets": 100,  # others, one fit to each: what one data set shows may be chance
    "noise_sd": 0.1,  # of the values, and of gradients where a surrogate is shown any
}
QUICK = {"n_refits": 5, "n_data_sets": 5}

GRID: FloatArray = np.linspace(-4.0, 4.0, 41)
"""Where curves are kept."""

OF_PAPER: dict[str, dict[str, Any]] = {
    **processes(5),
    "additive": {"surrogate": "additive-paper", "n_nodes": 5},
    "rbf": {"surrogate": "rbf-paper", "n_nodes": 5},
}
METHODS = {**OF_PAPER, **DEFAULTS}
"""The four of the paper, with five nodes or inducing points, then this project's own settings."""


def cases(sizes: SimpleNamespace) -> list[Row]:
    """Return a case for each surrogate and N."""
    return [{"method": name, "n_points": n} for n in sizes.n_points for name in METHODS]


def run(case: Row, sizes: SimpleNamespace) -> Row:
    """Fit a surrogate again and again; return the mean curve, its spread, and errors."""
    method, n = case["method"], case["n_points"]
    n_refits = 1 if method == "gp" else sizes.n_refits  # nothing in it is random
    shown = data_set(0, n, sizes)
    curves = _curves(method, shown, n_refits, sizes.seed, 0)
    others = [
        _curves(method, data_set(i, n, sizes), 1, sizes.seed, i)
        for i in range(1, sizes.n_data_sets + 1)
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


def data_set(number: int, n: int, sizes: SimpleNamespace) -> sk.Evaluations:
    """Return the first n points of a data set; number 0 is the one that is shown."""
    rng = generator(sizes.seed, "data", number)
    x, value_noise, gradient_noise = rng.standard_normal((n, 3)).T
    return sk.Evaluations(
        positions=x[:, None],
        values=0.5 * x**2 + sizes.noise_sd * value_noise,
        gradients=(x + sizes.noise_sd * gradient_noise)[:, None],
    )


def _curves(method: str, data: sk.Evaluations, n_fits: int, seed: int, number: int) -> FloatArray:
    """Return curves on the grid, shape (n_fits, grid), of fits with different nodes."""

    def fit(method: str, i: int, **more: Any) -> Any:
        rng = generator(seed, "fit", method, len(data), number, i)
        return train(data, rng, **METHODS[method], **more)[0]

    more = {}
    if method == "rbf":  # as the authors draw the widths of nodes: l^2 of FITC
        more["width_scale"] = float(fit("fitc", 0).hyperparameters.length_scales) ** 2
    return np.array([fit(method, i, **more).value(GRID[:, None]) for i in range(n_fits)])


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


def report(rows: Sequence[Row], _: SimpleNamespace) -> tuple[dict[str, Any], list[Any]]:
    """Return errors of the mean curve, of one fit, and of one fit to other data."""
    lines = [
        {
            "surrogate": NAMES[row["method"]],
            "N": row["n_points"],
            **{
                f"{of}, {where}": row[of][where]
                for of in ("mean curve", "one fit", "other data")
                for where in ("near", "far")
            },
        }
        for row in rows
    ]
    return {"": lines}, []


def draw(rows: Sequence[Row], _: SimpleNamespace) -> Any:
    """Return a column for each N: the paper's surrogates above, this project's below."""
    n_points = sorted({row["n_points"] for row in rows})
    whose: dict[str, Any] = {"the paper's settings": OF_PAPER, "this project's": DEFAULTS}
    with drawing(max(2.5 * len(n_points), 4.8), 5.6) as figure:
        axes = figure.subplots(2, len(n_points), sharex=True, sharey=True, squeeze=False)
        for (settings, methods), line in zip(whose.items(), axes, strict=True):
            line[0].set_ylabel(f"potential U(x), in nats\n{settings}")
            for n, ax in zip(n_points, line, strict=True):
                here = [row for row in rows if row["n_points"] == n]
                _panel(ax, [row for row in here if row["method"] in methods])
                shown = here[0]["points"], here[0]["values"]
                ax.plot(*shown, linestyle="none", marker=".", color=GREY, label="observations")
        for n, above, below in zip(n_points, *axes, strict=True):
            above.set_title(f"N = {n}")
            below.set_xlabel("x")
        axes[0, 0].set(xlim=(GRID[0], GRID[-1]), ylim=(-2.0, 9.0))
        common_legend(figure, axes.flat)
    return figure


def _panel(ax: Any, rows: Sequence[Row]) -> None:
    ax.plot(GRID, 0.5 * GRID**2, color=BLACK, linewidth=2.6, alpha=0.35, label="truth, x²/2")
    for i, row in enumerate(rows):
        look = LOOKS[row["method"]]
        between = array([row["low"], row["high"]])
        ax.fill_between(GRID, *between, color=look["color"], alpha=0.13, linewidth=0)
        ax.plot(GRID, row["mean"], **look, markevery=(i, 5))
