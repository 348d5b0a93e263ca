"""Figures 4 and 5: acceptance of HMC on surrogates of many sizes.

For each number of parameters d exact HMC, past its burn-in, gets the step size at which it accepts
70 % of its proposals. The new states of one exact chain are the training points. Networks with s
nodes are fitted to the first N of them. Short chains of HMC then run on each from draws of the
target, with the step size of the exact one, and the exact potential decides.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, ClassVar

import attrs
import numpy as np

import surrokit as sk
from surrokit.arguments import fraction, not_negative, positive_integer
from surrokit.errors import SamplingWarning
from surrokit.potentials import GradientPotential, Potential
from surrokit.types import FloatArray
from surrokit_paper.chains import NO_RESCUE, hmc, quantiles
from surrokit_paper.harness import (
    Cell,
    Conditions,
    Experiment,
    Finished,
    Report,
    Row,
    groups,
    sizes_field,
)
from surrokit_paper.methods import HMC, evaluated, train
from surrokit_paper.pictures import (
    LOOKS,
    common_legend,
    drawing,
    error_bars,
    line_of,
    ticks_among,
)

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

BLOCK = 500
"""Iterations at a time of the chain that gives training points."""

_DIM = 32  # where the paper cuts through both heat maps


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
        low, high, trial = self.step_size / 3.0, self.step_size * 3.0, self
        for _ in range(12):
            found = trial.acceptance()
            if abs(found - acceptance) < 0.01:
                break
            low, high = (trial.step_size, high) if found > acceptance else (low, trial.step_size)
            trial = attrs.evolve(trial, step_size=float(np.sqrt(low * high)))
        return trial

    def acceptance(self, surrogate: Potential | None = None) -> float:
        """Return the mean acceptance probability on a surrogate, or on the target itself."""
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
        return evaluated(self.target, np.concatenate(blocks)[:n])

    def _run(
        self, starts: FloatArray, draws: int, rng: np.random.Generator, **settings: Any
    ) -> sk.Run:
        paths = {"step_size": self.step_size, "n_steps": self.n_steps}
        settings |= {"chains": len(starts), "warmup": 0, "draws": draws, "seed": rng}
        return hmc(self.target, paths, initial=starts, **settings)


@attrs.frozen(kw_only=True)
class AcceptanceGrid(Experiment):
    """Surrogates of simulated logistic regressions, and how often proposals on them are accepted.

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

    dims: tuple[int, ...] = sizes_field(_DIM)
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
        exact, cells = trial.acceptance(), []
        for method, n_nodes, n in self._cells():
            rng = conditions.generator("fit", *keys)
            settings = {} if n_nodes is None else {"n_nodes": n_nodes, "ridge": self.ridge}
            name, shown = "additive-paper" if method == PAPER else "additive", points.take(slice(n))
            fit = train(name, settings, shown, rng, method == GRADIENTS)
            network: Any = fit.potential
            cells.append(
                {
                    "method": method,
                    "n_nodes": n_nodes,
                    "n_points": n,
                    "nodes_used": network.n_nodes,
                    "acceptance": trial.acceptance(network),
                    "training_seconds": fit.seconds,
                }
            )
        return {"hmc_acceptance": exact, "step_size": trial.step_size, "cells": cells}

    def trial(self, dim: int, rng: np.random.Generator) -> Trial:
        """Run exact HMC from 0, and return a trial with the step size that is asked for."""
        target = sk.make("potential", "simulated-logistic", n_rows=self.n_rows, dim=dim)
        tuned = {"target_acceptance": self.acceptance, "n_steps": self.n_steps}
        lengths = {"chains": self.chains, "warmup": self.burn_in, "draws": 1}
        run = hmc(target, tuned, initial=np.zeros(target.dim), seed=rng, **lengths)
        trial = Trial(
            target=target,
            starts=run.draws[:, -1],
            step_size=float(run.kept.step_size[-1]),
            n_steps=self.n_steps,
            iterations=self.iterations,
            seed=int(rng.integers(2**32)),
        )
        return trial.accepting(self.acceptance)

    def _cells(self) -> Iterator[tuple[str, int | None, int]]:
        """Yield name and nodes of a surrogate, and the number of its training points."""
        for n in self.n_points:
            for n_nodes in self.n_nodes:
                yield PAPER, n_nodes, n
            yield VALUES, None, n
        for n in self.gradient_points:
            yield GRADIENTS, None, n


@attrs.frozen(kw_only=True)
class Figure4(AcceptanceGrid):
    """Section 3.4 and figure 4 of Zhang, Shahbaba and Zhao (2017): acceptance over s and d.

    N is "sufficiently large". The paper's axes have no numbers.
    """

    name = "figure-4"
    title = "Figure 4: acceptance against hidden nodes and number of parameters"
    quick: ClassVar = {
        "dims": (8, 16, 32),
        "n_nodes": (100, 500, 1000),
        "n_points": (1500,),
        "repeats": 1,
    }

    dims: tuple[int, ...] = sizes_field(8, 16, 24, 32, 40, 48, 56, 64)
    n_nodes: tuple[int, ...] = sizes_field(100, 250, 500, 1000, 1500, 2000)

    def report(self, finished: Sequence[Finished]) -> Report:
        """Return the heat map as a table, every surrogate by d, and the paper's statements."""
        found = Grid.of(finished)
        n, nodes = found.most_points(), section(found.sizes("n_nodes"), 2000)
        heat_map = [
            {
                "d": dim,
                "runs": int(hmc["runs"]),
                "coefficients of a quadratic": coefficients(dim),
                "HMC": hmc["median"],
                **found.cells(dim=dim, n_points=n[PAPER]),
            }
            for dim, hmc in found.hmc.items()
        ]
        by_dim = [e for m in LABELS for e in found.curve(m, n_nodes=nodes, n_points=n[m])]
        curve = found.curve(PAPER, n_nodes=nodes, n_points=n[PAPER])
        # 48 is the size of ours that is nearest to the paper's "about 50"
        near = next((each for each in curve if each["dim"] == 48), None)
        dim = section(list(found.hmc), _DIM)
        reached = [each["dim"] for each in takewhile(lambda e: found.ratio(e) >= LEVEL, curve)]
        up_to = f"largest d, of those tried, up to which s = {nodes} has {LEVEL} of HMC's"
        title = f"median acceptance, the paper's network from {n[PAPER]} values, by its nodes s"
        by_parameters = "by number of parameters: acceptance, and processor seconds of a fit"
        return Report(
            tables={title: heat_map, by_parameters: found.lines(by_dim, "dim")},
            printed=[
                (
                    f"acceptance of HMC at this step size, d = {dim}",
                    "around 0.7",
                    found.hmc[dim]["median"],
                ),
                (
                    f"acceptance at d = 48, s = {nodes}",
                    "relatively high up to d of about 50",
                    _median(near),
                ),
                (up_to, "about 50", reached[-1] if reached else None),
                (
                    f"training at d = 48, s = {nodes}, in seconds",
                    "a few",
                    None if near is None else near["training_seconds"],
                ),
            ],
            figures=attrs.asdict(found),
            notes=NOTES,
        )

    def draw(self, finished: Sequence[Finished]) -> Any:
        """Return three panels: acceptance over s and d, over s, and over d."""
        found = Grid.of(finished)
        n, dims = found.most_points(), list(found.hmc)
        nodes = section(found.sizes("n_nodes"), 2000)
        inside = [[size >= coefficients(d) for size in found.sizes("n_nodes")] for d in dims]
        with drawing(11.0, 4.2) as figure:
            left, middle, right = figure.subplots(1, 3, width_ratios=(1.35, 1.0, 1.0))
            _heat_map(left, found, "dim", {"n_points": n[PAPER]}, inside)
            left.set(xlabel="hidden nodes s", ylabel="parameters d")
            left.set_title(
                f"acceptance probability, the paper's network, N = {n[PAPER]};\n"
                "line: as many nodes as a quadratic has coefficients"
            )
            _over_nodes(middle, found, section(dims, _DIM), n)
            exact = [hmc["median"] for hmc in found.hmc.values()]
            right.plot(dims, exact, label="HMC, exact", **LOOKS[HMC])
            for method in LABELS:
                _curve(right, found.curve(method, n_nodes=nodes, n_points=n[method]), "dim")
            right.set_xticks(dims)
            points = f"N = {n[PAPER]}, with gradients {n[GRADIENTS]}"
            right.set(xlabel="parameters d", title=f"s = {nodes}; {points}")
            _finish(figure, found, (middle, right), legend_of=(right, middle))
        return figure


@attrs.frozen(kw_only=True)
class Figure5(AcceptanceGrid):
    """Section 4 and figure 5 of Zhang, Shahbaba and Zhao (2017): acceptance over s and N.

    There are 32 parameters. The paper's axes have no numbers.
    """

    name = "figure-5"
    title = "Figure 5: acceptance against hidden nodes and training points, 32 parameters"
    quick: ClassVar = {
        "n_nodes": (250, 500, 1000),
        "n_points": (250, 500, 1000, 1600),
        "repeats": 1,
    }

    n_nodes: tuple[int, ...] = sizes_field(100, 250, 500, 750, 1000, 1500, 2000)
    n_points: tuple[int, ...] = sizes_field(200, 350, 500, 750, 1000, 1250, 1600, 2000, 3000)
    gradient_points: tuple[int, ...] = sizes_field(10, 25, 50, 100, 200)

    def report(self, finished: Sequence[Finished]) -> Report:
        """Return the heat map as a table, every surrogate by N, and the paper's statements."""
        found = Grid.of(finished)
        dim, nodes = section(list(found.hmc), _DIM), section(found.sizes("n_nodes"), 1000)
        heat_map = [{"N": n, **found.cells(dim=dim, n_points=n)} for n in found.sizes("n_points")]
        by_points, needed = [], {}
        for method in LABELS:
            curve = found.curve(method, dim=dim, n_nodes=nodes)
            # from where on it is at the level, if it does not end below
            below = [each["n_points"] for each in curve if found.ratio(each) < LEVEL]
            since = (each["n_points"] for each in curve)
            needed[method] = next((n for n in since if n > max(below, default=0)), None)
            more = {f"{LEVEL} of HMC's from N": needed[method]}
            by_points += [{**line, **more} for line in found.lines(curve, "n_points")]
        hmc = found.hmc[dim]
        at = {each["n_points"]: each for each in found.curve(PAPER, dim=dim, n_nodes=nodes)}
        title = (
            "median acceptance, the paper's network, by N and its nodes s; "
            f"d = {dim}, HMC {hmc['median']:.2f}, runs: {hmc['runs']}"
        )
        by_n = "by training points: acceptance, and processor seconds of a fit"
        return Report(
            tables={title: heat_map, by_n: by_points},
            printed=[
                (f"acceptance with 500 points, s = {nodes}", "around 0.1", _median(at.get(500))),
                (
                    f"acceptance with 2000 points over HMC's, s = {nodes}",
                    "comparable",
                    found.ratio(at[2000]) if 2000 in at else None,
                ),
                (
                    f"points from which on it is at {LEVEL} of HMC's, s = {nodes}",
                    "around 2000",
                    needed[PAPER],
                ),
            ],
            figures=attrs.asdict(found),
            notes=NOTES,
        )

    def draw(self, finished: Sequence[Finished]) -> Any:
        """Return three panels: acceptance over s and N, over N, and over s."""
        found = Grid.of(finished)
        dim, nodes = section(list(found.hmc), _DIM), section(found.sizes("n_nodes"), 1000)
        n = dict.fromkeys(LABELS, section(found.sizes("n_points"), 1600))
        n[GRADIENTS] = found.most_points()[GRADIENTS]
        sizes, least = found.sizes("n_nodes"), coefficients(dim)
        inside = [[min(m, size) >= least for size in sizes] for m in found.sizes("n_points")]
        with drawing(11.0, 4.2) as figure:
            left, middle, right = figure.subplots(1, 3, width_ratios=(1.45, 1.0, 1.0))
            _heat_map(left, found, "n_points", {"dim": dim}, inside)
            left.set(xlabel="hidden nodes s", ylabel="training points N")
            left.set_title(
                f"acceptance probability, the paper's network, d = {dim};\n"
                "line: as many nodes and points as a quadratic has coefficients"
            )
            middle.axhline(found.hmc[dim]["median"], label="HMC, exact", **line_of(HMC))
            for method in LABELS:
                _curve(middle, found.curve(method, dim=dim, n_nodes=nodes), "n_points")
            title = f"d = {dim}; s = {nodes}"
            middle.set(xscale="log", xlabel="training points N", title=title)
            ticks_among(middle, (10, 30, 100, 300, 1000, 3000, 10_000))
            _over_nodes(right, found, dim, n)
            _finish(figure, found, (middle, right), legend_of=(middle, right))
        return figure


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
        """Return what finished rows say."""
        found = cls(hmc={}, step_sizes={}, tried=[])
        for (dim,), rows in sorted(groups(finished, "dim").items()):
            found.hmc[dim] = _over([row.result["hmc_acceptance"] for row in rows])
            found.step_sizes[dim] = float(np.median([row.result["step_size"] for row in rows]))
            cells: dict[tuple[Any, ...], list[dict[str, float]]] = {}
            for cell in (cell for row in rows for cell in row.result["cells"]):
                key = cell["method"], cell["n_nodes"], cell["n_points"]
                cells.setdefault(key, []).append(cell)
            for key, runs in cells.items():
                one: dict[str, Any] = {"dim": dim}
                one |= dict(zip(("method", "n_nodes", "n_points"), key, strict=True))
                one["acceptance"] = _over([cell["acceptance"] for cell in runs])
                for name in ("nodes_used", "training_seconds"):
                    one[name] = float(np.median([cell[name] for cell in runs]))
                found.tried.append(one)
        return found

    def sizes(self, of: str, method: str = PAPER) -> list[int]:
        """Return the sizes (``dim``, ``n_nodes``, ``n_points``) a method was tried at, rising."""
        found = {each[of] for each in self.tried if each["method"] == method}
        return sorted(size for size in found if size is not None)

    def most_points(self) -> dict[str, int]:
        """Return the largest N of each surrogate."""
        return {method: max(self.sizes("n_points", method)) for method in LABELS}

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
        found = {each["n_nodes"]: _median(each) for each in self.curve(PAPER, **at)}
        return {f"s = {size}": found.get(size) for size in self.sizes("n_nodes")}


def _median(each: Mapping[str, Any] | None) -> float | None:
    return None if each is None else float(each["acceptance"]["median"])


def _over(numbers: Sequence[float]) -> dict[str, float]:
    return {"runs": len(numbers), **quantiles(numbers), "mean": float(np.mean(numbers))}


def coefficients(dim: int) -> int:
    """Return how many coefficients a polynomial of second order has, (d + 1)(d + 2) / 2."""
    return (dim + 1) * (dim + 2) // 2


def section(sizes: Sequence[int], preferred: int) -> int:
    """Return the paper's size for a section through the grid; the largest where it is not there."""
    return preferred if preferred in sizes else max(sizes)


# --- pictures ---


def _heat_map(
    ax: Any, found: Grid, rows: str, at: Mapping[str, int], inside: Sequence[Sequence[bool]]
) -> None:
    """Draw the network's acceptance at one size, and a line around the cells that are inside."""
    heights, nodes = found.sizes(rows), found.sizes("n_nodes")
    known = {(e[rows], e["n_nodes"]): e["acceptance"]["median"] for e in found.curve(PAPER, **at)}
    grid = np.array([[known.get((height, size), np.nan) for size in nodes] for height in heights])
    top = float(np.ceil(20.0 * np.nanmax(grid, initial=0.05)) / 20.0)
    # even steps of lightness, also for readers who do not tell all colours apart
    image = ax.imshow(grid, origin="lower", aspect="auto", cmap="cividis", vmin=0.0, vmax=top)
    ax.set_xticks(range(len(nodes)), [str(size) for size in nodes])
    ax.set_yticks(range(len(heights)), [str(size) for size in heights])
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
    ax.figure.colorbar(image, ax=ax)


def _curve(ax: Any, curve: Sequence[Mapping[str, Any]], over: str) -> None:
    """Draw the acceptance of a surrogate over a size, if it was tried there."""
    if curve:
        method = curve[0]["method"]
        over_runs = [each["acceptance"] for each in curve]
        look = {"label": LABELS[method], **LOOKS[method]}
        error_bars(ax, [each[over] for each in curve], over_runs, **look)


def _over_nodes(ax: Any, found: Grid, dim: int, n: Mapping[str, int]) -> None:
    """Draw the network over s, and lines for what has no s; n is N by surrogate."""
    ax.axhline(found.hmc[dim]["median"], **line_of(HMC))
    _curve(ax, found.curve(PAPER, dim=dim, n_points=n[PAPER]), "n_nodes")
    for method in (VALUES, GRADIENTS):
        for each in found.curve(method, dim=dim, n_points=n[method]):
            ax.axhline(each["acceptance"]["median"], **line_of(method))
    ax.set(xlabel="hidden nodes s of the paper's network")
    ax.set_title(f"d = {dim}; N = {n[PAPER]}, with gradients {n[GRADIENTS]}")


def _finish(figure: Any, found: Grid, axes: Sequence[Any], *, legend_of: Sequence[Any]) -> None:
    for ax in axes:
        top = 1.15 * max(hmc["high"] for hmc in found.hmc.values())
        ax.set(ylim=(0.0, top), ylabel="acceptance probability")
    common_legend(figure, legend_of)
