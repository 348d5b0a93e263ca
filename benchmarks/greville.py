"""Accuracy and speed of the row-by-row least squares of Proposition 1.

Run it as ``python benchmarks/greville.py``, with one BLAS thread to see single updates as
they are in a run. It prints how far 5000 single updates of 1000 softplus features of whitened
positions are from the batch solution, for several tolerances of the test c = 0; and what single and
block updates cost against the bare BLAS calls. It asserts nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from scipy.linalg import blas

from surrokit_networks.activations import SOFTPLUS
from surrokit_networks.greville import Greville
from surrokit_networks.nodes import Nodes

DIM = 20


def features(n_rows: int, n_nodes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Softplus features of standard normal positions, and a smooth target."""
    rng = np.random.default_rng(seed)
    nodes = Nodes.additive(
        rng.standard_normal((n_nodes, DIM)) / np.sqrt(DIM), rng.standard_normal(n_nodes), SOFTPLUS
    )
    whitened = rng.standard_normal((n_rows, DIM))
    targets = 0.5 * np.square(whitened).sum(axis=1) + np.sin(whitened).sum(axis=1)
    return nodes.features(whitened), targets


def accuracy(n_rows: int, n_nodes: int, tolerance: float, block: int = 1) -> None:
    rows, targets = features(n_rows + 500, n_nodes)
    engine = Greville.empty(n_nodes, tolerance=tolerance)
    start = time.perf_counter()
    for i in range(0, n_rows, block):
        engine.update(rows[i : i + block], targets[i : i + block])
    seconds = time.perf_counter() - start
    batch = np.linalg.lstsq(rows[:n_rows], targets[:n_rows], rcond=None)[0]
    known, fresh = (
        np.linalg.norm(part @ (engine.solution - batch)) / np.linalg.norm(part @ batch)
        for part in (rows[:n_rows], rows[n_rows:])
    )
    full = "full" if engine.phi is None else f"{engine.rank} of {n_nodes}"
    print(
        f"{tolerance:9.0e} {block:5d} {full:>12s} {known:11.1e} {fresh:11.1e} "
        f"{engine.sums.residual(engine.solution)[1]:9.1e} {engine.repairs:7d} {seconds:8.1f}"
    )


def medians(calls: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median seconds of each call; the calls take turns, so that a busy machine hurts all."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - start)
    return {name: float(np.median(times)) for name, times in seconds.items()}


def speed(n_nodes: int, repeats: int = 7) -> None:
    rows, targets = features(2 * n_nodes + 200, n_nodes)
    n = 2 * n_nodes
    engine = Greville.of_rows(rows[:n], targets[:n], ridge=1e-6)
    theta, row = engine.theta.copy(order="F"), rows[0] * 1e-9
    block, sought = rows[n : n + 100], targets[n : n + 100]

    def bare() -> None:
        for _ in range(100):
            blas.dsymv(1.0, theta, row, lower=1)
            blas.dsyr(-1.0, row, lower=1, a=theta, overwrite_a=1)

    def singles() -> None:
        for i in range(100):
            engine.update(block[i : i + 1], sought[i : i + 1])

    took = medians(
        {"bare": bare, "singles": singles, "block": lambda: engine.update(block, sought)}, repeats
    )
    print(
        f"{n_nodes:9d} {took['bare'] * 1e6 / 100:12.0f} {took['singles'] * 1e6 / 100:12.0f} "
        f"{took['singles'] / took['bare']:8.2f} {took['block'] * 1e3:12.1f} "
        f"{took['block'] / took['singles']:10.2f}"
    )


def main() -> None:
    print("5000 updates from no rows, 1000 features: distance of predictions from the batch ones")
    print("tolerance block         rank   rows seen  rows fresh  residual repairs  seconds")
    for tolerance in (1e-8, 1e-7, 1e-6):
        accuracy(5000, 1000, tolerance)
    accuracy(5000, 1000, 1e-7, block=100)
    print()
    print("   columns  bare single us  single us    ratio  block of 100 ms  of 100 singles")
    for n_nodes in (500, 1000, 2000):
        speed(n_nodes)


if __name__ == "__main__":
    main()
