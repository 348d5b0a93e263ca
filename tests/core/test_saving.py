"""Draws as files: the ending decides, and nothing is left half written."""

from __future__ import annotations

import csv
import sys
import types

import attrs
import numpy as np
import pytest
from numpy.testing import assert_array_equal

import surrokit as sk
from surrokit.errors import ConfigurationError, MissingDependencyError
from surrokit.output import saving

LABELS = ["rate", "slope", "w[0]", "w[1]"]


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return header, np.array(rows, dtype=float)


def test_a_table_as_text_has_one_row_a_draw(bounded_run, tmp_path):
    path = tmp_path / "run.csv"
    bounded_run.save(path)
    header, rows = rows_of(path)
    assert header == ["chain", "draw", *LABELS]
    chains, draws, dim = bounded_run.draws.shape
    assert_array_equal(rows[:, 0], np.repeat(np.arange(chains), draws))
    assert_array_equal(rows[:, 1], np.tile(np.arange(draws), chains))
    assert_array_equal(
        rows[:, 2:].reshape(chains, draws, dim), bounded_run.draws
    )  # to the last bit


def test_labels_with_commas_and_the_name_of_the_index_survive(tmp_path):
    target = sk.potential(
        lambda q: 0.5 * q @ q, lambda q: q,
        parameters={"chain": None, "m": sk.Parameter((1, 2))},
    )  # fmt: skip
    run = sk.sample(target, chains=2, warmup=20, draws=3, seed=1, progress=False)
    run.save(tmp_path / "run.csv")
    header, rows = rows_of(tmp_path / "run.csv")
    assert header == ["chain_", "draw", "chain", "m[0,0]", "m[0,1]"]
    assert_array_equal(rows[:, 2], run["chain"].ravel())


def test_slashes_are_division_signs_where_they_part_names_of_groups(tmp_path):
    pytest.importorskip("arviz")
    h5netcdf = pytest.importorskip("h5netcdf", reason="writes netCDF: the extra surrokit[arviz]")
    parameters = {"a/b": None, "a÷b": None, "c": None}
    target = sk.potential(lambda q: 0.5 * q @ q, lambda q: q, parameters=parameters)
    run = sk.sample(target, chains=2, warmup=20, draws=3, seed=1, progress=False)
    posterior = run.to_arviz()["posterior"]  # a tree of ArviZ 1 refuses slashes, too
    shown = "a÷b_" if "a÷b_" in posterior else "a/b"
    assert_array_equal(posterior[shown], run["a/b"])
    run.save(tmp_path / "run.nc")
    with h5netcdf.File(tmp_path / "run.nc") as file:
        posterior = file["posterior"].variables
        assert_array_equal(posterior["a÷b_"][:], run["a/b"])
        assert_array_equal(posterior["a÷b"][:], run["a÷b"])
        assert_array_equal(posterior["c"][:], run["c"])


ODD_NAMES = {
    "chain": None,
    "draw": sk.vector(2),
    "chain_": None,
    "v": sk.vector(2),
    "v_dim_0": None,
    **dict.fromkeys(
        ("x=1", "a/b", "a÷b", "a b", " a ", "it's", '"q"', "line\nbreak", "tab\t", "draws", "x[0]"),
        None,
    ),
    **dict.fromkeys(
        ("μέση τιμή", "é", "e\u0301", "posterior", ".", "..", "\\", "\x1b[31m", "\u202e", "lp"),
        None,
    ),
}


def test_parameters_with_odd_names_are_all_in_the_file(tmp_path):
    pytest.importorskip("h5netcdf")
    xarray = pytest.importorskip("xarray")
    target = sk.potential(lambda q: (q @ q) / 2, lambda q: q, parameters=ODD_NAMES)
    run = sk.sample(target, sampler="hmc", chains=2, warmup=2, draws=3, seed=1, progress=False)
    run.save(tmp_path / "run.nc")
    with xarray.open_dataset(tmp_path / "run.nc", group="posterior", engine="h5netcdf") as saved:
        found = {name: np.array(array) for name, array in saved.data_vars.items()}
    assert len(found) == len(ODD_NAMES)
    for name, array in zip(ODD_NAMES, found.values(), strict=True):
        assert np.array_equal(array, run[name])
    converted = run.to_arviz()["posterior"]
    assert len(converted.data_vars) == len(ODD_NAMES)


@pytest.mark.parametrize("name", ["a\x00b", "\udc80"])
def test_names_that_no_file_can_hold_are_refused(name):
    with pytest.raises(ConfigurationError, match="must be text that files can hold"):
        sk.potential(lambda q: q @ q, parameters={name: None})


def test_no_draws_are_a_table_without_rows(bounded_run, tmp_path):
    kept = attrs.evolve(bounded_run.kept, draws=bounded_run.draws[:, :0])
    attrs.evolve(bounded_run, kept=kept).save(tmp_path / "run.csv")
    header, rows = rows_of(tmp_path / "run.csv")
    assert len(header) == 6
    assert len(rows) == 0


@pytest.mark.parametrize("name", ["run.txt", "run", "run.csv.gz", "run.netcdf", ".csv"])
def test_another_ending_is_refused(bounded_run, tmp_path, name):
    with pytest.raises(
        ConfigurationError, match=r"does not say how to write draws; use one of .nc"
    ):
        bounded_run.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_endings_may_be_in_capitals(bounded_run, tmp_path):
    bounded_run.save(tmp_path / "RUN.CSV")
    assert (tmp_path / "RUN.CSV").stat().st_size > 0


NEEDS = [("parquet", "pyarrow"), ("zarr", "zarr"), ("nc", "h5netcdf"), ("nc", "h5py")]


@pytest.mark.parametrize(("ending", "library"), NEEDS)
def test_what_is_missing_for_a_form_is_said(bounded_run, tmp_path, monkeypatch, ending, library):
    pytest.importorskip("arviz")
    monkeypatch.setitem(sys.modules, library, None)
    install = r"'surrokit\[arviz\]'" if ending == "nc" else f".*{library}"
    with pytest.raises(
        MissingDependencyError, match=f"{library} is needed .* pip install {install}"
    ):
        bounded_run.save(tmp_path / f"run.{ending}")


def test_parquet_gets_the_same_columns(bounded_run, tmp_path, monkeypatch):
    """Against a stand-in for pyarrow, which the tests do without."""
    written = {}
    parquet = types.ModuleType("pyarrow.parquet")
    arrow = types.ModuleType("pyarrow")
    arrow.parquet, arrow.table = parquet, lambda columns: columns
    arrow.__spec__ = types.SimpleNamespace()

    def write_table(table, path):
        written.update(table)
        with open(path, "w") as file:
            file.write("table")

    parquet.write_table = write_table
    monkeypatch.setitem(sys.modules, "pyarrow", arrow)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", parquet)
    bounded_run.save(tmp_path / "run.parquet")
    assert list(written) == ["chain", "draw", *LABELS]
    assert (tmp_path / "run.parquet").read_text() == "table"


def test_parquet_can_be_read_back(bounded_run, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    bounded_run.save(tmp_path / "run.parquet")
    table = parquet.read_table(tmp_path / "run.parquet")
    assert_array_equal(table["slope"].to_numpy(), bounded_run["slope"].ravel())


def test_zarr_can_be_read_back(bounded_run, tmp_path):
    pytest.importorskip("zarr")
    xarray = pytest.importorskip("xarray")
    bounded_run.save(tmp_path / "run.zarr")
    with xarray.open_datatree(tmp_path / "run.zarr", engine="zarr") as tree:
        assert_array_equal(tree["posterior"]["w"].values, bounded_run["w"])


def test_an_old_file_stays_until_the_new_one_is_whole(bounded_run, tmp_path, monkeypatch):
    path = tmp_path / "run.csv"
    path.write_text("old")

    def fail(columns):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(saving, "columns_of", fail)
    with pytest.raises(
        ConfigurationError, match=r"cannot write .*run.csv: No space left on device"
    ):
        bounded_run.save(path)
    assert path.read_text() == "old"
    monkeypatch.undo()
    bounded_run.save(path)
    assert path.read_text().startswith("chain,draw,rate")
    assert [file.name for file in tmp_path.iterdir()] == ["run.csv"]


def test_a_folder_is_not_written_over(bounded_run, tmp_path):
    (tmp_path / "run.csv").mkdir()
    with pytest.raises(ConfigurationError, match="it is a folder; give the name of a file"):
        bounded_run.save(tmp_path / "run.csv")
