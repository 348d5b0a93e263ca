"""HMC and RNS-HMC on the Bank Marketing data with the paper's settings, in one run.

Step size 0.012, paths of up to 45 steps, identity mass matrix, prior variance 100, 1000 nodes, one
chain each, HMC with the merged leapfrog. Prints acceptance, exact calls, seconds by phase and
effective draws, and compares the two posteriors.

    python benchmarks/bank.py path/to/bank-additional-full.csv
"""

from __future__ import annotations

import click
import numpy as np

import surrokit as sk


@click.command()
@click.argument("path", type=click.Path(exists=True, dir_okay=False))
@click.option("--draws", default=5000, show_default=True)
@click.option("--warmup", default=1000, show_default=True, help="Exact iterations before draws.")
@click.option("--seed", default=1, show_default=True)
def main(path: str, draws: int, warmup: int, seed: int) -> None:
    """Run both samplers and print the comparison."""
    target = sk.make("potential", "bank", path=path)
    settings = {
        "sampler": ("hmc", {"metric": "identity", "step_size": 0.012, "n_steps": 45}),
        "chains": 1,
        "draws": draws,
        "initial": np.zeros(target.dim),
    }
    runs = {
        "HMC": sk.sample(target, warmup=warmup, seed=seed, **settings),
        "RNS-HMC": sk.sample(
            target,
            surrogate=("additive", {"n_nodes": 1000}),
            explorer=("sampler", {"iterations": warmup, "discard": warmup // 5}),
            warmup=warmup,
            seed=seed + 1,
            **settings,
        ),
    }
    for name, run in runs.items():
        kept_calls = {
            kind: int(calls[-1] - run.warmup.calls[kind][-1])
            for kind, calls in run.kept.calls.items()
            if calls[-1]
        }
        ess = run.ess("bulk")
        print(
            f"{name:8s} acceptance {run.acceptance[0]:.3f}, calls while sampling {kept_calls}, "
            + ", ".join(f"{phase} {seconds:.2f} s" for phase, seconds in run.seconds.items())
            + f", ESS min {ess.min():.0f} median {np.median(ess):.0f} max {ess.max():.0f}, "
            f"min ESS a second {ess.min() / run.seconds['sampling']:.1f}"
        )
    _compare(runs["HMC"], runs["RNS-HMC"])


def _compare(exact: sk.Run, surrogate: sk.Run) -> None:
    efficiency = [run.ess("bulk").min() / run.seconds["sampling"] for run in (surrogate, exact)]
    first, second = exact.summary(), surrogate.summary()
    errors = np.hypot(first["mcse"], second["mcse"])
    print(
        f"min ESS a second, RNS-HMC over HMC: {efficiency[0] / efficiency[1]:.1f}\n"
        f"acceptance, RNS-HMC over HMC: {surrogate.acceptance[0] / exact.acceptance[0]:.3f}\n"
        "largest difference of means, in Monte Carlo standard errors: "
        f"{np.abs((first['mean'] - second['mean']) / errors).max():.2f}\n"
        "largest difference of standard deviations: "
        f"{np.abs(second['sd'] / first['sd'] - 1).max():.1%}"
    )


if __name__ == "__main__":
    main()
