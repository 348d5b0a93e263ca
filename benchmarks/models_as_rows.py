"""A logistic regression in PyMC or NumPyro, sampled whole and as a sum over rows.

    python benchmarks/models_as_rows.py numpyro

It has 100,000 rows and 20 columns, and an intercept. Of either it prints seconds to make the target
and to sample from it, the least bulk effective size, and calls. Everything is picked by the policy.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import surrokit as sk

N_ROWS, N_COLUMNS = 100_000, 20
_RNG = np.random.default_rng(1)
X = _RNG.normal(size=(N_ROWS, N_COLUMNS))
_CHANCES = 1.0 / (1.0 + np.exp(-X @ np.linspace(-1.0, 1.0, N_COLUMNS)))
Y = (_RNG.random(N_ROWS) < _CHANCES).astype(int)


def in_numpyro(rows: bool | None) -> Any:
    """Return the target of the model in NumPyro."""
    import numpyro
    from numpyro import distributions as dist

    numpyro.enable_x64()
    from surrokit_jax import from_numpyro

    def model(x: Any, y: Any) -> None:
        slopes = numpyro.sample("slopes", dist.Normal().expand([x.shape[1]]).to_event(1))
        intercept = numpyro.sample("intercept", dist.Normal(0.0, 2.5))
        with numpyro.plate("rows", len(y)):
            numpyro.sample("y", dist.Bernoulli(logits=intercept + x @ slopes), obs=y)

    return from_numpyro(model, X, Y, rows=rows)


def in_pymc(rows: bool | None) -> Any:
    """Return the target of the model in PyMC."""
    import pymc

    from surrokit_pymc import from_pymc

    with pymc.Model() as model:
        slopes, intercept = pymc.Normal("slopes", shape=N_COLUMNS), pymc.Normal("intercept", 0, 2.5)
        pymc.Bernoulli("y", logit_p=intercept + pymc.math.dot(X, slopes), observed=Y)
    return from_pymc(model, rows=rows)


def measure(of: Callable[[bool | None], Any], rows: bool | None) -> None:
    """Print what one of both costs."""
    start = time.perf_counter()
    target = of(rows)
    made = time.perf_counter() - start
    start = time.perf_counter()
    run = sk.sample(target, seed=1, progress=False)
    took = time.perf_counter() - start
    draws = np.concatenate([run["slopes"], run["intercept"][..., None]], axis=2)
    ess = sk.effective_sample_size(draws, "bulk").min()
    print(f"rows={rows}: made in {made:.1f} s, sampled in {took:.1f} s")
    print(f"  {run.choice}")
    print(f"  ESS {ess:.0f}, {ess / took:.1f} ESS/s, calls {dict(run.calls)}", flush=True)


def main() -> None:
    """Measure both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("language", choices=("numpyro", "pymc"))
    of = {"numpyro": in_numpyro, "pymc": in_pymc}[parser.parse_args().language]
    for rows in (None, False):
        measure(of, rows)


if __name__ == "__main__":
    main()
