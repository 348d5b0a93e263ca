"""What workers are worth: ``python benchmarks/executors.py``; it only asserts equal draws.

Calls of 50 ms asleep, as those that wait for a solver elsewhere, and of 50 ms at work; then what a
call costs that takes no time, and what it costs to start workers.

Recorded in November 2026 on two cores, which other programs used all the time, so that a second
process of any kind gained nothing:

- 50 ms asleep, 8 chains: 7.9 times as many calls a second in 8 threads as without; in 8 processes
  7.2 times beside one or two other programs, and 6.0 to 6.5 beside four.
- 50 ms asleep, 2 chains, 2 processes: 1.9 times.
- 50 ms of work: 2 workers do 0.92 to 0.93 of what 2 bare processes do, which did 0.92 to 1.02 of
  what one does.
- A call costs 0.01 to 0.02 ms more in a thread, and 0.4 to 0.7 ms in a process.
- 2 processes take 1.0 to 2.2 s to start and end, 8 take 3.6 to 6.3 s.
"""

from __future__ import annotations

import time
import warnings
from concurrent.futures import wait

import numpy as np
from joblib.externals.loky import get_reusable_executor

import surrokit as sk
from surrokit.executors.terms import Terms

SECONDS = 0.05
SIZES = {"sampler": ("random-walk", {"step_size": 0.5}), "seed": 1, "progress": False}


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
    run = sk.sample(
        target, chains=chains, warmup=30, draws=draws, compute=sk.Compute(**workers), **SIZES
    )
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


def bare(n):
    """Make n calls at work, for a process that has nothing to do with another."""
    for _ in range(n):
        at_work(np.zeros(2))


def compare_with_bare(workers=2, n=40, repeats=6):
    """Print what workers do beside what as many processes do that nobody feeds.

    Both suffer alike from other programs, so their ratio tells what spreading costs.
    """
    rows, ratios, gains = np.zeros((n, 2)), [], []
    target = sk.potential(at_work, dim=2)
    with (
        Terms.check(None, workers, None).spread(target) as (spread, _),
        get_reusable_executor(max_workers=workers) as pool,
    ):
        wait([pool.submit(bare, 1) for _ in range(2 * workers)])
        for _ in range(repeats):
            single = timed(lambda: bare(n))
            alone = timed(lambda: wait([pool.submit(bare, n // workers) for _ in range(workers)]))
            beside = timed(lambda: spread.value(rows))
            ratios.append(alone / beside)
            gains.append((single / beside, single / alone))
    gain, most = np.median(gains, axis=0)
    print(
        f"50 ms of work: {workers} workers do {np.median(ratios):.3f} of what {workers} bare "
        f"processes do ({gain:.2f} and {most:.2f} times one process; best {max(gains)[0]:.2f})"
    )


def timed(call):
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def overhead():
    """Print what a call costs that takes no time."""
    alone, _ = rate(quick, 8, 500)
    for executor in ("threads", "processes"):
        beside, _ = rate(quick, 8, 500, executor=executor, workers=2)
        print(f"{executor}: {1e6 * (1 / beside - 1 / alone):.0f} us more for each call")


def start():
    for workers in (2, 8):
        began = time.perf_counter()
        sk.sample(
            sk.potential(quick, dim=2),
            chains=1,
            warmup=0,
            draws=1,
            compute=sk.Compute(workers=workers),
            **SIZES,
        )
        print(f"{workers} processes: {time.perf_counter() - began:.2f} s to start and end")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    compare("50 ms asleep", asleep, 8, 20, 8, executor="processes")
    compare("50 ms asleep", asleep, 8, 20, 8, executor="threads")
    compare("50 ms asleep", asleep, 2, 40, 2, executor="processes")
    compare("50 ms of work", at_work, 8, 10, 2, executor="processes")
    compare_with_bare()
    overhead()
    start()
