"""The record of runs: equal runs are equal, and whatever changes is told."""

from __future__ import annotations

import copy
import json
import time

import numpy as np
import pytest

import surrokit as sk

SIZES = {"warmup": 20, "draws": 10, "chains": 2, "progress": False}


def target(shift=0.0):
    return sk.potential(lambda q: 0.5 * (q - shift) @ q, lambda q: q - 0.5 * shift, dim=2)


def run_of(seed=1, shift=0.0, **options):
    return sk.sample(target(shift), sampler=("hmc", options), seed=seed, **SIZES)


@pytest.fixture
def record():
    from record.runner import of_run

    return {"made_with": {"numpy": "2"}, "runs": {"a": of_run(run_of()), "b": of_run(run_of(2))}}


def test_the_same_runs_are_equal(record):
    from record.runner import of_run
    from record_of_runs import differences

    again = {"made_with": {}, "runs": {"a": of_run(run_of()), "b": of_run(run_of(2))}}
    assert differences(record, json.loads(json.dumps(again))) == []


def test_one_changed_draw_is_seen(record):
    from record.runner import of_run
    from record_of_runs import differences

    run = run_of()
    run.kept.draws[1, 4, 0] = np.nextafter(run.kept.draws[1, 4, 0], np.inf)
    changed = {**record, "runs": {**record["runs"], "a": of_run(run)}}
    for both in ((record, changed), (changed, record)):
        assert differences(*both) == ["a: draws (kept)"]


def test_a_changed_kernel_is_told_with_all_that_differs(record):
    from record.runner import of_run
    from record_of_runs import differences

    changed = {**record, "runs": {**record["runs"], "b": of_run(run_of(2, shift=1e-9))}}
    (line,) = differences(record, changed)
    assert line.startswith("b: draws (kept, kept positions, warmup, ")
    assert "kept values" in line
    longer = {**record, "runs": {**record["runs"], "b": of_run(run_of(2, n_steps=9))}}
    (line,) = differences(record, longer)
    assert ", calls (" in line
    assert "gradient " in line
    assert " -> " in line


def test_runs_that_are_missing_differ_unless_only_some_were_asked_for(record):
    from record_of_runs import differences

    some = {**record, "runs": {"a": record["runs"]["a"]}}
    assert differences(record, some) == ["b: only before"]
    assert differences(record, some, all_runs=False) == []
    assert differences(some, record) == ["b: only after"]


def test_the_report_ends_with_a_status(record, capsys):
    from record_of_runs import report

    assert report(record, record) == 0
    assert "all 2 runs are equal" in capsys.readouterr().out
    changed = copy.deepcopy(record)
    changed["made_with"]["numpy"] = "3"
    changed["runs"]["a"]["draws"]["kept"] = "#other"
    assert report(record, changed) == 1
    printed = capsys.readouterr().out
    assert "DIFFERS  a: draws (kept)" in printed
    assert "numpy: 2, now 3" in printed


def test_hashes_tell_bits_and_shapes_but_not_kinds():
    from record.runner import digest

    zeros = np.zeros((2, 3))
    assert digest(zeros) == digest(zeros.copy())
    assert digest(zeros) != digest(zeros.T)
    assert digest(zeros) != digest(-zeros)
    assert digest(np.array([np.nan])) == digest(np.array([-np.nan]))
    assert digest(np.array([1, 0], dtype=np.int32)) == digest(np.array([True, False]))
    assert digest(None) is None
    with pytest.raises(TypeError, match="only numbers can be hashed"):
        digest(np.array(["a"]))


def test_time_passes_where_a_target_says_so():
    from record.clock import costly, simulated

    slow = costly(lambda x: x + 1, 2.5)
    with simulated() as clock:
        clock.reset()
        began = time.perf_counter()
        assert slow(1) == 2
        assert time.perf_counter() - began == pytest.approx(2.5)
        assert time.process_time() > 0
    assert time.perf_counter is not clock.perf_counter


def test_every_run_has_a_name_of_its_own():
    from record.runner import all_runs

    runs = all_runs()
    assert len(runs) > 130
    assert all(callable(run) for run in runs.values())
