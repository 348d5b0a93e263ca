"""Calls are counted where the user's function is called, through every wrapper."""

from __future__ import annotations

from collections import Counter

import attrs
import numpy as np
import pytest

import surrokit as sk
from surrokit import BoundedPotential, Parameters
from surrokit.capabilities import METHODS
from surrokit.cost.recording import RecordingPotential
from surrokit.testing.wrappers import CountingPotential

KINDS = {method.name: method.kind for method in METHODS if method.kind is not None}
DIM = 3
BOUNDS = {"a": (0, None), "b": (None, None), "c": (-1, 2)}
Q = np.array([[0.3, -0.2, 0.5], [-0.4, 0.1, -0.6]])
FACTORS = {
    "hessian_product": Q,
    "hessian_diagonal_gradient": Q,
    "hessian_form_gradient": Q,
    "metric_product": Q,
    "metric_form_gradient": Q,
    "hessian_trace_gradient": np.stack([np.eye(DIM)] * 2),
    "metric_trace_gradient": np.stack([np.eye(DIM)] * 2),
}
OF_MAPS = ("forward", "forward_and_jacobian", "forward_and_gradient")


@attrs.frozen
class Anything:
    """A potential that offers whatever it is told to; its results only have the right shapes."""

    capabilities: frozenset
    dim: int = DIM

    class energy:
        capabilities = frozenset({"curvatures"})

        @staticmethod
        def value(outputs, positions):
            return outputs.sum(axis=1)

        @staticmethod
        def value_and_gradients(outputs, positions):
            return outputs.sum(axis=1), np.ones_like(outputs), np.zeros_like(positions)

    def __getattr__(self, name):
        if name not in KINDS:
            raise AttributeError(name)
        return lambda q, *_: _result(name, len(q))

    def value(self, q):
        return np.ones(len(q))


def _result(method, n):
    shapes = {
        "value_and_gradient": ((n,), (n, DIM)),
        "forward_and_jacobian": ((n, 2), (n, 2, DIM)),
        "forward_and_gradient": ((n, 2), (n, DIM)),
        "forward": (n, 2),
        "hessian": (n, DIM, DIM),
        "metric": (n, DIM, DIM),
    }
    shape = shapes.get(method, (n, DIM))
    if isinstance(shape[0], tuple):
        return tuple(np.ones(each) for each in shape)
    return np.ones(shape)


OF_U = frozenset(
    {
        "gradient",
        "gradient-alone",
        "hessian",
        "hessian-derivative",
        "hessian-product",
        "hessian-diagonal",
        "metric",
        "metric-derivative",
        "metric-product",
    }
)
WRAPPERS = {
    "bare": lambda potential: potential,
    "bounded": lambda potential: BoundedPotential(potential, Parameters.declare(BOUNDS)),
    "twice": lambda potential: BoundedPotential(
        BoundedPotential(potential, Parameters.declare(BOUNDS)), Parameters.declare(BOUNDS)
    ),
}


LOST = {"hessian_diagonal", "hessian_diagonal_gradient", "metric_product"}  # at bounds
CASES = [(m, w) for m in KINDS for w in WRAPPERS if w == "bare" or m not in LOST]


@pytest.mark.parametrize(("method", "wrapper"), CASES)
def test_what_is_counted_is_what_the_innermost_potential_was_asked(method, wrapper):
    extra = {"forward", "jacobian"} if method in OF_MAPS else set()
    extra |= {"vjp"} if method == "forward_and_gradient" else set()
    innermost = CountingPotential(Anything(capabilities=OF_U | extra))
    target = RecordingPotential(WRAPPERS[wrapper](innermost), keep=False)
    factors = (FACTORS[method],) if method in FACTORS else ()
    getattr(target, method)(Q, *factors)
    asked = Counter()
    for name, n in innermost.positions.items():
        asked[_kind(name, extra)] += n
    assert asked.total() >= 2
    assert {kind: n for kind, n in target.calls.items() if n} == asked


def _kind(method, extra):
    if not extra:
        return KINDS[method]
    return {"value": "forward", "value_and_gradient": "jacobian"}.get(method, KINDS[method])


class Functions:
    """A user's functions of one position, which count how often they are called."""

    def __init__(self):
        self.calls = Counter()

    def forward(self, q):
        self.calls["forward"] += 1
        return np.array([q[0] * q[1], q[1] ** 2])

    def jacobian(self, q):
        self.calls["jacobian"] += 1
        return np.array([[q[1], q[0]], [0, 2 * q[1]]])

    def hessian(self, q):
        self.calls["hessian"] += 1
        return np.array([[[0, 1], [1, 0]], [[0, 0], [0, 2]]], dtype=float)


@pytest.mark.parametrize("bounds", [None, (0, None)])
@pytest.mark.parametrize("method", ["metric", "metric_trace_gradient", "metric_form_gradient"])
def test_calls_of_a_forward_map_are_counted_where_a_metric_makes_them(method, bounds):
    user = Functions()
    target = RecordingPotential(
        sk.forward_potential(
            user.forward,
            user.jacobian,
            user.hessian,
            data=[1.0, 2.0],
            noise_sd=1.0,
            parameters={"a": bounds, "b": bounds},
        ),
        keep=False,
    )
    q = Q[:, :2]
    factors = {"metric": ()}.get(method, (np.stack([np.eye(2)] * 2),))
    if method == "metric_form_gradient":
        factors = (q,)
    getattr(target, method)(q, *factors)
    assert target.calls["jacobian"] == user.calls["jacobian"] + user.calls["hessian"]
    assert target.calls["metric"] == 0


def test_a_value_from_a_function_for_both_counts_as_a_gradient():
    target = sk.potential(value_and_gradient=lambda q: (q @ q / 2, q), dim=2)
    recording = RecordingPotential(target, keep=False)
    recording.value(Q[:, :2])
    assert recording.calls["gradient"] == 2
    assert recording.calls["value"] == 0


def test_rows_evaluated_again_one_by_one_are_counted_again():
    def value(q):
        if len(q) > 1:
            raise ValueError("one at a time")
        return q[:, 0]

    recording = RecordingPotential(
        sk.potential(value, parameters={"a": (0, None)}, batched=True), keep=False
    )
    recording.value(np.zeros((3, 1)))
    assert recording.calls["value"] == 6


@pytest.mark.parametrize("metric", ["softabs", "fisher"])
def test_a_bounded_riemannian_run_counts_every_call(metric):
    """A log-normal has its own metric; bounds make each matrix cost a gradient as well."""
    innermost = CountingPotential(sk.make("potential", "banana"))
    target = BoundedPotential(innermost, Parameters.declare({"a": (-9, 9), "b": (-9, 9)}))
    if metric == "fisher" and "metric-derivative" not in innermost.capabilities:
        pytest.skip("the banana has no metric of its own")
    run = sk.sample(
        target,
        sampler=("rmhmc", {"metric": metric, "step_size": 0.3, "n_steps": 2}),
        chains=2,
        warmup=5,
        draws=5,
        seed=1,
    )
    assert run.total_calls == innermost.positions.total()
