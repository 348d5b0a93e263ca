"""The progress bar: there on a terminal, and nowhere else."""

from __future__ import annotations

import io
import math

import pytest
from rich.console import Console
from rich.progress import Progress

import surrokit as sk
from surrokit.errors import TargetError
from surrokit.limits import Meter
from surrokit.output.progress import columns_for, progress_bar
from surrokit.progress import IterationInfo, RoundInfo, RunInfo

RUN = {"chains": 2, "warmup": 20, "draws": 10, "seed": 1}


def target():
    return sk.potential(lambda q: 0.5 * q @ q, lambda q: q, dim=2)


def test_a_file_gets_no_bar(capfd):
    sk.sample(target(), **RUN)
    assert capfd.readouterr() == ("", "")


def test_a_bar_grows_with_a_run_that_begins_again(terminal):
    terminal()
    run = RunInfo(dim=1, chains=1, warmup=2, draws=1, parts={})
    with progress_bar(Meter(), enabled=True) as (bar,):
        bar.surrokit_run_started(run)
        bar.surrokit_surrogate_deployed(
            run=run, surrogate=None, evaluations=7, reason="safety net, after iteration 2: stuck"
        )
        for iteration in range(1, 6):
            told = IterationInfo(
                stage="warmup", iteration=iteration, step=None, calls={"value": 1}, seconds=0.0
            )
            bar.surrokit_transition_done(run=run, state=None, info=told)
        (task,) = bar._progress.tasks
    assert (task.completed, task.total) == (5, 5)
    assert task.fields["learnt"] == "surrogate 1 of 7 rows, repaired"


def test_a_terminal_gets_a_bar_on_standard_error(terminal, capsys):
    stream = terminal()
    run = sk.sample(target(), surrogate="additive", **RUN)
    shown = stream.getvalue()
    assert "30/30" in shown
    assert "sampling" in shown
    assert "acceptance 0." in shown or "acceptance 1." in shown
    assert f"{run.total_calls} exact calls" in shown
    assert f"surrogate 1 of {run.adaptation.training_rows} rows" in shown
    assert capsys.readouterr().out == ""


WEIGHED = {
    "sampler": "hmc",
    "surrogate": ("additive", {"n_nodes": 20}),
    "explorer": "rounds",
    "correction": ("weights", {"chains": 16, "warmup": 60, "effective": 800}),
    "chains": 2,
    "seed": 1,
}


@pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
def test_the_bar_of_weighted_answers_shows_errors_and_counts_calls(terminal):
    stream = terminal()
    run = sk.sample(target(), max_calls=150, budget=sk.Budget(target_mcse=0.01), **WEIGHED)
    shown, error = stream.getvalue(), run.weights.figures.relative_error.max()
    assert f"error {error:.2g} sd, aim 0.01" in shown
    assert "weighing" in shown
    assert f"{run.total_calls}/" in shown


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


@pytest.mark.parametrize(("draws", "shown"), [(0, (0, 3, "")), (10, (100, 180, "error 0.04 sd"))])
def test_the_bar_counts_calls_only_where_answers_are_believed(draws, shown, terminal):
    terminal()
    run = RunInfo(dim=1, chains=1, warmup=2, draws=1, parts={})
    info = RoundInfo(error=0.04, draws=draws, aim=None, calls=100.0, most_calls=180)
    with progress_bar(Meter(), enabled=True) as (bar,):
        bar.surrokit_run_started(run)
        bar.surrokit_round_weighed(run=run, info=info)
        (task,) = bar._progress.tasks
    assert (task.completed, task.total, task.fields["said"]) == shown


def test_the_bar_can_be_switched_off(terminal):
    stream = terminal()
    sk.sample(target(), **RUN, progress=False)
    assert stream.getvalue() == ""


def test_the_bar_ends_when_the_run_fails(terminal):
    def breaks(q):
        raise ValueError("oh")

    stream = terminal()
    with pytest.raises(TargetError):
        sk.sample(
            sk.potential(breaks, dim=1),
            sampler="random-walk",
            compute=sk.Compute(on_error="raise"),
            **RUN,
        )
    assert stream.getvalue().endswith(("\n", "\x1b[?25h"))


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_a_bar_fits_its_terminal(width):
    console = Console(width=width, file=io.StringIO(), force_terminal=False)
    progress = Progress(*columns_for(width), console=console)
    progress.add_task(
        "",
        total=20000,
        completed=12345,
        unit="iterations",
        price="",
        said="error 0.0123 sd, aim 0.02",
        learnt="surrogate 1 of 112 rows",
    )
    console.print(progress.get_renderable())
    line = console.file.getvalue()
    assert "…" not in line
    assert line.count("\n") == 1
    assert "12345/20000 iterations" in line
    assert ("aim 0.02" in line) == (width >= 90)
