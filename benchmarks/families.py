"""Seconds for 1,000 effective draws of regressions: decided by a few rows, and by HMC.

    python benchmarks/families.py --rows 100000

prints a row of a Markdown table for each family: rows expected to be touched by a decision, and the
order of expansions. Then, for decisions by rows and for HMC: acceptance, seconds for 1000 effective
draws (by the clock, draws alone), processor seconds of the whole run, and R-hat. HMC has a dense
mass matrix and tunes itself for 250 iterations; it makes 4 x 200 draws, so its figures are rough.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

import numpy as np

import surrokit as sk
from harness import measured
from surrokit_corrections.subsampled import Subsampled

DIM = 20
BY_ROWS: Mapping[str, Any] = {
    "sampler": "gaussian",
    "surrogate": "quadratic",
    "explorer": "rounds",
    "correction": "subsampled",
    "draws": 5000,
}
BY_HMC: Mapping[str, Any] = {
    "sampler": "hmc",
    "surrogate": "none",
    "warmup": 250,
    "draws": 200,
}


def data(family: str, n_rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Return a design, responses and the settings of a family."""
    rng = np.random.default_rng(seed)
    dim = DIM // 2 if family == "multinomial" else DIM
    design = 0.3 * rng.standard_normal((n_rows, dim))
    design[:, 0] = 1.0
    e = design @ rng.uniform(-0.7, 0.7, dim)
    mean = np.exp(e)
    censored = {"event": (rng.random(n_rows) < 0.7).astype(float)}
    other = design @ rng.uniform(-0.7, 0.7, dim)
    noisy = np.column_stack([np.zeros(n_rows), e, other]) + rng.gumbel(size=(n_rows, 3))
    return {
        "gaussian": lambda: (design, e + rng.standard_normal(n_rows), {}),
        "student": lambda: (design, e + rng.standard_t(4, n_rows), {}),
        "logistic": lambda: (design, (e + rng.logistic(size=n_rows) > 0).astype(float), {}),
        "probit": lambda: (design, (e + rng.standard_normal(n_rows) > 0).astype(float), {}),
        "multinomial": lambda: (design, noisy.argmax(axis=1).astype(float), {}),
        "poisson": lambda: (design, rng.poisson(mean).astype(float), {}),
        "negative-binomial": lambda: (
            design,
            rng.poisson(mean * rng.gamma(2.0, 0.5, n_rows)).astype(float),
            {"size": 2.0},
        ),
        "gamma": lambda: (design, rng.gamma(2.0, 0.5, n_rows) * mean, {"shape": 2.0}),
        "exponential": lambda: (design, rng.exponential(1.0 / mean), censored),
        "weibull": lambda: (
            design,
            (rng.exponential(1.0 / mean)) ** (1.0 / 1.5),
            {**censored, "shape": 1.5},
        ),
    }[family]()


FAMILIES = (
    *("gaussian", "student", "logistic", "probit", "multinomial", "poisson"),
    *("negative-binomial", "gamma", "exponential", "weibull"),
)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--families", nargs="*", default=FAMILIES)
    parser.add_argument("--no-hmc", action="store_true")
    asked = parser.parse_args()
    for family in asked.families:
        design, response, settings = data(family, asked.rows)
        target = sk.rows_potential(family, design, response, prior=10.0, **settings)
        correction = Subsampled().bind(target).prepare(np.zeros(target.dim))
        columns = [f"{correction.expected_rows:.3g}", correction.thinning.order]
        for options in (BY_ROWS,) if asked.no_hmc else (BY_ROWS, BY_HMC):
            one = measured(target, seed=1, **options)
            drawing = 1000.0 * one.run.seconds["sampling"] / one.ess
            columns += [f"{one.run.acceptance.mean():.2f}", f"{drawing:.3g}"]
            columns += [f"{one.processor:.3g}", f"{one.run.rhat().max():.3f}"]
        print(f"| `{family}` | " + " | ".join(map(str, columns)) + " |", flush=True)


if __name__ == "__main__":
    main()
