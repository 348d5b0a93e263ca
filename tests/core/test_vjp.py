"""Forward potentials with an adjoint: gradients without Jacobians."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import ConfigurationError, EvaluationError, ShapeError
from surrokit.testing import check_potential

MATRIX = np.array([[1.0, 2.0], [0.0, 1.0], [3.0, -1.0]])
KNOWN = {"data": np.array([1.0, -1.0, 0.5]), "noise_sd": np.array([0.5, 1.0, 2.0])}
PRIOR = sk.gaussian_prior(mean=[1.0, 0.0], sd=2.0)
Q = np.array([[0.3, -0.2], [-0.4, 0.1], [1.5, 0.6], [0.0, 1.0]])


def forward(q):
    return MATRIX @ q + np.square(q[0])


def jacobian(q):
    return MATRIX + np.array([2 * q[0], 0.0])


def vjp(q, weights):
    return weights @ jacobian(q)


def make(adjoint=vjp, derivatives=None, **options):
    options = {"dim": 2, "prior": PRIOR, **options}
    return sk.forward_potential(forward, derivatives, vjp=adjoint, **KNOWN, **options)


def counted(recording):
    return {kind: n for kind, n in recording.calls.items() if n}


def test_the_gradient_is_that_of_the_jacobian_also_of_rows():
    rows = sk.forward_potential(
        lambda x: np.stack([forward(row) for row in x]),
        vjp=lambda x, w: np.stack([vjp(*each) for each in zip(x, w, strict=True)]),
        **KNOWN,
        prior=PRIOR,
        dim=2,
        batched=True,
    )
    by_jacobian = make(None, jacobian)
    for target in (make(), rows):
        for one, other in zip(
            target.value_and_gradient(Q), by_jacobian.value_and_gradient(Q), strict=True
        ):
            assert_allclose(one, other, rtol=1e-12)
        assert_allclose(target.forward_and_gradient(Q)[0], by_jacobian.forward(Q))


def test_a_map_with_one_output_gets_one_weight():
    def adjoint(q, weights):
        assert weights.shape == (1,)
        return weights * np.ones(2)

    target = sk.forward_potential(lambda q: q.sum(), vjp=adjoint, data=[1.0], noise_sd=2.0, dim=2)
    assert_allclose(target.value_and_gradient(np.array([[1.0, 2.0]]))[1], [[0.5, 0.5]])


@pytest.mark.parametrize("derivatives", [None, jacobian])
@pytest.mark.parametrize("bounds", [None, {"a": (0, 5), "b": (-1, 2)}])
def test_it_keeps_to_the_contract(derivatives, bounds):
    where = {} if bounds is None else {"dim": None, "parameters": bounds}
    more = {"jacobian", "metric"} if derivatives else set()
    assert make(derivatives=derivatives, **where).capabilities == {
        "forward", "vjp", "gradient", *more,
    }  # fmt: skip
    results = check_potential(lambda: make(derivatives=derivatives, **where))
    assert [r.message for r in results if r.outcome != "passed"] == []
    assert any(r.name.startswith("check_forward") for r in results)


@pytest.mark.parametrize("wrong", [lambda q, w: -vjp(q, w), lambda q, w: vjp(0 * q, w)])
def test_a_wrong_adjoint_is_seen_by_the_checks(wrong):
    """The negative control: its sign, or the place at which it is linear."""
    (found,) = [
        r for r in check_potential(lambda: make(wrong)) if r.name.startswith("check_forward")
    ]
    assert found.outcome == "failed"
    assert "gradient by the adjoint against differences" in found.message


# --- what can go wrong ---


@pytest.mark.parametrize(
    ("wrong", "got"),
    [
        (lambda q, w: np.zeros(3), r"\(3,\)"),
        (lambda q, w: 0.0, r"\(\)"),
        (lambda q, w: np.zeros((1, 2)), r"\(1, 2\)"),
    ],
)
def test_an_adjoint_of_another_shape_is_refused(wrong, got):
    message = rf"vjp function, .* must return shape \(2,\), got {got}, for weights of shape \(3,\)"
    with pytest.raises(ShapeError, match=message):
        make(wrong).value_and_gradient(Q)


def choke(q, weights):
    if q[0] < 0:
        raise RuntimeError("no adjoint here")
    return vjp(q, weights)


def test_a_position_where_the_adjoint_raises_is_rejected_and_counted_in_runs():
    with pytest.raises(ConfigurationError, match="vjp must be a function"):
        make(MATRIX)
    with pytest.raises(EvaluationError, match=r"1 of 4 positions.*no adjoint here"):
        make(choke).value_and_gradient(Q)
    target = RecordingPotential(make(choke), keep=True)
    values, gradients = target.value_and_gradient(Q)
    assert np.isinf(values).tolist() == [False, True, False, False]
    for known, full in zip((values, gradients), make().value_and_gradient(Q), strict=True):
        assert_allclose(known[[0, 2, 3]], full[[0, 2, 3]])
    assert np.isnan(gradients[1]).all()
    assert target.failures == 1


@pytest.mark.parametrize("method", ["value_and_gradient", "forward_and_gradient"])
def test_an_adjoint_that_raises_everywhere(method):
    def never(q, weights):
        raise RuntimeError("no adjoint anywhere")

    target = RecordingPotential(make(never), keep=True)
    target.forward(Q)  # so that the number of outputs is known
    found = getattr(target, method)(Q)
    assert not np.isfinite(found[0]).any()
    assert np.isnan(found[1]).all()


def test_nan_in_a_gradient_is_broken_and_nan_in_outputs_asks_for_none():
    broken = make(lambda q, w: np.where(q[0] < 0, np.nan, vjp(q, w)))
    target = RecordingPotential(broken, keep=True)
    assert np.isfinite(target.value_and_gradient(Q)[0]).all()
    assert target.broken_gradients.count == 1

    def picky(q, weights):
        assert np.isfinite(weights).all()
        return vjp(q, weights)

    failing = sk.forward_potential(
        lambda q: forward(q) if q[0] >= 0 else np.full(3, np.nan), vjp=picky, **KNOWN, dim=2
    )
    assert np.isnan(failing.value_and_gradient(Q)[1][1]).all()


# --- what is paid for ---


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("method", ["value_and_gradient", "gradient", "forward_and_gradient"])
@pytest.mark.parametrize("derivatives", [None, jacobian])
def test_gradients_count_as_calls_of_the_adjoint(derivatives, method, keep):
    target = RecordingPotential(make(derivatives=derivatives), keep=keep)
    getattr(target, method)(Q)
    assert counted(target) == {"vjp": 4}


def test_gradients_and_outputs_are_kept_and_jacobians_for_who_asks():
    target = RecordingPotential(make(derivatives=jacobian), keep=True)
    values, gradients = target.value_and_gradient(Q)
    paid = target.drain()
    assert paid.jacobians is None
    for one, other in (
        (paid.values, values),
        (paid.gradients, gradients),
        (paid.outputs, make().forward(Q)),
    ):
        assert_allclose(one, other)
    asking = RecordingPotential(make(derivatives=jacobian), keep=True)
    asking = asking.fork(keep=True, jacobians=True)
    asking.value_and_gradient(Q)
    assert counted(asking) == {"jacobian": 4}
    assert asking.drain().jacobians is not None
    asking.keep_evaluations(True)
    asking.value_and_gradient(Q)
    assert counted(asking) == {"jacobian": 4, "vjp": 4}


class User:
    """Functions of a user, which count how often they are called."""

    def __init__(self):
        self.calls = Counter()

    def counted(self, function):
        def call(*given):
            self.calls[function.__name__] += 1
            return function(*given)

        return call

    def sample(self, sampler, *, by_jacobian, **options):
        target = sk.forward_potential(
            self.counted(forward),
            self.counted(jacobian) if by_jacobian else None,
            vjp=self.counted(vjp),
            **KNOWN,
            prior=PRIOR,
            dim=2,
        )
        return sk.sample(target, sampler=sampler, seed=1, progress=False, **options)


def test_exact_samplers_move_by_the_adjoint():
    user = User()
    run = user.sample("nuts", by_jacobian=True, warmup=150, draws=50)
    assert run.calls["vjp"] == user.calls["vjp"] > 100
    assert run.calls["jacobian"] == user.calls["jacobian"] < 40  # of the search for the mode
    assert user.calls["forward"] == run.calls["vjp"] + run.calls["jacobian"] + run.calls["forward"]
    last = run.draws[:, -1]
    assert_allclose(run.outputs[:, -1], [forward(q) for q in last], rtol=1e-10)


@pytest.mark.parametrize("by_jacobian", [True, False])
def test_outputs_are_learnt_from_jacobians_and_else_the_potential_from_gradients(by_jacobian):
    user, learnt = User(), {"surrogate": "additive", "explorer": "rounds"}
    run = user.sample("hmc", by_jacobian=by_jacobian, warmup=100, draws=20, **learnt)
    used, unused = ("jacobian", "vjp") if by_jacobian else ("vjp", "jacobian")
    assert run.calls[unused] == 0 < run.calls[used] == user.calls[used]
    assert run.fit_quality.variance < 1e-3
