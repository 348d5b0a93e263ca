"""Figures 4 and 5: acceptance of HMC on surrogates of many sizes.

For each number of parameters d exact HMC, past its burn-in, gets the step size at which it accepts
70 % of its proposals. The new states of one exact chain are the training points. Networks with s
nodes are fitted to the first N of them. Short chains of HMC then run on each from draws of the
target, with the step size of the exact one, and the exact potential decides.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, ClassVar

import attrs
import numpy as np

import surrokit as sk
from surrokit.errors import SamplingWarning
from surrokit.potentials import GradientPotential, Potential
from surrokit.types import FloatArray
from surrokit_paper.chains import NO_RESCUE, hmc
from surrokit_paper.harness import (
    Case,
    Cell,
    Conditions,
    Figure,
    Report,
    Row,
    groups,
    median,
    over_repeats,
)
from surrokit_paper.methods import HMC, Method, by_name, evaluated
from surrokit_paper.pictures import (
    LOOKS,
    common_legend,
    drawing,
    error_bars,
    line_of,
    ticks_among,
)

METHODS = by_name(
    Method("paper", "the paper's network, values alone", "additive-paper"),
    Method("additive-default", "surrokit's defaults, values alone"),
    Method("additive-gradients", "surrokit's defaults, gradients too", gradients=True),
)
"""In the order of tables and legends; the paper's has raw coordinates, no trend, a fixed ridge and
s nodes, and the others choose s themselves."""

PAPER, VALUES, GRADIENTS = METHODS

LEVEL = 0.9
"""Part of HMC's acceptance that counts as comparable to it."""

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
class AcceptanceGrid(Figure):
    """Surrogates of simulated logistic regressions, and how often proposals on them are accepted.

    Acceptance is shown over nodes and one other size, ``over``, with the third at its largest.
    """

    grid = ("dims", "repeats")
    over: ClassVar[str]
    nodes: ClassVar[int]  # where the curves over this size are cut
    cut: ClassVar[int]  # where the curves over nodes are cut, if that size is there

    dims: tuple[int, ...] = (32,)  # d: numbers of parameters
    n_nodes: tuple[int, ...] = (2000,)  # s: nodes of the paper's network
    n_points: tuple[int, ...] = (4000,)  # N: points of surrogates that see values alone
    gradient_points: tuple[int, ...] = (200,)  # of those that see gradients too
    repeats: int = 10  # each with chains and networks of its own; the data are the same
    n_rows: int = 10_000  # of the simulated data, which the paper does not say
    ridge: float = 1e-6  # of the paper's network
    acceptance: float = 0.7  # of exact HMC
    n_steps: int = 6  # at most; drawn from {1, ..., n_steps} in each iteration
    burn_in: int = 100  # exact iterations from 0, with a step size that is tuned
    chains: int = 50  # over which acceptance probabilities are averaged
    iterations: int = 20

    def cases(self) -> list[Case]:
        """Return a case for each number of parameters in each repeat."""
        return [
            {"dim": dim, "repeat": repeat}
            for repeat in range(1, self.repeats + 1)
            for dim in self.dims
        ]

    def run(self, case: Case, conditions: Conditions) -> dict[str, Any]:
        """Run exact HMC, fit all surrogates to its new states, and try each."""
        dim, repeat = int(case["dim"]), case["repeat"]
        trial = self.trial(dim, conditions.generator("trial", dim, repeat))
        points = trial.training_points(
            max(self.n_points + self.gradient_points), conditions.generator("chain", dim, repeat)
        )
        tried: list[Row] = [
            {"method": HMC, "n_nodes": None, "n_points": 0, "acceptance": trial.acceptance()}
        ]
        for method, n_nodes, n in self._sizes():
            settings = {} if n_nodes is None else {"n_nodes": n_nodes, "ridge": self.ridge}
            learner = attrs.evolve(METHODS[method], settings=settings)
            fit = learner.train(points.take(slice(n)), conditions.generator("fit", dim, repeat))
            network: Any = fit.potential
            tried.append(
                {
                    "method": method,
                    "n_nodes": n_nodes,
                    "n_points": n,
                    "nodes_used": network.n_nodes,
                    "acceptance": trial.acceptance(network),
                    "training_seconds": fit.seconds,
                }
            )
        return {"step_size": trial.step_size, "tried": tried}

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

    def _sizes(self) -> Iterator[tuple[str, int | None, int]]:
        """Yield name and nodes of a surrogate, and the number of its training points."""
        for n in self.n_points:
            for n_nodes in self.n_nodes:
                yield PAPER, n_nodes, n
            yield VALUES, None, n
        for n in self.gradient_points:
            yield GRADIENTS, None, n

    def report(self, rows: Sequence[Row]) -> Report:
        """Return the heat map as a table, every surrogate by size, and the paper's statements."""
        found = Tried(rows, self)
        heat_map = [
            {
                "d": dim,
                "N": n,
                "coefficients of a quadratic": coefficients(dim),
                "HMC": found.exact(dim),
                **{
                    f"s = {size}": median(found.where(runs, n_nodes=size), "acceptance")
                    for size in found.sizes
                },
            }
            for (dim, n), runs in groups(found.of(PAPER), "dim", "n_points").items()
        ]
        by_size: list[dict[str, Cell]] = []
        for method in METHODS:
            for runs in found.curve(method).values():
                spread = over_repeats(runs, "acceptance") or {}
                by_size.append(
                    {
                        "surrogate": METHODS[method].label,
                        "s": median(runs, "nodes_used"),
                        "N": runs[0]["n_points"],
                        "d": runs[0]["dim"],
                        "10 %": spread["low"],
                        "median": spread["median"],
                        "90 %": spread["high"],
                        "training, s": median(runs, "training_seconds"),
                    }
                )
        return Report(
            tables={
                "median acceptance, the paper's network from values, by its nodes s": heat_map,
                "by size: acceptance, and processor seconds of a fit": by_size,
            },
            printed=self.printed(found),
        )

    @abstractmethod
    def printed(self, found: Tried) -> list[tuple[str, Cell, Cell]]:
        """Return the paper's statements, each beside ours."""

    def draw(self, rows: Sequence[Row]) -> Any:
        """Return three panels: acceptance over nodes and the size, over the size, over nodes."""
        found = Tried(rows, self)
        axis = {"dim": "parameters d", "n_points": "training points N"}[self.over]
        with drawing(11.0, 4.2) as figure:
            left, middle, right = figure.subplots(1, 3, width_ratios=(1.4, 1.0, 1.0))
            _heat_map(left, found)
            left.set(xlabel="hidden nodes s", ylabel=axis)
            left.set_title(
                "acceptance probability, the paper's network; line: as many\n"
                "nodes and points as a quadratic has coefficients"
            )
            _exact(middle, found)
            for method in METHODS:
                _curve(middle, method, found.curve(method))
            middle.set(xlabel=axis, title=f"s = {found.nodes}")
            if self.over == "n_points":
                middle.set_xscale("log")
                ticks_among(middle, (10, 30, 100, 300, 1000, 3000, 10_000))
            by_nodes, d = groups(found.cut, "n_nodes"), found.cut[0]["dim"]
            right.axhline(found.exact(d), **line_of(HMC))
            _curve(right, PAPER, {size: runs for (size,), runs in sorted(by_nodes.items())})
            right.set(xlabel="hidden nodes s of the paper's network")
            right.set_title(f"d = {d}; N = {found.cut[0]['n_points']}")
            top = 1.15 * max(row["acceptance"] for row in found.of(HMC))
            for ax in (middle, right):
                ax.set(ylim=(0.0, top), ylabel="acceptance probability")
            common_legend(figure, (middle, right))
        return figure


class Tried:
    """What finished cases tried, each with its ``dim``, of the sizes that are shown."""

    def __init__(self, rows: Sequence[Row], figure: AcceptanceGrid) -> None:
        tried = [{"dim": row["dim"], **one} for row in rows for one in row["tried"]]
        third = "n_points" if figure.over == "dim" else "dim"
        most = {m: max(one[third] for one in self.where(tried, method=m)) for m in (HMC, *METHODS)}
        self.over = figure.over
        self.shown = [one for one in tried if one[third] == most[one["method"]]]
        self.sizes = sorted({one["n_nodes"] for one in self.of(PAPER)})
        self.nodes = figure.nodes if figure.nodes in self.sizes else self.sizes[-1]
        heights = {one[figure.over] for one in self.of(PAPER)}
        height = figure.cut if figure.cut in heights else max(heights)
        self.cut = self.where(self.of(PAPER), **{figure.over: height})

    @staticmethod
    def where(rows: Sequence[Row], **at: Any) -> list[Row]:
        """Return the rows at which sizes and methods are these."""
        return [row for row in rows if all(row[key] == value for key, value in at.items())]

    def of(self, method: str) -> list[Row]:
        """Return what a method tried."""
        return self.where(self.shown, method=method)

    def exact(self, dim: int) -> float:
        """Return the median acceptance of exact HMC."""
        return median(self.where(self.of(HMC), dim=dim), "acceptance") or 0.0

    def curve(self, method: str) -> dict[int, list[Row]]:
        """Return size to runs of a method, of the paper's network with the nodes of the cut."""
        rows = [row for row in self.of(method) if row["n_nodes"] in (self.nodes, None)]
        return {size: runs for (size,), runs in sorted(groups(rows, self.over).items())}

    def ratio(self, runs: Sequence[Row]) -> float:
        """Return the median acceptance on a surrogate over exact HMC's."""
        return (median(runs, "acceptance") or 0.0) / self.exact(runs[0]["dim"])


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
    over, nodes, cut = "dim", 2000, 32

    dims: tuple[int, ...] = (8, 16, 24, 32, 40, 48, 56, 64)
    n_nodes: tuple[int, ...] = (100, 250, 500, 1000, 1500, 2000)

    def printed(self, found: Tried) -> list[tuple[str, Cell, Cell]]:
        """Return the acceptance of HMC, and up to which d the network's is comparable."""
        curve, s = found.curve(PAPER), found.nodes
        # 48 is the size of ours that is nearest to the paper's "about 50"
        near, dim = curve.get(48, []), found.cut[0]["dim"]
        reached = list(takewhile(lambda d: found.ratio(curve[d]) >= LEVEL, curve))
        up_to = f"largest d, of those tried, up to which s = {s} has {LEVEL} of HMC's"
        relatively = "relatively high up to d of about 50"
        return [
            (f"acceptance of HMC at this step size, d = {dim}", "around 0.7", found.exact(dim)),
            (f"acceptance at d = 48, s = {s}", relatively, median(near, "acceptance")),
            (up_to, "about 50", reached[-1] if reached else None),
            (
                f"training at d = 48, s = {s}, in seconds",
                "a few",
                median(near, "training_seconds"),
            ),
        ]


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
    over, nodes, cut = "n_points", 1000, 1600

    n_nodes: tuple[int, ...] = (100, 250, 500, 750, 1000, 1500, 2000)
    n_points: tuple[int, ...] = (200, 350, 500, 750, 1000, 1250, 1600, 2000, 3000)
    gradient_points: tuple[int, ...] = (10, 25, 50, 100, 200)

    def printed(self, found: Tried) -> list[tuple[str, Cell, Cell]]:
        """Return the acceptance with few and many points, and from where on it is comparable."""
        curve, s = found.curve(PAPER), found.nodes
        below = max((n for n, runs in curve.items() if found.ratio(runs) < LEVEL), default=0)
        since = next((n for n in curve if n > below), None)
        few = median(curve.get(500, []), "acceptance")
        many = found.ratio(curve[2000]) if 2000 in curve else None
        return [
            (f"acceptance with 500 points, s = {s}", "around 0.1", few),
            (f"acceptance with 2000 points over HMC's, s = {s}", "comparable", many),
            (f"points from which on it is at {LEVEL} of HMC's, s = {s}", "around 2000", since),
        ]


def coefficients(dim: int) -> int:
    """Return how many coefficients a polynomial of second order has, (d + 1)(d + 2) / 2."""
    return (dim + 1) * (dim + 2) // 2


def _heat_map(ax: Any, found: Tried) -> None:
    """Draw the network's acceptance, and a line around the cells where a quadratic fits."""
    cells = groups(found.of(PAPER), found.over, "n_nodes")
    heights = sorted({height for height, _ in cells})
    numbers = {at: median(runs, "acceptance") for at, runs in cells.items()}
    grid = np.array([[numbers.get((h, s)) for s in found.sizes] for h in heights], dtype=float)
    top = float(np.ceil(20.0 * np.nanmax(grid, initial=0.05)) / 20.0)
    # even steps of lightness, also for readers who do not tell all colours apart
    image = ax.imshow(grid, origin="lower", aspect="auto", cmap="cividis", vmin=0.0, vmax=top)
    ax.set_xticks(range(len(found.sizes)), [str(size) for size in found.sizes])
    ax.set_yticks(range(len(heights)), [str(size) for size in heights])
    ax.tick_params(length=0)
    within = np.zeros(grid.shape, dtype=bool)
    for (i, j), number in np.ndenumerate(grid):
        if np.isfinite(number):
            colour = "white" if number < 0.5 * top else "black"
            ax.text(j, i, f"{number:.2f}", ha="center", va="center", color=colour, fontsize=8)
            one = cells[heights[i], found.sizes[j]][0]
            within[i, j] = min(one["n_points"], one["n_nodes"]) >= coefficients(one["dim"])
    across, along = within[:, 1:] != within[:, :-1], within[1:] != within[:-1]
    edges = [([j + 0.5, j + 0.5], [i - 0.5, i + 0.5]) for i, j in np.argwhere(across)]
    edges += [([j - 0.5, j + 0.5], [i + 0.5, i + 0.5]) for i, j in np.argwhere(along)]
    for x, y in edges:
        ax.plot(x, y, color="white", linewidth=2.2, solid_capstyle="projecting")
    ax.figure.colorbar(image, ax=ax)


def _exact(ax: Any, found: Tried) -> None:
    exact = {dim: found.exact(dim) for (dim,) in sorted(groups(found.of(HMC), "dim"))}
    if found.over == "dim":
        ax.plot(list(exact), list(exact.values()), label="HMC, exact", **LOOKS[HMC])
        ax.set_xticks(list(exact))
    else:
        ax.axhline(next(iter(exact.values())), label="HMC, exact", **line_of(HMC))


def _curve(ax: Any, method: str, curve: Mapping[int, Sequence[Row]]) -> None:
    spreads = [over_repeats(runs, "acceptance") or {} for runs in curve.values()]
    error_bars(ax, list(curve), spreads, label=METHODS[method].label, **LOOKS[method])
