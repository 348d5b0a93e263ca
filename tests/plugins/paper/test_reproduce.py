"""Cases that are kept, continued and reported; ``surrokit reproduce``, and what can go wrong."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import pytest

from surrokit.cli.main import main
from surrokit.errors import TargetError
from surrokit_paper import command
from surrokit_paper.chains import generator

DONE: list[str] = []
"""Cases that were really done, in order, each after its figure."""

BEHAVIOUR: dict[str, int] = {}
"""What figure 1 does at which number."""


class Toy:
    """Squares of numbers with noise, some of which cannot be had."""

    TITLE = "Some squares"

    def __init__(self, name, **more):
        self.name = name
        self.FULL = {"numbers": (1, 2), "power": 2.0, **more}
        self.QUICK = {"numbers": (1,)}

    def cases(self, sizes):
        return [{"kind": "n", "number": n} for n in sizes.numbers]

    def run(self, case, sizes):
        n, behaviour = case["number"], BEHAVIOUR if self.name == "figure-1" else {}
        if n == behaviour.get("interrupted"):
            raise KeyboardInterrupt
        if n == behaviour.get("breaks"):
            raise ZeroDivisionError("no such number")
        if n == behaviour.get("needs file") and sizes.data is None:
            raise TargetError("this needs a file; give its folder with --data")
        DONE.append(f"{self.name}/n/{n}")
        noise = generator(sizes.seed, n).standard_normal()
        return {"square": float(n) ** sizes.power, "noise": noise, "nothing": float("nan")}

    def report(self, rows, sizes):
        squares = [row["square"] for row in rows]
        lines = [{"n": row["number"], "square": row["square"], "nothing": None} for row in rows]
        tables = {"": lines, "sums": [{"sum": sum(squares)}], "none": []}
        return tables, [("largest square", "9", max(squares))]

    def draw(self, rows, sizes):
        from matplotlib.figure import Figure as Picture

        figure = Picture(figsize=(3.0, 2.0))
        figure.subplots().plot([row["square"] for row in rows])
        return figure


@pytest.fixture(autouse=True)
def done(monkeypatch):
    figures = {"figure-1": Toy("figure-1"), "figure-2": Toy("figure-2", more=None)}
    monkeypatch.setattr(command, "FIGURES", dict(zip(figures, figures, strict=True)))
    monkeypatch.setattr(command, "import_module", figures.get)
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


def rows(out="reproduced"):
    """Return results that are kept, by case."""
    lines = (Path(out) / "figure-1.rows.jsonl").read_text().split("\n")
    records = [json.loads(line, parse_constant=pytest.fail) for line in lines if line]
    return [(record["case"], record["row"]["square"]) for record in records]


def notes(out):
    """Return the notes on what is missing."""
    return [line for line in out.splitlines() if "Note" in line and "what is run" not in line]


# --- cases are kept ---


def test_every_case_is_done_in_order_and_once_for_whatever_its_result_depends_on(surrokit, done):
    numbers = "--set", "numbers=(1, 3)"
    assert surrokit("figure-1/n/3", *numbers)[1].count("not asked for: n/1.") == 1
    out = surrokit("figure-1", *numbers)[1]
    assert done == ["figure-1/n/3", "figure-1/n/1"]
    assert rows() == [("n/3", 9.0), ("n/1", 1.0)]
    assert out.index("\n1 ") < out.index("\n3 ")
    assert surrokit("figure-1", *numbers)[1] == out
    assert len(done) == 2
    for other in (("--seed", 2), ("--set", "power=3.0")):
        surrokit("figure-1", *numbers, *other)
    assert done[2:] == ["figure-1/n/1", "figure-1/n/3"] * 2


@pytest.mark.parametrize("line", ["", "[]", "3", '{"mark": "x"}', "\x00\x01"])
def test_lines_that_are_no_rows_or_cut_short_are_passed_over(surrokit, done, line):
    Path("reproduced").mkdir()
    kept = Path("reproduced/figure-1.rows.jsonl")
    kept.write_text(f"{line}\n")
    surrokit("figure-1", "--full")
    kept.write_text(kept.read_text()[:-40])
    for _ in range(2):
        assert "not asked" not in surrokit("figure-1", "--full")[1]
    assert done[2:] == ["figure-1/n/2"]


def test_only_some_cases_by_whole_words(surrokit, done):
    many = "--set", f"numbers={(*range(1, 6), 12)}"
    out = surrokit("figure-1/n/1", *many)[1]
    assert (done, notes(out)) == (["figure-1/n/1"], ["Note: not asked for: n/2, n/3 and 3 more."])
    surrokit("figure-1/n", *many)
    assert len(done) == 6


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

Note: what is run, and what differs from the paper: docs/experiments.md, figure-1.
"""


def test_tables_the_papers_numbers_and_notes_are_written_as_text(surrokit):
    out = surrokit("figure-1", "--full")[1]
    assert Path("reproduced/figure-1.txt").read_text() == TEXT
    assert out.startswith(TEXT)


# --- the command ---


def test_one_figure_is_done_printed_and_written(surrokit, done):
    code, out, err = surrokit("figure-1", "--full")
    assert (code, err, done) == (0, "", ["figure-1/n/1", "figure-1/n/2"])
    assert out.startswith(Path("reproduced/figure-1.txt").read_text())
    written = ", ".join(f"reproduced/figure-1.{ending}" for ending in ("txt", "png", "svg"))
    assert f"written: {written}" in out
    endings = {path.suffix for path in Path("reproduced").iterdir()}
    assert endings == {".txt", ".jsonl", ".png", ".svg"}


def test_all_are_done_one_after_the_other_and_options_reach_them(surrokit, done):
    code, out, err = surrokit("all", "--full")
    every = ["figure-1/n/1", "figure-1/n/2", "figure-2/n/1", "figure-2/n/2"]
    assert (code, err, done, out.count("Some squares\n")) == (0, "", every, 2)
    surrokit("all", "--out", "elsewhere", "--seed", 5)
    assert done[4:] == ["figure-1/n/1", "figure-2/n/1"]
    assert rows("elsewhere") == [("n/1", 1.0)]
    surrokit("figure-2/n/3", "figure-1/n/2", "--set", "numbers=(2, 3)", "--set", "more=4")
    assert done[6:] == ["figure-1/n/2", "figure-2/n/3"]
    surrokit("figure-1", "--set", "numbers=7", "--set", "power=3")
    assert (done[8:], rows()[-1]) == (["figure-1/n/7"], ("n/7", 343.0))


def test_what_lacks_a_file_is_told_at_the_end_and_the_rest_goes_on(surrokit, done, monkeypatch):
    BEHAVIOUR["needs file"] = 1
    code, out, err = surrokit("figure-1", "--full")
    lacks = "this needs a file; give its folder with --data"
    assert (code, err, done) == (0, "", ["figure-1/n/2"])
    assert notes(out) == [f"Note: not done: n/1; {lacks}"]
    code, out, _ = surrokit("figure-1", "--out", "other")
    assert (code, f"not done: n/1; {lacks}" in out) == (1, True)
    assert not Path("other/figure-1.txt").exists()
    monkeypatch.setenv("SURROKIT_DATA", ".")
    code, out, _ = surrokit("all", "--full")
    assert (code, notes(out), done[1]) == (0, [], "figure-1/n/1")


def test_an_unexpected_error_is_shown_and_the_rest_goes_on(surrokit, done):
    BEHAVIOUR["breaks"] = 1
    code, out, err = surrokit("all", "--full")
    assert (code, done[:2]) == (1, ["figure-1/n/2", "figure-2/n/1"])
    assert "Error in figure-1/n/1: Traceback" in err
    assert "ZeroDivisionError: no such number" in err
    reason = "it ended in ZeroDivisionError: no such number"
    assert notes(out) == [f"Note: not done: n/1; {reason}"]


def test_an_interrupt_keeps_what_is_finished_and_says_how_to_go_on(surrokit, done):
    BEHAVIOUR["interrupted"] = 2
    code, out, _ = surrokit("all", "--full")
    assert (code, done) == (130, ["figure-1/n/1"])
    assert notes(out) == ["Note: still to be done: n/2; the same command goes on."]
    BEHAVIOUR.clear()
    code, out, _ = surrokit("all", "--full")
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
        (("all", "--set", "numbers=[3]"), "numbers must be like (1, 2), got ([3],)"),
        (("all", "--out", "a.json"), "[Errno 17] File exists: 'a.json'; give another folder with"),
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
    assert surrokit("figure-1", "--full")[2].splitlines() == ["figure-1/n/1", "figure-1/n/2"]
