"""Files where nobody can write, that others hold, that were never finished, or that are hostile."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from ledgers import SIZES, Counted, plain

import surrokit as sk
from surrokit.errors import EvaluationWarning, LedgerError

HERE = Path(__file__).parent
SMALL = {"sampler": "hmc", "warmup": 6, "draws": 6, **SIZES}

pytestmark = [
    pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning"),
    pytest.mark.skipif(os.name != "posix", reason="permissions, forks and pipes of POSIX"),
]


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    path = tmp_path_factory.mktemp("small") / "a"
    return sk.sample(plain(Counted()), path=path, **SMALL), path


def call(script, *arguments):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
    command = [sys.executable, str(HERE / script), *map(str, arguments)]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout.strip()


def change(path, *statements):
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def test_a_finished_run_on_a_read_only_disk_is_read(small, tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    shutil.copy(small[1], folder / "a")
    (folder / "a").chmod(0o400)
    folder.chmod(0o500)
    try:
        assert call("read_only.py", folder / "a").startswith("(2, 6, 3)")
    finally:
        folder.chmod(0o700)


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


def test_a_file_that_was_never_finished_is_in_nobodys_way():
    """Whatever ends a process that makes a file, the run is sampled or resumed afterwards."""
    told = json.loads(call("killed_early.py"))
    assert told["ended"] > 8
    assert set(told["after"]) == {"well"}


def test_another_folder_to_work_in_changes_no_file(tmp_path, monkeypatch):
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        folder.mkdir()
    (other / "a.lock").write_text("process 1\n")
    monkeypatch.chdir(one)
    paid = Counted()

    def value_and_gradient(q):
        paid()
        os.chdir(other)
        return 0.5 * q @ q, q

    target = sk.potential(value_and_gradient=value_and_gradient, dim=3)
    run = sk.sample(target, path="a", **SMALL)
    assert (other / "a.lock").exists()
    assert sorted(path.name for path in one.iterdir()) == ["a"]
    assert run.extend(draws=2).draws.shape == (2, 8, 3)
    assert not (other / "a").exists()


def test_tables_are_known_by_version_and_columns(small, tmp_path):
    path = shutil.copy(small[1], tmp_path / "a")
    change(path, "ALTER TABLE events ADD COLUMN more TEXT", "CREATE INDEX kinds ON events (kind)")
    assert np.array_equal(sk.open_run(path).draws, small[0].draws)
    again = sk.resume(path, plain(Counted()), draws=8, progress=False)
    assert again.draws.shape == (2, 8, 3)


HOSTILE = {
    "a view without an end": (
        "DROP TABLE events",
        "CREATE VIEW events AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) "
        "SELECT id, 'value' AS kind, 'done' AS outcome, '' AS stage, 0 AS iteration, 0 AS width, "
        "0.0 AS seconds, NULL AS shapes, NULL AS counts, NULL AS notes, NULL AS positions, NULL AS "
        "results, NULL AS readings, 0 AS crc FROM n WHERE id < 0",
    ),
    "a trigger": ("CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM facts; END",),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_is_no_table_is_never_read(small, tmp_path, what):
    path = shutil.copy(small[1], tmp_path / "a")
    change(path, *HOSTILE[what])
    code = (
        "import sys\n"
        "from surrokit.errors import LedgerError\nfrom surrokit.ledger.salvage import salvage\n"
        "try: salvage(sys.argv[1], sys.argv[1] + '.new')\n"
        "except LedgerError as error: print(error)"
    )
    command = [sys.executable, "-c", code, str(path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=20, check=True
    )
    assert "does not have the tables of a ledger" in done.stdout
    with pytest.raises(LedgerError, match="no ledger of surrokit"):
        sk.open_run(path)


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


def test_each_failure_keeps_its_message_within_bounds(tmp_path):
    paid = Counted()

    def log_density(q):
        paid()
        if q[0] > 0.3:
            raise ValueError(f"failure {paid.n} begins " + "x" * 200_000 + f" ends {paid.n}")
        return -0.5 * q @ q

    path = tmp_path / "a"
    target = sk.potential(log_density=log_density, dim=2)
    settings = {**SMALL, "sampler": "random-walk", "warmup": 40}
    with pytest.warns(EvaluationWarning):
        run = sk.sample(target, path=path, initial=np.zeros(2) - 1.0, **settings)
    with sk.Ledger(path) as ledger:
        messages = [message for message in ledger.to_arrays()["message"] if message]
    assert len(messages) >= run.failures > 5
    assert len(set(messages)) == len(messages)
    assert all(len(message) < 2100 and " characters ...] " in message for message in messages)
    numbers = [message.split()[3] for message in messages]
    assert all(f"ends {n} (" in m for n, m in zip(numbers, messages, strict=True))
    assert path.stat().st_size < 4000 * len(messages) + 200_000
