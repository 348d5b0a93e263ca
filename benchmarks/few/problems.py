"""The five problems: their densities on the whole line, draws of them, and where mass may lie."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import attrs
import numpy as np

import intervals
import surrokit as sk
from real_posteriors.targets import Posterior
from surrokit.types import FloatArray

Density: TypeAlias = Callable[[FloatArray], FloatArray]
LogDensity: TypeAlias = Callable[[FloatArray], float]

CASES = {
    "lynx-hare": "hudson_lynx_hare-lotka_volterra",
    "hmm": "hmm_example-hmm_example",
    "logmesquite": "mesquite-logmesquite_logvash",
}
PROBLEMS = ("banana", "student", *CASES)
DEGREES, LINKED, DIM = 5.0, 0.7, 4
OFF, HALF_WIDTH, WIDER = 1.0, 4.0, 2.0

FINDS = {"sampler": "sub-chain", "surrogate": "additive", "explorer": "rounds"}


def potential_of(problem: str, data: Path) -> tuple[int, Density]:
    """Return the dimension and U of rows on the whole line."""
    if problem == "banana":
        return 4, intervals.banana().value
    if problem == "student":
        precision = np.linalg.inv(_linked())

        def heavy(q: FloatArray) -> FloatArray:
            squares = np.einsum("ni,ij,nj->n", q, precision, q)
            return 0.5 * (DEGREES + DIM) * np.log1p(squares / DEGREES)

        return DIM, heavy
    posterior = Posterior.read(CASES[problem], data)
    return posterior.case.dim, posterior.values_alone().value


def reference_of(problem: str, data: Path) -> FloatArray:
    """Return draws of the target on the whole line: direct ones, or of a long run by gradients."""
    rng = np.random.default_rng(7)
    if problem == "banana":
        return intervals.draw_banana(rng)[:100_000]
    if problem == "student":
        normal = rng.standard_normal((100_000, DIM)) @ np.linalg.cholesky(_linked()).T
        return normal / np.sqrt(rng.chisquare(DEGREES, len(normal)) / DEGREES)[:, None]
    posterior = Posterior.read(CASES[problem], data)
    run = sk.sample(posterior.with_gradient(), draws=25_000, seed=5, **FINDS)
    draws = run.draws.reshape(-1, posterior.case.dim)
    return posterior.values_alone().transform.to_unbounded(draws)


def kept_reference(problem: str, data: Path, folder: Path) -> FloatArray:
    """Return the draws that a folder keeps; the first run makes them for all."""
    file = folder / f"{problem}.npy"
    if not file.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_suffix(f".{os.getpid()}.npy")
        np.save(unfinished, reference_of(problem, data))
        unfinished.replace(file)
    return np.load(file)


def _linked() -> FloatArray:
    return np.full((DIM, DIM), LINKED) + (1.0 - LINKED) * np.eye(DIM)


@attrs.frozen(kw_only=True)
class Task:
    """What a sampler is asked: a problem, and the numbers of values it may have."""

    problem: str  # name of the problem, and the folder of the posteriors' data
    data: Path
    reference: FloatArray  # draws of the target
    seed: int  # of the sampler, and of where the plausible range lies
    budgets: list[int]  # numbers of values

    def plausible(self) -> tuple[FloatArray, FloatArray]:
        """Return the lower and upper ends of where the mass may lie."""
        low, middle, high = np.quantile(self.reference, [0.16, 0.5, 0.84], axis=0)
        sds = 0.5 * (high - low)
        off = np.random.default_rng(1000 + self.seed).uniform(-OFF, OFF, len(sds))
        return middle + (off - HALF_WIDTH) * sds, middle + (off + HALF_WIDTH) * sds

    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return the ends of a box about the plausible range, for those that need a bounded prior.

        It has the same middle, and is so much wider that at most about a thousandth of the mass
        lies outside.
        """
        low, high = self.plausible()
        middle, half = 0.5 * (low + high), 0.5 * (high - low)
        return middle - WIDER * half, middle + WIDER * half

    def log_density(self) -> LogDensity:
        """Return -U of one position, minus infinity where it is not finite."""
        value = potential_of(self.problem, self.data)[1]

        def log_density(z: FloatArray) -> float:
            found = -float(value(np.atleast_2d(np.asarray(z, dtype=np.float64)))[0])
            return found if np.isfinite(found) else -np.inf

        return log_density


class Counted:
    """A log density that knows how often it was called."""

    def __init__(self, inner: LogDensity) -> None:
        self.inner, self.calls = inner, 0

    def __call__(self, z: FloatArray) -> float:
        self.calls += 1
        return self.inner(z)
