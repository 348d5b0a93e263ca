"""What every story records, and how it runs a command as a person in a terminal does."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest


@pytest.fixture
def account(record_property):
    """Return a function that records the calls of a run; ``--junitxml`` writes them down."""
    began, used = time.perf_counter(), _used()

    def record(run):
        record_property("calls", dict(run.calls))
        return run

    yield record
    record_property("seconds", round(time.perf_counter() - began, 1))
    record_property("processor_seconds", round(_used() - used, 1))


def _used():
    return sum(os.times()[:4])


@pytest.fixture
def terminal(root, tmp_path):
    """Return a function that runs Python with these arguments in an empty folder."""

    def run(*arguments, paths=(), folder=tmp_path):
        known = [*map(str, paths), *filter(os.path.isdir, sys.path)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(known), "COLUMNS": "80"}
        done = subprocess.run(
            [sys.executable, *map(str, arguments)],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run
