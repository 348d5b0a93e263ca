"""How often 95 % intervals of sharpened and of weighted answers hold where that is hard.

Sharpened answers are of chains that mix slowly along one direction, in which the surrogate errs.
Weighted ones are of heavy tails, on a surrogate without an error, so that all noise is that of
chains on it. The truth is that of many direct draws, or of sums over a fine grid. Repeats are
independent groups of the chains of one run, which share what was tuned. It asserts nothing.

    python benchmarks/hard_intervals.py modes ridge --repeats 40
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator

import attrs
import click
import numpy as np
import scipy.special

import surrokit as sk
from intervals import FIGURES, figures_of
from surrokit.weighted.answer import Answering, Figures

DIRECT, MOVES, CHAINS, CHAINS_ON_V = 4_000_000, 16_000, 4, 32


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


def draw_mixture(shares, centres):
    """Return direct draws of it."""
    rng, centres = np.random.default_rng(0), np.asarray(centres, dtype=float)
    which = rng.choice(len(shares), DIRECT, p=shares)
    return centres[which] + rng.standard_normal((DIRECT, centres.shape[1]))


def student(degrees):
    """Return a Student-t density in two dimensions, with unit scales."""
    power = 0.5 * (degrees + 2.0)

    def both(q):
        squares = 1.0 + np.square(q).sum(axis=1) / degrees
        return power * np.log(squares), 2.0 * power * q / (degrees * squares[:, None])

    return sk.potential(value_and_gradient=both, dim=2, batched=True)


def draw_student(degrees):
    """Return direct draws of it."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((DIRECT, 2)) / np.sqrt(rng.chisquare(degrees, (DIRECT, 1)) / degrees)


TIMES = np.arange(6) * 0.5
DATA = np.array([2.13, 1.49, 1.24, 0.95, 0.74, 0.55])
PRIOR_SD = 1.309  # of a half of Student's t with three degrees of freedom


def decay():
    """Return an exponential decay: log amplitude, log rate and log noise of six data."""

    def both(z):
        height, rate, sd = np.exp(z).T
        curve = np.exp(-rate[:, None] * TIMES)
        away = DATA - height[:, None] * curve
        precision, least = sd**-2, 3.0 * PRIOR_SD**2
        log_density = (
            -0.5 * precision * np.square(away).sum(axis=1)
            - 5.0 * z[:, 2]
            + 2.0 * (z[:, 0] + z[:, 1] - rate)
            - height
            - 2.0 * np.log1p(sd**2 / least)
        )
        pulls = height[:, None] * curve * away * precision[:, None]
        slopes = [
            pulls.sum(axis=1) + 2.0 - height,
            -rate * (pulls @ TIMES) + 2.0 - 2.0 * rate,
            precision * np.square(away).sum(axis=1) - 5.0 - 4.0 * sd**2 / (least + sd**2),
        ]
        return -log_density, -np.stack(slopes, axis=1)

    return sk.potential(value_and_gradient=both, dim=3, batched=True)


def figures_of_decay():
    """Return figures of the logarithms, shape (5, 3), by a sum over a grid."""
    spans = [(2.077, 0.03, 0.005, 15.0, 500), (0.534, 0.05, 0.0005, 12.0, 500)]
    grids = [_grid(*span) for span in (*spans, (0.08, 0.5, 0.008, 60.0, 240))]
    points = np.exp([np.resize(grid[0], 500) for grid in grids])
    height, rate, sd = points[0], points[1], points[2][:240]
    away = DATA - height[:, None, None] * np.exp(-rate[:, None] * TIMES)
    logs = (2.0 * np.log(height) - height)[:, None] + 2.0 * np.log(rate) - 2.0 * rate
    of_noise = -5.0 * np.log(sd) - 2.0 * np.log1p(sd**2 / (3.0 * PRIOR_SD**2))
    cube = logs[..., None] - 0.5 * np.square(away).sum(axis=2)[..., None] / sd**2 + of_noise
    mass = np.exp(cube - cube.max())
    mass *= grids[0][1][:, None, None] * grids[1][1][:, None] * grids[2][1]
    found = []
    for i, (grid, _) in enumerate(grids):
        part = mass.sum(axis=tuple({0, 1, 2} - {i}))
        part, at = part / part.sum(), np.exp(grid)
        mean = part @ at
        sd_of = np.sqrt(part @ np.square(at - mean))
        quantiles = np.exp(np.interp([0.05, 0.5, 0.95], np.cumsum(part) - 0.5 * part, grid))
        found.append([mean, sd_of, *quantiles])
    return np.array(found).T


def _grid(centre, width, low, high, n):
    """Return logarithms, dense about one, and the lengths that they stand for."""
    ends = np.arcsinh((np.log([low, high]) - np.log(centre)) / width)
    at = np.linspace(*ends, n)
    return np.log(centre) + width * np.sinh(at), width * np.cosh(at) * (at[1] - at[0])


@attrs.frozen(kw_only=True)
class Case:
    """A target, a surrogate that is ready or right, and what is true.

    Answers are those of ``exp(q)`` where ``logarithms`` says so.
    """

    target: Callable[[], object]
    truth: Callable[[], np.ndarray]
    surrogate: Callable[[], object]
    sampler: object = "sub-chain"
    weighted: bool = False
    logarithms: bool = False


TWO = ((2.5, 0.5), (-2.5, -0.5))
THREE = ((-4.5, 0.4, 0.0), (0.0, 0.0, -0.5), (4.5, -0.4, 0.0))
RIDGE = np.array([[1.0, 0.3], [0.3, 1.0]])
SHORT = ("sub-chain", {"length": 1, "kernel": ("hmc", {"step_size": 0.5, "n_steps": 1})})

CASES = {
    "modes": Case(
        target=lambda: mixture((0.6, 0.4), TWO),
        truth=lambda: figures_of(draw_mixture((0.6, 0.4), TWO)),
        surrogate=lambda: mixture((0.5, 0.5), TWO),
    ),
    "three-modes": Case(
        target=lambda: mixture((0.45, 0.3, 0.25), THREE),
        truth=lambda: figures_of(draw_mixture((0.45, 0.3, 0.25), THREE)),
        surrogate=lambda: mixture((0.35, 0.35, 0.3), THREE),
    ),
    "ridge": Case(
        target=lambda: sk.make("potential", "gaussian", mean=(0.0, 0.0), covariance=RIDGE),
        truth=lambda: np.outer([0.0, 1.0, -1.6448536, 0.0, 1.6448536], np.ones(2)),
        surrogate=lambda: sk.make("potential", "gaussian", mean=(0.2, 0.0), covariance=RIDGE),
        sampler=SHORT,
    ),
    "decay": Case(
        target=decay,
        truth=figures_of_decay,
        surrogate=lambda: sk.batch_surrogate(lambda evaluations, rng: decay()),
        weighted=True,
        logarithms=True,
    ),
    "student": Case(
        target=lambda: student(5.0),
        truth=lambda: figures_of(draw_student(5.0)),
        surrogate=lambda: sk.batch_surrogate(lambda evaluations, rng: student(5.0)),
        weighted=True,
    ),
}
"""By name."""


def repeat(case: Case, seed: int, repeats: int, size: int) -> Iterator[Answering]:
    """Yield answers by independent groups of the chains of one run."""
    target = case.target()
    parts = {"surrogate": case.surrogate(), "sampler": case.sampler, "seed": seed}
    if not case.weighted:
        run = sk.sample(
            target, chains=CHAINS * repeats, draws=size // CHAINS, progress=False, **parts
        )
        sharpened = sk.sharpen(run, seed=seed, moves=MOVES * repeats).sharpened
        for i in range(repeats if sharpened else 0):
            own = slice(CHAINS * i, CHAINS * (i + 1))
            cut = {"draws": sharpened.draws[own], "ends": sharpened.ends[own]}
            yield attrs.evolve(sharpened, moves=sharpened.moves[:, own], **cut)
        return
    if case.logarithms:
        target, parts["surrogate"] = _exponentials(target)
    weights = {"chains": CHAINS_ON_V * repeats, "effective": size * repeats}
    run = sk.sample(
        target,
        explorer="rounds",
        correction=("weights", weights),
        max_calls=150,
        progress=False,
        **parts,
    )
    for i in range(repeats if run.answer else 0):
        own = slice(CHAINS_ON_V * i, CHAINS_ON_V * (i + 1))
        rounds = [
            attrs.evolve(
                each,
                draws=each.draws[own],
                looked_at=each.looked_at[own],
                looked_at_weights=each.looked_at_weights[own],
                predictive_variance=each.predictive_variance[own],
                density_ratio=each.density_ratio[own],
            )
            for each in run.answer.rounds[:1]
        ]
        yield attrs.evolve(run.answer, rounds=tuple(rounds))


def _exponentials(potential):
    """Return a target of exp(q), and a surrogate of it that is right, by a potential of q."""
    declared = {f"x{i}": sk.Parameter(lower=0.0) for i in range(potential.dim)}

    def both(x):
        value, gradient = potential.value_and_gradient(np.log(x))
        # the transform adds the Jacobian that the potential has already
        return value + np.log(x).sum(axis=1), (gradient + 1.0) / x

    target = sk.potential(value_and_gradient=both, parameters=declared, batched=True)
    return target, sk.batch_surrogate(lambda evaluations, rng: potential)


def count(truth: np.ndarray, answers: Iterable[Answering]) -> tuple[np.ndarray, np.ndarray]:
    """Return which intervals hold, and have less than two degrees, (repeats, figures, dim)."""
    hits, wide = [], []
    for answer in answers:
        figures = [Figures.of(answer).named[each] for each in FIGURES]
        ends = zip(truth, (each.interval() for each in figures), strict=True)
        hits.append([(low <= at) & (at <= high) for at, (low, high) in ends])
        wide.append([each.degrees < 2.0 for each in figures])
    return np.array(hits), np.array(wide)


def tell(name: str, held: np.ndarray, wide: np.ndarray) -> None:
    """Print how often intervals hold, and of how many figures the error is hardly known."""
    if not held.size:
        click.echo(f"{name}: refused")
        return
    click.echo(
        f"{name}: {held.mean():.1%} of {held.size} intervals hold in {len(held)} repeats, "
        f"{held[~wide].mean():.1%} of those with two degrees of freedom or more; "
        f"{wide.mean():.1%} have fewer"
    )
    for i, figure in enumerate(FIGURES):
        click.echo(f"    {figure:5} {', '.join(f'{part:.3f}' for part in held[:, i].mean(axis=0))}")


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(CASES)))
@click.option("--repeats", default=40, show_default=True)
@click.option("--draws", default=2000, show_default=True, help="Of four chains, to be sharpened.")
@click.option("--effective", default=3000, show_default=True, help="Of 32 chains on a surrogate.")
@click.option("--seed", default=1, show_default=True)
def main(names: tuple[str, ...], repeats: int, draws: int, effective: int, seed: int) -> None:
    """Print how often intervals hold."""
    warnings.simplefilter("ignore", sk.errors.SamplingWarning)
    for name in names or CASES:
        case = CASES[name]
        size = effective if case.weighted else draws
        tell(name, *count(case.truth(), repeat(case, seed, repeats, size)))


if __name__ == "__main__":
    main()
