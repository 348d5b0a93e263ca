"""Programs on the command line: a file in TOML describes the target."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import surrokit as sk
from surrokit.cli.main import main
from surrokit.cli.target import resolve_target
from surrokit.errors import ConfigurationError, TargetError
from surrokit.programs.potential import read_program
from surrokit.targets.bounds import parameters_of

SIZES = [*("--sampler", "random-walk", "--chains", 2, "--warmup", 0), "--draws", 5, "--seed", 1]


@pytest.fixture
def describe(tmp_path, model):
    """Write a description of the model, and return its path."""

    def write(text):
        path = tmp_path / "model.toml"
        path.write_text(f"command = {json.dumps(model)}\n{text}")
        return path

    return write


@pytest.fixture
def surrokit(monkeypatch, capsys):
    """Run the command line in this process; return exit code and errors."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["surrokit", *map(str, arguments)])
        with warnings.catch_warnings(action="ignore"), pytest.raises(SystemExit) as caught:
            main()
        return caught.value.code, capsys.readouterr().err

    return run


def test_a_description_gives_the_target_of_its_keys(describe):
    path = describe("gradient = true\nparameters = ['a', 'b']\n")
    target = read_program(path, {})
    values, gradients = target.value_and_gradient(np.array([[1.0, 0.0]]))
    assert values == 0.6
    assert np.array_equal(gradients, [[1.4, 0.0]])


def test_parameters_may_have_bounds_and_shapes(describe):
    path = describe("[parameters]\na = [0, inf]\nb = { shape = 2, upper = 1 }\nc = {shape=[1, 2]}")
    specs = parameters_of(read_program(path, {})).specs
    assert [(each.shape, each.bounds) for each in specs.values()] == [
        ((), (0.0, np.inf)),
        ((2,), (-np.inf, 1.0)),
        ((1, 2), (-np.inf, np.inf)),
    ]


def test_a_map_has_data_and_a_prior(describe):
    path = describe(
        "jacobian = true\ndata = [0.5, 1, 0.2]\nnoise_sd = 0.3\nparameters = ['a', 'b']\n"
        "prior = { mean = 0, sd = [1, 2] }\nplausible = { a = [0, 1], b = [0, 1] }"
    )
    target = read_program(path, {})
    assert {"forward", "jacobian", "initial", "metric"} <= target.capabilities
    outputs, position = np.array([[0.5, 1.0, 0.2]]), np.array([[1.0, 2.0]])
    normalised = 3 * np.log(0.3) + np.log(2.0) + 2.5 * np.log(2.0 * np.pi)
    assert target.energy.value(outputs, position) == pytest.approx(1.0 + normalised)


def test_what_a_command_names_is_beside_the_description(tmp_path, monkeypatch):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "m.sh").write_text("""echo '{"log_density": 3}'""")
    (tmp_path / "deep" / "m.toml").write_text("command = 'sh m.sh'\nparameters = ['x']")
    monkeypatch.chdir(tmp_path)
    assert resolve_target("deep/m.toml", {}).value(np.zeros((1, 1))) == -3.0


def test_the_command_line_samples_and_resumes_a_program(describe, surrokit, tmp_path):
    path = describe("[parameters]\na = [-inf, inf]\nb = [0, 1]\n")
    figures, file = tmp_path / "run.json", tmp_path / "run.surrokit"
    code, err = surrokit("sample", path, *SIZES, "--set", "target.timeout=-1")
    assert code == 1
    assert "Error: timeout must be a number of seconds above 0, got -1" in err
    code, err = surrokit("sample", path, *SIZES, "--path", file, "--json", figures)
    assert (code, err) == (0, "")
    assert set(json.loads(figures.read_text())["summary"]) == {"a", "b"}
    code, err = surrokit("resume", file, path, "--draws", "6")
    assert (code, err) == (0, "")
    assert sk.open_run(file).draws.shape == (2, 6, 2)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("", ConfigurationError, "must hold command and parameters, .* but it has no parameters"),
        ("parameters = ['a']\ngradent = true", ConfigurationError, "but it has gradent"),
        ("parameters = ['a']\nenergy = 3", ConfigurationError, "but it has energy"),
        ("parameters = 3", ConfigurationError, "parameters must be a dictionary of names"),
        ("parameters = {a = 3}", ConfigurationError, "'a' must be declared by None, a pair"),
        ("parameters = {a = {low = 3}}", ConfigurationError, "by shape, lower, upper, got low"),
        (
            "parameters = {a = {shape = 'x'}}",
            ConfigurationError,
            "must be a tuple of whole numbers",
        ),
        ("parameters = ['a']\nprior = 3", ConfigurationError, "a table of mean and sd, .* got 3"),
        ("parameters = ", TargetError, r"cannot read .*model.toml: Invalid value .*; give a file"),
    ],
)
def test_a_description_that_is_wrong_is_told(describe, text, error, message):
    with pytest.raises(error, match=message):
        read_program(describe(text), {})


def test_a_description_that_is_not_there_is_told():
    with pytest.raises(TargetError, match=r"cannot read nothing.toml: .* No such file"):
        read_program(Path("nothing.toml"), {})
