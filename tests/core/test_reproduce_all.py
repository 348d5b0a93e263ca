"""``surrokit reproduce all``: every experiment in turn, and what happens where one cannot be."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import attrs
import pytest

from surrokit import compose
from surrokit.cli.main import main
from surrokit.errors import ConfigurationError, MissingDependencyError
from surrokit.experiments.contract import Conditions, Report, Row, Table
from surrokit.experiments.series import choose_experiments, make_experiments, reproduce_all
from surrokit.registry import catalogue as catalogue_module
from surrokit.registry.catalogue import Catalogue, default_catalogue
from surrokit.registry.components import Component
from surrokit.testing.building import with_components

DONE: list[str] = []
"""Rows that were really done, in order, each after its experiment."""


@attrs.frozen(kw_only=True)
class Numbers:
    """A toy: numbers, some of which cannot be had."""

    name: str
    numbers: tuple[int, ...] = (1, 2)
    needs_file: int = 0
    breaks_at: int = 0
    interrupted_at: int = 0
    report_breaks: bool = False
    has_picture: bool = False
    title: str = "Some numbers"

    @property
    def settings(self):
        return {"numbers": self.numbers}

    def rows(self):
        return [Row(name=f"n/{n}", settings={"number": n}) for n in self.numbers]

    def run(self, row, conditions):
        n = row.settings["number"]
        if n == self.interrupted_at:
            raise KeyboardInterrupt
        if n == self.breaks_at:
            raise ZeroDivisionError("no such number")
        if n == self.needs_file:
            conditions.data_file("numbers.txt")
        DONE.append(f"{self.name}/{row.name}")
        return {"number": n}

    def report(self, finished):
        if self.report_breaks:
            raise KeyError("number")
        lines = tuple((row.name, row.result["number"]) for row in finished)
        return Report(tables=(Table(columns=("row", "number"), lines=lines),))

    def draw(self, finished):
        if not self.has_picture:
            return None
        from matplotlib.figure import Figure

        return Figure(figsize=(1.0, 1.0))


def toy(name, *settings, **fixed):
    """Return a component of the toy whose factory has quick, numbers and these settings."""

    def plain(*, quick=False, numbers=(1, 2)):
        return Numbers(name=name, numbers=numbers[:1] if quick else numbers, **fixed)

    def with_more(*, quick=False, numbers=(1, 2), more=3):
        if more != 3 and not isinstance(more, int):
            raise ConfigurationError(f"more must be a whole number, got {more!r}")
        return Numbers(name=name, numbers=(*numbers, more)[: 1 if quick else None], **fixed)

    factory = with_more if "more" in settings else plain
    return Component(kind="experiment", name=name, factory=factory, summary="a toy")


@pytest.fixture(autouse=True)
def done():
    DONE.clear()
    return DONE


def catalogue_of(*toys) -> Catalogue:
    """Return a catalogue with these experiments and no others."""
    everything = default_catalogue()
    without = {key: entry for key, entry in everything.entries.items() if key[0] != "experiment"}
    return with_components(Catalogue(entries=without), toys)


@pytest.fixture
def surrokit(monkeypatch, capsys, tmp_path):
    """Run ``surrokit reproduce`` with toys alone; return code, output, errors."""
    monkeypatch.delenv("SURROKIT_DATA", raising=False)
    monkeypatch.chdir(tmp_path)

    def run(toys, *arguments):
        catalogue = catalogue_of(*toys)
        monkeypatch.setattr(catalogue_module, "default_catalogue", lambda: catalogue)
        monkeypatch.setattr(compose, "default_catalogue", lambda: catalogue)
        monkeypatch.setattr(sys, "argv", ["surrokit", "reproduce", *map(str, arguments)])
        with warnings.catch_warnings(action="default"), pytest.raises(SystemExit) as caught:
            main()
        out, err = capsys.readouterr()
        return caught.value.code, out, err

    return run


def notes(out: str) -> list[str]:
    """Return the notes after the last table."""
    return [line for line in out.rpartition("experiment ")[2].splitlines() if "Note" in line]


# --- which experiments, and with which settings ---


def test_experiments_come_in_the_order_of_their_numbers():
    names = ["table-1", "figure-10", "figure-2", "my-own", "figure-1"]
    assert list(choose_experiments(names, [])) == [
        *("figure-1", "figure-2", "figure-10", "my-own", "table-1")
    ]


def test_only_takes_experiments_and_rows_of_them():
    names = ["figure-1", "figure-7", "table-1"]
    only = ["table-1/bank", "figure-7", "figure-7/simulated", "table-1/pde/hmc"]
    assert choose_experiments(names, only) == {"figure-7": [], "table-1": ["bank", "pde/hmc"]}


def test_an_experiment_that_is_not_there_is_an_error_that_lists_them():
    with pytest.raises(ConfigurationError) as caught:
        choose_experiments(["figure-7", "table-1"], ["figur-7/simulated"])
    message = str(caught.value)
    assert message.startswith("there is no experiment 'figur-7'; did you mean 'figure-7'? --only")
    assert message.endswith("figure-7, table-1, or rows of one such as figure-7/ROW")


def test_a_setting_goes_to_the_experiments_that_have_it():
    catalogue = catalogue_of(toy("figure-1"), toy("figure-2", "more"))
    made, not_made = make_experiments(catalogue, ["figure-1", "figure-2"], {"more": 7})
    assert not_made == {}
    assert [row.name for row in made["figure-1"].rows()] == ["n/1", "n/2"]
    assert [row.name for row in made["figure-2"].rows()] == ["n/1", "n/2", "n/7"]


def test_a_setting_that_none_has_is_an_error_that_lists_the_settings():
    catalogue = catalogue_of(toy("figure-1"), toy("figure-2", "more"))
    with pytest.raises(ConfigurationError) as caught:
        make_experiments(catalogue, ["figure-1", "figure-2"], {"mor": 7})
    assert str(caught.value) == (
        "none of the experiments figure-1, figure-2 has a setting 'mor'; did you mean 'more'? "
        "their settings are: more, numbers, quick"
    )
    with pytest.raises(ConfigurationError, match="none of the experiments figure-1 has a setting"):
        make_experiments(catalogue, ["figure-1"], {"more": 7})


def test_a_value_that_an_experiment_refuses_names_it():
    catalogue = catalogue_of(toy("figure-1"), toy("figure-2", "more"))
    with pytest.raises(ConfigurationError, match=r"figure-2: more must be a whole number, got 'a'"):
        make_experiments(catalogue, ["figure-1", "figure-2"], {"more": "a"})


def test_an_experiment_that_cannot_be_made_here_is_left_out():
    def lacks():
        raise MissingDependencyError("numberlib is needed; run python -m pip install numberlib")

    absent = Component(kind="experiment", name="absent", factory=lacks, summary="a toy")
    catalogue = catalogue_of(toy("figure-1"), absent)
    made, not_made = make_experiments(catalogue, ["absent", "figure-1"], {})
    assert list(made) == ["figure-1"]
    assert not_made == {"absent": "numberlib is needed; run python -m pip install numberlib"}


def test_an_experiment_without_a_small_form_is_left_out_of_the_small_forms():
    slow = Component(kind="experiment", name="slow", factory=lambda: None, summary="a toy")
    made, not_made = make_experiments(catalogue_of(slow), ["slow"], {}, quick=True)
    assert made == {}
    assert "'slow' has no setting 'quick'" in not_made["slow"]


def test_an_experiment_whose_package_is_absent_is_left_out():
    def absent(*, numbers=3):
        import absent_package  # noqa: F401

    lacks = Component(kind="experiment", name="lacks", factory=absent, summary="a toy")
    made, not_made = make_experiments(catalogue_of(lacks), ["lacks"], {"numbers": 4})
    assert made == {}
    assert not_made == {"lacks": "No module named 'absent_package'"}


def test_what_cannot_be_made_is_told_with_the_rest(surrokit, done):
    def lacks(*, quick=False):
        raise MissingDependencyError("numberlib is needed")

    absent = Component(kind="experiment", name="absent", factory=lacks, summary="a toy")
    code, out, _ = surrokit([absent, toy("figure-1")], "all")
    assert (code, done) == (0, ["figure-1/n/1", "figure-1/n/2"])
    assert notes(out) == ["Note: not done: absent; numberlib is needed"]
    code, out, _ = surrokit([absent], "all")
    assert code == 1


# --- the command ---


def test_every_experiment_is_done_printed_and_written(surrokit, done):
    toys = [toy("table-1"), toy("figure-2", has_picture=True), toy("figure-10")]
    code, out, err = surrokit(toys, "all")
    assert (code, err) == (0, "")
    assert done == [
        f"{name}/n/{n}" for name in ("figure-2", "figure-10", "table-1") for n in (1, 2)
    ]
    for name in ("figure-2", "figure-10", "table-1"):
        for ending in ("json", "txt", "rows.jsonl"):
            assert Path(f"reproduced/{name}.{ending}").stat().st_size > 10
        assert f"figures written to reproduced/{name}.json and reproduced/{name}.txt" in out
    assert {path.stem for path in Path("reproduced").glob("*.svg")} == {"figure-2"}
    assert {path.stem for path in Path("reproduced").glob("*.png")} == {"figure-2"}
    assert out.count("Some numbers\n") == 3
    last = [line.split() for line in out.splitlines()[-4:]]
    assert last == [
        *(["experiment", "rows", "done", "of", "minutes"], ["figure-2", "2", "2", "0"]),
        *(["figure-10", "2", "2", "0"], ["table-1", "2", "2", "0"]),
    ]


def test_each_is_printed_and_written_before_the_next_begins(tmp_path):
    events = []

    def tell(experiment, outcome):
        events.append((experiment.name, outcome.n_done, len(DONE)))

    made = {name: Numbers(name=name) for name in ("a", "b")}
    reproduce_all(made, tmp_path, tell, conditions=Conditions(seed=1), progress=False)
    assert events == [("a", 2, 2), ("b", 2, 4)]


def test_quick_only_seed_and_settings_reach_them(surrokit, done):
    toys = [toy("figure-1"), toy("figure-2", "more")]
    surrokit(toys, "all", "--quick")
    assert done == ["figure-1/n/1", "figure-2/n/1"]
    surrokit(toys, "all", "--only", "figure-2/n/4", "--set", "more=4", "--seed", "5")
    assert done[2:] == ["figure-2/n/4"]
    assert json.loads(Path("reproduced/figure-2.json").read_text())["seed"] == 5
    assert json.loads(Path("reproduced/figure-1.json").read_text())["seed"] == 1


def test_what_lacks_a_file_is_told_at_the_end_and_the_rest_goes_on(surrokit, done, tmp_path):
    toys = [toy("figure-1", needs_file=1), toy("figure-2", needs_file=2), toy("figure-3")]
    code, out, _ = surrokit(toys, "all")
    assert code == 0
    assert done == ["figure-1/n/2", "figure-2/n/1", "figure-3/n/1", "figure-3/n/2"]
    assert notes(out) == [
        "Note: not done: figure-1/n/1, figure-2/n/2; this needs the file numbers.txt; give its "
        "folder with --data"
    ]
    (tmp_path / "numbers.txt").write_text("1 2")
    code, out, _ = surrokit(toys, "all", "--data", tmp_path)
    assert (code, notes(out)) == (0, [])
    assert done[4:] == ["figure-1/n/1", "figure-2/n/2"]


def test_an_experiment_of_which_no_row_can_be_done_does_not_stop_the_others(surrokit, done):
    toys = [toy("figure-1", needs_file=1), toy("figure-2")]
    code, out, _ = surrokit(toys, "all", "--only", "figure-1/n/1", "--only", "figure-2")
    assert code == 0
    assert done == ["figure-2/n/1", "figure-2/n/2"]
    assert not Path("reproduced/figure-1.json").exists()
    assert "not done: figure-1/n/1; this needs the file" in notes(out)[0]
    assert [line.split() for line in out.splitlines() if line.startswith("figure-1")] == [
        ["figure-1", "0", "1", "0"]
    ]


def test_if_nothing_can_be_done_the_status_is_1(surrokit):
    code, out, err = surrokit([toy("figure-1", needs_file=1)], "all", "--only", "figure-1/n/1")
    assert code == 1
    assert "this needs the file numbers.txt" in notes(out)[0]
    assert err == ""


def test_an_unexpected_error_is_shown_and_the_rest_goes_on(surrokit, done):
    code, out, err = surrokit([toy("figure-1", breaks_at=1), toy("figure-2")], "all")
    assert code == 1
    assert done == ["figure-1/n/2", "figure-2/n/1", "figure-2/n/2"]
    assert "Error in figure-1/n/1, which is left out:" in err
    assert "Traceback" in err
    assert "in run" in err
    assert notes(out) == [
        "Note: not done: figure-1/n/1; it ended in ZeroDivisionError: no such number"
    ]
    assert json.loads(Path("reproduced/figure-1.json").read_text())["not_run"] == {
        "n/1": "it ended in ZeroDivisionError: no such number"
    }
    code, _, _ = surrokit([toy("figure-1"), toy("figure-2")], "all")
    assert (code, done[3:]) == (0, ["figure-1/n/1"])


def test_a_report_that_breaks_keeps_the_rows_and_the_others(surrokit, done):
    code, out, err = surrokit([toy("figure-1", report_breaks=True), toy("figure-2")], "all")
    assert code == 1
    assert "Error in figure-1, which is left out:" in err
    assert notes(out) == ["Note: not done: figure-1; it ended in KeyError: 'number'"]
    assert len(done) == 4
    assert surrokit([toy("figure-1"), toy("figure-2")], "all")[0] == 0
    assert len(done) == 4


def test_a_picture_that_cannot_be_written_does_not_stop_the_others(surrokit):
    Path("reproduced/figure-1.png").mkdir(parents=True)
    toys = [toy("figure-1", has_picture=True), toy("figure-2", has_picture=True)]
    code, out, err = surrokit(toys, "all")
    assert code == 1
    assert "Error in figure-1: cannot write reproduced/figure-1.png" in err
    assert "Traceback" not in err
    assert Path("reproduced/figure-2.svg").exists()
    assert "Note: not done: figure-1; cannot write" in notes(out)[0]


def test_an_interrupt_keeps_what_is_finished_and_says_how_to_go_on(surrokit, done):
    toys = [toy("figure-1"), toy("figure-2", interrupted_at=2), toy("figure-3")]
    code, out, _ = surrokit(toys, "all")
    assert code == 130
    assert done == ["figure-1/n/1", "figure-1/n/2", "figure-2/n/1"]
    assert json.loads(Path("reproduced/figure-2.json").read_text())["left"] == ["n/2"]
    assert notes(out) == ["Note: still to be done: figure-2, figure-3; the same command goes on."]
    code, out, _ = surrokit([toy("figure-1"), toy("figure-2"), toy("figure-3")], "all")
    assert (code, notes(out)) == (0, [])
    assert done[3:] == ["figure-2/n/2", "figure-3/n/1", "figure-3/n/2"]


def test_an_interrupt_with_fresh_is_not_done_again_from_the_start(surrokit):
    _, out, _ = surrokit([toy("figure-1", interrupted_at=2)], "all", "--fresh")
    assert notes(out)[-1].endswith("figure-1; the same command without --fresh goes on.")


def test_an_interrupt_at_the_very_first_row(surrokit, done):
    code, out, _ = surrokit([toy("figure-1", interrupted_at=1), toy("figure-2")], "all")
    assert (code, done) == (130, [])
    assert notes(out) == ["Note: still to be done: figure-1, figure-2; the same command goes on."]


def test_an_interrupt_while_a_picture_is_drawn(tmp_path):
    def tell(experiment, outcome):
        if experiment.name == "b":
            raise KeyboardInterrupt

    made = {name: Numbers(name=name) for name in ("a", "b", "c")}
    outcome = reproduce_all(made, tmp_path, tell, conditions=Conditions(seed=1), progress=False)
    assert outcome.waiting == ("b", "c")
    assert len(DONE) == 4


def test_fresh_does_all_again(surrokit, done):
    for arguments in (("all",), ("all", "--fresh")):
        surrokit([toy("figure-1"), toy("figure-2")], *arguments)
    assert len(done) == 8


def test_without_matplotlib_tables_are_made_and_it_is_said_once(surrokit, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "matplotlib.figure", raising=False)
    toys = [toy("figure-1", has_picture=True), toy("figure-2", has_picture=True)]
    code, out, _ = surrokit(toys, "all")
    assert code == 0
    (note,) = notes(out)
    assert note.startswith("Note: no pictures: Matplotlib is needed to draw pictures")
    assert Path("reproduced/figure-2.txt").exists()


def test_json_of_all(surrokit):
    surrokit([toy("figure-1", needs_file=1), toy("figure-2")], "all", "--json", "all.json")
    figures = json.loads(Path("all.json").read_text())
    assert set(figures["experiments"]) == {"figure-1", "figure-2"}
    assert figures["experiments"]["figure-2"] == json.loads(
        Path("reproduced/figure-2.json").read_text()
    )
    assert figures["notes"][0].startswith("not done: figure-1/n/1; this needs the file")
    assert (figures["failures"], figures["not_made"], figures["waiting"]) == ({}, {}, [])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--only", "figure-9"), "there is no experiment 'figure-9'; did you mean 'figure-2'?"),
        (("--only", "figure-1/m"), "figure-1 has no row 'm'; its rows are: n/1, n/2"),
        (("--set", "repeats=3"), "none of the experiments figure-1, figure-2 has a setting"),
        (("--set", "a.b=3"), "--set takes setting=value, got"),
        (("--data", "absent"), "there is no folder absent; give the one that holds your data"),
        (("--json", "absent/x.json"), "cannot write absent/x.json: there is no folder"),
        (("--seed", "-1"), "seed must be a whole number of at least 0, got -1"),
    ],
)
def test_mistakes_end_in_one_line_before_anything_is_done(surrokit, done, arguments, message):
    code, out, err = surrokit([toy("figure-1"), toy("figure-2")], "all", *arguments)
    assert (code, out, done) == (1, "", [])
    (line,) = err.splitlines()
    assert line.startswith(f"Error: {message}")


def test_no_experiment_can_be_named_all():
    with pytest.raises(ConfigurationError, match=r"cannot be named 'all', which stands for every"):
        toy("all")
    Component(kind="metric", name="all", factory=dict, summary="a metric may")


def test_the_experiments_that_are_installed_can_be_made_in_both_forms():
    catalogue = default_catalogue()
    names = choose_experiments(catalogue.names("experiment"), [])
    for quick in (False, True):
        made, not_made = make_experiments(catalogue, names, {}, quick=quick)
        assert list(made) == list(names)
        assert not_made == {}
        for name, experiment in made.items():
            assert experiment.name == name
            assert experiment.rows()
