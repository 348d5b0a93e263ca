"""Sub-chains on rows of the data, on networks and on quadratics against dense HMC, in one run.

The targets are a9a with all 124 parameters, a9a projected to 61, and Bank Marketing (25), with the
paper's prior. The baseline is this project's own HMC with a dense mass matrix, tuned; a surrogate
is found by the explorer ``rounds`` from the same start, and every second of it counts. Prints, for
each method, the smallest bulk ESS of q and of (q - mean)^2 over the parameters, that ESS a second
of the whole run, and (for machines that others use, too) a second of the processor's time, R-hat,
the acceptance, and exact calls.

    python benchmarks/a9a.py path/to/a9a path/to/bank-additional-full.csv
"""

from __future__ import annotations

import time

import click
import numpy as np

import surrokit as sk
from surrokit.diagnostics import effective_sample_size, r_hat

TARGETS = ("a9a", "a9a-61", "bank")
HMC = "dense HMC"
METHODS = {
    HMC: {"sampler": ("hmc", {"metric": "dense"})},
    "rows": {"surrogate": "rows"},
    "additive": {"surrogate": "additive"},
    "quadratic": {"surrogate": "quadratic"},
    "gaussian": {"surrogate": "quadratic", "sampler": "gaussian"},  # independent draws from it
}
SURROGATE = {"sampler": "sub-chain", "explorer": "rounds"}


def target_named(name: str, a9a: str, bank: str) -> sk.Potential:
    """Return one of :data:`TARGETS`."""
    if name == "bank":
        return sk.make("potential", "bank", path=bank)
    return sk.make("potential", "a9a", path=a9a, projected=60 if name == "a9a-61" else None)


def figures(run: sk.Run, seconds: float, processor: float) -> dict[str, float]:
    """Return what is compared; ``processor`` is the time that the processor worked."""
    away = np.square(run.draws - run.draws.mean(axis=(0, 1)))
    ess = [float(effective_sample_size(each, "bulk").min()) for each in (run.draws, away)]
    return {
        "ess of q": ess[0],
        "ess of (q - mean)^2": ess[1],
        "min ess a second": min(ess) / seconds,
        "min ess a processor second": min(ess) / processor,
        "seconds": seconds,
        "R-hat": float(max(r_hat(run.draws).max(), r_hat(away).max())),
        "acceptance": float(run.acceptance.mean()),
        **{f"{kind} calls": float(count) for kind, count in run.calls.items() if count},
    }


def sampled(
    target: sk.Potential, method: str, draws: int, chains: int, seed: int, warmup: int = 1000
) -> sk.Run:
    """Run one method from a standing start; ``warmup`` is that of HMC."""
    settings = dict(METHODS[method])
    if method != HMC:
        settings = {**SURROGATE, **settings}
    else:
        settings["warmup"] = warmup
    return sk.sample(
        target,
        **settings,
        chains=chains,
        draws=draws,
        initial=np.zeros(target.dim),
        seed=seed,
        progress=False,
    )


@click.command()
@click.argument("a9a", type=click.Path(exists=True, dir_okay=False))
@click.argument("bank", type=click.Path(exists=True, dir_okay=False))
@click.option("--target", "targets", multiple=True, default=TARGETS, show_default=True)
@click.option("--method", "methods", multiple=True, default=tuple(METHODS), show_default=True)
@click.option("--draws", default=2500, show_default=True, help="Of a method with a surrogate.")
@click.option("--hmc-draws", default=500, show_default=True)
@click.option("--hmc-warmup", default=1000, show_default=True)
@click.option("--chains", default=4, show_default=True)
@click.option("--seed", default=1, show_default=True)
def main(
    a9a: str,
    bank: str,
    targets: tuple[str, ...],
    methods: tuple[str, ...],
    draws: int,
    hmc_draws: int,
    hmc_warmup: int,
    chains: int,
    seed: int,
) -> None:
    """Run the methods one after the other on each target and print the comparison."""
    for name in targets:
        target = target_named(name, a9a, bank)
        target.value_and_gradient(np.zeros((chains, target.dim)))  # warm the cache for the first
        print(f"{name}, {target.dim} parameters, {chains} chains")
        rates = {}
        for method in methods:
            began, worked = time.perf_counter(), time.process_time()
            n_draws = hmc_draws if method == HMC else draws
            run = sampled(target, method, n_draws, chains, seed, hmc_warmup)
            found = figures(run, time.perf_counter() - began, time.process_time() - worked)
            rates[method] = np.array(
                [found[f"min ess a {what}second"] for what in ("", "processor ")]
            )
            wall, processor = rates[method] / rates.get(HMC, np.nan)
            ratio = f"{wall:5.1f} ({processor:.1f}) x HMC, " if HMC in rates else ""
            text = ", ".join(f"{key} {value:.4g}" for key, value in found.items())
            print(f"  {method:10s} {ratio}{text}", flush=True)


if __name__ == "__main__":
    main()
