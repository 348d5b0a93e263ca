"""What tests of the paper's figures share: a look at what was sampled, and cases by name."""

from __future__ import annotations

import pytest

import surrokit as sk
from surrokit.output.files import plain
from surrokit_paper.harness import Conditions, chosen


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
def run_case():
    """Do the case of a figure with a name, and return the finished row."""

    def run(figure, name, seed=1):
        (case,) = chosen(figure, [name]).values()
        return plain({**case, **figure.run(case, Conditions(seed=seed))}, name)

    return run
