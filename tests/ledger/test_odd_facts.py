"""Files that tell odd things of a run give clear errors to every reader."""

from __future__ import annotations

import json
import shutil
import sqlite3

import pytest
from click.testing import CliRunner
from ledgers import SIZES, Counted, plain

import surrokit as sk
from surrokit.cli.main import cli
from surrokit.errors import ConfigurationError, LedgerError, SurrokitError

pytestmark = pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    path = tmp_path_factory.mktemp("small") / "a"
    sk.sample(plain(Counted()), path=path, sampler="hmc", warmup=6, draws=6, **SIZES)
    return path


def changed(small, path, fact, at, value):
    shutil.copy(small, path)
    connection = sqlite3.connect(path)
    query = "SELECT value FROM facts WHERE name = ?"
    told = json.loads(connection.execute(query, (fact,)).fetchone()[0])
    inner = told
    for name in at[:-1]:
        inner = inner[name]
    if at:
        inner[at[-1]] = value
    else:
        told = value
    statement = "UPDATE facts SET value = ? WHERE name = ?"
    connection.execute(statement, (json.dumps(told), fact))
    connection.commit()
    connection.close()
    return path


ACCOUNTS = [
    ((), []),
    ((), "ended"),
    ((), None),
    (("state",), 3),
    (("iteration",), "many"),
    (("calls",), {"value": "ten"}),
    (("calls", "gradient"), None),
    (("n_rows",), "all"),
    (("failures",), [1]),
    (("failure_kinds",), {"x": {"count": "1"}}),
    (("seconds",), {"sampling": "long"}),
    (("seconds",), []),
    (("adaptation", "deployments"), ["x"]),
    (("adaptation", "mix"), None),
    (("parts",), {"sampler": 1}),
    (("kept",), "all"),
    (("weights",), {"refused": 1, "rejected": "x"}),
    (("chosen",), {}),
    (("recheck",), [0]),
]


@pytest.mark.parametrize(("at", "value"), ACCOUNTS)
def test_an_odd_account_is_damage_for_every_reader(small, tmp_path, at, value):
    path = changed(small, tmp_path / "a", "account", at, value)
    with pytest.raises(LedgerError, match="is damaged"):
        print(sk.open_run(path).summary())
    for arguments in (["show", path], ["export", path]):
        result = CliRunner().invoke(cli, [str(each) for each in arguments])
        assert isinstance(result.exception, SurrokitError | SystemExit | None)


@pytest.mark.parametrize(
    ("at", "value"),
    [
        (("chains",), -1),
        (("chains",), "two"),
        (("chains",), 3),
        (("warmup",), 0.5),
        (("draws",), 0),
        (("on_error",), "call"),
        (("retries",), None),
        (("safety",), {"mix": "x"}),
        (("budget",), [1]),
        (("differences",), "yes"),
        (("parts",), {"elsewhere": "hmc"}),
    ],
)
def test_odd_sizes_of_a_run_are_told_before_it_goes_on(small, tmp_path, at, value):
    path = changed(small, tmp_path / "a", "settings", at, value)
    with pytest.raises(SurrokitError):
        sk.resume(path, plain(Counted()), progress=False)


def test_calls_of_a_kind_that_is_not_known_are_left_out(small, tmp_path):
    path = changed(small, tmp_path / "a", "account", ("calls", "odd"), 3)
    run = sk.open_run(path)
    assert "odd" not in run.calls
    assert run.report(tmp_path / "a.html").exists()


def large(setting):
    return {"tuple": ["additive", {"dict": {"n_nodes": setting}}]}


BOMBS = [
    ("settings", ("parts", "surrogate"), large(10**12), "no file may give.*Pass them again"),
    ("settings", ("chains",), 10**9, "too large for a file"),
    ("settings", ("chains",), 10**400, "too large for a file"),
    ("settings", ("retries",), 10**9, "too large for a file"),
    ("settings", ("draws",), 10**19, "too large for a file"),
    ("settings", ("budget", "max_calls"), 10**400, "too large for a file"),
    ("settings", ("safety", "block"), 10**12, "too large for a file"),
    ("target", ("dim",), 10**12, "target of more numbers"),
    ("target", ("parameters", "q"), [[10**12], None, None, None], "target of more numbers"),
]


@pytest.mark.parametrize(("fact", "at", "value", "message"), BOMBS)
def test_a_size_from_a_file_is_bounded(small, tmp_path, fact, at, value, message):
    """No file makes its reader ask for terabytes, or for iterations without an end."""
    path = changed(small, tmp_path / "a", fact, at, value)
    reader = sk.open_run if fact == "target" else sk.resume
    given = {} if fact == "target" else {"target": plain(Counted()), "draws": 8}
    with pytest.raises(SurrokitError, match=message):
        reader(path, **given)
    for arguments in (["show", path], ["export", path]):
        result = CliRunner().invoke(cli, [str(each) for each in arguments])
        assert isinstance(result.exception, SurrokitError | SystemExit | None)


def test_too_little_memory_is_said_in_words():
    enormous = ("additive", {"n_nodes": 10**12})
    with pytest.raises(ConfigurationError, match=r"more memory than there is.*smaller sizes"):
        sk.sample(plain(Counted()), surrogate=enormous, warmup=40, draws=4, **SIZES)
