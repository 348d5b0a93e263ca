"""Fifteen targets from values alone, at the budgets at which PyVBMC 1.5 ends on them.

    python benchmarks/values_alone.py --seeds 10 --output values_alone.jsonl

Four figures of each run: the error of log Z, the symmetric Kullback-Leibler divergence of normal
densities of equal moments (gsKL), the mean marginal total variation (MMTV), and whether the answer
is usable: log Z and gsKL below 1, MMTV below 0.2. Silent is an unusable one that nothing in the
verdict warns about. The table has medians, beside PyVBMC's. It asserts nothing.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import click
import numpy as np
from scipy import stats
from scipy.special import log_expit, logsumexp

import surrokit as sk
from few.methods import distances
from surrokit.types import FloatArray

DRAWS = 50_000

PYVBMC = {  # values, log Z, gsKL, MMTV, usable: medians of 50 seeds
    "normal-5": (70, 0.0040, 0.00009, 0.0075, 1.0),
    "corr-5": (100, 0.0070, 0.0014, 0.0082, 1.0),
    "half-normal-2": (70, 0.0039, 0.00016, 0.018, 1.0),
    "cigar-4": (135, 0.0056, 0.00044, 0.0077, 1.0),
    "cigar-8": (165, 0.0088, 0.0014, 0.0088, 0.96),
    "cigar-15": (750, 0.014, 0.0020, 0.0083, 1.0),
    "rosenbrock-2": (80, 0.028, 0.028, 0.029, 1.0),
    "logistic-5": (135, 0.032, 0.0086, 0.023, 0.98),
    "banana-2": (90, 0.049, 0.178, 0.046, 0.98),
    "banana-6": (105, 0.071, 0.223, 0.024, 1.0),
    "banana-10": (125, 0.100, 0.31, 0.019, 0.92),
    "lumpy-4": (90, 0.040, 0.013, 0.026, 1.0),
    "lumpy-10": (292, 0.514, 0.44, 0.081, 0.98),
    "student-4": (105, 0.027, 0.025, 0.039, 1.0),
    "student-8": (195, 0.093, 0.192, 0.066, 0.96),
}


@attrs.frozen(kw_only=True, eq=False)
class Case:
    """A log density of rows (n, dim), draws of it, its log Z, and where its mass may lie."""

    log_density: Callable[[FloatArray], FloatArray]
    draws: FloatArray
    box: tuple[FloatArray, FloatArray]
    log_z: float = 0.0
    bounds: tuple[float, float] | None = None


def case_of(name: str) -> Case:
    """Return a target by its name, which ends in the number of its parameters."""
    kind, _, number = name.rpartition("-")
    dim, rng = int(number), np.random.default_rng(7)
    own = np.random.default_rng(20260900 + dim)
    sds, mean = np.arange(1.0, dim + 1.0), np.linspace(-0.5, 0.5, dim)
    if kind == "normal":
        return _normal(np.zeros(dim), np.diag(sds), rng, (-2.0 * dim, 2.0 * dim))
    if kind in ("corr", "cigar"):
        turn = np.random.default_rng(12345) if kind == "corr" else own
        axes = np.linalg.qr(turn.standard_normal((dim, dim)))[0]
        sds = np.linspace(0.2, 1.0, dim) if kind == "corr" else np.full(dim, 0.01)
        sds[-1] = 1.0
        return _normal(mean, axes * sds, rng, (-2.5, 2.5) if kind == "corr" else None)
    if kind == "half-normal":
        draws = -np.abs(rng.standard_normal((DRAWS, dim))) * sds
        ends = np.full(dim, -10.0 * dim), np.zeros(dim)
        return Case(
            log_density=lambda x: stats.norm.logpdf(x, scale=sds).sum(axis=1),
            draws=draws,
            box=_box(draws, ends),
            log_z=-dim * np.log(2.0),
            bounds=(-10.0 * dim, 0.0),
        )
    if kind == "lumpy":
        means, widths = own.random((12, dim)), own.uniform(0.2, 0.6, (12, dim))
        parts = own.dirichlet(np.ones(12))
        which = rng.choice(12, DRAWS, p=parts)
        draws = means[which] + widths[which] * rng.standard_normal((DRAWS, dim))

        def lumpy(x: FloatArray) -> FloatArray:
            logs = stats.norm.logpdf(x[:, None], means, widths).sum(axis=2)
            return np.asarray(logsumexp(logs + np.log(parts), axis=1))

        return Case(log_density=lumpy, draws=draws, box=_box(draws))
    if kind == "banana":
        draws = rng.standard_normal((DRAWS, dim)) * np.r_[2.0, np.ones(dim - 1)]
        draws[:, 1] += 0.5 * (draws[:, 0] ** 2 - 4.0)

        def banana(x: FloatArray) -> FloatArray:
            z = x.copy()
            z[:, 1] -= 0.5 * (x[:, 0] ** 2 - 4.0)
            return stats.norm.logpdf(z, scale=np.r_[2.0, np.ones(dim - 1)]).sum(axis=1)

        return Case(log_density=banana, draws=draws, box=_box(draws))
    return {"rosenbrock": _rosenbrock, "student": _student, "logistic": _logistic}[kind](dim, rng)


def _box(
    draws: FloatArray, bounds: tuple[FloatArray, FloatArray] | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return the quantiles of 0.5 and 99.5 %, rounded outward, within bounds."""
    low, high = np.quantile(draws, [0.005, 0.995], axis=0)
    low, high = np.floor(10.0 * low) / 10.0, np.ceil(10.0 * high) / 10.0
    if bounds is not None:
        low, high = np.maximum(low, bounds[0] + 1e-3), np.minimum(high, bounds[1] - 1e-3)
    return low, high


def _normal(
    mean: FloatArray, factor: FloatArray, rng: np.random.Generator, box: tuple[float, float] | None
) -> Case:
    draws = mean + rng.standard_normal((DRAWS, len(mean))) @ factor.T
    inverse, size = np.linalg.inv(factor), np.linalg.slogdet(factor)[1]
    ends = None if box is None else (np.full(len(mean), box[0]), np.full(len(mean), box[1]))
    return Case(
        log_density=lambda x: stats.norm.logpdf((x - mean) @ inverse.T).sum(axis=1) - size,
        draws=draws,
        box=ends or _box(draws),
    )


def _rosenbrock(dim: int, rng: np.random.Generator) -> Case:
    def log_density(x: FloatArray) -> FloatArray:
        one, two = x.T
        bent = -((one**2 - two) ** 2) - (one - 1.0) ** 2 / 100.0
        return np.asarray(bent + stats.norm.logpdf(x, scale=3.0).sum(axis=1))

    grid = np.meshgrid(np.linspace(-6, 6, 2401), np.linspace(-4, 16, 4001), indexing="ij")
    points = np.stack([each.ravel() for each in grid], axis=1)
    masses = np.exp(log_density(points))
    rows = rng.choice(len(points), DRAWS, p=masses / masses.sum())
    draws = points[rows] + (rng.random((DRAWS, 2)) - 0.5) * 0.005
    return Case(
        log_density=log_density, draws=draws, box=(np.full(2, -3.0), np.full(2, 3.0)), log_z=-2.2598
    )


def _student(dim: int, rng: np.random.Generator) -> Case:
    degrees = np.linspace(2.5, 2.0 + dim / 2.0, dim)
    widths = 3.0 * np.sqrt(degrees / (degrees - 2.0))
    x = np.linspace(-60.0, 60.0, 240_001)
    logs = stats.t.logpdf(x[:, None], degrees) + stats.norm.logpdf(x[:, None], scale=widths)
    sums = np.exp(logs).sum(axis=0)
    draws = np.stack(
        [rng.choice(x, DRAWS, p=np.exp(logs[:, i]) / sums[i]) for i in range(dim)], axis=1
    )
    return Case(
        log_density=lambda x: (stats.t.logpdf(x, degrees) + stats.norm.logpdf(x, scale=widths)).sum(
            axis=1
        ),
        draws=draws,
        box=_box(draws),
        log_z=float(np.log(sums * (x[1] - x[0])).sum()),
    )


def _logistic(dim: int, rng: np.random.Generator) -> Case:
    own = np.random.default_rng(20260900 + dim)
    design, weights = own.standard_normal((50, dim)), own.standard_normal(dim)
    signs = np.where(own.random(50) < 1.0 / (1.0 + np.exp(-design @ weights)), 1.0, -1.0)

    def log_density(x: FloatArray) -> FloatArray:
        fit = log_expit(signs * (x @ design.T)).sum(axis=1)
        return np.asarray(fit + stats.norm.logpdf(x, scale=5.0).sum(axis=1))

    run = sk.sample(
        sk.potential(lambda x: -log_density(x), dim=dim, batched=True), draws=1000, seed=1
    )
    # importance sampling by a t about draws of chains: exact log Z, and exact draws
    flat = run.draws.reshape(-1, dim)
    law = stats.multivariate_t(flat.mean(axis=0), np.cov(flat.T), df=5, seed=rng)
    points = law.rvs(1_000_000)
    logs = log_density(points) - law.logpdf(points)
    shares = np.exp(logs - logsumexp(logs))
    draws = points[rng.choice(len(points), DRAWS, p=shares)]
    return Case(
        log_density=log_density,
        draws=draws,
        box=_box(draws),
        log_z=float(logsumexp(logs) - np.log(len(points))),
    )


def run_one(case: Case, calls: int, seed: int) -> dict[str, Any]:
    """Return the figures of one run with every choice left to surrokit."""
    names = [f"x{i}" for i in range(case.draws.shape[1])]
    ranges = {name: ends for name, *ends in zip(names, *case.box, strict=True)}
    target = sk.potential(
        lambda x: -case.log_density(x),
        parameters=dict.fromkeys(names, case.bounds),
        plausible=ranges,
        batched=True,
    )
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = sk.sample(target, max_calls=calls, seed=seed)
    seconds = time.perf_counter() - began
    row = {"calls": run.total_calls, "seconds": seconds, "warned": not run.verdict.sound}
    row |= {"accepted": run.answer is not None, "exact": run.exact}
    try:
        found = run.log_evidence()
        row |= {"log_z": abs(float(found.value) - case.log_z), "error": float(found.error)}
    except (sk.errors.ConfigurationError, sk.errors.NumericalError, sk.errors.ShapeError):
        row |= {"log_z": float("inf"), "error": float("nan")}
    row |= distances(run.resampled(20_000, rng=0), case.draws)
    row["usable"] = row["log_z"] < 1.0 and row["gskl"] < 1.0 and row["mmtv"] < 0.2
    return row


@click.command(help=__doc__.partition("\n")[0])
@click.option("--seeds", default=10, show_default=True)
@click.option("--output", default="values_alone.jsonl", type=click.Path(path_type=Path))
@click.option("--only", multiple=True, type=click.Choice(list(PYVBMC)), default=list(PYVBMC))
def main(seeds: int, output: Path, only: tuple[str, ...]) -> None:
    """Run what is not in the file yet, and print the table."""
    rows = [json.loads(line) for line in output.read_text().splitlines()] if output.exists() else []
    for name in only:
        case = None
        for seed in range(1, seeds + 1):
            if any(row["target"] == name and row["seed"] == seed for row in rows):
                continue
            case = case or case_of(name)
            row = {"target": name, "seed": seed, **run_one(case, int(PYVBMC[name][0]), seed)}
            rows.append(row)
            with output.open("a") as file:
                file.write(json.dumps(row) + "\n")
    click.echo(
        "target          runs  log Z          gsKL            MMTV         usable    silent  s"
    )
    for name in only:
        mine = [row for row in rows if row["target"] == name]
        log_z, gskl, mmtv = (np.median([r[k] for r in mine]) for k in ("log_z", "gskl", "mmtv"))
        usable = np.mean([r["usable"] for r in mine])
        silent = np.mean([not (r["usable"] or r["warned"]) for r in mine])
        seconds, theirs = np.median([r["seconds"] for r in mine]), PYVBMC[name]
        click.echo(
            f"{name:15} {len(mine):3}  {log_z:.4f}/{theirs[1]:.4f}  {gskl:.5f}/{theirs[2]:.5f}  "
            f"{mmtv:.4f}/{theirs[3]:.4f}  {usable:.2f}/{theirs[4]:.2f}  {silent:.2f}  {seconds:.0f}"
        )


if __name__ == "__main__":
    main()
