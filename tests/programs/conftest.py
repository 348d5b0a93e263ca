from __future__ import annotations

import sys

import pytest

import surrokit as sk

MODEL = """
import json, math, os, sys

files = sys.argv[1:]
question = json.load(open(files[0]) if files else sys.stdin)
x, wanted = question["position"], question["want"]
u = sum(each * each / 2 + each**4 / 10 for each in x)
slope = [each + 0.4 * each**3 for each in x]
outputs = [x[0] * x[1], x[0] + x[1] ** 2, math.sin(x[0])]
jacobian = [[x[1], x[0]], [1.0, 2.0 * x[1]], [math.cos(x[0]), 0.0]]
answers = {"log_density": -u, "gradient": [-each for each in slope], "outputs": outputs}
answers["jacobian"] = jacobian
if "vjp" in wanted:
    weights = question["weights"]
    answers["vjp"] = [sum(w * row[k] for w, row in zip(weights, jacobian)) for k in (0, 1)]
with open(os.environ["SURROKIT_TEST_LOG"], "a") as log:
    log.write(json.dumps(question) + chr(10))
answer = {name: answers[name] for name in wanted}
json.dump(answer, open(files[1], "w") if files else sys.stdout)
"""


@pytest.fixture
def log(tmp_path, monkeypatch):
    """The file to which the model adds a line for each question."""
    path = tmp_path / "questions"
    monkeypatch.setenv("SURROKIT_TEST_LOG", str(path))
    return path


@pytest.fixture
def model(tmp_path, log):
    """The words that start a model of two parameters, quickly."""
    (tmp_path / "model.py").write_text(MODEL)
    return [sys.executable, "-I", "-S", str(tmp_path / "model.py")]


@pytest.fixture
def shell(tmp_path):
    """Make a target of lines of shell, which has a log density and two parameters."""

    def write(lines, **settings):
        (tmp_path / "model.sh").write_text(lines)
        return sk.command_potential("sh model.sh", dim=2, folder=tmp_path, **settings)

    return write
