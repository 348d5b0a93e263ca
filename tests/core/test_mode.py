"""The search for the least potential."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit.cost.recording import RecordingPotential
from surrokit.errors import CapabilityError, EvaluationError, NumericalError, ShapeError
from surrokit.mode.descent import Scales
from surrokit.mode.search import find_mode

WIDE_AND_NARROW = np.array([1e-2, 1.0, 1e3])
"""Curvatures of a quadratic."""


@attrs.define
class Quadratic:
    """Curvatures of very different sizes; says it can do what a test wants of it."""

    capabilities: frozenset[str]
    wall: float = np.inf
    """Beyond it, in the first coordinate, U is infinite."""
    raises: bool = False
    dim: int = 3

    def value(self, q):
        return self.value_and_gradient(q)[0]

    def value_and_gradient(self, q):
        values = 0.5 * np.square(q - 1.0) @ WIDE_AND_NARROW
        if self.raises and (q[:, 0] > self.wall).any():
            raise EvaluationError({0: ValueError("too far")}, (), n=len(q))
        return np.where(q[:, 0] > self.wall, np.inf, values), (q - 1.0) * WIDE_AND_NARROW

    def hessian(self, q):
        return np.broadcast_to(np.diag(WIDE_AND_NARROW), (len(q), 3, 3)).copy()

    metric = hessian


class DoubleWell:
    """U = (x^2 - 1)^2 + y^2: a ridge at x = 0, where the Hessian is indefinite."""

    dim = 2
    capabilities = frozenset({"gradient", "hessian"})

    def value_and_gradient(self, q):
        x, y = q.T
        u = np.square(np.square(x) - 1.0) + np.square(y)
        return u, np.stack([4.0 * x * (np.square(x) - 1.0), 2.0 * y], axis=1)

    def hessian(self, q):
        zero = np.zeros(len(q))
        rows = [[12.0 * np.square(q[:, 0]) - 4.0, zero], [zero, zero + 2.0]]
        return np.array(rows).transpose(2, 0, 1)


@pytest.mark.parametrize("more", [{"hessian"}, {"metric"}])
def test_a_matrix_of_second_derivatives_solves_a_quadratic_in_one_step(more):
    found = find_mode(Quadratic(frozenset({"gradient"} | more)), np.array([9.0, -7.0, 5.0]))
    assert found.converged
    assert found.calls == 4  # two values with gradients, two matrices
    assert_allclose(found.position, 1.0, atol=1e-6)
    assert_allclose(found.hessian, np.diag(WIDE_AND_NARROW))
    assert found.decrement < 1e-9


def test_without_a_matrix_the_search_still_ends_near_the_mode():
    found = find_mode(Quadratic(frozenset({"gradient"})), np.array([3.0, -7.0, 5.0]))
    assert found.converged
    assert found.value < 0.01
    assert found.hessian is None
    assert found.decrement is None


@pytest.mark.parametrize("beside", [0.0, 0.01])
def test_a_search_that_starts_on_a_ridge_leaves_it(beside):
    found = find_mode(DoubleWell(), np.array([beside, 3.0]))
    assert found.converged
    assert_allclose(np.abs(found.position), [1.0, 0.0], atol=0.05)


@pytest.mark.parametrize("raises", [False, True])
@pytest.mark.parametrize("more", [set(), {"hessian"}])
def test_positions_that_cannot_be_evaluated_are_stepped_back_from(more, raises):
    walled = Quadratic(frozenset({"gradient"} | more), wall=1.5, raises=raises)
    # the first step along the gradient goes beyond the wall
    walled_start = np.array([-400.0, 1.0, 1.0])
    found = find_mode(walled, walled_start)
    assert found.value < 0.01
    assert found.position[0] < 1.5


def test_a_mode_at_the_edge_of_the_support_is_come_near_within_the_calls_allowed():
    found = find_mode(Quadratic(frozenset({"gradient"}), wall=0.0), np.full(3, -5.0), max_calls=80)
    assert found.calls <= 80
    assert found.position[0] <= 0.0
    assert found.value < 0.05  # 0.005 at the edge itself, 0.18 at the start in this coordinate


@pytest.mark.parametrize("more", [set(), {"hessian"}])
@pytest.mark.parametrize("most", [1, 2, 3])
def test_no_more_is_paid_than_allowed_and_the_best_so_far_is_returned(more, most):
    target = RecordingPotential(Quadratic(frozenset({"gradient"} | more)), keep=True)
    found = find_mode(target, np.array([30.0, -7.0, 5.0]), max_calls=most)
    assert sum(target.calls.values()) == found.calls <= most
    assert not found.converged
    rows = target.drain()
    assert found.value == rows.values.min()


@pytest.mark.parametrize("more", [set(), {"hessian"}])
def test_a_search_ends_when_it_is_told_to(more):
    seen = []

    def until(position, value, gradient):
        seen.append((position, value, gradient))
        return len(seen) == 2

    # beyond the wall, where the first step leads without a matrix, nothing is shown
    target = Quadratic(frozenset({"gradient"} | more), wall=1.5)
    found = find_mode(target, np.array([-400.0, -7.0, 5.0]), until=until)
    assert not found.converged
    assert len(seen) == 2
    assert np.isfinite([value for _, value, _ in seen]).all()
    positions, values, gradients = (np.array(column) for column in zip(*seen, strict=True))
    assert found.value == values.min()
    assert_allclose(target.value_and_gradient(positions)[1], gradients)


def test_a_forward_map_pays_one_jacobian_a_step_and_all_of_it_is_recorded():
    slopes = np.array([[1.0, 2.0], [0.5, -1.0], [1.0, 0.0]])
    exact = sk.forward_potential(
        lambda q: slopes @ q,
        lambda q: slopes,
        data=slopes @ [0.3, -0.7],
        noise_sd=0.1,
        prior=sk.gaussian_prior(0.0, 10.0),
        dim=2,
    )
    target = RecordingPotential(exact, keep=True)
    found = find_mode(target, np.array([4.0, 4.0]))
    assert found.converged
    assert_allclose(found.position, [0.3, -0.7], atol=1e-3)
    assert_allclose(found.hessian, slopes.T @ slopes / 0.01 + np.eye(2) / 100.0)
    assert {k: n for k, n in target.calls.items() if n} == {"jacobian": found.calls}
    rows = target.drain()
    assert len(rows) == found.calls
    values, gradients = exact.value_and_gradient(rows.positions)
    assert_allclose(rows.values, values)
    assert_allclose(rows.gradients, gradients)


@pytest.mark.parametrize(
    ("offers", "start", "error", "message"),
    [
        ({"gradient"}, np.ones(3), NumericalError, "not finite at the start of the search"),
        ({"gradient"}, np.ones((2, 3)), ShapeError, r"one position of shape \(3,\), got \(2, 3\)"),
        (set(), -np.ones(3), CapabilityError, "gradient"),
    ],
)
def test_starts_and_targets_that_cannot_be(offers, start, error, message):
    with pytest.raises(error, match=message):
        find_mode(Quadratic(frozenset(offers), wall=0.0), start)


class Hanging:
    """log cosh, whose second derivatives are 0 but for rounding where it is far from its mode."""

    dim, capabilities = 2, frozenset({"gradient", "hessian"})

    def value_and_gradient(self, q):
        return np.logaddexp(q, -q).sum(axis=1), np.tanh(q)

    def hessian(self, q):
        return np.eye(2) * (1.0 - np.tanh(q)[:, None, :] ** 2)


@pytest.mark.parametrize("start", [4.75, -4.75])
def test_a_search_goes_on_from_a_lower_place_that_it_has_passed_by(start):
    """It converged in one well, after a step to the side of a deeper one, and told of that."""

    def waves(q):
        x = q[:, 0]
        return 0.5 * x**2 - 10.0 * np.cos(2.0 * x), q + 20.0 * np.sin(2.0 * q)

    found = find_mode(sk.potential(value_and_gradient=waves, dim=1, batched=True), [start])
    assert found.converged
    assert_allclose(found.position, 0.0, atol=0.01)


def test_where_there_is_no_curvature_at_all_gradients_lead_on():
    found = find_mode(Hanging(), np.full(2, 1000.0))
    assert found.converged
    assert_allclose(found.position, 0.0, atol=0.1)


@pytest.mark.parametrize("wall", [np.inf, 3.5])
def test_a_search_that_begins_very_high_comes_down(wall):
    """With the logarithm of a scale that is far too small, at heights that differ by 10^8."""

    def value_and_gradient(q):
        spread = 1e4 * np.exp(-2.0 * q[:, 0]) * (1.0 + np.square(q[:, 1] - 3.0))
        slopes = np.stack([100.0 - 2.0 * spread, 2e4 * np.exp(-2.0 * q[:, 0]) * (q[:, 1] - 3.0)])
        return np.where(q[:, 0] < wall, 100.0 * q[:, 0] + spread, np.inf), slopes.T

    target = sk.potential(value_and_gradient=value_and_gradient, dim=2, batched=True)
    near, far = (find_mode(target, np.array([at, 2.9])) for at in (0.0, -9.2))
    assert near.converged
    assert far.converged
    assert_allclose(far.position, [0.5 * np.log(200.0), 3.0], atol=0.05)


# --- in known scales ---

COVARIANCE = np.array([[1e6, 9e-1], [9e-1, 1e-6]])
THERE, START = np.array([3000.0, 0.001]), np.array([-2.0, 1.0])


def long_and_thin():
    precision = np.linalg.inv(COVARIANCE)
    return sk.potential(
        lambda q: 5.0 + 0.5 * (q - THERE) @ precision @ (q - THERE),
        lambda q: precision @ (q - THERE),
        dim=2,
    )


def test_a_unit_step_leads_to_a_known_mode_of_the_same_covariance():
    values, gradients = long_and_thin().value_and_gradient(START[None])
    root = Scales(covariance=COVARIANCE, least=5.0).root(values[0], gradients[0])
    slope = root.T @ gradients[0]
    assert_allclose(START - root @ slope / np.linalg.norm(slope), THERE, rtol=1e-6)


def test_a_search_in_known_scales_takes_few_calls():
    known = find_mode(long_and_thin(), START, scales=Scales(covariance=COVARIANCE, least=5.0))
    assert known.converged
    assert known.calls <= 6
    assert_allclose(known.value, 5.0, atol=1e-3)
