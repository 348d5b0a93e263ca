"""The 64-parameter inverse problem of Aristoff and Bangerth: solves that an effective draw costs.

Prints what a gradient by the adjoint and a Jacobian cost in solves, timed here; then for each
method:

- exact calls by kind, and what they come to in solves, exploration and warm-up included;
- the least bulk effective sample size of the 64 parameters, the greatest R-hat, the acceptance;
- solves for each effective draw, all counted, and while sampling alone;
- seconds of the processor, which surrogates take besides solves.

    OPENBLAS_NUM_THREADS=1 python benchmarks/aristoff_bangerth.py
    OPENBLAS_NUM_THREADS=1 python benchmarks/aristoff_bangerth.py --only "HMC" --draws 4000
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import click
import numpy as np
from threadpoolctl import threadpool_limits

import surrokit as sk
from harness import in_turns, measured

ROUNDS = ("rounds", {"evaluations": 900, "batch": 100})
LONG = ("hmc", {"shortest": 0.5, "path_length": 5.0, "target_acceptance": 0.65})
WARPED_PATHS = (
    "hmc",
    {"warp": True, "shortest": 0.5, "path_length": 4.5, "target_acceptance": 0.7},
)
METHODS: Mapping[str, Mapping[str, Any]] = {
    "HMC": {"sampler": "hmc", "warmup": 600},
    "HMC, long paths": {"sampler": LONG, "warmup": 300},
    "HMC, warped": {"sampler": WARPED_PATHS, "warmup": 350},
    "NUTS": {"sampler": "nuts", "warmup": 600},
    "sub-chains": {"sampler": "sub-chain", "surrogate": "additive", "explorer": ROUNDS},
}


def price(target: sk.Potential, repeats: int = 30) -> dict[str, float]:
    """Return what a call of each kind costs, in solves: the fastest of several made in turn."""
    one = target.initial(np.random.default_rng(1), 1)
    calls: Mapping[str, Callable[[], object]] = {
        "forward": lambda: target.forward(one),
        "vjp": lambda: target.forward_and_gradient(one),
        "jacobian": lambda: target.forward_and_jacobian(one),
    }
    # after another kind the processor's caches would be cold, so each is made five times
    found = in_turns(calls, repeats, each=5, clock=time.process_time)
    return {kind: seconds.min() / found["forward"].min() for kind, seconds in found.items()}


def report(name: str, run: sk.Run, prices: Mapping[str, float], seconds: float) -> None:
    """Print a line of figures."""
    ess = run.ess("bulk")
    total = sum(prices[kind] * n for kind, n in run.calls.items() if n)
    before = sum(prices[kind] * each[-1] for kind, each in run.warmup.calls.items() if each[-1])
    sampling = total - before
    made = ", ".join(f"{n} {kind}" for kind, n in run.calls.items() if n)
    print(f"{name}: {made}; {total:.0f} solves, {seconds:.0f} s")
    print(
        f"    ESS {ess.min():.0f} (median {np.median(ess):.0f}, tail {run.ess('tail').min():.0f}), "
        f"R-hat {run.rhat().max():.4f}, acceptance {run.acceptance.mean():.3f}; solves an "
        f"effective draw: {total / ess.min():.1f}, while sampling {sampling / ess.min():.1f}"
    )
    for finding in run.verdict.warnings:
        print(f"    {finding.message[:150]}")


@click.command()
@click.option("--only", default="", help="Part of the names of the methods to run.")
@click.option("--draws", default=2000, help="Of each of four chains.")
@click.option("--seed", default=1)
def main(only: str, draws: int, seed: int) -> None:
    """Run the methods on the problem."""
    target = sk.make("potential", "aristoff-bangerth")
    prices = price(target)
    print(", ".join(f"{kind} {cost:.2f} solves" for kind, cost in prices.items()))
    for name, method in METHODS.items():
        if only not in name:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            one = measured(target, draws=draws, seed=seed, **method)
        report(name, one.run, prices, one.processor)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
