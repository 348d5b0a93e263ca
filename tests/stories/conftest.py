"""What every story records."""

from __future__ import annotations

import os
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
