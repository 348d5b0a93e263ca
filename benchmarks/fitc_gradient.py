"""Time FITC's gradient against the bare products it cannot do without.

Those are the product of the positions with the inducing points, the exponential, and the product
back; in the fastest layouts and with buffers made beforehand.

    python benchmarks/fitc_gradient.py

It prints the least times in microseconds, their ratios and a profile; it asserts nothing. Run it
on one BLAS thread (OPENBLAS_NUM_THREADS=1).
"""

from __future__ import annotations

import cProfile
import pstats
import time
from collections.abc import Callable

import click
import numpy as np

from surrokit.interfaces import Evaluations, LearningProblem
from surrokit_gp.fitted import FittedProcess
from surrokit_gp.surrogates import Fitc

CALLS = 20
"""Calls in a row, so that arrays are in the cache as they are on a path."""


def least(calls: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Least time of each call in microseconds; the calls take turns."""
    seconds = dict.fromkeys(calls, np.inf)
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(CALLS):
                call()
            seconds[name] = min(seconds[name], (time.perf_counter() - start) / CALLS)
    return {name: 1e6 * taken for name, taken in seconds.items()}


def bare(positions: np.ndarray, inducing: np.ndarray) -> Callable[[], object]:
    """Two products and one exponential."""
    first, second = np.ascontiguousarray(0.01 * inducing.T), np.asfortranarray(inducing)
    heights, gradient = np.empty((len(positions), len(inducing))), np.empty(positions.shape)

    def run() -> None:
        np.matmul(positions, first, out=heights)
        np.exp(heights, out=heights)
        np.matmul(heights, second, out=gradient)

    return run


def fitted(dim: int, points: int, inducing: int, rng: np.random.Generator) -> FittedProcess:
    """Return FITC with given hyperparameters."""
    positions = rng.standard_normal((points, dim))
    values = 0.5 * np.square(positions).sum(axis=1) + np.log1p(np.square(positions[:, 0]))
    surrogate = Fitc(
        n_inducing=inducing,
        inducing="data",
        hyperparameters={"length_scales": 10.0, "signal_sd": 20.0, "noise_sd": 0.1},
    )
    learner = surrogate.learner(LearningProblem(dim=dim, capabilities=frozenset()), rng)
    learner.observe(Evaluations(positions=positions, values=values))
    return learner.fit()


@click.command()
@click.option("--dim", default=32, show_default=True)
@click.option("--points", default=3000, show_default=True)
@click.option("--inducing", default=1000, show_default=True)
@click.option("--chains", default=4, show_default=True)
@click.option("--repeats", default=500, show_default=True)
def main(dim: int, points: int, inducing: int, chains: int, repeats: int) -> None:
    """Fit, time and profile."""
    rng = np.random.default_rng(0)
    start = time.perf_counter()
    process = fitted(dim, points, inducing, rng)
    click.echo(f"fitted in {time.perf_counter() - start:.2f} s, with held-out points: {process}")
    positions = rng.standard_normal((chains, dim))
    calls: dict[str, Callable[[], object]] = {
        "bare": bare(positions, rng.standard_normal((inducing, dim))),
        "gradient": lambda: process.gradient(positions),
        "value and gradient": lambda: process.value_and_gradient(positions),
    }
    times = least(calls, repeats)
    for name, taken in times.items():
        click.echo(f"{name:20s} {taken:8.1f} microseconds  x {taken / times['bare']:.2f}")
    profile = cProfile.Profile()
    profile.enable()
    for _ in range(2000):
        process.value_and_gradient(positions)
    profile.disable()
    pstats.Stats(profile).sort_stats("tottime").print_stats(12)


if __name__ == "__main__":
    main()
