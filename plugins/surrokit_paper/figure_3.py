"""Figure 3: surrogates of a Gaussian in 32 dimensions, trained on more and more points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import attrs
import numpy as np
import numpy.typing as npt

import surrokit as sk
from surrokit.arguments import not_negative_integer, positive, positive_integer
from surrokit.potentials import Potential
from surrokit.surrogate.quality import fit_quality
from surrokit.types import FloatArray
from surrokit_paper.chains import SamplingTime, hmc, quantiles
from surrokit_paper.harness import (
    Conditions,
    Experiment,
    Finished,
    Report,
    Row,
    groups,
    sizes_field,
)
from surrokit_paper.methods import DEFAULTS, EXACT, HMC, Method, evaluated, processes, train
from surrokit_paper.pictures import LOOKS, common_legend, drawing, error_bars, line_of, ticks_at

DIM = 32
LONG, SHORT = 1.0, 0.1
"""Standard deviations of the target along (1, ..., 1) and across it."""

SIZE = 1000
"""Nodes of the networks, and inducing points of FITC, in the paper."""

RADIAL: Mapping[str, Any] = {
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
}
"""``rbf-paper`` but for its centres, which are N(0, I): here they are training points. The authors
draw them from N(0, Sigma), and then spread them by Sigma once more."""

METHODS = (
    *processes(SIZE),
    Method("additive", "additive nodes", "additive-paper", {"n_nodes": SIZE}),
    Method("rbf", "radial nodes", "rbf", {"n_nodes": SIZE, **RADIAL}),
    *DEFAULTS,
)
"""The four of the paper, then this project's own settings."""

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

NOTES = (
    "training seconds include the optimisation of hyperparameters; the paper's do not. Solving is "
    "what is left of it once they are known.",
    "seconds are those of the processor, all threads together.",
    "effective draws are the mean over the 32 parameters, as the paper has them, by the estimator "
    "of its section 5; seconds are those of the kept draws alone.",
    "the exact potential, without noise, decides every acceptance.",
)

_GIVEN = ", hyperparameters given"


@attrs.frozen(kw_only=True)
class Figure3(Experiment):
    """Section 3.4 and figure 3 of Zhang, Shahbaba and Zhao (2017).

    Surrogates are trained on N independent draws from the target, at which U is seen with noise
    N(0, noise_sd^2), and nothing is explored. Then HMC runs on each, with paths of 30 steps of
    0.108, unit masses, from 0, in one chain; the exact U without noise decides every acceptance.

    Parameters
    ----------
    n_points
        N.
    repeats
        Times that everything is done, each with data of its own; smaller data sets are the
        beginnings of larger ones.
    burn_in, draws
        Iterations, and those of them that are kept.
    noise_sd
        Of the values, and of each number of a gradient where a surrogate is shown any.
    """

    name = "figure-3"
    title = "Figure 3: training time, acceptance and efficiency on a Gaussian of 32 dimensions"
    quick: ClassVar = {"n_points": (150, 300, 600), "repeats": 1, "burn_in": 50, "draws": 200}

    n_points: tuple[int, ...] = sizes_field(300, 600, 900, 1500, 2100, 3000)
    repeats: int = attrs.field(default=10, validator=positive_integer)
    burn_in: int = attrs.field(default=400, validator=not_negative_integer)
    draws: int = attrs.field(default=1600, validator=positive_integer)
    noise_sd: float = attrs.field(default=0.1, validator=positive)

    def rows(self) -> list[Row]:
        """Return a row for each repeat, N and surrogate, and one for HMC in each repeat."""
        shared = self.settings_without("n_points", "repeats")
        pairs = [(EXACT, 0), *((_at(each, n), n) for n in self.n_points for each in METHODS)]
        return [
            Row(
                f"{method.name}/{n or 'exact'}/{repeat}",
                {"n_points": n, "repeat": repeat, **method.facts(), **shared},
            )
            for repeat in range(1, self.repeats + 1)
            for method, n in pairs
        ]

    def run(self, row: Row, conditions: Conditions) -> dict[str, Any]:
        """Train a surrogate, and run HMC on it."""
        target = sk.make("potential", "gaussian-32")
        method, n, repeat = (row.settings[key] for key in ("method", "n_points", "repeat"))
        rng = conditions.generator("row", method, n, repeat)
        if method == HMC:
            return self._sample(target, None, rng)
        data = noisy_evaluations(target, n, self.noise_sd, conditions.generator("data", repeat))
        surrogate, settings = row.settings["surrogate"], row.settings["surrogate_settings"]
        fit = train(surrogate, settings, data, rng, row.settings["gradients"])
        # at so many fresh draws from the target the error of a surrogate is measured
        fresh = exact_evaluations(target, 1000, conditions.generator("held out", repeat))
        quality = fit_quality(fit.potential, fresh, square_root())
        assert quality is not None
        solve_seconds = None
        if method in ("gp", "fitc"):
            process: Any = fit.potential
            known = {**settings, "hyperparameters": attrs.asdict(process.hyperparameters)}
            solve_seconds = train(surrogate, known, data, rng, gradients=False).seconds
        return {
            "training_seconds": fit.seconds,
            "training_wall_seconds": fit.wall_seconds,
            "solve_seconds": solve_seconds,
            "error": float(np.sqrt(quality.variance)),
            "gradient_error": quality.gradient_error,
            **self._sample(target, fit.potential, rng),
        }

    def _sample(
        self, target: Potential, surrogate: Potential | None, rng: np.random.Generator
    ) -> dict[str, Any]:
        """Return acceptance, effective draws and seconds of one chain."""
        timed = SamplingTime()
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
            observers=[timed],
        )
        # a chain that never moved has no effective draw
        ess = np.nan_to_num(run.ess("paper"))
        return {
            "acceptance": float(run.acceptance[0]),
            "ess": {"min": ess.min(), "mean": ess.mean(), "max": ess.max()},
            "sampling_seconds": timed.seconds,
            "sampling_wall_seconds": run.seconds["sampling"],
            "mean_ess_per_second": ess.mean() / timed.seconds,
            "min_ess_per_second": ess.min() / timed.seconds,
        }

    def report(self, finished: Sequence[Finished]) -> Report:
        """Return medians and intervals, powers of growth, and the paper's one number."""
        found = over_repeats(finished)
        powers = growth(found, "training_seconds")
        order = [group["method"] for group in found]
        lines = [
            {
                "surrogate": group["label"],
                "N": group["n_points"] or None,
                "repeats": group["repeats"],
                **{column: _median(group, name) for name, column in QUANTITIES.items()},
                "power of N": powers.get(group["method"], {}).get("upper_half"),
            }
            for group in sorted(found, key=lambda group: order.index(group["method"]))
        ]
        exact = [_median(group, "acceptance") for group in found if not group["n_points"]] or [None]
        return Report(
            tables={"": lines},
            printed=[("acceptance of HMC at this step size", "around 0.7", exact[0])],
            figures={
                "over_repeats": found,
                "power_of_training_time": powers,
                "power_of_solving_time": growth(found, "solve_seconds"),
            },
            notes=NOTES,
        )

    def draw(self, finished: Sequence[Finished]) -> Any:
        """Return three panels over N: training time, acceptance, efficiency."""
        found = sorted(over_repeats(finished), key=lambda group: group["n_points"])
        with drawing(9.0, 4.2) as figure:
            axes = figure.subplots(1, 3)
            shown = {
                "training_seconds": "training time, in processor seconds",
                "acceptance": "acceptance rate",
                "mean_ess_per_second": "mean ESS a processor second",
            }
            for ax, (quantity, label) in zip(axes, shown.items(), strict=True):
                for method in [*METHODS, EXACT]:
                    mine = [g for g in found if g["method"] == method.name and quantity in g]
                    if mine:
                        _curve(ax, mine, quantity)
                ax.set(xscale="log", xlabel="training points N", ylabel=label)
                ticks_at(ax, sorted({g["n_points"] for g in found if g["n_points"]}), rotation=45)
            axes[0].set_yscale("log", nonpositive="mask")
            axes[1].set_ylim(-0.02, 1.0)
            axes[2].set_yscale("log", nonpositive="mask")
            axes[0].set_title("hyperparameters included")
            axes[2].set_title("of kept draws, without training")
            common_legend(figure, axes, 3, _GIVEN)
        return figure


def _at(method: Method, n: int) -> Method:
    """Return a method as it is with n points: no more inducing points than can be drawn."""
    if "n_inducing" not in method.settings:
        return method
    # they are drawn among the points that are left when some are held out to judge the fit
    n_inducing = min(method.settings["n_inducing"], int(0.9 * n))
    return attrs.evolve(method, settings={**method.settings, "n_inducing": n_inducing})


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


def over_repeats(finished: Sequence[Finished]) -> list[dict[str, Any]]:
    """Return, for each surrogate and N (0 for HMC), quantiles over repeats of what is known."""
    found = []
    for (method, n), rows in groups(finished, "method", "n_points").items():
        group = {
            "method": method,
            "label": rows[0].settings["label"],
            "n_points": n,
            "repeats": len(rows),
        }
        for name in QUANTITIES:
            numbers = [row.result[name] for row in rows if row.result.get(name) is not None]
            if numbers:
                group[name] = quantiles(numbers)
        found.append(group)
    return found


def _median(group: Mapping[str, Any], name: str) -> float | None:
    return group[name]["median"] if name in group else None


def growth(found: Sequence[Mapping[str, Any]], quantity: str) -> dict[str, dict[str, float | None]]:
    """Return the power of N with which a time of each surrogate grows.

    ``all`` is over every N, ``upper_half`` over the larger ones, where fixed costs weigh less.
    """
    powers = {}
    for method in dict.fromkeys(group["method"] for group in found):
        pairs = sorted(
            (group["n_points"], group[quantity]["median"])
            for group in found
            if group["method"] == method and quantity in group
        )
        if pairs:
            powers[method] = {
                "all": growth_power(*zip(*pairs, strict=True)),
                "upper_half": growth_power(*zip(*pairs[len(pairs) // 2 :], strict=True)),
            }
    return powers


def growth_power(sizes: npt.ArrayLike, costs: npt.ArrayLike) -> float | None:
    """Return p where cost grows as size^p: the slope of a line through both logarithms.

    Costs of zero or NaN are left out; None with fewer than two different sizes.
    """
    x, y = np.asarray(sizes, dtype=np.float64), np.asarray(costs, dtype=np.float64)
    known = (y > 0) & np.isfinite(y)
    x, y = np.log(x[known]), np.log(y[known])
    if np.unique(x).size < 2:
        return None
    x = x - x.mean()
    return float(x @ y / (x @ x))


def _curve(ax: Any, found: Sequence[Mapping[str, Any]], quantity: str) -> None:
    """Draw a quantity over N; beside training what the paper timed: hyperparameters are known."""
    method, label = found[0]["method"], found[0]["label"]
    n_points, over_runs = [g["n_points"] for g in found], [g[quantity] for g in found]
    if not n_points[0]:
        ax.axhline(over_runs[0]["median"], label=label, **line_of(method))
        return
    error_bars(ax, n_points, over_runs, label=label, **LOOKS[method])
    known = [group for group in found if "solve_seconds" in group]
    if known and quantity == "training_seconds":
        ax.plot(
            [group["n_points"] for group in known],
            [group["solve_seconds"]["median"] for group in known],
            color=LOOKS[method]["color"],
            linewidth=0.8,
            linestyle=":",
            label=f"{label}{_GIVEN}",
        )
