"""What a person is shown while calls go on: in a terminal, in a pipe, in a notebook, in a file."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from click.testing import CliRunner

import surrokit as sk
import surrokit.output.progress
from surrokit.cli.main import cli
from surrokit.errors import StopRun
from surrokit.live import Watched

FIRST_STEP = """
import time
import surrokit as sk
import surrokit.output.progress
from surrokit.errors import StopRun

def model(q):
    time.sleep(0.035)
    if q[0] < 0.0:
        raise ArithmeticError("no solution")
    return 0.5 * float(q @ q)

class Stop:
    def surrokit_transition_done(self, **_):
        raise StopRun

surrokit.output.progress.EVERY_LINE = 0.2
sk.sample(sk.potential(model, dim=2), seed=1, observers=[Stop()], {settings})
"""
"""A run that ends after its first step, in which there are many calls."""

PRICE = re.compile(
    r"a call takes \d+ ms; chains need about 4,000 calls, [\d.]+ (s|min) on 1 worker, "
    r"[\d.]+ (s|min) on 4; `max_calls=300` gives weighted answers in about [\d.]+ s"
)


def script(settings="", seconds=0.035):
    code = FIRST_STEP.replace("{settings}", settings).replace("0.035", str(seconds))
    return [sys.executable, "-W", "ignore", "-c", code]


def in_terminal(command):
    """Return the lines that a command shows in a pseudo-terminal."""
    leader, follower = os.openpty()
    shown = []

    def read():
        try:
            while block := os.read(leader, 65536):
                shown.append(block)
        except OSError:
            pass  # the other end was closed

    reader = threading.Thread(target=read)
    reader.start()
    environment = {**os.environ, "COLUMNS": "160", "TERM": "xterm"}
    subprocess.run(command, stderr=follower, env=environment, check=True, timeout=60)
    os.close(follower)
    reader.join(timeout=10)
    os.close(leader)
    text = re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]", b"", b"".join(shown)).decode()
    return re.split(r"[\r\n]+", text)


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no pseudo terminals here")
def test_a_terminal_shows_calls_from_the_first_on():
    # calls that take long beside the refresh of a bar, on a busy machine too
    lines = in_terminal(script("compute=sk.Compute(executor='threads', workers=2)", seconds=0.06))
    said = [line for line in lines if "exact calls" in line]
    counts = {int(re.search(r"(\d+) exact calls", line)[1]) for line in said}
    assert len(counts) > 3  # the run ends after its first step
    assert said[0].startswith("starting: ")
    assert any(line.startswith("exploring: ") for line in said)
    assert any("2 in flight" in line and "ms a call" in line for line in said)
    assert any(" failed" in line for line in said)
    assert not any(" left" in line for line in said)  # no limit says anything of it
    assert any(line.startswith("a call takes") for line in lines)


def test_a_pipe_gets_a_line_now_and_then_and_the_price():
    shown = subprocess.run(script(), capture_output=True, text=True, check=True, timeout=60)
    lines = shown.stderr.splitlines()
    assert shown.stdout == ""
    assert sum(PRICE.fullmatch(line) is not None for line in lines) == 1
    said = [line for line in lines if line.startswith("exploring: ")]
    assert said
    assert all("exact calls" in line and " so far" in line for line in said)


@pytest.mark.parametrize("progress", [True, False])
def test_lines_can_be_switched_off(progress, monkeypatch, capfd):
    monkeypatch.setattr(surrokit.output.progress, "EVERY_LINE", 0.0)
    settings = {"sampler": "random-walk", "warmup": 5, "draws": 5, "seed": 1}
    sk.sample(slow_target(), progress=progress, **settings)
    out, err = capfd.readouterr()
    assert out == ""
    assert ("sampling: " in err) == progress
    assert progress or not err


@pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
def test_limits_say_how_long_it_takes_at_most(monkeypatch, capfd):
    monkeypatch.setattr(surrokit.output.progress, "EVERY_LINE", 0.0)
    settings = {"sampler": "random-walk", "warmup": 50, "draws": 50, "seed": 1}
    sk.sample(slow_target(), max_calls=300, max_seconds=7200.0, **settings)
    said = capfd.readouterr().err
    assert re.search(r"^warm-up: \d+ of 300 exact calls, .* of 2 h so far", said, re.MULTILINE)
    assert re.search(r"^sampling: .*, (\d+ s to )?\d+ s left$", said, re.MULTILINE)


def slow_target(pause=0.0, at=None, do=None):
    count = 0

    def model(q):
        nonlocal count
        count += 1
        if at is None or count <= at:
            time.sleep(pause)
        if count == at:
            do()
        return 0.5 * float(q @ q)

    return sk.potential(model, dim=2)


class Stop:
    def surrokit_transition_done(self, **_):
        raise StopRun


@pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
def test_a_file_says_within_the_first_step_how_far_the_run_is(tmp_path):
    path, shown = tmp_path / "run.surrokit", []

    def look():
        shown.append(CliRunner().invoke(cli, ["show", str(path)]).output)
        shown.append(Watched(path, 1.0).page())

    target = slow_target(0.07, at=22, do=look)
    sk.sample(target, path=path, seed=1, observers=[Stop()], max_calls=200, progress=False)
    said = r"exploring: \d+ of 200 exact calls, 1 in flight, \d+ ms a call"
    assert "starting, 0 iterations" in shown[0]
    assert re.search(said, shown[0])
    assert re.search(said, shown[1])
    after = CliRunner().invoke(cli, ["show", str(path)]).output
    assert "in flight" not in after


@pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
def test_what_is_shown_changes_no_draw(terminal):
    settings = {"sampler": "random-walk", "warmup": 30, "draws": 20, "seed": 1}
    quiet = sk.sample(slow_target(), progress=False, **settings)
    stream = terminal()
    shown = sk.sample(slow_target(), **settings)
    assert np.array_equal(quiet.draws, shown.draws)
    assert f"sampling: {shown.total_calls} exact calls" in stream.getvalue()


# --- what a run would cost ---


def counted(gradient=None):
    calls = []

    def model(q):
        calls.append(q)
        return 0.5 * float(q @ q)

    return sk.potential(model, gradient, dim=2), calls


@pytest.mark.parametrize("settings", [{}, {"sampler": "random-walk"}, {"surrogate": "additive"}])
def test_an_estimate_takes_a_few_calls_alone(settings, tmp_path):
    target, calls = counted()
    expected = sk.estimate(target, seed=1, path=tmp_path / "run.surrokit", **settings)
    assert len(calls) <= 40  # gradients are made of values where there are none
    assert list(tmp_path.iterdir()) == []
    assert expected.seconds_a_call > 0
    assert expected.kind == "value"
    assert expected.seconds() == pytest.approx(expected.calls * expected.seconds_a_call)
    assert f"chains need about {expected.calls:,} calls" in str(expected)


def test_an_estimate_counts_as_a_run_does():
    """Chains on a surrogate take a value a draw; a random walk takes one in warm-up too."""
    target, _ = counted()
    settings = {"sampler": "random-walk", "warmup": 200, "draws": 100, "seed": 1}
    run = sk.sample(target, progress=False, **settings)
    assert sk.estimate(target, **settings).calls == pytest.approx(run.total_calls, rel=0.02)


def test_an_estimate_leaves_a_generator_as_it_is():
    rng = np.random.default_rng(1)
    sk.estimate(counted()[0], seed=rng)
    assert rng.random() == np.random.default_rng(1).random()


def test_an_estimate_goes_by_limits_and_workers():
    target = slow_target(0.002)
    few = sk.estimate(target, max_calls=150, seed=1)
    assert (few.weighs, few.calls) == (True, 150)
    many = sk.estimate(target, seed=1, compute=sk.Compute(executor="threads", workers=2))
    assert (many.workers, many.few_calls) == (2, 300)
    assert many.seconds() == pytest.approx(many.seconds(1) / 2)
    assert many.seconds(8) == many.seconds(100)


def test_a_dry_run_prints_what_a_run_would_cost(tmp_path):
    file, figures = tmp_path / "model.py", tmp_path / "figures.json"
    file.write_text(
        "import time\nimport surrokit as sk\n"
        "def model(q):\n    time.sleep(0.02)\n    return 0.5 * float(q @ q)\n"
        "target = sk.potential(model, dim=2)\n"
    )
    command = ["sample", f"{file}:target", "--dry-run", "--path", str(tmp_path / "run.surrokit")]
    shown = CliRunner().invoke(cli, [*command, "--json", str(figures)])
    assert shown.exit_code == 0
    assert PRICE.fullmatch(shown.output.strip())
    assert '"calls": 4000' in figures.read_text()
    assert not (tmp_path / "run.surrokit").exists()
