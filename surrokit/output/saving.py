"""Runs as tables, figures and files, in the form that the ending of the file's name asks for."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import attrs
import numpy as np

from surrokit.arguments import load_library
from surrokit.errors import ConfigurationError, MissingDependencyError
from surrokit.output.arviz import to_arviz
from surrokit.output.files import Columns, check_folder, plain, replacing, write_csv
from surrokit.weighted.round import RESAMPLING_SEED


def save(run: Any, path: str | os.PathLike[str]) -> None:
    """Write draws to a file; an existing file is replaced only when all is written.

    See :meth:`surrokit.Run.save`.
    """
    check_can_save(path)
    with replacing(Path(path)) as file:
        if form_of(path) == ".nc":
            to_arviz(run, RESAMPLING_SEED).to_netcdf(os.fspath(file), engine="h5netcdf")
        else:
            write_csv(columns_of(run), file)


def check_can_save(path: str | os.PathLike[str]) -> None:
    """Check, before a long run, that its result can be saved."""
    form = form_of(path)
    check_folder(path)
    if Path(path).is_dir():
        raise ConfigurationError(f"cannot write {path}: it is a folder; give the name of a file")
    for name in ("arviz", "h5netcdf", "h5py") if form == ".nc" else ():
        if find_spec(name) is None:
            raise MissingDependencyError(
                f"{name} is needed to save draws as netCDF and is not installed; run "
                "python -m pip install 'surrokit[arviz]'"
            )


def columns_of(run: Any) -> Columns:
    """Return chain, draw (both counted from 0) and every number of a position, one row a draw.

    Numbers of quantities are at the end. Arrays have shape (chains * draws,), chain after chain.
    Weighted draws have ``log_weight`` as well. A parameter that is called by one of these names
    keeps it, and the other gets an underscore.
    """
    n_chains, n_draws, _ = run.draws.shape
    index = {
        "chain": np.repeat(np.arange(n_chains), n_draws),
        "draw": np.tile(np.arange(n_draws), n_chains),
    }
    if run.log_weights is not None:
        index["log_weight"] = run.log_weights.ravel()
    more, beside = run.kept.quantity_columns()
    labels = [*run.labels, *more]
    index = {(f"{name}_" if name in labels else name): each for name, each in index.items()}
    columns = np.concatenate([run.draws, beside], axis=2).reshape(-1, len(labels)).T
    return {**index, **dict(zip(labels, columns, strict=True))}


def to_pandas(run: Any) -> Any:
    """Return the draws of a :class:`~surrokit.result.run.Run` as a data frame, one row a draw."""
    return load_library("pandas", "pandas", "for a data frame").DataFrame(columns_of(run))


def figures_of(run: Any) -> dict[str, Any]:
    """Return figures of a :class:`~surrokit.result.run.Run`, without draws, as JSON has them."""
    ess = run.ess()
    figures = {
        "parts": dict(run.parts),
        "choice": run.choice,
        "stopped": run.stopped,
        "length": run.length,
        "complete": run.complete,
        "exact": run.exact,
        "chains": run.draws.shape[0],
        "draws": run.draws.shape[1],
        "acceptance": run.acceptance.tolist(),
        "divergences": run.divergences.tolist(),
        "calls": dict(run.calls),
        "failures": run.failures,
        "failure_kinds": {name: kind.to_dict() for name, kind in run.failure_kinds.items()},
        "recheck": attrs.asdict(run.recheck),
        "broken_gradients": run.broken_gradients.count,
        "seconds": dict(run.seconds),
        "path_failures": run.path_failures,
        "adaptation": run.adaptation.to_dict(),
        "modes": None if run.modes is None else run.modes.to_dict(),
        "held_out": None if run.fit_quality is None else run.fit_quality.to_dict(),
        "ess": {part: float(getattr(np, part)(ess)) for part in ("min", "median", "max")},
        "calls_per_effective_draw": run.calls_per_effective_draw(),
        "rhat_max": float(np.max(run.rhat()[run.parameters.varies])),
        "verdict": run.verdict.to_dict(),
        "summary": run.summary().to_dict(),
    }
    return cast(dict[str, Any], plain(figures))


def form_of(path: str | os.PathLike[str]) -> str:
    """Return the ending of a path, which says how draws are written."""
    path = Path(path)
    if path.suffix.lower() not in (".nc", ".csv"):
        raise ConfigurationError(
            f"the ending of {path.name!r} does not say how to write draws; use one of .nc (netCDF "
            "for ArviZ), .csv (a table as text)"
        )
    return path.suffix.lower()
