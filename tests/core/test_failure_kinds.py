"""Failures by kind, retries, and models that are not functions of position."""

from __future__ import annotations

import json
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
from surrokit.failures import FailureAccount
from surrokit.model.outcome import Outcome, kind_of

Q = np.array([[-1.0, 0.0], [2.0, 1.0], [-2.0, 1.0]])
LEFT = np.array([True, False, True])
SIZES = {"warmup": 100, "draws": 100, "seed": 1, "progress": False}


def value(q):
    return 0.5 * q @ q


def on_the_right(failure):
    """Return a potential that is normal on the left, and fails on the right."""

    def fragile(q):
        return failure(q) if q[0] > 0 else value(q)

    return sk.potential(fragile, parameters={"a": None, "b": None})


def raise_error(error):
    def failure(q):
        raise error

    return failure


flaky = raise_error(RuntimeError("flaky"))


class FailsAtFirst:
    """A normal potential that fails the first n times at each position on the right."""

    def __init__(self, n, failure=flaky):
        self.n, self.failure, self.seen = n, failure, {}

    def __call__(self, q):
        times = self.seen[q.tobytes()] = self.seen.get(q.tobytes(), 0) + 1
        return self.failure(q) if q[0] > 0 and times <= self.n else value(q)


def recorded(target, **options):
    return RecordingPotential(target, keep=True, **options)


def kinds(recording):
    account = recording.rejections.account.kinds
    return {name: (kind.count, kind.cured) for name, kind in account.items()}


def quietly(target, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sk.sample(target, **{**SIZES, "sampler": "random-walk", **options})


# --- kinds ---


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (raise_error(ValueError("bad")), "exception ValueError"),
        (raise_error(RuntimeWarning("overflow")), "warning RuntimeWarning"),
        (raise_error(TimeoutError("late")), "time-out"),
        (raise_error(subprocess.TimeoutExpired("model", 3)), "time-out"),
        (lambda q: np.nan, "NaN"),
        (lambda q: -np.inf, "minus infinity"),
        (lambda q: q, "wrong shape"),
        (lambda q: 1.0 + 2.0j, "wrong type"),
        (lambda q: None, "wrong type"),
        (lambda q: "1.0", "wrong type"),
        (lambda q: [1.0, [2.0, 3.0]], "wrong type"),
    ],
)
def test_a_failure_has_a_kind(failure, kind):
    recording = recorded(on_the_right(failure))
    with pytest.warns(EvaluationWarning, match="such positions are rejected and counted"):
        values = recording.value(Q)
    assert_array_equal(values, np.where(LEFT, 0.5 * (Q**2).sum(axis=1), np.inf))
    assert kinds(recording) == {kind: (1, 0)}
    assert recording.failures == 1


def test_a_broken_gradient_is_a_kind():
    target = sk.potential(value, lambda q: np.where(q > 0, np.nan, q), dim=2)
    recording = recorded(target)
    recording.value_and_gradient(Q)
    assert kinds(recording) == {"broken gradient": (2, 0)}
    assert recording.broken_gradients.count == 2


def test_a_gradient_alone_that_raises_has_the_kind_of_its_exception():
    def slope(q):
        if q[0] > 0:
            raise OSError("no licence")
        return q

    recording = RecordingPotential(sk.potential(value, slope, dim=2), keep=False)
    with pytest.warns(EvaluationWarning, match="no licence"):
        recording.gradient(Q)
    assert kinds(recording) == {"exception OSError": (1, 0)}
    assert recording.broken_gradients.count == 1


def test_the_first_of_each_kind_is_told_in_the_coordinates_of_the_user():
    def fragile(q):
        if q[0] > 3:
            raise ValueError("too large")
        return np.nan if q[0] > 2 else 0.0

    target = sk.potential(fragile, parameters={"rate": (0, None)})
    recording = recorded(target)
    with pytest.warns(EvaluationWarning):
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
    assert f"could not be evaluated at {run.failures} positions, which were rejected" in str(
        finding.message
    )
    assert "by exception ValueError (first at q[0] = " in finding.message
    assert "raised ValueError: right" in finding.message
    assert finding.message in run.summary().remarks


def test_single_rows_have_no_position():
    account = FailureAccount()
    account.reject("NaN", "returned NaN", "rows", np.array([3.0, 5.0]))
    assert account.kinds["NaN"].position is None
    assert not account.lately
    assert account.tell(None, 2) == account.kinds


def test_failures_of_single_rows_are_told_among_draws():
    recording = recorded(on_the_right(lambda q: np.nan))
    log = recording.rejections.log
    log.draws_begin(Q)
    with pytest.warns(EvaluationWarning, match="returned NaN"):
        log.failed("returned NaN", np.array([3.0, 5.0]), overflow=True)


def test_an_exception_is_no_kind_of_ours_by_chance():
    assert kind_of(ShapeError("x")) == "wrong shape"
    assert kind_of(ResultTypeError("x")) == "wrong type"
    assert kind_of(TypeError("x")) == "exception TypeError"


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
@pytest.mark.parametrize("on_error", ["reject", "retry"])
def test_what_is_wrong_from_the_start_stops(result, error, message, on_error):
    with pytest.raises(error, match=message):
        sk.sample(sk.potential(result, dim=2), compute=sk.Compute(on_error=on_error), **SIZES)


@pytest.mark.parametrize(
    ("wrong", "parts"),
    [
        (lambda q: q, {"sampler": "random-walk"}),
        (lambda q: 1.0 + q[0] * 1j, {"max_calls": 1500}),
    ],
)
def test_what_is_wrong_later_is_rejected(wrong, parts):
    run = quietly(on_the_right(wrong), initial=[-1.0, 0.0], **{"sampler": None, **parts})
    assert run.draws.size
    assert (run.draws[..., 0] <= 0).all()
    assert run.failures > 0
    assert set(run.failure_kinds) <= {"wrong shape", "wrong type"}


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
    with pytest.warns(EvaluationWarning, match="must return shape"):
        values = recording.value(Q)
    assert_array_equal(np.isinf(values), ~LEFT)
    assert kinds(recording) == {"wrong shape": (1, 0)}


@pytest.mark.parametrize("method", ["value", "value_and_gradient"])
@pytest.mark.parametrize("alone", [True, False])
def test_a_map_may_not_change_the_number_of_its_outputs(method, alone):
    def forward(q):
        return np.append(q, 1.0) if q[0] > 0 else 2 * q

    def jacobian(q):
        return np.ones((3, 2)) if q[0] > 0 else 2 * np.eye(2)

    target = sk.forward_potential(forward, jacobian, data=[0.0, 0.0], noise_sd=1.0, dim=2)
    recording = recorded(target)
    getattr(recording, method)(Q[LEFT])
    with pytest.warns(EvaluationWarning, match="gives 3 outputs, but data holds 2"):
        result = getattr(recording, method)(Q[~LEFT] if alone else Q)
    values = result if method == "value" else result[0]
    assert_array_equal(np.isinf(values), [True] if alone else ~LEFT)
    assert kinds(recording) == {"wrong shape": (1, 0)}


def test_complex_numbers_without_imaginary_parts_are_real():
    target = sk.potential(lambda q: np.complex128(value(q)), dim=2)
    assert_array_equal(target.value(Q), 0.5 * (Q**2).sum(axis=1))


# --- retries ---


@pytest.mark.parametrize(
    "failure", [raise_error(RuntimeError("flaky")), lambda q: np.nan, raise_error(TimeoutError())]
)
def test_a_retry_cures(failure):
    recording = recorded(sk.potential(FailsAtFirst(2, failure), dim=2), on_error="retry", retries=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_array_equal(recording.value(Q), 0.5 * (Q**2).sum(axis=1))
    assert recording.calls["value"] == 3 + 1 + 1
    assert recording.failures == 0
    ((_, figures),) = kinds(recording).items()
    assert figures == (0, 1)


def test_what_fails_each_time_is_rejected_once():
    recording = recorded(sk.potential(FailsAtFirst(3), dim=2), on_error="retry", retries=2)
    with pytest.warns(EvaluationWarning, match="flaky"):
        values = recording.value(Q)
    assert_array_equal(np.isinf(values), ~LEFT)
    assert recording.calls["value"] == 3 + 1 + 1
    assert kinds(recording) == {"exception RuntimeError": (1, 0)}


@pytest.mark.parametrize("answer", [np.inf, -np.inf])
def test_infinite_values_are_not_tried_again(answer):
    recording = recorded(on_the_right(lambda q: answer), on_error="retry", retries=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        recording.value(Q)
    assert recording.calls["value"] == 3
    assert recording.failures == (answer < 0)


def test_a_gradient_without_support_is_not_tried_again():
    target = sk.potential(lambda q: np.inf, lambda q: q * np.nan, dim=2)
    recording = recorded(target, on_error="retry", retries=5)
    recording.value_and_gradient(Q)
    assert recording.calls["gradient"] == 3


def test_gradients_and_maps_are_tried_again():
    def slope(q):
        return q if at_first(q) is not None else None

    at_first = FailsAtFirst(1)
    recording = recorded(sk.potential(value, slope, dim=2), on_error="retry", retries=2)
    assert_array_equal(recording.value_and_gradient(Q)[1], Q)
    mapped = FailsAtFirst(1, lambda q: np.nan)
    target = sk.forward_potential(
        lambda q: np.atleast_1d(mapped(q)), data=[0.0], noise_sd=1.0, dim=2
    )
    recording = recorded(target, on_error="retry", retries=2)
    assert np.isfinite(recording.value(Q)).all()
    assert kinds(recording) == {"NaN": (0, 1)}


@pytest.mark.parametrize("failure", [raise_error(OSError("flaky")), lambda q: np.nan])
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


def test_remembered_failures_are_not_paid_again():
    recording = recorded(on_the_right(lambda q: np.nan))
    with pytest.warns(EvaluationWarning), recording.remembering():
        recording.value(Q)
    recording.value(Q)
    assert recording.calls["value"] == 3


def test_rows_are_mended_where_none_had_worked():
    nothing = Outcome(n=2, results=None, causes={0: OSError(), 1: OSError()})
    assert_array_equal(nothing.failed, [0, 1])
    again = Outcome(n=2, results=(np.array([1.0, np.nan]),), causes={1: OSError()})
    mended = nothing.mend(np.array([0, 1]), again)
    assert_array_equal(mended.results[0], [1.0, np.nan])
    assert list(mended.causes) == [1]
    assert nothing.mend(np.array([0, 1]), nothing).results is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"retries": 2}, "retries is given, but on_error is 'reject', so that nothing is tried"),
        ({"retries": 0, "on_error": "raise"}, "on_error is 'raise'.*leave retries out"),
        ({"retries": 0, "on_error": "retry"}, "retries must be a whole number of at least 1"),
        ({"retries": 1.5, "on_error": "retry"}, "whole number of at least 1, got 1.5"),
    ],
)
def test_retries_must_mean_something(options, message):
    with pytest.raises(ConfigurationError, match=message):
        sk.Compute(**options)


# --- models that are not functions ---


def by_chance(part, seed=1, failure=flaky):
    rng = np.random.default_rng(seed)
    return sk.potential(lambda q: failure(q) if rng.random() < part else value(q), dim=2)


def test_a_model_that_fails_by_chance_is_recognised():
    with (
        pytest.warns(EvaluationWarning, match="raised RuntimeError: flaky"),
        pytest.warns(SamplingWarning, match=r"the target fails by chance: of \d+ positions"),
    ):
        run = sk.sample(by_chance(0.1), sampler="random-walk", **SIZES)
    assert 5 <= run.recheck.tried <= 10
    assert run.recheck.worked == 5
    (finding,) = run.verdict.named("fails_by_chance")
    assert finding.warns
    assert "Pass compute=sk.Compute(on_error='retry', retries=" in finding.message


def test_neighbours_of_differences_that_fail_by_position_are_not_taken_for_chance():
    """Differences to one side and to both have other neighbours."""
    target = recorded(
        sk.potential(lambda q: np.nan if 0.0 < abs(q[0]) < 1e-3 else q @ q, "differences", dim=1)
    )
    target.value_and_gradient(np.zeros((1, 1)))
    assert target.failures == 1
    evaluate_again(target, np.array([[-1.0], [1.0]]))
    recheck = target.rejections.account.recheck
    assert (recheck.tried, recheck.worked) == (1, 0)


def test_a_model_that_fails_by_position_is_not_taken_for_one():
    run = quietly(on_the_right(lambda q: np.nan))
    assert run.recheck.tried == MOST
    assert run.recheck.worked == 0
    assert run.recheck.apart is None
    assert not run.verdict.named("fails_by_chance")
    account = sum(kind.count for kind in run.failure_kinds.values())
    assert account == run.failures  # looking again counts no failure


def test_a_model_that_never_fails_pays_for_no_doubt():
    seen = []
    target = sk.potential(lambda q: seen.append(1) or value(q), dim=2)
    run = quietly(target, chains=1)
    assert run.recheck.tried == 0
    assert run.calls["value"] == len(seen) == 1 + 200


def test_a_second_look_keeps_to_the_budget():
    assert quietly(by_chance(0.1), max_calls=806).total_calls <= 806


def test_a_second_look_uses_the_call_that_failed():
    """A map that has a value where its gradient fails is none that fails by chance."""

    def slope(q):
        if q[0] > 0.5:
            raise ZeroDivisionError("no slope")
        return q

    run = quietly(sk.potential(value, slope, dim=2), sampler="hmc")
    assert run.recheck.tried == MOST
    assert run.recheck.worked == 0


def test_failures_far_away_are_not_looked_at_again():
    recording = recorded(on_the_right(lambda q: np.nan))
    with pytest.warns(EvaluationWarning):
        recording.value(np.array([[1e6, 0.0], [-1.0, 0.0]]))
    evaluate_again(recording, Q)
    assert recording.rejections.account.recheck.tried == 0
    assert recording.calls["value"] == 2


def test_a_cured_failure_is_told():
    run = quietly(by_chance(0.1), compute=sk.Compute(on_error="retry", retries=6))
    (finding,) = run.verdict.named("retried")
    cured = run.failure_kinds["exception RuntimeError"].cured
    assert run.failures == 0
    assert run.recheck.tried == 0
    assert finding.message == (
        f"the target fails by chance: {cured} positions that failed were evaluated by a retry; "
        "draws are right, since in the end every position was evaluated"
    )
    assert not finding.warns
    assert run.calls["value"] - 4 * (1 + 200) == pytest.approx(cured / 0.9, rel=0.2)


def test_retried_draws_are_those_of_a_sound_model():
    short = {"warmup": 30, "draws": 30}
    sound = quietly(sk.potential(value, dim=2), **short)
    cured = quietly(by_chance(0.1), compute=sk.Compute(on_error="retry", retries=8), **short)
    assert_array_equal(sound.draws, cured.draws)


def noisy(seed=1):
    rng = np.random.default_rng(seed)
    return lambda q: value(q) + rng.standard_normal()


def test_a_noisy_model_is_told_where_calls_are_timed():
    run = quietly(sk.potential(noisy(), dim=2), sampler=None, max_calls=300)
    (finding,) = run.verdict.named("noisy")
    first, again = run.recheck.apart
    assert f"at one position its potential was {first:.10g} and then {again:.10g}" in (
        finding.message
    )
    assert finding.warns


def test_a_noisy_model_is_told_where_failures_are_looked_at_again():
    noise = noisy()
    run = quietly(sk.potential(lambda q: np.nan if q[0] > 1 else noise(q), dim=2))
    assert run.recheck.apart is not None
    assert run.verdict.named("noisy")


# --- chains that only ever fail ---


def test_a_chain_that_only_ever_fails_is_told():
    """Chain 1 begins on an island that nothing surrounds."""
    island = np.array([50.0, 0.0])

    def fragile(q):
        if q[0] > 20 and not np.array_equal(q, island):
            raise ValueError("no solution")
        return value(np.where(q == island, 0.0, q))

    initial = [[0.0, 0.0], island, [0.5, 0.0], [0.0, 0.5]]
    run = quietly(sk.potential(fragile, dim=2), initial=initial)
    (finding,) = run.verdict.named("failing_chain")
    assert finding.warns
    assert finding.message.startswith("chain 1 never moved in 100 iterations, in 100% of which the")
    assert "begin it elsewhere with initial=..., or mend the model there" in finding.message


def test_a_chain_that_stands_still_without_failures_is_not_told_so():
    def walled(q):
        return np.inf if q[0] > 20 and q[0] != 50.0 else value(q - 50.0 * (q == 50.0))

    initial = [[0.0, 0.0], [50.0, 0.0], [0.5, 0.0], [0.0, 0.5]]
    run = quietly(sk.potential(walled, dim=2), initial=initial)
    assert not run.verdict.named("failing_chain")


# --- starts ---


@pytest.mark.parametrize(
    ("edge", "parts"),  # of starts in (-2, 2)
    [(1.6, {"sampler": "hmc"}), (0.0, {}), (0.0, {"surrogate": "quadratic"})],
)
def test_starts_avoid_where_the_target_fails(edge, parts):
    def fragile(q):
        if q[0] > edge:
            raise ValueError("no solution")
        return value(q + 0.5)

    run = quietly(sk.potential(fragile, lambda q: q + 0.5, dim=2), **{"sampler": None, **parts})
    assert (run.draws[..., 0] <= edge).all()
    assert not run.verdict.named("failing_chain")
    assert (run.acceptance > 0.1).all()


def test_a_cured_failure_is_where_it_was_and_counts_once():
    """Also where parameters have bounds, and where a batch is remembered."""
    failed = FailsAtFirst(1, raise_error(OSError("flaky")))
    target = sk.potential(failed, parameters={"a": (0.0, None), "b": None})
    recording = recorded(target, on_error="retry", retries=1)
    z = np.array([[0.5, 1.0]])
    with recording.remembering():
        recording.value(z)
    recording.value(z)
    (kind,) = recording.rejections.account.tell(recording.transform, 2).values()
    assert kind.cured == 1
    np.testing.assert_allclose(kind.position, [np.exp(0.5), 1.0])
