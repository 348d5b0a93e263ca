"""Damaged files give clear errors, and what can be read of them is kept."""

from __future__ import annotations

import shutil
import warnings

import numpy as np
import pytest
from ledgers import KINDS, Counted, plain

import surrokit as sk
from surrokit.errors import LedgerError
from surrokit.ledger.salvage import salvage

TARGET = KINDS["hmc"][0]


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
        first = int(rng.integers(min(len(data), 2000)))
        data[first] = int(rng.integers(256))
    return bytes(data)


def read_all(path, tmp_path, number):
    """Read a file in every way; return the kinds of errors, which must be clear ones."""
    kinds = []

    def look():
        with sk.Ledger(path) as ledger:
            ledger.to_arrays()

    def rescue():
        new = tmp_path / f"new{number}"
        salvage(path, new)
        with sk.Ledger(new) as ledger:
            ledger.to_arrays()
        new.unlink()

    for read in (look, lambda: sk.open_run(path), rescue):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                read()
        except LedgerError as error:
            kinds.append(str(error))
    return kinds


def fuzz(n, seed, source, tmp_path):
    rng, refused = np.random.default_rng(seed), 0
    whole = source.read_bytes()
    for i in range(n):
        path = tmp_path / "a"
        path.write_bytes(damage(whole, rng))
        refused += bool(read_all(path, tmp_path, i))
        for beside in tmp_path.glob("a-*"):
            beside.unlink()
    return refused


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A ledger of few evaluations, so that much of it is structure."""
    path = tmp_path_factory.mktemp("small") / "a"
    sizes = {"sampler": "hmc", "chains": 2, "warmup": 6, "draws": 6, "seed": 1, "progress": False}
    sk.sample(plain(Counted()), path=path, **sizes)
    return path


def test_damaged_files_give_clear_errors(small, tmp_path):
    assert fuzz(200, 1, small, tmp_path) > 100


@pytest.mark.long
def test_ten_thousand_damaged_files_give_clear_errors(small, tmp_path):
    assert fuzz(10_000, 2, small, tmp_path) > 5000


def test_a_damaged_evaluation_is_never_believed(whole, tmp_path):
    """Whatever is changed in an evaluation, its checksum tells."""
    _, path = whole("hmc")
    data = path.read_bytes()
    with sk.Ledger(path) as ledger:
        value = ledger.to_arrays()["gradients"][200]
    at = data.index(value.tobytes())
    broken = tmp_path / "a"
    broken.write_bytes(data[: at + 3] + bytes([data[at + 3] ^ 1]) + data[at + 4 :])
    with pytest.raises(LedgerError, match=r"checksum .*surrokit show --salvage"):
        sk.resume(broken, plain(Counted()))


def test_a_run_goes_on_from_what_was_salvaged(whole, tmp_path):
    run, path = whole("hmc")
    data = bytearray(path.read_bytes())
    with sk.Ledger(path) as ledger:
        table = ledger.to_arrays()
    at = data.index(table["gradients"][300].tobytes())
    data[at] ^= 255
    (tmp_path / "a").write_bytes(bytes(data))
    told = salvage(tmp_path / "a", tmp_path / "b")
    assert told.lost == 1
    assert told.replayable == table["order"][300] - 1
    assert told.apart > 50
    paid = Counted()
    again = sk.resume(tmp_path / "b", plain(paid), check=False)
    assert np.array_equal(again.draws, run.draws)
    assert paid.n < sum(run.calls.values()) - 250


def test_a_truncated_file_keeps_its_first_evaluations(whole, tmp_path):
    run, path = whole("hmc")
    data = path.read_bytes()
    (tmp_path / "a").write_bytes(data[: len(data) // 2])
    with pytest.raises(LedgerError, match="is damaged"):
        sk.Ledger(tmp_path / "a").to_arrays()
    told = salvage(tmp_path / "a", tmp_path / "b")
    assert told.replayable > 20
    assert np.array_equal(sk.resume(tmp_path / "b", plain(Counted())).draws, run.draws)


def test_of_an_empty_shell_nothing_is_kept(tmp_path, whole):
    data = whole("hmc")[1].read_bytes()
    (tmp_path / "a").write_bytes(data[:1024])
    with pytest.raises(LedgerError, match="nothing can be kept"):
        salvage(tmp_path / "a", tmp_path / "b")
    assert not (tmp_path / "b").exists()


def test_salvage_does_not_overwrite(whole, tmp_path):
    path = shutil.copy(whole("hmc")[1], tmp_path / "a")
    with pytest.raises(LedgerError, match="exists"):
        salvage(path, path)
