"""``surrokit sample --path``, ``surrokit resume`` and ``surrokit show``."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import numpy as np
import pytest
from click.testing import CliRunner
from ledgers import FORGET_ACCOUNT, SMALL, Counted, change, cut, plain

import surrokit as sk
from surrokit.cli.main import cli
from surrokit.errors import ConfigurationError, LedgerError

TARGET = """
import surrokit as sk
bell = sk.potential(value_and_gradient=lambda q: (0.5 * q @ q, q), dim=2)
"""
OPTIONS = ["--sampler", "hmc", "--warmup", "40", "--draws", "30", "--chains", "2", "--seed", "1"]

pytestmark = pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")


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
    call("sample", target, *OPTIONS, "--path", tmp_path / "a")
    return tmp_path / "a", target


def test_a_run_is_shown_and_extended(ran, tmp_path):
    path, target = ran
    printed = call("show", path).output
    assert "ended" in printed
    assert "q[1]" in printed
    result = call("resume", path, target, "--draws", 50, "--json", tmp_path / "figures.json")
    assert "exact calls" in result.output
    assert json.loads((tmp_path / "figures.json").read_text())["draws"] == 50
    call("resume", path, target, "--draws", 52)
    assert sk.open_run(path).draws.shape == (2, 52, 2)
    assert "92 iterations" in call("show", path).output
    result = call("sample", target, *OPTIONS, "--warm-start", path)
    told = next(line for line in result.output.splitlines() if line.startswith("exact calls "))
    assert told.split()[-1] == "none"


def test_a_termination_shows_what_there_is(tmp_path):
    """As batch systems send it before they kill."""
    slow = "import time\n" + TARGET.replace("(0.5", "(time.sleep(0.005) or 0.5")
    (tmp_path / "slow.py").write_text(slow)
    arguments = ["sample", f"{tmp_path / 'slow.py'}:bell", *OPTIONS, "--path", str(tmp_path / "a")]
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


def test_a_run_whose_file_has_no_iteration_yet_is_shown(ran, tmp_path):
    held = cut(ran[0], tmp_path / "b", 30)
    change(held, FORGET_ACCOUNT)
    assert "no iteration" in call("show", held).output


def test_a_run_that_ended_without_draws_says_why(ran, tmp_path):
    path = tmp_path / "b"
    call("sample", ran[1], *OPTIONS, "--max-calls", 30, "--path", path)
    lines = call("show", path).output.splitlines()
    assert lines[1].startswith("no draws; exact calls: ")
    assert "all that max_calls allowed went into the warm-up" in lines[2]


# --- targets that a file may name ---


@pytest.mark.parametrize(
    "target", ["gaussian", ("gaussian", {"mean": (1.5, 0.5)}), ("banana", {"n_observations": 20})]
)
def test_a_registered_target_is_in_the_file(tmp_path, target):
    run = sk.sample(target, path=tmp_path / "a", **SMALL)
    again = sk.resume(tmp_path / "a", draws=8, progress=False)
    assert np.array_equal(again.draws[:, :6], run.draws)
    longer = sk.open_run(tmp_path / "a").extend(3, progress=False)
    assert np.array_equal(longer.draws[:, :8], again.draws)


def test_the_command_resumes_without_a_target(tmp_path):
    name = ["gaussian", "--set", "target.mean=1.5,0.5"]
    call("sample", *name, *OPTIONS, "--path", tmp_path / "a")
    call("resume", tmp_path / "a", "--draws", 32)
    assert sk.open_run(tmp_path / "a").asked["target"] == ("gaussian", {"mean": (1.5, 0.5)})
    assert sk.open_run(tmp_path / "a").draws.shape == (2, 32, 2)
    for more in (["--set", "target.dim=3"], ["--one-by-one"]):
        result = call("resume", tmp_path / "a", *more, fails=True)
        assert "give TARGET after FILE" in str(result.exception)


def test_any_other_target_is_given_again_and_the_error_says_how(small, tmp_path):
    path = tmp_path / "a"
    path.write_bytes(small[1].read_bytes())
    advice = r"Give it again: surrokit\.resume\('a', target, \.\.\.\), or surrokit resume a TARGET"
    for go_on in (sk.open_run(path).extend, lambda _: sk.resume(path, progress=False)):
        with pytest.raises(ConfigurationError, match=advice):
            go_on(5)
    longer = sk.open_run(path).extend(5, target=plain(Counted()), progress=False)
    assert longer.draws.shape[1] == 11
