"""Seventeen targets on which PyVBMC 1.5 was tried, and the four figures of an answer."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import attrs
import numpy as np
from scipy import stats
from scipy.fft import dct, idct
from scipy.special import log_expit, logsumexp, ndtri

import surrokit as sk
from surrokit.types import FloatArray

LOG2_DRAWS = 17

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
    "noisy-rosenbrock-2": (130, 0.072, 0.019, 0.034, 1.0),
    "noisy-logistic-5": (242, 0.191, 0.418, 0.150, 0.78),
}


@attrs.frozen(kw_only=True, eq=False)
class Case:
    """A log density of rows (n, dim), draws of it, its log Z, and where its mass may lie.

    What surrokit is given has noise of a standard deviation.
    """

    log_density: Callable[[FloatArray], FloatArray]
    draws: FloatArray
    box: tuple[FloatArray, FloatArray]
    log_z: float = 0.0
    bounds: tuple[float, float] | None = None
    noise_sd: float = 0.0

    def target(self, seed: int) -> sk.Potential:
        """What surrokit samples: values alone, and where the mass plausibly lies."""
        rng = np.random.default_rng(seed)
        names = [f"x{i}" for i in range(self.draws.shape[1])]
        ranges = {name: ends for name, *ends in zip(names, *self.box, strict=True)}
        return sk.potential(
            lambda x: self.noise_sd * rng.standard_normal(len(x)) - self.log_density(x),
            parameters=dict.fromkeys(names, self.bounds),
            plausible=ranges,
            batched=True,
            noise_sd=self.noise_sd or None,
        )


def case_of(name: str) -> Case:
    """Return a target by its name, which ends in the number of its parameters."""
    kind, _, number = name.rpartition("-")
    return CASES[kind](int(number))


def _normals(dim: int) -> FloatArray:
    """Return scrambled Sobol points of a standard normal, whose moments are nearly exact."""
    return np.asarray(ndtri(_uniform(dim)))


def _uniform(dim: int) -> FloatArray:
    points = stats.qmc.Sobol(dim, rng=np.random.default_rng(7)).random_base2(LOG2_DRAWS)
    return np.clip(points, 1e-12, 1.0 - 1e-12)


def _own(dim: int) -> np.random.Generator:
    return np.random.default_rng(20260900 + dim)


def _box(
    draws: FloatArray, bounds: tuple[FloatArray, FloatArray] | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return the quantiles of 0.5 and 99.5 %, rounded outward, within bounds."""
    low, high = np.quantile(draws, [0.005, 0.995], axis=0)
    low, high = np.floor(10.0 * low) / 10.0, np.ceil(10.0 * high) / 10.0
    if bounds is not None:
        low, high = np.maximum(low, bounds[0] + 1e-3), np.minimum(high, bounds[1] - 1e-3)
    return low, high


def _gaussian(mean: FloatArray, factor: FloatArray, half_width: float | None) -> Case:
    draws = mean + _normals(len(mean)) @ factor.T
    inverse, size = np.linalg.inv(factor), np.linalg.slogdet(factor)[1]
    ends = None if half_width is None else np.full(len(mean), half_width)
    return Case(
        log_density=lambda x: stats.norm.logpdf((x - mean) @ inverse.T).sum(axis=1) - size,
        draws=draws,
        box=_box(draws) if ends is None else (-ends, ends),
    )


def _rotation(rng: np.random.Generator, dim: int) -> FloatArray:
    return np.asarray(np.linalg.qr(rng.standard_normal((dim, dim)))[0])


def _normal(dim: int) -> Case:
    return _gaussian(np.zeros(dim), np.diag(np.arange(1.0, dim + 1.0)), 2.0 * dim)


def _corr(dim: int) -> Case:
    axes = _rotation(np.random.default_rng(12345), dim)
    return _gaussian(np.linspace(-0.5, 0.5, dim), axes * np.linspace(0.2, 1.0, dim), 2.5)


def _cigar(dim: int) -> Case:
    sds = np.r_[np.full(dim - 1, 0.01), 1.0]
    return _gaussian(np.linspace(-0.5, 0.5, dim), _rotation(_own(dim), dim) * sds, None)


def _half_normal(dim: int) -> Case:
    sds = np.arange(1.0, dim + 1.0)
    draws = ndtri(0.5 * _uniform(dim)) * sds
    return Case(
        log_density=lambda x: stats.norm.logpdf(x, scale=sds).sum(axis=1),
        draws=draws,
        box=_box(draws, (np.full(dim, -10.0 * dim), np.zeros(dim))),
        log_z=-dim * np.log(2.0),
        bounds=(-10.0 * dim, 0.0),
    )


def _lumpy(dim: int) -> Case:
    rng = _own(dim)
    means, widths = rng.random((12, dim)), rng.uniform(0.2, 0.6, (12, dim))
    parts = rng.dirichlet(np.ones(12))
    which = np.searchsorted(np.cumsum(parts[:-1]), (np.arange(2**LOG2_DRAWS) + 0.5) / 2**LOG2_DRAWS)
    which = np.random.default_rng(7).permutation(which)
    draws = means[which] + widths[which] * _normals(dim)

    def log_density(x: FloatArray) -> FloatArray:
        logs = stats.norm.logpdf(x[:, None], means, widths).sum(axis=2)
        return np.asarray(logsumexp(logs + np.log(parts), axis=1))

    return Case(log_density=log_density, draws=draws, box=_box(draws))


def _banana(dim: int) -> Case:
    sds = np.r_[2.0, np.ones(dim - 1)]
    draws = _normals(dim) * sds
    draws[:, 1] += 0.5 * (draws[:, 0] ** 2 - 4.0)

    def log_density(x: FloatArray) -> FloatArray:
        z = x.copy()
        z[:, 1] -= 0.5 * (x[:, 0] ** 2 - 4.0)
        return np.asarray(stats.norm.logpdf(z, scale=sds).sum(axis=1))

    return Case(log_density=log_density, draws=draws, box=_box(draws))


def _rosenbrock(dim: int) -> Case:
    def log_density(x: FloatArray) -> FloatArray:
        one, two = x.T
        bent = -((one**2 - two) ** 2) - (one - 1.0) ** 2 / 100.0
        return np.asarray(bent + stats.norm.logpdf(x, scale=3.0).sum(axis=1))

    grid = np.meshgrid(np.linspace(-6, 6, 2401), np.linspace(-4, 16, 4001), indexing="ij")
    points = np.stack([each.ravel() for each in grid], axis=1)
    masses = np.cumsum(np.exp(log_density(points)))
    rows = np.searchsorted(masses / masses[-1], (np.arange(2**LOG2_DRAWS) + 0.5) / 2**LOG2_DRAWS)
    draws = points[rows] + (np.random.default_rng(7).random((len(rows), dim)) - 0.5) * 0.005
    return Case(
        log_density=log_density, draws=draws, box=(np.full(2, -3.0), np.full(2, 3.0)), log_z=-2.2598
    )


def _student(dim: int) -> Case:
    degrees = np.linspace(2.5, 2.0 + dim / 2.0, dim)
    widths = 3.0 * np.sqrt(degrees / (degrees - 2.0))

    def log_parts(x: FloatArray) -> FloatArray:
        return np.asarray(stats.t.logpdf(x, degrees) + stats.norm.logpdf(x, scale=widths))

    x = np.linspace(-60.0, 60.0, 240_001)
    below = np.cumsum(np.exp(log_parts(x[:, None])), axis=0)
    columns = zip(_uniform(dim).T, below.T, strict=True)
    draws = np.stack([np.interp(u, each / each[-1], x) for u, each in columns], axis=1)
    return Case(
        log_density=lambda z: log_parts(z).sum(axis=1),
        draws=draws,
        box=_box(draws),
        log_z=float(np.log(below[-1] * (x[1] - x[0])).sum()),
    )


def _logistic(dim: int) -> Case:
    rng = _own(dim)
    design, weights = rng.standard_normal((50, dim)), rng.standard_normal(dim)
    signs = np.where(rng.random(50) < 1.0 / (1.0 + np.exp(-design @ weights)), 1.0, -1.0)

    def log_density(x: FloatArray) -> FloatArray:
        fit = log_expit(signs * (x @ design.T)).sum(axis=1)
        return np.asarray(fit + stats.norm.logpdf(x, scale=5.0).sum(axis=1))

    # importance sampling by a t about the draws of chains gives log Z, and exact draws
    target = sk.potential(lambda x: -log_density(x), dim=dim, batched=True)
    flat = sk.sample(target, draws=1000, seed=1).draws.reshape(-1, dim)
    law = stats.multivariate_t(flat.mean(axis=0), np.cov(flat.T), df=5, seed=7)
    points = law.rvs(1_000_000)
    logs = log_density(points) - law.logpdf(points)
    masses = np.cumsum(np.exp(logs - logs.max()))
    rows = np.searchsorted(masses / masses[-1], (np.arange(2**LOG2_DRAWS) + 0.5) / 2**LOG2_DRAWS)
    draws = points[rows]
    log_z = float(logsumexp(logs) - np.log(len(points)))
    return Case(log_density=log_density, draws=draws, box=_box(draws), log_z=log_z)


CASES: dict[str, Callable[[int], Case]] = {
    "normal": _normal,
    "corr": _corr,
    "half-normal": _half_normal,
    "cigar": _cigar,
    "rosenbrock": _rosenbrock,
    "logistic": _logistic,
    "banana": _banana,
    "lumpy": _lumpy,
    "student": _student,
    "noisy-rosenbrock": lambda dim: attrs.evolve(_rosenbrock(dim), noise_sd=1.0),
    "noisy-logistic": lambda dim: attrs.evolve(_logistic(dim), noise_sd=3.0),
}


def run_one(case: Case, calls: int, seed: int) -> dict[str, Any]:
    """Return the figures of one run with every choice left to surrokit."""
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = sk.sample(case.target(seed), max_calls=calls, seed=seed)
    row = {"calls": run.total_calls, "seconds": time.process_time() - began}
    row |= {"accepted": run.accepted, "log_z": np.inf}
    with contextlib.suppress(sk.errors.SurrokitError):
        found = run.log_evidence()
        row |= {"log_z": abs(float(found.value) - case.log_z)}
        if run.accepted:
            truths = [(found, case.log_z), *_moments_of(run.answer, case.draws)]
            row["held"] = [bool(each) for pair in truths for each in np.ravel(_holds(*pair))]
    if run.surrogate is not None and hasattr(run.surrogate, "draw"):
        draws = run.kept.transform.to_bounded(draws_of(run.surrogate))
    elif run.answer is not None:  # that of several modes, before it learnt from the last round
        draws = run.answer.rounds[-1].flat
    else:
        draws = run.draws.reshape(-1, case.draws.shape[1])
    row |= distances(draws, case.draws)
    row["usable"] = row["log_z"] < 1.0 and row["gskl"] < 1.0 and row["mmtv"] < 0.2
    return row


WALKS = 128
"""Walks on a surrogate: about 65,000 draws, whose own noise in GsKL is below 0.001."""


def draws_of(fitted: Any) -> FloatArray:
    """Return draws of a fitted process by its own chains, which begin at its lowest points."""
    rngs = np.random.default_rng(1).spawn(WALKS)
    return np.concatenate([fitted.draw(rng) for rng in rngs])


def _moments_of(answer: Any, draws: FloatArray) -> list[tuple[Any, FloatArray]]:
    return [(answer.mean(), draws.mean(axis=0)), (answer.sd(), draws.std(axis=0))]


def _holds(found: Any, truth: FloatArray | float) -> FloatArray:
    low, high = found.interval(0.95)
    return np.asarray((low <= truth) & (truth <= high))


def table_of(rows: list[dict[str, Any]], names: Iterable[str]) -> str:
    """Return a line for each target: medians, ours beside PyVBMC's."""
    lines = ["target         values  runs  log Z         GsKL             MMTV           usable"]
    lines[0] += "     accepted  silent  held  calls  seconds"
    for name in names:
        mine = [row for row in rows if row["target"] == name]
        theirs = PYVBMC[name]
        log_z, gskl, mmtv, calls, seconds = (
            float(np.median([row[key] for row in mine]))
            for key in ("log_z", "gskl", "mmtv", "calls", "seconds")
        )
        usable, accepted = (np.mean([row[key] for row in mine]) for key in ("usable", "accepted"))
        silent = np.mean([row["accepted"] and not row["usable"] for row in mine])
        held = np.mean([each for row in mine for each in row.get("held", ())] or [np.nan])
        lines.append(
            f"{name:15} {theirs[0]:5} {len(mine):4}  {log_z:.4f}/{theirs[1]:.4f}  "
            f"{gskl:.5f}/{theirs[2]:.5f}  {mmtv:.4f}/{theirs[3]:.4f}  {usable:.2f}/{theirs[4]:.2f}"
            f"  {accepted:.2f}      {silent:.2f}    {held:.2f}  {calls:.0f}  {seconds:.0f}"
        )
    return "\n".join(lines)


# --- distances ---


def distances(draws: FloatArray, reference: FloatArray) -> dict[str, float]:
    """Return GsKL and MMTV of draws (n, dim)."""
    mean, there = draws.mean(axis=0), reference.mean(axis=0)
    covariances = [np.cov(each.T) for each in (draws, reference)]
    inverses, away = [np.linalg.inv(each) for each in covariances], mean - there
    total = np.trace(inverses[0] @ covariances[1]) + np.trace(inverses[1] @ covariances[0])
    total += away @ (inverses[0] + inverses[1]) @ away - 2 * len(mean)
    mmtv = np.mean([_total_variation(*each) for each in zip(draws.T, reference.T, strict=True)])
    return {"gskl": float(0.25 * total), "mmtv": float(mmtv)}


def _total_variation(ours: FloatArray, theirs: FloatArray) -> float:
    """Return the total variation of two densities, which are estimated by Gaussian kernels."""
    low, high = np.quantile(np.r_[ours, theirs], [0.0001, 0.9999])
    edges = np.linspace(low - 0.2 * (high - low), high + 0.2 * (high - low), 2049)
    one, other = (_kernel_estimate(each, edges) for each in (ours, theirs))
    return 0.5 * float(np.abs(one - other).sum())


def _kernel_estimate(points: FloatArray, edges: FloatArray) -> FloatArray:
    """Return the masses (n,) of cells between edges (n + 1,), smoothed by Silverman's rule."""
    cells = np.histogram(np.clip(points, edges[0], edges[-1]), edges)[0] / len(points)
    size = min(points.std(), float(np.ptp(np.quantile(points, [0.25, 0.75]))) / 1.349)
    width = 0.9 * size * len(points) ** -0.2 / (edges[1] - edges[0])
    smooth = dct(cells) * np.exp(
        -0.5 * np.square(width * np.pi * np.arange(len(cells)) / len(cells))
    )
    return np.asarray(idct(smooth))
