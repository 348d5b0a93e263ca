"""Every command shows as text what a terminal would obey, wherever names and messages are from."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from ledgers import SIZES

import surrokit as sk
from surrokit.cli.main import cli

pytestmark = pytest.mark.filterwarnings(
    "ignore::surrokit.errors.SamplingWarning", "ignore::surrokit.errors.EvaluationWarning"
)

CLEAR, TITLE, BACKWARDS = "\x1b[2J", "\x9d0;title\x07", "\u202etxt"
NAME = f"rate{CLEAR}{TITLE}{BACKWARDS}\r\x7f"
SHOWN = r"rate\x1b[2J\x9d0;title\x07\u202etxt"

TARGET = """
import surrokit as sk
def log_density(q):
    if q[0] > 0.5:
        raise ValueError("solver \\x1b]0;owned\\x07 failed")
    return -0.5 * q @ q
odd = sk.potential(log_density=log_density, parameters={%r: None, "b": None})
"""


def is_text(printed):
    return not set(printed) - {"\n"} & {chr(n) for n in (*range(32), *range(127, 160), 0x202E)}


@pytest.fixture
def odd(tmp_path):
    (tmp_path / "odd.py").write_text(TARGET % NAME)
    return f"{tmp_path / 'odd.py'}:odd"


def call(*arguments):
    result = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    return result.output, result.exception


SMALL = ["--sampler", "random-walk", "--warmup", 30, "--draws", 30, "--chains", 2, "--seed", 1]


def test_names_and_messages_are_shown_as_text(odd, tmp_path):
    path = tmp_path / "a"
    printed = [call("sample", odd, *SMALL, "--path", path)[0]]
    printed += [call("resume", path, odd, "--draws", 40)[0], call("show", path)[0]]
    for each in printed:
        assert SHOWN in each
        assert r"\x1b]0;owned\x07" in each  # of the failure, in the verdict
        assert is_text(each)


def test_what_a_hostile_file_says_is_shown_as_text(tmp_path):
    path = tmp_path / "a"
    target = sk.potential(lambda q: 0.5 * q @ q, lambda q: q, dim=2)
    sk.sample(target, path=path, sampler="hmc", warmup=10, draws=10, **SIZES)
    connection = sqlite3.connect(path)
    account = json.loads(
        connection.execute("SELECT value FROM facts WHERE name='account'").fetchone()[0]
    )
    chosen = {"parts": {"sampler": f"hmc{CLEAR}"}, "reasons": ["fast"], "replaced": []}
    account |= {"chosen": chosen, "state": f"ended{CLEAR}", "stopped": f"draws{CLEAR}"}
    connection.execute("UPDATE facts SET value=? WHERE name='account'", (json.dumps(account),))
    connection.commit()
    connection.close()
    printed, _ = call("show", path)
    assert r"hmc\x1b[2J" in printed
    assert is_text(printed)


def test_errors_are_shown_as_text(tmp_path):
    code = "from surrokit.cli.main import main; main()"
    for words in (["show", f"no{CLEAR}file"], ["sample", "gaussian", f"--no{CLEAR}option"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *words],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
        )
        assert done.returncode
        assert r"no\x1b[2J" in done.stderr
        assert is_text(done.stderr)


def test_a_table_for_a_file_keeps_its_names(tmp_path):
    path = tmp_path / "a"
    study = sk.study(path, parameters={NAME: None}, chains=2, seed=1, sampler="random-walk")
    printed, _ = call("ask", path, "--out", tmp_path / "table.csv")
    assert is_text(printed)
    names = (tmp_path / "table.csv").read_bytes().decode()
    assert CLEAR in names
    assert np.isfinite(study.ask()).all()
