"""Rows that are kept, continued and reported, and what can go wrong."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import numpy as np
import pytest

from surrokit.errors import ConfigurationError, TargetError
from surrokit_paper.harness import (
    Conditions,
    Experiment,
    Report,
    Row,
    choose_rows,
    fingerprint,
    reproduce,
)

DONE = []
"""Names of the rows that were really done, in order."""


@attrs.frozen(kw_only=True)
class Squares(Experiment):
    """A toy: the square of each number, with noise; a row may lack a file, break or interrupt."""

    name = "squares"
    title = "Squares of a few numbers"
    quick = {"numbers": (1,)}  # noqa: RUF012

    numbers: tuple[int, ...] = (1, 2, 3)
    needs_file: int = 0
    breaks_at: int = 0
    interrupted_at: int = 0

    @property
    def settings(self):
        return {"numbers": self.numbers}

    def rows(self):
        return [Row(name=f"square/{n}", settings={"number": n}) for n in self.numbers]

    def run(self, row, conditions):
        n = row.settings["number"]
        if n == self.interrupted_at:
            raise KeyboardInterrupt
        if n == self.breaks_at:
            raise ZeroDivisionError
        if n == self.needs_file:
            conditions.data_file("numbers.txt")
        DONE.append(row.name)
        noise = conditions.generator("noise", n).standard_normal()
        return {"square": np.float64(n**2), "noise": noise, "nothing": float("nan")}

    def report(self, finished):
        squares = [row.result["square"] for row in finished]
        lines = [
            {"number": r.name, "square": r.result["square"], "nothing": None} for r in finished
        ]
        return Report(
            tables={"": lines, "sums": [{"sum": sum(squares)}], "none": []},
            printed=[("largest square", "9", max(squares))],
            figures={"sum": np.sum(squares)},
            notes=("squares are never negative.",),
        )

    def draw(self, finished):
        from matplotlib.figure import Figure

        figure = Figure(figsize=(3.0, 2.0))
        figure.subplots().plot([row.result["square"] for row in finished])
        return figure


@pytest.fixture(autouse=True)
def done():
    DONE.clear()
    return DONE


# --- the conditions of rows ---


def test_a_generator_depends_on_seed_and_keys_only():
    first, again = Conditions(seed=4), Conditions(seed=4, data=Path("elsewhere"))
    draws = first.generator("data", 3).standard_normal(5)
    np.testing.assert_array_equal(draws, again.generator("data", 3).standard_normal(5))
    others = [first.generator("data", 4), first.generator("data", "3")]
    others.append(Conditions(seed=5).generator("data", 3))
    for other in others:
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


def test_every_row_is_done_in_order_and_once(tmp_path, done):
    first = reproduce(Squares(numbers=(1, 3)), tmp_path)
    assert [row.result["square"] for row in first.finished] == [1.0, 9.0]
    second = reproduce(Squares(), tmp_path)
    assert done == ["square/1", "square/3", "square/2"]
    assert [second.finished[0], second.finished[2]] == first.finished
    assert (second.left, second.not_run) == ([], {})
    assert second.notes == ["squares are never negative."]


def test_an_interrupted_command_goes_on(tmp_path, done):
    stopped = reproduce(Squares(interrupted_at=3), tmp_path)
    assert stopped.left == ["square/3"]
    assert stopped.interrupted
    assert stopped.notes[-1] == "still to be done: square/3; the same command goes on."
    assert not stopped.to_dict()["complete"]
    whole = reproduce(Squares(), tmp_path)
    assert done == ["square/1", "square/2", "square/3"]
    assert not whole.interrupted
    assert whole.to_dict()["rows"] == reproduce(Squares(), tmp_path).to_dict()["rows"]


def test_a_line_that_was_cut_short_is_done_again(tmp_path, done):
    reproduce(Squares(), tmp_path)
    kept = tmp_path / "squares.rows.jsonl"
    kept.write_text(kept.read_text()[:-40])
    outcome = reproduce(Squares(), tmp_path)
    assert done[3:] == ["square/3"]
    assert len(outcome.finished) == 3
    reproduce(Squares(), tmp_path)
    assert len(done) == 4


@pytest.mark.parametrize("line", ["", "[]", "3", '{"fingerprint": "x"}', "\x00\x01"])
def test_lines_that_are_no_rows_are_passed_over(tmp_path, line):
    (tmp_path / "squares.rows.jsonl").write_text(f"{line}\n")
    assert len(reproduce(Squares(), tmp_path).finished) == 3


def test_another_seed_has_rows_of_its_own(tmp_path, done):
    first, second = (reproduce(Squares(), tmp_path, seed=seed) for seed in (1, 2))
    assert len(done) == 6
    assert first.finished[0].result["noise"] != second.finished[0].result["noise"]
    assert reproduce(Squares(), tmp_path, seed=1).finished == first.finished
    assert len(done) == 6


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
    reproduce(Squares(), tmp_path)
    outcome = reproduce(Squares(), tmp_path, fresh=True, only=["square/2"])
    assert done[3:] == ["square/2"]
    assert len(outcome.finished) == 3
    assert len((tmp_path / "squares.rows.jsonl").read_text().splitlines()) == 3
    stopped = reproduce(Squares(interrupted_at=2), tmp_path, fresh=True)
    assert stopped.left == ["square/2", "square/3"]
    assert stopped.notes[-1].endswith("the same command without --fresh goes on.")


def test_only_some_rows(tmp_path, done):
    outcome = reproduce(Squares(), tmp_path, only=["square/3"])
    assert done == ["square/3"]
    assert outcome.left == ["square/1", "square/2"]
    assert (outcome.interrupted, outcome.n_done) == (False, 1)
    assert outcome.notes[-1] == ("not asked for: square/1, square/2; without --only all are done.")
    stopped = reproduce(Squares(interrupted_at=2), tmp_path, only=["square/1", "square/2"])
    assert stopped.interrupted
    reproduce(Squares(), tmp_path, only=["square"])
    assert done == ["square/3", "square/1", "square/2"]


def test_a_name_selects_whole_words():
    experiment = Squares(numbers=(1, 12))
    for name, n in (("square/1", 1), ("square", 2), ("square/", 2)):
        assert len(choose_rows(experiment, [name])) == n
    with pytest.raises(ConfigurationError, match="no row 'squ'"):
        choose_rows(experiment, ["squ"])


def test_an_unknown_row_is_an_error_that_lists_the_rows():
    message = (
        "^squares has no row 'sqare/3'; did you mean 'square/3'? .*square/1, square/2, square/3$"
    )
    with pytest.raises(ConfigurationError, match=message.replace("?", r"\?")):
        choose_rows(Squares(), ["sqare/3"])
    message = "rows are: 40 in all, such as square/0; they begin with square"
    with pytest.raises(ConfigurationError, match=message):
        choose_rows(Squares(numbers=tuple(range(40))), ["cube"])


def test_a_row_that_cannot_be_done_here_is_said_and_the_rest_goes_on(tmp_path, done):
    outcome = reproduce(Squares(needs_file=2), tmp_path)
    assert done == ["square/1", "square/3"]
    reason = "this needs the file numbers.txt; give its folder with --data"
    assert outcome.not_run == {"square/2": reason}
    assert outcome.notes[-1] == f"not done: square/2; {reason}"
    (tmp_path / "numbers.txt").write_text("2")
    whole = reproduce(Squares(needs_file=2), tmp_path, data=tmp_path)
    assert (whole.not_run, len(whole.finished)) == ({}, 3)


def test_many_rows_share_a_note(tmp_path):
    outcome = reproduce(Squares(numbers=tuple(range(1, 10))), tmp_path, only=["square/1"])
    assert outcome.notes[-1].startswith("not asked for: square/2, square/3 and 6 more;")


def test_a_result_that_is_no_plain_data_is_refused(tmp_path):
    class Odd(Squares):
        def run(self, row, conditions):
            return {"square": object()}

    outcome = reproduce(Odd(), tmp_path)
    assert "square/1['square'] is of type object, which" in outcome.not_run["square/1"]


def test_an_error_of_another_kind_is_not_hidden_and_rows_before_it_are_kept(tmp_path, done):
    with pytest.raises(ZeroDivisionError):
        reproduce(Squares(breaks_at=2), tmp_path)
    reproduce(Squares(), tmp_path)
    assert done == ["square/1", "square/2", "square/3"]


def test_a_folder_that_cannot_be_written_to_is_told_before_anything_is_done(tmp_path, done):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        reproduce(Squares(), tmp_path / "file" / "inside")
    (tmp_path / "squares.rows.jsonl").mkdir()
    with pytest.raises(OSError, match="squares"):
        reproduce(Squares(), tmp_path)
    assert done == []


# --- what is written ---


TEXT = """\
Squares of a few numbers

number    square  nothing
square/1       1        -
square/2       4        -

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
    outcome = reproduce(Squares(numbers=(1, 2)), tmp_path)
    outcome.write(tmp_path)
    assert (tmp_path / "squares.txt").read_text() == TEXT == outcome.text()


def test_a_wide_table_is_not_broken_and_long_notes_are(tmp_path):
    class Wide(Squares):
        def report(self, finished):
            line = {f"a rather long title {i}": 1.5 for i in range(12)}
            return Report(tables={"All of it": [line]}, notes=("many words " * 30,))

    lines = reproduce(Wide(numbers=(1,)), tmp_path).text().splitlines()
    (first,) = [line for line in lines if line.startswith("a rather")]
    assert first.endswith("a rather long title 11")
    assert not any(line != line.rstrip() for line in lines)
    notes = lines[lines.index(next(line for line in lines if line.startswith("Note: "))) :]
    assert all(len(line) <= 100 for line in notes)
    assert all(line.startswith("  ") for line in notes[1:])


def test_the_figures_are_written_as_json(tmp_path):
    outcome = reproduce(Squares(), tmp_path, seed=7)
    outcome.write(tmp_path)
    text = (tmp_path / "squares.json").read_text()
    figures = json.loads(text, parse_constant=pytest.fail)
    assert figures == json.loads(json.dumps(outcome.to_dict()))
    assert (figures["experiment"], figures["seed"]) == ("squares", 7)
    assert figures["complete"] is True
    assert figures["settings"] == {"numbers": [1, 2, 3]}
    assert set(figures["versions"]) == {"surrokit", "numpy", "scipy"}
    assert figures["versions"]["numpy"] == np.__version__
    line = {"number": "square/2", "square": 4.0, "nothing": None}
    assert figures["tables"][0]["lines"][1] == line
    assert figures["tables"][1] == {"title": "sums", "lines": [{"sum": 14.0}]}
    assert figures["printed"] == [{"what": "largest square", "printed": "9", "ours": 9.0}]
    assert figures["figures"] == {"sum": 14.0}
    assert figures["rows"][0]["result"]["nothing"] is None
    assert str(tmp_path) not in text


def test_pictures_are_the_same_whenever_what_they_show_is(tmp_path):
    outcome = reproduce(Squares(), tmp_path)
    written = []
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        png, svg = outcome.draw(folder)
        assert png.read_bytes().startswith(b"\x89PNG")
        written.append(svg.read_text())
    assert written[0] == written[1]
