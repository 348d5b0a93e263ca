"""Histories: iterations put together as arrays, in memory or in a file."""

from __future__ import annotations

import errno

import numpy as np
import pytest

from surrokit.capabilities import CALL_KINDS
from surrokit.coordinates.transforms import Transform
from surrokit.errors import LedgerError
from surrokit.history import BLOCK, EXTENT, FileScratch, History, Scratch, scratch_for
from surrokit.interfaces import ChainState, StepInfo

CHAINS, DIM, N = 2, 3, 2 * BLOCK + 17
LINE = Transform(lower=np.full(DIM, -np.inf), upper=np.full(DIM, np.inf))


def iteration(i, outputs=True, ends=None):
    state = ChainState(
        positions=i + 0.1 * np.arange(CHAINS * DIM).reshape(CHAINS, DIM),
        values=np.full(CHAINS, 10.0 + i),
        cache={},
    )
    info = StepInfo(
        accepted=np.array([i % 2 == 0, True]),
        acceptance=np.array([1.0 / (1.0 + i), np.nan]),
        path_acceptance=np.ones(CHAINS),
        status=np.zeros(CHAINS, dtype=np.int64),
        divergent=np.zeros(CHAINS, dtype=bool),
        n_steps=np.full(CHAINS, i),
        ends=ends,
    )
    return (state, info), {
        "step_size": 0.5,
        "seconds": 0.25 * i,
        "failures": i // 3,
        "calls": dict.fromkeys(CALL_KINDS, i),
        "outputs": np.full((CHAINS, 4), 2.0 * i) if outputs else None,
    }


def history(n=N, scratch=None, start=0, **options):
    made = History(CHAINS, DIM, scratch)
    for i in range(start, start + n):
        given, named = iteration(i, **options)
        made.add(*given, **named)
    return made


@pytest.fixture(params=["memory", "file"])
def scratch(request, tmp_path):
    return scratch_for(request.param, tmp_path / "run")


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name, array in one.items():
        assert np.array_equal(array, other[name], equal_nan=array.dtype.kind == "f"), name


@pytest.mark.parametrize("n", [0, 1, BLOCK - 1, BLOCK, N])
def test_columns_are_the_iterations_in_order(n, scratch):
    made = history(n, scratch)
    columns = made.columns()
    assert len(made) == n
    assert columns["positions"].shape == (n, CHAINS, DIM)
    assert np.array_equal(columns["positions"][:, 0, 0], np.arange(n))
    assert np.array_equal(columns["n_steps"][:, 1], np.arange(n))
    assert np.array_equal(columns["numbers"][:, 1], 0.25 * np.arange(n))
    assert made.positions().shape == (CHAINS, n, DIM)
    assert np.array_equal(made.positions()[1, :, 2], 0.5 + np.arange(n))


@pytest.mark.parametrize("start", [0, 3, BLOCK - 1, BLOCK, N - 1, N])
def test_columns_from_an_iteration_on(start, scratch):
    later = {name: array[start:] for name, array in history().columns().items()}
    found = history(N, scratch).columns(start)
    assert_same({name: found.get(name, array) for name, array in later.items()}, later)


@pytest.mark.parametrize("n", [0, 5, BLOCK, BLOCK + 5, N])
def test_what_is_split_and_extended_is_whole(n, scratch):
    first, later = history(N, scratch).split(n)
    assert (len(first), len(later)) == (n, N - n)
    assert np.array_equal(later.positions()[0, :, 0], np.arange(n, N))
    first.extend(later)
    assert_same(first.columns(), history().columns())


def test_the_last_iterations(scratch):
    moves, seconds, steps = history(N, scratch).last(20)
    last = np.arange(N - 20, N)
    assert moves == pytest.approx(0.5 * np.mean(1.0 / (1.0 + last)))
    assert seconds == pytest.approx(0.25)
    assert steps == pytest.approx(last.mean())


def test_what_some_iterations_lack_is_nan(scratch):
    made = history(BLOCK + 3, scratch, outputs=False)
    made.extend(history(4, scratch, start=BLOCK + 3, ends=np.ones((CHAINS, DIM))))
    trace = made.trace(LINE)
    assert np.isnan(trace.outputs[:, : BLOCK + 3]).all()
    assert np.array_equal(trace.outputs[0, -4:, 0], 2.0 * np.arange(BLOCK + 3, BLOCK + 7))
    assert np.isnan(trace.ends[:, : BLOCK + 3]).all()
    assert (trace.ends[:, -4:] == 1.0).all()
    assert history(3, outputs=False).trace(LINE).outputs is None


def test_a_trace_has_draws_in_the_users_coordinates(scratch):
    transform = Transform(
        lower=np.array([0.0, -np.inf, -1.0]), upper=np.array([np.inf, np.inf, 1.0])
    )
    trace = history(N, scratch).trace(transform)
    assert trace.draws.flags.c_contiguous
    np.testing.assert_allclose(trace.draws, transform.to_bounded(trace.positions))
    assert np.array_equal(trace.seconds, 0.25 * np.arange(N))
    assert np.array_equal(trace.calls["gradient"], np.arange(N))


def test_rooms_do_not_overlap(tmp_path):
    room = FileScratch(tmp_path)
    arrays = [room.empty((3, 5), np.float64) for _ in range(4)]
    arrays += [room.empty((EXTENT // 8 + 7,), np.float64), room.empty((9,), np.bool_)]
    for i, array in enumerate(arrays):
        array[...] = i
    for i, array in enumerate(arrays):
        assert (array == (i > 0 if array.dtype == bool else i)).all()
    assert list(tmp_path.iterdir()) == []  # the file has no name


def test_a_copy_is_in_the_order_of_its_rows(scratch):
    array = np.swapaxes(np.arange(24.0).reshape(4, 3, 2), 0, 1)
    copy = scratch.copy(array)
    assert copy.flags.c_contiguous
    assert np.array_equal(copy, array)
    assert Scratch().fresh().empty((2,), float).shape == (2,)


def test_a_full_disk_is_told(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("surrokit.history._reserve", refuse)
    with pytest.raises(LedgerError, match=r"No space left on device.*make room, and go on"):
        history(N, FileScratch(tmp_path))


def test_a_folder_that_is_not_there_is_told(tmp_path):
    with pytest.raises(LedgerError, match="cannot keep draws in a file in"):
        FileScratch(tmp_path / "none")
