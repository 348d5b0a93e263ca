"""The bar over rows: what it shows, where, and that it makes way for what is printed."""

from __future__ import annotations

import re

import pytest

from surrokit.experiments.bar import row_bar


def shown(stream):
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", stream.getvalue())


def test_it_shows_experiment_row_and_how_many_are_dealt_with(terminal):
    stream = terminal()
    with row_bar(7, 2, enabled=True) as bar:
        bar.experiment("figure-3 (2 of 9)")
        bar.begin("gp/300/1")
        (task,) = bar._progress.tasks
        assert (task.completed, task.total) == (2, 7)
        bar.end()
        assert task.completed == 3
        bar.begin("gp/300/2")
    last = shown(stream).strip().splitlines()[-1]
    assert last.startswith("figure-3 (2 of 9) gp/300/2")
    assert "3 of 7 rows" in last


def test_what_is_printed_in_a_pause_stands_alone(terminal, capsys):
    stream = terminal()
    with row_bar(2, enabled=True) as bar:
        bar.begin("a")
        with bar.pause():
            assert not bar._progress.live.is_started
            print("a table")
        assert bar._progress.live.is_started
        bar.end()
    assert capsys.readouterr().out == "a table\n"
    assert "a table" not in stream.getvalue()


def test_a_bar_comes_back_after_an_error_in_a_pause(terminal):
    terminal()
    with row_bar(2, enabled=True) as bar:
        with pytest.raises(ZeroDivisionError), bar.pause():
            raise ZeroDivisionError
        assert bar._progress.live.is_started


@pytest.mark.parametrize(
    ("total", "finished", "enabled"), [(2, 0, False), (2, 2, True), (0, 0, True)]
)
def test_there_is_none_where_it_is_not_wanted_or_nothing_is_to_be_done(
    terminal, total, finished, enabled
):
    stream = terminal()
    with row_bar(total, finished, enabled=enabled) as bar:
        bar.experiment("figure-3")
        bar.begin("a")
        with bar.pause():
            pass
        bar.end()
    assert stream.getvalue() == ""


def test_a_file_gets_none(capfd):
    with row_bar(2, enabled=True) as bar:
        bar.begin("a")
        bar.end()
    assert capfd.readouterr() == ("", "")
