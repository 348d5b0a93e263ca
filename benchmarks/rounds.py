"""What explorer ``rounds`` pays for, and what its surrogate is worth.

For each target: exact calls of the exploration, the acceptance of independent draws that it
predicts, and the truth at 400 draws of the last surrogate by long chains on it.

    python benchmarks/rounds.py --bank path/to/bank-additional-full.csv --seeds 3
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import attrs
import click
import numpy as np

import surrokit as sk
from surrokit.potentials import Potential
from surrokit.testing import Limited
from surrokit.types import FloatArray
from surrokit_learning.judgement import predicted_acceptance


@attrs.frozen(eq=False)
class Exploration:
    """Remembers what the exploration had cost when it ended."""

    calls: dict[str, int] = attrs.field(factory=dict)

    def surrokit_surrogate_deployed(
        self, run: object, surrogate: object, evaluations: int, reason: str
    ) -> None:
        """Keep the rows that the first surrogate was fitted to."""
        self.calls.setdefault("rows", evaluations)

    def surrokit_transition_done(self, run: object, state: object, info: object) -> None:
        """Keep the calls of the exploration."""
        if info.stage == "exploration":
            self.calls.update({kind: n for kind, n in info.calls.items() if n})


def targets(bank: str | None) -> Iterator[tuple[str, Potential, dict[str, object]]]:
    """Return names, targets and settings of the surrogate."""
    yield "gaussian, 2", sk.make("potential", "gaussian"), {}
    yield "banana, 2", sk.make("potential", "banana"), {}
    yield "lynx-hare, 8, Jacobians", sk.make("potential", "lynx-hare"), {}
    logistic = sk.make("potential", "simulated-logistic", n_rows=2000, dim=20)
    yield "simulated-logistic, 20", logistic, {}
    yield "simulated-logistic, 20, values", Limited(logistic, frozenset()), {}
    large = sk.make("potential", "simulated-logistic", n_rows=10_000, dim=50)
    yield "simulated-logistic, 50", large, {}
    if bank is not None:
        yield "bank, 25", sk.make("potential", "bank", path=bank), {}
    yield "elliptic-pde, 20, Jacobians", sk.make("potential", "elliptic-pde"), {}
    solver = sk.make("potential", "elliptic-pde", derivatives=False)
    yield "elliptic-pde, 20, outputs", solver, {}
    yield "elliptic-pde, 20, outputs seen as values", solver, {"learns": "potential"}


def truth(surrogate: Potential, target: Potential, near: FloatArray, seed: int) -> float:
    """Return the acceptance of independent draws of a surrogate, by long chains from ``near``."""
    run = sk.sample(
        surrogate,
        sampler="hmc",
        chains=20,
        warmup=300,
        draws=200,
        initial=np.resize(near, (20, target.dim)),
        seed=seed,
        progress=False,
    )
    draws = run.kept.positions[:, ::10].reshape(-1, target.dim)
    return predicted_acceptance(surrogate.value(draws) - target.value(draws))


@click.command()
@click.option("--bank", default=None, help="bank-additional-full.csv")
@click.option("--seeds", default=3, show_default=True)
@click.option("--only", default="", help="Targets whose names begin so.")
def main(bank: str | None, seeds: int, only: str) -> None:
    """Print one line for each target and seed."""
    warnings.simplefilter("ignore", sk.errors.SamplingWarning)
    for name, target, settings in targets(bank):
        for seed in range(seeds if name.startswith(only) else 0):
            exploration = Exploration()
            run = sk.sample(
                target,
                surrogate=("additive", settings),
                sampler="hmc",
                explorer="rounds",
                draws=1,
                seed=seed,
                progress=False,
                observers=[exploration],
            )
            accepted = truth(run.surrogate, target, run.kept.positions, seed)
            click.echo(f"{name:42} {exploration.calls} acceptance {accepted:.3f}")


if __name__ == "__main__":
    main()
