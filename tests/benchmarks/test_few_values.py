"""The comparison of few values: its table, and what it keeps of a run that does not end."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parent
KEY = {"problem": "banana", "method": "gpry", "seed": 1}


def row(budget, **more):
    return {**KEY, "budget": budget, **more}


def test_a_failed_row_is_shown_as_failed():
    from few.table import table

    rows = [
        row(100, gskl=0.1, mmtv=0.02),
        row(100, status="failed"),
        row(200, status="over time"),
        {**row(200, gskl=0.3, mmtv=0.04, acceptance=0.5), "method": "surrokit"},
    ]
    lines = table(rows, ["banana"], ["surrokit", "gpry"]).splitlines()
    assert lines[0] == "| problem | method | 100 values | 200 values |"
    assert lines[2] == "| banana | surrokit | - | 0.3 / 0.04 (0.50) |"
    assert lines[3] == "| banana | gpry | 0.1 / 0.02, 1 failed | 1 over time |"


@pytest.mark.parametrize(
    ("code", "status", "message"),
    [
        ("raise ValueError('no box')", "failed", "ValueError: no box"),
        ("import time; time.sleep(60)", "over time", "not finished after 1 s"),
    ],
)
def test_a_run_that_does_not_end_is_kept_for_each_budget_it_lacks(tmp_path, code, status, message):
    from few_values import _run

    output = tmp_path / "rows.jsonl"
    done = row(100, gskl=0.1, mmtv=0.02)
    output.write_text(json.dumps(done) + "\n", encoding="utf-8")
    _run([sys.executable, "-c", code], output, KEY, [100, 200], patience=1.0)
    rows = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert rows == [done, row(200, status=status, message=message)]


def test_the_box_is_wide_about_the_plausible_range():
    from few.problems import Task

    reference = np.random.default_rng(1).standard_normal((1000, 2)) * [1.0, 10.0]
    task = Task(problem="banana", data=FOLDER, reference=reference, seed=1, budgets=[100])
    (low, high), (least, most) = task.plausible(), task.bounds()
    np.testing.assert_allclose(least + most, low + high)
    np.testing.assert_allclose(most - least, 2.0 * (high - low))
