"""Figure 4, section 3.4: acceptance of HMC on surrogates, over nodes s and parameters d.

For each number of parameters d exact HMC, past its burn-in, gets the step size at which it accepts
70 % of its proposals. The new states of one exact chain are the training points. Networks with s
nodes are fitted to the first N of them. Short chains of HMC then run on each from draws of the
target, with the step size of the exact one, and the exact potential decides. N is "sufficiently
large". The paper's axes have no numbers. Figure 5 does the same over s and N.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import takewhile
from types import SimpleNamespace
from typing import Any

import numpy as np

import surrokit as sk
from surrokit.errors import SamplingWarning
from surrokit.potentials import Potential
from surrokit.types import FloatArray
from surrokit_paper.chains import (
    NO_REPAIR,
    Row,
    evaluated,
    generator,
    groups,
    hmc,
    median,
    quantiles,
    train,
)
from surrokit_paper.pictures import LOOKS, NAMES, common_legend, drawing, error_bars, line_of

TITLE = "Figure 4: acceptance against hidden nodes and number of parameters"

FULL: dict[str, Any] = {
    "dims": (8, 16, 24, 32, 40, 48, 56, 64),  # d
    "n_nodes": (100, 250, 500, 1000, 1500, 2000),  # s: nodes of the paper's network
    "n_points": (4000,),  # N: points of surrogates that see values alone
    "gradient_points": (200,),  # of those that see gradients too
    "repeats": 10,  # each with chains and networks of its own; the data are the same
    "n_rows": 10_000,  # of the simulated data, which the paper does not say
    "ridge": 1e-6,  # of the paper's network
    "acceptance": 0.7,  # of exact HMC
    "n_steps": 6,  # at most; drawn from {1, ..., n_steps} in each iteration
    "burn_in": 100,  # exact iterations from 0, with a step size that is tuned
    "chains": 50,  # over which acceptance probabilities are averaged
    "iterations": 20,
    "over": "dim",  # the size of the heat map's other axis
    "cuts": (2000, 32),  # nodes, and that size, at which curves over the other are shown
}
QUICK: dict[str, Any] = {
    "dims": (8, 16, 32),
    "n_nodes": (100, 500, 1000),
    "n_points": (1500,),
    "repeats": 1,
}

BLOCK = 500
"""Iterations at a time of the chain that gives training points."""


def cases(sizes: SimpleNamespace) -> list[Row]:
    """Return a case for each number of parameters in each repeat."""
    repeats = range(1, sizes.repeats + 1)
    return [{"dim": dim, "repeat": repeat} for repeat in repeats for dim in sizes.dims]


def run(case: Row, sizes: SimpleNamespace) -> Row:
    """Run exact HMC, fit all surrogates to its new states, and try each.

    All take the same starts, numbers of steps, and momenta where chains have not parted yet, so
    that they differ by the surrogate.
    """
    dim, repeat = case.values()
    rng = generator(sizes.seed, "trial", dim, repeat)
    target = sk.make("potential", "simulated-logistic", n_rows=sizes.n_rows, dim=dim)
    tuned = {"target_acceptance": sizes.acceptance, "n_steps": sizes.n_steps}
    lengths = {"chains": sizes.chains, "warmup": sizes.burn_in, "draws": 1}
    exact = hmc(target, tuned, np.zeros(dim), rng, **lengths)
    starts, seed = exact.draws[:, -1], int(rng.integers(2**32))
    accepts = partial(acceptance, target, starts, seed, sizes)
    step = step_size(accepts, float(exact.kept.step_size[-1]), sizes.acceptance)
    most, rng = (
        max(sizes.n_points + sizes.gradient_points),
        generator(sizes.seed, "chain", dim, repeat),
    )
    points = training_points(target, starts[-1:], step, most, sizes.n_steps, rng)
    learners: list[tuple[str, int | None, int, dict[str, Any]]] = []
    for n in sizes.n_points:
        for s in sizes.n_nodes:
            network = {"surrogate": "additive-paper", "n_nodes": s, "ridge": sizes.ridge}
            learners.append(("paper", s, n, network))
        learners.append(("values", None, n, {}))
    learners += [("defaults", None, n, {"gradients": True}) for n in sizes.gradient_points]
    tried = [{"method": "hmc", "n_nodes": None, "n_points": 0, "acceptance": accepts(step)}]
    for method, s, n, settings in learners:
        rng = generator(sizes.seed, "fit", dim, repeat)
        surrogate, seconds = train(points.take(slice(n)), rng, **settings)
        of = {"method": method, "n_nodes": s, "n_points": n, "training_seconds": seconds}
        tried.append({**of, "acceptance": accepts(step, surrogate)})
    return {"step_size": step, "tried": tried}


def acceptance(
    target: Potential,
    starts: FloatArray,
    seed: int,
    sizes: SimpleNamespace,
    step: float,
    surrogate: Potential | str = "none",
) -> float:
    """Return the mean acceptance probability on a surrogate, or on the target itself."""
    paths = {"step_size": step, "n_steps": sizes.n_steps}
    lengths = {"chains": len(starts), "warmup": 0, "draws": sizes.iterations}
    more: dict[str, Any] = {"surrogate": surrogate, "schedule": NO_REPAIR, **lengths}
    with warnings.catch_warnings():
        # that next to nothing is accepted is what is looked for here
        warnings.simplefilter("ignore", SamplingWarning)
        run = hmc(target, paths, starts, np.random.default_rng(seed), **more)
    return float(run.kept.acceptance.mean())


def step_size(accepts: Callable[[float], float], step: float, wanted: float) -> float:
    """Return the step size at which exact HMC accepts so much, up to 0.01.

    Found by halving an interval around a step size, on a logarithmic scale.
    """
    low, high = step / 3.0, step * 3.0
    for _ in range(12):
        found = accepts(step)
        if abs(found - wanted) < 0.01:
            break
        low, high = (step, high) if found > wanted else (low, step)
        step = float(np.sqrt(low * high))
    return step


def training_points(
    target: Potential,
    start: FloatArray,
    step: float,
    n: int,
    n_steps: int,
    rng: np.random.Generator,
) -> sk.Evaluations:
    """Return the first n new states of an exact chain from a start (1, dim), with gradients.

    New states are accepted proposals, which is what Algorithm 3 of the paper collects.
    """
    blocks: list[FloatArray] = []
    paths = {"step_size": step, "n_steps": n_steps}
    while sum(map(len, blocks)) < n:
        run = hmc(target, paths, start, rng, warmup=0, draws=BLOCK, surrogate="none")
        blocks.append(run.draws[0][run.kept.accepted[0]])
        start = run.draws[:, -1]
    return evaluated(target, np.concatenate(blocks)[:n])


# --- what came out ---


def tried_of(rows: Sequence[Row]) -> list[Row]:
    """Return what finished cases tried, each with its number of parameters."""
    return [{"dim": row["dim"], **one} for row in rows for one in row["tried"]]


def table(rows: Sequence[Row]) -> list[Row]:
    """Return medians over repeats of each method and size."""
    sizes = ("method", "n_nodes", "n_points", "dim")
    return [
        {
            "surrogate": NAMES[method],
            "s": nodes,
            "N": n or None,
            "d": dim,
            "acceptance": median(runs, "acceptance"),
            "training, s": median(runs, "training_seconds"),
        }
        for (method, nodes, n, dim), runs in groups(tried_of(rows), *sizes).items()
    ]


def curve(rows: Sequence[Row], over: str, method: str, **at: Any) -> dict[Any, list[Row]]:
    """Return size to what a method tried at it, with the sizes in ``at``.

    Of the third size, which should be one, the largest is taken.
    """
    at = {"method": method, **at}
    found = [one for one in tried_of(rows) if all(one[key] == each for key, each in at.items())]
    for third in {"dim", "n_points"} - {over} - at.keys():
        most = max((one[third] for one in found), default=0)
        found = [one for one in found if one[third] == most]
    return {size: runs for (size,), runs in sorted(groups(found, over).items())}


def nodes_of(rows: Sequence[Row], sizes: SimpleNamespace) -> int:
    """Return the number of nodes at which curves are shown: that of the cut, or the most."""
    known: set[int] = {one["n_nodes"] for one in tried_of(rows) if one["method"] == "paper"}
    return sizes.cuts[0] if sizes.cuts[0] in known else max(known)


def exact(rows: Sequence[Row], dim: int) -> float:
    """Return the median acceptance of exact HMC."""
    return median(curve(rows, "dim", "hmc").get(dim, []), "acceptance") or np.nan


def report(rows: Sequence[Row], sizes: SimpleNamespace) -> tuple[dict[str, Any], list[Any]]:
    """Return the table, the acceptance of HMC, and up to which d the network's is comparable."""
    s = nodes_of(rows, sizes)
    found = curve(rows, "dim", "paper", n_nodes=s)
    ratio = {d: (median(of, "acceptance") or 0.0) / exact(rows, d) for d, of in found.items()}
    reached = list(takewhile(lambda d: ratio[d] >= 0.9, found))
    # 48 is the size of ours that is nearest to the paper's "about 50"
    near, dim = found.get(48, []), 32 if 32 in found else max(found)
    return {"medians over repeats": table(rows)}, [
        (f"acceptance of HMC at this step size, d = {dim}", "around 0.7", exact(rows, dim)),
        (
            f"acceptance at d = 48, s = {s}",
            "relatively high up to d of about 50",
            median(near, "acceptance"),
        ),
        (
            f"largest d, of those tried, up to which s = {s} has 0.9 of HMC's",
            "about 50",
            reached[-1] if reached else None,
        ),
        (
            f"training at d = 48, s = {s}, in seconds",
            "a few",
            median(near, "training_seconds"),
        ),
    ]


def draw(rows: Sequence[Row], sizes: SimpleNamespace) -> Any:
    """Return three panels: acceptance over nodes and the other size, over that size, over nodes."""
    s, over = nodes_of(rows, sizes), sizes.over
    axis = {"dim": "parameters d", "n_points": "training points N"}[over]
    heights = list(curve(rows, over, "paper", n_nodes=s))
    height = sizes.cuts[1] if sizes.cuts[1] in heights else heights[-1]
    with drawing(11.0, 4.2) as figure:
        left, middle, right = figure.subplots(1, 3, width_ratios=(1.4, 1.0, 1.0))
        _heat_map(left, {h: curve(rows, "n_nodes", "paper", **{over: h}) for h in heights})
        left.set(xlabel="hidden nodes s", ylabel=axis)
        left.set_title("acceptance probability, the paper's network")
        of_hmc = curve(rows, "dim", "hmc")
        if over == "dim":
            _curve(middle, "hmc", of_hmc)
        else:
            middle.axhline(exact(rows, max(of_hmc)), label=NAMES["hmc"], **line_of("hmc"))
            middle.set_xscale("log")
        for method, nodes in (("paper", s), ("values", None), ("defaults", None)):
            _curve(middle, method, curve(rows, over, method, n_nodes=nodes))
        middle.set(xlabel=axis, title=f"s = {s}")
        _curve(right, "paper", curve(rows, "n_nodes", "paper", **{over: height}))
        dim = height if over == "dim" else max(of_hmc)
        right.axhline(exact(rows, dim), **line_of("hmc"))
        right.set(xlabel="hidden nodes s of the paper's network", title=f"{axis} = {height}")
        for ax in (middle, right):
            ax.set(ylim=(0.0, 1.15 * sizes.acceptance), ylabel="acceptance probability")
        common_legend(figure, (middle, right))
    return figure


def _heat_map(ax: Any, heights: Mapping[int, Mapping[int, list[Row]]]) -> None:
    nodes = sorted({s for of in heights.values() for s in of})
    grid = np.array(
        [[median(of.get(s, []), "acceptance") for s in nodes] for of in heights.values()],
        dtype=np.float64,
    )
    # even steps of lightness, also for readers who do not tell all colours apart
    image = ax.imshow(grid, origin="lower", aspect="auto", cmap="cividis", vmin=0.0, vmax=0.75)
    ax.set_xticks(range(len(nodes)), [str(size) for size in nodes])
    ax.set_yticks(range(len(heights)), [str(size) for size in heights])
    ax.tick_params(length=0)
    for (i, j), number in np.ndenumerate(grid):
        if np.isfinite(number):
            colour = "white" if number < 0.4 else "black"
            ax.text(j, i, f"{number:.2f}", ha="center", va="center", color=colour, fontsize=8)
    ax.figure.colorbar(image, ax=ax)


def _curve(ax: Any, method: str, found: Mapping[int, list[Row]]) -> None:
    if found:
        spreads = [quantiles(runs, "acceptance") for runs in found.values()]
        error_bars(ax, list(found), spreads, LOOKS[method])
