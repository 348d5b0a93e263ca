"""The wrapper through which exact calls go: what it counts, keeps and forgives."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import surrokit as sk
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import ShapeError, TargetError

Q = np.array([[-1.0, 0.5], [1.0, 0.0], [-0.3, 0.2]])
LEFT = np.array([True, False, True])
NORMALISED = np.log(2.0 * np.pi)  # of two errors with an sd of one


def value(q):
    return 0.5 * np.square(q).sum(axis=-1)


def gradient(q):
    return q


def plain(**options):
    return RecordingPotential(
        sk.potential(value, gradient, dim=2, batched=True), keep=True, **options
    )


def mapped(**options):
    target = sk.forward_potential(
        lambda q: 2 * q, lambda q: 2 * np.eye(2), data=[0.0, 0.0], noise_sd=1.0, dim=2
    )
    return RecordingPotential(target, keep=True, **options)


def counted(recording):
    return {kind: n for kind, n in recording.calls.items() if n}


@pytest.mark.parametrize(
    ("make", "method", "kind"),
    [
        (plain, "value", "value"),
        (plain, "value_and_gradient", "gradient"),
        (plain, "gradient", "gradient"),
        (mapped, "value", "forward"),
        (mapped, "value_and_gradient", "jacobian"),
        (mapped, "gradient", "jacobian"),
        (mapped, "forward", "forward"),
        (mapped, "forward_and_jacobian", "jacobian"),
    ],
)
def test_positions_are_counted_by_kind(make, method, kind):
    recording = make()
    getattr(recording, method)(Q)
    assert counted(recording) == {kind: 3}


def test_all_kinds_are_listed():
    kinds = [
        "value",
        "gradient",
        "forward",
        "jacobian",
        "vjp",
        "hessian",
        "metric",
        "rows",
        "cheap",
    ]
    assert list(plain().calls) == kinds


def test_results_are_those_of_the_target():
    recording = plain()
    assert_allclose(recording.value(Q), value(Q))
    assert_allclose(recording.value_and_gradient(Q)[1], Q)
    assert_allclose(recording.gradient(Q), Q)


def test_what_was_paid_can_be_drained_once():
    recording = plain()
    recording.value(Q[:1])
    recording.value_and_gradient(Q[1:])
    paid = recording.drain()
    assert_array_equal(paid.positions, Q)
    assert_allclose(paid.values, value(Q))
    assert paid.gradients is not None
    assert_array_equal(paid.gradients, [[np.nan, np.nan], *Q[1:].tolist()])
    assert len(recording.drain()) == 0


def test_later_changes_of_the_positions_do_not_reach_the_record():
    recording, q = plain(), Q.copy()
    recording.value(q)
    q[:] = 7.0
    assert_array_equal(recording.drain().positions, Q)


def test_nothing_is_kept_unless_asked():
    recording = RecordingPotential(sk.potential(value, gradient, dim=2, batched=True), keep=False)
    recording.value_and_gradient(Q)
    assert len(recording.drain()) == 0
    assert counted(recording) == {"gradient": 3}


def test_a_gradient_that_is_kept_is_evaluated_with_its_value():
    recording = plain()
    recording.gradient(Q)
    assert_allclose(recording.drain().values, value(Q))


def test_a_gradient_that_is_not_kept_is_evaluated_alone():
    recording = RecordingPotential(
        sk.potential(
            lambda q: pytest.fail("the value was evaluated"), gradient, dim=2, batched=True
        ),
        keep=False,
    )
    assert_allclose(recording.gradient(Q), Q)


def test_outputs_and_jacobians_are_kept():
    recording = mapped()
    recording.value(Q[:1])
    recording.value_and_gradient(Q[1:])
    paid = recording.drain()
    assert paid.outputs is not None
    assert paid.jacobians is not None
    assert paid.gradients is not None
    assert_allclose(paid.outputs, 2 * Q)
    assert_allclose(paid.values, 4 * value(Q) + NORMALISED)
    assert_allclose(paid.jacobians[1:], [2 * np.eye(2)] * 2)
    assert np.isnan(paid.jacobians[0]).all()
    assert_allclose(paid.gradients[1:], 4 * Q[1:])


def test_asking_for_outputs_keeps_values():
    recording = mapped()
    assert_allclose(recording.forward(Q), 2 * Q)
    outputs, jacobians = recording.forward_and_jacobian(Q)
    assert_allclose(outputs, 2 * Q)
    assert jacobians.shape == (3, 2, 2)
    assert_allclose(recording.drain().values, 4 * np.tile(value(Q), 2) + NORMALISED)


class Curved:
    dim = 2
    capabilities = frozenset({"hessian", "hessian-derivative", "metric", "initial"})

    def value(self, q):
        return value(q)

    def hessian(self, q):
        if (q[:, 0] > 0).any():
            raise ValueError("right half")
        return np.tile(np.eye(2), (len(q), 1, 1))

    metric = hessian

    def initial(self, rng, n):
        return rng.standard_normal((n, 2))

    def hessian_trace_gradient(self, q, matrices):
        self.hessian(q)
        return q[:, :1] * matrices[:, 0]

    def hessian_form_gradient(self, q, vectors):
        self.hessian(q)
        return q[:, :1] * vectors


FACTORS = {
    "hessian_trace_gradient": np.arange(12.0).reshape(3, 2, 2),
    "hessian_form_gradient": np.arange(6.0).reshape(3, 2),
}


@pytest.mark.parametrize("method", FACTORS)
def test_contractions_count_as_hessians_and_a_row_keeps_its_factor(method):
    recording = RecordingPotential(Curved(), keep=True)
    factors = FACTORS[method]
    found = getattr(recording, method)(Q, factors)
    vectors = factors[:, 0] if factors.ndim == 3 else factors
    assert_allclose(found[LEFT], (Q[:, :1] * vectors)[LEFT])
    assert np.isnan(found[~LEFT]).all()
    assert recording.calls["hessian"] == 6  # the batch, and each row again
    assert len(recording.drain()) == 0


@pytest.mark.parametrize("method", FACTORS)
def test_contractions_that_fail_everywhere_are_nan(method):
    recording = RecordingPotential(Curved(), keep=True)
    found = getattr(recording, method)(np.abs(Q[:1]), FACTORS[method][:1])
    assert found.shape == (1, 2)
    assert np.isnan(found).all()


@pytest.mark.parametrize("kind", ["hessian", "metric"])
def test_matrices_are_counted_and_nan_where_they_fail(kind):
    recording = RecordingPotential(Curved(), keep=True)
    matrices = getattr(recording, kind)(Q)
    assert_allclose(matrices[LEFT], [np.eye(2)] * 2)
    assert np.isnan(matrices[~LEFT]).all()
    assert recording.calls[kind] == 6  # the batch, and each row again


def test_starts_are_the_targets_own():
    starts = RecordingPotential(Curved(), keep=True).initial(np.random.default_rng(3), 2)
    assert_array_equal(starts, np.random.default_rng(3).standard_normal((2, 2)))


def test_what_the_target_offers_is_offered():
    assert plain().capabilities == {"gradient", "gradient-alone"}
    assert RecordingPotential(Curved(), keep=True).capabilities == Curved.capabilities
    assert plain().dim == 2


# --- failures ---


def nan_on_the_right(q):
    return np.where(q[..., 0] > 0, np.nan, value(q))


def test_nan_is_a_rejection_and_counted():
    recording = RecordingPotential(sk.potential(nan_on_the_right, dim=2, batched=True), keep=True)
    values = recording.value(Q)
    assert_array_equal(values, np.where(LEFT, value(Q), np.inf))
    assert recording.failures == 1
    assert_array_equal(recording.drain().values, values)


def test_infinity_is_no_failure():
    recording = RecordingPotential(sk.potential(lambda q: np.inf, dim=2), keep=True)
    assert_array_equal(recording.value(Q), np.inf)
    assert recording.failures == 0


def raises_on_the_right(q):
    if q[0] > 0:
        raise ZeroDivisionError("no luck")
    return value(q)


def test_a_row_that_raises_is_rejected_and_the_others_are_paid_once():
    recording = RecordingPotential(sk.potential(raises_on_the_right, dim=2), keep=True)
    values = recording.value(Q)
    assert_array_equal(values, np.where(LEFT, value(Q), np.inf))
    assert counted(recording) == {"value": 3}
    assert recording.failures == 1


@pytest.mark.parametrize("alone", [False, True])
def test_a_gradient_that_raises_is_nan_and_counted_as_a_failure(alone):
    target = sk.potential(value, lambda q: raises_on_the_right(q) * 0 + q, dim=2)
    recording = RecordingPotential(target, keep=not alone)
    ask = recording.gradient if alone else recording.value_and_gradient
    found = ask(Q)
    values, gradients = (None, found) if alone else found
    if not alone:
        assert_array_equal(values, np.where(LEFT, value(Q), np.inf))
    assert_array_equal(gradients, np.where(LEFT[:, None], Q, np.nan))
    assert recording.failures == 1


def batch_raises_on_the_right(q):
    if (q[:, 0] > 0).any():
        raise FloatingPointError("one of the batch")
    return value(q)


def test_a_batch_that_raises_is_tried_row_by_row_and_each_attempt_counted():
    recording = RecordingPotential(
        sk.potential(batch_raises_on_the_right, dim=2, batched=True), keep=True
    )
    values = recording.value(Q)
    assert_array_equal(values, np.where(LEFT, value(Q), np.inf))
    assert counted(recording) == {"value": 6}
    assert recording.failures == 1


@pytest.mark.parametrize("batched", [True, False])
def test_all_rows_may_fail(batched):
    def broken(q):
        raise RuntimeError("never")

    recording = RecordingPotential(sk.potential(broken, broken, dim=2, batched=batched), keep=True)
    values, gradients = recording.value_and_gradient(Q)
    assert_array_equal(values, np.inf)
    assert np.isnan(gradients).all()
    assert gradients.shape == (3, 2)
    assert recording.failures == 3


def test_the_report_names_the_line_of_the_target():
    recording = RecordingPotential(sk.potential(raises_on_the_right, dim=2), keep=True)
    recording.value(Q)
    (kind,) = recording.rejections.account.kinds.values()
    assert re.search(
        r"raised ZeroDivisionError: no luck \(.*test_recording\.py, line \d+", kind.message
    )


@pytest.mark.parametrize("function", [raises_on_the_right, batch_raises_on_the_right])
def test_the_first_exception_stops_if_asked(function):
    target = sk.potential(function, dim=2, batched=function is batch_raises_on_the_right)
    recording = RecordingPotential(target, keep=True, on_error="raise")
    with pytest.raises(
        TargetError,
        match=r'make it return inf there, or pass compute=sk.Compute\(on_error="reject"',
    ) as e:
        recording.value(Q)
    assert isinstance(e.value.__cause__, ArithmeticError)


def test_a_wrong_shape_always_stops():
    recording = RecordingPotential(sk.potential(lambda q: q, dim=2), keep=True)
    with pytest.raises(ShapeError):
        recording.value(Q)


def solves_on_the_left(q):
    if q[0] > 0:
        raise RuntimeError("no solution")
    return 2 * q


def half_mapped(function=solves_on_the_left):
    target = sk.forward_potential(
        function, lambda q: 2 * np.eye(2), data=[0.0, 0.0], noise_sd=1.0, dim=2
    )
    return RecordingPotential(target, keep=True)


@pytest.mark.parametrize("method", ["value", "value_and_gradient"])
def test_a_map_that_fails_in_a_row_is_rejected_there(method):
    recording = half_mapped()
    result = getattr(recording, method)(Q)
    values = result if method == "value" else result[0]
    assert_allclose(values, np.where(LEFT, 4 * value(Q) + NORMALISED, np.inf))
    paid = recording.drain()
    assert paid.outputs is not None
    assert_allclose(paid.outputs[LEFT], 2 * Q[LEFT])
    assert np.isnan(paid.outputs[~LEFT]).all()
    assert recording.failures == 1


@pytest.mark.parametrize(
    "method", ["value", "value_and_gradient", "forward", "forward_and_jacobian"]
)
def test_a_map_may_fail_everywhere_once_its_outputs_are_known(method):
    recording = half_mapped()
    recording.value(Q[LEFT])
    result = getattr(recording, method)(Q[~LEFT])
    first = result[0] if isinstance(result, tuple) else result
    assert np.isinf(first).all() if "value" in method else np.isnan(first).all()
    assert recording.failures == 1


@pytest.mark.parametrize("method", ["forward", "forward_and_jacobian"])
def test_outputs_of_unknown_number_cannot_be_made_up(method):
    recording = half_mapped()
    with pytest.raises(TargetError, match="failed at the very first positions"):
        getattr(recording, method)(Q[~LEFT])


def test_an_overflow_in_the_energy_is_no_warning():
    recording = half_mapped(lambda q: 1e200 * q)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isinf(recording.value(Q[LEFT])).all()


# --- derivatives with every value ---


@pytest.mark.parametrize(("make", "kind"), [(plain, "gradient"), (mapped, "jacobian")])
def test_values_bring_derivatives_along_if_asked(make, kind):
    recording = make()
    expected = recording.value(Q)
    before = counted(recording)
    recording.drain()
    with recording.evaluating_gradients():
        assert_allclose(recording.value(Q), expected)
    assert counted(recording) == {**before, kind: 3}
    rows = recording.drain()
    assert_allclose(rows.values, expected)
    assert np.isfinite(rows.gradients).all()
    assert (rows.jacobians is not None) == (kind == "jacobian")


def test_values_cost_what_they_did_once_nobody_asks_for_more():
    recording = plain()
    with pytest.raises(RuntimeError), recording.evaluating_gradients():
        raise RuntimeError
    recording.value(Q)
    assert counted(recording) == {"value": 3}


def test_a_fork_has_the_same_account_and_keeps_for_itself():
    recording = plain()
    fork = recording.fork(keep=False)
    fork.value(Q)
    recording.value(Q)
    assert counted(recording) == counted(fork) == {"value": 6}
    assert (len(fork.drain()), len(recording.drain())) == (0, 3)
    fork.keep_evaluations(True)
    fork.value(Q)
    assert (len(fork.drain()), len(recording.drain())) == (3, 0)


def unoffered():
    return RecordingPotential(sk.potential(value, dim=2, batched=True), keep=True)


@pytest.mark.parametrize("make", [unoffered, lambda: plain().fork(keep=False)])
def test_derivatives_that_are_not_offered_or_not_kept_are_not_paid_for(make):
    recording = make()
    with recording.evaluating_gradients():
        recording.value(Q)
    assert counted(recording) == {"value": 3}
