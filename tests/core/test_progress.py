"""What a person is shown while a run goes on: in a terminal, a pipe, a notebook and a file."""

from __future__ import annotations

import builtins
import math
import re
import sys
import time
import types
from unittest.mock import Mock

import numpy as np
import pytest
from click.testing import CliRunner

import surrokit as sk
from surrokit.cli.main import cli
from surrokit.errors import StopRun, TargetError
from surrokit.limits import Meter
from surrokit.output import progress as shown_progress
from surrokit.output.progress import progress_bar
from surrokit.progress import IterationInfo, RoundInfo, RunInfo
from surrokit.run.book import EVENTS

RUN = {"chains": 2, "warmup": 20, "draws": 10, "seed": 1}
WALK = {"sampler": "random-walk", "warmup": 30, "draws": 20, "seed": 1}
INFO = RunInfo(dim=1, chains=1, warmup=2, draws=1, parts={})
pytestmark = pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")


def target():
    return sk.potential(value_and_gradient=lambda q: (0.5 * q @ q, q), dim=2)


def slow_target(pause=0.0, at=None, do=None):
    """Return a target that waits, and does something at one of its calls."""
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


def break_down():
    raise ArithmeticError("no more")


class Stop:
    def surrokit_transition_done(self, **_):
        raise StopRun


# --- bars ---


def test_a_bar_grows_with_a_run_that_begins_again(terminal):
    terminal()
    with progress_bar(Meter(), enabled=True) as (bar,):
        bar.surrokit_run_started(INFO)
        reason = "repair, after iteration 2: stuck"
        bar.surrokit_surrogate_deployed(evaluations=7, reason=reason)
        for iteration in range(1, 6):
            told = {"stage": "warmup", "iteration": iteration, "step": None, "seconds": 0.0}
            info = IterationInfo(**told, calls={"value": 1})
            bar.surrokit_transition_done(run=INFO, state=None, info=info)
    assert "5/5 iterations, surrogate 1 of 7 rows, repaired" in str(bar)


def test_a_terminal_gets_a_bar_on_standard_error_which_changes_no_draw(terminal, capfd):
    quiet = sk.sample(target(), surrogate="additive", **RUN)  # a file gets no bar
    assert capfd.readouterr() == ("", "")
    stream = terminal()
    run = sk.sample(target(), surrogate="additive", **RUN)
    shown = stream.getvalue()
    assert "30/30" in shown
    assert f"sampling: {run.total_calls} exact calls" in shown
    assert "acceptance 0." in shown or "acceptance 1." in shown
    assert f"surrogate 1 of {run.adaptation.training_rows} rows" in shown
    assert capfd.readouterr().out == ""
    assert np.array_equal(quiet.draws, run.draws)
    stream = terminal()
    sk.sample(target(), **RUN, progress=False)
    assert stream.getvalue() == ""


def test_the_bar_of_weighted_answers_shows_errors_and_counts_calls(terminal):
    stream, heard = terminal(), Mock(spec=EVENTS)
    run = sk.sample(
        target(),
        sampler="hmc",
        surrogate=("additive", {"n_nodes": 20}),
        explorer="rounds",
        correction=("weights", {"chains": 16, "warmup": 150, "effective": 800}),
        chains=2,
        seed=1,
        max_calls=150,
        budget=sk.Budget(target_mcse=0.01),
        observers=[heard],
    )
    told = [call.kwargs["info"] for call in heard.surrokit_round_weighed.call_args_list]
    assert [each.draws for each in told] == list(np.cumsum([*map(len, run.answer.rounds)]))
    assert {(each.aim, each.most_calls) for each in told} == {(0.01, 150)}
    assert told[-1].calls == run.total_calls
    shown, error = stream.getvalue(), run.weights.figures.relative_error.max()
    assert f"error {error:.2g} sd, aim 0.01" in shown
    assert "weighing" in shown
    assert re.search(rf"{run.total_calls}/\d+ calls, error", shown)


@pytest.mark.parametrize(
    ("aim", "most_calls", "expected"),
    [(None, None, 100), (None, 180, 180), (0.001, 180, 180), (0.02, 180, 130), (0.02, None, 130)],
)
def test_calls_are_expected_by_aim_and_limit(aim, most_calls, expected):
    """Errors fall with the root of the draws that correct."""
    info = RoundInfo(error=0.04, draws=10, aim=aim, calls=100.0, most_calls=most_calls)
    assert info.expected_calls == pytest.approx(expected)
    refused = RoundInfo(error=math.inf, draws=0, aim=aim, calls=100.0, most_calls=most_calls)
    assert refused.expected_calls == (most_calls or 100)


# --- calls within a step ---


PRICE = re.compile(
    r"a call takes \d+ ms; chains need about 4,000 calls, [\d.]+ (s|min) on 1 worker, "
    r"[\d.]+ (s|min) on 4; `max_calls=300` gives weighted answers in about [\d.]+ s"
)


def test_a_pipe_gets_a_line_now_and_then_and_the_price(monkeypatch, capfd):
    monkeypatch.setattr(shown_progress, "EVERY_LINE", 0.2)
    sk.sample(slow_target(0.03), seed=1, observers=[Stop()])
    out, err = capfd.readouterr()
    assert out == ""
    assert sum(PRICE.fullmatch(line) is not None for line in err.splitlines()) == 1
    said = [line for line in err.splitlines() if line.startswith("exploring: ")]
    assert said
    assert all("exact calls" in line and " so far" in line for line in said)
    sk.sample(slow_target(), progress=False, **WALK)
    assert capfd.readouterr() == ("", "")


def test_limits_say_how_long_it_takes_at_most(monkeypatch, capfd):
    monkeypatch.setattr(shown_progress, "EVERY_LINE", 0.0)
    settings = {**WALK, "warmup": 50, "draws": 50}
    sk.sample(slow_target(), max_calls=300, max_seconds=7200.0, **settings)
    said = capfd.readouterr().err
    assert re.search(r"^warm-up: \d+ of 300 exact calls, .* of 2 h so far", said, re.MULTILINE)
    assert re.search(r"^sampling: .*, (\d+ s to )?\d+ s left$", said, re.MULTILINE)


def test_a_file_says_within_the_first_step_how_far_the_run_is(tmp_path):
    path, shown = tmp_path / "run.surrokit", []

    def look():
        shown.append(CliRunner().invoke(cli, ["show", str(path)]).output)

    target = slow_target(0.07, at=60, do=look)
    sk.sample(target, path=path, seed=1, observers=[Stop()], max_calls=900, progress=False)
    assert "starting, 0 iterations" in shown[0]
    assert re.search(r": \d+ of 900 exact calls, (1 in flight, )?\d+ ms a call", shown[0])
    after = CliRunner().invoke(cli, ["show", str(path)]).output
    assert "in flight" not in after


# --- notebooks, whose kernel is a pretended one ---


class ZMQInteractiveShell:
    """Named as the shell of a kernel, by which Rich knows notebooks."""


class TerminalInteractiveShell:
    """Named as the shell of a terminal."""


@pytest.fixture
def kernel(monkeypatch):
    """Return what a kernel was told to show: outputs, and what each was replaced by."""
    outputs = []

    def display(shown, *, raw, display_id):
        assert raw
        assert display_id
        output = [shown]
        outputs.append(output)
        return types.SimpleNamespace(update=lambda shown, *, raw: output.append(shown))

    package = types.ModuleType("IPython")
    package.display = types.ModuleType("IPython.display")
    package.display.display = display
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", package.display)
    monkeypatch.setattr(builtins, "get_ipython", ZMQInteractiveShell, raising=False)
    return outputs


def test_a_notebook_has_one_output_that_is_replaced(kernel, monkeypatch, capfd):
    monkeypatch.setattr(shown_progress, "EVERY_DRAWING", 0.0)
    monkeypatch.setattr(shown_progress, "EVERY_CALL", 0.0)
    run = sk.sample(target(), **RUN)
    (output,) = kernel
    texts = [each["text/plain"] for each in output]
    assert len(output) > 30
    assert "starting" in texts[0]
    within = [text for text in texts if " 0/30 iterations" in text]  # the first step
    assert len({text.splitlines()[-1].split(" exact")[0] for text in within}) > 2
    assert f"{run.total_calls} exact calls" in texts[-1]
    assert "30/30 iterations" in texts[-1]
    assert capfd.readouterr() == ("", "")


def test_a_run_that_fails_leaves_its_bar(kernel):
    failing = slow_target(at=40, do=break_down)
    with pytest.raises(TargetError):
        sk.sample(failing, sampler="random-walk", compute=sk.Compute(on_error="raise"), **RUN)
    (output,) = kernel
    assert "/30" in output[-1]["text/plain"]


@pytest.mark.parametrize(
    ("shell", "progress"), [(ZMQInteractiveShell, False), (TerminalInteractiveShell, True)]
)
def test_no_bar_where_none_is_wanted_or_the_shell_is_a_terminal_s(
    kernel, monkeypatch, shell, progress
):
    monkeypatch.setattr(builtins, "get_ipython", shell)
    sk.sample(target(), **RUN, progress=progress)
    assert kernel == []


# --- what a run would cost ---


@pytest.mark.parametrize("settings", [{}, {"sampler": "random-walk"}, {"surrogate": "additive"}])
def test_an_estimate_takes_a_few_calls_alone(settings, tmp_path):
    calls, rng = [], np.random.default_rng(1)
    counted = sk.potential(lambda q: calls.append(q) or 0.5 * float(q @ q), dim=2)
    expected = sk.estimate(counted, seed=rng, path=tmp_path / "run.surrokit", **settings)
    assert len(calls) <= 40  # gradients are made of values where there are none
    assert list(tmp_path.iterdir()) == []
    assert rng.random() == np.random.default_rng(1).random()
    assert expected.seconds_a_call > 0
    assert expected.kind == "value"
    assert expected.seconds() == pytest.approx(expected.calls * expected.seconds_a_call)
    assert f"chains need about {expected.calls:,} calls" in str(expected)


def test_an_estimate_counts_as_a_run_does():
    """Chains on a surrogate take a value a draw; a random walk takes one in warm-up too."""
    settings = {**WALK, "warmup": 200, "draws": 100}
    run = sk.sample(slow_target(), progress=False, **settings)
    expected = sk.estimate(slow_target(), **settings).calls
    assert expected == pytest.approx(run.total_calls, rel=0.02)


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
