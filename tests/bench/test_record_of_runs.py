"""The record of runs: equal runs are equal, and whatever changes is told."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest

import surrokit as sk


def run_of(seed=1, shift=0.0, change=None, **options):
    """Do a short run; ``change`` is called with it before it is hashed."""
    target = sk.potential(lambda q: 0.5 * (q - shift) @ q, lambda q: q - 0.5 * shift, dim=2)
    sizes = {"warmup": 20, "draws": 10, "chains": 2, "progress": False}
    run = sk.sample(target, sampler=("hmc", options), seed=seed, **sizes)
    if change is not None:
        change(run)
    return run


@pytest.fixture
def record():
    from record_of_runs import fingerprint_of

    return {"a": fingerprint_of(run_of), "b": fingerprint_of(lambda: run_of(2))}


def test_the_same_runs_are_equal_and_one_changed_draw_is_seen(record):
    from record_of_runs import differences, fingerprint_of

    def change(run):
        run.kept.draws[1, 4, 0] = np.nextafter(run.kept.draws[1, 4, 0], np.inf)

    again = {"a": fingerprint_of(run_of), "b": fingerprint_of(lambda: run_of(2))}
    assert differences(record, json.loads(json.dumps(again))) == []
    changed = {**record, "a": fingerprint_of(lambda: run_of(change=change))}
    for both in ((record, changed), (changed, record)):
        assert differences(*both) == ["a: kept draws"]


def test_a_changed_kernel_is_told_with_all_that_differs(record):
    from record_of_runs import differences, fingerprint_of

    changed = {**record, "b": fingerprint_of(lambda: run_of(2, shift=1e-9))}
    (line,) = differences(record, changed)
    assert line.startswith("b: kept draws, kept values, ")
    longer = {**record, "b": fingerprint_of(lambda: run_of(2, n_steps=9))}
    (line,) = differences(record, longer)
    assert ", gradient calls " in line
    assert " -> " in line


def test_runs_that_are_missing_or_raise_differ_unless_only_some_were_asked_for(record):
    from record_of_runs import differences, fingerprint_of

    some = {"a": record["a"]}
    assert differences(record, some) == ["b: only before"]
    assert differences(record, some, all_of_them=False) == []
    assert differences(some, record) == ["b: only after"]
    raised = fingerprint_of(lambda: 1 / 0)
    assert raised["raised"] == "ZeroDivisionError"
    assert "raised None -> ZeroDivisionError" in differences(record, {**record, "a": raised})[0]


def test_hashes_tell_bits_and_shapes():
    from record_of_runs import digest

    zeros = np.zeros((2, 3))
    assert digest(zeros) == digest(zeros.copy())
    assert digest(zeros) not in (digest(zeros.T), digest(-zeros))
    assert digest([np.nan]) == digest([-np.nan])
    assert digest(None) is None


def test_clocks_tick_by_readings_alone():
    from record_of_runs import ticking

    real = time.perf_counter
    with ticking():
        assert time.perf_counter() == 0.0
        time.sleep(0.01)
        assert time.perf_counter() == 1e-6
    assert time.perf_counter is real


def test_every_run_has_a_target():
    from record_of_runs import OPTIONS, all_runs, targets

    assert {name.split()[-1] for name in OPTIONS} == set(targets())
    assert len(all_runs()) > 50
