"""The paper's elliptic inverse problem as a black box: exact values for acceptance and for draws.

Prints three tables. Acceptance against the evaluations that the explorer ``rounds`` may pay for:
learning the forward outputs or U alone from values, and the outputs with their Jacobians; it is
that of the kept draws. Then exact values for each effective draw, everything counted, of the same
with plain settings, of adaptive Metropolis and of emcee's ensemble (from a thousand draws of the
prior the best walkers; its effective draws by its own autocorrelation time). Last, how far means
and standard deviations are from a long run of HMC.

    pip install emcee
    python benchmarks/black_box.py
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import attrs
import click
import numpy as np

import surrokit as sk
from harness import Measured, measured
from surrokit.errors import EvaluationWarning

VALUES, U_ALONE, JACOBIANS = "outputs, values", "U, values", "outputs, Jacobians"
BUDGETS = {
    VALUES: (100, 150, 200, 250, 350, 450),
    U_ALONE: (300, 500, 700),
    JACOBIANS: (40, 80, 150),
}


@attrs.frozen(kw_only=True)
class Outcome:
    """Draws, and what they cost."""

    name: str
    draws: np.ndarray
    ess: float
    values: int
    seconds: float

    @classmethod
    def of(cls, name: str, one: Measured) -> Outcome:
        """Return that of a run of ours."""
        return cls(
            name=name,
            draws=one.run.draws,
            ess=min(one.ess, one.ess_squares),
            values=exact_calls(one.run),
            seconds=one.seconds,
        )


def problem(*, outputs: bool = False, derivatives: bool = False) -> Any:
    """Return the problem with no more of it on offer."""
    return sk.make("potential", "elliptic-pde", outputs=outputs, derivatives=derivatives)


def sampled(way: str, evaluations: int | None, draws: int, seed: int) -> Measured:
    """Explore in rounds, learn, and sample; warm-up and exploration are the run's own."""
    explorer: Any = "rounds"
    if evaluations is not None:
        # the table says what each budget gives, unless rounds gain no more before
        explorer = ("rounds", {"evaluations": evaluations, "acceptance": 0.999})
    # no more is on offer than a way of learning takes
    target = problem(outputs=way != U_ALONE, derivatives=way == JACOBIANS)
    parts = {"surrogate": "additive", "sampler": "sub-chain", "explorer": explorer}
    return measured(target, draws=draws, seed=seed, **parts)


def exact_calls(run: sk.Run) -> int:
    """Return positions evaluated; with Jacobians each brings its outputs along."""
    return sum(run.calls[kind] for kind in ("value", "forward", "jacobian", "gradient"))


def acceptances(seeds: int, draws: int) -> None:
    """Print the first table."""
    for way, evaluations in [(way, n) for way, budgets in BUDGETS.items() for n in budgets]:
        found = [sampled(way, evaluations, draws, seed) for seed in range(1, seeds + 1)]
        runs = [one.run for one in found]
        accepted = ", ".join(f"{run.acceptance.mean():.2f}" for run in runs)
        seconds = np.mean([run.seconds["warmup"] + run.seconds["training"] for run in runs])
        before = np.mean([exact_calls(run) - draws * 4 for run in runs])
        ess = np.mean([min(one.ess, one.ess_squares) / draws / 4 for one in found])
        print(
            f"{way:20s} {evaluations:4d} evaluations explored: acceptance {accepted}; ESS a draw "
            f"{ess:.2f}; {before:.0f} exact calls beside the draws', {seconds:.1f} s before them",
            flush=True,
        )


def of_emcee(steps: int, walkers: int, seed: int) -> Outcome:
    """Return a run of emcee with its own moves; the first fifth is left out of the draws."""
    import emcee

    target, rng = problem(), np.random.default_rng(seed)
    start, counted = time.perf_counter(), 0

    def log_density(rows: np.ndarray) -> np.ndarray:
        nonlocal counted
        counted += len(rows)
        return -target.value(rows)

    sampler = emcee.EnsembleSampler(walkers, target.dim, log_density, vectorize=True)
    sampler.random_state = np.random.RandomState(seed).get_state()
    sampler.run_mcmc(target.initial(rng, walkers), steps)
    kept = sampler.get_chain(discard=steps // 5)
    away = np.square(kept - kept.mean(axis=(0, 1)))
    times = [emcee.autocorr.integrated_time(each, tol=0).max() for each in (kept, away)]
    return Outcome(
        name="emcee",
        draws=kept.transpose(1, 0, 2),
        ess=kept[..., 0].size / max(times),
        values=counted,
        seconds=time.perf_counter() - start,
    )


def costs(draws: int, seed: int) -> list[Outcome]:
    """Print the second table, and return what it was made of."""
    walk = {"sampler": "random-walk", "warmup": 25 * draws // 4, "draws": 25 * draws, "seed": seed}
    outcomes = [
        *(Outcome.of(f"surrogate, {way}", sampled(way, None, draws, seed)) for way in BUDGETS),
        Outcome.of("adaptive Metropolis", measured(problem(), **walk)),
        of_emcee(6 * draws, 64, seed),
    ]
    for outcome in outcomes:
        print(
            f"{outcome.name:28s} {outcome.values:6d} exact values, {outcome.ess:6.0f} effective "
            f"draws: {outcome.values / outcome.ess:.1f} values each; {outcome.seconds:.1f} s",
            flush=True,
        )
    return outcomes


def moments(outcomes: list[Outcome], draws: int, seed: int) -> None:
    """Print the third table."""
    run = measured(problem(derivatives=True), sampler="hmc", draws=4 * draws, seed=seed + 1).run
    mean, sd = run.draws.mean(axis=(0, 1)), run.draws.std(axis=(0, 1))
    for outcome in outcomes:
        errors = np.abs(outcome.draws.mean(axis=(0, 1)) - mean) / sd
        ratios = np.abs(outcome.draws.std(axis=(0, 1)) / sd - 1)
        print(
            f"{outcome.name:28s} means within {errors.max():.3f} sd (a standard error is "
            f"{1 / np.sqrt(outcome.ess):.3f} at most), sds within {ratios.max():.1%}",
            flush=True,
        )


@click.command()
@click.option("--draws", default=500, show_default=True, help="Of each of four chains.")
@click.option("--seeds", default=3, show_default=True, help="Runs for each acceptance.")
@click.option("--seed", default=1, show_default=True)
@click.option("--only", type=click.Choice(["acceptance", "costs"]), help="One table.")
def main(draws: int, seeds: int, seed: int, only: str | None) -> None:
    """Run all and print the tables."""
    # tuning tries steps at which the equations cannot be solved; they are counted all the same
    warnings.simplefilter("ignore", EvaluationWarning)
    if only != "costs":
        acceptances(seeds, draws)
    if only != "acceptance":
        moments(costs(draws, seed), draws, seed)


if __name__ == "__main__":
    main()
