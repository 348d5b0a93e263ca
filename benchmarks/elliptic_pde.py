"""The paper's elliptic inverse problem with its Jacobian: what learning the forward map saves.

Prints what evaluations cost beside the bare banded factorisation and solve; then, for plain HMC
with the paper's settings and a warm-up as short as can be, for plain HMC tuned in warm-ups of two
lengths, and for what ``sample`` picks by itself and two more samplers on its surrogate:

- acceptance of the kept draws, and exact evaluations before the first of them;
- effective draws a second while sampling, of the positions and of their squares;
- exact calls and seconds from a standing start to so many effective draws, everything counted.

Plain HMC gets the target without outputs, so that it pays adjoint gradients and no Jacobians.
Effective draws are rank-normalised bulk ones, the least over parameters. Seconds are of the
processor, so that other programs do not stretch them; a run that reaches more or fewer effective
draws than asked for is charged in proportion for its sampling. Whatever is imported late has been
imported before.

    OPENBLAS_NUM_THREADS=1 python benchmarks/elliptic_pde.py --mesh 30
    OPENBLAS_NUM_THREADS=1 python benchmarks/elliptic_pde.py --mesh 120 --hmc-ess 100 \\
        --seeds 1 --skip "HMC, tuned in 1000"
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import click
import numpy as np
from scipy.linalg import cho_solve_banded, cholesky_banded
from threadpoolctl import threadpool_limits

import surrokit as sk
from harness import in_turns, measured

OUTPUTS, PLAIN = True, False
ROUNDS = {"surrogate": "additive", "explorer": "rounds"}
PAPER = {"sampler": ("hmc", {"step_size": 0.16, "n_steps": 10, "metric": "identity"})}
METHODS: Mapping[str, tuple[bool, Mapping[str, Any]]] = {
    "HMC, the paper's settings": (PLAIN, {**PAPER, "warmup": 100}),
    "HMC, tuned in 300": (PLAIN, {"sampler": "hmc", "warmup": 300}),
    "HMC, tuned in 1000": (PLAIN, {"sampler": "hmc"}),
    "picked by itself": (OUTPUTS, {}),
    "sub-chains": (OUTPUTS, {**ROUNDS, "sampler": "sub-chain"}),
    "NUTS on the surrogate": (OUTPUTS, {**ROUNDS, "sampler": "nuts"}),
}
PICKED = "picked by itself"


class Processor:
    """An observer that notes the processor's time at the end of each stage."""

    def __init__(self) -> None:
        self.began = time.process_time()
        self.ended: dict[str, float] = {}

    def surrokit_transition_done(self, run, state, info) -> None:
        self.ended[info.stage] = time.process_time()

    @property
    def preparing(self) -> float:
        return max(self.ended[s] for s in self.ended if s != "sampling") - self.began

    @property
    def sampling(self) -> float:
        return self.ended["sampling"] - self.began - self.preparing


@attrs.frozen(kw_only=True)
class Outcome:
    """What a run gave, and what it cost; seconds and calls to the effective draws asked for."""

    acceptance: float
    evaluations: int
    rate: float
    squares_rate: float
    calls: float
    seconds: float
    preparing: float


def sampled(mesh: int, name: str, ess: float, wanted: float, seed: int) -> Outcome:
    """Run a method until it has ``ess``, and reckon what ``wanted`` would have cost."""
    outputs, settings = METHODS[name]
    target = sk.make("potential", "elliptic-pde", mesh=mesh, outputs=outputs)
    clock = Processor()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = measured(target, target_ess=ess, seed=seed, observers=[clock], **settings)
    run, reached = one.run, one.ess
    before = {kind: int(calls[-1]) for kind, calls in run.warmup.calls.items()}
    prepared, share = sum(before.values()), wanted / reached
    return Outcome(
        acceptance=float(run.acceptance.mean()),
        evaluations=prepared,
        rate=reached / clock.sampling,
        squares_rate=one.ess_squares / clock.sampling,
        calls=prepared + share * (run.total_calls - prepared),
        seconds=clock.preparing + share * clock.sampling,
        preparing=clock.preparing,
    )


def print_costs(mesh: int) -> None:
    """Print what evaluations cost beside what no solver can do without."""
    target = sk.make("potential", "elliptic-pde", mesh=mesh)
    alone = sk.make("potential", "elliptic-pde", mesh=mesh, outputs=False)
    bands = target.flow.mesh.stiffness(np.ones((4, mesh**2)))
    right, position = np.ones(bands.shape[1]), target.truth[None]

    def bare() -> None:
        factor = cholesky_banded(bands.copy(order="F"), overwrite_ab=True, check_finite=False)
        cho_solve_banded((factor, False), right, check_finite=False)

    repeats = 300 if mesh <= 60 else 10
    calls: Mapping[str, Callable[[], object]] = {
        "bare factorisation and solve": bare,
        "value": lambda: alone.value(position),
        "value and gradient": lambda: alone.value_and_gradient(position),
        "outputs and Jacobian": lambda: target.forward_and_jacobian(position),
    }
    with threadpool_limits(1):
        found = in_turns(calls, repeats)
    seconds = {name: each.min() for name, each in found.items()}
    unit = seconds["bare factorisation and solve"]
    for name, took in seconds.items():
        print(f"{name:30s} {1e3 * took:8.3f} ms  {took / unit:5.2f} times the bare one")


def print_outcomes(
    names: tuple[str, ...], mesh: int, wanted: float, hmc_ess: float, seeds: int
) -> None:
    """Print medians over seeds, and ratios to what ``sample`` picks."""
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    for seed in range(seeds):  # the methods in turn, as the machine is not always as fast
        for name in names:
            ess = wanted if METHODS[name][0] else min(wanted, hmc_ess)
            runs[name].append(attrs.asdict(sampled(mesh, name, ess, wanted, seed)))
    found = {
        name: {key: float(np.median([run[key] for run in many])) for key in many[0]}
        for name, many in runs.items()
    }
    for name, one in found.items():
        print(
            f"{name:26s} acceptance {one['acceptance']:.3f}  evaluations before draws "
            f"{one['evaluations']:6.0f}  a second {one['rate']:7.1f}, of squares "
            f"{one['squares_rate']:7.1f}  to {wanted:.0f} effective draws: {one['calls']:7.0f} "
            f"calls, {one['seconds']:7.2f} s, of these {one['preparing']:6.2f} s before draws",
            flush=True,
        )
    best = found[PICKED]
    for name, one in found.items():
        if not METHODS[name][0]:
            print(
                f"beside {name}: {best['rate'] / one['rate']:.1f} times the effective draws a "
                f"second while sampling ({best['squares_rate'] / one['squares_rate']:.1f} of "
                f"squares); from a standing start {one['seconds'] / best['seconds']:.1f} times "
                f"less time and {one['calls'] / best['calls']:.1f} times fewer calls"
            )


@click.command()
@click.option("--mesh", default=30, show_default=True, help="Squares along either side.")
@click.option("--ess", default=1000.0, show_default=True, help="Effective draws.")
@click.option(
    "--hmc-ess", default=np.inf, help="Stop plain HMC at so many, and charge in proportion."
)
@click.option("--seeds", default=3, show_default=True, help="Runs, of which medians are told.")
@click.option("--skip", multiple=True, type=click.Choice(list(METHODS)), help="Not to be run.")
def main(mesh: int, ess: float, hmc_ess: float, seeds: int, skip: tuple[str, ...]) -> None:
    print_costs(mesh)
    with warnings.catch_warnings():  # so that nothing is left to be imported
        warnings.simplefilter("ignore")
        small = sk.make("potential", "elliptic-pde", mesh=6, modes=2)
        for options in (ROUNDS, {}):
            sk.sample(small, sampler="hmc", warmup=60, draws=60, progress=False, **options).ess()
    names = tuple(name for name in METHODS if name == PICKED or name not in skip)
    print_outcomes(names, mesh, ess, hmc_ess, seeds)


if __name__ == "__main__":
    main()
