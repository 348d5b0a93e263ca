"""Figure 2, section 3.4: forces and paths of HMC and of a surrogate on a banana-shaped posterior.

A chain of exact HMC from 0 gives the training points: its states after a burn-in, repetitions
included, as in the authors' code. Surrogates are fitted to them once, and HMC goes on from there,
exactly and on each surrogate, with the same random numbers. Every path has the same number of
steps, masses are one, and the exact potential decides every acceptance.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

import surrokit as sk
from surrokit.potentials import Potential, with_gradient
from surrokit.types import FloatArray
from surrokit_paper.chains import (
    Row,
    array,
    evaluated,
    generator,
    groups,
    hmc,
    median,
    quantiles,
    train,
)
from surrokit_paper.pictures import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    NAMES,
    PURPLE,
    VERMILION,
    common_legend,
    drawing,
)

TITLE = "Figure 2: forces, paths and acceptance on a banana-shaped posterior"

FULL: dict[str, Any] = {
    "repeats": 30,  # each with a chain and nodes of its own
    "burn_in": 100,  # iterations that nothing is learnt from
    "n_states": 400,  # iterations after them, whose states are learnt from
    "draws": 500,  # iterations over which acceptance is averaged
    "n_nodes": 40,  # of the paper's network
    "ridge": 1e-6,
    "step_size": 0.065,  # the paper says neither; these give HMC the paper's acceptance
    "n_steps": 25,
}
QUICK = {"repeats": 4}

GRID = (np.linspace(-3.25, 2.25, 12), np.linspace(-2.1, 2.1, 13))
"""Where forces are kept: coordinates of both parameters."""

METHODS = {
    "hmc": "HMC, exact",
    "paper": "HMC on the paper's network",
    "defaults": "HMC on surrokit's defaults",
}


def cases(sizes: SimpleNamespace) -> list[Row]:
    """Return a case for each repeat and method; those of the first repeat are drawn too."""
    repeats = range(1, sizes.repeats + 1)
    return [{"method": name, "repeat": repeat} for repeat in repeats for name in METHODS]


def run(case: Row, sizes: SimpleNamespace) -> Row:
    """Run a chain for training points, fit a surrogate, and go on with it."""
    target, (method, repeat) = sk.make("potential", "banana"), case.values()
    paths = {"step_size": sizes.step_size, "n_steps": sizes.n_steps, "randomize": False}
    before, start = generator(sizes.seed, "training", repeat), np.zeros(target.dim)
    lengths: dict[str, Any] = {"warmup": sizes.burn_in, "draws": sizes.n_states}
    states = hmc(target, paths, start, before, surrogate=None, **lengths).draws[0]
    surrogate = None
    if method != "hmc":
        learner: dict[str, Any] = {"gradients": True}
        if method == "paper":
            learner = {"surrogate": "additive-paper", "n_nodes": sizes.n_nodes}
            learner["ridge"] = sizes.ridge
        rng = generator(sizes.seed, "row", method, repeat)
        surrogate, _ = train(evaluated(target, states), rng, **learner)
    after, lengths = generator(sizes.seed, "chain", repeat), {"warmup": 0, "draws": sizes.draws}
    run = hmc(target, paths, states[-1], after, surrogate=surrogate, **lengths)
    found: Row = {
        "acceptance": float(run.kept.acceptance.mean()),
        # a chain that never moved has no effective draw
        "ess_per_draw": float(np.nan_to_num(run.ess("bulk")).min()) / sizes.draws,
    }
    if repeat == 1:
        followed, rng = surrogate or target, generator(sizes.seed, "paths", repeat)
        points = np.stack(np.meshgrid(*GRID), axis=-1).reshape(-1, target.dim)
        momenta = rng.standard_normal((3, target.dim))  # of paths from one start
        found["drawn"] = {
            "points": points,
            "forces": -with_gradient(followed).value_and_gradient(points)[1],
            "states": states,
            "paths": leapfrog(followed, states[-1], momenta, sizes),
        }
    return found


def leapfrog(
    followed: Potential, start: FloatArray, momenta: FloatArray, sizes: SimpleNamespace
) -> FloatArray:
    """Return paths on a potential, shape (n, n_steps + 1, dim), from one start (dim,).

    Momenta have shape (n, dim); the ends are the proposals.
    """
    force, half = with_gradient(followed).value_and_gradient, 0.5 * sizes.step_size
    position, momentum = np.tile(start, (len(momenta), 1)), momenta
    kept = [position]
    for _ in range(sizes.n_steps):
        momentum = momentum - half * force(position)[1]
        position = position + sizes.step_size * momentum
        momentum = momentum - half * force(position)[1]
        kept.append(position)
    return np.stack(kept, axis=1)


def report(rows: Sequence[Row], _: SimpleNamespace) -> tuple[dict[str, Any], list[Any]]:
    """Return acceptance over repeats, and the paper's two numbers."""
    lines, printed = [], []
    for (method,), runs in groups(rows, "method").items():
        numbers = np.array([row["acceptance"] for row in runs])
        low, _median, high = quantiles(runs, "acceptance") or (None,) * 3
        line = {
            "method": NAMES[method],
            "repeats": len(runs),
            "mean": float(numbers.mean()),
            "standard error": numbers.std(ddof=1) / len(runs) ** 0.5 if runs[1:] else None,
            "10% of repeats below": low,
            "10% above": high,
            "min ESS a draw": median(runs, "ess_per_draw"),
        }
        lines.append(line)
        # as the caption has it
        of_paper = {"hmc": ("HMC", 0.97), "paper": ("surrogate", 0.88)}.get(method)
        if of_paper is not None:
            what, number = of_paper
            printed.append((f"overall acceptance, {what}", number, line["mean"]))
    return {"acceptance": lines}, printed


def draw(rows: Sequence[Row], _: SimpleNamespace) -> Any:
    """Return four panels: forces, then paths of HMC and on both surrogates."""
    drawn = {
        row["method"]: {name: array(numbers) for name, numbers in row["drawn"].items()}
        for row in rows
        if "drawn" in row
    }
    with drawing(7.4, 6.4) as figure:
        axes = figure.subplots(2, 2, sharex=True, sharey=True)
        for ax in axes.flat:
            _contours(ax)
        _forces(axes[0, 0], drawn)
        for ax, (method, title) in zip(axes.flat[1:], METHODS.items(), strict=True):
            numbers = [row["acceptance"] for row in rows if row["method"] == method]
            ax.set_title(f"{title}, acceptance {np.mean(numbers):.2f}" if numbers else title)
            if method in drawn:
                _paths(ax, drawn[method], training=method == "paper")
        for ax in axes[-1]:
            ax.set_xlabel("θ₁ (no unit)")
        for ax in axes[:, 0]:
            ax.set_ylabel("θ₂ (no unit)")
        common_legend(figure, axes.flat)
    return figure


def _contours(ax: Any) -> None:
    fine = np.linspace(-3.6, 2.6, 80), np.linspace(-2.3, 2.3, 61)
    points = np.stack(np.meshgrid(*fine), axis=-1)
    values = sk.make("potential", "banana").value(points.reshape(-1, 2)).reshape(points.shape[:2])
    levels = values.min() + np.array([0.5, 1.5, 3.0, 6.0, 12.0, 25.0])  # nats
    ax.contour(*fine, values, levels=levels, colors=GREY, linewidths=0.6, alpha=0.7)


def _forces(ax: Any, drawn: dict[str, dict[str, FloatArray]]) -> None:
    # as long as log(1 + force), in 1/70 of the width of the panel
    ax.set_title("forces, as long as log(1 + force)")
    looks = ("hmc", VERMILION, 0.006, "exact"), ("paper", BLUE, 0.003, "network")
    for method, colour, width, whose in looks:
        if method in drawn:
            forces = drawn[method]["forces"]
            lengths = np.maximum(np.linalg.norm(forces, axis=1, keepdims=True), 1e-12)
            arrows = forces * np.log1p(lengths) / lengths
            look = {"color": colour, "width": width, "label": f"force: {whose}"}
            scale = {"angles": "xy", "scale": 1.0 / 0.014, "scale_units": "width"}
            ax.quiver(*drawn[method]["points"].T, *arrows.T, **look, **scale)


def _paths(ax: Any, found: dict[str, FloatArray], *, training: bool) -> None:
    states, points = found["states"], {"linestyle": "none", "markeredgecolor": BLACK}
    if training:
        dots = {"markersize": 1.6, "color": GREY, "alpha": 0.5, "mew": 0}
        ax.plot(*states.T, "o", label="training points", **dots)
    ax.plot(*states[-1], marker="s", markersize=8, color=VERMILION, label="start", **points)
    for path, colour in zip(found["paths"], (BLUE, GREEN, PURPLE), strict=True):
        ax.plot(*path.T, color=colour, marker=".", markersize=3, linewidth=0.9)
        ax.plot(*path[-1], marker="o", markersize=7, color=colour, label="proposal", **points)
