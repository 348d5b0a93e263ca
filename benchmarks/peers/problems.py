"""What is sampled: logistic regressions, as arrays for the peers and as a target for surrokit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import numpy as np

import surrokit as sk
from surrokit.potentials import Potential
from surrokit.types import FloatArray

PRIOR_VARIANCE = 100.0
"""Of every coefficient, as in the paper."""

SPREAD_OF_STARTS = 0.1
"""Standard deviation of starting positions around zero, in every coefficient."""

FILES = {"bank": "bank-additional-full.csv", "a9a": "a9a"}
"""Data files by potential; each may be packed as .gz."""


@attrs.frozen(kw_only=True)
class Problem:
    """A target, and how HMC of the paper samples it."""

    name: str  # on the command line, and in tables
    title: str
    potential: str  # registered name and settings of the target
    settings: Mapping[str, Any] = attrs.field(factory=dict)
    # of the paper's HMC: identity as mass matrix, number of steps uniform on {1, ...,
    # n_steps}
    step_size: float
    n_steps: int
    # whether peers adapt a dense mass matrix rather than a diagonal one: whichever served
    # most of them better in trials
    dense: bool
    warmup: int  # iterations of warm-up of every method whose warm-up has a given length
    seconds: float  # for each method

    def arrays(self, data: Path | None) -> tuple[FloatArray, FloatArray]:
        """Return design, shape (n_rows, dim), and response, shape (n_rows,)."""
        if self.potential == "simulated-logistic":
            from surrokit_problems.regression import simulate_regression

            design, response, _ = simulate_regression(seed=2017, **self.settings)
        elif self.potential == "bank":
            from surrokit_problems.real_data import bank_regression

            design, response = bank_regression(self._file(data))
        else:
            from surrokit_problems.real_data import a9a_regression

            design, response = a9a_regression(self._file(data), **self.settings)
        return np.ascontiguousarray(design, dtype=np.float64), response

    def target(self, data: Path | None) -> Potential:
        """Return the registered target, as a user makes it."""
        settings = dict(self.settings)
        if self.potential in FILES:
            settings["path"] = self._file(data)
        made: Potential = sk.make("potential", self.potential, **settings)
        return made

    def starts(self, dim: int, chains: int, seed: int) -> FloatArray:
        """Return where all methods start, but the automatic one, shape (chains, dim)."""
        rng = np.random.default_rng((seed, 77))
        return SPREAD_OF_STARTS * rng.standard_normal((chains, dim))

    def _file(self, data: Path | None) -> Path:
        name = FILES[self.potential]
        if data is None:
            raise FileNotFoundError(
                f"{self.name} needs the file {name}; name its folder by --data or SURROKIT_DATA"
            )
        packed = data / f"{name}.gz"
        return packed if packed.is_file() else data / name


PROBLEMS = {
    problem.name: problem
    for problem in (
        Problem(
            name="simulated",
            title="Simulated, 100,000 rows, 50 parameters",
            potential="simulated-logistic",
            settings={"n_rows": 100_000, "dim": 50},
            step_size=0.045,
            n_steps=6,
            dense=False,
            warmup=150,
            seconds=75.0,
        ),
        Problem(
            name="simulated-million",
            title="Simulated, 1,000,000 rows, 20 parameters",
            potential="simulated-logistic",
            settings={"n_rows": 1_000_000, "dim": 20},
            step_size=0.018,
            n_steps=6,
            dense=False,
            warmup=80,
            seconds=40.0,
        ),
        Problem(
            name="bank",
            title="Bank Marketing, 40,197 rows, 25 parameters",
            potential="bank",
            step_size=0.012,
            n_steps=45,
            dense=True,
            warmup=250,
            seconds=60.0,
        ),
        Problem(
            name="a9a-60",
            title="a9a, 60 random projections, 32,561 rows, 61 parameters",
            potential="a9a",
            settings={"projected": 60},
            step_size=0.0085,
            n_steps=10,
            dense=True,
            warmup=250,
            seconds=60.0,
        ),
        Problem(
            name="a9a",
            title="a9a, all 123 features, 32,561 rows, 124 parameters",
            potential="a9a",
            step_size=0.0105,
            n_steps=50,
            dense=True,
            warmup=300,
            seconds=60.0,
        ),
    )
}
"""By name, in the order of the tables."""
