"""Draws on disk, in the form that the ending of the file's name asks for."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import numpy as np

from surrokit.errors import ConfigurationError, MissingDependencyError
from surrokit.output.arviz import Draws, to_arviz
from surrokit.types import FloatArray, IntArray

Columns: TypeAlias = dict[str, FloatArray | IntArray]
"""Name to one number for each draw of each chain."""


def save(run: Any, path: str | os.PathLike[str], seed: int | np.random.Generator) -> None:
    """Write draws to a file; an existing file is replaced only when all is written.

    Parameters
    ----------
    run
        A :class:`~surrokit.result.run.Run`.
    seed
        By which weighted draws are drawn anew for the forms that know of no weights.
    path
        Its ending is one of ``.nc``, ``.csv``, ``.parquet`` and ``.zarr``. In ``.nc`` and
        ``.zarr``, names of parameters have ÷ for each slash, which these forms refuse, and an
        underscore where they are those of axes, such as ``chain`` and ``draw``.

    Raises
    ------
    ConfigurationError
        If the ending is another one, or the file cannot be written.
    MissingDependencyError
        If a library that the form needs is not installed.
    """
    check_can_save(path)
    path, form = Path(path), _form(Path(path))
    draws = Draws.of(run) if form.holds_weights else Draws.unweighted(run, seed)
    written = path if path.suffix.lower() == ".zarr" else _beside(path)
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
    form = _form(Path(path))
    check_folder(path)
    if Path(path).is_dir() and form is not _FORMS[".zarr"]:
        raise ConfigurationError(f"cannot write {path}: it is a folder; give the name of a file")
    for name in form.needs:
        if find_spec(name) is None:
            raise MissingDependencyError(
                f"{name} is needed to save draws as {form.name} and is not installed; run "
                f"python -m pip install {form.install}"
            )


def check_ending(path: str | os.PathLike[str]) -> None:
    """Check that the ending of a path tells how to write draws.

    Raises
    ------
    ConfigurationError
        If it does not.
    """
    _form(Path(path))


def check_folder(path: str | os.PathLike[str]) -> None:
    """Check, before a long run, that the folder of a file exists.

    Raises
    ------
    ConfigurationError
        If it does not.
    """
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise ConfigurationError(f"cannot write {path}: there is no folder {folder}; make it first")


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


@attrs.frozen(kw_only=True)
class _Form:
    """A form of file: what writes it, the modules it needs, and what to install for them."""

    name: str
    write: Callable[[Draws, Path], None]
    holds_weights: bool = True
    needs: tuple[str, ...] = ()
    install: str = ""


def _form(path: Path) -> _Form:
    form = _FORMS.get(path.suffix.lower())
    if form is None:
        known = ", ".join(f"{ending} ({form.name})" for ending, form in _FORMS.items())
        raise ConfigurationError(
            f"the ending of {path.name!r} does not say how to write draws; use one of {known}"
        )
    return form


def _beside(path: Path) -> Path:
    """Return a temporary name in the same folder, so that renaming replaces the file at once."""
    return path.with_name(f".{path.stem}-{os.getpid()}{path.suffix}")


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


_FORMS = {
    ".nc": _Form(
        name="netCDF for ArviZ",
        write=_write_netcdf,
        holds_weights=False,
        needs=("arviz", "h5netcdf", "h5py"),
        install="'surrokit[arviz]'",
    ),
    ".csv": _Form(name="a table as text", write=_write_csv),
    ".parquet": _Form(name="a table", write=_write_parquet, needs=("pyarrow",), install="pyarrow"),
    ".zarr": _Form(
        name="Zarr for ArviZ",
        write=_write_zarr,
        holds_weights=False,
        needs=("arviz", "zarr"),
        install="'surrokit[arviz]' zarr",
    ),
}
