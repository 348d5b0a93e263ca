"""Runs as tables, figures and files, in the form that the ending of the file's name asks for."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, cast

import attrs
import numpy as np

from surrokit.errors import ConfigurationError, MissingDependencyError
from surrokit.output.arviz import Draws, to_arviz
from surrokit.output.files import check_folder, plain
from surrokit.types import FloatArray, IntArray

Columns: TypeAlias = dict[str, FloatArray | IntArray]
"""Name to one number for each draw of each chain."""


def save(run: Any, path: str | os.PathLike[str], seed: int | np.random.Generator) -> None:
    """Write draws to a file; an existing file is replaced only when all is written.

    Parameters
    ----------
    run
        A :class:`~surrokit.result.run.Run`.
    path
        Its ending is one of ``.nc``, ``.csv``, ``.parquet`` and ``.zarr``.
    seed
        By which weighted draws are drawn anew for the forms that know of no weights.

    Raises
    ------
    ConfigurationError
        If the ending is another one, or the file cannot be written.
    MissingDependencyError
        If a library that the form needs is not installed.
    """
    check_can_save(path)
    path, form = Path(path), form_of(path)
    draws = Draws.of(run) if form.holds_weights else Draws.unweighted(run, seed)
    # a temporary name in the same folder, so that renaming replaces the file at once
    written = path.with_name(f".{path.stem}-{os.getpid()}{path.suffix}")
    if path.suffix.lower() == ".zarr":  # which is a folder
        written = path
    try:
        form.write(draws, written)
        if written != path:
            written.replace(path)
    except OSError as error:
        raise ConfigurationError(
            f"cannot write {path}: {error.strerror or error}; give a file in a folder that you may "
            "write to"
        ) from error
    finally:
        if written != path:
            written.unlink(missing_ok=True)


def check_can_save(path: str | os.PathLike[str]) -> None:
    """Check, before a long run, that its result can be saved.

    Raises
    ------
    ConfigurationError
        If the ending is unknown, the folder does not exist, or the file is a folder.
    MissingDependencyError
        If a library that the form needs is not installed.
    """
    form = form_of(path)
    check_folder(path)
    if Path(path).is_dir() and form is not _FORMS[".zarr"]:
        raise ConfigurationError(f"cannot write {path}: it is a folder; give the name of a file")
    for name in form.needs:
        if find_spec(name) is None:
            raise MissingDependencyError(
                f"{name} is needed to save draws as {form.name} and is not installed; run "
                f"python -m pip install {form.install}"
            )


def columns_of(draws: Draws) -> Columns:
    """Return chain, draw (both counted from 0) and every number of a position, one row a draw.

    Arrays have shape (chains * draws,), chain after chain. Weighted draws have ``log_weight`` as
    well. A parameter that is called by one of these names keeps it, and the other gets an
    underscore.
    """
    n_chains, n_draws, dim = draws.draws.shape
    index = {
        "chain": np.repeat(np.arange(n_chains), n_draws),
        "draw": np.tile(np.arange(n_draws), n_chains),
    }
    weights = draws.groups["sample_stats"].get("log_weight")
    if weights is not None:
        index["log_weight"] = weights.ravel()
    taken = set(draws.labels)
    numbers = draws.draws.reshape(n_chains * n_draws, dim)
    return {
        **{(f"{name}_" if name in taken else name): array for name, array in index.items()},
        **{label: numbers[:, i] for i, label in enumerate(draws.labels)},
    }


def to_pandas(run: Any) -> Any:
    """Return the draws of a :class:`~surrokit.result.run.Run` as a data frame, one row a draw.

    Raises
    ------
    MissingDependencyError
        If pandas is not installed.
    """
    try:
        import pandas
    except ImportError as error:
        raise MissingDependencyError(
            "pandas is needed for a data frame and is not installed; run python -m pip install "
            "'surrokit[pandas]', or use run.draws"
        ) from error
    frame = pandas.DataFrame(columns_of(Draws.of(run)))
    frame.attrs["units"] = run.parameters.units
    return frame


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


class Form(NamedTuple):
    """A form of file: what writes it, the modules it needs, and what to install for them."""

    name: str
    write: Callable[[Draws, Path], None]
    holds_weights: bool = True
    needs: tuple[str, ...] = ()
    install: str = ""


def form_of(path: str | os.PathLike[str]) -> Form:
    """Return the form of file that the ending of a path asks for.

    Raises
    ------
    ConfigurationError
        If none has that ending.
    """
    path = Path(path)
    form = _FORMS.get(path.suffix.lower())
    if form is None:
        known = ", ".join(f"{ending} ({form.name})" for ending, form in _FORMS.items())
        raise ConfigurationError(
            f"the ending of {path.name!r} does not say how to write draws; use one of {known}"
        )
    return form


def _write_netcdf(draws: Draws, path: Path) -> None:
    to_arviz(draws.with_free_names()).to_netcdf(os.fspath(path), engine="h5netcdf")


def _write_zarr(draws: Draws, path: Path) -> None:
    to_arviz(draws.with_free_names()).to_zarr(os.fspath(path))


def _with_units(draws: Draws) -> Columns:
    """Return columns of a table on its own, in which names have their units."""
    named = dict(zip(draws.labels, draws.titles, strict=True))
    return {named.get(name, name): array for name, array in columns_of(draws).items()}


def _write_csv(draws: Draws, path: Path) -> None:
    columns = _with_units(draws)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        # Python's own numbers are written so that they are read back exactly
        writer.writerows(zip(*(array.tolist() for array in columns.values()), strict=True))


def _write_parquet(draws: Draws, path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table(_with_units(draws)), os.fspath(path))


_ARVIZ = "'surrokit[arviz]'"

_FORMS = {
    ".nc": Form("netCDF for ArviZ", _write_netcdf, False, ("arviz", "h5netcdf", "h5py"), _ARVIZ),
    ".csv": Form("a table as text", _write_csv),
    ".parquet": Form("a table", _write_parquet, needs=("pyarrow",), install="pyarrow"),
    ".zarr": Form("Zarr for ArviZ", _write_zarr, False, ("arviz", "zarr"), f"{_ARVIZ} zarr"),
}
