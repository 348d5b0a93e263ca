"""Whether the intervals of weighted answers hold: many runs, and the truth beside them.

Each repeat explores, learns, weighs and corrects anew, with another seed. Where draws of a target
can be made directly, the truth is that of a million of them. Else it is that of a long run of
sub-chains, on each draw of which the exact potential decides. With ``--exact 0`` it is the average
of all repeats, which sees no error that all share. Intervals are of 95 %. It asserts nothing.

    python benchmarks/intervals.py banana lynx-hare-250 --repeats 40 --folder intervals

Repeats and long runs are kept in the folder, and are not done again.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, TypeAlias

import attrs
import click
import numpy as np

import surrokit as sk
from surrokit import capabilities as can
from surrokit.targets.bounds import BoundedPotential
from surrokit.types import Capabilities
from surrokit_problems.lynx_hare import LynxHare

BENDS, NARROW = np.array([0.5, -0.3, 0.2]), 0.5
DIRECT = 1_000_000


def banana():
    """Return a normal number, and three that lie about multiples of its square."""

    def both(q):
        away = (q[:, 1:] - BENDS * (np.square(q[:, :1]) - 1.0)) / NARROW**2
        slopes = np.empty_like(q)
        slopes[:, 0] = q[:, 0] * (1.0 - 2.0 * away @ BENDS)
        slopes[:, 1:] = away
        squares = np.square(q[:, 0]) + np.square(NARROW * away).sum(axis=1)
        return 0.5 * squares, slopes

    return sk.potential(value_and_gradient=both, dim=4, batched=True)


def draw_banana(rng):
    """Return direct draws of it."""
    q = rng.standard_normal((DIRECT, 4))
    q[:, 1:] = NARROW * q[:, 1:] + BENDS * (np.square(q[:, :1]) - 1.0)
    return q


class MapOfLynxHare(LynxHare):
    """The Lotka-Volterra model without its Jacobian."""

    capabilities: ClassVar[Capabilities] = frozenset({can.FORWARD, can.INITIAL})


def lynx_hare_by_map():
    """Return the posterior of the pelts, whose map to populations has no derivatives."""
    return BoundedPotential(MapOfLynxHare(), LynxHare.parameters)


@attrs.frozen
class Problem:
    """A target, the calls that it may cost, and direct draws of it where there are any.

    Where an error is aimed at, a run may end before it has used its calls.
    """

    target: Callable[[], object]
    max_calls: int
    draw: Callable[[np.random.Generator], np.ndarray] | None = None
    aim: float = 0.008


PROBLEMS = {
    "banana": Problem(banana, 300, draw_banana, aim=0.02),
    "lynx-hare-250": Problem(lambda: "lynx-hare", 250),
    "lynx-hare-map": Problem(lynx_hare_by_map, 500),
    "elliptic-pde-fine": Problem(lambda: "elliptic-pde", 300),
    "elliptic-pde-map": Problem(
        lambda: sk.make("potential", "elliptic-pde", derivatives=False), 500
    ),
}
"""By name."""

FIGURES = ("mean", "sd", "q05", "q50", "q95")
PARTS = {"sampler": "sub-chain", "explorer": "rounds", "progress": False}
LONG_SEED = 1_000_003
SPREADS = (1.0, 0.71, 2.11, 1.25, 2.11)
"""Errors of the figures of independent normal draws, over that of the mean."""


def repeat(problem: Problem, seed: int) -> dict[str, np.ndarray]:
    """Return figures and half intervals of one run, shape (figures, dim); none where refused."""
    began = time.perf_counter()
    run = sk.sample(
        problem.target(),
        surrogate="additive",
        correction="weights",
        max_calls=problem.max_calls,
        seed=seed,
        budget=sk.Budget(target_mcse=problem.aim),
        **PARTS,
    )
    return outcome_of(run, time.perf_counter() - began)


def outcome_of(run, seconds: float) -> dict[str, np.ndarray]:
    """Return figures and half intervals of a run of some seconds; none where it is refused."""
    spent = {"calls": np.array(run.total_calls), "seconds": np.array(seconds)}
    warned = {"warned": np.array([each.name for each in run.verdict.warnings], dtype=np.str_)}
    if run.answer is None:
        return {**spent, **warned}
    named = [run.weights.figures.named[name] for name in FIGURES]
    ends = [each.interval() for each in named]
    return {
        **spent,
        **warned,
        "value": np.array([each.value for each in named]),
        "half": np.array([0.5 * (high - low) for low, high in ends]),
        "error": np.array([each.error for each in named]),
    }


Truth: TypeAlias = tuple[np.ndarray, np.ndarray]
"""Figures and their own errors, each of shape (figures, dim)."""


def truth_of(name: str, exact: int, folder: Path) -> Truth | None:
    """Return what direct or exact draws say; None for no draws."""
    problem, path = PROBLEMS[name], folder / f"{name}-truth-{exact}.npy"
    if problem.draw is not None:
        figures = figures_of(problem.draw(np.random.default_rng(0)))
        return figures, np.zeros_like(figures)
    if not exact:
        return None
    if not path.exists():
        run = sk.sample(
            problem.target(), surrogate="additive", draws=exact, seed=LONG_SEED, **PARTS
        )
        said = "; ".join(each.message for each in run.verdict.warnings) or "no warning"
        click.echo(
            f"{name}, exact draws: R-hat {run.rhat().max():.4f}, ESS {run.ess().min():.0f}, {said}"
        )
        np.save(path, of_exact_draws(run))
    values, errors = np.load(path)
    return values, errors


def of_exact_draws(run: sk.Run) -> np.ndarray:
    """Return figures and their errors, shape (2, figures, dim), sharpened where that is safe."""
    sharpened = sk.sharpen(run, seed=LONG_SEED).sharpened
    if sharpened is None:
        values = figures_of(run.draws.reshape(-1, run.draws.shape[2]))
        return np.array([values, np.outer(SPREADS, values[1] / np.sqrt(run.ess()))])
    found = [sharpened.figures.named[each] for each in FIGURES]
    return np.array([[each.value for each in found], [each.error for each in found]])


def figures_of(draws: np.ndarray) -> np.ndarray:
    """Return the figures of draws (n, dim), shape (figures, dim)."""
    quantiles = np.quantile(draws, [0.05, 0.5, 0.95], axis=0)
    return np.array([draws.mean(axis=0), draws.std(axis=0), *quantiles])


def tell(name: str, truth: Truth | None, found: list[dict[str, np.ndarray]]) -> None:
    """Print how often intervals hold, and how large errors are, in sds."""
    reliable = [each for each in found if "value" in each]
    calls = np.mean([each["calls"] for each in found])
    click.echo(
        f"{name}: {len(found)} runs, {calls:.0f} calls each, {len(found) - len(reliable)} refused"
    )
    if len(reliable) < 2:
        return
    values, halves, errors = (
        np.array([each[key] for each in reliable]) for key in ("value", "half", "error")
    )
    n = len(reliable)
    if truth is None:
        off = np.abs(values - values.mean(axis=0)) / np.sqrt((n - 1) / n)
        sd = values[:, 1].mean(axis=0)
    else:
        off, sd = np.abs(values - truth[0]), truth[0][1]
        halves = np.hypot(halves, 2.0 * truth[1])
    off, told = off / sd, errors / sd
    silent = np.array([not len(each["warned"]) for each in reliable])
    _tell_hits("all", off <= halves / sd)
    if 0 < silent.sum() < n:
        _tell_hits("without warnings", (off <= halves / sd)[silent])
    rms = np.sqrt(np.mean(np.square(off), axis=(0, 2)))
    largest = off.max(axis=(1, 2))
    parts = [f"{figure} {part:.4f}" for figure, part in zip(FIGURES, rms, strict=True)]
    click.echo(
        f"    rms errors in sds: {', '.join(parts)}; told {np.median(told[np.isfinite(told)]):.4f}"
    )
    click.echo(
        f"    largest error of a run: median {np.median(largest):.3f}, worst {largest.max():.3f}, "
        f"worst without a warning {largest[silent].max(initial=0.0):.3f}; "
        f"largest error told: median {np.median(told.max(axis=(1, 2))):.3f}"
    )


def _tell_hits(of: str, hits: np.ndarray) -> None:
    parts = zip(FIGURES, hits.mean(axis=(0, 2)), strict=True)
    each = ", ".join(f"{figure} {part:.1%}" for figure, part in parts)
    click.echo(
        f"    intervals hold, {of} {len(hits)}: {each}; of {hits.size} figures {hits.mean():.1%}"
    )


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(PROBLEMS)))
@click.option("--repeats", default=10, show_default=True)
@click.option("--folder", default="intervals", show_default=True, type=click.Path(path_type=Path))
@click.option("--exact", default=10_000, show_default=True, help="Draws of each of four chains.")
def main(names: tuple[str, ...], repeats: int, folder: Path, exact: int) -> None:
    """Print how often intervals of weighted answers hold."""
    warnings.simplefilter("ignore", sk.errors.SamplingWarning)
    folder.mkdir(exist_ok=True)
    for name in names or PROBLEMS:
        found = []
        for seed in range(1, repeats + 1):
            path = folder / f"{name}-{seed}.npz"
            if not path.exists():
                np.savez(path, **repeat(PROBLEMS[name], seed))
            with np.load(path) as kept:
                found.append(dict(kept))
        tell(name, truth_of(name, exact, folder), found)


if __name__ == "__main__":
    main()
