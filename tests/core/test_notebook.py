"""The progress bar in a notebook, whose kernel is a pretended one."""

from __future__ import annotations

import builtins
import sys
import types

import pytest

import surrokit as sk
from surrokit.errors import TargetError
from surrokit.output import progress

RUN = {"chains": 2, "warmup": 20, "draws": 10, "seed": 1}


class ZMQInteractiveShell:
    """Named as the shell of a kernel, by which Rich knows notebooks."""


class TerminalInteractiveShell:
    """Named as the shell of a terminal."""


class Kernel:
    """What a kernel was told to show: outputs, and what each was replaced by."""

    def __init__(self):
        self.outputs = []

    def display(self, shown, *, raw, display_id):
        assert raw
        assert display_id
        output = [shown]
        self.outputs.append(output)
        return types.SimpleNamespace(update=lambda shown, *, raw: output.append(shown))


@pytest.fixture
def kernel(monkeypatch):
    def begin(shell):
        found, package = Kernel(), types.ModuleType("IPython")
        package.display = types.ModuleType("IPython.display")
        package.display.display = found.display
        monkeypatch.setitem(sys.modules, "IPython", package)
        monkeypatch.setitem(sys.modules, "IPython.display", package.display)
        monkeypatch.setattr(builtins, "get_ipython", lambda: shell, raising=False)
        return found

    return begin


def normal(q):
    return 0.5 * q @ q, q


def target():
    return sk.potential(value_and_gradient=normal, dim=2)


def test_a_notebook_has_one_output_that_is_replaced(kernel, monkeypatch, capfd):
    monkeypatch.setattr(progress, "EVERY_DRAWING", 0.0)
    found = kernel(ZMQInteractiveShell())
    run = sk.sample(target(), **RUN)
    (output,) = found.outputs
    assert len(output) > 30
    assert "starting" in output[0]["text/plain"]
    last = output[-1]
    assert f"{run.total_calls} exact calls" in last["text/plain"]
    assert "30/30" in last["text/html"]
    assert last["text/html"].startswith("<pre ")
    lines = [line for each in output for line in each["text/plain"].splitlines()]
    assert max(map(len, lines)) <= progress.WIDTH
    assert capfd.readouterr() == ("", "")


def test_calls_within_a_step_are_shown(kernel, monkeypatch):
    monkeypatch.setattr(progress, "EVERY_CALL", 0.0)
    found = kernel(ZMQInteractiveShell())
    sk.sample(target(), **RUN)
    texts = [each["text/plain"] for each in found.outputs[0]]
    first = [text for text in texts if " 0/30 iterations" in text]
    assert len({text.splitlines()[-1].split(" exact")[0] for text in first}) > 2


def test_drawings_are_apart(kernel, monkeypatch):
    """At the start, at the first iteration that is late enough, and at the end."""
    monkeypatch.setattr(progress, "EVERY_DRAWING", 1e6)
    monkeypatch.setattr(progress, "EVERY_CALL", 1e6)
    found = kernel(ZMQInteractiveShell())
    sk.sample(target(), **RUN)
    (output,) = found.outputs
    assert len(output) == 2
    assert "30/30" in output[-1]["text/plain"]


def test_two_runs_have_an_output_each(kernel):
    found = kernel(ZMQInteractiveShell())
    for _ in range(2):
        sk.sample(target(), **RUN)
    assert len(found.outputs) == 2


def test_a_run_that_fails_leaves_its_bar(kernel):
    found, count = kernel(ZMQInteractiveShell()), 0

    def model(q):
        nonlocal count
        count += 1
        if count > 100:
            raise ArithmeticError("no more")
        return normal(q)

    with pytest.raises(TargetError):
        sk.sample(
            sk.potential(value_and_gradient=model, dim=2),
            sampler="hmc",
            compute=sk.Compute(on_error="raise"),
            **RUN,
        )
    (output,) = found.outputs
    assert "/30" in output[-1]["text/plain"]


def test_no_bar_where_none_is_wanted(kernel):
    found = kernel(ZMQInteractiveShell())
    sk.sample(target(), **RUN, progress=False)
    assert found.outputs == []


def test_the_shell_of_a_terminal_is_no_notebook(kernel, capfd):
    found = kernel(TerminalInteractiveShell())
    sk.sample(target(), **RUN)
    assert found.outputs == []
    assert capfd.readouterr() == ("", "")
