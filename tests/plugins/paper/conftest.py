"""What tests of the paper's experiments share: toys of rows, and a look at what was sampled."""

from __future__ import annotations

import pytest

import surrokit as sk
from surrokit_paper.harness import Conditions, Finished


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


@pytest.fixture(scope="session")
def named():
    """Find the row of an experiment by its name."""
    return lambda experiment, name: {row.name: row for row in experiment.rows()}[name]


@pytest.fixture(scope="session")
def run_row(named):
    """Do the row of an experiment with a name, and return its result."""
    return lambda experiment, name, seed=1: experiment.run(
        named(experiment, name), Conditions(seed=seed)
    )


@pytest.fixture(scope="session")
def finished():
    """Make a finished row of settings and results."""
    return lambda name, settings, result: Finished(
        name=name, settings=settings, result=result, seconds=1.0
    )
