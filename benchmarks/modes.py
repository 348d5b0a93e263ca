"""Targets with several modes: are these weighed rightly, and if not, does the verdict say so?

    python benchmarks/modes.py --only two --seeds 3

Each line is a run with the parts that expensive calls get: exact calls, effective
draws, R-hat, the largest error of a mode's share in Monte Carlo errors, and what the verdict warns
of. A run is right if that error is below 4 and R-hat below 1.01.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial

import attrs
import numpy as np

import surrokit as sk
from surrokit.diagnostics import mean_error, r_hat
from surrokit.types import FloatArray

Kinds = Callable[[FloatArray], FloatArray]
"""From positions (n, dim) to the mode (n,) that each is at."""


@attrs.frozen(kw_only=True)
class Case:
    """A log density with its gradient, and the true shares of its modes."""

    dim: int
    log_density: Callable[[FloatArray], float]
    gradient: Callable[[FloatArray], FloatArray]
    kinds: Kinds
    shares: FloatArray
    bounds: tuple[float, float] | None = None


def normals(centres: FloatArray, sds: FloatArray, shares: FloatArray) -> Case:
    """Return a mixture of isotropic normals: centres (k, dim), sds (k,), shares (k,)."""
    dim = centres.shape[1]
    constants = np.log(shares) - dim * np.log(sds)

    def parts(q: FloatArray) -> FloatArray:
        squares = np.square((q[..., None, :] - centres) / sds[:, None]).sum(axis=-1)
        return np.asarray(constants - 0.5 * squares)

    def gradient(q: FloatArray) -> FloatArray:
        logs = parts(q)
        each = np.exp(logs - np.logaddexp.reduce(logs)) / np.square(sds)
        return np.asarray(each @ (centres - q))

    return Case(
        dim=dim,
        log_density=lambda q: float(np.logaddexp.reduce(parts(q))),
        gradient=gradient,
        kinds=lambda rows: np.argmax(parts(rows), axis=-1),
        shares=shares / shares.sum(),
    )


def two(dim: int, distance: float | None = None, sd: float = 1.0, share: float = 2 / 3) -> Case:
    """Return two normals, at 3 and -3 in each coordinate or so far apart along a diagonal."""
    half = 3.0 if distance is None else 0.5 * distance / np.sqrt(dim)
    centres = half * np.array([np.ones(dim), -np.ones(dim)])
    return normals(centres, np.array([1.0, sd]), np.array([share, 1.0 - share]))


def twenty() -> Case:
    """Return twenty normals in a square of 20 by 20, of width 0.5."""
    rng = np.random.default_rng(3)
    return normals(rng.uniform(-10.0, 10.0, (20, 2)), np.full(20, 0.5), np.full(20, 0.05))


def himmelblau() -> Case:
    """Return the density of four modes on [-4, 4]^2; shares by the signs of x and y."""

    def parts(q: FloatArray) -> tuple[float, float]:
        return q[0] + q[1] ** 2 - 7.0, q[0] ** 2 + q[1] - 11.0

    def log_density(q: FloatArray) -> float:
        a, b = parts(q)
        return -0.5 * (0.1 * a * a + b * b)

    def gradient(q: FloatArray) -> FloatArray:
        a, b = parts(q)
        return -np.array([0.1 * a + 2.0 * b * q[0], 0.2 * a * q[1] + b])

    return Case(
        dim=2,
        log_density=log_density,
        gradient=gradient,
        kinds=lambda rows: 2 * (rows[:, 0] > 0) + (rows[:, 1] > 0),
        shares=np.array([0.1502, 0.2132, 0.2886, 0.3480]),
        bounds=(-4.0, 4.0),
    )


def curved() -> Case:
    """Return three banana-shaped modes, 12 apart, of shares 0.5, 0.3 and 0.2."""
    middles, shares = np.array([-12.0, 0.0, 12.0]), np.array([0.5, 0.3, 0.2])

    def parts(q: FloatArray) -> tuple[FloatArray, ...]:
        x = q[..., 0, None] - middles
        y = q[..., 1, None] - 0.5 * (np.square(x) - 1.0)
        return x, y, np.log(shares) - 0.5 * np.square(x / 1.5) - 0.5 * np.square(y / 0.5)

    def gradient(q: FloatArray) -> FloatArray:
        x, y, logs = parts(q)
        each = np.exp(logs - np.logaddexp.reduce(logs))
        return -np.array([each @ (x / 2.25 - x * y / 0.25), each @ (y / 0.25)])

    return Case(
        dim=2,
        log_density=lambda q: float(np.logaddexp.reduce(parts(q)[2])),
        gradient=gradient,
        kinds=lambda rows: np.argmax(parts(rows)[2], axis=-1),
        shares=shares,
    )


def labels() -> Case:
    """Return the means of three components, widths known, of 90 data: six modes alike."""
    rng = np.random.default_rng(5)
    data = np.concatenate([rng.normal(middle, 0.7, 30) for middle in (-3.0, 0.0, 3.0)])

    def weights(q: FloatArray) -> tuple[FloatArray, float]:
        logs = -0.5 * np.square((data[:, None] - q) / 0.7)
        tops = np.logaddexp.reduce(logs, axis=1)
        return np.exp(logs - tops[:, None]), float(tops.sum())

    return Case(
        dim=3,
        log_density=lambda q: weights(q)[1] - 0.5 * float(q @ q) / 25.0,
        gradient=lambda q: (weights(q)[0] * (data[:, None] - q)).sum(axis=0) / 0.49 - q / 25.0,
        kinds=lambda rows: np.argsort(rows, axis=1) @ np.array([3, 1, 0]),
        shares=np.array([np.nan]),
    )


CASES: dict[str, Callable[[], Case]] = {
    **{f"two-{dim}": partial(two, dim) for dim in (2, 5, 10, 20)},
    **{f"far-{dim}": partial(two, dim, 20.0) for dim in (2, 5, 10, 20)},
    "narrow-2": partial(two, 2, None, 0.1),
    "narrow-5": partial(two, 5, None, 0.1),
    "rare-2": partial(two, 2, None, 1.0, 0.95),
    "rare-5": partial(two, 5, None, 1.0, 0.95),
    "himmelblau": himmelblau,
    "curved": curved,
    "twenty": twenty,
    "labels": labels,
}


def judge(case: Case, run: sk.Run) -> tuple[float, float, float]:
    """Return effective draws and R-hat of modes and numbers, and the error of the shares."""
    chains, draws, dim = run.draws.shape
    kinds = case.kinds(run.draws.reshape(-1, dim))
    known = np.unique(kinds) if np.isnan(case.shares).any() else np.arange(len(case.shares))
    shares = np.full(6, 1.0 / 6.0) if np.isnan(case.shares).any() else case.shares
    if len(known) < len(shares):
        return float("nan"), float("nan"), float("inf")
    at = (kinds[:, None] == known).astype(float)
    if run.answer is not None:
        answer = run.answer.expectation(lambda q: (case.kinds(q)[:, None] == known).astype(float))
        z = np.abs(answer.value - shares) / np.maximum(answer.error, 1e-9)
        return float(np.min(run.ess())), 1.0, float(z.max())
    at = at.reshape(chains, draws, -1)
    both = np.concatenate([run.draws, at], axis=2)
    with np.errstate(all="ignore"):
        rhat = float(np.nanmax(r_hat(both)))
        error = np.maximum(mean_error(both)[dim:], 1e-3 / np.sqrt(chains * draws))
        effective = np.nanmin(both.var(axis=(0, 1)) / np.square(mean_error(both)))
    z = np.abs(at.mean(axis=(0, 1)) - shares) / error
    return float(effective), rhat, float(z.max())


def runs(args: argparse.Namespace) -> Iterator[str]:
    """Yield a line for each run."""
    for name in [name for name in CASES if any(part in name for part in args.only or [""])]:
        case = CASES[name]()
        options: dict[str, object] = {} if args.values else {"gradient": case.gradient}
        if case.bounds is not None:
            options["parameters"] = {"q": sk.interval(*case.bounds, shape=case.dim)}
        else:
            options["dim"] = case.dim
        target = sk.potential(log_density=case.log_density, **options)
        settings = {"max_calls": args.calls, "draws": args.draws, "correction": args.correction}
        settings |= {"sampler": "sub-chain", "surrogate": args.surrogate, "explorer": "rounds"}
        settings = {key: value for key, value in settings.items() if value is not None}
        for seed in range(args.seeds):
            began = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                run = sk.sample(target, seed=seed, progress=False, **settings)
            wall, calls = time.perf_counter() - began, run.total_calls
            effective, rhat, z = judge(case, run)
            warned = ",".join(sorted({each.name for each in run.verdict.warnings}))
            right = "right" if z < 4.0 and rhat < 1.01 else "TOLD " if warned else "WRONG"
            yield (
                f"{name:12s} {seed} {right} calls {calls:5d} ess {effective:7.0f} a draw "
                f"{calls / effective:6.2f} rhat {rhat:6.3f} z {z:5.1f} {wall:5.1f} s {warned}"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="*", help="parts of names")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--values", action="store_true", help="without gradients")
    parser.add_argument("--surrogate", default="additive")
    parser.add_argument("--correction")
    parser.add_argument("--draws", type=int)
    parser.add_argument("--calls", type=int)
    for line in runs(parser.parse_args()):
        print(line, flush=True)
