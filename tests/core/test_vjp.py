"""Forward potentials with an adjoint: gradients without Jacobians."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import ConfigurationError, EvaluationError, EvaluationWarning, ShapeError
from surrokit.testing import check_potential

MATRIX = np.array([[1.0, 2.0], [0.0, 1.0], [3.0, -1.0]])
DATA = np.array([1.0, -1.0, 0.5])
SD = np.array([0.5, 1.0, 2.0])
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
    return sk.forward_potential(
        forward, derivatives, vjp=adjoint, data=DATA, noise_sd=SD, **options
    )


def by_jacobian(**options):
    return make(None, jacobian, **options)


def counted(recording):
    return {kind: n for kind, n in recording.calls.items() if n}


def test_the_gradient_is_that_of_the_jacobian():
    found, expected = make().value_and_gradient(Q), by_jacobian().value_and_gradient(Q)
    for one, other in zip(found, expected, strict=True):
        assert_allclose(one, other, rtol=1e-12)
    assert_allclose(make().forward_and_gradient(Q)[0], by_jacobian().forward(Q))


def test_functions_of_rows_give_the_same():
    rows = sk.forward_potential(
        lambda x: np.stack([forward(row) for row in x]),
        vjp=lambda x, w: np.stack([vjp(*each) for each in zip(x, w, strict=True)]),
        data=DATA,
        noise_sd=SD,
        prior=PRIOR,
        dim=2,
        batched=True,
    )
    for one, other in zip(
        rows.forward_and_gradient(Q), make().forward_and_gradient(Q), strict=True
    ):
        assert_allclose(one, other)


def test_a_map_with_one_output_gets_one_weight():
    def adjoint(q, weights):
        assert weights.shape == (1,)
        return weights * np.ones(2)

    target = sk.forward_potential(lambda q: q.sum(), vjp=adjoint, data=[1.0], noise_sd=2.0, dim=2)
    assert_allclose(target.value_and_gradient(np.array([[1.0, 2.0]]))[1], [[0.5, 0.5]])


@pytest.mark.parametrize(
    ("derivatives", "expected"),
    [
        (None, {"forward", "vjp", "gradient"}),
        (jacobian, {"forward", "vjp", "gradient", "jacobian", "metric"}),
    ],
)
def test_capabilities_follow_the_adjoint(derivatives, expected):
    assert make(derivatives=derivatives).capabilities == expected


@pytest.mark.parametrize("derivatives", [None, jacobian])
@pytest.mark.parametrize("bounds", [None, {"a": (0, 5), "b": (-1, 2)}])
def test_it_keeps_to_the_contract(derivatives, bounds):
    where = {} if bounds is None else {"dim": None, "parameters": bounds}
    results = check_potential(lambda: make(derivatives=derivatives, **where))
    assert [r.message for r in results if r.outcome != "passed"] == []
    assert any(r.name.startswith("check_vjp") for r in results)


@pytest.mark.parametrize("wrong", [lambda q, w: -vjp(q, w), lambda q, w: vjp(0 * q, w)])
def test_a_wrong_adjoint_is_seen_by_the_checks(wrong):
    """The negative control: its sign, or the place at which it is linear."""
    results = check_potential(lambda: make(wrong))
    (found,) = [r for r in results if r.name.startswith("check_vjp")]
    assert found.outcome == "failed"
    assert "gradient by the adjoint against differences" in found.message


def test_an_adjoint_that_leaves_the_gradient_out_is_seen_by_the_checks():
    class Silent:
        dim, energy = 2, make().energy
        capabilities = frozenset({"forward", "vjp"})

        def __getattr__(self, name):
            return getattr(make(), name)

        def value(self, q):
            return make().value(q)

    results = check_potential(Silent)
    (found,) = [r for r in results if r.name.startswith("check_capabilities")]
    assert "'vjp' is declared without 'gradient'" in found.message


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


def test_an_adjoint_must_be_a_function():
    with pytest.raises(ConfigurationError, match="vjp must be a function"):
        make(MATRIX)


def choke(q, weights):
    if q[0] < 0:
        raise RuntimeError("no adjoint here")
    return vjp(q, weights)


def test_an_adjoint_that_raises_is_an_error_outside_of_runs():
    with pytest.raises(EvaluationError, match=r"1 of 4 positions.*no adjoint here"):
        make(choke).value_and_gradient(Q)


def test_a_position_where_the_adjoint_raises_is_rejected_and_counted():
    target = RecordingPotential(make(choke), keep=True)
    with pytest.warns(EvaluationWarning, match="no adjoint here"):
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
    with pytest.warns(EvaluationWarning, match="no adjoint anywhere"):
        found = getattr(target, method)(Q)
    assert not np.isfinite(found[0]).any()
    assert np.isnan(found[1]).all()


def test_nan_in_a_gradient_is_counted_as_broken():
    broken = make(lambda q, w: np.where(q[0] < 0, np.nan, vjp(q, w)))
    target = RecordingPotential(broken, keep=True)
    values, _ = target.value_and_gradient(Q)
    assert np.isfinite(values).all()
    assert target.broken_gradients.count == 1


def test_no_adjoint_is_asked_for_where_the_map_gave_nan():
    def picky(q, weights):
        assert np.isfinite(weights).all()
        return vjp(q, weights)

    target = sk.forward_potential(
        lambda q: forward(q) if q[0] >= 0 else np.full(3, np.nan),
        vjp=picky,
        data=DATA,
        noise_sd=SD,
        dim=2,
    )
    assert np.isnan(target.value_and_gradient(Q)[1][1]).all()


# --- what is paid for ---


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("method", ["value_and_gradient", "gradient", "forward_and_gradient"])
@pytest.mark.parametrize("derivatives", [None, jacobian])
def test_gradients_count_as_calls_of_the_adjoint(derivatives, method, keep):
    target = RecordingPotential(make(derivatives=derivatives), keep=keep)
    getattr(target, method)(Q)
    assert counted(target) == {"vjp": 4}


def test_gradients_and_outputs_are_kept():
    target = RecordingPotential(make(), keep=True)
    values, gradients = target.value_and_gradient(Q)
    paid = target.drain()
    assert paid.jacobians is None
    for one, other in (
        (paid.values, values),
        (paid.gradients, gradients),
        (paid.outputs, make().forward(Q)),
    ):
        assert_allclose(one, other)


def test_who_asks_for_jacobians_pays_them_until_nothing_is_learnt_any_more():
    target = RecordingPotential(make(derivatives=jacobian), keep=True).fork(
        keep=True, jacobians=True
    )
    target.value_and_gradient(Q)
    assert counted(target) == {"jacobian": 4}
    assert target.drain().jacobians is not None
    target.keep_evaluations(True)
    target.value_and_gradient(Q)
    assert counted(target) == {"jacobian": 4, "vjp": 4}


class User:
    """Functions of a user, which count how often they are called."""

    def __init__(self):
        self.calls = Counter()

    def forward(self, q):
        self.calls["forward"] += 1
        return forward(q)

    def jacobian(self, q):
        self.calls["jacobian"] += 1
        return jacobian(q)

    def vjp(self, q, weights):
        self.calls["vjp"] += 1
        return vjp(q, weights)

    def target(self, **options):
        return sk.forward_potential(
            self.forward, vjp=self.vjp, data=DATA, noise_sd=SD, prior=PRIOR, dim=2, **options
        )


@pytest.mark.parametrize("sampler", ["hmc", "nuts"])
def test_exact_samplers_move_by_the_adjoint(sampler):
    user = User()
    run = sk.sample(
        user.target(jacobian=user.jacobian),
        sampler=sampler,
        warmup=300,
        draws=50,
        seed=1,
        progress=False,
    )
    assert run.calls["vjp"] == user.calls["vjp"] > 100
    assert run.calls["jacobian"] == user.calls["jacobian"] < 40  # of the search for the mode
    assert user.calls["forward"] == run.calls["vjp"] + run.calls["jacobian"] + run.calls["forward"]
    last = run.draws[:, -1]
    assert_allclose(run.outputs[:, -1], [forward(q) for q in last], rtol=1e-10)


def learn(target):
    return sk.sample(
        target,
        sampler="hmc",
        surrogate="additive",
        explorer="rounds",
        warmup=150,
        draws=20,
        seed=1,
        progress=False,
    )


def test_outputs_are_learnt_from_jacobians_where_there_are_any():
    user = User()
    run = learn(user.target(jacobian=user.jacobian))
    assert run.calls["vjp"] == 0 < run.calls["jacobian"]


def test_the_potential_is_learnt_from_its_gradients_where_there_is_no_jacobian():
    user = User()
    run = learn(user.target())
    assert run.calls["jacobian"] == 0 < run.calls["vjp"] == user.calls["vjp"]
    assert run.fit_quality.variance < 1e-4
