"""Benchmarks are scripts: for each test their folder is on the path, and their modules go again."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
OURS = {path.stem for path in FOLDER.iterdir() if path.is_dir() or path.suffix == ".py"}


@pytest.fixture(autouse=True)
def _bench(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] in OURS]:
        del sys.modules[name]
