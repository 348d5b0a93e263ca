"""What figures 4 and 5 share: acceptance of HMC on surrogates of many sizes, and its pictures."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

import surrokit as sk
from surrokit.arguments import fraction, not_negative, positive_integer
from surrokit.errors import SamplingWarning
from surrokit.potentials import GradientPotential, Potential
from surrokit.types import FloatArray
from surrokit_paper.chains import NO_RESCUE, complete, hmc, quantiles
from surrokit_paper.harness import (
    Cell,
    Conditions,
    Experiment,
    Finished,
    Row,
    groups,
    sizes_field,
)
from surrokit_paper.methods import HMC, train
from surrokit_paper.pictures import LOOKS, common_legend, drawing, error_bars, line_of

PAPER, VALUES, GRADIENTS = "paper", "additive-default", "additive-gradients"
LABELS: Mapping[str, str] = {
    PAPER: "the paper's network, values alone",
    VALUES: "surrokit's defaults, values alone",
    GRADIENTS: "surrokit's defaults, gradients too",
}
"""Surrogates by name, in the order of tables and legends; the paper's has raw coordinates, no
trend, a fixed ridge and s nodes, and the others choose s themselves."""

LEVEL = 0.9
"""Part of HMC's acceptance that counts as comparable to it."""

NOTES = (
    "the paper prints no numbers on its axes; sizes are ours. It does not say how many rows its "
    "data have, nor how long its paths are: 10000 rows unless set otherwise, and up to 6 steps.",
    "acceptance is the mean of the exact acceptance probabilities of short chains from draws of "
    "the target; all surrogates of a run have the same starts, momenta and numbers of steps.",
    "numbers are medians over runs.",
    "training points are accepted proposals of one chain of exact HMC past its burn-in.",
    "surrokit's defaults choose their number of nodes themselves.",
)

_WIDEST = 3.0  # the tuned step size is within this factor of the one that is looked for
_HALVINGS = 12
_NEAR_ENOUGH = 0.01  # of an acceptance probability
BLOCK = 500
"""Iterations at a time of the chain that gives training points."""


@attrs.frozen(kw_only=True, eq=False)
class Trial:
    """A target, places to start from, and one step size for the exact HMC and every surrogate.

    All trials of surrogates take the same starts, numbers of steps, and momenta where chains have
    not parted yet, so that they differ by the surrogate.
    """

    target: GradientPotential
    starts: FloatArray  # draws of the target, shape (chains, dim)
    step_size: float
    n_steps: int  # at most; the number is drawn from {1, ..., n_steps} in each iteration
    iterations: int  # of each chain
    seed: int  # of momenta and decisions

    def accepting(self, acceptance: float) -> Trial:
        """Return a trial with the step size at which exact HMC accepts so much, up to 0.01.

        Found by halving an interval around the present step size, on a logarithmic scale.
        """
        low, high = self.step_size / _WIDEST, self.step_size * _WIDEST
        trial = self
        for _ in range(_HALVINGS):
            found = trial.acceptance()
            if abs(found - acceptance) < _NEAR_ENOUGH:
                break
            low, high = (trial.step_size, high) if found > acceptance else (low, trial.step_size)
            trial = attrs.evolve(trial, step_size=float(np.sqrt(low * high)))
        return trial

    def acceptance(self, surrogate: Potential | None = None) -> float:
        """Return the mean acceptance probability on a surrogate, or on the target itself.

        The exact potential decides.
        """
        rng, followed = np.random.default_rng(self.seed), "none" if surrogate is None else surrogate
        with warnings.catch_warnings():
            # that next to nothing is accepted is what is looked for here
            warnings.simplefilter("ignore", SamplingWarning)
            run = self._run(
                self.starts, self.iterations, rng, surrogate=followed, schedule=NO_RESCUE
            )
        return float(run.kept.acceptance.mean())

    def training_points(self, n: int, rng: np.random.Generator) -> sk.Evaluations:
        """Return the first n new states of one exact chain, with values and gradients.

        New states are accepted proposals, which is what Algorithm 3 of the paper collects. The
        chain starts at one of the starts.
        """
        blocks: list[FloatArray] = []
        start, found = self.starts[-1:], 0
        while found < n:
            run = self._run(start, BLOCK, rng, surrogate="none")
            blocks.append(run.draws[0][run.kept.accepted[0]])
            start, found = run.draws[:, -1], found + len(blocks[-1])
        positions = np.concatenate(blocks)[:n]
        values, gradients = self.target.value_and_gradient(positions)
        return sk.Evaluations(positions=positions, values=values, gradients=gradients)

    def _run(
        self, starts: FloatArray, draws: int, rng: np.random.Generator, **settings: Any
    ) -> sk.Run:
        run = hmc(
            self.target,
            step_size=self.step_size,
            n_steps=self.n_steps,
            chains=len(starts),
            warmup=0,
            draws=draws,
            initial=starts,
            seed=rng,
            **settings,
        )
        return complete(run)


@attrs.frozen(kw_only=True)
class AcceptanceGrid(Experiment):
    """Surrogates of simulated logistic regressions, and how often proposals on them are accepted.

    For each number of parameters exact HMC, past its burn-in, gets the step size at which it
    accepts 70 % of its proposals. The new states of one exact chain are the training points.
    Networks with s nodes are fitted to the first N of them. Short chains of HMC then run on each
    from draws of the target, with the step size of the exact one, and the exact potential decides.

    Parameters
    ----------
    dims
        d: numbers of parameters.
    n_nodes
        s: nodes of the paper's network.
    n_points
        N: training points that it sees, values alone.
    gradient_points
        Training points that this project's defaults see with gradients.
    repeats
        Runs, each with chains and networks of its own; the data are the same.
    n_rows
        Rows of the simulated data, which the paper does not say.
    ridge
        Of the paper's network.
    acceptance
        Of exact HMC.
    n_steps
        Longest path; the number of steps is drawn from {1, ..., n_steps} in each iteration.
    burn_in
        Exact iterations from 0, with a step size that is tuned.
    chains, iterations
        Over which acceptance probabilities are averaged.
    """

    dims: tuple[int, ...] = sizes_field(32)
    n_nodes: tuple[int, ...] = sizes_field(2000)
    n_points: tuple[int, ...] = sizes_field(4000)
    gradient_points: tuple[int, ...] = sizes_field(200)
    repeats: int = attrs.field(default=10, validator=positive_integer)
    n_rows: int = attrs.field(default=10_000, validator=positive_integer)
    ridge: float = attrs.field(default=1e-6, validator=not_negative)
    acceptance: float = attrs.field(default=0.7, validator=fraction)
    n_steps: int = attrs.field(default=6, validator=positive_integer)
    burn_in: int = attrs.field(default=100, validator=positive_integer)
    chains: int = attrs.field(default=50, validator=positive_integer)
    iterations: int = attrs.field(default=20, validator=positive_integer)

    def rows(self) -> list[Row]:
        """Return a row for each number of parameters in each repeat."""
        shared = self.settings_without("dims", "repeats")
        return [
            Row(f"{dim}/{repeat}", {"dim": dim, "repeat": repeat, **shared})
            for repeat in range(1, self.repeats + 1)
            for dim in self.dims
        ]

    def run(self, row: Row, conditions: Conditions) -> dict[str, Any]:
        """Run exact HMC, fit all surrogates to its new states, and try each."""
        keys = row.settings["dim"], row.settings["repeat"]
        trial = self.trial(row.settings["dim"], conditions.generator("trial", *keys))
        points = trial.training_points(
            max(self.n_points + self.gradient_points), conditions.generator("chain", *keys)
        )
        return {
            "hmc_acceptance": trial.acceptance(),
            "step_size": trial.step_size,
            "cells": [
                _cell(trial, points, *cell, conditions.generator("fit", *keys))
                for cell in self._cells()
            ],
        }

    def trial(self, dim: int, rng: np.random.Generator) -> Trial:
        """Run exact HMC from 0, and return a trial with the step size that is asked for."""
        target = sk.make("potential", "simulated-logistic", n_rows=self.n_rows, dim=dim)
        tuned = {"target_acceptance": self.acceptance, "n_steps": self.n_steps}
        run = sk.sample(
            target,
            sampler=("hmc", {"metric": "identity", **tuned}),
            chains=self.chains,
            warmup=self.burn_in,
            draws=1,
            initial=np.zeros(target.dim),
            seed=rng,
            progress=False,
        )
        trial = Trial(
            target=target,
            starts=complete(run).draws[:, -1],
            step_size=float(run.kept.step_size[-1]),
            n_steps=self.n_steps,
            iterations=self.iterations,
            seed=int(rng.integers(2**32)),
        )
        return trial.accepting(self.acceptance)

    def _cells(self) -> Iterator[tuple[str, dict[str, Any], int]]:
        """Yield name and settings of a surrogate, and the number of its training points."""
        for n in self.n_points:
            for n_nodes in self.n_nodes:
                yield PAPER, {"n_nodes": n_nodes, "ridge": self.ridge}, n
            yield VALUES, {}, n
        for n in self.gradient_points:
            yield GRADIENTS, {}, n


def _cell(
    trial: Trial,
    points: sk.Evaluations,
    method: str,
    settings: dict[str, Any],
    n: int,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Fit a surrogate to the first points, and return its acceptance."""
    assert points.gradients is not None
    shown = sk.Evaluations(
        positions=points.positions[:n],
        values=points.values[:n],
        gradients=points.gradients[:n] if method == GRADIENTS else None,
    )
    fit = train("additive-paper" if method == PAPER else "additive", settings, shown, rng)
    network: Any = fit.potential
    return {
        "method": method,
        "n_nodes": settings.get("n_nodes"),
        "n_points": n,
        "nodes_used": network.n_nodes,
        "acceptance": trial.acceptance(network),
        "training_seconds": fit.seconds,
    }


# --- what the runs say ---


@attrs.frozen(kw_only=True)
class Grid:
    """Acceptance over runs; each with ``runs``, ``low``, ``median``, ``high`` and ``mean``.

    By number of parameters that of exact HMC, and the median of its step size; then for each
    surrogate ``dim``, ``method``, ``n_nodes`` (None where it chooses), ``n_points``,
    ``nodes_used``, ``acceptance`` and ``training_seconds``.
    """

    hmc: dict[int, dict[str, float]]
    step_sizes: dict[int, float]
    tried: list[dict[str, Any]]

    @classmethod
    def of(cls, finished: Sequence[Finished]) -> Grid:
        """Return what finished rows of figure 4 or 5 say."""
        found = cls(hmc={}, step_sizes={}, tried=[])
        for (dim,), rows in sorted(groups(finished, "dim").items()):
            found.hmc[dim] = _over([row.result["hmc_acceptance"] for row in rows])
            found.step_sizes[dim] = float(np.median([row.result["step_size"] for row in rows]))
            found.tried.extend(_tried(dim, rows))
        return found

    def sizes(self, of: str, method: str = PAPER) -> list[int]:
        """Return the sizes (``dim``, ``n_nodes``, ``n_points``) a method was tried at, rising."""
        found = {each[of] for each in self.tried if each["method"] == method}
        return sorted(size for size in found if size is not None)

    def curve(self, method: str, **at: int | None) -> list[dict[str, Any]]:
        """Return a method wherever it was tried at these sizes; the network's nodes are its own."""
        if method != PAPER:
            at = {**at, "n_nodes": None}
        return [
            each
            for each in self.tried
            if each["method"] == method and all(each[size] == value for size, value in at.items())
        ]

    def ratio(self, each: Mapping[str, Any]) -> float:
        """Return the median acceptance on a surrogate over exact HMC's."""
        return float(each["acceptance"]["median"] / self.hmc[each["dim"]]["median"])

    def lines(self, found: Sequence[Mapping[str, Any]], size: str) -> list[dict[str, Cell]]:
        """Return lines of a table of surrogates by d or N, the size that is in their titles."""
        return [
            {
                "surrogate": LABELS[each["method"]],
                "s": each["nodes_used"],
                "N": each["n_points"],
                **({"d": each["dim"]} if size == "dim" else {}),
                "10 %": each["acceptance"]["low"],
                "median": each["acceptance"]["median"],
                "90 %": each["acceptance"]["high"],
                "training, s": each["training_seconds"],
            }
            for each in found
        ]

    def cells(self, **at: int) -> dict[str, Cell]:
        """Return the acceptance on the paper's network for each of its numbers of nodes."""
        found = {each["n_nodes"]: median(each) for each in self.curve(PAPER, **at)}
        return {f"s = {size}": found.get(size) for size in self.sizes("n_nodes")}


def median(each: Mapping[str, Any] | None) -> float | None:
    """Return the acceptance over runs on a surrogate; None for None."""
    return None if each is None else float(each["acceptance"]["median"])


def _over(numbers: Sequence[float]) -> dict[str, float]:
    return {"runs": len(numbers), **quantiles(numbers), "mean": float(np.mean(numbers))}


def _tried(dim: int, rows: Sequence[Finished]) -> Iterator[dict[str, Any]]:
    found: dict[tuple[Any, ...], list[dict[str, float]]] = {}
    for row in rows:
        for cell in row.result["cells"]:
            key = cell["method"], cell["n_points"], cell["n_nodes"]
            found.setdefault(key, []).append(cell)
    for (method, n_points, n_nodes), cells in found.items():
        medians = {
            name: float(np.median([cell[name] for cell in cells]))
            for name in ("nodes_used", "training_seconds")
        }
        yield {
            "dim": dim,
            "method": method,
            "n_nodes": n_nodes,
            "n_points": n_points,
            "acceptance": _over([cell["acceptance"] for cell in cells]),
            **medians,
        }


def coefficients(dim: int) -> int:
    """Return how many coefficients a polynomial of second order has, (d + 1)(d + 2) / 2."""
    return (dim + 1) * (dim + 2) // 2


def section(sizes: Sequence[int], preferred: int) -> int:
    """Return the paper's size for a section through the grid; the largest where it is not there."""
    return preferred if preferred in sizes else max(sizes)


# --- pictures ---


def picture(
    found: Grid,
    rows: str,
    at: Mapping[str, int],
    title: str,
    sections: Sequence[Callable[..., Any]],
) -> Any:
    """Return a heat map of acceptance on the paper's network, and two sections beside it.

    The map has ``rows`` (``dim`` or ``n_points``) over nodes, at one value of the other size, and a
    line around what ``title`` says. Each section is drawn by a function of its axes.
    """
    heights, nodes = found.sizes(rows), found.sizes("n_nodes")
    known = {(e[rows], e["n_nodes"]): e["acceptance"]["median"] for e in found.curve(PAPER, **at)}
    numbers = [[known.get((height, size), np.nan) for size in nodes] for height in heights]
    if rows == "dim":
        inside = [[size >= coefficients(dim) for size in nodes] for dim in heights]
        where, label = f"N = {at['n_points']}", "parameters d"
    else:
        least = coefficients(at["dim"])
        inside = [[min(n, size) >= least for size in nodes] for n in heights]
        where, label = f"d = {at['dim']}", "training points N"
    with drawing(11.0, 4.2) as figure:
        ratios = (1.35 if rows == "dim" else 1.45, 1.0, 1.0)
        left, *others = figure.subplots(1, 3, width_ratios=ratios)
        figure.colorbar(_heat_map(left, numbers, nodes, heights, inside), ax=left)
        left.set(xlabel="hidden nodes s", ylabel=label)
        left.set_title(f"acceptance probability, the paper's network, {where};\nline: {title}")
        for ax, draw in zip(others, sections, strict=True):
            draw(ax)
            top = 1.15 * max(hmc["high"] for hmc in found.hmc.values())
            ax.set(ylim=(0.0, top), ylabel="acceptance probability")
        common_legend(figure, others[::-1] if rows == "dim" else others)
    return figure


def _heat_map(
    ax: Any,
    numbers: npt.ArrayLike,
    columns: Sequence[int],
    rows: Sequence[int],
    inside: npt.ArrayLike,
) -> Any:
    """Draw numbers as cells of one size, the first row at the bottom, and a line around some."""
    grid = np.asarray(numbers, dtype=np.float64)
    top = float(np.ceil(20.0 * np.nanmax(grid, initial=0.05)) / 20.0)
    # even steps of lightness, also for readers who do not tell all colours apart
    image = ax.imshow(grid, origin="lower", aspect="auto", cmap="cividis", vmin=0.0, vmax=top)
    ax.set_xticks(range(len(columns)), [str(size) for size in columns])
    ax.set_yticks(range(len(rows)), [str(size) for size in rows])
    ax.tick_params(length=0)
    for (i, j), number in np.ndenumerate(grid):
        if np.isfinite(number):
            colour = "white" if number < 0.5 * top else "black"
            ax.text(j, i, f"{number:.2f}", ha="center", va="center", color=colour, fontsize=8)
    within = np.asarray(inside, dtype=bool)
    across, along = within[:, 1:] != within[:, :-1], within[1:] != within[:-1]
    edges = [([j + 0.5, j + 0.5], [i - 0.5, i + 0.5]) for i, j in np.argwhere(across)]
    edges += [([j - 0.5, j + 0.5], [i + 0.5, i + 0.5]) for i, j in np.argwhere(along)]
    for x, y in edges:
        ax.plot(x, y, color="white", linewidth=2.2, solid_capstyle="projecting")
    return image


def draw_curve(ax: Any, curve: Sequence[Mapping[str, Any]], over: str) -> None:
    """Draw the acceptance of a surrogate over a size, if it was tried there."""
    if curve:
        method = curve[0]["method"]
        over_runs = [each["acceptance"] for each in curve]
        look = {"label": LABELS[method], **LOOKS[method]}
        error_bars(ax, [each[over] for each in curve], over_runs, **look)


def draw_over_nodes(ax: Any, found: Grid, dim: int, n: Mapping[str, int]) -> None:
    """Draw the network over s, and lines for what has no s; n is N by surrogate."""
    ax.axhline(found.hmc[dim]["median"], **line_of(HMC))
    draw_curve(ax, found.curve(PAPER, dim=dim, n_points=n[PAPER]), "n_nodes")
    for method in (VALUES, GRADIENTS):
        for each in found.curve(method, dim=dim, n_points=n[method]):
            ax.axhline(each["acceptance"]["median"], **line_of(method))
    ax.set(xlabel="hidden nodes s of the paper's network")
    ax.set_title(f"d = {dim}; N = {n[PAPER]}, with gradients {n[GRADIENTS]}")
