"""Rows that are kept, continued and reported; ``surrokit reproduce``, and what can go wrong."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import attrs
import numpy as np
import pytest

from surrokit.cli.main import main
from surrokit.errors import ConfigurationError, TargetError
from surrokit_paper import reproduction
from surrokit_paper.command import NAMES
from surrokit_paper.harness import (
    Conditions,
    Experiment,
    Report,
    Row,
    choose_rows,
    fingerprint,
    reproduce,
)
from surrokit_paper.reproduction import EXPERIMENTS, choose, make

DONE: list[str] = []
"""Rows that were really done, in order, each after its experiment."""

BEHAVIOUR: dict[str, dict[str, int]] = {}
"""Experiment to the number at which it breaks, is interrupted or needs a file."""


def _small(_, __, value):
    if not isinstance(value, int):
        raise ConfigurationError(f"more must be a whole number, got {value!r}")


@attrs.frozen(kw_only=True)
class First(Experiment):
    """A toy: squares of numbers with noise, some of which cannot be had."""

    name = "figure-1"
    title = "Some squares"
    quick = {"numbers": (1,)}  # noqa: RUF012

    numbers: tuple[int, ...] = (1, 2)

    @property
    def _behaviour(self):
        return BEHAVIOUR.get(self.name, {})

    def rows(self):
        return [Row(name=f"n/{n}", settings={"number": n}) for n in self.numbers]

    def run(self, row, conditions):
        n, behaviour = row.settings["number"], self._behaviour
        if n == behaviour.get("interrupted"):
            raise KeyboardInterrupt
        if n == behaviour.get("breaks"):
            raise ZeroDivisionError("no such number")
        if n == behaviour.get("needs file"):
            conditions.data_file("numbers.txt")
        if n == behaviour.get("odd"):
            return {"square": object()}
        DONE.append(f"{self.name}/{row.name}")
        noise = conditions.generator("noise", n).standard_normal()
        return {"square": np.float64(n**2), "noise": noise, "nothing": float("nan")}

    def report(self, finished):
        if "report breaks" in self._behaviour:
            raise KeyError("number")
        squares = [row.result["square"] for row in finished]
        lines = [{"row": r.name, "square": r.result["square"], "nothing": None} for r in finished]
        return Report(
            tables={"": lines, "sums": [{"sum": sum(squares)}], "none": []},
            printed=[("largest square", "9", max(squares))],
            figures={"sum": np.sum(squares)},
            notes=("squares are never negative.",),
        )

    def draw(self, finished):
        from matplotlib.figure import Figure

        if "drawing is interrupted" in self._behaviour:
            raise KeyboardInterrupt
        figure = Figure(figsize=(3.0, 2.0))
        figure.subplots().plot([row.result["square"] for row in finished])
        return figure


@attrs.frozen(kw_only=True)
class Second(First):
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


def behave(**first):
    BEHAVIOUR["figure-1"] = {name.replace("_", " "): at for name, at in first.items()}


# --- the conditions of rows ---


def test_a_generator_depends_on_seed_and_keys_only():
    first, again = Conditions(seed=4), Conditions(seed=4, data=Path("elsewhere"))
    draws = first.generator("data", 3).standard_normal(5)
    np.testing.assert_array_equal(draws, again.generator("data", 3).standard_normal(5))
    others = [first.generator("data", 4), first.generator("data", "3")]
    for other in [*others, Conditions(seed=5).generator("data", 3)]:
        assert not np.any(draws == other.standard_normal(5))


def test_a_data_file_is_found_as_it_is_or_packed(tmp_path):
    with pytest.raises(TargetError, match=r"needs the file a.csv; give its folder with --data"):
        Conditions(seed=1).data_file("a.csv")
    conditions = Conditions(seed=1, data=tmp_path)
    with pytest.raises(TargetError, match=r"file a.csv, which is not in .*; put it there, or give"):
        conditions.data_file("a.csv")
    for name in ("a.csv", "a.csv.gz"):
        (tmp_path / name).write_text("1")
        assert conditions.data_file("a.csv") == tmp_path / name


# --- rows are kept ---


def test_every_row_is_done_in_order_and_once_for_each_seed(tmp_path, done):
    first = reproduce(First(numbers=(1, 3)), tmp_path)
    assert [row.result["square"] for row in first.finished] == [1.0, 9.0]
    second = reproduce(First(numbers=(1, 2, 3)), tmp_path)
    assert done == ["figure-1/n/1", "figure-1/n/3", "figure-1/n/2"]
    assert [second.finished[0], second.finished[2]] == first.finished
    assert (second.left, second.not_run) == ([], {})
    assert second.notes == ["squares are never negative."]
    other = reproduce(First(numbers=(1, 3)), tmp_path, seed=2)
    assert len(done) == 5
    assert other.finished[0].result["noise"] != first.finished[0].result["noise"]


@pytest.mark.parametrize("line", ["", "[]", "3", '{"fingerprint": "x"}', "\x00\x01"])
def test_lines_that_are_no_rows_or_cut_short_are_passed_over(tmp_path, done, line):
    kept = tmp_path / "figure-1.rows.jsonl"
    kept.write_text(f"{line}\n")
    assert len(reproduce(First(), tmp_path).finished) == 2
    kept.write_text(kept.read_text()[:-40])
    assert len(reproduce(First(), tmp_path).finished) == 2
    assert done[2:] == ["figure-1/n/2"]
    reproduce(First(), tmp_path)
    assert len(done) == 3


def test_a_fingerprint_tells_whatever_may_change_a_result():
    row, versions = Row(name="a/1", settings={"n": 1}), {"numpy": "2.0"}
    mark = fingerprint("x", row, 1, versions)
    assert mark == fingerprint("x", Row(name="a/1", settings={"n": np.int64(1)}), 1, {**versions})
    for other in (
        fingerprint("y", row, 1, versions),
        fingerprint("x", Row(name="a/2", settings={"n": 1}), 1, versions),
        fingerprint("x", Row(name="a/1", settings={"n": 2}), 1, versions),
        fingerprint("x", row, 2, versions),
        fingerprint("x", row, 1, {"numpy": "2.1"}),
    ):
        assert mark != other


def test_fresh_does_rows_again_and_forgets_the_old_ones(tmp_path, done):
    reproduce(First(), tmp_path)
    work = reproduce(First(), tmp_path, fresh=True, only=["n/2"])
    assert (done[2:], len(work.finished)) == (["figure-1/n/2"], 2)
    assert len((tmp_path / "figure-1.rows.jsonl").read_text().splitlines()) == 2
    behave(interrupted=1)
    stopped = reproduce(First(), tmp_path, fresh=True)
    assert stopped.left == ["n/1", "n/2"]
    assert stopped.notes[-1].endswith("the same command without --fresh goes on.")


def test_only_some_rows_by_whole_words(tmp_path, done):
    experiment = First(numbers=(*range(1, 6), 12))
    work = reproduce(experiment, tmp_path, only=["n/1"])
    assert (done, work.waiting, work.n_done) == (["figure-1/n/1"], [], 1)
    assert work.notes[-1].startswith("not asked for: n/2, n/3 and 3 more; without --only all are")
    for name, n in (("n/1", 1), ("n", 6), ("n/", 6)):
        assert len(choose_rows(experiment, [name])) == n
    message = r"^figure-1 has no row 'm/3'; did you mean 'n/3'\? its rows are: n/1, .*, n/12$"
    with pytest.raises(ConfigurationError, match=message):
        choose_rows(experiment, ["m/3"])
    message = "rows are: 40 in all, such as n/0; they begin with n"
    with pytest.raises(ConfigurationError, match=message):
        choose_rows(First(numbers=tuple(range(40))), ["cube"])


# --- what is written ---

TEXT = """\
Some squares

row  square  nothing
n/1       1        -
n/2       4        -

sums:
sum
5

figure          in the paper  here
largest square             9     4

Note: squares are never negative.
"""


def test_the_text_has_no_terminal_codes_whatever_the_terminal(tmp_path, monkeypatch):
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": "20"}.items():
        monkeypatch.setenv(name, value)
    work = reproduce(First(), tmp_path)
    work.write(tmp_path)
    assert (tmp_path / "figure-1.txt").read_text() == TEXT == work.text()


def test_a_wide_table_is_not_broken_and_long_notes_are(tmp_path, monkeypatch):
    line = {f"a rather long title {i}": 1.5 for i in range(12)}
    wide = Report(tables={"All of it": [line]}, notes=("many words " * 30,))
    monkeypatch.setattr(First, "report", lambda self, finished: wide)
    lines = reproduce(First(), tmp_path).text().splitlines()
    (first,) = [line for line in lines if line.startswith("a rather")]
    assert first.endswith("a rather long title 11")
    assert not any(line != line.rstrip() for line in lines)
    notes = lines[[line.startswith("Note: ") for line in lines].index(True) :]
    assert all(len(line) <= 100 for line in notes)
    assert all(line.startswith("  ") for line in notes[1:])


def test_the_figures_are_written_as_json(tmp_path):
    work = reproduce(First(), tmp_path, seed=7)
    work.write(tmp_path)
    text = (tmp_path / "figure-1.json").read_text()
    figures = json.loads(text, parse_constant=pytest.fail)
    assert figures == json.loads(json.dumps(work.to_dict()))
    assert [figures[name] for name in ("experiment", "seed", "complete")] == ["figure-1", 7, True]
    assert figures["settings"] == {"numbers": [1, 2]}
    assert set(figures["versions"]) == {"surrokit", "numpy", "scipy"}
    line = {"row": "n/2", "square": 4.0, "nothing": None}
    assert figures["tables"][0]["lines"][1] == line
    assert figures["tables"][1] == {"title": "sums", "lines": [{"sum": 5.0}]}
    assert figures["printed"] == [{"what": "largest square", "printed": "9", "ours": 4.0}]
    assert figures["figures"] == {"sum": 5.0}
    assert figures["rows"][0]["result"]["nothing"] is None
    assert str(tmp_path) not in text


# --- the command ---


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


def test_names_only_and_settings_reach_the_experiments_that_have_them():
    assert tuple(EXPERIMENTS) == NAMES
    only = ["figure-2", "figure-1/n/2", "figure-2/n/1", "figure-1/n/1"]
    assert choose(only) == {"figure-1": ["n/2", "n/1"], "figure-2": []}
    assert choose([]) == {"figure-1": [], "figure-2": []}
    classes = {"figure-1": First, "figure-2": Second}
    made = make(classes, ["more=7", "numbers=(4, 5)"])
    assert made == {"figure-1": First(numbers=(4, 5)), "figure-2": Second(numbers=(4, 5), more=7)}
    assert make(classes, [], quick=True)["figure-1"] == First(numbers=(1,))
    assert make(classes, ["numbers=(2,)"], quick=True)["figure-1"] == First(numbers=(2,))
    with pytest.raises(ConfigurationError, match=r"figure-2: more must be a whole number, got 'a'"):
        make(classes, ["more=a"])


def test_one_experiment_is_done_printed_and_written(surrokit, done):
    code, out, err = surrokit("figure-1")
    assert (code, err, done) == (0, "", ["figure-1/n/1", "figure-1/n/2"])
    assert out.startswith(Path("reproduced/figure-1.txt").read_text())
    assert "figures written to reproduced/figure-1.json and reproduced/figure-1.txt" in out
    assert "picture written to reproduced/figure-1.png and reproduced/figure-1.svg" in out
    assert "experiment " not in out
    written = {path.suffix for path in Path("reproduced").iterdir()}
    assert written == {".json", ".txt", ".jsonl", ".png", ".svg"}


def test_all_are_done_one_after_the_other(surrokit, done):
    code, out, err = surrokit("all")
    assert (code, err) == (0, "")
    assert done == ["figure-1/n/1", "figure-1/n/2", "figure-2/n/1", "figure-2/n/2", "figure-2/n/x"]
    assert out.count("Some squares\n") == 2
    last = [line.split() for line in out.splitlines()[-3:]]
    titles = ["experiment", "rows", "done", "of", "minutes"]
    assert last == [titles, ["figure-1", "2", "2", "0.0"], ["figure-2", "3", "3", "0.0"]]


def test_quick_only_seed_settings_and_fresh_reach_them(surrokit, done):
    surrokit("all", "--quick")
    assert done == ["figure-1/n/1", "figure-2/n/1"]
    surrokit("all", "--only", "figure-2/n/x", "--set", "more=4", "--seed", "5")
    assert done[2:] == ["figure-2/n/x"]
    seeds = [json.loads(Path(f"reproduced/figure-{i}.json").read_text())["seed"] for i in (1, 2)]
    assert seeds == [1, 5]
    surrokit("figure-1", "--only", "n/1", "--fresh", "--out", "reproduced")
    assert done[3:] == ["figure-1/n/1"]
    code, out, _ = surrokit("figure-2", "--settings")
    (line,) = [line.split() for line in out.splitlines() if line.startswith("more ")]
    assert (code, len(done), line) == (0, 4, ["more", "3", "One", "more."])


def test_what_lacks_a_file_is_told_at_the_end_and_the_rest_goes_on(
    surrokit, done, tmp_path, monkeypatch
):
    behave(needs_file=1)
    BEHAVIOUR["figure-2"] = {"needs file": 2}
    code, out, _ = surrokit("all")
    assert (code, done) == (0, ["figure-1/n/2", "figure-2/n/1", "figure-2/n/x"])
    lacks = "this needs the file numbers.txt; give its folder with --data"
    assert notes(out) == [f"Note: not done: figure-1/n/1, figure-2/n/2; {lacks}"]
    code, out, err = surrokit("figure-1", "--only", "n/1", "--out", "other")
    assert (code, err, notes(out)) == (1, "", [f"Note: not done: figure-1/n/1; {lacks}"])
    assert not Path("other/figure-1.json").exists()
    (tmp_path / "numbers.txt").write_text("1 2")
    monkeypatch.setenv("SURROKIT_DATA", str(tmp_path))
    code, out, _ = surrokit("all")
    assert (code, notes(out), done[3:]) == (0, [], ["figure-1/n/1", "figure-2/n/2"])


def test_an_unexpected_error_is_shown_and_the_rest_goes_on(surrokit, done):
    behave(breaks=1)
    code, out, err = surrokit("all")
    assert (code, done[:2]) == (1, ["figure-1/n/2", "figure-2/n/1"])
    reason = "it ended in ZeroDivisionError: no such number"
    assert f"Error in figure-1/n/1: {reason}\n" in err
    assert "Traceback" in err
    assert notes(out) == [f"Note: not done: figure-1/n/1; {reason}"]
    kept = json.loads(Path("reproduced/figure-1.json").read_text())
    assert kept["not_run"] == {"n/1": reason}
    behave(report_breaks=1)
    code, out, err = surrokit("all")
    assert (code, done[4:]) == (1, ["figure-1/n/1"])
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


def test_an_interrupt_keeps_what_is_finished_and_says_how_to_go_on(surrokit, done):
    still = "Note: still to be done: figure-1, figure-2; the same command"
    for at in (1, 2):
        behave(interrupted=at)
        code, out, _ = surrokit("all", "--fresh")
        assert (code, notes(out)) == (130, [f"{still} without --fresh goes on."])
    assert done == ["figure-1/n/1"]
    code, out, _ = surrokit("figure-1")
    assert code == 130
    assert "Note: still to be done: n/2; the same command goes on." in out
    assert json.loads(Path("reproduced/figure-1.json").read_text())["left"] == ["n/2"]
    behave(drawing_is_interrupted=1)
    code, out, _ = surrokit("all")
    assert (code, len(done), notes(out)) == (130, 2, [f"{still} goes on."])
    BEHAVIOUR.clear()
    code, out, _ = surrokit("all")
    assert (code, notes(out), len(done)) == (0, [], 5)


def test_without_matplotlib_tables_are_made_and_it_is_said(surrokit, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "matplotlib.figure", raising=False)
    code, out, _ = surrokit("figure-1")
    assert code == 0
    assert "Note: Matplotlib is needed to draw pictures and is not installed; run" in out
    assert Path("reproduced/figure-1.txt").exists()

    def draw(self, finished):
        import absent_module  # noqa: F401

    monkeypatch.setattr(First, "draw", draw)
    code, _, err = surrokit("figure-1")
    assert (code, "Error in figure-1: it ended in ModuleNotFoundError" in err) == (1, True)


def test_json_is_written_elsewhere_too(surrokit):
    behave(needs_file=1)
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


def test_in_a_terminal_each_row_is_named(surrokit, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    named = ["figure-1 n/1 (2 rows to go)", "figure-1 n/2 (1 rows to go)"]
    assert surrokit("figure-1")[2].splitlines() == named
