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

from collections.abc import Mapping
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
    hmc: tuple[float, int]
    rmhmc: tuple[float, int]
    n_nodes: int


@attrs.frozen(kw_only=True)
class Method:
    """Settings of a run, by the name in the table."""

    name: str
    draws: int
    warmup: int
    settings: Mapping[str, Any]


ALONE = {"trend": "constant", "train_on": "values", "learns": "potential"}
"""The paper's surrogate: nodes without a trend, trained on values. Inputs are whitened."""

METRIC = ("softabs", {"hardness": 200.0})
"""Harder than the default, since U is convex and its surrogates nearly so."""

MIDPOINT = "implicit-midpoint"


def _explored(iterations: int, step_size: float, n_steps: int) -> tuple[str, dict[str, Any]]:
    """Return an explorer with the paper's HMC."""
    sampler = ("hmc", {"metric": "identity", "step_size": step_size, "n_steps": n_steps})
    return "sampler", {
        "sampler": sampler,
        "iterations": iterations,
        "discard": iterations // 5,
    }


def _methods(problem: Problem, draws: int, exact_draws: int, training: int) -> list[Method]:
    step_size, n_steps = problem.hmc
    paper_step, paper_steps = problem.rmhmc
    paper = {"step_size": paper_step, "n_steps": paper_steps}
    riemannian = ("rmhmc", {"metric": METRIC, **paper})
    # four chains pay for about 3.5 gradients an iteration each
    many = max(10, int(training / (2.0 * (n_steps + 1))))
    few = max(10, int(300 / (2.0 * (n_steps + 1))))
    of_paper = {
        "surrogate": ("additive", {"n_nodes": problem.n_nodes, **ALONE}),
        "explorer": _explored(many, *problem.hmc),
    }
    of_ours = {"surrogate": "additive", "explorer": _explored(few, *problem.hmc)}
    longer = {"step_size": 2.2, "n_steps": 1}
    midpoint = ("rmhmc", {"metric": METRIC, "integrator": MIDPOINT, **longer})
    return [
        Method(
            name="HMC",
            draws=draws,
            warmup=100,
            settings={
                "sampler": (
                    "hmc",
                    {"metric": "identity", "step_size": step_size, "n_steps": n_steps},
                )
            },
        ),
        Method(
            name="RMHMC",
            draws=exact_draws,
            warmup=10,
            settings={"sampler": ("rmhmc", {"metric": "fisher", **paper})},
        ),
        Method(
            name="RNS-RMHMC, network alone",
            draws=draws,
            warmup=many + 100,
            settings={"sampler": riemannian, **of_paper},
        ),
        Method(
            name="RNS-RMHMC, default",
            draws=draws,
            warmup=few + 100,
            settings={"sampler": riemannian, **of_ours},
        ),
        Method(
            name="RNS-RMHMC, default, midpoint",
            draws=draws,
            warmup=few + 100,
            settings={"sampler": midpoint, **of_ours},
        ),
    ]


def _printed(name: str, run: sk.Run, baselines: dict[str, float], acceptances: dict[str, float]):
    ess, seconds = run.ess("bulk"), run.seconds
    efficiency = ess.min() / seconds["sampling"]
    acceptance = float(run.acceptance.mean())
    baselines[name], acceptances[name] = efficiency, acceptance
    iterations = run.draws.shape[1]
    print(
        f"{name:30s} acceptance {acceptance:.3f}, "
        f"ESS/draw min {ess.min() / run.draws[..., 0].size:.3f}, "
        f"{1e3 * seconds['sampling'] / iterations:.2f} ms an iteration, min ESS a second "
        f"{efficiency:.1f}: {efficiency / baselines['HMC']:.2f} times HMC's, "
        f"{efficiency / baselines.get('RMHMC', np.nan):.1f} times RMHMC's; acceptance "
        f"{acceptance / acceptances.get('RMHMC', np.nan):.2f} times RMHMC's",
        flush=True,
    )
    before = {kind: int(calls[-1]) for kind, calls in run.warmup.calls.items() if calls[-1]}
    print(
        f"{'':30s} before the draws: {before}, {seconds['warmup']:.1f} s, "
        f"training {seconds['training']:.1f} s; R-hat {run.rhat().max():.3f}",
        flush=True,
    )


def _compared(problem: Problem, methods: list[Method], chains: int, seed: int) -> None:
    print(f"{problem.name}: {chains} chains", flush=True)
    start = np.zeros(problem.target.dim)
    baselines: dict[str, float] = {}
    acceptances: dict[str, float] = {}
    times: dict[str, float] = {}
    for method in methods:
        run = sk.sample(
            problem.target,
            chains=chains,
            warmup=method.warmup,
            draws=method.draws,
            initial=start,
            seed=seed,
            progress=False,
            **method.settings,
        )
        _printed(method.name, run, baselines, acceptances)
        times[method.name] = run.seconds["sampling"] / run.draws.shape[1]
        start = run.draws[:, -1]
    print(f"an iteration of RMHMC takes as long as {times['RMHMC'] / times['HMC']:.1f} of HMC")


@click.command()
@click.option("--bank", type=click.Path(exists=True, dir_okay=False), help="The bank's file.")
@click.option("--draws", default=1000, show_default=True)
@click.option("--exact-draws", default=200, show_default=True, help="Of exact RMHMC.")
@click.option("--chains", default=4, show_default=True)
@click.option("--training", default=4000, show_default=True, help="Rows for the network alone.")
@click.option("--seed", default=1, show_default=True)
def main(
    bank: str | None, draws: int, exact_draws: int, chains: int, training: int, seed: int
) -> None:
    """Run all methods and print the comparison."""
    problems = [
        Problem(
            name="simulated logistic regression, 100000 x 50",
            target=sk.make("potential", "simulated-logistic"),
            hmc=(0.045, 6),
            rmhmc=(0.54, 2),
            n_nodes=2000,
        )
    ]
    if bank is not None:
        problems.append(
            Problem(
                name="Bank Marketing, 40197 x 25",
                target=sk.make("potential", "bank", path=bank),
                hmc=(0.012, 45),
                rmhmc=(0.4, 6),
                n_nodes=1000,
            )
        )
    for problem in problems:
        _compared(problem, _methods(problem, draws, exact_draws, training), chains, seed)


if __name__ == "__main__":
    main()
