"""What benchmarks share: runs and calls that are measured, processes, rows, tables."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import click
import numpy as np

HERE = Path(__file__).parent


ONE_THREAD = {
    **dict.fromkeys(
        ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
    ),
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "JAX_ENABLE_X64": "1",
    "JAX_PLATFORMS": "cpu",
}
"""Environment of every method; with it all libraries work in one thread."""


def ordered(order: dict[str, Any], patience: float, worker: str = "peers.worker") -> dict[str, Any]:
    """Run one method in a process of its own; return its figures, or why there are none."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        command = [
            sys.executable,
            "-m",
            worker,
            json.dumps({**order, "result": str(result)}),
        ]
        environment = {**os.environ, **ONE_THREAD}
        try:
            process = subprocess.run(
                command, cwd=HERE, env=environment, timeout=patience, capture_output=True, text=True
            )
        except subprocess.TimeoutExpired:
            return {"status": "over time", "message": f"not finished after {patience:.0f} s"}
        if not result.is_file():
            return {"status": "failed", "message": f"ended with code {process.returncode}"}
        found: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
        if found.get("status") == "failed":
            click.echo(process.stderr[-2000:], err=True)
        return found


def installed_version(name: str) -> str:
    """Return a distribution's version; a checkout on the path has none."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def machine() -> dict[str, Any]:
    """Return what the figures depend on besides the methods."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        names = [x for x in info.read_text().splitlines() if x.startswith("model name")]
        model = names[0].partition(":")[2].strip() if names else model
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **{name: installed_version(name) for name in ("numpy", "scipy", "surrokit")},
    }


def in_turns(
    calls: Mapping[str, Callable[[], object]],
    rounds: int,
    each: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, np.ndarray]:
    """Return seconds of a call in each round, after one to warm up.

    Calls take turns, so that others on the machine disturb all alike.
    """
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds + 1):
        for name, call in calls.items():
            began = clock()
            for _ in range(each):
                call()
            seconds[name].append((clock() - began) / each)
    return {name: np.array(found[1:]) for name, found in seconds.items()}


@attrs.frozen(kw_only=True, eq=False)
class Measured:
    """A run, seconds by the clock and of the processor, least bulk ESS of q and (q - mean)^2."""

    run: Any
    seconds: float
    processor: float
    ess: float
    ess_squares: float


def measured(target: Any, **options: Any) -> Measured:
    """Sample without a progress bar, and measure it."""
    import surrokit as sk

    began, worked = time.perf_counter(), time.process_time()
    run = sk.sample(target, progress=False, **options)
    seconds, processor = time.perf_counter() - began, time.process_time() - worked
    away = np.square(run.draws - run.draws.mean(axis=(0, 1)))
    return Measured(
        run=run,
        seconds=seconds,
        processor=processor,
        ess=float(run.ess("bulk").min()),
        ess_squares=float(sk.effective_sample_size(away, "bulk").min()),
    )


# --- the file of rows: one line of JSON for each run, added as it is done ---

Row: TypeAlias = dict[str, Any]


Key: TypeAlias = tuple[str, str, int]
"""Posterior, method and seed."""


NOT_FINAL = ("not installed",)
"""Statuses with which a row is tried again."""


def key_of(row: Row) -> Key:
    """Return what a row is of."""
    return row["posterior"], row["method"], row["seed"]


def read_rows(path: Path) -> dict[Key, Row]:
    """Return the rows of a file, the last of each key; none if there is no file.

    A last line that an interrupt has cut is left out.
    """
    found = {}
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    for number, line in enumerate(lines):
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            if number < len(lines) - 1:
                raise
            continue
        found[key_of(row)] = row
    return found


def add_row(path: Path, row: Row) -> None:
    """Add a row to a file; a last line that an interrupt has cut goes."""
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if text and not text.endswith("\n"):
        path.write_text(text[: text.rfind("\n") + 1], encoding="utf-8")
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def still_to_do(wanted: Iterable[Key], rows: dict[Key, Row]) -> list[Key]:
    """Return which of the wanted runs have no row yet, or one that should be tried again."""
    return [key for key in wanted if key not in rows or rows[key]["status"] in NOT_FINAL]


def table(columns: Sequence[str], lines: Iterable[Sequence[str]]) -> list[str]:
    """Return lines of a table in Markdown."""
    rows = (columns, ("---",) * len(columns), *(tuple(line) for line in lines))
    return [f"| {' | '.join(cells)} |" for cells in rows]
