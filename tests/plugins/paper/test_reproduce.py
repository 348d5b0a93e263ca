"""Cases that are kept, continued and reported; ``surrokit reproduce``, and what can go wrong."""

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
from surrokit_paper import command
from surrokit_paper.harness import Conditions, Figure, Report, chosen, reproduce

DONE: list[str] = []
"""Cases that were really done, in order, each after its figure."""

BEHAVIOUR: dict[str, int] = {}
"""What figure 1 does at which number."""


@attrs.frozen(kw_only=True)
class First(Figure):
    """A toy: squares of numbers with noise, some of which cannot be had."""

    name = "figure-1"
    title = "Some squares"
    quick = {"numbers": (1,)}  # noqa: RUF012
    grid = ("numbers",)

    numbers: tuple[int, ...] = (1, 2)
    power: float = 2.0

    def cases(self):
        return [{"kind": "n", "number": n} for n in self.numbers]

    def run(self, case, conditions):
        n, behaviour = case["number"], BEHAVIOUR if self.name == "figure-1" else {}
        if n == behaviour.get("interrupted"):
            raise KeyboardInterrupt
        if n == behaviour.get("breaks"):
            raise ZeroDivisionError("no such number")
        if n == behaviour.get("needs file"):
            conditions.data_file("numbers.txt")
        DONE.append(f"{self.name}/n/{n}")
        noise = conditions.generator("noise", n).standard_normal()
        return {"square": np.float64(n) ** self.power, "noise": noise, "nothing": float("nan")}

    def report(self, rows):
        squares = [row["square"] for row in rows]
        lines = [{"n": row["number"], "square": row["square"], "nothing": None} for row in rows]
        return Report(
            tables={"": lines, "sums": [{"sum": sum(squares)}], "none": []},
            printed=[("largest square", "9", max(squares))],
            notes=("squares are never negative.",),
        )

    def draw(self, rows):
        from matplotlib.figure import Figure as Picture

        figure = Picture(figsize=(3.0, 2.0))
        figure.subplots().plot([row["square"] for row in rows])
        return figure


@attrs.frozen(kw_only=True)
class Second(First):
    """Figure 2, with another setting."""

    name = "figure-2"
    more: int | None = None


@pytest.fixture(autouse=True)
def done(monkeypatch):
    toys = {f"figure-{i}": f"{__name__}:{cls}" for i, cls in ((1, "First"), (2, "Second"))}
    monkeypatch.setattr(command, "FIGURES", toys)
    DONE.clear()
    BEHAVIOUR.clear()
    return DONE


def again(figure, out, *only, seed=1):
    return reproduce(figure, out, Conditions(seed=seed), only or ("",))


# --- the conditions of cases ---


def test_a_generator_depends_on_seed_and_keys_only():
    first, same = Conditions(seed=4), Conditions(seed=4, data=Path("elsewhere"))
    draws = first.generator("data", 3).standard_normal(5)
    np.testing.assert_array_equal(draws, same.generator("data", 3).standard_normal(5))
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


# --- cases are kept ---


def test_every_case_is_done_in_order_and_once_for_whatever_its_result_depends_on(tmp_path, done):
    first = again(First(numbers=(1, 3)), tmp_path)
    assert [row["square"] for row in first.rows] == [1.0, 9.0]
    second = again(First(numbers=(1, 2, 3)), tmp_path)
    assert done == ["figure-1/n/1", "figure-1/n/3", "figure-1/n/2"]
    assert [second.rows[0], second.rows[2]] == first.rows
    assert (second.waiting, second.others, second.reasons) == ([], [], {})
    other = again(First(numbers=(1, 3)), tmp_path, seed=2)
    assert len(done) == 5
    assert other.rows[0]["noise"] != first.rows[0]["noise"]
    assert again(First(numbers=(3,), power=3.0), tmp_path).rows[0]["square"] == 27.0


@pytest.mark.parametrize("line", ["", "[]", "3", '{"mark": "x"}', "\x00\x01"])
def test_lines_that_are_no_rows_or_cut_short_are_passed_over(tmp_path, done, line):
    kept = tmp_path / "figure-1.rows.jsonl"
    kept.write_text(f"{line}\n")
    assert len(again(First(), tmp_path).rows) == 2
    kept.write_text(kept.read_text()[:-40])
    for _ in range(2):
        assert len(again(First(), tmp_path).rows) == 2
    assert done[2:] == ["figure-1/n/2"]


def test_only_some_cases_by_whole_words(tmp_path, done):
    figure = First(numbers=(*range(1, 6), 12))
    found = again(figure, tmp_path, "n/1")
    assert (done, found.waiting, len(found.rows)) == (["figure-1/n/1"], [], 1)
    assert found.report().notes[-2] == "not asked for: n/2, n/3 and 3 more."
    for name, n in (("n/1", 1), ("n", 6), ("", 6)):
        assert len(chosen(figure, [name])) == n
    message = r"^figure-1 has no case 'm/3'; its cases are such as n/1, and begin with n$"
    with pytest.raises(ConfigurationError, match=message):
        chosen(figure, ["m/3"])


# --- what is written ---

TEXT = """\
Some squares

n  square  nothing
1       1        -
2       4        -

sums:
sum
5

figure          in the paper  here
largest square             9     4

Note: squares are never negative.
Note: what is run, and what differs from the paper: docs/experiments/figure-1.md.
"""


def test_the_text_has_no_terminal_codes_whatever_the_terminal(tmp_path, monkeypatch):
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": "20"}.items():
        monkeypatch.setenv(name, value)
    found = again(First(), tmp_path)
    found.write(tmp_path)
    assert (tmp_path / "figure-1.txt").read_text() == TEXT == found.text()


def test_a_wide_table_is_not_broken_and_long_notes_are(tmp_path, monkeypatch):
    line = {f"a rather long title {i}": 1.5 for i in range(12)}
    wide = Report(tables={"All of it": [line]}, notes=("many words " * 30,))
    monkeypatch.setattr(First, "report", lambda self, rows: wide)
    lines = again(First(), tmp_path).text().splitlines()
    (first,) = [line for line in lines if line.startswith("a rather")]
    assert first.endswith("a rather long title 11")
    assert not any(line != line.rstrip() for line in lines)
    notes = lines[[line.startswith("Note: ") for line in lines].index(True) : -1]
    assert all(len(line) <= 100 for line in notes)
    assert all(line.startswith("  ") for line in notes[1:])


def test_the_figures_are_written_as_json(tmp_path):
    found = again(First(), tmp_path, seed=7)
    found.write(tmp_path)
    text = (tmp_path / "figure-1.json").read_text()
    figures = json.loads(text, parse_constant=pytest.fail)
    assert figures == json.loads(json.dumps(found.to_dict()))
    assert [figures[name] for name in ("figure", "seed", "complete")] == ["figure-1", 7, True]
    assert figures["settings"] == {"numbers": [1, 2], "power": 2.0}
    assert set(figures["versions"]) == {"surrokit", "numpy", "scipy"}
    assert figures["tables"][""][1] == {"n": 2, "square": 4.0, "nothing": None}
    assert figures["printed"] == [["largest square", "9", 4.0]]
    assert figures["rows"][0]["nothing"] is None
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


def notes(out):
    """Return the notes on what is missing."""
    known = "negative", "what is run"
    return [li for li in out.splitlines() if "Note" in li and not any(each in li for each in known)]


def test_one_figure_is_done_printed_and_written(surrokit, done):
    code, out, err = surrokit("figure-1")
    assert (code, err, done) == (0, "", ["figure-1/n/1", "figure-1/n/2"])
    assert out.startswith(Path("reproduced/figure-1.txt").read_text())
    written = ", ".join(f"reproduced/figure-1.{ending}" for ending in ("txt", "json", "png", "svg"))
    assert f"written: {written}" in out
    endings = {path.suffix for path in Path("reproduced").iterdir()}
    assert endings == {".json", ".txt", ".jsonl", ".png", ".svg"}


def test_all_are_done_one_after_the_other_and_options_reach_them(surrokit, done):
    code, out, err = surrokit("all")
    every = ["figure-1/n/1", "figure-1/n/2", "figure-2/n/1", "figure-2/n/2"]
    assert (code, err, done, out.count("Some squares\n")) == (0, "", every, 2)
    surrokit("all", "--quick", "--out", "elsewhere", "--seed", 5)
    assert done[4:] == ["figure-1/n/1", "figure-2/n/1"]
    assert json.loads(Path("elsewhere/figure-1.json").read_text())["seed"] == 5
    surrokit("figure-2/n/3", "figure-1/n/2", "--set", "numbers=(2, 3)", "--set", "more=4")
    assert done[6:] == ["figure-2/n/3"]
    settings = json.loads(Path("reproduced/figure-2.json").read_text())["settings"]
    assert settings == {"numbers": [2, 3], "power": 2.0, "more": 4}
    surrokit("figure-1", "--set", "numbers=7", "--set", "power=3")
    assert done[7:] == ["figure-1/n/7"]


def test_what_lacks_a_file_is_told_at_the_end_and_the_rest_goes_on(surrokit, done, monkeypatch):
    BEHAVIOUR["needs file"] = 1
    code, out, err = surrokit("figure-1")
    lacks = "this needs the file numbers.txt; give its folder with --data"
    assert (code, err, done) == (0, "", ["figure-1/n/2"])
    assert notes(out) == [f"Note: not done: n/1; {lacks}"]
    assert surrokit("figure-1/n/1", "--out", "other")[0] == 1
    assert not Path("other/figure-1.json").exists()
    Path("numbers.txt").write_text("1 2")
    monkeypatch.setenv("SURROKIT_DATA", ".")
    code, out, _ = surrokit("all")
    assert (code, notes(out), done[1]) == (0, [], "figure-1/n/1")


def test_an_unexpected_error_is_shown_and_the_rest_goes_on(surrokit, done):
    BEHAVIOUR["breaks"] = 1
    code, out, err = surrokit("all")
    assert (code, done[:2]) == (1, ["figure-1/n/2", "figure-2/n/1"])
    assert "Error in figure-1/n/1: Traceback" in err
    assert "ZeroDivisionError: no such number" in err
    reason = "it ended in ZeroDivisionError: no such number"
    assert notes(out) == [f"Note: not done: n/1; {reason}"]


def test_an_interrupt_keeps_what_is_finished_and_says_how_to_go_on(surrokit, done):
    BEHAVIOUR["interrupted"] = 2
    code, out, _ = surrokit("all")
    assert (code, done) == (130, ["figure-1/n/1"])
    assert notes(out) == ["Note: still to be done: n/2; the same command goes on."]
    assert json.loads(Path("reproduced/figure-1.json").read_text())["complete"] is False
    BEHAVIOUR.clear()
    code, out, _ = surrokit("all")
    assert (code, notes(out), len(done)) == (0, [], 4)


def test_without_matplotlib_tables_are_made_and_it_is_said(surrokit, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "matplotlib.figure", raising=False)
    code, out, _ = surrokit("figure-1")
    assert (code, "Note: pictures need Matplotlib; run python -m pip" in out) == (0, True)
    assert Path("reproduced/figure-1.txt").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("figure-9",),
            "there is no table or figure 'figure-9'; there are figure-1, figure-2, and",
        ),
        (("figure-1/m",), "figure-1 has no case 'm'; its cases are such as n/1"),
        (("all", "--set", "mor=3"), "--set takes KEY=VALUE with one of more, numbers, power, got"),
        (("all", "--set", "power"), "power must be like 2.0, got ''"),
        (("all", "--set", "power=(2.0,)"), "power must be like 2.0, got (2.0,)"),
        (("all", "--set", "numbers=[3]"), "numbers must be like (1, 2), got [3]"),
        (("all", "--out", "a.json"), "[Errno 17] File exists: 'a.json'; give another folder with"),
        (("all", "--seed", "-1"), "seed must be a whole number of at least 0, got -1"),
    ],
)
def test_mistakes_end_in_one_line_before_anything_is_done(surrokit, done, arguments, message):
    Path("a.json").touch()
    code, out, err = surrokit(*arguments)
    assert (code, out, done) == (1, "", [])
    (line,) = err.splitlines()
    assert line.startswith(f"Error: {message}")


def test_in_a_terminal_each_case_is_named(surrokit, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert surrokit("figure-1")[2].splitlines() == ["figure-1/n/1", "figure-1/n/2"]
