"""The file of a run: what is in it, who may read and write it, and whose it is."""

from __future__ import annotations

import csv
import os
import shutil
import sqlite3
import stat
import subprocess
import sys

import numpy as np
import pytest
from ledgers import KINDS, SIZES, Counted, cut, forward, plain, query, values

import surrokit as sk
from surrokit.errors import ConfigurationError, LedgerError, MissingDependencyError, SamplingWarning
from surrokit.ledger.store import Lock, Store

HMC = {**KINDS["hmc"][1], **SIZES}


def test_every_evaluation_is_a_row(whole):
    run, path = whole("hmc")
    with sk.Ledger(path) as ledger:
        table = ledger.to_arrays()
        assert len(ledger) == sum(run.calls.values()) == len(table["kind"])
        assert ledger.calls == {kind: n for kind, n in run.calls.items() if n}
    precision = np.diag([1.0, 4.0, 0.25]) + 0.3
    at = table["positions"]
    paid = ~np.isnan(table["gradients"][:, 0])
    assert (table["kind"][paid] == "gradient").all()
    np.testing.assert_allclose(table["gradients"][paid], (at @ precision)[paid], rtol=1e-12)
    np.testing.assert_allclose(table["values"], 0.5 * (at @ precision * at).sum(axis=1), rtol=1e-12)
    assert (np.diff(table["order"]) >= 0).all()
    assert set(table["stage"]) == {"start", "exploration", "warmup", "sampling"}
    assert not table["failed"].any()
    assert (table["seconds"] > 0).all()


def test_what_chains_accepted_is_marked(whole):
    run, path = whole("hmc")
    with sk.Ledger(path) as ledger:
        table = ledger.to_arrays()
    visited = {row.tobytes() for row in np.vstack([*run.kept.positions, *run.warmup.positions])}
    accepted = {row.tobytes() for row in table["unbounded"][table["accepted"]]}
    assert accepted <= visited
    moved = run.kept.positions[run.kept.accepted]
    assert {row.tobytes() for row in moved} <= accepted
    assert (~table["accepted"]).any()  # rejected proposals are in it


def test_positions_are_in_the_users_coordinates(whole):
    run, path = whole("values")
    with sk.Ledger(path) as ledger:
        frame = ledger.to_pandas()
        table = ledger.to_arrays()
    assert (frame["rate"] > 0).all()
    np.testing.assert_allclose(np.log(frame["rate"]), frame["unbounded[0]"], rtol=1e-9, atol=1e-9)
    assert len(table["kind"]) == sum(run.calls.values())  # neighbours of differences are in it


def test_outputs_and_jacobians_are_in_it(whole):
    _, path = whole("automatic")
    with sk.Ledger(path) as ledger:
        table = ledger.to_arrays()
    at, known = table["positions"], ~np.isnan(table["outputs"][:, 0])
    assert known.all()
    np.testing.assert_allclose(table["outputs"][:, 2], np.sin(0.5 * at[:, 0]), rtol=1e-12)
    assert table["jacobians"].shape[1:] == (3, 2)


def test_failures_are_in_it(tmp_path):
    def log_density(q):
        if q[0] > 0.5:
            raise ArithmeticError("no solution")
        return np.nan if q[1] > 2.0 else -0.5 * q @ q

    target = sk.potential(log_density=log_density, dim=2)
    settings = {"sampler": "random-walk", "warmup": 60, "draws": 40, **SIZES}
    with pytest.warns(sk.errors.EvaluationWarning):
        run = sk.sample(target, path=tmp_path / "a", **settings)
    with sk.Ledger(tmp_path / "a") as ledger:
        table = ledger.to_arrays()
    raised = table["positions"][:, 0] > 0.5
    assert raised.any()
    assert all("no solution" in message for message in table["message"][raised])
    assert (table["failed"] == (raised | (table["positions"][:, 1] > 2.0))).all()
    assert not table["accepted"][table["failed"]].any()
    seen_again = run.recheck.tried - run.recheck.worked
    assert run.failures + seen_again >= table["failed"].sum()


def test_a_call_that_ended_the_run_is_in_it_and_is_paid_for_again(tmp_path):
    paid = Counted()
    paid.stop_at, paid.error = 50, ValueError
    with pytest.raises(sk.errors.TargetError):
        sk.sample(plain(paid), path=tmp_path / "a", compute=sk.Compute(on_error="raise"), **HMC)
    assert query(tmp_path / "a", "SELECT count(*) FROM events WHERE outcome = 'raised'") == [(1,)]
    paid.stop_at = None
    assert sk.resume(tmp_path / "a", plain(paid)).stopped == "draws"


def test_a_table_is_exported(whole, tmp_path):
    _, path = whole("hmc")
    with sk.Ledger(path) as ledger:
        ledger.export(tmp_path / "a.csv")
        table = ledger.columns()
        with pytest.raises(ConfigurationError, match=r"use \.csv or \.parquet"):
            ledger.export(tmp_path / "a.txt")
    with (tmp_path / "a.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["values"]) for row in rows] == table["values"].tolist()


@pytest.mark.parametrize("name", ["pandas", "pyarrow"])
def test_a_missing_library_is_named(name, whole, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    with sk.Ledger(whole("hmc")[1]) as ledger, pytest.raises(MissingDependencyError, match=name):
        ledger.to_pandas() if name == "pandas" else ledger.export(tmp_path / "a.parquet")


def test_data_rows_are_counted_and_not_kept(tmp_path):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(400, 3))
    y = (rng.random(400) < 0.5).astype(float)
    target = sk.make("potential", "logistic", design=x, response=y)
    settings = {"sampler": "hmc", "surrogate": "rows", "correction": "subsampled"}
    sizes = {**SIZES, "warmup": 30, "draws": 30}
    run = sk.sample(target, path=tmp_path / "a", **settings, **sizes)
    again = sk.resume(tmp_path / "a", target)
    assert np.array_equal(again.draws, run.draws)
    assert again.calls == run.calls
    assert run.calls["rows"] > 0
    assert query(tmp_path / "a", "SELECT count(*) FROM events WHERE kind = 'rows'") == [(0,)]
    with sk.Ledger(tmp_path / "a") as ledger:
        assert ledger.facts["account"]["calls"] == run.calls


# --- runs that are looked at ---


@pytest.mark.parametrize("kind", ["hmc", "automatic", "while-learning"])
def test_a_run_is_opened(kind, whole):
    run, path = whole(kind)
    opened = sk.open_run(path)
    assert np.array_equal(opened.draws, run.draws)
    assert str(opened.summary()) == str(run.summary())
    assert (opened.calls, opened.stopped, opened.choice) == (run.calls, run.stopped, run.choice)
    assert opened.verdict == run.verdict


def test_a_run_is_opened_while_it_goes_on(tmp_path):
    seen = []

    class Looks:
        def surrokit_transition_done(self, info, **_):
            if info.stage == "sampling" and info.iteration % 20 == 0:
                seen.append(sk.open_run(tmp_path / "a"))

    run = sk.sample(plain(Counted()), path=tmp_path / "a", observers=[Looks()], **HMC)
    assert seen
    for opened in seen:
        assert np.array_equal(opened.draws, run.draws[:, : len(opened.kept)])
        assert opened.stopped == "interrupted"
        assert len(opened.warmup) > 0


def test_weighted_answers_are_opened(whole):
    run, path = whole("weights")
    opened = sk.open_run(path)
    assert run.answer is not None
    assert not opened.exact
    assert np.array_equal(opened.draws, run.draws)
    assert np.array_equal(opened.log_weights, run.log_weights)
    assert str(opened.summary()) == str(run.summary())
    assert opened.verdict.to_dict() == run.verdict.to_dict()
    assert opened.weights.log_normalizer.value == run.weights.log_normalizer.value
    assert opened.weights.log_normalizer.error == run.weights.log_normalizer.error


def test_weighted_answers_are_opened_while_rounds_go_on(tmp_path, monkeypatch):
    """A round that has not come to its end is left out."""
    monkeypatch.setattr("surrokit.ledger.file.INTERVAL", 0.0)
    seen = []

    class Looks:
        def surrokit_transition_done(self, info, **_):
            if info.stage == "sampling":
                opened = sk.open_run(tmp_path / "a")
                n = 0 if opened.answer is None else sum(map(len, opened.answer.rounds))
                assert opened.draws.shape[0] * opened.draws.shape[1] == n
                seen.append((n, opened.stopped))

    target, settings = KINDS["weights"]
    run = sk.sample(
        target(Counted()), path=tmp_path / "a", observers=[Looks()], **settings, **SIZES
    )
    ends = np.cumsum([len(each) for each in run.answer.rounds])
    assert {n for n, _ in seen} == {0, *ends[:-1]}
    assert {stopped for _, stopped in seen} == {"interrupted"}


def test_draws_of_chains_that_took_over_are_opened(tmp_path, monkeypatch):
    monkeypatch.setattr("surrokit.run.weighing.complaint", lambda _: "of a doubt")
    target, settings = KINDS["weights"]
    settings = {**settings, "max_calls": 400}
    with pytest.warns(SamplingWarning, match="weighted answers are refused: of a doubt"):
        run = sk.sample(target(Counted()), path=tmp_path / "a", **settings, **SIZES)
    opened = sk.open_run(tmp_path / "a")
    assert run.answer is None
    assert len(run.kept) > 0
    assert np.array_equal(opened.draws, run.draws)
    assert opened.verdict.named("weights") == run.verdict.named("weights")


def test_a_damaged_round_is_told(whole, tmp_path):
    run, path = whole("weights")
    damaged = shutil.copy(path, tmp_path / "a")
    connection = sqlite3.connect(damaged)
    change = "UPDATE draws SET data = zeroblob(length(data)) WHERE stage = 'round'"
    assert connection.execute(change).rowcount == len(run.answer.rounds)
    connection.commit()
    connection.close()
    with pytest.raises(LedgerError, match="checksum of block"):
        sk.open_run(damaged)


def test_a_run_that_has_not_begun_is_not_opened(tmp_path):
    paid = Counted()
    paid.stop_at = 0
    sk.sample(plain(paid), path=tmp_path / "a", **HMC)
    path = cut(tmp_path / "a", tmp_path / "b", 0)
    connection = sqlite3.connect(path)
    connection.execute("DELETE FROM facts WHERE name = 'account'")
    connection.commit()
    connection.close()
    with pytest.raises(LedgerError, match=r"no iteration .* is written yet"):
        sk.open_run(path)


# --- files ---


def test_only_its_owner_can_read_it(tmp_path):
    before = os.umask(0)
    try:
        modes = []

        class Looks:
            def surrokit_transition_done(self, info, **_):
                modes.extend(stat.S_IMODE(p.stat().st_mode) for p in tmp_path.iterdir())

        sk.sample(plain(Counted()), path=tmp_path / "a", observers=[Looks()], **HMC)
    finally:
        os.umask(before)
    assert set(modes) == {0o600}
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_a_file_that_exists_is_not_touched(tmp_path):
    (tmp_path / "a").write_text("mine")
    with pytest.raises(LedgerError, match=r"exists; go on with it by surrokit\.resume"):
        sk.sample(plain(Counted()), path=tmp_path / "a", **HMC)
    assert (tmp_path / "a").read_text() == "mine"


def test_a_run_that_cannot_work_leaves_no_file(tmp_path):
    with pytest.raises(sk.errors.UnknownComponentError):
        sk.sample(plain(Counted()), path=tmp_path / "a", **{**HMC, "sampler": "nonsense"})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["missing/a", "."])
def test_a_place_that_cannot_be_written_is_told(path, tmp_path):
    with pytest.raises(LedgerError, match=r"cannot write|exists"):
        sk.sample(plain(Counted()), path=tmp_path / path, **HMC)


def test_a_missing_file_is_told(tmp_path):
    for read in (sk.open_run, sk.Ledger, lambda path: sk.resume(path, plain(Counted()))):
        with pytest.raises(LedgerError, match="cannot read"):
            read(tmp_path / "a")


def test_another_file_is_no_ledger(tmp_path):
    (tmp_path / "a").write_text("x" * 5000)
    with pytest.raises(LedgerError, match="is no ledger"):
        sk.open_run(tmp_path / "a")
    sqlite3.connect(tmp_path / "b").execute("CREATE TABLE facts (name TEXT)").connection.close()
    with pytest.raises(LedgerError, match="is no ledger"):
        sk.open_run(tmp_path / "b")


def test_a_file_with_more_than_its_tables_is_refused(whole, tmp_path):
    """A trigger or a view of a stranger's file would be code."""
    path = shutil.copy(whole("hmc")[1], tmp_path / "a")
    connection = sqlite3.connect(path)
    connection.execute("CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM draws; END")
    connection.commit()
    connection.close()
    with pytest.raises(LedgerError, match="is no ledger"):
        sk.resume(path, plain(Counted()))


@pytest.mark.parametrize(
    ("version", "message"), [(3, "upgrade surrokit"), (1, "was written by an older surrokit")]
)
def test_a_file_of_another_version_is_refused(whole, tmp_path, version, message):
    path = shutil.copy(whole("hmc")[1], tmp_path / "a")
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.commit()
    connection.close()
    with pytest.raises(LedgerError, match=message):
        sk.Ledger(path)


def test_a_full_disk_stops_the_run_and_it_goes_on_later(whole, tmp_path, monkeypatch):
    run, _ = whole("hmc")
    left = [40]
    execute_many = Store.execute_many

    def fill(self, statement, rows):
        rows, events = list(rows), statement.startswith("INSERT INTO events")
        fitting = left[0] if events else len(rows)
        execute_many(self, statement, rows[:fitting])
        if fitting < len(rows):
            left[0] = 0
            raise sqlite3.OperationalError("database or disk is full")
        left[0] -= len(rows) * events

    monkeypatch.setattr(Store, "execute_many", fill)
    with pytest.raises(LedgerError, match=r"disk is full.*all that was written before is safe"):
        sk.sample(plain(Counted()), path=tmp_path / "a", **HMC)
    monkeypatch.undo()
    assert 0 < len(sk.Ledger(tmp_path / "a")) <= 40
    again = sk.resume(tmp_path / "a", plain(Counted()))
    assert np.array_equal(again.draws, run.draws)
    assert again.calls == run.calls


# --- locks ---


def test_two_runs_on_one_file_are_refused(tmp_path):
    errors = []

    class Tries:
        def surrokit_run_started(self, run):
            with pytest.raises(LedgerError, match="is being written by a run") as caught:
                sk.resume(tmp_path / "a", plain(Counted()))
            errors.append(str(caught.value))

    sk.sample(plain(Counted()), path=tmp_path / "a", observers=[Tries()], **HMC)
    assert str(os.getpid()) in errors[0]
    assert sk.resume(tmp_path / "a", plain(Counted())).stopped == "draws"


def test_another_process_is_refused_until_the_first_dies(tmp_path):
    code = (
        "import sys; from pathlib import Path; from surrokit.ledger.store import Lock\n"
        "lock = Lock(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "a")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(LedgerError, match=f"process {holder.pid}"):
            Lock(tmp_path / "a")
    finally:
        holder.kill()
        holder.communicate()
    Lock(tmp_path / "a").release()


# --- whose it is ---


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda: plain(Counted(), scale=2.0), "it holds .* but the target returned"),
        (lambda: values(Counted()), r"dim is 3 there, 2 here; parameters are"),
        (lambda: forward(Counted()), "it offers"),
        (
            lambda: sk.potential(value_and_gradient=lambda q: 1 / 0, dim=3),
            "raised ZeroDivisionError",
        ),
    ],
)
def test_the_ledger_of_another_target_is_refused(other, message, whole, tmp_path):
    path = cut(whole("hmc")[1], tmp_path / "a", 10**9)
    with pytest.raises(LedgerError, match=message):
        sk.resume(path, other())
    assert sk.resume(path, plain(Counted())).stopped == "draws"  # the lock is free again


def test_only_a_run_with_a_file_is_extended():
    run = sk.sample(plain(Counted()), **HMC)
    with pytest.raises(ConfigurationError, match=r"pass path=\.\.\. to sample"):
        run.extend(10)
