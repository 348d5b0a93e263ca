"""What workers are worth: ``python tests/benchmarks/executors.py``; it only asserts equal draws.

Calls of 50 ms at work, and of 50 ms asleep, as those that wait for a solver elsewhere; then what
a call costs that takes no time, and what it costs to start workers.

Recorded in November 2026 on two cores that other programs used at the same time:

=========================================  =======  ==========================
calls                                      workers  times as many a second
=========================================  =======  ==========================
FIGURES
=========================================  =======  ==========================
"""

from __future__ import annotations

import time
import warnings

import numpy as np

import surrokit as sk

SECONDS = 0.05
SIZES = {"sampler": "random-walk", "step_size": 0.5, "seed": 1, "progress": False}


def asleep(q):
    time.sleep(SECONDS)
    return float(q @ q / 2)


def at_work(q):
    end = time.process_time() + SECONDS
    while time.process_time() < end:
        pass
    return float(q @ q / 2)


def quick(q):
    return float(q @ q / 2)


def rate(function, chains, draws, **workers):
    """Return exact calls a second among the draws, and the draws."""
    target = sk.potential(function, dim=2)
    run = sk.sample(target, chains=chains, warmup=30, draws=draws, **SIZES, **workers)
    return run.draws.size / 2 / run.seconds["sampling"], run.draws


def compare(name, function, chains, draws, workers, repeats=3, **more):
    """Take turns with one and with several workers, and print the best of each."""
    one, many = [], []
    for _ in range(repeats):
        alone, expected = rate(function, chains, draws, **more.get("alone", {}))
        beside, found = rate(function, chains, draws, executor=more["executor"], workers=workers)
        np.testing.assert_array_equal(found, expected)
        one.append(alone)
        many.append(beside)
    print(
        f"{name}, {chains} chains: {workers} {more['executor']} make {max(many):.1f} calls a "
        f"second where there are {max(one):.1f} without: {max(many) / max(one):.2f} times "
        f"(medians {np.median(many) / np.median(one):.2f})"
    )


def overhead():
    """Print what a call costs that takes no time."""
    alone, _ = rate(quick, 8, 500)
    for executor in ("threads", "processes"):
        beside, _ = rate(quick, 8, 500, executor=executor, workers=2)
        print(f"{executor}: {1e6 * (1 / beside - 1 / alone):.0f} us more for each call")


def start():
    for workers in (2, 8):
        began = time.perf_counter()
        sk.sample(sk.potential(quick, dim=2), chains=1, warmup=0, draws=1, workers=workers, **SIZES)
        print(f"{workers} processes: {time.perf_counter() - began:.2f} s to start and end")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    compare("50 ms asleep", asleep, 8, 20, 8, executor="processes")
    compare("50 ms asleep", asleep, 8, 20, 8, executor="threads")
    compare("50 ms asleep", asleep, 2, 40, 2, executor="processes")
    compare("50 ms of work", at_work, 8, 10, 2, executor="processes")
    compare("50 ms of work", at_work, 8, 10, 2, executor="processes", alone={"workers": 1})
    overhead()
    start()
