"""Figure 2: forces and paths of HMC and of a surrogate on a banana-shaped posterior."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import attrs
import numpy as np

import surrokit as sk
from surrokit.potentials import Potential, with_gradient
from surrokit.types import FloatArray
from surrokit_paper.chains import hmc
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
from surrokit_paper.methods import HMC, Method, by_name, evaluated
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

METHODS = by_name(
    Method(HMC, "HMC, exact", "none"),
    Method("paper", "the paper's network, values alone", "additive-paper"),
    Method("defaults", "surrokit's defaults, gradients too", gradients=True),
)

PRINTED = {HMC: ("HMC", 0.97), "paper": ("surrogate", 0.88)}
"""Overall acceptance, as the caption of figure 2 has it."""


@attrs.frozen(kw_only=True)
class Figure2(Figure):
    """Section 3.4 and figure 2 of Zhang, Shahbaba and Zhao (2017).

    A chain of exact HMC from 0 gives the training points: its states after a burn-in,
    repetitions included, as in the authors' code. Surrogates are fitted to them once, and HMC goes
    on from there, exactly and on each surrogate, with the same random numbers. Every path has the
    same number of steps, masses are one, and the exact potential decides every acceptance.
    """

    name = "figure-2"
    title = "Figure 2: forces, paths and acceptance on a banana-shaped posterior"
    quick: ClassVar = {"repeats": 4}

    repeats: int = 30  # each with a chain and nodes of its own
    burn_in: int = 100  # iterations that nothing is learnt from
    n_states: int = 400  # iterations after them, whose states are learnt from
    draws: int = 500  # iterations over which acceptance is averaged
    n_nodes: int = 40  # of the paper's network
    ridge: float = 1e-6
    step_size: float = 0.065  # the paper says neither; these give HMC the paper's acceptance
    n_steps: int = 25

    def cases(self) -> list[Case]:
        """Return a case for each repeat and method; those of the first repeat are drawn too."""
        return [
            {"method": name, "repeat": repeat}
            for repeat in range(1, self.repeats + 1)
            for name in METHODS
        ]

    def run(self, case: Case, conditions: Conditions) -> dict[str, Any]:
        """Run a chain for training points, fit a surrogate, and go on with it."""
        target, method, repeat = sk.make("potential", "banana"), str(case["method"]), case["repeat"]
        before = conditions.generator("training", repeat)
        start, lengths = np.zeros(target.dim), {"warmup": self.burn_in, "draws": self.n_states}
        states = self._chain(target, None, start, before, **lengths).draws[0]
        surrogate = None
        if method != HMC:
            network = {"n_nodes": self.n_nodes, "ridge": self.ridge} if method == "paper" else {}
            learner = attrs.evolve(METHODS[method], settings=network)
            rng = conditions.generator("row", method, repeat)
            surrogate = learner.train(evaluated(target, states), rng).potential
        after = conditions.generator("chain", repeat)
        run = self._chain(target, surrogate, states[-1], after, warmup=0, draws=self.draws)
        found: dict[str, Any] = {
            "acceptance": float(run.kept.acceptance.mean()),
            # a chain that never moved has no effective draw
            "ess_per_draw": float(np.nan_to_num(run.ess("bulk")).min()) / self.draws,
        }
        if repeat == 1:
            followed, rng = surrogate or target, conditions.generator("paths", repeat)
            points = np.stack(np.meshgrid(*GRID), axis=-1).reshape(-1, target.dim)
            momenta = rng.standard_normal((3, target.dim))  # of paths from one start
            found["drawn"] = {
                "points": points,
                "forces": -with_gradient(followed).value_and_gradient(points)[1],
                "states": states,
                "paths": self.paths(followed, states[-1], momenta),
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

    def paths(self, followed: Potential, start: FloatArray, momenta: FloatArray) -> FloatArray:
        """Return paths on a potential, shape (n, n_steps + 1, dim), from one start (dim,).

        Momenta have shape (n, dim); the ends are the proposals.
        """
        force, half = with_gradient(followed).value_and_gradient, 0.5 * self.step_size
        position, momentum = np.tile(start, (len(momenta), 1)), momenta
        kept = [position]
        for _ in range(self.n_steps):
            momentum = momentum - half * force(position)[1]
            position = position + self.step_size * momentum
            momentum = momentum - half * force(position)[1]
            kept.append(position)
        return np.stack(kept, axis=1)

    def report(self, rows: Sequence[Row]) -> Report:
        """Return acceptance over repeats, and the paper's two numbers."""
        acceptance = []
        for (method,), runs in groups(rows, "method").items():
            numbers = np.array([row["acceptance"] for row in runs])
            spread = over_repeats(runs, "acceptance") or {}
            acceptance.append(
                {
                    "method": METHODS[method].label,
                    "repeats": len(runs),
                    "mean": numbers.mean(),
                    "standard error": numbers.std(ddof=1) / len(runs) ** 0.5 if runs[1:] else None,
                    "10% of repeats below": spread["low"],
                    "median": spread["median"],
                    "10% above": spread["high"],
                    "min ESS a draw": median(runs, "ess_per_draw"),
                }
            )
        means = _means(rows)
        return Report(
            tables={"acceptance": acceptance},
            printed=[
                (f"overall acceptance, {what}", number, means[method])
                for method, (what, number) in PRINTED.items()
                if method in means
            ],
        )

    def draw(self, rows: Sequence[Row]) -> Any:
        """Return four panels: forces, then paths of HMC and on both surrogates."""
        drawn, means = _drawn(rows), _means(rows)
        titles = "HMC, exact", "HMC on the paper's network", "HMC on surrokit's defaults"
        with drawing(7.4, 6.4) as figure:
            axes = figure.subplots(2, 2, sharex=True, sharey=True)
            for ax in axes.flat:
                _contours(ax, sk.make("potential", "banana"))
            _forces(axes[0, 0], drawn)
            for ax, method, title in zip(axes.flat[1:], METHODS, titles, strict=True):
                mean = f", acceptance {means[method]:.2f}" if method in means else ""
                ax.set_title(title + mean)
                if method in drawn:
                    _paths(ax, drawn[method], training=method == "paper")
            for ax in axes[-1]:
                ax.set_xlabel("θ₁ (no unit)")
            for ax in axes[:, 0]:
                ax.set_ylabel("θ₂ (no unit)")
            common_legend(figure, axes.flat)
        return figure


def _means(rows: Sequence[Row]) -> dict[str, float]:
    return {
        method: float(np.mean([row["acceptance"] for row in runs]))
        for (method,), runs in groups(rows, "method").items()
    }


def _drawn(rows: Sequence[Row]) -> dict[str, dict[str, FloatArray]]:
    """Return method to forces and paths, of the rows that kept them."""
    return {
        row["method"]: {name: array(numbers) for name, numbers in row["drawn"].items()}
        for row in rows
        if "drawn" in row
    }


def _contours(ax: Any, target: Potential) -> None:
    fine = np.linspace(-3.6, 2.6, 80), np.linspace(-2.3, 2.3, 61)
    points = np.stack(np.meshgrid(*fine), axis=-1)
    values = target.value(points.reshape(-1, 2)).reshape(points.shape[:2])
    levels = values.min() + np.array([0.5, 1.5, 3.0, 6.0, 12.0, 25.0])  # nats
    ax.contour(*fine, values, levels=levels, colors=GREY, linewidths=0.6, alpha=0.7)


def _forces(ax: Any, drawn: Mapping[str, Mapping[str, FloatArray]]) -> None:
    # as long as log(1 + force), in 1/70 of the width of the panel
    ax.set_title("forces, as long as log(1 + force)")
    looks = (HMC, VERMILION, 0.006, "exact"), ("paper", BLUE, 0.003, "network")
    for method, colour, width, whose in looks:
        if method in drawn:
            forces = drawn[method]["forces"]
            lengths = np.maximum(np.linalg.norm(forces, axis=1, keepdims=True), 1e-12)
            arrows = forces * np.log1p(lengths) / lengths
            look = {"color": colour, "width": width, "label": f"force: {whose}"}
            scale = {"angles": "xy", "scale": 1.0 / 0.014, "scale_units": "width"}
            ax.quiver(*drawn[method]["points"].T, *arrows.T, **look, **scale)


def _paths(ax: Any, found: Mapping[str, FloatArray], *, training: bool) -> None:
    states, points = found["states"], {"linestyle": "none", "markeredgecolor": BLACK}
    if training:
        dots = {"markersize": 1.6, "color": GREY, "alpha": 0.5, "mew": 0}
        ax.plot(*states.T, "o", label="training points", **dots)
    for path, colour in zip(found["paths"], (BLUE, GREEN, PURPLE), strict=True):
        ax.plot(*path.T, color=colour, marker=".", markersize=3, linewidth=0.9)
    ax.plot(*states[-1], marker="s", markersize=8, color=VERMILION, label="start", **points)
    for number, path in enumerate(found["paths"], start=1):
        ax.plot(*path[-1], marker="o", markersize=9, color="white", label="proposal", **points)
        ax.annotate(str(number), path[-1], ha="center", va="center_baseline", fontsize=7)
