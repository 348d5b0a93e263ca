"""Whether the intervals of weighted answers hold: many runs, and the truth beside them.

Each repeat explores, learns, weighs and corrects anew, with another seed. Where draws of a target
can be made directly, the truth is that of a million of them; else it is the average of all
repeats, which sees no error that all share. Intervals are of 95 %. It asserts nothing.

    python tests/benchmarks/intervals.py banana lynx-hare --repeats 40 --folder intervals

Repeats are kept in the folder, and are not done again.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path

import attrs
import click
import numpy as np

import surrokit as sk

BENDS, NARROW = np.array([0.5, -0.3, 0.2]), 0.5
SCHOOLS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
DEGREES, LINKED = 3.0, 0.7
DIRECT = 1_000_000
FIGURES = ("mean", "sd", "q05", "q50", "q95")


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


def student():
    """Return a Student-t in three dimensions with three degrees of freedom, correlated."""
    precision = np.linalg.inv(np.full((3, 3), LINKED) + (1.0 - LINKED) * np.eye(3))
    power = 0.5 * (DEGREES + 3.0)

    def both(q):
        scaled = q @ precision
        squares = 1.0 + np.sum(q * scaled, axis=1) / DEGREES
        return power * np.log(squares), 2.0 * power * scaled / (DEGREES * squares[:, None])

    return sk.potential(value_and_gradient=both, dim=3, batched=True)


def draw_student(rng):
    """Return direct draws of it."""
    factor = np.linalg.cholesky(np.full((3, 3), LINKED) + (1.0 - LINKED) * np.eye(3))
    normal = rng.standard_normal((DIRECT, 3)) @ factor.T
    return normal / np.sqrt(rng.chisquare(DEGREES, DIRECT) / DEGREES)[:, None]


def eight_schools():
    """Return Rubin's eight schools, non-centred, with half-Cauchy scale 5."""

    def log_density(q):
        mu, log_tau, raw = q[:, 0], q[:, 1], q[:, 2:]
        tau = np.exp(log_tau)
        away = (SCHOOLS - mu[:, None] - tau[:, None] * raw) / ERRORS
        value = -0.5 * np.square(mu / 5.0) - np.log1p(np.square(tau / 5.0)) + log_tau
        value += -0.5 * np.square(raw).sum(axis=1) - 0.5 * np.square(away).sum(axis=1)
        pulls = away / ERRORS
        slopes = np.empty_like(q)
        slopes[:, 0] = -mu / 25.0 + pulls.sum(axis=1)
        of_prior = 1.0 - 2.0 * np.square(tau / 5.0) / (1.0 + np.square(tau / 5.0))
        slopes[:, 1] = of_prior + tau * np.sum(pulls * raw, axis=1)
        slopes[:, 2:] = -raw + tau[:, None] * pulls
        return -value, -slopes

    return sk.potential(value_and_gradient=log_density, dim=10, batched=True)


@attrs.frozen
class Problem:
    """A target, the calls that it may cost, and direct draws of it where there are any."""

    target: Callable[[], object]
    max_calls: int
    draw: Callable[[np.random.Generator], np.ndarray] | None = None
    surrogate: object = "additive"


PROBLEMS = {
    "banana": Problem(banana, 300, draw_banana),
    "student": Problem(student, 200, draw_student),
    "student, few nodes": Problem(student, 200, draw_student, ("additive", {"n_nodes": 5})),
    "eight-schools": Problem(eight_schools, 300),
    "lynx-hare": Problem(lambda: "lynx-hare", 150),
    "elliptic-pde": Problem(lambda: "elliptic-pde", 300),
}


def repeat(problem: Problem, seed: int) -> dict[str, np.ndarray]:
    """Return figures and half intervals of one run, shape (figures, dim); none where refused."""
    began = time.perf_counter()
    run = sk.sample(
        problem.target(),
        sampler="sub-chain",
        surrogate=problem.surrogate,
        explorer="rounds",
        correction="weights",
        max_calls=problem.max_calls,
        seed=seed,
        progress=False,
    )
    spent = {"calls": np.array(run.total_calls), "seconds": np.array(time.perf_counter() - began)}
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


def truth_of(problem: Problem) -> np.ndarray | None:
    """Return the figures of direct draws, shape (figures, dim)."""
    if problem.draw is None:
        return None
    draws = problem.draw(np.random.default_rng(0))
    quantiles = np.quantile(draws, [0.05, 0.5, 0.95], axis=0)
    return np.array([draws.mean(axis=0), draws.std(axis=0), *quantiles])


def tell(name: str, problem: Problem, found: list[dict[str, np.ndarray]]) -> None:
    """Print how often intervals hold, and how large errors are."""
    believed = [each for each in found if "value" in each]
    calls = np.mean([each["calls"] for each in found])
    click.echo(
        f"{name}: {len(found)} runs, {calls:.0f} calls each, {len(found) - len(believed)} refused"
    )
    if len(believed) < 2:
        return
    values, halves, errors = (
        np.array([each[key] for each in believed]) for key in ("value", "half", "error")
    )
    truth, n = truth_of(problem), len(believed)
    sd, shrunk = values[:, 1].mean(axis=0), 1.0
    if truth is None:
        truth, shrunk = values.mean(axis=0), np.sqrt((n - 1) / n)
    else:
        sd = truth[1]
    off = np.abs(values - truth)
    hits = off <= halves * shrunk
    each = ", ".join(
        f"{figure} {part:.1%}" for figure, part in zip(FIGURES, hits.mean(axis=(0, 2)), strict=True)
    )
    rms = np.sqrt(np.mean(np.square(off / shrunk / sd), axis=(0, 2)))
    click.echo(f"    intervals hold: {each}; of all {hits.size} {hits.mean():.1%}")
    told = errors / sd
    parts = [f"{figure} {part:.4f}" for figure, part in zip(FIGURES, rms, strict=True)]
    click.echo(
        f"    rms errors in sds: {', '.join(parts)}; told {np.median(told[np.isfinite(told)]):.4f}"
    )
    warned = [bool(len(one["warned"])) for one in believed]
    click.echo(f"    {sum(warned)} of {n} warned; worst run off by {np.max(off / sd):.3f} sd")


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(PROBLEMS)))
@click.option("--repeats", default=10, show_default=True)
@click.option("--folder", default="intervals", show_default=True, type=click.Path(path_type=Path))
def main(names: tuple[str, ...], repeats: int, folder: Path) -> None:
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
        tell(name, PROBLEMS[name], found)


if __name__ == "__main__":
    main()
