"""Histories: iterations put together as arrays."""

from __future__ import annotations

import numpy as np
import pytest

from surrokit.capabilities import CALL_KINDS
from surrokit.coordinates.transforms import Transform
from surrokit.history import BLOCK, History
from surrokit.interfaces import ChainState, StepInfo

CHAINS, DIM, N = 2, 3, 2 * BLOCK + 17


def history(n=N, start=0, outputs=True, ends=None):
    made = History(CHAINS, DIM)
    for i in range(start, start + n):
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
        made.add(
            state,
            info,
            step_size=0.5,
            seconds=0.25 * i,
            failures=i // 3,
            calls=dict.fromkeys(CALL_KINDS, i),
            beside={"outputs": np.full((CHAINS, 4), 2.0 * i)} if outputs else {},
        )
    return made


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name, array in one.items():
        assert np.array_equal(array, other[name], equal_nan=array.dtype.kind == "f"), name


@pytest.mark.parametrize("n", [0, 1, BLOCK - 1, BLOCK, N])
def test_columns_are_the_iterations_in_order(n):
    made = history(n)
    columns = made.columns()
    assert len(made) == n
    assert columns["positions"].shape == (n, CHAINS, DIM)
    assert np.array_equal(columns["positions"][:, 0, 0], np.arange(n))
    assert np.array_equal(columns["n_steps"][:, 1], np.arange(n))
    assert np.array_equal(columns["numbers"][:, 1], 0.25 * np.arange(n))
    assert np.array_equal(made.positions()[1, :, 2], 0.5 + np.arange(n))


@pytest.mark.parametrize("n", [0, 5, BLOCK - 1, BLOCK, BLOCK + 5, N - 1, N])
def test_parts_of_a_history_are_those_of_the_whole(n):
    later = {name: array[n:] for name, array in history().columns().items()}
    found = history().columns(n)
    assert_same({name: found.get(name, array) for name, array in later.items()}, later)
    first, second = history().split(n)
    assert (len(first), len(second)) == (n, N - n)
    assert np.array_equal(second.positions()[0, :, 0], np.arange(n, N))
    first.extend(second)
    assert_same(first.columns(), history().columns())


def test_the_last_iterations():
    moves, seconds, steps = history().last(20)
    last = np.arange(N - 20, N)
    assert moves == pytest.approx(0.5 * np.mean(1.0 / (1.0 + last)))
    assert seconds == pytest.approx(0.25)
    assert steps == pytest.approx(last.mean())


def test_a_trace_has_draws_in_the_users_coordinates_and_nan_for_what_iterations_lack():
    bounds = {"lower": [0.0, -np.inf, -1.0], "upper": [np.inf, np.inf, 1.0]}
    transform = Transform(**{name: np.array(ends) for name, ends in bounds.items()})
    made = history(BLOCK + 3, outputs=False)
    made.extend(history(4, start=BLOCK + 3, ends=np.ones((CHAINS, DIM))))
    trace = made.trace(transform)
    assert trace.draws.flags.c_contiguous
    np.testing.assert_allclose(trace.draws, transform.to_bounded(trace.positions))
    assert np.array_equal(trace.seconds, 0.25 * np.arange(BLOCK + 7))
    assert np.array_equal(trace.calls["gradient"], np.arange(BLOCK + 7))
    assert np.isnan(trace.outputs[:, : BLOCK + 3]).all()
    assert np.array_equal(trace.outputs[0, -4:, 0], 2.0 * np.arange(BLOCK + 3, BLOCK + 7))
    assert np.isnan(trace.ends[:, : BLOCK + 3]).all()
    np.testing.assert_allclose(trace.ends[:, -4:], transform.to_bounded(np.ones((2, 4, DIM))))
    assert history(3, outputs=False).trace(transform).outputs is None
