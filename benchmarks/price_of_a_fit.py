"""A posterior beside a fit: seconds of 1000 effective draws, and of scikit-learn's own fits.

    OPENBLAS_NUM_THREADS=1 python benchmarks/price_of_a_fit.py --repeats 3

makes data of logistic and Poisson regressions of two sizes. It prints a row of a Markdown table for
each: seconds of the processor, which company on the machine hardly changes, of ``lbfgs``, of
``newton-cholesky`` (both with scikit-learn's own stopping rules) and of the estimator with 1000
effective draws of every coefficient, each the least of some repeats in turn; the ratios; the least
effective sample size; the acceptance; and the largest distance of a posterior mean from the fit,
in posterior standard deviations.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, PoissonRegressor

from harness import in_turns
from surrokit_sklearn import BayesianGLMRegressor, BayesianLogisticRegression

SIZES = ((1_000_000, 20), (100_000, 50))
SOLVERS = ("lbfgs", "newton-cholesky")


def make_data(family: str, n_rows: int, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Return normal features, and responses of coefficients of a usual size."""
    rng = np.random.default_rng(1)
    features = rng.standard_normal((n_rows, dim))
    size = 0.5 if family == "logistic" else 0.15
    predictor = 0.3 + features @ (size * rng.standard_normal(dim))
    if family == "logistic":
        return features, (rng.random(n_rows) < 1.0 / (1.0 + np.exp(-predictor))).astype(int)
    return features, rng.poisson(np.exp(predictor)).astype(float)


def competitors(family: str) -> dict[str, Callable[[], Any]]:
    """Return what makes each estimator; fits have hardly any penalty, as priors are wide."""
    if family == "logistic":
        fits = {each: lambda each=each: LogisticRegression(C=1e3, solver=each) for each in SOLVERS}
        return {**fits, "posterior": lambda: BayesianLogisticRegression(random_state=0)}
    fits = {each: lambda each=each: PoissonRegressor(alpha=1e-8, solver=each) for each in SOLVERS}
    return {**fits, "posterior": lambda: BayesianGLMRegressor(family="poisson", random_state=0)}


def run(family: str, n_rows: int, dim: int, repeats: int) -> str:
    """Return a row of the table."""
    features, response = make_data(family, n_rows, dim)
    fitted: dict[str, Any] = {}
    calls = {
        name: lambda name=name, make=make: fitted.update({name: make().fit(features, response)})
        for name, make in competitors(family).items()
    }
    seconds = in_turns(calls, repeats, clock=time.process_time)
    least = {name: each.min() for name, each in seconds.items()}
    ours, best = fitted["posterior"], fitted["newton-cholesky"]
    apart = np.ravel(ours.coef_ - best.coef_) / np.ravel(ours.coef_draws_.std(axis=0))
    cells = [
        family,
        f"{n_rows} x {dim}",
        *(f"{least[name]:.2f}" for name in (*SOLVERS, "posterior")),
        *(f"{least['posterior'] / least[name]:.1f}" for name in SOLVERS),
        f"{ours.run_.ess('bulk').min():.0f}",
        f"{ours.run_.acceptance.mean():.2f}",
        f"{np.abs(apart).max():.2f}",
    ]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Print the table, or profiles."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--families", nargs="*", default=["logistic", "poisson"])
    asked = parser.parse_args()
    names = ["family", "rows", *SOLVERS, "posterior", "/ lbfgs", "/ newton", "ESS", "acceptance"]
    print("| " + " | ".join([*names, "distance"]) + " |")
    print("|---" * (len(names) + 1) + "|")
    for family in asked.families:
        for n_rows, dim in SIZES:
            print(run(family, n_rows, dim, asked.repeats), flush=True)


if __name__ == "__main__":
    main()
