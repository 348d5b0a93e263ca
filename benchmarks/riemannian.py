"""HMC, RMHMC and RNS-RMHMC on logistic regression, in one run, all with the same number of chains.

On the paper's simulated data: exact HMC (step size 0.045, up to 6 steps), exact RMHMC (0.54, 2
steps), RNS-RMHMC on the paper's surrogate (a network alone, 2000 nodes, values) with the same
settings, and on this project's default surrogate, with the generalized leapfrog and with the
implicit midpoint rule. With ``--bank`` the same for the Bank Marketing data (HMC 0.012 and 45;
RMHMC 0.4 and 6; 1000 nodes).

Prints acceptance, effective draws, seconds an iteration and while sampling, and the ratios to HMC
and to exact RMHMC; exact calls and seconds of exploration and training apart.

    python benchmarks/riemannian.py --bank path/to/bank-additional-full.csv
"""

from __future__ import annotations

from typing import Any

import attrs
import click
import numpy as np

import surrokit as sk
from surrokit.potentials import Potential


@attrs.frozen(kw_only=True)
class Problem:
    """A target with the paper's settings."""

    name: str
    target: Potential
    hmc: dict[str, Any]
    rmhmc: dict[str, Any]
    n_nodes: int

    def methods(self, draws: int, exact_draws: int, training: int) -> dict[str, dict[str, Any]]:
        """Return settings of runs by the name in the table."""
        hmc = ("hmc", {"metric": "identity", **self.hmc})
        # harder than the default, since U is convex and its surrogates nearly so
        metric = ("softabs", {"hardness": 200.0})
        paper = {"sampler": ("rmhmc", {"metric": metric, **self.rmhmc}), "draws": draws}
        midpoint = {"integrator": "implicit-midpoint", "step_size": 2.2, "n_steps": 1}

        def learnt(rows: int, surrogate: Any) -> dict[str, Any]:
            # four chains pay for about 3.5 gradients an iteration each
            iterations = max(10, int(rows / (2.0 * (self.hmc["n_steps"] + 1))))
            explored = {"sampler": hmc, "iterations": iterations, "discard": iterations // 5}
            explorer = ("sampler", explored)
            return {"surrogate": surrogate, "explorer": explorer, "warmup": iterations + 100}

        # the paper's surrogate: nodes without a trend, trained on values; inputs are whitened
        alone = {"trend": "constant", "train_on": "values", "learns": "potential"}
        ours = learnt(300, "additive")
        return {
            "HMC": {"sampler": hmc, "draws": draws, "warmup": 100},
            "RMHMC": {
                "sampler": ("rmhmc", {"metric": "fisher", **self.rmhmc}),
                "draws": exact_draws,
                "warmup": 10,
            },
            "RNS-RMHMC, network alone": {
                **paper,
                **learnt(training, ("additive", {"n_nodes": self.n_nodes, **alone})),
            },
            "RNS-RMHMC, default": {**paper, **ours},
            "RNS-RMHMC, default, midpoint": {
                **paper,
                **ours,
                "sampler": ("rmhmc", {"metric": metric, **midpoint}),
            },
        }


def compare(problem: Problem, methods: dict[str, dict[str, Any]], chains: int, seed: int) -> None:
    """Run methods one after the other, each from where the last one ended, and print figures."""
    print(f"{problem.name}: {chains} chains", flush=True)
    start, rates, accepted, times = np.zeros(problem.target.dim), {}, {}, {}
    for name, settings in methods.items():
        given = {"chains": chains, "initial": start, "seed": seed, "progress": False, **settings}
        run = sk.sample(problem.target, **given)
        ess, seconds = run.ess("bulk").min(), run.seconds
        rate = rates[name] = ess / seconds["sampling"]
        acceptance = accepted[name] = float(run.acceptance.mean())
        times[name] = seconds["sampling"] / run.draws.shape[1]
        before = {kind: int(calls[-1]) for kind, calls in run.warmup.calls.items() if calls[-1]}
        print(
            f"{name:30s} acceptance {acceptance:.3f}, ESS/draw min "
            f"{ess / run.draws[..., 0].size:.3f}, {1e3 * times[name]:.2f} ms an iteration, min ESS "
            f"a second {rate:.1f}: {rate / rates['HMC']:.2f} times HMC's, "
            f"{rate / rates.get('RMHMC', np.nan):.1f} times RMHMC's; acceptance "
            f"{acceptance / accepted.get('RMHMC', np.nan):.2f} times RMHMC's\n"
            f"{'':30s} before the draws: {before}, {seconds['warmup']:.1f} s, training "
            f"{seconds['training']:.1f} s; R-hat {run.rhat().max():.3f}",
            flush=True,
        )
        start = run.draws[:, -1]
    print(f"an iteration of RMHMC takes as long as {times['RMHMC'] / times['HMC']:.1f} of HMC")


@click.command()
@click.option("--bank", type=click.Path(exists=True, dir_okay=False), help="The bank's file.")
@click.option("--draws", default=1000, show_default=True)
@click.option("--exact-draws", default=200, show_default=True, help="Of exact RMHMC.")
@click.option("--chains", default=4, show_default=True)
@click.option("--training", default=4000, show_default=True, help="Rows for the network alone.")
@click.option("--seed", default=1, show_default=True)
def main(bank: str | None, chains: int, seed: int, **sizes: int) -> None:
    """Run all methods and print the comparison."""
    problems = [
        Problem(
            name="simulated logistic regression, 100000 x 50",
            target=sk.make("potential", "simulated-logistic"),
            hmc={"step_size": 0.045, "n_steps": 6},
            rmhmc={"step_size": 0.54, "n_steps": 2},
            n_nodes=2000,
        )
    ]
    if bank is not None:
        problems.append(
            Problem(
                name="Bank Marketing, 40197 x 25",
                target=sk.make("potential", "bank", path=bank),
                hmc={"step_size": 0.012, "n_steps": 45},
                rmhmc={"step_size": 0.4, "n_steps": 6},
                n_nodes=1000,
            )
        )
    for problem in problems:
        compare(problem, problem.methods(**sizes), chains, seed)


if __name__ == "__main__":
    main()
