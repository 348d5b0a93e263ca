"""Time a leapfrog step on the additive surrogate against the bare products it cannot do without.

The derivative of softplus is the logistic function; as tanh, which is what the surrogate uses, it
costs a third of what ``scipy.special.expit`` does, so both are there to compare with.

Run it as ``python benchmarks/leapfrog_step.py``. It prints medians in microseconds and their
ratios, for 1, 4 and 16 chains, and a profile of the leapfrog; it asserts nothing.
"""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Callable

import numpy as np
from scipy.special import expit

from harness import in_turns
from surrokit.interfaces import Evaluations, Hamiltonian, LearningProblem, Phase
from surrokit_hmc.leapfrog import Leapfrog
from surrokit_hmc.metrics import IdentityMetric
from surrokit_networks.surrogates import Additive

DIM, NODES, POINTS, STEPS, REPEATS = 50, 1000, 400, 20, 200


def surrogate(rng: np.random.Generator):
    positions = rng.standard_normal((POINTS, DIM))
    values = 0.5 * (positions**2).sum(axis=1) + np.log1p(positions[:, 0] ** 2)
    problem = LearningProblem(dim=DIM, capabilities=frozenset())
    learner = Additive(n_nodes=NODES).learner(problem, rng)
    learner.observe(Evaluations(positions=positions, values=values))
    return learner.fit()


def bare(
    positions: np.ndarray, rng: np.random.Generator, activation: np.ufunc
) -> Callable[[], object]:
    """Two products and one activation, in the fastest layouts and with buffers made beforehand."""
    first = rng.standard_normal((DIM, NODES))
    second = np.asfortranarray(rng.standard_normal((NODES, DIM)))
    hidden, gradient = np.empty((len(positions), NODES)), np.empty(positions.shape)

    def run() -> None:
        np.matmul(positions, first, out=hidden)
        activation(hidden, out=hidden)
        np.matmul(hidden, second, out=gradient)

    return run


def leapfrog(fitted, positions: np.ndarray) -> Callable[[], object]:
    """A path of ``STEPS`` steps."""
    integrator = Leapfrog()
    hamiltonian = Hamiltonian(potential=fitted, metric=IdentityMetric())
    phase = Phase(
        positions=positions,
        momenta=np.ones(positions.shape),
        cache=integrator.cache(hamiltonian, positions),
    )
    n = len(positions)
    step_size, n_steps = np.full(n, 0.01), np.full(n, STEPS)
    return lambda: integrator.advance(hamiltonian, phase, step_size, n_steps)


def main() -> None:
    rng = np.random.default_rng(0)
    fitted = surrogate(rng)
    print(f"{NODES} nodes, dim {DIM}; medians in microseconds of {REPEATS} interleaved repeats")
    for chains in (1, 4, 16):
        positions = rng.standard_normal((chains, DIM))
        path = leapfrog(fitted, positions)
        # each STEPS times in a row, so that arrays are in the cache as they are on a path
        calls: dict[str, Callable[[], object]] = {
            "bare": bare(positions, rng, np.tanh),
            "bare with expit": bare(positions, rng, expit),
            "gradient": lambda positions=positions: fitted.gradient(positions),
            "value and gradient": lambda positions=positions: fitted.value_and_gradient(positions),
        }
        repeated = {
            name: lambda call=call: [call() for _ in range(STEPS)] for name, call in calls.items()
        }
        seconds = in_turns({**repeated, "leapfrog step": path}, REPEATS)
        times = {name: 1e6 * float(np.median(each)) / STEPS for name, each in seconds.items()}
        for name, microseconds in times.items():
            ratio = microseconds / times["bare"]
            print(f"{chains:3d} chains  {name:20s} {microseconds:8.1f}  x {ratio:.2f}")
    profile = cProfile.Profile()
    profile.runcall(lambda: [path() for _ in range(100)])
    pstats.Stats(profile).sort_stats("tottime").print_stats(12)


if __name__ == "__main__":
    main()
