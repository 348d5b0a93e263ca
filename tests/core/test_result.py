"""Run: every figure in it, against what it was made from."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import surrokit as sk
from surrokit.errors import ConfigurationError
from surrokit.interfaces import Status
from surrokit.output.files import plain, write_json
from surrokit.result.advice import advice
from surrokit.result.verdict import judge
from surrokit.targets.bounds import parameters_of, transform_of

KINDS = ["value", "gradient", "forward", "jacobian", "vjp", "hessian", "metric", "rows", "cheap"]
ESS = ["ess", "ess_bulk", "ess_tail", "ess_square"]
COLUMNS = ["mean", "sd", "q05", "q50", "q95", *ESS, "rhat", "mcse", "calls_per_ess"]


def changed(run, **arrays):
    return attrs.evolve(run, kept=attrs.evolve(run.kept, **arrays))


def test_draws_are_the_transformed_positions_by_name_and_shape(bounded_run, forward_run):
    run, target = forward_run
    assert_allclose(run.draws, transform_of(target).to_bounded(run.kept.positions))
    assert run.parameters == parameters_of(target)
    draws = bounded_run.draws
    assert draws.shape == (3, 50, 4)
    assert bounded_run.labels == ["rate", "slope", "w[0]", "w[1]"]
    for name, columns in {
        "rate": draws[..., 0],
        "slope": draws[..., 1],
        "w": draws[..., 2:],
    }.items():
        assert_array_equal(bounded_run[name], columns)
    assert (bounded_run["rate"] > 0).all()
    assert ((bounded_run["w"] > 0) & (bounded_run["w"] < 1)).all()
    told = f"<Run: 3 chains of 50 draws of 4 numbers; {bounded_run.total_calls} exact calls>"
    assert repr(bounded_run) == told
    assert "incomplete" in repr(attrs.evolve(bounded_run, stopped="interrupted"))
    with pytest.raises(
        KeyError, match="no parameter or quantity is named 'slop'; there are rate, slope, w"
    ):
        bounded_run["slop"]


def test_values_and_outputs_are_those_of_the_positions(bounded_run, forward_run):
    run, target = forward_run
    for trace in (run.kept, run.warmup):
        flat = trace.positions.reshape(-1, 2)
        assert_allclose(trace.values, target.value(flat).reshape(trace.values.shape))
        assert_allclose(trace.outputs, target.forward(flat).reshape(2, -1, 3))
    assert run.outputs is run.kept.outputs
    assert bounded_run.outputs is None


def test_traces_are_of_all_iterations_and_end_in_the_totals(bounded_run, forward_run):
    for part, n in (("kept", 40), ("warmup", 60)):
        trace = getattr(forward_run[0], part)
        assert len(trace) == n
        for name in ("values", "accepted", "divergent", "acceptance", "path_acceptance", "n_steps"):
            assert getattr(trace, name).shape == (2, n), name
        for array in (trace.step_size, trace.seconds, *trace.calls.values()):
            assert array.shape == (n,)
    assert list(bounded_run.calls) == KINDS
    assert bounded_run.total_calls == sum(bounded_run.calls.values())
    for kind in KINDS:
        trace = np.concatenate([bounded_run.warmup.calls[kind], bounded_run.kept.calls[kind]])
        assert (np.diff(trace) >= 0).all()
        assert trace[-1] == bounded_run.calls[kind]
    more = attrs.evolve(bounded_run, calls={**bounded_run.calls, "rows": 10**6})
    assert more.total_calls == bounded_run.total_calls  # rows are not added to positions
    seconds = np.concatenate([[0.0], bounded_run.warmup.seconds, bounded_run.kept.seconds])
    assert (np.diff(seconds) > 0).all()
    assert list(forward_run[0].seconds) == ["warmup", "training", "sampling"]
    assert all(s > 0 for s in forward_run[0].seconds.values())


def test_accepted_iterations_are_those_that_moved(bounded_run, forward_run):
    moved = (np.diff(bounded_run.draws, axis=1) != 0).any(axis=2)
    kept = bounded_run.kept
    assert_array_equal(moved, kept.accepted[:, 1:])
    assert_allclose(bounded_run.acceptance, kept.accepted.mean(axis=1))
    assert ((bounded_run.acceptance > 0) & (bounded_run.acceptance < 1)).all()
    for array in (kept.acceptance, kept.path_acceptance):
        assert ((array >= 0) & (array <= 1)).all()
    exact = forward_run[0].kept  # of a surrogate that is right
    assert_allclose(exact.acceptance, exact.path_acceptance, atol=1e-9)


def test_adaptation_tells_what_was_deployed(bounded_run, forward_run):
    run, _ = forward_run
    assert run.adaptation.deployments == (15,)
    assert run.adaptation.training_rows > 60
    assert run.adaptation.frozen_before_draws
    assert run.kernel.step == run.kept.step_size[-1]
    assert run.kernel.potential is run.surrogate
    none = bounded_run.adaptation
    assert (none.deployments, none.training_rows, bounded_run.surrogate) == ((), 0, None)


@pytest.mark.parametrize("kind", ["least", "bulk", "tail", "square", "paper"])
def test_ess_and_r_hat_are_those_of_the_draws(bounded_run, kind):
    assert_array_equal(bounded_run.ess(kind), sk.effective_sample_size(bounded_run.draws, kind))
    assert_array_equal(bounded_run.ess(), bounded_run.ess("least"))
    assert_array_equal(bounded_run.rhat(), sk.r_hat(bounded_run.draws))
    expected = bounded_run.total_calls / bounded_run.ess().min()
    assert bounded_run.calls_per_effective_draw() == pytest.approx(expected)


# --- the table ---


def test_columns_are_statistics_of_all_chains(bounded_run):
    summary, flat = bounded_run.summary(), bounded_run.draws.reshape(-1, 4)
    assert list(summary.columns) == COLUMNS
    assert_allclose(summary["mean"], flat.mean(axis=0))
    assert_allclose(summary["sd"], flat.std(axis=0, ddof=1))
    for name, p in {"q05": 0.05, "q50": 0.5, "q95": 0.95}.items():
        assert_allclose(summary[name], np.quantile(flat, p, axis=0))
    for name in ESS[1:]:
        assert_allclose(summary[name], bounded_run.ess(name.removeprefix("ess_")))
    assert_array_equal(summary["ess"], np.min([summary[name] for name in ESS[1:]], axis=0))
    assert_allclose(summary["rhat"], bounded_run.rhat())
    assert_allclose(summary["calls_per_ess"], bounded_run.total_calls / bounded_run.ess())
    rows = summary.to_dict()
    assert list(rows) == bounded_run.labels
    assert rows["w[1]"]["mean"] == pytest.approx(bounded_run["w"][:, :, 1].mean())


def test_the_printed_table_has_a_line_for_each_parameter(bounded_run):
    summary = bounded_run.summary(wide=True)
    lines = str(summary).splitlines()
    assert lines[0].split() == COLUMNS
    assert [line.split()[0] for line in lines[1:5]] == bounded_run.labels
    assert "\n".join(lines[6:]) == str(judge(bounded_run))
    assert len({len(line) for line in lines[:5]}) == 1
    assert repr(summary).startswith("<Summary of 4 parameters>\n")


def test_a_figure_that_cannot_be_had_is_missing(bounded_run):
    still = np.tile(bounded_run.draws[:, :1], (1, 50, 1))
    stuck = changed(bounded_run, draws=still)
    lines = str(stuck.summary(wide=True)).splitlines()
    assert [line.split().count("missing") for line in lines[:5]] == [0, 7, 7, 7, 7]
    assert stuck.to_dict()["rhat_max"] is None
    told = [note for note in judge(stuck).messages if "R-hat" in note]
    assert told == [
        "R-hat is missing for rate, slope, w[0], w[1]: chains did not move, or rarely. Draw more"
    ]
    few = changed(bounded_run, draws=bounded_run.draws[:, :3], seconds=bounded_run.kept.seconds[:3])
    assert "R-hat is missing, as it needs 4 draws of each chain; draw more" in judge(few).messages


# --- what went wrong ---


def with_status(run, status, n):
    every = np.zeros(run.kept.status.shape, dtype=np.int64)
    every.flat[:n] = status
    return changed(run, status=every, divergent=every != Status.OK)


def test_failed_paths_are_counted_by_how_they_failed(bounded_run):
    none = {"not-finite": 0, "not-converged": 0, "not-reversible": 0, "no-density": 0}
    assert bounded_run.path_failures == none
    failed = with_status(bounded_run, Status.NOT_REVERSIBLE, 4)
    assert failed.path_failures == {**none, "not-reversible": 4}
    assert failed.divergences.tolist() == [4, 0, 0]
    (note,) = judge(failed).named("divergences")
    assert "4 paths diverged (4 not-reversible)" in note.message
    assert "a smaller step size" not in note.message  # nobody gave one


@pytest.mark.parametrize(
    ("status", "complaint"),
    [
        (Status.NOT_CONVERGED, "10 of 150 kept paths were rejected, as their implicit"),
        (Status.NOT_REVERSIBLE, "10 of 150 kept paths did not lead back to where they began"),
    ],
)
def test_many_failed_paths_are_complained_of(bounded_run, status, complaint):
    assert not advice(with_status(bounded_run, status, 7))
    (found,) = advice(with_status(bounded_run, status, 10))
    assert complaint in found
    assert "lower step_size" in found


def test_a_chain_that_stands_still_is_complained_of(bounded_run):
    accepted = np.tile(np.arange(50) % 2 == 0, (3, 1))
    assert not advice(changed(bounded_run, accepted=accepted))
    accepted[1] = False
    (found,) = advice(changed(bounded_run, accepted=accepted))
    assert "chain 1 did not move for 50 kept iterations, though up to 0.50 of" in found
    slow = np.zeros((3, 50), dtype=bool)  # of so few acceptances a long stand says nothing
    slow[0, :3] = True
    assert not advice(changed(bounded_run, accepted=slow))


def test_of_a_few_iterations_nothing_is_said(bounded_run):
    nothing = {"path_acceptance": np.zeros((3, 50)), "accepted": np.zeros((3, 50), dtype=bool)}
    run = changed(bounded_run, **nothing)
    (found,) = advice(run)
    assert "nearly all proposals were rejected, as the paths themselves fail" in found
    assert advice(changed(run, seconds=run.kept.seconds[:19])) == []


# --- for machines ---


def test_figures_are_those_of_the_run_and_survive_json(bounded_run):
    figures, ess = bounded_run.to_dict(), bounded_run.ess()
    lists = {name: [] for name in ("deployments", "repairs")}
    assert json.loads(json.dumps(figures, allow_nan=False)) == figures | {
        "adaptation": {**figures["adaptation"], **lists}
    }
    assert figures["ess"] == {"min": ess.min(), "median": np.median(ess), "max": ess.max()}
    assert figures["acceptance"] == bounded_run.acceptance.tolist()
    assert figures["calls"] == bounded_run.calls
    assert figures["rhat_max"] == bounded_run.rhat().max()
    assert figures["complete"] is True
    assert (figures["chains"], figures["draws"]) == (3, 50)
    assert figures["parts"]["sampler"] == "random-walk"
    assert set(figures["seconds"]) == {"warmup", "training", "sampling"}


def test_the_held_out_error_of_the_surrogate_is_told(bounded_run, forward_run):
    target = sk.make("potential", "gaussian", dim=3)
    sizes = {"chains": 2, "warmup": 80, "draws": 10, "seed": 1, "progress": False}
    run = sk.sample(target, surrogate="additive", **sizes)
    quality = run.fit_quality
    assert quality is run.surrogate.quality
    assert run.to_dict()["held_out"] == {
        "variance": quality.variance,
        "gradient_error": quality.gradient_error,
        "n_points": quality.n_points,
        "acceptance": quality.acceptance,
    }
    assert bounded_run.fit_quality is bounded_run.to_dict()["held_out"] is None
    assert forward_run[0].fit_quality is None  # of a surrogate that does not say


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        ("text", "text"),
        (np.int64(3), 3),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.array([[1.0, np.nan], [np.inf, 2.0]]), [[1.0, None], [None, 2.0]]),
        (float("-inf"), None),
        ((1, (2, 3)), [1, [2, 3]]),
        ({1: {"a": np.array([1])}}, {"1": {"a": [1]}}),
        (Path("a/b"), str(Path("a/b"))),
    ],
)
def test_values_become_what_json_holds(value, expected):
    found = plain(value)
    assert (found, type(found)) == (expected, type(expected))
    assert json.loads(json.dumps(found, allow_nan=False)) == expected


def test_values_that_json_cannot_hold_and_files_that_cannot_be_written_are_refused(tmp_path):
    with pytest.raises(ConfigurationError, match=r"result\['a'\]\[1\] is of type .*cannot hold"):
        plain({"a": [0, {1, 2}]}, "result")
    with pytest.raises(ConfigurationError, match=r"cannot write .*; give a file in a folder that"):
        write_json(tmp_path / "absent" / "x.json", {})
