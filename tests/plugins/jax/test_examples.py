"""The scripts that the tutorials include run, and print what the pages show."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest


@pytest.fixture
def run_example(root):
    path = root / "docs" / "_ext" / "run_examples.py"
    spec = importlib.util.spec_from_file_location("run_examples", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.run_example


@pytest.mark.long
def test_the_enzyme_runs(jax, run_example):
    names = run_example("jax_enzyme.py")
    assert 180.0 < names["run"]["top"].mean() < 240.0
    assert names["target"].dim == 2


@pytest.mark.long
def test_the_schools_run(numpyro, run_example):
    names = run_example("numpyro_schools.py")
    assert names["drawn"]["effects"].shape == (4000, 8)
    assert np.isfinite(names["drawn"]["effects"]).all()
