"""The command line: runs of ``surrokit sample``, and a few rows of every experiment, quick."""

from __future__ import annotations

import io
import json
import pkgutil
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

from record.runner import of_figures

PROJECT = Path(__file__).parents[2] / "pyproject.toml"

SAMPLES: Mapping[str, str] = {
    "exact": "banana --sampler nuts --warmup 100",
    "surrogate": "gaussian-32 --surrogate additive --warmup 80",
    "settings": "elliptic-pde --surrogate additive --explorer rounds --set surrogate.ridge=1e-4"
    " --set target.mesh=5 --set target.modes=3",
    "compared": "simulated-logistic --sampler gaussian --surrogate quadratic --compare"
    " --correction subsampled --set target.n_rows=2000 --set target.dim=3",
}
"""Arguments of ``surrokit sample``, sizes and seed apart."""

ROWS: Mapping[str, str] = {
    "figure-1": "--only gp/10 --only fitc/10 --only rbf/20 --only additive-gradients/20",
    "figure-2": "--only hmc/1 --only paper/1 --only defaults/1 --set n_states=100 --set draws=200",
    "figure-3": "--set n_points=150 --set draws=100",
    "figure-4": "--only 8 --set n_nodes=100 --set n_points=300 --set gradient_points=100"
    " --set n_rows=1000",
    "figure-5": "--set dims=8 --set n_nodes=100 --set n_points=250 --set gradient_points=50"
    " --set n_rows=1000",
    "figure-6": "--set n_rows=5000 --set draws=500",
    "figure-7": "--only simulated --set n_rows=2000 --set dim=8 --set n_nodes=100"
    " --set paper_points=300,900",
    "figure-8": "--only simulated --set n_rows=2000 --set dim=8 --set n_nodes=100"
    " --set reference_draws=100 --set rns_values=200 --set seconds=0.5",
    "table-1": "--only simulated --set n_rows=2000 --set dim=8 --set n_nodes=50",
}
"""Arguments of ``surrokit reproduce EXPERIMENT --quick``: rows that need no data file."""


def runs() -> Mapping[str, Callable[[], dict[str, Any]]]:
    """Return runs by name."""
    pde = "--only pde/emulator --only pde/rns-hmc --set mesh=5"
    return {
        **{f"command/{name}": partial(sampled, given) for name, given in SAMPLES.items()},
        **{f"experiment/{name}": partial(reproduced, name, given) for name, given in ROWS.items()},
        "experiment/table-1-pde": partial(reproduced, "table-1", pde),
    }


def sampled(arguments: str) -> dict[str, Any]:
    """Return the fingerprint of ``surrokit sample``: of the figures that it writes."""
    return _grouped(json_of("sample", *arguments.split(), "--chains=3", "--draws=60", "--seed=5"))


def reproduced(name: str, arguments: str) -> dict[str, Any]:
    """Return the fingerprint of ``surrokit reproduce``: of the figures of each row."""
    with tempfile.TemporaryDirectory() as folder:
        found = json_of("reproduce", name, "--quick", "--out", folder, *arguments.split())
    figures = {
        f"{row['name']} {figure}": value
        for row in found["rows"]
        for figure, value in row["result"].items()
    }
    return _grouped(figures)


def _grouped(figures: Mapping[str, Any]) -> dict[str, Any]:
    found = of_figures(figures)
    calls = {name: found.pop(name) for name in figures if name.endswith("calls")}
    return {"calls": calls, "statistics": found}


def json_of(*arguments: str) -> Mapping[str, Any]:
    """Run the command, and return the JSON that it writes."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figures.json"
        printed, status = io.StringIO(), None
        with redirect_stdout(printed), redirect_stderr(printed), _typed(*arguments, file):
            try:
                command()()
            except SystemExit as end:
                status = end.code
        if status:
            raise RuntimeError(f"surrokit {' '.join(arguments)} failed: {printed.getvalue()}")
        figures: Mapping[str, Any] = json.loads(file.read_text("utf-8"))
    return figures


@contextmanager
def _typed(*arguments: str | Path) -> Iterator[None]:
    """Have the arguments stand on the command line, the last of them the file for JSON."""
    before = sys.argv
    sys.argv = ["surrokit", *map(str, arguments[:-1]), "--json", str(arguments[-1])]
    try:
        yield
    finally:
        sys.argv = before


def command() -> Any:
    """Return what the project announces as the command ``surrokit``, wherever it lives."""
    project = tomllib.loads(PROJECT.read_text("utf-8"))["project"]
    return pkgutil.resolve_name(project["scripts"]["surrokit"])
