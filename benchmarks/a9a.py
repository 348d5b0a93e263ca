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

import click
import numpy as np

import surrokit as sk
from harness import Measured, measured
from surrokit.diagnostics import r_hat

TARGETS = ("a9a", "a9a-61", "bank")
HMC = "dense HMC"
SURROGATE = {"sampler": "sub-chain", "explorer": "rounds"}
METHODS = {
    HMC: {"sampler": ("hmc", {"metric": "dense"})},
    "rows": {**SURROGATE, "surrogate": "rows"},
    "additive": {**SURROGATE, "surrogate": "additive"},
    "quadratic": {**SURROGATE, "surrogate": "quadratic"},
    # independent draws from it
    "gaussian": {**SURROGATE, "surrogate": "quadratic", "sampler": "gaussian"},
}


def figures(one: Measured) -> dict[str, float]:
    """Return what is compared."""
    run, least = one.run, min(one.ess, one.ess_squares)
    away = np.square(run.draws - run.draws.mean(axis=(0, 1)))
    return {
        "ess of q": one.ess,
        "ess of (q - mean)^2": one.ess_squares,
        "min ess a second": least / one.seconds,
        "min ess a processor second": least / one.processor,
        "seconds": one.seconds,
        "R-hat": float(max(r_hat(run.draws).max(), r_hat(away).max())),
        "acceptance": float(run.acceptance.mean()),
        **{f"{kind} calls": float(count) for kind, count in run.calls.items() if count},
    }


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
def main(a9a, bank, targets, methods, draws, hmc_draws, hmc_warmup, **sizes) -> None:
    """Run the methods one after the other on each target and print the comparison."""
    for name in targets:
        projected = 60 if name == "a9a-61" else None
        data = {"path": bank} if name == "bank" else {"path": a9a, "projected": projected}
        target = sk.make("potential", name.partition("-")[0], **data)
        start = np.zeros(target.dim)
        target.value_and_gradient(np.tile(start, (sizes["chains"], 1)))  # warm the cache
        print(f"{name}, {target.dim} parameters, {sizes['chains']} chains")
        rates = {}
        for method in methods:
            of_hmc = {"draws": hmc_draws, "warmup": hmc_warmup}
            lengths = of_hmc if method == HMC else {"draws": draws}
            found = figures(measured(target, **METHODS[method], **lengths, initial=start, **sizes))
            rates[method] = [found[f"min ess a {what}second"] for what in ("", "processor ")]
            wall, processor = np.divide(rates[method], rates.get(HMC, np.nan))
            ratio = f"{wall:5.1f} ({processor:.1f}) x HMC, " if HMC in rates else ""
            text = ", ".join(f"{key} {value:.4g}" for key, value in found.items())
            print(f"  {method:10s} {ratio}{text}", flush=True)


if __name__ == "__main__":
    main()
