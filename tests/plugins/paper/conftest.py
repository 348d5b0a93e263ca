"""Fixtures for tests of the paper's experiments."""

from __future__ import annotations

import pytest

import surrokit as sk


@pytest.fixture
def sampled(monkeypatch):
    """Arguments and run of each call of ``sk.sample``, in order."""
    calls = []
    real = sk.sample

    def sample(target, **arguments):
        run = real(target, **arguments)
        calls.append((arguments, run))
        return run

    monkeypatch.setattr(sk, "sample", sample)
    return calls
