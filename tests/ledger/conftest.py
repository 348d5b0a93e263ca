from __future__ import annotations

import pytest
from ledgers import KINDS, SIZES, SMALL, Counted, plain

import surrokit as sk


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """Return the run of a kind that nothing interrupted, and its file; each is made once."""
    made = {}

    def make(kind):
        if kind not in made:
            path = tmp_path_factory.mktemp("whole") / f"{kind}.surrokit"
            target, settings = KINDS[kind]
            run = sk.sample(target(Counted()), path=path, **settings, **SIZES)
            made[kind] = run, path
        return made[kind]

    return make


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """A run of few evaluations, so that much of its file is structure."""
    path = tmp_path_factory.mktemp("small") / "a"
    return sk.sample(plain(Counted()), path=path, **SMALL), path
