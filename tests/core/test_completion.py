"""Words that a shell is offered, and names with a kind before them."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.shell_completion import BashComplete
from click.testing import CliRunner

from surrokit.cli.main import cli


def offered(*arguments, incomplete=""):
    shell = BashComplete(cli, {}, "surrokit", "_SURROKIT_COMPLETE")
    return [item.value for item in shell.get_completions(list(arguments), incomplete)]


def ran(*arguments):
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize(
    ("arguments", "incomplete", "words"),
    [
        (("sample", "--sampler"), "n", ["nuts"]),
        (("sample", "--surrogate"), "no", ["none"]),
        (("sample", "--explorer"), "", ["active", "approach", "rounds", "sampler"]),
        (("sample", "--correction"), "sub", ["subsampled"]),
        (("plugins",), "lea", ["leapfrog"]),
        (("plugins",), "integ", ["integrator"]),
        (("sample",), "lynx", ["lynx-hare"]),
        (("resume", "run.surrokit"), "lynx", ["lynx-hare"]),
    ],
)
def test_names_are_offered(arguments, incomplete, words):
    assert offered(*arguments, incomplete=incomplete) == words


def test_files_that_may_hold_a_target_are_offered(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("zmodel.py", "zprogram.toml", "znotes.txt"):
        (tmp_path / name).touch()
    (tmp_path / "zfolder").mkdir()
    (tmp_path / "zfolder" / "inner.py").touch()
    assert offered("sample", incomplete="z") == ["zfolder/", "zmodel.py", "zprogram.toml"]
    assert offered("sample", incomplete="zfolder/") == ["zfolder/inner.py"]
    assert offered("sample", incomplete="nowhere/") == []


def test_a_kind_before_names_leaves_out_other_kinds():
    both, one = ran("plugins", "sampler"), ran("plugins", "sampler", "hmc")
    assert both.startswith("explorer sampler")
    assert one.startswith("sampler hmc")
    assert "explorer" not in one
    listed = {line.split()[0] for line in ran("plugins", "metric").splitlines()}
    assert listed == {"kind", "metric"}


def test_a_name_of_another_kind_says_so():
    done = CliRunner().invoke(cli, ["plugins", "metric", "hmc"])
    assert "no metric is named 'hmc'; 'hmc' is the name of a sampler" in str(done.exception)


def test_quiet_says_nothing_but_warnings(tmp_path):
    out = tmp_path / "draws.csv"
    sizes = ["--warmup", "200", "--draws", "300", "--seed", "1", "--sampler", "hmc"]
    assert ran("sample", "gaussian", *sizes, "--quiet", "--out", str(out)) == ""
    assert out.stat().st_size > 0
    assert "R-hat" in ran("sample", "gaussian", *sizes)


def test_python_runs_the_command_line():
    done = subprocess.run(
        [sys.executable, "-m", "surrokit", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("python -m surrokit, version ")
