"""How often 95 % intervals of sharpened answers hold where that is hard.

Chains mix slowly along one direction, in which the surrogate errs. The truth is that of many direct
draws. Repeats are independent groups of the chains of one run, which share what was tuned. It
asserts nothing.

    python benchmarks/hard_intervals.py modes ridge --repeats 40
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import attrs
import click
import numpy as np
import scipy.special

import surrokit as sk
from intervals import FIGURES, figures_of
from surrokit.weighted.answer import Figures

DIRECT, MOVES, CHAINS = 4_000_000, 16_000, 4


def mixture(shares, centres):
    """Return a mixture of normal densities of unit covariance."""
    logs, centres = np.log(shares), np.asarray(centres, dtype=float)

    def both(q):
        away = q[:, None] - centres
        each = logs - 0.5 * np.square(away).sum(axis=2)
        log_density = scipy.special.logsumexp(each, axis=1)
        parts = np.exp(each - log_density[:, None])
        return -log_density, np.einsum("nk,nkd->nd", parts, away)

    return sk.potential(value_and_gradient=both, dim=centres.shape[1], batched=True)


def figures_of_mixture(shares, centres):
    """Return figures of direct draws of it."""
    rng, centres = np.random.default_rng(0), np.asarray(centres, dtype=float)
    which = rng.choice(len(shares), DIRECT, p=shares)
    return figures_of(centres[which] + rng.standard_normal((DIRECT, centres.shape[1])))


@attrs.frozen(kw_only=True)
class Case:
    """A target, a surrogate that is ready, and what is true."""

    target: Callable[[], object]
    truth: Callable[[], np.ndarray]
    surrogate: Callable[[], object]
    sampler: object = "sub-chain"


TWO = ((2.5, 0.5), (-2.5, -0.5))
THREE = ((-4.5, 0.4, 0.0), (0.0, 0.0, -0.5), (4.5, -0.4, 0.0))
RIDGE = {"covariance": ((1.0, 0.3), (0.3, 1.0))}

CASES = {
    "modes": Case(
        target=lambda: mixture((0.6, 0.4), TWO),
        truth=lambda: figures_of_mixture((0.6, 0.4), TWO),
        surrogate=lambda: mixture((0.5, 0.5), TWO),
    ),
    "three-modes": Case(
        target=lambda: mixture((0.45, 0.3, 0.25), THREE),
        truth=lambda: figures_of_mixture((0.45, 0.3, 0.25), THREE),
        surrogate=lambda: mixture((0.35, 0.35, 0.3), THREE),
    ),
    "ridge": Case(
        target=lambda: sk.make("potential", "gaussian", mean=(0.0, 0.0), **RIDGE),
        truth=lambda: np.outer([0.0, 1.0, -1.6448536, 0.0, 1.6448536], np.ones(2)),
        surrogate=lambda: sk.make("potential", "gaussian", mean=(0.2, 0.0), **RIDGE),
        sampler=("sub-chain", {"length": 1, "kernel": ("hmc", {"step_size": 0.5, "n_steps": 1})}),
    ),
}
"""By name."""


def hits(case: Case, seed: int, repeats: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return which intervals hold, and have less than two degrees, (repeats, figures, dim)."""
    run = sk.sample(
        case.target(),
        surrogate=case.surrogate(),
        sampler=case.sampler,
        chains=CHAINS * repeats,
        draws=size // CHAINS,
        seed=seed,
        progress=False,
    )
    sharpened = sk.sharpen(run, seed=seed, moves=MOVES * repeats).sharpened
    held, wide, truth = [], [], case.truth()
    for i in range(repeats if sharpened else 0):
        own = slice(CHAINS * i, CHAINS * (i + 1))
        cut = {"draws": sharpened.draws[own], "ends": sharpened.ends[own]}
        answer = attrs.evolve(sharpened, moves=sharpened.moves[:, own], **cut)
        figures = [Figures.of(answer).named[each] for each in FIGURES]
        ends = zip(truth, (each.interval() for each in figures), strict=True)
        held.append([(low <= at) & (at <= high) for at, (low, high) in ends])
        wide.append([each.degrees < 2.0 for each in figures])
    return np.array(held), np.array(wide)


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(CASES)))
@click.option("--repeats", default=40, show_default=True)
@click.option("--draws", default=2000, show_default=True, help="Of four chains, to be sharpened.")
@click.option("--seed", default=1, show_default=True)
def main(names: tuple[str, ...], repeats: int, draws: int, seed: int) -> None:
    """Print how often intervals hold, and of how many figures the error is hardly known."""
    warnings.simplefilter("ignore", sk.errors.SamplingWarning)
    for name in names or CASES:
        held, wide = hits(CASES[name], seed, repeats, draws)
        if not held.size:
            click.echo(f"{name}: nothing was sharpened")
            continue
        click.echo(
            f"{name}: {held.mean():.1%} of {held.size} intervals hold in {len(held)} repeats, "
            f"{held[~wide].mean():.1%} of those with two degrees of freedom or more; "
            f"{wide.mean():.1%} have fewer"
        )
        for figure, parts in zip(FIGURES, held.mean(axis=0), strict=True):
            click.echo(f"    {figure:5} {', '.join(f'{part:.3f}' for part in parts)}")


if __name__ == "__main__":
    main()
