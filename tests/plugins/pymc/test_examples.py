"""The scripts that the tutorial includes run, and print what the page shows."""

from __future__ import annotations

import importlib.util
import warnings

import numpy as np
import pytest


@pytest.fixture
def run_example(root, pymc):
    import pytensor

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it may lack a BLAS, and says so once
        _ = pytensor.config.blas__ldflags
    path = root / "docs" / "_ext" / "run_examples.py"
    spec = importlib.util.spec_from_file_location("run_examples", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.run_example


@pytest.mark.long
def test_the_schools_run(run_example):
    names = run_example("pymc_schools.py")
    assert names["choate"].shape == (4, 1000)
    assert 2.5 < names["run"]["tau"].mean() < 4.5


@pytest.mark.long
def test_the_pupils_run(bambi, run_example, monkeypatch):
    names = run_example("bambi_pupils.py")
    assert 0.7 < names["run"]["hours"].mean() < 1.0
    predicted = names["tree"]["posterior"]["mu"].mean(("chain", "draw"))
    truth = 5.0 + 0.8 * np.array([2.0, 8.0]) + names["level"][[0, -1]]
    assert np.abs(predicted.values - truth).max() < 1.0
