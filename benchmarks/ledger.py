"""What the ledger costs: ``python benchmarks/ledger.py``; it asserts nothing.

A target sleeps a millisecond a call, and runs with and without a file take turns. How long a sleep
takes is left out, since it varies more than the ledger costs. Rows of a gradient in 50 dimensions
are then written in blocks, and a file of many is opened.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import surrokit as sk
from surrokit.ledger.store import Store
from surrokit.ledger.tape import Event, read_events, write_events

DIM = 50
DRAWS = 2000


class Wait:
    """A target that is asleep for a millisecond a call, and counts how long it was."""

    def __init__(self):
        self.slept = 0.0

    def __call__(self, q):
        began = time.perf_counter()
        time.sleep(1e-3)
        self.slept += time.perf_counter() - began
        return 0.5 * q @ q, q


def run(path, chains):
    wait = Wait()
    target = sk.potential(value_and_gradient=wait, dim=DIM)
    settings = {"sampler": ("hmc", {"step_size": 0.3, "n_steps": 3}), "warmup": 20}
    draws = DRAWS // chains
    began = time.perf_counter()
    made = sk.sample(
        target, chains=chains, draws=draws, seed=1, progress=False, path=path, **settings
    )
    seconds = time.perf_counter() - began
    return seconds, seconds - wait.slept, made.total_calls


def paired(folder, chains, repeats=7):
    run(None, chains)
    without, beside = [], []
    for i in range(repeats):
        without.append(run(None, chains))
        beside.append(run(folder / f"{chains}-{i}", chains))
    a, b = np.median(without, axis=0), np.median(beside, axis=0)
    longer = b[1] - a[1]
    print(
        f"{chains} chains, {a[2]:.0f} calls of 1 ms in {a[0]:.1f} s: {100 * longer / a[0]:.1f} % "
        f"longer where the model is not asleep, {1e6 * longer / a[2]:.0f} us a call"
    )


def blocks(folder, n, rows):
    rng = np.random.default_rng(1)
    at = rng.normal(size=(n, DIM))
    event = Event(
        kind="gradient",
        positions=at,
        results=(rng.normal(size=n), at.copy()),
        counts={"gradient": n},
        readings=np.arange(5.0),
    )
    path = folder / f"blocks{n}"
    with Store.created(path) as new:
        new.write_facts({"target": None})
    store = Store.open(path, write=True)
    began = time.perf_counter()
    for _ in range(rows // (8 * n)):
        with store.transaction():
            write_events(store, [event] * 8)
    seconds = time.perf_counter() - began
    store.close()
    size = path.stat().st_size
    raw = 8 * rows * (2 * DIM + 1)
    began = time.perf_counter()
    store = Store.open(path)
    opened = time.perf_counter() - began
    read = sum(len(event.positions) for event in read_events(store))
    all_read = time.perf_counter() - began
    store.close()
    print(
        f"{rows} rows in batches of {n}: {1e6 * seconds / rows:.1f} us a row, {size / raw:.3f} "
        f"times their raw size, opened in {opened:.3f} s, {read} read in {all_read:.2f} s"
    )


def main():
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        for chains in (1, 4):
            paired(Path(folder), chains)
        for n in (1, 4, 16, 64):
            blocks(Path(folder), n, 10**5)


if __name__ == "__main__":
    main()
