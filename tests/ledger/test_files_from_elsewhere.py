"""A file is data: whatever it names, nothing is imported or called."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from ledgers import SIZES, Counted, plain

import surrokit as sk
from surrokit.errors import ConfigurationError

HERE = Path(__file__).parent

ESTIMATOR = ("sklearn", {"estimator": "sklearn.kernel_ridge.KernelRidge"})
LEARNING = {"sampler": "hmc", "surrogate": ESTIMATOR, "warmup": 20, "draws": 10, **SIZES}

pytestmark = pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")


def read_hostile_files(n):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
    command = [sys.executable, str(HERE / "hostile.py"), str(n)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("n", [60, pytest.param(1000, marks=pytest.mark.long)])
def test_nothing_that_a_file_names_is_imported_or_called(n):
    told = read_hostile_files(n)
    assert told == {"found": [], "raw": []}


def test_an_estimator_is_given_again(tmp_path):
    path = tmp_path / "a"
    run = sk.sample(plain(Counted()), path=path, **LEARNING)
    assert run.extend(draws=5).draws.shape[1] == 15
    with pytest.raises(ConfigurationError, match=r"no file may give.* surrogate \(sklearn\)\. P"):
        sk.resume(path, plain(Counted()), progress=False)
    again = sk.resume(path, plain(Counted()), surrogate=ESTIMATOR, progress=False)
    assert np.array_equal(again.draws[:, :10], run.draws)
    assert sk.open_run(path).draws.shape[1] == 15


def test_a_study_is_given_its_estimator_again(tmp_path):
    path = tmp_path / "a"
    study = sk.study(
        path, dim=3, gradients=True, **{k: v for k, v in LEARNING.items() if k != "progress"}
    )
    asked = study.ask()
    assert len(asked)
    with pytest.raises(ConfigurationError, match="Pass them again, as surrogate="):
        sk.study(path)
    study = sk.study(path, surrogate=ESTIMATOR)
    study.tell(asked, -0.5 * (asked**2).sum(axis=1), gradients=-asked)
    assert len(study.ask())


def test_settings_that_are_plain_data_are_in_the_file(tmp_path):
    settings = {
        "sampler": ("sub-chain", {"kernel": ("hmc", {"metric": ("diagonal", {})}), "length": 3}),
        "surrogate": ("gp", {"hyperparameters": None, "noise": 0.1, "mean": "linear"}),
        "schedule": ("greville", {"rate": "logarithmic", "freeze_after": 5}),
        "explorer": ("rounds", {"box": (np.full(3, -4.0), 4.0), "evaluations": 25}),
        "warmup": 30,
        "draws": 5,
    }
    run = sk.sample(plain(Counted()), path=tmp_path / "a", **settings, **SIZES)
    again = sk.resume(tmp_path / "a", plain(Counted()), progress=False)
    assert np.array_equal(run.draws, again.draws)
