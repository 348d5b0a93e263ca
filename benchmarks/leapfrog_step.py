"""Time a leapfrog step on the additive surrogate against the bare products it cannot do without.

The derivative of softplus is the logistic function; as tanh, which is what the surrogate uses, it
costs a third of what ``scipy.special.expit`` does, so both are there to compare with.

Run it as ``python benchmarks/leapfrog_step.py``. It prints medians in microseconds and their
ratios, for 1, 4 and 16 chains, and a profile of the leapfrog; it asserts nothing.
"""

from __future__ import annotations

import cProfile
import pstats
import time
from collections.abc import Callable

import numpy as np
from scipy.special import expit

from surrokit.interfaces import Evaluations, LearningProblem, Phase
from surrokit_networks.surrogates import Additive

DIM, NODES, POINTS, STEPS, REPEATS = 50, 1000, 400, 20, 200


def medians(calls: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Median time of each call in microseconds.

    The calls take turns, so that a busy machine hurts all of them; in its turn each is run
    ``STEPS`` times in a row, so that its arrays are in the cache as they are on a path.
    """
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(REPEATS):
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(1 if name == "leapfrog step" else STEPS):
                call()
            seconds[name].append((time.perf_counter() - start) / STEPS)
    return {name: float(np.median(times)) * 1e6 for name, times in seconds.items()}


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


def leapfrog(fitted, positions: np.ndarray) -> Callable[[], object] | None:
    """A path of ``STEPS`` steps; None if the integrator is not there."""
    try:
        from surrokit.interfaces import Hamiltonian
        from surrokit_hmc.leapfrog import Leapfrog
        from surrokit_hmc.metrics import IdentityMetric
    except ImportError as error:
        print(f"no leapfrog to time: {error}")
        return None
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
    path = None
    for chains in (1, 4, 16):
        positions = rng.standard_normal((chains, DIM))
        calls: dict[str, Callable[[], object]] = {
            "bare": bare(positions, rng, np.tanh),
            "bare with expit": bare(positions, rng, expit),
            "gradient": lambda positions=positions: fitted.gradient(positions),
            "value and gradient": lambda positions=positions: fitted.value_and_gradient(positions),
        }
        path = leapfrog(fitted, positions)
        if path is not None:
            calls["leapfrog step"] = path
        times = medians(calls)
        for name, microseconds in times.items():
            ratio = microseconds / times["bare"]
            print(f"{chains:3d} chains  {name:20s} {microseconds:8.1f}  x {ratio:.2f}")
    if path is not None:
        profile = cProfile.Profile()
        profile.enable()
        for _ in range(100):
            path()
        profile.disable()
        pstats.Stats(profile).sort_stats("tottime").print_stats(12)


if __name__ == "__main__":
    main()
