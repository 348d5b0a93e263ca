"""Runs in the form of the ArviZ project."""

from __future__ import annotations

import os
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from surrokit.errors import ConfigurationError, MissingDependencyError

if TYPE_CHECKING:
    from surrokit.history import Trace
    from surrokit.result import Run

_INSTALL = "python -m pip install 'surrokit[arviz]'"


def to_arviz(run: Run) -> Any:
    """Return a DataTree (ArviZ 1 and later) or InferenceData (before).

    Raises
    ------
    MissingDependencyError
        If ArviZ is not installed.
    """
    groups = {
        "posterior": {name: run[name] for name in run.parameters.specs},
        "sample_stats": _statistics(run.kept),
        "warmup_sample_stats": _statistics(run.warmup),
    }
    with warnings.catch_warnings():
        # ArviZ takes fewer draws than chains for swapped axes
        warnings.filterwarnings("ignore", category=UserWarning, message=".*chain.*")
        converted = _converted(groups)
    converted.attrs.update(_attributes(run))
    return converted


def _converted(groups: dict[str, dict[str, np.ndarray]]) -> Any:
    try:
        from arviz_base import from_dict
    except ImportError:
        pass
    else:
        return from_dict(groups, save_warmup=True)
    try:
        import arviz
    except ImportError as error:
        raise MissingDependencyError(
            f"ArviZ is needed for this and is not installed; run {_INSTALL}"
        ) from error
    return arviz.from_dict(**groups, save_warmup=True)


def save(run: Run, path: str | os.PathLike[str]) -> None:
    """Write a run as netCDF.

    Raises
    ------
    MissingDependencyError
        If ArviZ or a netCDF library is not installed.
    """
    check_can_save(path)
    to_arviz(run).to_netcdf(os.fspath(path), engine="h5netcdf")


def check_can_save(path: str | os.PathLike[str]) -> None:
    """Find out before a long run whether its result can be saved.

    Raises
    ------
    MissingDependencyError
        If ArviZ or a netCDF library is not installed.
    ConfigurationError
        If the folder does not exist.
    """
    check_folder(path)
    for name in ("arviz", "h5netcdf", "h5py"):
        if find_spec(name) is None:
            raise MissingDependencyError(
                f"{name} is needed to save draws and is not installed; run {_INSTALL}"
            )


def check_folder(path: str | os.PathLike[str]) -> None:
    """Find out before a long run whether there is a folder to write a file to.

    Raises
    ------
    ConfigurationError
        If there is none.
    """
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise ConfigurationError(f"cannot write {path}: there is no folder {folder}; make it first")


def _statistics(trace: Trace) -> dict[str, np.ndarray]:
    """Return sampler statistics under ArviZ's names, each of shape (chains, draws).

    ``lp`` is left out where a correction did not evaluate the target at every draw.
    """
    chains = trace.draws.shape[0]
    known = not np.isnan(trace.values).any()
    return {
        **({"lp": -trace.values} if known else {}),
        "acceptance_rate": trace.acceptance,
        "diverging": trace.divergent,
        "n_steps": trace.n_steps,
        "step_size": np.tile(trace.step_size, (chains, 1)),
    }


def _attributes(run: Run) -> dict[str, Any]:
    return {
        "inference_library": "surrokit",
        "sampling_time": run.seconds["sampling"],
        "stopped": run.stopped,
        "length": run.length,
        **({} if run.choice is None else {"choice": run.choice}),
        **{f"calls_{kind}": n for kind, n in run.calls.items()},
    }
