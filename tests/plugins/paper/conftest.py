"""What tests of the paper's figures share: a look at what was sampled, and cases by name."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import surrokit as sk
from surrokit.output.files import plain


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
def sizes_of():
    """Return the settings of a figure, with some changed."""

    def sizes(figure, **settings):
        return SimpleNamespace(**{**figure.FULL, "seed": 1, "data": None, **settings})

    return sizes


@pytest.fixture(scope="session")
def run_case(sizes_of):
    """Do the case of a figure with a name, and return the finished row."""

    def run(figure, name, **settings):
        sizes = sizes_of(figure, **settings)
        (case,) = (c for c in figure.cases(sizes) if "/".join(map(str, c.values())) == name)
        return plain({**case, **figure.run(case, sizes)}, name)

    return run
