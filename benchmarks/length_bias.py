"""What a limit on seconds does to a mean, where draws above 1 take five times as long.

Prints P(x > 1) of a standard normal, averaged over short runs, for three rules of stopping: the
iteration that the limit falls into is kept, or dropped, or the number of draws is settled before
the first of them. Draws are independent, or correlated as an autoregression of first order.

Run it as ``python benchmarks/length_bias.py``; it takes some minutes.
"""

import math

import click
import numpy as np
from scipy.special import ndtr

from surrokit.cost.budget import Budget
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import BudgetSpent
from surrokit.plan.stopping import Stopping
from surrokit.targets.bounds import transform_of
from surrokit.testing.targets import Gaussian

CHEAP, DEARER = 2.84, 12.0
SECONDS = 57.0  # for the draws
MOST = 90
TRUE = float(1.0 - ndtr(1.0))


class Hand:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 0.0
        self.seconds = {"training": 0.0}

    def elapsed(self) -> float:
        return self.now


def autoregression(rng: np.random.Generator, phi: float, n: int) -> np.ndarray:
    noise = rng.standard_normal(n) * math.sqrt(1.0 - phi**2)
    x = [float(rng.standard_normal())]
    for shock in noise[1:]:
        x.append(phi * x[-1] + shock)
    return np.array(x)


def kept(rng: np.random.Generator, phi: float, warmup: int, rule: str) -> tuple[list[bool], str]:
    """Return which of the kept draws of a run are above 1, and how their number came about."""
    above = autoregression(rng, phi, warmup + MOST) > 1.0
    costs = CHEAP + DEARER * above
    clock, target = Hand(), Gaussian()
    budget = Budget(max_seconds=costs[:warmup].sum() + SECONDS)
    recorded = RecordingPotential(target, keep=False)
    stopping = Stopping(budget, recorded, clock, transform_of(target), 1)  # type: ignore[arg-type]
    if rule == "settled":
        stopping.warmup_begins()
    for cost in costs[:warmup]:
        clock.now += cost
        if rule == "settled":
            stopping.iteration_done()
    found = []
    try:
        for i in range(warmup, warmup + stopping.draws_begin(MOST)):
            stopping.check()
            clock.now += costs[i]
            if rule != "kept":
                stopping.check()
            found.append(bool(above[i]))
    except BudgetSpent as spent:
        stopping.cut(spent.reason)
    return found, stopping.length


@click.command(context_settings={"show_default": True})
@click.option("--runs", default=10_000)
@click.option("--warmup", default=200)
def main(runs: int, warmup: int) -> None:
    for phi in (0.0, 0.5):
        for rule in ("kept", "dropped", "settled"):
            rng = np.random.default_rng(1)
            done = [kept(rng, phi, warmup, rule) for _ in range(runs)]
            parts = np.array([np.mean(found) for found, _ in done if found])
            print(
                f"correlation {phi}, {rule:8s} P(x > 1) = {parts.mean():.4f} +- "
                f"{parts.std() / math.sqrt(len(parts)):.4f} for {TRUE:.4f}; draws "
                f"{np.mean([len(found) for found, _ in done]):.1f}, sd of the mean "
                f"{parts.std():.3f}, cut {np.mean([length == 'cut' for _, length in done]):.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
