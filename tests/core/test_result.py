"""Run: every figure in it, against what it was made from."""

from __future__ import annotations

import json
import re

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import surrokit as sk
from surrokit.errors import SamplingWarning
from surrokit.interfaces import Status
from surrokit.result.advice import advice
from surrokit.result.summary import Summary
from surrokit.result.verdict import judge
from surrokit.targets.bounds import parameters_of, transform_of

KINDS = ["value", "gradient", "forward", "jacobian", "vjp", "hessian", "metric", "rows"]


def test_draws_are_chains_by_draws_by_numbers(bounded_run):
    assert bounded_run.draws.shape == (3, 50, 4)


def test_draws_are_in_users_coordinates(bounded_run):
    assert (bounded_run["rate"] > 0).all()
    assert ((bounded_run["w"] > 0) & (bounded_run["w"] < 1)).all()
    assert not (bounded_run.kept.positions[:, :, 0] > 0).all()


def test_draws_are_the_transformed_positions(forward_run):
    run, target = forward_run
    assert_allclose(run.draws, transform_of(target).to_bounded(run.kept.positions))


@pytest.mark.parametrize(("name", "shape"), [("rate", ()), ("slope", ()), ("w", (2,))])
def test_parameters_are_found_by_name_in_their_shape(bounded_run, name, shape):
    assert bounded_run[name].shape == (3, 50, *shape)


def test_parameters_by_name_are_the_columns(bounded_run):
    assert_array_equal(bounded_run["slope"], bounded_run.draws[:, :, 1])
    assert_array_equal(bounded_run["w"], bounded_run.draws[:, :, 2:])


def test_an_unknown_name_is_refused(bounded_run):
    with pytest.raises(KeyError, match="no parameter is named 'slop'; there are rate, slope, w"):
        bounded_run["slop"]


def test_labels_name_every_number(bounded_run):
    assert bounded_run.labels == ["rate", "slope", "w[0]", "w[1]"]


def test_values_are_the_exact_potential_of_the_positions(forward_run):
    run, target = forward_run
    for trace in (run.kept, run.warmup):
        expected = target.value(trace.positions.reshape(-1, 2)).reshape(trace.values.shape)
        assert_allclose(trace.values, expected)


def test_outputs_are_the_forward_map_of_the_draws(forward_run):
    run, target = forward_run
    assert run.outputs.shape == (2, 40, 3)
    expected = target.forward(run.kept.positions.reshape(-1, 2)).reshape(2, 40, 3)
    assert_allclose(run.outputs, expected)
    assert_allclose(run.warmup.outputs.shape, (2, 60, 3))


def test_without_a_map_there_are_no_outputs(bounded_run):
    assert bounded_run.outputs is None


def test_outputs_are_right_where_the_map_fails_at_times(recwarn):
    def forward(q):
        if q[0] > 1:
            raise ValueError("no solution")
        return 2 * q

    target = sk.forward_potential(forward, data=[0.0], noise_sd=2.0, dim=1)
    run = sk.sample(
        target,
        sampler=("random-walk", {"step_size": 1.5}),
        warmup=5,
        draws=60,
        chains=2,
        seed=2,
        initial=[0.0],
        progress=False,
    )
    assert run.failures > 0
    said = [str(w.message)[:40] for w in recwarn if "R-hat" not in str(w.message)]
    assert said[0] == "the target raised ValueError: no solutio"
    assert_allclose(run.outputs, 2 * run.draws)


def test_acceptance_is_that_of_the_kept_iterations(bounded_run):
    assert_allclose(bounded_run.acceptance, bounded_run.kept.accepted.mean(axis=1))
    assert bounded_run.acceptance.shape == (3,)
    assert ((bounded_run.acceptance > 0) & (bounded_run.acceptance < 1)).all()


def test_accepted_iterations_are_those_that_moved(bounded_run):
    moved = (np.diff(bounded_run.draws, axis=1) != 0).any(axis=2)
    assert_array_equal(moved, bounded_run.kept.accepted[:, 1:])


def test_divergences_are_counted_by_chain():
    with pytest.warns(SamplingWarning, match="the step size of 50 is too large"):
        run = sk.sample(
            sk.potential(lambda q: 0.5 * q @ q, lambda q: q, dim=2),
            sampler=("hmc", {"step_size": 50.0, "n_steps": 5, "metric": "identity"}),
            warmup=0,
            draws=20,
            chains=2,
            seed=1,
            progress=False,
        )
    assert run.divergences.shape == (2,)
    assert_array_equal(run.divergences, run.kept.divergent.sum(axis=1))
    assert run.divergences.min() > 0


def test_all_kinds_of_calls_are_there(bounded_run):
    assert list(bounded_run.calls) == KINDS
    assert bounded_run.total_calls == sum(bounded_run.calls.values())


def test_data_rows_are_not_added_to_positions(bounded_run):
    with_rows = attrs.evolve(bounded_run, calls={**bounded_run.calls, "rows": 10**6})
    assert with_rows.total_calls == bounded_run.total_calls


def test_calls_by_iteration_end_in_the_total(bounded_run):
    for kind in KINDS:
        trace = np.concatenate([bounded_run.warmup.calls[kind], bounded_run.kept.calls[kind]])
        assert (np.diff(trace) >= 0).all()
        assert trace[-1] == bounded_run.calls[kind]


def test_seconds_have_three_phases(forward_run):
    run, _ = forward_run
    assert list(run.seconds) == ["warmup", "training", "sampling"]
    assert all(s > 0 for s in run.seconds.values())


def test_elapsed_seconds_rise_over_the_whole_run(bounded_run):
    seconds = np.concatenate([bounded_run.warmup.seconds, bounded_run.kept.seconds])
    assert (np.diff(seconds) > 0).all()
    assert seconds[0] > 0


@pytest.mark.parametrize("part", ["kept", "warmup"])
def test_every_array_of_a_trace_has_its_shape(forward_run, part):
    trace = getattr(forward_run[0], part)
    n = len(trace)
    assert n == {"kept": 40, "warmup": 60}[part]
    for name in ("values", "accepted", "divergent", "acceptance", "path_acceptance", "n_steps"):
        assert getattr(trace, name).shape == (2, n), name
    for array in (trace.step_size, trace.seconds, *trace.calls.values()):
        assert array.shape == (n,)
    assert trace.draws.shape == trace.positions.shape == (2, n, 2)


def test_probabilities_are_probabilities(bounded_run):
    for array in (bounded_run.kept.acceptance, bounded_run.kept.path_acceptance):
        assert (array >= 0).all()
        assert (array <= 1).all()


def test_an_exact_surrogate_has_the_paths_own_acceptance(forward_run):
    kept = forward_run[0].kept
    assert_allclose(kept.acceptance, kept.path_acceptance, atol=1e-9)


def test_adaptation_tells_what_was_deployed(forward_run):
    adaptation = forward_run[0].adaptation
    assert adaptation.deployments == (15,)
    assert adaptation.training_rows > 60
    assert adaptation.frozen_before_draws


def test_without_a_surrogate_nothing_was_deployed(bounded_run):
    assert bounded_run.adaptation.deployments == ()
    assert bounded_run.adaptation.training_rows == 0
    assert bounded_run.surrogate is None


@pytest.mark.parametrize("kind", ["least", "bulk", "tail", "square", "paper"])
def test_ess_is_that_of_the_draws(bounded_run, kind):
    expected = sk.effective_sample_size(bounded_run.draws, kind)
    assert_array_equal(bounded_run.ess(kind), expected)
    assert bounded_run.ess(kind).shape == (4,)


def test_the_least_is_the_default_ess(bounded_run):
    assert_array_equal(bounded_run.ess(), bounded_run.ess("least"))


def test_r_hat_is_that_of_the_draws(bounded_run):
    assert_array_equal(bounded_run.rhat(), sk.r_hat(bounded_run.draws))


def test_calls_per_effective_draw_are_those_of_the_worst(bounded_run):
    expected = bounded_run.total_calls / bounded_run.ess().min()
    assert bounded_run.calls_per_effective_draw() == pytest.approx(expected)


def test_the_tuned_sampler_is_kept(forward_run):
    run, _ = forward_run
    assert run.kernel.step == run.kept.step_size[-1]
    assert run.kernel.potential is run.surrogate


def test_parameters_are_those_of_the_target(forward_run):
    run, target = forward_run
    assert run.parameters == parameters_of(target)


# --- the table ---

ESS = ["ess", "ess_bulk", "ess_tail", "ess_square"]
COLUMNS = ["mean", "sd", "q05", "q50", "q95", *ESS, "rhat", "mcse", "calls_per_ess"]


def test_the_summary_has_its_columns(bounded_run):
    assert list(bounded_run.summary().columns) == COLUMNS


def test_columns_are_statistics_of_all_chains(bounded_run):
    summary, flat = bounded_run.summary(), bounded_run.draws.reshape(-1, 4)
    assert_allclose(summary["mean"], flat.mean(axis=0))
    assert_allclose(summary["sd"], flat.std(axis=0, ddof=1))
    for name, p in {"q05": 0.05, "q50": 0.5, "q95": 0.95}.items():
        assert_allclose(summary[name], np.quantile(flat, p, axis=0))
    assert_allclose(summary["ess"], bounded_run.ess())
    for name in ESS[1:]:
        assert_allclose(summary[name], bounded_run.ess(name.removeprefix("ess_")))
    assert_array_equal(summary["ess"], np.min([summary[name] for name in ESS[1:]], axis=0))
    assert_allclose(summary["rhat"], bounded_run.rhat())
    assert_allclose(summary["calls_per_ess"], bounded_run.total_calls / bounded_run.ess())


def test_rows_are_parameters(bounded_run):
    rows = dict(bounded_run.summary().rows())
    assert list(rows) == bounded_run.labels
    assert rows["w[1]"]["mean"] == pytest.approx(bounded_run["w"][:, :, 1].mean())
    assert bounded_run.summary().to_dict() == rows


def test_the_printed_table_has_a_line_for_each_parameter(bounded_run):
    summary = bounded_run.summary(wide=True)
    lines = str(summary).splitlines()
    assert lines[0].split() == COLUMNS
    assert [line.split()[0] for line in lines[1:5]] == bounded_run.labels
    assert "\n".join(lines[6:-1]) == str(judge(bounded_run))
    assert lines[-1].startswith("Modes: ")
    assert len({len(line) for line in lines[:5]}) == 1
    assert repr(summary).startswith("<Summary of 4 parameters>\n")


def test_columns_of_huge_numbers_and_long_names_do_not_run_together(bounded_run):
    draws = np.ldexp(bounded_run.draws, 1000)
    draws[..., 1] *= -1.0
    names = ["a", "a_name_that_is_longer_than_any_column_is_wide", "b", "c"]
    calls = 3 * 10**17
    lines = str(attrs.evolve(Summary.of(draws, names, calls), wide=True)).splitlines()
    assert lines[0].split() == COLUMNS
    assert [len(line.split()) for line in lines[1:]] == [1 + len(COLUMNS)] * 4
    assert len({len(line) for line in lines[:5]}) == 1
    assert re.search(r"  -\d\.\d+e\+30\d  ", lines[2])


@pytest.mark.parametrize("power", [-1000, 1000])
def test_statistics_do_not_depend_on_units(bounded_run, power):
    draws = bounded_run.draws
    summary = Summary.of(draws, bounded_run.labels, 1.0)
    other = Summary.of(np.ldexp(draws, power), bounded_run.labels, 1.0)
    for name in COLUMNS:
        scale = power if name in ("mean", "sd", "q05", "q50", "q95", "mcse") else 0
        assert_array_equal(other[name], np.ldexp(summary[name], scale))


def test_a_figure_that_cannot_be_had_is_missing(bounded_run):
    still = np.tile(bounded_run.draws[:, :1], (1, 50, 1))
    stuck = changed(bounded_run, draws=still)
    lines = str(stuck.summary(wide=True)).splitlines()
    assert [line.split().count("missing") for line in lines[:5]] == [0, 7, 7, 7, 7]
    assert stuck.to_dict()["rhat_max"] is None
    told = [note for note in judge(stuck).messages if "R-hat" in note]
    assert told == [
        "R-hat is missing for rate, slope, w[0], w[1]: the chains hardly moved there, or never"
    ]


def test_r_hat_of_too_few_draws_is_missing(bounded_run):
    few = changed(bounded_run, draws=bounded_run.draws[:, :3], seconds=bounded_run.kept.seconds[:3])
    assert "R-hat is missing, as it needs 4 draws of each chain; draw more" in judge(few).messages


def test_the_representation_is_short(bounded_run):
    calls = bounded_run.total_calls
    assert repr(bounded_run) == f"<Run: 3 chains of 50 draws of 4 numbers; {calls} exact calls>"


def test_the_representation_tells_of_an_interrupt(bounded_run):
    assert "incomplete" in repr(attrs.evolve(bounded_run, stopped="interrupted"))


# --- what went wrong ---


def changed(run, **arrays):
    return attrs.evolve(run, kept=attrs.evolve(run.kept, **arrays))


def with_status(run, status, n):
    every = np.zeros(run.kept.status.shape, dtype=np.int64)
    every.flat[:n] = status
    return changed(run, status=every, divergent=every != Status.OK)


def test_failed_paths_are_counted_by_how_they_failed(bounded_run):
    none = {"not-finite": 0, "not-converged": 0, "not-reversible": 0}
    assert bounded_run.path_failures == none
    failed = with_status(bounded_run, Status.NOT_REVERSIBLE, 4)
    assert failed.path_failures == {**none, "not-reversible": 4}
    assert failed.to_dict()["path_failures"] == failed.path_failures
    assert any("4 paths diverged (4 not-reversible)" in note for note in judge(failed).messages)
    assert not any(
        "a smaller step size" in note for note in judge(failed).messages
    )  # nobody gave one


@pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")
def test_failed_paths_of_a_run_are_counted():
    class Cliff:
        dim, capabilities = 1, frozenset({"gradient"})

        def value(self, q):
            return np.where(np.abs(q[:, 0]) < 1.5, 0.5 * q[:, 0] ** 2, np.inf)

        def value_and_gradient(self, q):
            return self.value(q), np.where(np.abs(q) < 1.5, q, np.nan)

    run = sk.sample(Cliff(), chains=2, warmup=50, draws=60, seed=1, progress=False, initial=[0.2])
    assert run.path_failures["not-finite"] == (run.kept.status == Status.NOT_FINITE).sum() > 0
    assert run.warmup.status.shape == (2, 50)


@pytest.mark.parametrize(
    ("status", "complaint"),
    [
        (Status.NOT_CONVERGED, "implicit equations of 10 of 150 kept paths were not solved"),
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
    slow[:, 0] = True
    assert not advice(changed(bounded_run, accepted=slow))


def test_of_a_few_iterations_nothing_is_said(bounded_run):
    nothing = {"path_acceptance": np.zeros((3, 50)), "accepted": np.zeros((3, 50), dtype=bool)}
    run = changed(bounded_run, **nothing)
    (found,) = advice(run)
    assert "next to nothing was accepted, for the paths themselves fail" in found
    few = changed(run, seconds=run.kept.seconds[:19])
    assert advice(few) == []


# --- for machines ---


def test_figures_survive_json(bounded_run):
    figures = bounded_run.to_dict()
    assert json.loads(json.dumps(figures, allow_nan=False)) == figures | {
        "adaptation": {
            **figures["adaptation"],
            **{name: [] for name in ("deployments", "rescues", "restarts")},
        }
    }


def test_figures_are_those_of_the_run(bounded_run):
    figures = bounded_run.to_dict()
    ess = bounded_run.ess()
    assert figures["ess"] == {"min": ess.min(), "median": np.median(ess), "max": ess.max()}
    assert figures["acceptance"] == bounded_run.acceptance.tolist()
    assert figures["calls"] == bounded_run.calls
    assert figures["rhat_max"] == bounded_run.rhat().max()
    assert figures["complete"] is True
    assert (figures["chains"], figures["draws"]) == (3, 50)
    assert figures["parts"]["sampler"] == "random-walk"
    assert set(figures["seconds"]) == {"warmup", "training", "sampling"}


def test_figures_of_a_run_too_short_to_judge_are_json_too():
    run = sk.sample(
        sk.potential(lambda q: 0.5 * q @ q, lambda q: q, dim=1),
        warmup=20,
        draws=2,
        seed=1,
        progress=False,
    )
    text = json.dumps(run.to_dict(), allow_nan=False)
    assert json.loads(text)["draws"] == 2


def test_figures_of_a_stuck_parameter_are_json_too(bounded_run):
    kept = attrs.evolve(bounded_run.kept, draws=np.ones_like(bounded_run.draws))
    json.dumps(attrs.evolve(bounded_run, kept=kept).to_dict(), allow_nan=False)


def test_the_held_out_error_of_the_surrogate_is_told():
    target = sk.make("potential", "gaussian", dim=3)
    run = sk.sample(target, surrogate="additive", chains=2, warmup=80, draws=10, seed=1)
    quality = run.fit_quality
    assert quality is run.surrogate.quality
    assert run.to_dict()["held_out"] == {
        "variance": quality.variance,
        "gradient_error": quality.gradient_error,
        "n_points": quality.n_points,
        "acceptance": quality.acceptance,
    }


def test_without_a_surrogate_there_is_no_held_out_error(forward_run):
    run = sk.sample(sk.make("potential", "gaussian", dim=3), chains=2, warmup=10, draws=10, seed=1)
    assert run.fit_quality is None
    assert run.to_dict()["held_out"] is None
    assert forward_run[0].fit_quality is None  # of a surrogate that does not say
