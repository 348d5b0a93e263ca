"""Figure 2: forces and paths of HMC and of a surrogate on a banana-shaped posterior."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import attrs
import numpy as np

import surrokit as sk
from surrokit.arguments import not_negative_integer, positive, positive_integer
from surrokit.interfaces import Hamiltonian, Phase
from surrokit.potentials import Potential, with_gradient
from surrokit.types import FloatArray
from surrokit_paper.chains import hmc, quantiles
from surrokit_paper.harness import Conditions, Experiment, Finished, Report, Row, groups
from surrokit_paper.methods import EXACT, HMC, Method, evaluated, train
from surrokit_paper.pictures import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    PURPLE,
    VERMILION,
    common_legend,
    drawing,
)

GRID = (np.linspace(-3.25, 2.25, 12), np.linspace(-2.1, 2.1, 13))
"""Where forces are kept: coordinates of both parameters."""

PRINTED = {HMC: ("HMC", 0.97), "paper": ("surrogate", 0.88)}
"""Overall acceptance, as the caption of figure 2 has it."""

NOTES = (
    "acceptance is the mean of the exact acceptance probabilities of a chain, and in the table "
    "its mean over repeats, with the standard error of that mean.",
    "the paper gives neither step size nor number of steps; ours are set for its acceptance of "
    "HMC. Its surrogate's acceptance is then measured, in many chains where the paper has one.",
    "the surrogates of one repeat see the same training points: states of exact HMC, as in the "
    "authors' code, repetitions included. The paper's text says accepted proposals.",
    "effective draws are bulk effective draws of the parameter that has fewest, for each draw.",
)

_TITLES = {
    HMC: "HMC, exact",
    "paper": "HMC on the paper's network",
    "defaults": "HMC on surrokit's defaults",
}


@attrs.frozen(kw_only=True)
class Figure2(Experiment):
    """Section 3.4 and figure 2 of Zhang, Shahbaba and Zhao (2017).

    A chain of exact HMC from 0 gives the training points: its states after a burn-in,
    repetitions included, as in the authors' code. Surrogates are fitted to them once, and HMC goes
    on from there, exactly and on each surrogate, with the same random numbers. Every path has the
    same number of steps, masses are one, and the exact potential decides every acceptance.

    Parameters
    ----------
    repeats
        Times that everything is done, each with a chain and nodes of its own.
    burn_in
        Iterations that nothing is learnt from.
    n_states
        Iterations after them, whose states are learnt from.
    draws
        Iterations over which acceptance is averaged.
    n_nodes, ridge
        Of the paper's network.
    step_size, n_steps
        Of every path. The paper says neither; these give HMC the paper's acceptance of 0.97.
    """

    name = "figure-2"
    title = "Figure 2: forces, paths and acceptance on a banana-shaped posterior"
    quick: ClassVar = {"repeats": 4}

    repeats: int = attrs.field(default=30, validator=positive_integer)
    burn_in: int = attrs.field(default=100, validator=not_negative_integer)
    n_states: int = attrs.field(default=400, validator=positive_integer)
    draws: int = attrs.field(default=500, validator=positive_integer)
    n_nodes: int = attrs.field(default=40, validator=positive_integer)
    ridge: float = attrs.field(default=1e-6, validator=positive)
    step_size: float = attrs.field(default=0.065, validator=positive)
    n_steps: int = attrs.field(default=25, validator=positive_integer)

    def rows(self) -> list[Row]:
        """Return a row for each repeat and method; those of the first repeat are drawn too."""
        network = {"n_nodes": self.n_nodes, "ridge": self.ridge}
        methods = (
            EXACT,
            Method("paper", "the paper's network, values alone", "additive-paper", network),
            Method("defaults", "surrokit's defaults, gradients too", "additive", gradients=True),
        )
        shared = self.settings_without("repeats")
        return [
            Row(
                f"{method.name}/{repeat}",
                {"repeat": repeat, "drawn": repeat == 1, **shared, **method.facts()},
            )
            for repeat in range(1, self.repeats + 1)
            for method in methods
        ]

    def run(self, row: Row, conditions: Conditions) -> dict[str, Any]:
        """Run a chain for training points, fit a surrogate, and go on with it."""
        target, repeat = sk.make("potential", "banana"), row.settings["repeat"]
        before = conditions.generator("training", repeat)
        start, lengths = np.zeros(target.dim), {"warmup": self.burn_in, "draws": self.n_states}
        states = self._chain(target, None, start, before, **lengths).draws[0]
        surrogate = None
        if row.settings["method"] != HMC:
            rng = conditions.generator("row", row.settings["method"], repeat)
            name, settings, gradients = (
                row.settings[key] for key in ("surrogate", "surrogate_settings", "gradients")
            )
            shown = evaluated(target, states)
            surrogate = train(name, settings, shown, rng, gradients).potential
        after = conditions.generator("chain", repeat)
        run = self._chain(target, surrogate, states[-1], after, warmup=0, draws=self.draws)
        found: dict[str, Any] = {
            "acceptance": float(run.kept.acceptance.mean()),
            "accepted": float(run.acceptance[0]),
            # a chain that never moved has no effective draw
            "ess": float(np.nan_to_num(run.ess("bulk")).min()),
        }
        if row.settings["drawn"]:
            followed, rng = surrogate or target, conditions.generator("paths", repeat)
            points = np.stack(np.meshgrid(*GRID), axis=-1).reshape(-1, target.dim)
            momenta = rng.standard_normal((3, target.dim))  # of paths from one start
            paths, growth = leapfrog_paths(
                target, followed, states[-1], momenta, self.step_size, self.n_steps
            )
            found["drawn"] = {
                "points": points,
                "forces": -with_gradient(followed).value_and_gradient(points)[1],
                "states": states,
                "paths": paths,
                "acceptance": np.exp(-np.maximum(growth, 0.0)),
            }
        return found

    def _chain(
        self,
        target: Potential,
        surrogate: Potential | None,
        start: FloatArray,
        rng: np.random.Generator,
        **lengths: int,
    ) -> sk.Run:
        paths = {"step_size": self.step_size, "n_steps": self.n_steps, "randomize": False}
        given: dict[str, Any] = {"surrogate": surrogate, "chains": 1, **lengths}
        return hmc(target, paths, initial=start, seed=rng, **given)

    def report(self, finished: Sequence[Finished]) -> Report:
        """Return acceptance over repeats, the paths that are drawn, and the paper's two numbers."""
        found = over_repeats(finished)
        columns = {
            "method": "label",
            "repeats": "repeats",
            "mean": "mean",
            "standard error": "standard_error",
            "10% of repeats below": "low",
            "median": "median",
            "10% above": "high",
            "min ESS a draw": "ess_per_draw",
        }
        acceptance = [{title: group[of] for title, of in columns.items()} for group in found]
        means = {group["method"]: group["mean"] for group in found}
        # a line for each path: where it ends, seen from the end of HMC's
        proposals, rows = [], _drawn(finished)
        for row in rows.values():
            for i, probability in enumerate(row["acceptance"].tolist()):
                apart = None
                if HMC in rows:
                    apart = float(np.linalg.norm(row["paths"][i, -1] - rows[HMC]["paths"][i, -1]))
                line = {"method": row["label"], "path": i + 1, "acceptance": probability}
                proposals.append({**line, "distance from HMC's": apart})
        return Report(
            tables={"acceptance": acceptance, "proposals that are drawn": proposals},
            printed=[
                (f"overall acceptance, {what}", number, means[method])
                for method, (what, number) in PRINTED.items()
                if method in means
            ],
            figures={"over_repeats": found},
            notes=NOTES,
        )

    def draw(self, finished: Sequence[Finished]) -> Any:
        """Return four panels: forces, then paths of HMC and on both surrogates."""
        rows = _drawn(finished)
        means = {group["method"]: group["mean"] for group in over_repeats(finished)}
        with drawing(7.4, 6.4) as figure:
            axes = figure.subplots(2, 2, sharex=True, sharey=True)
            for ax in axes.flat:
                _contours(ax, sk.make("potential", "banana"))
            _forces(axes[0, 0], rows)
            for ax, (method, title) in zip(axes.flat[1:], _TITLES.items(), strict=True):
                mean = f", acceptance {means[method]:.2f}" if method in means else ""
                ax.set_title(title + mean)
                if method in rows:
                    _paths(ax, rows[method], training=method == "paper")
            for ax in axes[-1]:
                ax.set_xlabel("θ₁ (no unit)")
            for ax in axes[:, 0]:
                ax.set_ylabel("θ₂ (no unit)")
            common_legend(figure, axes.flat)
        return figure


def leapfrog_paths(
    exact: Potential,
    followed: Potential,
    start: FloatArray,
    momenta: FloatArray,
    step_size: float,
    n_steps: int,
) -> tuple[FloatArray, FloatArray]:
    """Follow a potential from a start, shape (dim,), with momenta, shape (n, dim).

    Return positions from the start to the proposals, shape (n, n_steps + 1, dim), and the growth of
    the exact energy H from the start to each proposal, in nats, shape (n,).
    """
    leapfrog = sk.make("integrator", "leapfrog")
    hamiltonian = Hamiltonian(potential=followed, metric=sk.make("metric", "identity"))
    n = len(momenta)
    starts = np.tile(start, (n, 1))
    phase = Phase(positions=starts, momenta=momenta, cache=leapfrog.cache(hamiltonian, starts))
    kept = [starts]
    for _ in range(n_steps):
        phase, _ = leapfrog.advance(
            hamiltonian, phase, np.full(n, step_size), np.ones(n, dtype=np.int64)
        )
        kept.append(phase.positions)
    kinetic = 0.5 * (np.square(phase.momenta) - np.square(momenta)).sum(axis=1)
    growth = exact.value(phase.positions) - exact.value(starts) + kinetic
    return np.stack(kept, axis=1), growth


def over_repeats(finished: Sequence[Finished]) -> list[dict[str, Any]]:
    """Return acceptance over the repeats of each method, and the median of ESS for each draw."""
    found = []
    for (method,), rows in groups(finished, "method").items():
        numbers = np.array([row.result["acceptance"] for row in rows])
        error = float(numbers.std(ddof=1) / len(rows) ** 0.5) if len(rows) > 1 else None
        ess = [row.result["ess"] / row.settings["draws"] for row in rows]
        found.append(
            {
                "method": method,
                "label": rows[0].settings["label"],
                "repeats": len(rows),
                "mean": float(numbers.mean()),
                "standard_error": error,
                **quantiles(numbers),
                "ess_per_draw": float(np.median(ess)),
            }
        )
    return found


def _drawn(finished: Sequence[Finished]) -> dict[str, Mapping[str, Any]]:
    """Return method to forces and paths, of the rows that kept them."""
    drawn = [row for row in finished if "drawn" in row.result]
    return {
        row.settings["method"]: {
            "label": row.settings["label"],
            **{name: np.array(numbers) for name, numbers in row.result["drawn"].items()},
        }
        for row in drawn
    }


def _contours(ax: Any, target: Potential) -> None:
    fine = np.linspace(-3.6, 2.6, 80), np.linspace(-2.3, 2.3, 61)
    points = np.stack(np.meshgrid(*fine), axis=-1)
    values = target.value(points.reshape(-1, 2)).reshape(points.shape[:2])
    levels = values.min() + np.array([0.5, 1.5, 3.0, 6.0, 12.0, 25.0])  # nats
    ax.contour(*fine, values, levels=levels, colors=GREY, linewidths=0.6, alpha=0.7)


def _forces(ax: Any, rows: Mapping[str, Mapping[str, Any]]) -> None:
    # as long as log(1 + force), in 1/70 of the width of the panel
    ax.set_title("forces, as long as log(1 + force)")
    for method, colour, width, whose in (
        (HMC, VERMILION, 0.006, "exact"),
        ("paper", BLUE, 0.003, "network"),
    ):
        if method in rows:
            forces = rows[method]["forces"]
            lengths = np.maximum(np.linalg.norm(forces, axis=1, keepdims=True), 1e-12)
            ax.quiver(
                *rows[method]["points"].T,
                *(forces * np.log1p(lengths) / lengths).T,
                angles="xy",
                color=colour,
                width=width,
                scale=1.0 / 0.014,
                scale_units="width",
                label=f"force: {whose}",
            )


def _paths(ax: Any, row: Mapping[str, Any], *, training: bool) -> None:
    states, points = row["states"], {"linestyle": "none", "markeredgecolor": BLACK}
    if training:
        dots = {"markersize": 1.6, "color": GREY, "alpha": 0.5, "mew": 0}
        ax.plot(*states.T, "o", label="training points", **dots)
    for path, colour in zip(row["paths"], (BLUE, GREEN, PURPLE), strict=True):
        ax.plot(*path.T, color=colour, marker=".", markersize=3, linewidth=0.9)
    ax.plot(*states[-1], marker="s", markersize=8, color=VERMILION, label="start", **points)
    for number, path in enumerate(row["paths"], start=1):
        ax.plot(*path[-1], marker="o", markersize=9, color="white", label="proposal", **points)
        ax.annotate(str(number), path[-1], ha="center", va="center_baseline", fontsize=7)
