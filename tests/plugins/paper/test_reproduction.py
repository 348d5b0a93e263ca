"""``surrokit reproduce``: one experiment or all of them, and what happens where one cannot be."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import attrs
import pytest

from surrokit.cli.main import main
from surrokit.errors import ConfigurationError
from surrokit_paper import reproduction
from surrokit_paper.command import NAMES
from surrokit_paper.harness import Experiment, Report, Row
from surrokit_paper.reproduction import EXPERIMENTS, choose, make

DONE: list[str] = []
"""Rows that were really done, in order, each after its experiment."""

BEHAVIOUR: dict[str, dict[str, int]] = {}
"""Experiment to the number at which it breaks, is interrupted or needs a file."""


@attrs.frozen(kw_only=True)
class Numbers(Experiment):
    """A toy: numbers, some of which cannot be had."""

    title = "Some numbers"
    quick = {"numbers": (1,)}  # noqa: RUF012

    numbers: tuple[int, ...] = (1, 2)

    @property
    def _behaviour(self):
        return BEHAVIOUR.get(self.name, {})

    def rows(self):
        return [Row(name=f"n/{n}", settings={"number": n}) for n in self.numbers]

    def run(self, row, conditions):
        n = row.settings["number"]
        if n == self._behaviour.get("interrupted"):
            raise KeyboardInterrupt
        if n == self._behaviour.get("breaks"):
            raise ZeroDivisionError("no such number")
        if n == self._behaviour.get("needs file"):
            conditions.data_file("numbers.txt")
        DONE.append(f"{self.name}/{row.name}")
        return {"number": n}

    def report(self, finished):
        if "report breaks" in self._behaviour:
            raise KeyError("number")
        return Report(
            tables={"": [{"row": r.name, "number": r.result["number"]} for r in finished]}
        )

    def draw(self, finished):
        from matplotlib.figure import Figure

        if "drawing is interrupted" in self._behaviour:
            raise KeyboardInterrupt
        return Figure(figsize=(1.0, 1.0))


@attrs.frozen(kw_only=True)
class First(Numbers):
    """Figure 1."""

    name = "figure-1"


def _small(_, __, value):
    if not isinstance(value, int):
        raise ConfigurationError(f"more must be a whole number, got {value!r}")


@attrs.frozen(kw_only=True)
class Second(Numbers):
    """Figure 2, with one number more.

    Parameters
    ----------
    more
        One more.
    """

    name = "figure-2"
    more: int = attrs.field(default=3, validator=_small)

    def rows(self):
        rows = super().rows()
        return rows if len(rows) == 1 else [*rows, Row(name="n/x", settings={"number": self.more})]


@pytest.fixture(autouse=True)
def done(monkeypatch):
    monkeypatch.setattr(reproduction, "EXPERIMENTS", {"figure-1": First, "figure-2": Second})
    DONE.clear()
    BEHAVIOUR.clear()
    return DONE


@pytest.fixture
def surrokit(monkeypatch, capsys, tmp_path):
    """Run ``surrokit reproduce`` on toys alone; return code, output, errors."""
    monkeypatch.delenv("SURROKIT_DATA", raising=False)
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["surrokit", "reproduce", *map(str, arguments)])
        with warnings.catch_warnings(action="default"), pytest.raises(SystemExit) as caught:
            main()
        out, err = capsys.readouterr()
        return caught.value.code or 0, out, err

    return run


def notes(out: str) -> list[str]:
    """Return the notes after the last table."""
    return [line for line in out.rpartition("experiment ")[2].splitlines() if "Note" in line]


def without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "matplotlib.figure", raising=False)


# --- which experiments, and with which settings ---


def test_names_on_the_command_line_are_those_of_the_experiments():
    assert tuple(EXPERIMENTS) == NAMES


def test_only_takes_experiments_and_rows_of_them():
    only = ["figure-2", "figure-1/n/2", "figure-2/n/1", "figure-1/n/1"]
    assert choose(only) == {"figure-1": ["n/2", "n/1"], "figure-2": []}
    assert choose([]) == {"figure-1": [], "figure-2": []}


def test_a_setting_goes_to_the_experiments_that_have_it():
    classes = {"figure-1": First, "figure-2": Second}
    made = make(classes, ["more=7", "numbers=(4, 5)"])
    assert made == {"figure-1": First(numbers=(4, 5)), "figure-2": Second(numbers=(4, 5), more=7)}
    assert make(classes, [], quick=True)["figure-1"] == First(numbers=(1,))
    assert make(classes, ["numbers=(2,)"], quick=True)["figure-1"] == First(numbers=(2,))
    with pytest.raises(ConfigurationError, match=r"figure-2: more must be a whole number, got 'a'"):
        make(classes, ["more=a"])


# --- the command ---


def test_one_experiment_is_done_printed_and_written(surrokit, done):
    code, out, err = surrokit("figure-1")
    assert (code, err, done) == (0, "", ["figure-1/n/1", "figure-1/n/2"])
    text = Path("reproduced/figure-1.txt").read_text()
    assert out.startswith(text)
    assert "figures written to reproduced/figure-1.json and reproduced/figure-1.txt" in out
    assert "picture written to reproduced/figure-1.png and reproduced/figure-1.svg" in out
    assert {path.suffix for path in Path("reproduced").iterdir()} == {
        *(".json", ".txt", ".jsonl", ".png", ".svg")
    }


def test_all_are_done_one_after_the_other(surrokit, done):
    code, out, err = surrokit("all")
    assert (code, err) == (0, "")
    assert done == ["figure-1/n/1", "figure-1/n/2", "figure-2/n/1", "figure-2/n/2", "figure-2/n/x"]
    assert out.count("Some numbers\n") == 2
    last = [line.split() for line in out.splitlines()[-3:]]
    titles = ["experiment", "rows", "done", "of", "minutes"]
    assert last == [titles, ["figure-1", "2", "2", "0.0"], ["figure-2", "3", "3", "0.0"]]


def test_quick_only_seed_settings_and_fresh_reach_them(surrokit, done):
    surrokit("all", "--quick")
    assert done == ["figure-1/n/1", "figure-2/n/1"]
    surrokit("all", "--only", "figure-2/n/x", "--set", "more=4", "--seed", "5")
    assert done[2:] == ["figure-2/n/x"]
    assert json.loads(Path("reproduced/figure-2.json").read_text())["seed"] == 5
    assert json.loads(Path("reproduced/figure-1.json").read_text())["seed"] == 1
    surrokit("figure-1", "--only", "n/1", "--fresh", "--out", "reproduced")
    assert done[3:] == ["figure-1/n/1"]


def test_settings_are_listed(surrokit, done):
    code, out, _ = surrokit("figure-2", "--settings")
    assert (code, done) == (0, [])
    (line,) = [line.split() for line in out.splitlines() if line.startswith("more ")]
    assert line == ["more", "3", "One", "more."]


def test_what_lacks_a_file_is_told_at_the_end_and_the_rest_goes_on(
    surrokit, done, tmp_path, monkeypatch
):
    BEHAVIOUR.update({"figure-1": {"needs file": 1}, "figure-2": {"needs file": 2}})
    code, out, _ = surrokit("all")
    assert (code, done) == (0, ["figure-1/n/2", "figure-2/n/1", "figure-2/n/x"])
    lacks = "this needs the file numbers.txt; give its folder with --data"
    assert notes(out) == [f"Note: not done: figure-1/n/1, figure-2/n/2; {lacks}"]
    code, out, err = surrokit("figure-1", "--only", "n/1", "--out", "other")
    assert (code, err) == (1, "")
    assert notes(out) == [f"Note: not done: figure-1/n/1; {lacks}"]
    assert not Path("other/figure-1.json").exists()
    (tmp_path / "numbers.txt").write_text("1 2")
    monkeypatch.setenv("SURROKIT_DATA", str(tmp_path))
    code, out, _ = surrokit("all")
    assert (code, notes(out), done[3:]) == (0, [], ["figure-1/n/1", "figure-2/n/2"])


def test_an_unexpected_error_is_shown_and_the_rest_goes_on(surrokit, done):
    BEHAVIOUR["figure-1"] = {"breaks": 1}
    code, out, err = surrokit("all")
    assert code == 1
    assert done[:2] == ["figure-1/n/2", "figure-2/n/1"]
    assert "Error in figure-1/n/1: it ended in ZeroDivisionError: no such number\n" in err
    assert "Traceback" in err
    assert "in run" in err
    reason = "it ended in ZeroDivisionError: no such number"
    assert notes(out) == [f"Note: not done: figure-1/n/1; {reason}"]
    kept = json.loads(Path("reproduced/figure-1.json").read_text())
    assert kept["not_run"] == {"n/1": reason}
    BEHAVIOUR.clear()
    assert (surrokit("all")[0], done[4:]) == (0, ["figure-1/n/1"])


def test_a_report_that_breaks_keeps_the_rows_and_the_others(surrokit, done):
    BEHAVIOUR["figure-1"] = {"report breaks": 1}
    code, out, err = surrokit("all")
    assert code == 1
    assert "Error in figure-1: it ended in KeyError: 'number'" in err
    assert notes(out) == ["Note: not done: figure-1; it ended in KeyError: 'number'"]
    BEHAVIOUR.clear()
    assert (surrokit("all")[0], len(done)) == (0, 5)


def test_a_picture_that_cannot_be_written_does_not_stop_the_others(surrokit):
    Path("reproduced/figure-1.png").mkdir(parents=True)
    code, out, err = surrokit("all")
    assert code == 1
    assert "Error in figure-1: cannot write reproduced/figure-1.png" in err
    assert "Traceback" not in err
    assert Path("reproduced/figure-2.svg").exists()
    assert "Note: not done: figure-1; cannot write" in notes(out)[0]


@pytest.mark.parametrize("at", [1, 2])
def test_an_interrupt_keeps_what_is_finished_and_says_how_to_go_on(surrokit, done, at):
    BEHAVIOUR["figure-1"] = {"interrupted": at}
    code, out, _ = surrokit("all", "--fresh")
    assert (code, len(done)) == (130, at - 1)
    still = "still to be done: figure-1, figure-2; the same command without --fresh goes on."
    assert notes(out) == [f"Note: {still}"]
    BEHAVIOUR.clear()
    code, out, _ = surrokit("all")
    assert (code, notes(out), len(done)) == (0, [], 5)


def test_an_interrupt_of_one_experiment_says_so_to_the_shell(surrokit):
    BEHAVIOUR["figure-1"] = {"interrupted": 2}
    code, out, _ = surrokit("figure-1")
    assert code == 130
    assert "Note: still to be done: n/2; the same command goes on." in out
    assert json.loads(Path("reproduced/figure-1.json").read_text())["left"] == ["n/2"]


def test_an_interrupt_while_a_picture_is_drawn(surrokit, done):
    BEHAVIOUR["figure-1"] = {"drawing is interrupted": 1}
    code, out, _ = surrokit("all")
    assert (code, len(done)) == (130, 2)
    assert notes(out) == ["Note: still to be done: figure-1, figure-2; the same command goes on."]


def test_without_matplotlib_tables_are_made_and_it_is_said(surrokit, monkeypatch):
    without_matplotlib(monkeypatch)
    code, out, _ = surrokit("figure-1")
    assert code == 0
    assert "Note: Matplotlib is needed to draw pictures and is not installed; run" in out
    assert Path("reproduced/figure-1.txt").exists()


def test_another_missing_module_is_not_taken_for_matplotlib(surrokit, monkeypatch):
    def draw(self, finished):
        import absent_module  # noqa: F401

    monkeypatch.setattr(First, "draw", draw)
    code, _, err = surrokit("figure-1")
    assert code == 1
    assert "Error in figure-1: it ended in ModuleNotFoundError" in err


def test_json_is_written_elsewhere_too(surrokit):
    BEHAVIOUR["figure-1"] = {"needs file": 1}
    surrokit("all", "--json", "all.json")
    figures = json.loads(Path("all.json").read_text())
    one = json.loads(Path("reproduced/figure-2.json").read_text())
    assert set(figures["experiments"]) == {"figure-1", "figure-2"}
    assert figures["experiments"]["figure-2"] == one
    assert figures["notes"][0].startswith("not done: figure-1/n/1; this needs the file")
    assert (figures["failures"], figures["waiting"]) == ({}, [])
    surrokit("figure-2", "--json", "one.json")
    assert json.loads(Path("one.json").read_text()) == one


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--only", "figure-9"), "there is no experiment 'figure-9'; did you mean 'figure-2'?"),
        (("--only", "figure-1/m"), "figure-1 has no row 'm'; its rows are: n/1, n/2"),
        (("--set", "mor=3"), "none of figure-1, figure-2 has a setting 'mor'; did you mean 'more'"),
        (("--set", "a.b=3"), "--set takes setting=value, got 'a.b=3'"),
        (("--set", "more"), "--set takes setting=value, got 'more'"),
        (("--data", "absent"), "there is no folder absent; give the one that holds your data"),
        (("--json", "absent/x.json"), "cannot write absent/x.json: there is no folder"),
        (("--out", "all.json"), "[Errno 17] File exists: 'all.json'; give another folder with"),
        (("--seed", "-1"), "seed must be a whole number of at least 0, got -1"),
    ],
)
def test_mistakes_end_in_one_line_before_anything_is_done(surrokit, done, arguments, message):
    Path("all.json").touch()
    code, out, err = surrokit("all", *arguments)
    assert (code, out, done) == (1, "", [])
    (line,) = err.splitlines()
    assert line.startswith(f"Error: {message}")


def test_a_name_that_is_not_there_is_refused(surrokit):
    code, _, err = surrokit("figure-9")
    assert code == 2
    assert "'figure-9' is not one of 'figure-1'" in err


def test_in_a_terminal_each_row_is_named(surrokit, monkeypatch):
    assert surrokit("figure-1")[2] == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert surrokit("figure-1", "--fresh")[2].splitlines() == [
        "figure-1 n/1 (2 rows to go)",
        "figure-1 n/2 (1 rows to go)",
    ]
