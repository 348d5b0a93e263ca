"""Experiments: rows that are kept, continued and reported, and what can go wrong."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import attrs
import numpy as np
import pytest

from surrokit import compose
from surrokit.cli.main import main
from surrokit.errors import ConfigurationError, MissingDependencyError, TargetError
from surrokit.experiments.contract import Conditions, Finished, Printed, Report, Row, Table
from surrokit.experiments.kept import KeptRows, fingerprint
from surrokit.experiments.report import draw_picture, reproduction_text, write_text
from surrokit.experiments.work import choose_rows, reproduce
from surrokit.output.pictures import write_pictures
from surrokit.registry.catalogue import default_catalogue
from surrokit.registry.components import Component
from surrokit.testing import check_experiment
from surrokit.testing.building import with_components

DONE = []
"""Names of the rows that were really done, in order."""


@attrs.frozen(kw_only=True)
class Squares:
    """A toy: the square of each number, with noise; one row needs a file."""

    numbers: tuple[int, ...] = (1, 2, 3)
    needs_file: int = 0
    interrupted_at: int = 0
    name: str = "squares"
    title: str = "Squares of a few numbers"

    @property
    def settings(self):
        return {"numbers": self.numbers}

    def rows(self):
        return [Row(name=f"square/{n}", settings={"number": n}) for n in self.numbers]

    def run(self, row, conditions):
        n = row.settings["number"]
        if n == self.interrupted_at:
            raise KeyboardInterrupt
        if n == self.needs_file:
            conditions.data_file("numbers.txt")
        DONE.append(row.name)
        noise = conditions.generator("noise", n).standard_normal()
        return {"square": np.float64(n**2), "noise": noise, "nothing": float("nan")}

    def report(self, finished):
        squares = [row.result["square"] for row in finished]
        return Report(
            tables=(
                Table(
                    columns=("number", "square", "nothing"),
                    lines=tuple((row.name, row.result["square"], None) for row in finished),
                ),
                Table(title="sums", columns=("sum",), lines=((sum(squares),),)),
            ),
            printed=(Printed(what="largest square", printed="9", ours=max(squares)),),
            figures={"sum": np.sum(squares)},
            notes=("squares are never negative.",),
        )

    def draw(self, finished):
        from matplotlib.figure import Figure

        figure = Figure(figsize=(3.0, 2.0))
        figure.subplots().plot([row.result["square"] for row in finished])
        return figure


@attrs.frozen(kw_only=True)
class Pictureless(Squares):
    """The same without a picture."""

    def draw(self, finished):
        return None


def squares(*, quick=False, numbers=(1, 2, 3), needs_file=0, interrupted_at=0, table=False):
    given = numbers if isinstance(numbers, tuple) else (numbers,)
    return (Pictureless if table else Squares)(
        numbers=given[:1] if quick else given,
        needs_file=needs_file,
        interrupted_at=interrupted_at,
    )


@pytest.fixture(autouse=True)
def done():
    DONE.clear()
    return DONE


@pytest.fixture
def surrokit(monkeypatch, capsys, tmp_path):
    """Run the command line with the toy among the experiments; return code, output, errors."""
    toy = Component(kind="experiment", name="squares", factory=squares, summary="a toy")
    catalogue = with_components(default_catalogue(), [toy])
    monkeypatch.setattr(compose, "default_catalogue", lambda: catalogue)
    monkeypatch.delenv("SURROKIT_DATA", raising=False)
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["surrokit", "reproduce", *map(str, arguments)])
        with warnings.catch_warnings(action="default"), pytest.raises(SystemExit) as caught:
            main()
        out, err = capsys.readouterr()
        return caught.value.code, out, err

    return run


def read(path):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(Path(path).read_text(), parse_constant=refuse)


def assert_one_line(result, *parts):
    code, _, err = result
    assert code == 1
    assert "Traceback" not in err
    (line,) = [line for line in err.splitlines() if line.startswith("Error: ")]
    for part in parts:
        assert part in line


# --- the conditions of rows ---


def test_a_generator_depends_on_seed_and_keys_only():
    first, again = Conditions(seed=4), Conditions(seed=4, data=Path("elsewhere"))
    draws = first.generator("data", 3).standard_normal(5)
    np.testing.assert_array_equal(draws, again.generator("data", 3).standard_normal(5))
    others = [first.generator("data", 4), first.generator("data", "3")]
    others.append(Conditions(seed=5).generator("data", 3))
    for other in others:
        assert not np.any(draws == other.standard_normal(5))


def test_a_data_file_is_found(tmp_path):
    (tmp_path / "a.csv").write_text("1")
    assert Conditions(seed=1, data=tmp_path).data_file("a.csv") == tmp_path / "a.csv"


def test_without_a_folder_the_file_is_named():
    with pytest.raises(TargetError, match=r"needs the file a.csv; give its folder with --data"):
        Conditions(seed=1).data_file("a.csv")


def test_a_missing_file_names_the_folder(tmp_path):
    with pytest.raises(TargetError, match=r"file a.csv, which is not in .*; put it there, or give"):
        Conditions(seed=1, data=tmp_path).data_file("a.csv")


# --- running rows ---


def test_every_row_is_done_in_order(tmp_path, done):
    outcome = reproduce(Squares(), tmp_path)
    assert done == ["square/1", "square/2", "square/3"]
    assert [row.result["square"] for row in outcome.finished] == [1.0, 4.0, 9.0]
    assert (outcome.left, outcome.not_run) == ((), {})
    assert outcome.notes == ["squares are never negative."]


def test_the_figures_are_written_as_json(tmp_path):
    outcome = reproduce(Squares(), tmp_path, seed=7)
    figures = read(tmp_path / "squares.json")
    assert figures == json.loads(json.dumps(outcome.to_dict()))
    assert figures["experiment"] == "squares"
    assert figures["seed"] == 7
    assert figures["complete"] is True
    assert figures["settings"] == {"numbers": [1, 2, 3]}
    assert set(figures["versions"]) == {"surrokit", "numpy", "scipy"}
    assert figures["versions"]["numpy"] == np.__version__
    assert figures["tables"][0]["lines"][1] == {
        "number": "square/2",
        "square": 4.0,
        "nothing": None,
    }
    assert figures["tables"][1] == {"title": "sums", "lines": [{"sum": 14.0}]}
    assert figures["printed"] == [{"what": "largest square", "printed": "9", "ours": 9.0}]
    assert figures["figures"] == {"sum": 14.0}
    assert figures["rows"][0]["result"]["nothing"] is None
    assert str(tmp_path) not in (tmp_path / "squares.json").read_text()


def test_finished_rows_are_not_done_again(tmp_path, done):
    first = reproduce(Squares(numbers=(1, 3)), tmp_path)
    assert len(done) == 2
    second = reproduce(Squares(), tmp_path)
    assert done == ["square/1", "square/3", "square/2"]
    assert [second.finished[0], second.finished[2]] == list(first.finished)


def test_an_interrupted_command_goes_on(tmp_path, done):
    stopped = reproduce(Squares(interrupted_at=3), tmp_path)
    assert stopped.left == ("square/3",)
    assert stopped.interrupted
    assert stopped.notes[-1] == "still to be done: square/3; the same command goes on."
    assert read(tmp_path / "squares.json")["complete"] is False
    whole = reproduce(Squares(), tmp_path)
    assert done == ["square/1", "square/2", "square/3"]
    assert whole.left == ()
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
    first = reproduce(Squares(), tmp_path, seed=1)
    second = reproduce(Squares(), tmp_path, seed=2)
    assert len(done) == 6
    assert first.finished[0].result["noise"] != second.finished[0].result["noise"]
    assert reproduce(Squares(), tmp_path, seed=1).finished == first.finished
    assert len(done) == 6


def test_a_fingerprint_tells_whatever_may_change_a_result():
    row = Row(name="a/1", settings={"n": 1})
    versions = {"numpy": "2.0"}
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
    assert stopped.left == ("square/2", "square/3")
    assert stopped.notes[-1].endswith("the same command without --fresh goes on.")


def test_only_some_rows(tmp_path, done):
    outcome = reproduce(Squares(), tmp_path, only=["square/3"])
    assert done == ["square/3"]
    assert outcome.left == ("square/1", "square/2")
    assert not outcome.interrupted
    assert outcome.n_done == 1
    assert outcome.notes[-1] == ("not asked for: square/1, square/2; without --only all are done.")
    reproduce(Squares(), tmp_path, only=["square"])
    assert done == ["square/3", "square/1", "square/2"]


def test_an_unknown_row_is_an_error_that_lists_the_rows():
    with pytest.raises(ConfigurationError) as caught:
        choose_rows(Squares(), ["sqare/3"])
    message = str(caught.value)
    assert message.startswith("squares has no row 'sqare/3'; did you mean 'square/3'? its rows")
    assert message.endswith("square/1, square/2, square/3")


def test_many_rows_are_listed_by_their_first_words():
    message = "rows are: 40 in all, such as square/0; they begin with"
    with pytest.raises(ConfigurationError, match=message):
        choose_rows(Squares(numbers=tuple(range(40))), ["cube"])


def test_a_row_that_cannot_be_done_here_is_said_and_the_rest_goes_on(tmp_path, done):
    outcome = reproduce(Squares(needs_file=2), tmp_path)
    assert done == ["square/1", "square/3"]
    assert outcome.not_run == {
        "square/2": "this needs the file numbers.txt; give its folder with --data"
    }
    assert outcome.notes[-1] == (
        "not done: square/2; this needs the file numbers.txt; give its folder with --data"
    )
    assert outcome.to_dict()["complete"] is False
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "numbers.txt").write_text("2")
    whole = reproduce(Squares(needs_file=2), tmp_path, data=tmp_path / "data")
    assert whole.not_run == {}
    assert len(whole.finished) == 3


def test_rows_with_one_reason_share_a_note(tmp_path):
    outcome = reproduce(Squares(numbers=tuple(range(1, 10))), tmp_path, only=["square/1"])
    (note,) = outcome.notes[1:]
    assert note.startswith("not asked for: square/2, square/3 and 6 more;")


def test_if_no_row_can_be_done_the_reason_is_the_error(tmp_path):
    with pytest.raises(
        ConfigurationError, match=r"no row of squares could be done; square/2: this needs the file"
    ):
        reproduce(Squares(numbers=(2,), needs_file=2), tmp_path)


def test_an_interrupt_before_the_first_row_leaves_nothing_to_report(tmp_path):
    with pytest.raises(ConfigurationError, match="interrupted before any of its rows was finished"):
        reproduce(Squares(interrupted_at=1), tmp_path)


def test_a_result_that_is_no_plain_data_is_refused(tmp_path):
    class Odd(Squares):
        def run(self, row, conditions):
            return {"square": object()}

    with pytest.raises(ConfigurationError, match=r"square/1\['square'\] is of type object, which"):
        reproduce(Odd(), tmp_path)


def test_an_error_of_another_kind_is_not_hidden_and_rows_before_it_are_kept(tmp_path, done):
    class Broken(Squares):
        def run(self, row, conditions):
            if row.settings["number"] == 2:
                raise ZeroDivisionError
            return super().run(row, conditions)

    with pytest.raises(ZeroDivisionError):
        reproduce(Broken(), tmp_path)
    reproduce(Squares(), tmp_path)
    assert done == ["square/1", "square/2", "square/3"]


def test_a_folder_that_cannot_be_written_to_is_said_at_once(tmp_path, done):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match=r"cannot write to the folder .*give another with"):
        reproduce(Squares(), tmp_path / "file" / "inside")
    assert done == []


def test_a_file_of_rows_that_cannot_be_read_is_said(tmp_path):
    (tmp_path / "squares.rows.jsonl").mkdir()
    with pytest.raises(ConfigurationError, match=r"cannot read .*jsonl: .*; move it away, or give"):
        reproduce(Squares(), tmp_path)


def test_a_row_that_cannot_be_kept_is_said(tmp_path):
    kept = KeptRows(tmp_path / "absent" / "rows.jsonl")
    row = Finished(name="a", settings={}, result={}, seconds=0.0)
    with pytest.raises(ConfigurationError, match=r"cannot write .*; give another folder with"):
        kept.add("mark", row)


def test_an_interrupt_among_rows_that_were_asked_for(tmp_path):
    outcome = reproduce(Squares(interrupted_at=2), tmp_path, only=["square/1", "square/2"])
    assert outcome.interrupted
    assert outcome.notes[1:] == [
        "still to be done: square/2; the same command goes on.",
        "not asked for: square/3; without --only all are done.",
    ]


# --- the text ---


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


def test_the_tables_are_written_as_text(tmp_path):
    outcome = reproduce(Squares(numbers=(1, 2)), tmp_path)
    assert (tmp_path / "squares.txt").read_text() == TEXT == reproduction_text(outcome)


def test_the_text_has_no_terminal_codes_whatever_the_terminal(tmp_path, monkeypatch):
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": "20"}.items():
        monkeypatch.setenv(name, value)
    reproduce(Squares(numbers=(1, 2)), tmp_path)
    assert (tmp_path / "squares.txt").read_text() == TEXT


def test_a_wide_table_is_not_broken_and_long_notes_are(tmp_path):
    class Wide(Squares):
        def report(self, finished):
            columns = tuple(f"a rather long title {i}" for i in range(12))
            table = Table(title="All of it", columns=columns, lines=((1.5,) * 12,))
            return Report(tables=(table, table), notes=("many words " * 30,))

    reproduce(Wide(numbers=(1,)), tmp_path)
    lines = (tmp_path / "squares.txt").read_text().splitlines()
    assert lines.count("All of it:") == 2
    (first, _) = [line for line in lines if line.startswith("a rather")]
    assert first.endswith("a rather long title 11")
    assert not any(line != line.rstrip() for line in lines)
    notes = lines[lines.index(next(line for line in lines if line.startswith("Note: "))) :]
    assert all(len(line) <= 100 for line in notes)
    assert all(line.startswith("  ") for line in notes[1:])


def test_a_text_that_cannot_be_written_is_said(tmp_path):
    outcome = reproduce(Squares(), tmp_path)
    with pytest.raises(ConfigurationError, match=r"cannot write .*txt: .*; give another folder"):
        write_text(tmp_path / "absent" / "squares.txt", outcome)


# --- pictures ---


def test_pictures_are_the_same_whenever_what_they_show_is(tmp_path):
    row = Finished(name="a", settings={}, result={"square": 2.0}, seconds=0.0)
    for stem in ("one", "two"):
        png, svg = write_pictures(Squares().draw([row]), tmp_path / stem)
        assert png.read_bytes().startswith(b"\x89PNG")
        assert svg.read_text().rstrip().endswith("</svg>")
    assert (tmp_path / "one.svg").read_text() == (tmp_path / "two.svg").read_text()


def test_a_picture_that_cannot_be_written_is_said(tmp_path):
    row = Finished(name="a", settings={}, result={"square": 2.0}, seconds=0.0)
    with pytest.raises(ConfigurationError, match=r"cannot write .*png: .*; give another folder"):
        write_pictures(Squares().draw([row]), tmp_path / "absent" / "stem")


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "matplotlib.figure", raising=False)
    row = Finished(name="a", settings={}, result={"square": 2.0}, seconds=0.0)
    with pytest.raises(MissingDependencyError, match=r"pip install 'surrokit\[figures\]'"):
        draw_picture(Squares(), [row])


def test_another_missing_module_is_not_taken_for_matplotlib():
    class Broken(Squares):
        def draw(self, finished):
            import absent_module  # noqa: F401

    with pytest.raises(ModuleNotFoundError, match="absent_module"):
        draw_picture(Broken(), [])


# --- the command ---


def test_the_command_prints_and_writes(surrokit, tmp_path):
    code, out, err = surrokit("squares", "--out", "made")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "Squares of a few numbers"
    assert "square/3       9        -" in out
    assert "sums:" in lines
    assert "largest square             9     9" in out
    assert "Note: squares are never negative." in lines
    made = tmp_path / "made"
    assert {path.name for path in made.iterdir()} == {
        "squares.json",
        "squares.png",
        "squares.rows.jsonl",
        "squares.svg",
        "squares.txt",
    }
    assert all(path.stat().st_size > 100 for path in made.iterdir())
    assert read(made / "squares.json")["seed"] == 1


def test_the_text_is_what_is_printed(surrokit):
    _, out, _ = surrokit("squares")
    text = Path("reproduced/squares.txt").read_text()
    shown = [line.rstrip() for line in out.splitlines() if line.strip()]
    assert [line for line in text.splitlines() if line] == shown[:-2]
    assert shown[-2].startswith(
        "figures written to reproduced/squares.json and reproduced/squares.txt"
    )


def test_an_interrupt_before_the_first_row_says_so_to_the_shell_too(surrokit):
    code, _, err = surrokit("squares", "--set", "interrupted_at=1")
    assert code == 130
    assert "interrupted before any of its rows was finished" in err


def test_an_interrupted_command_says_so_to_the_shell_too(surrokit):
    code, out, _ = surrokit("squares", "--set", "interrupted_at=3")
    assert code == 130
    assert "Note: still to be done: square/3; the same command goes on." in out
    assert read("reproduced/squares.json")["left"] == ["square/3"]
    assert surrokit("squares")[0] == 0


def test_quick_and_settings_reach_the_experiment(surrokit, tmp_path, done):
    surrokit("squares", "--quick")
    assert done == ["square/1"]
    surrokit("squares", "--set", "numbers=(4, 5)", "--set", "quick=False", "--seed", "3")
    assert done[1:] == ["square/4", "square/5"]
    assert read("reproduced/squares.json")["seed"] == 3


def test_json_is_written_elsewhere_too(surrokit, tmp_path):
    surrokit("squares", "--json", tmp_path / "also.json")
    assert read(tmp_path / "also.json") == read("reproduced/squares.json")


def test_the_data_folder_comes_from_the_environment_too(surrokit, tmp_path, monkeypatch):
    (tmp_path / "numbers.txt").write_text("2")
    code, out, _ = surrokit("squares", "--set", "needs_file=2")
    assert code == 0
    assert "Note: not done: square/2; this needs the file numbers.txt; give its folder" in out
    monkeypatch.setenv("SURROKIT_DATA", str(tmp_path))
    assert "not done" not in surrokit("squares", "--set", "needs_file=2")[1]


def test_only_and_fresh(surrokit, done):
    surrokit("squares", "--only", "square/1", "--only", "square/3")
    surrokit("squares", "--only", "square/1", "--fresh")
    assert done == ["square/1", "square/3", "square/1"]


def test_without_matplotlib_the_figures_are_written_all_the_same(surrokit, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "matplotlib.figure", raising=False)
    result = surrokit("squares")
    assert_one_line(result, "Matplotlib is needed to draw pictures", "surrokit[figures]")
    assert "square/3" in result[1]
    assert read("reproduced/squares.json")["complete"] is True


def test_a_table_has_no_picture_and_needs_no_matplotlib(surrokit, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, out, _ = surrokit("squares", "--set", "table=True")
    assert code == 0
    assert "picture" not in out
    assert not Path("reproduced/squares.svg").exists()


def test_errors_end_in_one_line(surrokit, tmp_path):
    (tmp_path / "file").write_text("")
    assert_one_line(surrokit("sqares"), "no experiment is named 'sqares'; did you mean 'squares'?")
    assert_one_line(surrokit("hmc"), "'hmc' is the name of a sampler")
    assert_one_line(surrokit("squares", "--only", "x"), "squares has no row 'x'; its rows are: ")
    assert_one_line(surrokit("squares", "--out", "file"), "cannot write to the folder file")
    assert_one_line(surrokit("squares", "--set", "number=3"), "no setting 'number'", "'numbers'")
    for item in ("numbers", "a.b=3", "=3"):
        assert_one_line(surrokit("squares", "--set", item), "--set takes setting=value, got")
    assert_one_line(surrokit("squares", "--json", "absent/x.json"), "there is no folder")
    assert_one_line(surrokit("squares", "--data", "absent"), "there is no folder absent; give the")
    assert_one_line(
        surrokit("squares", "--seed", "-1"), "seed must be a whole number of at least 0"
    )


# --- the conformance suite ---


def outcomes(experiment):
    return {result.name.partition("[")[0]: result for result in check_experiment(experiment)}


def test_the_toy_is_sound():
    assert {result.outcome for result in outcomes(Squares).values()} == {"passed"}


class TwiceTheSameRow(Squares):
    def rows(self):
        return [Row(name="a", settings={})] * 2


class OddNames(Squares):
    def rows(self):
        return [Row(name="a row", settings={})]


class NoRows(Squares):
    def rows(self):
        return []


class OddSettings(Squares):
    settings = property(lambda self: {"function": len})


class OddResult(Squares):
    def run(self, row, conditions):
        return {"square": {1, 2}}


class RaggedReport(Squares):
    def report(self, finished):
        return Report(tables=(Table(columns=("a", "b"), lines=((1,),)),))


class NoTable(Squares):
    def report(self, finished):
        return Report(tables=())


class NoPicture(Squares):
    def draw(self, finished):
        return "a picture"


@pytest.mark.parametrize(
    ("broken", "check", "message"),
    [
        (TwiceTheSameRow, "check_rows", "two rows are named 'a'"),
        (OddNames, "check_rows", "must be words joined by slashes, got 'a row'"),
        (NoRows, "check_rows", "at least one row"),
        (OddSettings, "check_settings_plain", "JSON cannot hold"),
        (lambda: Squares(title="two\nlines"), "check_words", "title must be text in one line"),
        (OddResult, "check_first_row", "is of type set, which JSON cannot hold"),
        (RaggedReport, "check_first_row", "1 cells under 2 titles"),
        (NoTable, "check_first_row", "at least one table"),
        (NoPicture, "check_first_row", "draw must return a Matplotlib figure or None, got str"),
    ],
)
def test_a_broken_experiment_is_caught(broken, check, message):
    result = outcomes(broken)[check]
    assert result.outcome == "failed"
    assert message in result.message


def test_a_row_that_cannot_be_done_here_fails_no_check():
    results = outcomes(lambda: Squares(needs_file=1))
    assert {result.outcome for result in results.values()} == {"passed"}
