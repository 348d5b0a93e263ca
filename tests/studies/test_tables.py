"""Studies from the command line: tables of positions and results."""

from __future__ import annotations

import csv
import io
import re

import numpy as np
import pytest

import surrokit as sk
from surrokit.cli.main import main

pytestmark = pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")


@pytest.fixture
def command(monkeypatch, capsys):
    """Run a command; return its exit status and what it printed."""

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["surrokit", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return run


def fill(table, path):
    """Write what a program would make of a table."""
    rows = list(csv.DictReader(io.StringIO(table)))
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["log_density", *rows[0], "remark"])
        for row in rows:
            value = -0.5 * (float(row["x"]) ** 2 + float(row["share"]) ** 2)
            writer.writerow([repr(value), *row.values(), "made by night"])


def test_a_study_by_tables(command, tmp_path):
    file, table = tmp_path / "a", tmp_path / "done.csv"
    code, out, _ = command("study", file, "x", "share=0:1", "--seed", 1)
    assert (code, out) == (0, f"{file}: 4 wanted\n")
    code, asked, err = command("ask", file, "--n", 1)
    assert (code, err) == (0, f"{file}: 4 wanted\n")
    assert asked.splitlines()[0] == "x,share"
    fill(asked, table)
    assert command("tell", file, table)[:2] == (0, f"{file}: 3 wanted\n")
    fill(command("ask", file)[1], table)
    assert command("tell", file, table)[1].endswith(" wanted\n")
    asked = sk.study(file).ask()
    assert len(asked) > 1
    printed = np.loadtxt(io.StringIO(command("ask", file)[1]), delimiter=",", skiprows=1)
    assert np.array_equal(printed, asked)


def test_quantities_are_read_from_columns_that_are_named(command, tmp_path):
    file, table = tmp_path / "a", tmp_path / "done.csv"
    settings = {"sampler": "random-walk", "warmup": 4, "draws": 4, "chains": 2, "seed": 1}
    study = sk.study(file, parameters={"x": None}, **settings)
    named = ("--quantity", "mass", "--quantity", "pair")
    while not study.done:
        rows = [(x, -0.5 * x * x, x, x, -x, "late") for x in study.ask()[:, 0].tolist()]
        head = ["x", "log_density", "mass", "pair[0]", "pair[1]", "remark"]
        with table.open("w", newline="") as to:
            csv.writer(to).writerows([head, *([*map(repr, row[:5]), row[5]] for row in rows)])
        assert command("tell", file, table, *named)[0] == 0
        study = sk.study(file)
    np.testing.assert_array_equal(study.run["mass"], study.run["x"])
    np.testing.assert_array_equal(study.run["pair"][..., 1], -study.run["x"])


def test_a_quantity_without_a_column_is_an_error(command, tmp_path):
    sk.study(tmp_path / "a", parameters={"x": None}, seed=1)
    (tmp_path / "done.csv").write_text("x,log_density\n1.0,-0.5\n")
    code, _, err = command("tell", tmp_path / "a", tmp_path / "done.csv", "--quantity", "mass")
    assert code == 1
    assert "has no column mass; it has x, log_density" in err


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("", "is no table: its first row must name the columns"),
        ("x,log_density\n1.0\n", "each row must have a field for each of them"),
        ("x\n1.0\n", "has no column log_density; it has x"),
        ("log_density\n1.0\n", "has no column x; it has log_density"),
        ("x,log_density\n1.0,one\n", "'one' in column log_density of .* is no number"),
        ("x,log_density\n1.0,-0.5\n", "position 0 was not asked for"),
    ],
)
def test_a_table_that_cannot_be_told(rows, message, command, tmp_path):
    sk.study(tmp_path / "a", parameters={"x": None}, seed=1)
    (tmp_path / "done.csv").write_text(rows)
    code, _, err = command("tell", tmp_path / "a", tmp_path / "done.csv")
    assert code == 1
    assert err.startswith("Error: ")
    assert re.search(message, err)


def test_files_that_are_missing_or_there(command, tmp_path):
    assert "there is no" in command("ask", tmp_path / "a")[2]
    assert "cannot read" in command("tell", _begun(tmp_path), tmp_path / "none.csv")[2]
    assert "is there already" in command("study", tmp_path / "b", "x")[2]
    assert "is no parameter; write x" in command("study", tmp_path / "c", "x=1")[2]


def _begun(folder):
    sk.study(folder / "b", parameters={"x": None}, seed=1)
    return folder / "b"


def test_show_says_what_a_study_waits_for(command, tmp_path):
    file = tmp_path / "a"
    command("study", file, "x", "y=0:", "--seed", 1)
    shown = command("show", file)[1]
    assert "the study waits for log densities at 4 positions. Get these by surrokit ask a" in shown
    assert "ended" not in shown
    study = sk.study(file)
    study.tell(study.ask()[:3], np.zeros(3))
    assert "at 1 positions" in command("show", file)[1]


def test_show_of_a_study_that_is_done_is_that_of_its_run(command, tmp_path):
    study = sk.study(tmp_path / "a", dim=2, sampler="random-walk", warmup=2, draws=4, seed=1)
    while not study.done:
        study.tell(study.ask(), -0.5 * (study.ask() ** 2).sum(axis=1))
    shown = command("show", tmp_path / "a")[1]
    assert "waits" not in shown
    assert "q[1]" in shown
