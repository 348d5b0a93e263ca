"""The files of runs: what is in them, who may read and write them, and whose they are."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys

import numpy as np
import pytest
from ledgers import (
    FORGET_ACCOUNT,
    HERE,
    KINDS,
    SIZES,
    SMALL,
    Counted,
    call,
    change,
    cut,
    forward,
    plain,
    query,
    same,
    values,
)

import surrokit as sk
from surrokit.errors import LedgerError, SamplingWarning
from surrokit.ledger.store import Lock, Store

HMC = {**KINDS["hmc"][1], **SIZES}

pytestmark = pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")


# --- evaluations ---


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


def test_positions_are_in_the_users_coordinates(tmp_path):
    settings = {**SMALL, "sampler": "random-walk"}
    run = sk.sample(values(Counted()), path=tmp_path / "a", **settings)
    with sk.Ledger(tmp_path / "a") as ledger:
        table = ledger.to_arrays()
    rate, unbounded = table["positions"][:, 0], table["unbounded"][:, 0]
    np.testing.assert_allclose(np.log(rate), unbounded, rtol=1e-9, atol=1e-9)
    assert len(rate) == sum(run.calls.values())


def test_outputs_and_jacobians_are_in_it(whole):
    with sk.Ledger(whole("sub-chain")[1]) as ledger:
        table = ledger.to_arrays()
    np.testing.assert_allclose(
        table["outputs"][:, 2], np.sin(0.5 * table["positions"][:, 0]), rtol=1e-12
    )
    assert table["jacobians"].shape[1:] == (3, 2)


def test_failures_are_in_it_and_keep_their_messages_within_bounds(tmp_path):
    paid = Counted()

    def log_density(q):
        paid()
        if q[0] > 0.3:
            raise ArithmeticError(f"failure {paid.n} begins {'x' * 200_000} ends {paid.n}")
        return np.nan if q[1] > 2.0 else -0.5 * q @ q

    path, target = tmp_path / "a", sk.potential(log_density=log_density, dim=2)
    settings = {**SIZES, "sampler": "random-walk", "warmup": 60, "draws": 40}
    with pytest.warns(sk.errors.EvaluationWarning, match="failure"):
        run = sk.sample(target, path=path, initial=np.zeros(2) - 1.0, **settings)
    with sk.Ledger(path) as ledger:
        table = ledger.to_arrays()
    raised = table["positions"][:, 0] > 0.3
    assert (table["failed"] == (raised | (table["positions"][:, 1] > 2.0))).all()
    seen_again = run.recheck.tried - run.recheck.worked
    assert run.failures + seen_again >= table["failed"].sum() > 5
    messages = list(table["message"][raised])
    assert all(len(message) < 2100 and " characters ...] " in message for message in messages)
    numbers = [message.split()[3] for message in messages]
    assert len(set(numbers)) == len(numbers)
    assert all(f"ends {n} (" in m for n, m in zip(numbers, messages, strict=True))
    assert path.stat().st_size < 4000 * len(messages) + 200_000


def test_data_rows_are_counted_and_not_kept(tmp_path):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(400, 3))
    y = (rng.random(400) < 0.5).astype(float)
    target = sk.make("potential", "logistic", design=x, response=y)
    settings = {"sampler": "hmc", "surrogate": "rows", "correction": "subsampled"}
    sizes = {**SIZES, "warmup": 30, "draws": 30}
    run = sk.sample(target, path=tmp_path / "a", **settings, **sizes)
    assert same(sk.resume(tmp_path / "a", target), run)
    assert run.calls["rows"] > 0
    assert query(tmp_path / "a", "SELECT count(*) FROM events WHERE kind = 'rows'") == [(0,)]
    with sk.Ledger(tmp_path / "a") as ledger:
        assert ledger.facts["account"]["calls"] == run.calls


def test_nothing_is_begun_in_a_file_that_exists(small, tmp_path):
    (tmp_path / "b").write_text("x" * 5000)
    for path, message in ((small[1], "is of a run"), (tmp_path / "b", "is no ledger")):
        path, before = shutil.copy(path, tmp_path / "a"), path.read_bytes()
        with pytest.raises(LedgerError, match=r"exists\. Go on with a run that it holds"):
            sk.sample(plain(Counted()), path=path, **SMALL)
        assert path.read_bytes() == before
        with pytest.raises(LedgerError, match=message):
            sk.model(lambda q: q, dim=3, path=path)


def test_a_run_that_never_began_leaves_nothing(tmp_path):
    with pytest.raises(sk.errors.UnknownComponentError):
        sk.sample(plain(Counted()), path=tmp_path / "a", **{**HMC, "sampler": "nonsense"})
    assert not list(tmp_path.iterdir())


# --- runs that are looked at ---


@pytest.mark.parametrize("kind", ["hmc", "automatic", "while-learning", "weights"])
def test_a_run_is_opened(kind, whole):
    run, path = whole(kind)
    opened = sk.open_run(path)
    assert np.array_equal(opened.draws, run.draws)
    assert str(opened.summary()) == str(run.summary())
    assert (opened.calls, opened.stopped, opened.choice) == (run.calls, run.stopped, run.choice)
    assert opened.verdict.to_dict() == run.verdict.to_dict()
    if kind == "weights":
        assert np.array_equal(opened.log_weights, run.log_weights)
        one, other = opened.weights.log_evidence, run.weights.log_evidence
        assert (one.value, one.error) == (other.value, other.error)


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


def test_weighted_answers_are_opened_while_rounds_go_on(tmp_path, monkeypatch):
    """A round that has not come to its end is left out."""
    monkeypatch.setattr("surrokit.ledger.file.INTERVAL", 0.0)
    seen = []

    class Looks:
        def surrokit_transition_done(self, info, **_):
            if info.stage == "sampling" and info.iteration % 4 == 0:
                opened = sk.open_run(tmp_path / "a")
                n = 0 if opened.answer is None else sum(map(len, opened.answer.rounds))
                assert opened.kept.draws[..., 0].size == n
                seen.append((n, opened.stopped))

    target, settings = KINDS["weights"]
    settings = {**settings, "path": tmp_path / "a", "observers": [Looks()], **SIZES}
    run = sk.sample(target(Counted()), **settings)
    ends = np.cumsum([len(each) for each in run.answer.rounds])
    assert {0} < {n for n, _ in seen} <= {0, *ends[:-1]}
    assert {stopped for _, stopped in seen} == {"interrupted"}


def test_draws_of_chains_that_took_over_are_opened(tmp_path, monkeypatch):
    monkeypatch.setattr("surrokit.run.weighing.complaint", lambda _: "of a doubt")
    target, settings = KINDS["weights"]
    settings = {**settings, "max_calls": 400}
    with pytest.warns(SamplingWarning, match="weighted answers are rejected: of a doubt"):
        run = sk.sample(target(Counted()), path=tmp_path / "a", **settings, **SIZES)
    opened = sk.open_run(tmp_path / "a")
    assert run.answer is None
    assert len(run.kept) > 0
    assert np.array_equal(opened.draws, run.draws)
    assert opened.verdict.named("weights") == run.verdict.named("weights")


def test_a_run_that_has_not_begun_is_not_opened(small, tmp_path):
    path = cut(small[1], tmp_path / "b", 0)
    change(path, FORGET_ACCOUNT)
    with pytest.raises(LedgerError, match=r"no iteration .* is written yet"):
        sk.open_run(path)


# --- places ---


def test_only_its_owner_can_read_it(tmp_path):
    before = os.umask(0)
    try:
        modes = []

        class Looks:
            def surrokit_transition_done(self, info, **_):
                modes.extend(stat.S_IMODE(p.stat().st_mode) for p in tmp_path.iterdir())

        sk.sample(plain(Counted()), path=tmp_path / "a", observers=[Looks()], **SMALL)
    finally:
        os.umask(before)
    assert set(modes) == {0o600}
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    with pytest.raises(LedgerError, match="cannot write"):
        sk.sample(plain(Counted()), path=tmp_path / "missing" / "a", **SMALL)


def test_a_missing_file_is_told(tmp_path):
    for read in (sk.open_run, sk.Ledger, lambda path: sk.resume(path, plain(Counted()))):
        with pytest.raises(LedgerError, match="cannot read"):
            read(tmp_path / "a")


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
            full = sqlite3.OperationalError("database or disk is full")
            full.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise full
        left[0] -= len(rows) * events

    monkeypatch.setattr(Store, "execute_many", fill)
    with pytest.raises(LedgerError, match=r"disk is full.*all that was written before is safe"):
        sk.sample(plain(Counted()), path=tmp_path / "a", **HMC)
    monkeypatch.undo()
    assert 0 < len(sk.Ledger(tmp_path / "a")) <= 2 * 40  # of two chains in a batch
    assert same(sk.resume(tmp_path / "a", plain(Counted())), run)


def test_a_finished_run_on_a_read_only_disk_is_read(small, tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    shutil.copy(small[1], folder / "a")
    (folder / "a").chmod(0o400)
    folder.chmod(0o500)
    try:
        assert call(HERE / "read_only.py", folder / "a").stdout.startswith("(2, 6, 3)")
    finally:
        folder.chmod(0o700)


def test_a_file_that_was_never_finished_is_in_nobodys_way():
    """Whatever ends a process that makes a file, the run is sampled or resumed afterwards."""
    told = json.loads(call(HERE / "killed_early.py").stdout)
    assert told["ended"] > 8
    assert set(told["after"]) == {"well"}


def test_another_folder_to_work_in_changes_no_file(tmp_path, monkeypatch):
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        folder.mkdir()
    (other / "a.lock").write_text("process 1\n")
    monkeypatch.chdir(one)

    def value_and_gradient(q):
        os.chdir(other)
        return 0.5 * q @ q, q

    target = sk.potential(value_and_gradient=value_and_gradient, dim=3)
    run = sk.sample(target, path="a", **SMALL)
    assert (other / "a.lock").exists()
    assert sorted(path.name for path in one.iterdir()) == ["a"]
    assert run.extend(draws=2).draws.shape == (2, 8, 3)
    assert not (other / "a").exists()


# --- locks ---


def test_two_writers_of_one_file_are_refused(tmp_path):
    errors = []

    class Tries:
        def surrokit_run_started(self, run):
            for write in (
                lambda: sk.resume(tmp_path / "a", plain(Counted())),
                lambda: sk.sample(plain(Counted()), path=tmp_path / "a", **{**SMALL, "seed": 9}),
            ):
                with pytest.raises(LedgerError, match="is being written by a run") as caught:
                    write()
                errors.append(str(caught.value))

    sk.sample(plain(Counted()), path=tmp_path / "a", observers=[Tries()], **SMALL)
    assert len(errors) == 2
    assert sk.resume(tmp_path / "a", plain(Counted())).stopped == "draws"


def test_another_process_is_refused_until_the_first_dies(tmp_path):
    code = (
        "import sys; from pathlib import Path; from surrokit.ledger.store import Lock\n"
        "lock = Lock(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "a")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    holder = subprocess.Popen(command, **pipes)
    try:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(LedgerError, match="is being written by a run"):
            Lock(tmp_path / "a")
    finally:
        holder.kill()
        holder.communicate()
    Lock(tmp_path / "a").release()


def test_a_file_that_another_program_holds_is_not_called_damaged(small, tmp_path):
    path = shutil.copy(small[1], tmp_path / "a")
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("PRAGMA locking_mode = EXCLUSIVE")
    holder.execute("BEGIN EXCLUSIVE")
    holder.execute("UPDATE facts SET value = value")
    with pytest.raises(LedgerError, match="is held by another process"):
        sk.open_run(path)
    holder.close()
    assert sk.open_run(path).draws.shape == (2, 6, 3)


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
def test_the_ledger_of_another_target_is_refused(other, message, small, tmp_path):
    path = shutil.copy(small[1], tmp_path / "a")
    with pytest.raises(LedgerError, match=message):
        sk.resume(path, other())
    assert sk.resume(path, plain(Counted())).stopped == "draws"  # the lock is free again


@pytest.mark.parametrize(
    "other", [{"data": (0.5, 0.3, 0.2)}, {"noise_sd": 0.41}, {"prior_sd": 1.1}]
)
def test_a_run_on_other_data_noise_or_priors_is_another_one(other, whole, tmp_path):
    """Its draws are not taken for theirs, but outputs that the map had are evaluated by it."""
    path = shutil.copy(whole("sub-chain")[1], tmp_path / "a")
    with pytest.raises(LedgerError, match=r"finished run in .* cannot be repeated"):
        sk.resume(path, forward(Counted(), **other))
