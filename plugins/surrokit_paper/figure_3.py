"""Figure 3: surrogates of a Gaussian in 32 dimensions, trained on more and more points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import attrs
import numpy as np

import surrokit as sk
from surrokit.potentials import Potential
from surrokit.surrogate.quality import fit_quality
from surrokit.types import FloatArray
from surrokit_paper.chains import Clock, hmc
from surrokit_paper.harness import (
    Case,
    Conditions,
    Figure,
    Report,
    Row,
    array,
    groups,
    median,
    over_repeats,
)
from surrokit_paper.methods import DEFAULTS, HMC, Method, by_name, evaluated, processes
from surrokit_paper.pictures import LOOKS, common_legend, drawing, error_bars, line_of, ticks_at

DIM = 32
LONG, SHORT = 1.0, 0.1
"""Standard deviations of the target along (1, ..., 1) and across it."""

SIZE = 1000
"""Nodes of the networks, and inducing points of FITC, in the paper."""

METHODS = by_name(
    *processes(SIZE),
    Method("additive", "additive nodes", "additive-paper", {"n_nodes": SIZE}),
    # rbf-paper but for its centres, which are N(0, I): here they are training points. The authors
    # draw them from N(0, Sigma), and then spread them by Sigma once more
    Method(
        "rbf",
        "radial nodes",
        "rbf",
        {
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
    ),
    *DEFAULTS,
    Method(HMC, "HMC, exact", "none"),
)
"""The four of the paper, then this project's own settings, then exact HMC."""

QUANTITIES = {
    "training_seconds": "training, s",
    "solve_seconds": "solving, s",
    "error": "error, nats",
    "gradient_error": "gradient error",
    "acceptance": "acceptance",
    "mean_ess_per_second": "mean ESS/s",
    "min_ess_per_second": "min ESS/s",
}
"""Numbers of a result over whose repeats medians are taken, and the columns that show them."""

_GIVEN = ", hyperparameters given"


@attrs.frozen(kw_only=True)
class Figure3(Figure):
    """Section 3.4 and figure 3 of Zhang, Shahbaba and Zhao (2017).

    Surrogates are trained on N independent draws from the target, at which U is seen with noise,
    and nothing is explored; smaller data sets are the beginnings of larger ones. Then HMC runs on
    each, with paths of 30 steps of 0.108, unit masses, from 0, in one chain; the exact U without
    noise decides every acceptance.
    """

    name = "figure-3"
    title = "Figure 3: training time, acceptance and efficiency on a Gaussian of 32 dimensions"
    quick: ClassVar = {"n_points": (150, 300, 600), "repeats": 1, "burn_in": 50, "draws": 200}
    grid = ("n_points", "repeats")

    n_points: tuple[int, ...] = (300, 600, 900, 1500, 2100, 3000)  # N
    repeats: int = 10  # each with data of its own
    burn_in: int = 400  # iterations before
    draws: int = 1600  # those that are kept
    noise_sd: float = 0.1  # of values, and of each number of a gradient where any are shown

    def cases(self) -> list[Case]:
        """Return a case for each repeat, N and surrogate, and one for HMC (N = 0) in each."""
        pairs = [(HMC, 0), *((m, n) for n in self.n_points for m in METHODS if m != HMC)]
        return [
            {"method": method, "n_points": n, "repeat": repeat}
            for repeat in range(1, self.repeats + 1)
            for method, n in pairs
        ]

    def run(self, case: Case, conditions: Conditions) -> dict[str, Any]:
        """Train a surrogate, and run HMC on it."""
        target = sk.make("potential", "gaussian-32")
        method, n, repeat = METHODS[str(case["method"])], int(case["n_points"]), case["repeat"]
        rng = conditions.generator("row", method.name, n, repeat)
        if method.name == HMC:
            return self._sample(target, None, rng)
        data = noisy_evaluations(target, n, self.noise_sd, conditions.generator("data", repeat))
        if method.name == "fitc":
            # drawn among the points that are left when some are held out to judge the fit
            method = _with(method, n_inducing=min(SIZE, int(0.9 * n)))
        fit = method.train(data, rng)
        # at so many fresh draws from the target the error of a surrogate is measured
        fresh = exact_evaluations(target, 1000, conditions.generator("held out", repeat))
        quality = fit_quality(fit.potential, fresh, square_root())
        assert quality is not None
        solve_seconds = None
        if method.name in ("gp", "fitc"):
            process: Any = fit.potential
            known = _with(method, hyperparameters=attrs.asdict(process.hyperparameters))
            solve_seconds = known.train(data, rng).seconds
        return {
            "training_seconds": fit.seconds,
            "solve_seconds": solve_seconds,
            "error": float(np.sqrt(quality.variance)),
            "gradient_error": quality.gradient_error,
            **self._sample(target, fit.potential, rng),
        }

    def _sample(
        self, target: Potential, surrogate: Potential | None, rng: np.random.Generator
    ) -> dict[str, Any]:
        """Return acceptance, effective draws and seconds of one chain."""
        clock = Clock()
        run = hmc(
            target,
            # as in the authors' code; every path has so many steps
            {"step_size": 0.108, "n_steps": 30, "randomize": False},
            surrogate=surrogate,
            chains=1,
            warmup=self.burn_in,
            draws=self.draws,
            initial=np.zeros(DIM),
            seed=rng,
            clock=clock,
        )
        # a chain that never moved has no effective draw
        ess = np.nan_to_num(run.ess("paper"))
        return {
            "acceptance": float(run.acceptance[0]),
            "sampling_seconds": clock.sampling,
            "mean_ess_per_second": ess.mean() / clock.sampling,
            "min_ess_per_second": ess.min() / clock.sampling,
        }

    def report(self, rows: Sequence[Row]) -> Report:
        """Return medians, powers of growth, and the paper's one number."""
        by_case = groups(rows, "method", "n_points")
        powers = {name: growth(rows, name) for name in METHODS}
        lines = [
            {
                "surrogate": METHODS[method].label,
                "N": n or None,
                "repeats": len(runs),
                **{column: median(runs, name) for name, column in QUANTITIES.items()},
                "power of N": powers[method],
            }
            for method in METHODS
            for (name, n), runs in by_case.items()
            if name == method
        ]
        exact = by_case.get((HMC, 0), [])
        return Report(
            tables={"": lines},
            printed=[
                ("acceptance of HMC at this step size", "around 0.7", median(exact, "acceptance"))
            ],
        )

    def draw(self, rows: Sequence[Row]) -> Any:
        """Return three panels over N: training time, acceptance, efficiency."""
        sizes = sorted({row["n_points"] for row in rows if row["n_points"]})
        shown = {
            "training_seconds": "training time, in processor seconds",
            "acceptance": "acceptance rate",
            "mean_ess_per_second": "mean ESS a processor second",
        }
        with drawing(9.0, 4.2) as figure:
            axes = figure.subplots(1, 3)
            for ax, (quantity, label) in zip(axes, shown.items(), strict=True):
                for method in METHODS:
                    _curve(ax, [row for row in rows if row["method"] == method], quantity)
                ax.set(xscale="log", xlabel="training points N", ylabel=label)
                ticks_at(ax, sizes, rotation=45)
            axes[0].set_yscale("log", nonpositive="mask")
            axes[1].set_ylim(-0.02, 1.0)
            axes[2].set_yscale("log", nonpositive="mask")
            axes[0].set_title("hyperparameters included")
            axes[2].set_title("of kept draws, without training")
            common_legend(figure, axes, 3, _GIVEN)
        return figure


def _with(method: Method, **settings: Any) -> Method:
    return attrs.evolve(method, settings={**method.settings, **settings})


def square_root() -> FloatArray:
    """Return the symmetric square root of the target's covariance, shape (DIM, DIM)."""
    root: FloatArray = SHORT * np.eye(DIM) + np.full((DIM, DIM), (LONG - SHORT) / DIM)
    return root


def exact_evaluations(target: Potential, n: int, rng: np.random.Generator) -> sk.Evaluations:
    """Return the exact potential and its gradient at n independent draws from the target."""
    return evaluated(target, rng.standard_normal((n, DIM)) @ square_root())


def noisy_evaluations(
    target: Potential, n: int, noise_sd: float, rng: np.random.Generator
) -> sk.Evaluations:
    """Return :func:`exact_evaluations` with noise in each value and each number of a gradient."""
    for_positions, for_values, for_gradients = rng.spawn(3)
    exact = exact_evaluations(target, n, for_positions)
    assert exact.gradients is not None
    return attrs.evolve(
        exact,
        values=exact.values + noise_sd * for_values.standard_normal(n),
        gradients=exact.gradients + noise_sd * for_gradients.standard_normal((n, DIM)),
    )


def growth(rows: Sequence[Row], method: str) -> float | None:
    """Return the power of N with which the training time of a surrogate grows.

    Over the larger half of all N, where fixed costs weigh less: the slope of a line through both
    logarithms of medians. None with fewer than two different N.
    """
    of_method = [row for row in rows if row["method"] == method]
    known = {n: median(r, "training_seconds") for (n,), r in groups(of_method, "n_points").items()}
    pairs = [(n, seconds) for n, seconds in sorted(known.items()) if seconds]
    upper = pairs[len(pairs) // 2 :]
    if len(upper) < 2:
        return None
    x, y = np.log(array(upper)).T
    return float(np.polyfit(x, y, 1)[0])


def _curve(ax: Any, rows: Sequence[Row], quantity: str) -> None:
    """Draw a quantity over N; beside training what the paper timed: hyperparameters are known."""
    spreads = {n: over_repeats(runs, quantity) for (n,), runs in groups(rows, "n_points").items()}
    found = {n: spread for n, spread in sorted(spreads.items()) if spread}
    if not found:
        return
    method = METHODS[rows[0]["method"]]
    if 0 in found:
        ax.axhline(found[0]["median"], label=method.label, **line_of(method.name))
        return
    error_bars(ax, list(found), list(found.values()), label=method.label, **LOOKS[method.name])
    solved = {n: median(r, "solve_seconds") for (n,), r in sorted(groups(rows, "n_points").items())}
    if quantity == "training_seconds" and all(solved.values()):
        look = {"color": LOOKS[method.name]["color"], "linewidth": 0.8, "linestyle": ":"}
        ax.plot(list(solved), list(solved.values()), label=f"{method.label}{_GIVEN}", **look)
