"""Runs with files go on with any workers, and give the same draws."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

import models
import surrokit as sk
from models import SIZES
from surrokit.cli.main import cli

OPTIONS = {**SIZES, "sampler": "hmc"}
pytestmark = pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")


def target():
    return sk.potential(models.value, models.gradient, dim=2)


@pytest.fixture(scope="module")
def whole():
    return sk.sample(target(), **{**OPTIONS, "draws": 40})


def test_other_workers_give_the_same_draws(tmp_path, whole):
    path = tmp_path / "run.surrokit"
    sk.sample(target(), **OPTIONS, path=path, compute=sk.Compute(executor="threads", workers=3))
    run = sk.resume(path, target(), draws=40, progress=False, compute=sk.Compute(workers=1))
    np.testing.assert_array_equal(run.draws, whole.draws)
    assert run.calls == whole.calls


def test_a_run_is_extended_by_the_workers_that_it_had(tmp_path, whole):
    path = tmp_path / "run.surrokit"
    folder = tmp_path / "pids"
    folder.mkdir()
    noted = sk.potential(models.Noted(folder), dim=2)
    options = {**OPTIONS, "sampler": "random-walk", "path": path}
    run = sk.sample(noted, compute=sk.Compute(executor="processes", workers=1), **options)
    before = len(list(folder.iterdir()))
    longer = run.extend(10)
    assert longer.draws.shape[1] == run.draws.shape[1] + 10
    assert len(list(folder.iterdir())) > before  # other processes of the same kind
    again = longer.extend(5, compute=sk.Compute())
    assert again.draws.shape[1] == longer.draws.shape[1] + 5


MODEL = """
import surrokit as sk
from neighbour import SCALE

def value(q):
    return float(q @ q / SCALE)

bell = sk.potential(value, lambda q: 2.0 * q / SCALE, dim=2)
rows = sk.potential(lambda q: (q**2).sum(axis=1) / SCALE, dim=2, batched=True)
"""
SMALL = ["--sampler", "hmc", "--warmup", "20", "--draws", "10", "--seed", "1"]


def call(*arguments, json_path):
    result = CliRunner().invoke(cli, [*map(str, arguments), "--json", str(json_path)])
    assert result.exception is None, result.output
    figures = json.loads(json_path.read_text())
    return {name: figures[name] for name in ("calls", "acceptance", "draws")}


@pytest.mark.filterwarnings("ignore")
def test_the_command_line_has_workers(tmp_path):
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "neighbour.py").write_text("SCALE = 2.0\n")
    bell, out = f"{tmp_path / 'model.py'}:bell", tmp_path / "out.json"
    alone = call("sample", bell, *SMALL, json_path=out)
    file = tmp_path / "run.surrokit"
    assert call("sample", bell, *SMALL, "--workers", 1, "--path", file, json_path=out) == alone
    more = ("--executor", "threads", "--workers", 2)
    assert call("resume", file, bell, "--draws", 15, *more, json_path=out)["draws"] == 15


@pytest.mark.filterwarnings("ignore")
def test_rows_are_parted_by_an_option(tmp_path):
    (tmp_path / "model2.py").write_text(MODEL)
    (tmp_path / "neighbour.py").write_text("SCALE = 2.0\n")
    rows, out = f"{tmp_path / 'model2.py'}:rows", tmp_path / "out.json"
    options = [*SMALL, "--sampler", "random-walk", "--executor", "threads"]
    result = CliRunner().invoke(cli, ["sample", rows, *options])
    assert "one_by_one" in str(result.exception)
    assert call("sample", rows, *options, "--one-by-one", json_path=out)["draws"] == 10
