"""The script that the tutorial includes runs, with a model that httpstan compiles in its place."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from served_stan import ServedStan

UNCONSTRAINED = ["mu", "tau", *[f"eta.{i}" for i in range(1, 9)]]


@pytest.fixture
def run_example(root):
    path = root / "docs" / "_ext" / "run_examples.py"
    spec = importlib.util.spec_from_file_location("run_examples", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.run_example


@pytest.mark.long
def test_the_schools_run(run_example, monkeypatch):
    pytest.importorskip("httpstan", reason="httpstan is optional: tox -e adapters")
    bridgestan = pytest.importorskip("bridgestan", reason="BridgeStan is optional: tox -e adapters")

    def load(path, data):
        return ServedStan(Path(path).read_text(encoding="utf-8"), data, UNCONSTRAINED)

    monkeypatch.setattr(bridgestan, "StanModel", load)
    run = run_example("stan_schools.py")["run"]
    assert run["again"].shape == (4, 1000, 8)
    assert 2.5 < run["tau"].mean() < 4.5
    assert np.isfinite(run.draws).all()
