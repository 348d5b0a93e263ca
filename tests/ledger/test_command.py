"""``surrokit sample --path``, ``surrokit resume`` and ``surrokit show``."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner
from ledgers import cut

import surrokit as sk
from surrokit.cli import show
from surrokit.cli.main import cli
from surrokit.errors import LedgerError

TARGET = """
import surrokit as sk
bell = sk.potential(value_and_gradient=lambda q: (0.5 * q @ q, q), dim=2)
"""

SMALL = ["--sampler", "hmc", "--warmup", "40", "--draws", "30", "--chains", "2", "--seed", "1"]


def call(*arguments, fails=False):
    result = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    assert (result.exception is not None) == fails, result.output
    return result


def has_drawn(path):
    try:
        return path.exists() and len(sk.open_run(path).warmup) > 0
    except LedgerError:  # nothing is written yet
        return False


@pytest.fixture
def ran(tmp_path):
    """A run of the command line: its file, and its target."""
    (tmp_path / "bell.py").write_text(TARGET)
    target = f"{tmp_path / 'bell.py'}:bell"
    call("sample", target, *SMALL, "--path", tmp_path / "a")
    return tmp_path / "a", target


def test_a_run_is_extended(ran, tmp_path):
    path, target = ran
    result = call("resume", path, target, "--draws", 50, "--json", tmp_path / "figures.json")
    assert "exact calls" in result.output
    assert json.loads((tmp_path / "figures.json").read_text())["draws"] == 50
    assert sk.open_run(path).draws.shape == (2, 50, 2)


def test_a_termination_shows_what_there_is(tmp_path):
    """As batch systems send it before they kill."""
    slow = "import time\n" + TARGET.replace("(0.5", "(time.sleep(0.005) or 0.5")
    (tmp_path / "slow.py").write_text(slow)
    arguments = ["sample", f"{tmp_path / 'slow.py'}:bell", *SMALL, "--path", str(tmp_path / "a")]
    command = [sys.executable, "-c", "from surrokit.cli.main import main; main()", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        while not has_drawn(tmp_path / "a"):
            time.sleep(0.05)
            assert process.poll() is None
        process.terminate()
        printed, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "exact calls" in printed
    assert sk.open_run(tmp_path / "a").stopped == "interrupted"


def test_limits_are_given_and_removed(ran):
    path, target = ran
    call("resume", path, target, "--draws", 400, "--max-calls", 900)
    assert sk.open_run(path).stopped == "max_calls"
    call("resume", path, target, "--max-calls", "none", "--max-seconds", "100.5")
    assert sk.open_run(path).draws.shape[1] == 400
    result = call("resume", path, target, "--max-calls", "many", fails=True)
    assert "'many' is neither a number nor none" in result.output


def test_another_run_begins_warm(ran, tmp_path):
    path, target = ran
    result = call("sample", target, *SMALL, "--warm-start", path)
    told = next(line for line in result.output.splitlines() if line.startswith("exact calls "))
    assert told.split()[-1] == "none"


def test_a_run_is_shown(ran):
    path, _ = ran
    result = call("show", path)
    assert "ended" in result.output
    assert "q[1]" in result.output


def test_a_run_is_followed_until_it_ends(ran, tmp_path, monkeypatch):
    path, target = ran
    held = cut(path, tmp_path / "b", 30)
    waits = []

    def wait(seconds):
        waits.append(seconds)
        sk.resume(held, _target(target), progress=False)

    monkeypatch.setattr(show.time, "sleep", wait)
    monkeypatch.setattr(show, "SECONDS", 0.5)
    forget_account(held)
    result = call("show", held, "--follow")
    assert waits == [0.5]
    assert "no iteration" in result.output
    assert "ended" in result.output


def test_a_damaged_file_is_salvaged(ran, tmp_path):
    path, target = ran
    data = path.read_bytes()
    (tmp_path / "b").write_bytes(data[: int(0.8 * len(data))])
    result = call("show", tmp_path / "b", "--salvage", tmp_path / "c")
    assert "events from which the run can be resumed" in result.output
    call("resume", tmp_path / "c", target)


def test_a_table_is_written(ran, tmp_path):
    result = call("show", ran[0], "--export", tmp_path / "a.csv")
    assert "evaluations saved to" in result.output
    assert (tmp_path / "a.csv").read_text().startswith("order,kind")


def _target(text):
    from surrokit.cli.target import resolve_target

    return resolve_target(text, {})


def forget_account(path):
    import sqlite3

    connection = sqlite3.connect(path)
    connection.execute("DELETE FROM facts WHERE name = 'account'")
    connection.commit()
    connection.close()


@pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
def test_a_run_that_ended_without_draws_says_why(ran, tmp_path):
    path = tmp_path / "b"
    call("sample", ran[1], *SMALL, "--max-calls", 30, "--path", path)
    lines = call("show", path).output.splitlines()
    assert lines[1].startswith("no draws; exact calls: ")
    assert "all that max_calls allowed went into the warm-up" in lines[2]
