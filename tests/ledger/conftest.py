from __future__ import annotations

import pytest
from ledgers import KINDS, SIZES, Counted

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
