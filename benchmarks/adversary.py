"""Every kernel on every target of ``tests/invariance/exact_starts``, and the largest z-scores.

Chains begin at exact draws of each target. Some transitions later, what is compared should differ
by chance alone. Prints the tables that the page "Why draws are exact" sums up, in Markdown; the
whole grid takes less than ten minutes, the kernels that are broken on purpose a few seconds.

    python benchmarks/adversary.py
    python benchmarks/adversary.py --broken
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import numpy as np
from scipy.special import ndtr, ndtri

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "invariance"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "controls"))

from exact_starts.broken import CONTROLS
from exact_starts.densities import CASES
from exact_starts.trying import KERNELS, LONG, POTENTIALS, SHORT, Outcome, Size, tried

LARGEST = 38.0
"""The z-score of the least probability that is a number."""

Grid = dict[str, dict[str, list[Outcome]]]
"""Kernel to target to what came of it on each potential."""


def grid(size: Size) -> Grid:
    """Try everything, and tell of each kernel on standard error."""
    found: Grid = {}
    for kernel in KERNELS:
        found[kernel.name] = {case.name: tried(case, kernel, size) for case in CASES}
        click.echo(f"{kernel.name}: {largest(outcomes(found, kernel.name)):.2f}", err=True)
    return found


def outcomes(found: Grid, kernel: str) -> list[Outcome]:
    """Return all outcomes of a kernel."""
    return [one for several in found[kernel].values() for one in several]


def z_scores(of: Outcome) -> list[float]:
    """Return the sizes of standard normals that are as improbable as what was seen."""
    with np.errstate(divide="ignore"):
        return [min(-ndtri(0.5 * one.p_value), LARGEST) for one in of.verdict.comparisons]


def largest(several: Sequence[Outcome]) -> float:
    """Return the largest z-score of some outcomes."""
    return max(z for one in several for z in z_scores(one))


def targets() -> Iterator[tuple[str, ...]]:
    """Yield the rows of the table of targets."""
    yield "target", "what it is hard on"
    for case in CASES:
        yield case.name, str(case.density.__doc__).partition("\n")[0]


def scores(found: Grid) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the table of z-scores."""
    yield "largest z", *found
    for case in CASES:
        several = [found[kernel][case.name] for kernel in found]
        yield case.name, *(f"{largest(one):.1f}" if one else "" for one in several)


def kernels(found: Grid, size: Size) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the table of kernels: how many chains, and what was accepted."""
    yield "acceptance", "chains", *POTENTIALS
    for kernel in KERNELS:
        shares = {name: [] for name in POTENTIALS}
        for one in outcomes(found, kernel.name):
            shares[one.potential].append(one.acceptance)
        yield kernel.name, f"{size.chains(kernel):,}", *map(between, shares.values())


def between(shares: list[float]) -> str:
    """Return the least and the largest of some shares."""
    ends = sorted({f"{min(shares):.2f}", f"{max(shares):.2f}"}) if shares else []
    return " to ".join(ends)


def broken() -> Iterator[tuple[str, ...]]:
    """Yield the rows of the table of kernels that are broken on purpose."""
    yield "broken", "kernel", "moves on", "target", "chains", "largest z", "unbroken"
    for control in CONTROLS:
        chains = f"{control.size.chains(control.sound):,}"
        both = [largest([control.outcome(broken=spoilt)]) for spoilt in (True, False)]
        scores = [f"{z:.1f}" if z < LARGEST else f"over {LARGEST:.0f}" for z in both]
        yield control.what, control.kernel, control.potential, control.case, chains, *scores


def markdown(rows: Iterator[tuple[str, ...]]) -> str:
    """Return a table."""
    head, *others = rows
    lines = [head, ("---",) * len(head), *others]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def chance(n: int, probability: float) -> float:
    """Return what the largest of n independent z-scores exceeds with some probability."""
    return float(-ndtri(-0.5 * np.expm1(np.log1p(-probability) / n)))


def conclusion(found: Grid, size: Size) -> str:
    """Return in words what the z-scores say together."""
    z = np.array([z for kernel in found for one in outcomes(found, kernel) for z in z_scores(one)])
    combinations = sum(len(outcomes(found, kernel)) for kernel in found)
    return (
        f"{combinations} combinations of target, kernel and potential, {size.n_transitions} "
        f"transitions each, {len(z):,} z-scores. The largest is {z.max():.2f}; of so many that "
        f"are independent it would be above {chance(len(z), 0.5):.2f} in one of two grids, and "
        f"above {chance(len(z), 0.05):.2f} in one of twenty. {(z > 3).sum()} are above 3, where "
        f"chance gives {2 * ndtr(-3) * len(z):.0f}."
    )


@click.command()
@click.option("--broken", "spoilt", is_flag=True, help="Only kernels broken on purpose.")
@click.option("--short", is_flag=True, help="As many chains as the default run of the tests has.")
def main(spoilt: bool, short: bool) -> None:
    """Print the tables."""
    if spoilt:
        click.echo(markdown(broken()))
        return
    size = SHORT if short else LONG
    found = grid(size)
    for rows in (targets(), scores(found), kernels(found, size)):
        click.echo(markdown(rows) + "\n")
    click.echo(conclusion(found, size))


if __name__ == "__main__":
    main()
