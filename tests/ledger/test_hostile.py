"""Damaged, foreign, odd and hostile files give clear errors; nothing that they name is called."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import warnings
from importlib.metadata import version

import numpy as np
import pytest
from click.testing import CliRunner
from ledgers import (
    FORGET_ACCOUNT,
    HERE,
    SIZES,
    Counted,
    call,
    change,
    fact,
    plain,
    set_fact,
)

import surrokit as sk
from surrokit.cli.main import cli
from surrokit.errors import ConfigurationError, LedgerError, SamplingWarning, SurrokitError

pytestmark = pytest.mark.filterwarnings(
    "ignore::surrokit.errors.SamplingWarning", "ignore::surrokit.errors.EvaluationWarning"
)


def command(*arguments):
    result = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    assert isinstance(result.exception, SurrokitError | SystemExit | None)
    return result.output


# --- damage ---


def damage(data, rng):
    """Return a copy of bytes that something has happened to."""
    data = bytearray(data)
    how = rng.integers(5)
    at = int(rng.integers(len(data)))
    if how == 0:
        return bytes(data[:at])
    if how == 1:
        n = int(rng.integers(1, 4000))
        data[at : at + n] = rng.bytes(len(data[at : at + n]))
    elif how == 2:
        for i in rng.integers(len(data), size=int(rng.integers(1, 40))):
            data[i] ^= 1 << int(rng.integers(8))
    elif how == 3:
        data[at : at + int(rng.integers(1, 4000))] = b""
    else:
        data[int(rng.integers(min(len(data), 2000)))] = int(rng.integers(256))
    return bytes(data)


def read_all(path):
    """Read a file in every way; return the errors, which must be clear ones."""
    errors = []

    def look():
        with sk.Ledger(path) as ledger:
            ledger.to_arrays()

    for read in (look, lambda: sk.open_run(path)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                read()
        except LedgerError as error:
            errors.append(str(error))
    return errors


@pytest.mark.parametrize(
    ("n", "seed", "refused"), [(80, 1, 40), pytest.param(10_000, 2, 5000, marks=pytest.mark.long)]
)
def test_damaged_files_give_clear_errors(n, seed, refused, small, tmp_path):
    rng, whole, found = np.random.default_rng(seed), small[1].read_bytes(), 0
    for _ in range(n):
        path = tmp_path / "a"
        path.write_bytes(damage(whole, rng))
        found += bool(read_all(path))
        for beside in tmp_path.glob("a-*"):
            beside.unlink()
    assert found > refused


def test_a_damaged_evaluation_is_never_believed(whole, tmp_path):
    """Whatever is changed in an evaluation, its checksum tells; without it the run begins anew."""
    run, path = whole("hmc")
    data = bytearray(path.read_bytes())
    with sk.Ledger(path) as ledger:
        table = ledger.to_arrays()
    data[data.index(table["gradients"][300].tobytes()) + 3] ^= 1
    (tmp_path / "a").write_bytes(bytes(data))
    with pytest.raises(LedgerError, match=r"checksum of event.*sqlite3 a \.recover"):
        sk.resume(tmp_path / "a", plain(Counted()))
    change(tmp_path / "a", f"DELETE FROM events WHERE id = {table['order'][300]}", FORGET_ACCOUNT)
    paid = Counted()
    with pytest.warns(SamplingWarning, match="begins anew"):
        again = sk.resume(tmp_path / "a", plain(paid), check=False)
    assert np.array_equal(again.draws, run.draws)
    assert paid.n == SIZES["chains"]


def test_a_damaged_round_is_told(whole, tmp_path):
    path = shutil.copy(whole("weights")[1], tmp_path / "a")
    change(path, "UPDATE draws SET data = zeroblob(length(data)) WHERE stage = 'round'")
    with pytest.raises(LedgerError, match="checksum of block"):
        sk.open_run(path)


def test_a_truncated_file_is_damaged(whole, tmp_path):
    data = whole("hmc")[1].read_bytes()
    (tmp_path / "a").write_bytes(data[: len(data) // 2])
    with pytest.raises(LedgerError, match="is damaged"):
        sk.Ledger(tmp_path / "a").to_arrays()


# --- tables that are others ---

VIEW = (
    "DROP TABLE events",
    "CREATE VIEW events AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) "
    "SELECT id, 1 AS run, 'value' AS kind FROM n WHERE id < 0",
)
TRIGGER = ("CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM facts; END",)


@pytest.mark.parametrize("statements", [VIEW, TRIGGER], ids=["view without an end", "trigger"])
def test_what_is_no_table_is_never_read(small, tmp_path, statements):
    path = shutil.copy(small[1], tmp_path / "a")
    change(path, *statements)
    for read in (sk.open_run, lambda path: sk.resume(path, plain(Counted()))):
        with pytest.raises(LedgerError, match="no ledger of surrokit"):
            read(path)


def test_more_tables_and_indices_do_no_harm(small, tmp_path):
    path = shutil.copy(small[1], tmp_path / "a")
    change(path, "CREATE TABLE more (id INTEGER)", "CREATE INDEX kinds ON events (kind)")
    assert np.array_equal(sk.open_run(path).draws, small[0].draws)
    assert sk.resume(path, plain(Counted()), draws=8, progress=False).draws.shape == (2, 8, 3)


@pytest.mark.parametrize(
    ("version", "message"), [(6, "upgrade surrokit"), (4, "was written by an older surrokit")]
)
def test_a_file_of_another_version_is_refused(small, tmp_path, version, message):
    path = shutil.copy(small[1], tmp_path / "a")
    change(path, f"PRAGMA user_version = {version}")
    with pytest.raises(LedgerError, match=message):
        sk.Ledger(path)


def test_another_file_is_no_ledger(tmp_path):
    (tmp_path / "a").write_text("x" * 5000)
    sqlite3.connect(tmp_path / "b").execute("CREATE TABLE facts (name TEXT)").connection.close()
    for name in ("a", "b"):
        with pytest.raises(LedgerError, match="is no ledger"):
            sk.open_run(tmp_path / name)


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
def test_a_pipe_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "a")
    pipe = os.open(tmp_path / "a", os.O_RDWR)  # so that nobody waits for a writer
    try:
        os.write(pipe, b"x" * 64)
        for read in (sk.open_run, sk.Ledger):
            with pytest.raises(LedgerError, match="it is no plain file"):
                read(tmp_path / "a")
    finally:
        os.close(pipe)


# --- facts that are odd ---


def changed(small, path, name, at, value):
    shutil.copy(small[1], path)
    told = {"": fact(path, name)}
    inner, at = told, ("", *at)
    for key in at[:-1]:
        inner = inner[key]
    inner[at[-1]] = value
    set_fact(path, name, told[""])
    return path


ACCOUNTS = [
    ((), []),
    ((), "ended"),
    ((), None),
    (("state",), 3),
    (("iteration",), "many"),
    (("calls",), {"value": "ten"}),
    (("calls", "odd"), 3),
    (("n_rows",), "all"),
    (("failures",), [1]),
    (("failure_kinds",), {"x": {"count": "1"}}),
    (("seconds",), {"sampling": "long"}),
    (("adaptation", "deployments"), ["x"]),
    (("adaptation", "mix"), None),
    (("parts",), {"sampler": 1}),
    (("kept",), "all"),
    (("weights",), {"refused": 1, "rejected": "x"}),
    (("chosen",), {"parts": 1}),
    (("recheck",), [0]),
]


@pytest.mark.parametrize(("at", "value"), ACCOUNTS)
def test_an_odd_account_is_damage_for_every_reader(small, tmp_path, at, value):
    path = changed(small, tmp_path / "a", "account", at, value)
    with pytest.raises(LedgerError, match="is damaged"):
        print(sk.open_run(path).summary())
    command("show", path)
    command("export", path)


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


def large(setting):
    return {"tuple": ["additive", {"dict": {"n_nodes": setting}}]}


BOMBS = [
    ("settings", ("parts", "surrogate"), large(10**12), "no file may give.*Pass them again"),
    ("settings", ("chains",), 10**9, "too large for a file"),
    ("settings", ("retries",), 10**400, "too large for a file"),
    ("settings", ("draws",), 10**19, "too large for a file"),
    ("settings", ("budget", "max_calls"), 10**400, "too large for a file"),
    ("settings", ("safety", "block"), 10**12, "too large for a file"),
    ("target", ("dim",), 10**12, "target of more numbers"),
    ("target", ("parameters", "q"), [[10**12], None, None, None], "target of more numbers"),
]


@pytest.mark.parametrize(("name", "at", "value", "message"), BOMBS)
def test_a_size_from_a_file_is_bounded(small, tmp_path, name, at, value, message):
    """No file makes its reader ask for terabytes, or for iterations without an end."""
    path = changed(small, tmp_path / "a", name, at, value)
    reader = sk.open_run if name == "target" else sk.resume
    given = {} if name == "target" else {"target": plain(Counted()), "draws": 8}
    with pytest.raises(SurrokitError, match=message):
        reader(path, **given)
    command("show", path)


def test_a_huge_blob_is_damage(small, tmp_path):
    """Its length is in the file, and its shape says what is read."""
    path = shutil.copy(small[1], tmp_path / "a")
    change(path, "UPDATE events SET data = zeroblob(50000000) WHERE id = 3")
    with pytest.raises(LedgerError, match="checksum of event 3"):
        sk.resume(path, plain(Counted()))


def test_too_little_memory_is_said_in_words():
    enormous = ("additive", {"n_nodes": 10**12, "ridge": 1.0})
    with pytest.raises(ConfigurationError, match=r"more memory than there is.*smaller sizes"):
        sk.sample(plain(Counted()), surrogate=enormous, warmup=40, draws=4, **SIZES)


# --- what files name ---

ESTIMATOR = ("sklearn", {"estimator": "sklearn.kernel_ridge.KernelRidge"})
LEARNING = {"sampler": "hmc", "surrogate": ESTIMATOR, "warmup": 20, "draws": 10, **SIZES}


@pytest.mark.parametrize("n", [30, pytest.param(1000, marks=pytest.mark.long)])
def test_nothing_that_a_file_names_is_imported_or_called(n):
    told = json.loads(call(HERE / "hostile.py", n, timeout=None).stdout.splitlines()[-1])
    assert told == {"found": [], "raw": []}


@pytest.mark.parametrize(
    ("surrogate", "name"),
    [(ESTIMATOR, "sklearn"), (sk.make("surrogate", "additive", n_nodes=20), "[A-Z][a-z]+")],
    ids=["an estimator", "an object"],
)
def test_what_no_file_may_hold_is_given_again(surrogate, name, tmp_path):
    path = tmp_path / "a"
    run = sk.sample(plain(Counted()), path=path, **{**LEARNING, "surrogate": surrogate})
    assert run.extend(draws=5).draws.shape[1] == 15
    with pytest.raises(ConfigurationError, match=rf"no file may give.* surrogate \({name}\)\. P"):
        sk.resume(path, plain(Counted()), progress=False)
    with pytest.raises(ConfigurationError, match="holds the run's sampler, which cannot be"):
        sk.resume(path, plain(Counted()), sampler="nuts", surrogate=surrogate)
    again = sk.resume(path, plain(Counted()), surrogate=surrogate, progress=False)
    assert np.array_equal(again.draws[:, :10], run.draws)
    assert sk.open_run(path).draws.shape[1] == 15


def test_a_study_is_given_its_estimator_again(tmp_path):
    path, given = tmp_path / "a", {k: v for k, v in LEARNING.items() if k != "progress"}
    asked = sk.study(path, dim=3, gradients=True, **given).ask()
    assert len(asked)
    with pytest.raises(ConfigurationError, match="Pass them again, as surrogate="):
        sk.study(path)
    study = sk.study(path, surrogate=ESTIMATOR)
    study.tell(asked, -0.5 * (asked**2).sum(axis=1), gradients=-asked)
    assert len(study.ask())


@pytest.mark.parametrize(
    "named",
    [
        {"tuple": ["umbridge", {"dict": {"url": "http://localhost:1"}}]},  # text may be an address
        {"tuple": ["logistic", {"dict": {"design": "/etc/passwd", "response": "y"}}]},
        {"tuple": ["gaussian", {"dict": {"mean": {"dict": {"call": "os.system"}}}}]},
        {"tuple": ["stan", {"dict": {"path": "model.stan"}}]},
        ["gaussian"],
        7,
    ],
)
def test_a_file_names_no_target_but_registered_ones_with_plain_data(small, tmp_path, named):
    path = changed(small, tmp_path / "a", "settings", ("target",), named)
    with pytest.raises(ConfigurationError, match="does not hold the run's target"):
        sk.resume(path, progress=False)


# --- what a terminal would obey ---

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
OPTIONS = ["--sampler", "random-walk", "--warmup", 30, "--draws", 30, "--chains", 2, "--seed", 1]


def is_text(printed):
    return not set(printed) - {"\n"} & {chr(n) for n in (*range(32), *range(127, 160), 0x202E)}


def test_names_and_messages_are_shown_as_text(tmp_path):
    (tmp_path / "odd.py").write_text(TARGET % NAME)
    path, odd = tmp_path / "a", f"{tmp_path / 'odd.py'}:odd"
    for words in (
        ("sample", odd, *OPTIONS, "--path", path),
        ("resume", path, odd, "--draws", 40),
        ("show", path),
    ):
        printed = command(*words)
        assert SHOWN in printed
        assert r"\x1b]0;owned\x07" in printed  # of the failure, in the verdict
        assert is_text(printed)


def test_what_a_hostile_file_says_is_shown_as_text(small, tmp_path):
    path = shutil.copy(small[1], tmp_path / "a")
    chosen = {"parts": {"sampler": f"hmc{CLEAR}"}, "reasons": ["fast"], "fallback": []}
    odd = {"chosen": chosen, "state": f"ended{CLEAR}", "stopped": f"draws{CLEAR}"}
    set_fact(path, "account", fact(path, "account") | odd)
    printed = command("show", path)
    assert r"hmc\x1b[2J" in printed
    assert is_text(printed)


KEEPS_ESCAPES = tuple(map(int, version("click").split(".")[:2])) >= (8, 2)
"""Click of before leaves such characters out of what it says of options."""


def test_errors_are_shown_as_text(tmp_path):
    code = "from surrokit.cli.main import main; main()"
    for words in (["show", f"no{CLEAR}file"], ["sample", "gaussian", f"--no{CLEAR}option"]):
        done = call("-c", code, *words, check=False)
        assert done.returncode
        if words[0] == "show" or KEEPS_ESCAPES:
            assert r"no\x1b[2J" in done.stderr
        assert is_text(done.stderr)


def test_a_table_for_a_file_keeps_its_names(tmp_path):
    path = tmp_path / "a"
    study = sk.study(path, parameters={NAME: None}, chains=2, seed=1, sampler="random-walk")
    assert CLEAR in command("ask", path)
    assert np.isfinite(study.ask()).all()
    screen, other = os.openpty()
    subprocess.run([sys.executable, "-m", "surrokit", "ask", path], stdout=other, check=True)
    shown = os.read(screen, 10_000).decode().replace("\r\n", "\n")
    assert SHOWN in shown
    assert is_text(shown)
