"""Figure 3, section 3.4: surrogates of a Gaussian in 32 dimensions, from more and more points.

Surrogates are trained on N independent draws from the target, at which U is seen with noise, and
nothing is explored; smaller data sets are the beginnings of larger ones. Then HMC runs on each,
with paths of 30 steps of 0.108, unit masses, from 0, in one chain; the exact U without noise
decides every acceptance.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import attrs
import numpy as np

import surrokit as sk
from surrokit.potentials import Potential
from surrokit.types import FloatArray
from surrokit_paper.chains import (
    DEFAULTS,
    Clock,
    Row,
    array,
    evaluated,
    generator,
    groups,
    hmc,
    median,
    processes,
    quantiles,
    train,
)
from surrokit_paper.pictures import (
    LOOKS,
    NAMES,
    common_legend,
    drawing,
    error_bars,
    line_of,
    ticks_at,
)

TITLE = "Figure 3: training time, acceptance and efficiency on a Gaussian of 32 dimensions"

FULL: dict[str, Any] = {
    "n_points": (300, 600, 900, 1500, 2100, 3000),  # N
    "repeats": 10,  # each with data of its own
    "burn_in": 400,  # iterations before
    "draws": 1600,  # those that are kept
    "noise_sd": 0.1,  # of values, and of each number of a gradient where any are shown
}
QUICK = {"n_points": (150, 300, 600), "repeats": 1, "burn_in": 50, "draws": 200}

DIM = 32
SIZE = 1000
"""Nodes of the networks, and inducing points of FITC, in the paper."""

METHODS: dict[str, dict[str, Any]] = {
    **processes(SIZE),
    "additive": {"surrogate": "additive-paper", "n_nodes": SIZE},
    # rbf-paper but for its centres, which are N(0, I): here they are training points. The authors
    # draw them from N(0, Sigma), and then spread them by Sigma once more
    "rbf": {
        "surrogate": "rbf",
        "n_nodes": SIZE,
        "draws": "data",
        "widths": "chi-square",
        "width_scale": 1.0,
        "whiten": False,
        "trend": "constant",
        "level": "minimum",
        "train_on": "values",
        "ridge": 1e-6,
        "tail": "full",
        "hold_out": 0.0,
    },
    **DEFAULTS,
}
"""The four of the paper, then this project's own settings."""

QUANTITIES = {
    "training_seconds": "training, s",
    "solve_seconds": "solving, s",
    "acceptance": "acceptance",
    "mean_ess_per_second": "mean ESS/s",
    "min_ess_per_second": "min ESS/s",
}
"""Numbers of a result over whose repeats medians are taken, and the columns that show them."""


def cases(sizes: SimpleNamespace) -> list[Row]:
    """Return a case for each repeat, N and surrogate, and one for HMC (N = 0) in each."""
    pairs = [("hmc", 0), *((method, n) for n in sizes.n_points for method in METHODS)]
    return [
        {"method": method, "n_points": n, "repeat": repeat}
        for repeat in range(1, sizes.repeats + 1)
        for method, n in pairs
    ]


def run(case: Row, sizes: SimpleNamespace) -> Row:
    """Train a surrogate, and run HMC on it."""
    target, (method, n, repeat) = sk.make("potential", "gaussian-32"), case.values()
    rng, found, surrogate = generator(sizes.seed, "row", method, n, repeat), Row(), None
    if method != "hmc":
        learner = dict(METHODS[method])
        data = noisy_evaluations(target, n, sizes.noise_sd, generator(sizes.seed, "data", repeat))
        if method == "fitc":
            # drawn among the points that are left when some are held out to judge the fit
            learner["n_inducing"] = min(SIZE, int(0.9 * n))
        surrogate, found["training_seconds"] = train(data, rng, **learner)
        if method in ("gp", "fitc"):  # what the paper times: hyperparameters are known
            learner["hyperparameters"] = attrs.asdict(surrogate.hyperparameters)
            found["solve_seconds"] = train(data, rng, **learner)[1]
    clock = Clock()
    run = hmc(
        target,
        # as in the authors' code; every path has so many steps
        {"step_size": 0.108, "n_steps": 30, "randomize": False},
        np.zeros(DIM),
        rng,
        surrogate=surrogate,
        warmup=sizes.burn_in,
        draws=sizes.draws,
        clock=clock,
    )
    ess = np.nan_to_num(run.ess("paper"))  # a chain that never moved has no effective draw
    return found | {
        "acceptance": float(run.acceptance[0]),
        "mean_ess_per_second": ess.mean() / clock.sampling,
        "min_ess_per_second": ess.min() / clock.sampling,
    }


def noisy_evaluations(
    target: Potential, n: int, noise_sd: float, rng: np.random.Generator
) -> sk.Evaluations:
    """Return U and its gradient at n draws from the target, with noise in each number."""
    for_positions, for_values, for_gradients = rng.spawn(3)
    # the symmetric square root of the covariance: sds are 1 along (1, ..., 1) and 0.1 across it
    root = 0.1 * np.eye(DIM) + np.full((DIM, DIM), 0.9 / DIM)
    exact = evaluated(target, for_positions.standard_normal((n, DIM)) @ root)
    assert exact.gradients is not None
    return attrs.evolve(
        exact,
        values=exact.values + noise_sd * for_values.standard_normal(n),
        gradients=exact.gradients + noise_sd * for_gradients.standard_normal((n, DIM)),
    )


def report(rows: Sequence[Row], _: SimpleNamespace) -> tuple[dict[str, Any], list[Any]]:
    """Return medians, powers of growth, and the paper's one number."""
    lines = [
        {
            "surrogate": NAMES[method],
            "N": n or None,
            "repeats": len(runs),
            **{column: median(runs, name) for name, column in QUANTITIES.items()},
            "power of N": growth(of_method),
        }
        for (method,), of_method in groups(rows, "method").items()
        for (n,), runs in groups(of_method, "n_points").items()
    ]
    exact = median([row for row in rows if row["method"] == "hmc"], "acceptance")
    return {"": lines}, [("acceptance of HMC at this step size", "around 0.7", exact)]


def growth(rows: Sequence[Row]) -> float | None:
    """Return the power of N with which the training time of a surrogate grows.

    Over the larger half of all N, where fixed costs weigh less: the slope of a line through both
    logarithms of medians. None with fewer than two different N.
    """
    known = {n: median(runs, "training_seconds") for (n,), runs in groups(rows, "n_points").items()}
    pairs = [(n, seconds) for n, seconds in sorted(known.items()) if seconds]
    upper = pairs[len(pairs) // 2 :]
    if len(upper) < 2:
        return None
    x, y = np.log(array(upper)).T
    return float(np.polyfit(x, y, 1)[0])


def draw(rows: Sequence[Row], _: SimpleNamespace) -> Any:
    """Return three panels over N: training time, acceptance, efficiency."""
    shown = {
        "training_seconds": "training time, in processor seconds",
        "acceptance": "acceptance rate",
        "mean_ess_per_second": "mean ESS a processor second",
    }
    with drawing(9.0, 4.2) as figure:
        axes = figure.subplots(1, 3)
        for ax, (quantity, label) in zip(axes, shown.items(), strict=True):
            for (method,), runs in groups(rows, "method").items():
                _curve(ax, runs, quantity, LOOKS[method])
                if quantity == "training_seconds":
                    known = {"label": f"{NAMES[method]}, hyperparameters given", "linestyle": ":"}
                    _curve(ax, runs, "solve_seconds", {**LOOKS[method], **known, "marker": ""})
            ax.set(xscale="log", xlabel="training points N", ylabel=label)
            ticks_at(ax, sorted({row["n_points"] for row in rows if row["n_points"]}))
            ax.tick_params(axis="x", rotation=45)
        axes[0].set_yscale("log", nonpositive="mask")
        axes[1].set_ylim(-0.02, 1.0)
        axes[2].set_yscale("log", nonpositive="mask")
        axes[0].set_title("hyperparameters included")
        axes[2].set_title("of kept draws, without training")
        common_legend(figure, axes)
    return figure


def _curve(ax: Any, rows: Sequence[Row], quantity: str, look: dict[str, Any]) -> None:
    spreads = {n: quantiles(runs, quantity) for (n,), runs in groups(rows, "n_points").items()}
    found: dict[int, FloatArray] = {n: array(each) for n, each in sorted(spreads.items()) if each}
    if 0 in found:
        ax.axhline(found[0][1], label=look["label"], **line_of("hmc"))
    elif found:
        error_bars(ax, list(found), list(found.values()), look)
