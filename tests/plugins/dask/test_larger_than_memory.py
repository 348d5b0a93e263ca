"""Rows in files that are larger than the memory that the process may have."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import surrokit as sk

pytest.importorskip("dask.array", reason="partitions are Dask's")
resource = pytest.importorskip("resource", reason="limits memory")

DIM, SIZE, PARTS = 20, 100_000, 40
LIMIT = 500 * 2**20
"""Bytes, private and writable; the rows have 672 MB."""

RUN = """
import json, resource, sys
import dask, dask.array as da, numpy as np, surrokit as sk

resource.setrlimit(resource.RLIMIT_DATA, (int(sys.argv[2]), -1))
paths = [f"{sys.argv[1]}/{part}.npy" for part in range(40)]
try:
    np.concatenate([np.load(path) for path in paths])
    fits = True
except MemoryError:
    fits = False
rows = da.concatenate(
    [da.from_delayed(dask.delayed(np.load)(path), (100_000, 21), float) for path in paths]
)
with dask.config.set(scheduler="threads", num_workers=1):
    target = sk.rows_potential("logistic", rows[:, :20], rows[:, 20], prior=10.0)
    run = sk.sample(target, progress=False, **json.loads(sys.argv[3]))
print(json.dumps([fits, run.draws.tolist()]))
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does")
def test_draws_are_those_of_rows_in_memory(tmp_path):
    """To the order of summation: HMC decides by all rows."""
    rng = np.random.default_rng(0)
    parts = []
    for part in range(PARTS):
        rows = np.empty((SIZE, DIM + 1))
        rows[:, :DIM] = 0.5 * rng.standard_normal((SIZE, DIM))
        rows[:, DIM] = rng.random(SIZE) < 1.0 / (1.0 + np.exp(-0.2 * rows[:, :DIM].sum(axis=1)))
        np.save(tmp_path / f"{part}.npy", rows)
        parts.append(rows)
    assert sum(rows.nbytes for rows in parts) > LIMIT
    options = {
        "sampler": ("hmc", {"step_size": 0.002, "n_steps": 4}),
        "surrogate": "none",
        "chains": 2,
        "warmup": 10,
        "draws": 5,
        "seed": 1,
    }
    arguments = [str(tmp_path), str(LIMIT), json.dumps(options)]
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RUN, *arguments], capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    fits, draws = json.loads(ended.stdout)
    assert not fits
    rows = np.concatenate(parts)
    target = sk.rows_potential("logistic", rows[:, :DIM], rows[:, DIM], prior=10.0)
    here = sk.sample(target, progress=False, **options)
    spread = here.draws.std(axis=(0, 1))
    assert (np.abs(np.array(draws) - here.draws) < 1e-6 * (1.0 + spread)).all()
