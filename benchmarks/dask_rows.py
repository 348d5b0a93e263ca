"""A logistic regression on partitions of growing number: what it takes, and what travels.

    python benchmarks/dask_rows.py FOLDER --rows 100000 1000000 10000000 --limit 900

writes the rows to files in FOLDER, 200000 to each, and reads them again in each pass, by two
threads, in a process whose memory (private and writable) is limited to so many megabytes. It
prints a row of a Markdown table for each length: seconds of one pass for a value; of all before the
first draw that is kept; rows that decisions touched, warm-up included; acceptance; seconds of 10000
draws; the smallest bulk ESS; fetches; rows fetched; and bytes fetched for each draw.
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path

import dask
import dask.array as da
import numpy as np

import surrokit as sk
from surrokit_dask.partitions import PartitionDraws

DIM, SIZE = 20, 200_000
OPTIONS = {
    "sampler": "gaussian",
    "surrogate": "quadratic",
    "explorer": "rounds",
    "correction": ("subsampled", {"order": 2}),
    "draws": 2500,
    "seed": 1,
    "progress": False,
}


def write(folder: Path, n_rows: int) -> tuple[da.Array, da.Array]:
    """Write rows in partitions, and return them as they are read."""
    coefficients = np.random.default_rng(0).uniform(-0.5, 0.5, DIM)
    parts = []
    for start in range(0, n_rows, SIZE):
        size = min(SIZE, n_rows - start)
        path = folder / f"{start}-{size}.npy"
        if not path.exists():
            rng = np.random.default_rng(start + 1)
            rows = np.empty((size, DIM + 1))
            rows[:, :DIM] = 0.5 * rng.standard_normal((size, DIM))
            rows[:, 0] = 1.0
            rows[:, DIM] = rng.random(size) < 1.0 / (1.0 + np.exp(-rows[:, :DIM] @ coefficients))
            np.save(path, rows)
        read = dask.delayed(np.load)(path)
        parts.append(da.from_delayed(read, (size, DIM + 1), dtype=float))
    rows = da.concatenate(parts)
    return rows[:, :DIM], rows[:, DIM]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, nargs="*", default=[100_000, 1_000_000])
    parser.add_argument("--limit", type=int, default=900)
    asked = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_DATA, (asked.limit * 2**20, -1))
    sent = {"rows": 0, "drawn": 0}
    refill = PartitionDraws._refill

    def counted(draws, needed, rng):
        before = sum(len(rows) for rows, _ in draws._waiting)
        refill(draws, needed, rng)
        sent["rows"] += sum(len(rows) for rows, _ in draws._waiting) - before
        sent["drawn"] += 1

    PartitionDraws._refill = counted
    with dask.config.set(scheduler="threads", num_workers=2):
        for n_rows in asked.rows:
            design, response = write(asked.folder, n_rows)
            sent.update(rows=0, drawn=0)
            target = sk.rows_potential("logistic", design, response, prior=10.0)
            begun = time.perf_counter()
            target.value(np.zeros((1, DIM)))
            one_pass = time.perf_counter() - begun
            begun = time.perf_counter()
            run = sk.sample(target, **OPTIONS)
            seconds = time.perf_counter() - begun
            drawing = run.seconds["sampling"]
            touched = run.calls["rows"] - n_rows
            travelled = sent["rows"] * 8 * (DIM + 3) / (4 * OPTIONS["draws"])
            print(
                f"| {n_rows} | {one_pass:.2f} | {seconds - drawing:.1f} | {touched} | "
                f"{run.acceptance.mean():.3f} | {drawing:.1f} | {run.ess('bulk').min():.0f} | "
                f"{sent['drawn']} | {sent['rows']} | {travelled:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
