"""Failures of a target: counted by kind, tried again, told from chance, and warned of."""

from __future__ import annotations

import json
import re
import subprocess
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import surrokit as sk
from surrokit.cost.probes import MOST, evaluate_again
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import (
    ConfigurationError,
    EvaluationWarning,
    ResultTypeError,
    SamplingWarning,
    ShapeError,
    TargetError,
)
from surrokit.failures import FailureAccount, different_near

Q = np.array([[-1.0, 0.0], [2.0, 1.0], [-2.0, 1.0]])
LEFT = np.array([True, False, True])
SIZES = {"warmup": 100, "draws": 100, "seed": 1, "progress": False}


def value(q):
    return 0.5 * q @ q


def raising(error):
    def failure(q):
        raise type(error)(*error.args)  # its traceback would grow otherwise

    return failure


def nan(q):
    return np.nan


flaky = raising(RuntimeError("flaky"))


def failing_from(edge, failure=nan):
    """Return a normal potential that fails where q[0] is larger."""

    def fragile(q):
        return failure(q) if q[0] > edge else value(q)

    return sk.potential(fragile, lambda q: q, parameters={"a": None, "b": None})


def on_the_right(failure):
    return sk.potential(lambda q: failure(q) if q[0] > 0 else value(q), dim=2)


class FailsAtFirst:
    """A normal potential that fails the first n times at each position on the right."""

    def __init__(self, n, failure=flaky):
        self.n, self.failure, self.seen = n, failure, {}

    def __call__(self, q):
        times = self.seen[q.tobytes()] = self.seen.get(q.tobytes(), 0) + 1
        return self.failure(q) if q[0] > 0 and times <= self.n else value(q)


def recorded(target, **options):
    return RecordingPotential(target, keep=True, **options)


def retried(retries):
    return sk.Compute(on_error="retry", retries=retries)


def kinds(recording):
    account = recording.rejections.account.kinds
    return {name: (kind.count, kind.cured) for name, kind in account.items()}


def quietly(target, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sk.sample(target, **{**SIZES, "sampler": "random-walk", **options})


def warned(target, **options):
    """Return a run and what it warned of failures."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = sk.sample(target, **{**SIZES, **options})
    return run, [str(w.message) for w in caught if w.category is EvaluationWarning]


# --- kinds ---


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (raising(ValueError("bad")), "exception ValueError"),
        (raising(RuntimeWarning("overflow")), "warning RuntimeWarning"),
        (raising(subprocess.TimeoutExpired("model", 3)), "time-out"),
        (nan, "NaN"),
        (lambda q: -np.inf, "minus infinity"),
        (lambda q: q, "wrong shape"),
        (lambda q: 1.0 + 2.0j, "wrong type"),
        (lambda q: None, "wrong type"),
        (lambda q: [1.0, [2.0, 3.0]], "wrong type"),
    ],
)
def test_a_failure_has_a_kind(failure, kind):
    recording = recorded(on_the_right(failure))
    values = recording.value(Q)
    assert_array_equal(values, np.where(LEFT, 0.5 * (Q**2).sum(axis=1), np.inf))
    assert kinds(recording) == {kind: (1, 0)}
    assert recording.failures == 1


def test_broken_gradients_are_kinds_too():
    target = sk.potential(value, lambda q: np.where(q > 0, np.nan, q), dim=2)
    recording = recorded(target)
    recording.value_and_gradient(Q)
    assert kinds(recording) == {"broken gradient": (2, 0)}
    assert recording.broken_gradients.count == 2
    target = sk.potential(
        value, lambda q: raising(OSError("no licence"))(q) if q[0] > 0 else q, dim=2
    )
    recording = RecordingPotential(target, keep=False)
    recording.gradient(Q)
    assert kinds(recording) == {"exception OSError": (1, 0)}
    assert recording.broken_gradients.count == 1


def test_the_first_of_each_kind_is_told_in_the_coordinates_of_the_user():
    def fragile(q):
        if q[0] > 3:
            raise ValueError("too large")
        return np.nan if q[0] > 2 else 0.0

    recording = recorded(sk.potential(fragile, parameters={"rate": (0, None)}))
    recording.value(np.log([[1.0], [2.5], [4.0], [2.2], [5.0]]))
    told = recording.rejections.account.tell(recording.transform, 1)
    assert {name: kind.count for name, kind in told.items()} == {
        "NaN": 2,
        "exception ValueError": 2,
    }
    assert_allclose(told["NaN"].position, [2.5])
    assert_allclose(told["exception ValueError"].position, [4.0])
    assert told["exception ValueError"].message.startswith("raised ValueError: too large (")
    assert told["NaN"].message == "returned NaN"


def test_kinds_add_up_in_a_run():
    def fragile(q):
        if q[0] > 1:
            raise ValueError("right")
        return np.nan if q[1] > 1 else value(q)

    run = quietly(sk.potential(fragile, lambda q: q, dim=2))
    assert sum(kind.count for kind in run.failure_kinds.values()) == run.failures > 0
    assert set(run.failure_kinds) == {"exception ValueError", "NaN"}
    assert run.failure_kinds["NaN"].position[1] > 1
    assert_array_equal(np.diff(run.kept.failures) >= 0, True)
    assert run.kept.failures[-1] <= run.failures
    written = json.loads(json.dumps(run.to_dict()))["failure_kinds"]
    assert written["NaN"]["count"] == run.failure_kinds["NaN"].count
    (finding,) = run.verdict.named("failures")
    said = f"could not be evaluated at {run.failures} positions, which were rejected"
    assert said in finding.message
    assert "by exception ValueError (first at q[0] = " in finding.message
    assert "raised ValueError: right" in finding.message
    assert finding.message in run.summary().remarks


def test_single_rows_have_no_position():
    account = FailureAccount()
    account.reject("NaN", "returned NaN", "rows", np.array([3.0, 5.0]))
    assert account.kinds["NaN"].position is None
    assert not account.lately
    assert account.tell(None, 2) == account.kinds


# --- wrong shapes and types ---


@pytest.mark.parametrize(
    ("result", "error", "message"),
    [
        (lambda q: q, ShapeError, r"must return shape \(\), got \(2,\)"),
        (lambda q: None, ResultTypeError, "must return real numbers, got None; does it lack a"),
        (lambda q: 1j, ResultTypeError, "got an array of type complex128; take the real part"),
        (lambda q: [[1.0], 2.0], ResultTypeError, "must return real numbers in one array: "),
    ],
)
def test_what_is_wrong_from_the_start_stops(result, error, message):
    for compute in (sk.Compute(), retried(2)):
        with pytest.raises(error, match=message):
            sk.sample(sk.potential(result, dim=2), compute=compute, **SIZES)


def test_what_is_wrong_later_stops_if_asked():
    recording = recorded(on_the_right(lambda q: q), on_error="raise")
    recording.value(Q[LEFT])
    with pytest.raises(TargetError, match="the target raised ShapeError: the value function"):
        recording.value(Q)


def test_a_batch_of_wrong_shape_is_evaluated_row_by_row_later():
    def rows(q):
        return q if (q[:, 0] > 0).any() else 0.5 * (q**2).sum(axis=1)

    recording = recorded(sk.potential(rows, dim=2, batched=True))
    recording.value(Q[LEFT])
    values = recording.value(Q)
    assert_array_equal(np.isinf(values), ~LEFT)
    assert kinds(recording) == {"wrong shape": (1, 0)}


@pytest.mark.parametrize(("method", "alone"), [("value", True), ("value_and_gradient", False)])
def test_a_map_may_not_change_the_number_of_its_outputs(method, alone):
    def forward(q):
        return np.append(q, 1.0) if q[0] > 0 else 2 * q

    def jacobian(q):
        return np.ones((3, 2)) if q[0] > 0 else 2 * np.eye(2)

    target = sk.forward_potential(forward, jacobian, data=[0.0, 0.0], noise_sd=1.0, dim=2)
    recording = recorded(target)
    getattr(recording, method)(Q[LEFT])
    result = getattr(recording, method)(Q[~LEFT] if alone else Q)
    values = result if method == "value" else result[0]
    assert_array_equal(np.isinf(values), [True] if alone else ~LEFT)
    assert kinds(recording) == {"wrong shape": (1, 0)}


# --- retries ---


@pytest.mark.parametrize("failure", [flaky, nan, raising(TimeoutError())])
def test_a_retry_cures(failure):
    recording = recorded(sk.potential(FailsAtFirst(2, failure), dim=2), on_error="retry", retries=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_array_equal(recording.value(Q), 0.5 * (Q**2).sum(axis=1))
    assert recording.calls["value"] == 3 + 1 + 1
    assert recording.failures == 0
    assert list(kinds(recording).values()) == [(0, 1)]


def test_what_fails_each_time_is_rejected_once():
    recording = recorded(sk.potential(FailsAtFirst(3), dim=2), on_error="retry", retries=2)
    values = recording.value(Q)
    assert_array_equal(np.isinf(values), ~LEFT)
    assert recording.calls["value"] == 3 + 1 + 1
    assert kinds(recording) == {"exception RuntimeError": (1, 0)}


@pytest.mark.filterwarnings("ignore::surrokit.errors.EvaluationWarning")
@pytest.mark.parametrize("answer", [np.inf, -np.inf])
def test_infinite_values_are_not_tried_again(answer):
    target = sk.potential(lambda q: answer if q[0] > 0 else 0.0, lambda q: q * np.nan, dim=2)
    recording = recorded(target, on_error="retry", retries=5)
    recording.value(Q)
    assert recording.calls["value"] == 3
    assert recording.failures == (answer < 0)
    if answer > 0:
        recording.value_and_gradient(Q[~LEFT])
        assert recording.calls["gradient"] == 1


def test_gradients_and_maps_are_tried_again():
    at_first = FailsAtFirst(1)
    target = sk.potential(value, lambda q: q if at_first(q) is not None else None, dim=2)
    recording = recorded(target, on_error="retry", retries=2)
    assert_array_equal(recording.value_and_gradient(Q)[1], Q)
    mapped = FailsAtFirst(1, nan)
    target = sk.forward_potential(
        lambda q: np.atleast_1d(mapped(q)), data=[0.0], noise_sd=1.0, dim=2
    )
    recording = recorded(target, on_error="retry", retries=2)
    assert np.isfinite(recording.value(Q)).all()
    assert kinds(recording) == {"NaN": (0, 1)}


@pytest.mark.parametrize("failure", [raising(OSError("flaky")), nan])
def test_a_neighbour_of_a_difference_is_tried_again(failure):
    """Else the gradient would be another one the next time, and paths would not lead back."""
    plain = sk.potential(value, gradient="differences", dim=2)
    target = sk.potential(FailsAtFirst(1, failure), gradient="differences", dim=2)
    recording = recorded(target, on_error="retry", retries=1)
    assert_array_equal(recording.value_and_gradient(Q)[1], recorded(plain).value_and_gradient(Q)[1])
    assert recording.failures == 0
    assert recording.rejections.account.cured == 5  # the position on the right, and its neighbours
    assert recording.calls["value"] == 3 * 5 + 5
    assert recording.value(Q + 9.0).tolist() == recorded(plain).value(Q + 9.0).tolist()


def test_a_cured_failure_is_where_it_was_and_counts_once():
    """Also where parameters have bounds, and where a batch is remembered."""
    failed = FailsAtFirst(1, raising(OSError("flaky")))
    target = sk.potential(failed, parameters={"a": (0.0, None), "b": None})
    recording = recorded(target, on_error="retry", retries=1)
    z = np.array([[0.5, 1.0]])
    with recording.remembering():
        recording.value(z)
    recording.value(z)
    assert recording.calls["value"] == 2
    (kind,) = recording.rejections.account.tell(recording.transform, 2).values()
    assert kind.cured == 1
    assert_allclose(kind.position, [np.exp(0.5), 1.0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"retries": 2}, "retries is given, but on_error is 'reject', so that nothing is tried"),
        ({"retries": 0, "on_error": "raise"}, "on_error is 'raise'.*leave retries out"),
        ({"retries": 1.5, "on_error": "retry"}, "whole number of at least 1, got 1.5"),
    ],
)
def test_retries_must_mean_something(options, message):
    with pytest.raises(ConfigurationError, match=message):
        sk.Compute(**options)


# --- models that fail by chance ---

WALK = {"sampler": ("random-walk", {"step_size": 1.5}), "chains": 2, "draws": 150}


def by_chance(
    rate, seed=1, fails=lambda q: q[0] > 0, always=lambda _: False, failure=flaky, **settings
):
    """Return a run of a normal that fails by chance in a half, and perhaps always elsewhere."""
    rng = np.random.default_rng(seed)

    def fragile(q):
        return failure(q) if always(q) or (fails(q) and rng.random() < rate) else value(q)

    return quietly(sk.potential(fragile, dim=2), **{**WALK, "seed": seed, **settings})


def lost(finding):
    """Return the part of the density that a finding says is lost."""
    (share,) = re.findall(r"about ([\d.e-]+)(%?) of (?:the|its) density is lost", finding.message)
    return float(share[0]) * (0.01 if share[1] else 1.0)


@pytest.mark.parametrize(
    ("rate", "seed", "failure", "name", "bounds"),
    [
        # a run misses these with probability 0.005; of five positions tried again it was 0.59
        (0.9, 0, flaky, "fails_by_chance", (0.5, 0.99)),
        (0.5, 1, nan, "fails_by_chance", (0.3, 0.7)),
        (0.5, 1, lambda q: np.inf, "infinite_by_chance", (0.3, 0.7)),
    ],
)
def test_failures_by_chance_are_found(rate, seed, failure, name, bounds):
    run = by_chance(rate, seed, failure=failure)
    (finding,) = run.verdict.named(name)
    assert finding.warns
    assert bounds[0] < lost(finding) < bounds[1]
    assert "compute=sk.Compute(on_error='retry', retries=" in finding.message


def test_positions_that_retries_lost_are_warned_of_and_the_advice_is_enough():
    """Of the density where half of the calls fail, (1/2)^3 is lost with two retries."""
    run = by_chance(0.5, compute=retried(2), draws=400)
    (finding,) = run.verdict.named("fails_by_chance")
    assert finding.warns
    assert not run.verdict.named("retried")
    assert 0.08 < lost(finding) < 0.18
    (retries,) = map(int, re.findall(r"more retries=(\d+)", finding.message))
    cured = by_chance(0.5, compute=retried(retries))
    assert not cured.verdict.named("fails_by_chance")
    assert cured.verdict.named("retried")
    # the counts alone tell, where a limit of calls leaves none to try positions again
    few = by_chance(0.5, compute=retried(2), max_calls=run.total_calls // 16)
    assert few.failures
    assert few.verdict.named("fails_by_chance")


def test_a_region_that_fails_always_is_not_taken_for_chance():
    """Beside rare failures by chance, which retries cure, and alone."""
    right = {"always": lambda q: q[0] > 1.0}
    run = by_chance(0.05, fails=lambda _: True, compute=retried(3), **right)
    assert run.failures > 20
    assert not run.verdict.named("fails_by_chance")
    (finding,) = run.verdict.named("retried")
    assert "these fail for another reason" in finding.message
    run = by_chance(0.0, failure=nan, **right)
    assert (run.recheck.tried, run.recheck.worked, run.recheck.apart) == (MOST, 0, None)
    assert not run.verdict.named("fails_by_chance")
    # looking again counts no failure
    assert sum(kind.count for kind in run.failure_kinds.values()) == run.failures


def test_a_second_look_is_cheap():
    """At most 50 positions are tried again, and few where failures by chance are common."""
    region, common = by_chance(0.0, always=lambda q: q[0] > 1.0), by_chance(0.5)
    infinite = by_chance(0.0, always=lambda q: q[0] > 0.3, failure=lambda q: np.inf)
    decided = 2 * (1 + 100 + 150)
    assert region.recheck.tried == MOST == 50
    assert common.recheck.worked == 5
    assert common.recheck.tried < 25
    for run in (region, common):
        assert run.total_calls <= decided + run.recheck.tried + 1
    assert infinite.recheck.infinite >= 5
    assert infinite.recheck.finite == 0
    assert not infinite.verdict.named("infinite_by_chance")
    assert infinite.total_calls <= decided + max(5, 0.01 * decided) + 1
    assert by_chance(0.5, max_calls=504).total_calls <= 504
    seen = []
    sound = quietly(sk.potential(lambda q: seen.append(1) or value(q), dim=2), chains=1)
    assert sound.recheck.tried == 0
    assert sound.calls["value"] == len(seen) == 1 + 200


def test_a_second_look_uses_the_call_that_failed():
    """A map that has a value where its gradient fails is none that fails by chance."""

    def slope(q):
        if q[0] > 0.5:
            raise ZeroDivisionError("no slope")
        return q

    run = quietly(sk.potential(value, slope, dim=2), sampler="hmc")
    assert (run.recheck.tried, run.recheck.worked) == (MOST, 0)
    # differences to one side and to both have other neighbours
    target = recorded(
        sk.potential(lambda q: np.nan if 0.0 < abs(q[0]) < 1e-3 else q @ q, "differences", dim=1)
    )
    target.value_and_gradient(np.zeros((1, 1)))
    assert target.failures == 1
    evaluate_again(target, np.array([[-1.0], [1.0]]))
    recheck = target.rejections.account.recheck
    assert (recheck.tried, recheck.worked) == (1, 0)


def test_failures_far_away_are_not_looked_at_again():
    recording = recorded(on_the_right(nan))
    recording.value(np.array([[1e6, 0.0], [-1.0, 0.0]]))
    evaluate_again(recording, Q)
    assert recording.rejections.account.recheck.tried == 0
    assert recording.calls["value"] == 2


def test_cured_failures_change_no_draw_and_are_told():
    sound = quietly(sk.potential(value, dim=2), **WALK)
    run = by_chance(0.1, fails=lambda _: True, compute=retried(8))
    assert_array_equal(sound.draws, run.draws)
    (finding,) = run.verdict.named("retried")
    cured = run.failure_kinds["exception RuntimeError"].cured
    assert run.failures == run.recheck.tried == 0
    assert finding.message == (
        f"the target fails by chance: {cured} positions that failed were evaluated by a retry; "
        "draws are right, since in the end every position was evaluated"
    )
    assert not finding.warns
    assert run.calls["value"] - sound.calls["value"] == pytest.approx(cured / 0.9, rel=0.2)


@pytest.mark.parametrize("fails", [pytest.param(False, marks=pytest.mark.long), True])
def test_a_noisy_model_is_told(fails):
    """Where calls are timed, and where failures are looked at again."""
    rng = np.random.default_rng(1)

    def noisy(q):
        return np.nan if fails and q[0] > 1 else value(q) + rng.standard_normal()

    parts = {} if fails else {"sampler": None, "max_calls": 300}
    run = quietly(sk.potential(noisy, dim=2), **parts)
    (finding,) = run.verdict.named("noisy")
    first, again = run.recheck.apart
    assert f"at one position its potential was {first:.10g} and then {again:.10g}" in (
        finding.message
    )
    assert finding.warns


@pytest.mark.long
def test_estimates_of_a_density_are_drawn_from_without_differences():
    """Chains keep the estimate at their position (Andrieu and Roberts 2009)."""
    rng = np.random.default_rng(2)
    target = sk.potential(lambda q: value(q) + 0.5 * rng.standard_normal(), dim=2)
    run = quietly(target, sampler=None, warmup=None, draws=1500)
    assert run.total_calls < 10_000  # by differences it stopped at the limit of 600,000
    flat = run.draws.reshape(-1, 2)
    error = 5.0 / np.sqrt(run.ess().min())
    assert np.abs(flat.mean(axis=0)).max() < error
    assert np.abs(flat.std(axis=0) - 1.0).max() < error
    assert "the mean of exp(-U)" in run.verdict.named("noisy")[0].message


# --- chains and starts ---


@pytest.mark.parametrize("failure", [raising(ValueError("no solution")), lambda q: np.inf])
def test_a_chain_that_only_ever_fails_is_told(failure):
    """Chain 1 begins on an island that nothing surrounds; zero density there is no failure."""
    island = np.array([50.0, 0.0])

    def fragile(q):
        if q[0] > 20 and not np.array_equal(q, island):
            return failure(q)
        return value(np.where(q == island, 0.0, q))

    initial = [[0.0, 0.0], island, [0.5, 0.0], [0.0, 0.5]]
    run = quietly(sk.potential(fragile, dim=2), initial=initial)
    told = run.verdict.named("failing_chain")
    assert bool(told) == bool(run.failures)
    for finding in told:
        assert finding.warns
        start = "chain 1 never moved in 100 iterations, and the"
        assert finding.message.startswith(start)
        assert "Begin elsewhere with initial=..., or correct the model there" in finding.message


def test_starts_avoid_where_the_target_fails():
    def fragile(q):
        if q[0] > 0.0:  # of starts in (-2, 2)
            raise ValueError("no solution")
        return value(q + 0.5)

    target = sk.potential(fragile, lambda q: q + 0.5, dim=2)
    run = quietly(target, surrogate="quadratic", sampler=None)
    assert (run.draws[..., 0] <= 0.0).all()
    assert not run.verdict.named("failing_chain")
    assert (run.acceptance > 0.1).all()


# --- what is warned of, and when ---

X = 2.0 * np.random.default_rng(0).standard_normal((2000, 3))
Y = np.random.default_rng(1).random(2000) < 1.0 / (1.0 + np.exp(-X @ [1.0, -1.0, 0.5]))


def probability(q):
    z = X @ q
    return np.exp(z) / (1.0 + np.exp(z))


def naive(q):
    """A logistic regression as it is often written: NaN where a predictor is beyond 37."""
    p = probability(q)
    return -np.sum(Y * np.log(p) + (1 - Y) * np.log(1 - p)) + 0.5 * q @ q


def test_a_sound_model_that_overflows_far_out_is_no_alarm():
    target = sk.potential(naive, lambda q: X.T @ (probability(q) - Y) + q, dim=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "R-hat is|the draws of", SamplingWarning)
        run = sk.sample(target, sampler="hmc", **{**SIZES, "seed": 3})
    assert run.failures > 0  # they are counted all the same


@pytest.mark.parametrize(
    ("parts", "failure"),
    [
        ({"surrogate": "quadratic"}, raising(OverflowError("too much"))),
        ({"sampler": ("hmc", {"step_size": 0.5}), "warmup": 0, "initial": [0.0, 0.0]}, nan),
    ],
)
def test_a_target_that_fails_in_its_bulk_is_reported(parts, failure):
    run, said = warned(failing_from(1.0, failure), **parts)
    assert run.failures > 0
    (message,) = said
    assert "returned NaN" in message or "raised OverflowError" in message


def test_a_failure_that_only_the_warm_up_met_is_reported():
    """Where a call of the warm-up failed the draws are, though none of them fails."""
    calls = []

    def once(q):
        calls.append(q)
        return np.nan if len(calls) == 50 else 0.5 * q @ q

    target = sk.potential(once, lambda q: q, parameters={"a": (0, 5), "b": None})
    run, said = warned(target, sampler="hmc", warmup=200)
    assert run.failures == run.recheck.near == 1
    (message,) = said
    assert f"first at a = {calls[49][0]:.6g}, b = {calls[49][1]:.6g}: returned NaN" in message
    assert "draws lack the probability there" in message


def test_without_draws_failures_are_reported_all_the_same():
    run, said = warned(failing_from(-0.5), sampler="hmc", max_calls=40)
    assert run.unchecked is not None
    (message,) = said
    assert message.startswith(f"the target could not be evaluated at {run.failures} positions")
    with pytest.raises(TargetError, match=r"no start was found in 100 attempts.*returned NaN"):
        sk.sample(sk.potential(nan, dim=12), sampler="random-walk", **SIZES)


def test_a_run_that_is_ended_among_its_draws_and_its_file_tell_of_the_same_failures(tmp_path):
    """It fails from its first draw on, and no position is evaluated once more."""
    seen, path = [], tmp_path / "run"

    class Interrupting:
        def surrokit_transition_done(self, info, **_):
            seen.append(info.stage)
            if seen.count("sampling") == 60:
                raise KeyboardInterrupt

    target = sk.potential(lambda q: nan(q) if "sampling" in seen and q[0] > 1 else value(q), dim=2)
    run, (message,) = warned(target, sampler="random-walk", observers=[Interrupting()], path=path)
    assert (run.stopped, run.recheck.tried) == ("interrupted", 0)
    assert run.recheck.near > 0
    assert "draws lack the probability there" in message
    assert sk.open_run(path).verdict.named("failures") == run.verdict.named("failures")


def test_an_infinite_density_is_reported_wherever_it_is():
    target = sk.potential(lambda q: -np.inf if q[0] > 30.0 else value(q), dim=2)
    walk = {"sampler": ("random-walk", {"step_size": 30.0}), "warmup": 0}
    run, (message,) = warned(target, **walk)
    assert run.failures == run.failure_kinds["minus infinity"].count > 0
    assert "an infinite density, which no chain could leave" in message


def test_a_batch_that_has_to_be_parted_is_remarked():
    def alone(q):
        if len(q) > 1:
            raise ValueError("one position, please")
        return 0.5 * (q**2).sum(axis=1)

    run, said = warned(sk.potential(alone, dim=2, batched=True), sampler="random-walk")
    assert run.failures == 0
    assert not said
    (finding,) = run.verdict.named("noticed")
    assert "raised ValueError: one position, please" in finding.message
    assert "leave batched=True out" in finding.message


SQUARE = np.array([[0.0, 0.0], [1.0, 1.0]])


@pytest.mark.parametrize(
    ("position", "places", "is_near"),
    [
        ([0.5, 0.5, 7.0, 1e9], SQUARE, True),  # columns beyond the position do not matter
        ([1.9, -0.9], SQUARE, True),  # beside the draws, as what cuts them off is
        ([2.1, 0.5], SQUARE, False),
        ([np.nan, 0.5], SQUARE, False),
        ([1e6, 0.0], np.array([[0.5, 0.0], [0.5, 1.0]]), True),  # of which no region is known
        ([1e6, 0.0], np.empty((0, 2)), True),
    ],
)
def test_near_is_within_a_width_of_the_draws(position, places, is_near):
    account = FailureAccount()
    rows = np.array([position, position, [1e6, *position[1:]]])
    account.reject("NaN", "returned NaN", "value", rows)
    expected = [("value", row[:2].tolist()) for row in rows[[2, 0]]] if not len(places) else None
    near = different_near(account.lately, places)
    assert bool(near) == is_near
    assert expected is None or len(near) == len({tuple(row) for row in rows[:, :2].tolist()})
    assert len(account.take_near(places)) == account.recheck.near == len(near)
    assert not account.lately
