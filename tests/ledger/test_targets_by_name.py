"""Runs go on without their target where their file may name it; else errors say how to give it."""

from __future__ import annotations

import json
import sqlite3

import numpy as np
import pytest
from click.testing import CliRunner
from ledgers import Counted, plain

import surrokit as sk
from surrokit.cli.main import cli
from surrokit.errors import ConfigurationError

SMALL = {"sampler": "hmc", "warmup": 20, "draws": 10, "chains": 2, "seed": 1, "progress": False}
OPTIONS = ["--sampler", "hmc", "--warmup", "20", "--draws", "10", "--chains", "2", "--seed", "1"]

pytestmark = pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")


def call(*arguments):
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


@pytest.mark.parametrize(
    "target", ["gaussian", ("gaussian", {"mean": (1.5, 0.5)}), ("banana", {"n_observations": 20})]
)
def test_a_registered_target_is_in_the_file(tmp_path, target):
    run = sk.sample(target, path=tmp_path / "a", **SMALL)
    again = sk.resume(tmp_path / "a", draws=14, progress=False)
    assert np.array_equal(again.draws[:, :10], run.draws)
    longer = sk.open_run(tmp_path / "a").extend(3, progress=False)
    assert np.array_equal(longer.draws[:, :14], again.draws)


def test_the_command_resumes_without_a_target(tmp_path):
    name = ["gaussian", "--set", "target.mean=1.5,0.5"]
    done = call("sample", *name, *OPTIONS, "--path", tmp_path / "a")
    assert done.exit_code == 0, done.output
    assert call("resume", tmp_path / "a", "--draws", 12).exit_code == 0
    assert sk.open_run(tmp_path / "a").asked["target"] == ("gaussian", {"mean": (1.5, 0.5)})
    assert sk.open_run(tmp_path / "a").draws.shape == (2, 12, 2)


def test_settings_of_a_target_are_not_given_without_one(tmp_path):
    call("sample", "gaussian", *OPTIONS, "--path", tmp_path / "a")
    for more in (["--set", "target.dim=3"], ["--one-by-one"]):
        assert "give TARGET after FILE" in str(call("resume", tmp_path / "a", *more).exception)


def test_any_other_target_is_given_again_and_the_error_says_how(tmp_path):
    target = plain(Counted())
    sk.sample(target, path=tmp_path / "a", **SMALL)
    advice = r"Give it again: surrokit\.resume\('a', target, \.\.\.\), or surrokit resume a TARGET"
    with pytest.raises(ConfigurationError, match=advice):
        sk.open_run(tmp_path / "a").extend(5)
    with pytest.raises(ConfigurationError, match=advice):
        sk.resume(tmp_path / "a", progress=False)
    longer = sk.open_run(tmp_path / "a").extend(5, target=target, progress=False)
    assert longer.draws.shape[1] == 15


@pytest.mark.parametrize(
    "named",
    [
        {"tuple": ["umbridge", {"dict": {"url": "http://localhost:1"}}]},  # text may be an address
        {"tuple": ["logistic", {"dict": {"design": "/etc/passwd", "response": "y"}}]},
        {"tuple": ["gaussian", {"dict": {"mean": {"dict": {"call": "os.system"}}}}]},
        {"tuple": ["stan", {"dict": {"path": "model.stan"}}]},
        ["gaussian"],
        7,
    ],
)
def test_a_file_names_nothing_but_registered_targets_and_plain_data(tmp_path, named):
    sk.sample("gaussian", path=tmp_path / "a", **SMALL)
    file = sqlite3.connect(tmp_path / "a")
    (text,) = file.execute("SELECT value FROM facts WHERE name = 'settings'").fetchone()
    changed = json.dumps({**json.loads(text), "target": named})
    file.execute("UPDATE facts SET value = ? WHERE name = 'settings'", (changed,))
    file.commit()
    file.close()
    with pytest.raises(ConfigurationError, match="does not hold the run's target"):
        sk.resume(tmp_path / "a", progress=False)
