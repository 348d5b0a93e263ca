"""The merged leapfrog, against the textbook's."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from surrokit.errors import CapabilityError
from surrokit.interfaces import Hamiltonian, Phase, Status
from surrokit.testing.wrappers import CountingPotential, Limited
from surrokit_hmc.leapfrog import Leapfrog
from surrokit_hmc.metrics import DenseMetric, DiagonalMetric, IdentityMetric

COVARIANCE = np.array([[1.0, 0.4], [0.4, 0.5]])
METRICS = {
    "identity": IdentityMetric(),
    "diagonal": DiagonalMetric([0.5, 2.0]),
    "dense": DenseMetric(COVARIANCE),
}
EACH_METRIC = pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)


class Quartic:
    """A nonlinear potential of two numbers."""

    dim = 2
    capabilities = frozenset({"gradient", "gradient-alone"})

    def value(self, q):
        return 0.25 * (q**4).sum(axis=1) + 0.5 * q[:, 0] * q[:, 1]

    def gradient(self, q):
        return q**3 + 0.5 * q[:, ::-1]

    def value_and_gradient(self, q):
        return self.value(q), self.gradient(q)


class RightHalf(Quartic):
    """Not a number where q1 < 0."""

    def value(self, q):
        return np.where(q[:, 0] > 0, super().value(q), np.nan)

    def gradient(self, q):
        return np.where(q[:, :1] > 0, super().gradient(q), np.nan)


def textbook(potential, metric, q, p, step_size, n_steps):
    """Algorithm 1 of the paper, with two half kicks in each step."""
    q, p = q[None].copy(), p[None].copy()
    for _ in range(n_steps):
        p -= 0.5 * step_size * potential.gradient(q)
        q += step_size * metric.velocity(p)
        p -= 0.5 * step_size * potential.gradient(q)
    return q[0], p[0]


def advanced(potential, metric, q, p, step_size, n_steps):
    hamiltonian = Hamiltonian(potential=potential, metric=metric)
    phase = Phase(positions=q, momenta=p, cache=Leapfrog().cache(hamiltonian, q))
    n = len(q)
    return Leapfrog().advance(
        hamiltonian,
        phase,
        np.broadcast_to(np.asarray(step_size, dtype=float), n).copy(),
        np.broadcast_to(np.asarray(n_steps), n).copy(),
    )


@pytest.fixture
def start(rng):
    return rng.standard_normal((6, 2)), rng.standard_normal((6, 2))


@EACH_METRIC
@pytest.mark.parametrize("lengths", [[1] * 6, [2] * 6, [7] * 6, [3, 1, 8, 8, 2, 3]], ids=str)
def test_ends_are_those_of_the_textbook(start, metric, lengths):
    q, p = start
    steps = np.array([0.05, 0.2, -0.1, 0.1, 0.01, 0.15])
    end, status = advanced(Quartic(), metric, q, p, steps, lengths)
    assert_array_equal(status, Status.OK)
    for i in range(6):
        expected = textbook(Quartic(), metric, q[i], p[i], steps[i], lengths[i])
        assert_allclose(end.positions[i], expected[0], rtol=1e-10, atol=1e-12)
        assert_allclose(end.momenta[i], expected[1], rtol=1e-10, atol=1e-12)


# --- what a path costs ---


def test_without_a_gradient_alone_paths_are_the_same(start):
    joint_only = Limited(Quartic(), frozenset({"gradient"}))
    lengths = np.array([5, 1, 3, 5, 2, 1])
    one, _ = advanced(Quartic(), IdentityMetric(), *start, 0.1, lengths)
    two, _ = advanced(joint_only, IdentityMetric(), *start, 0.1, lengths)
    assert_array_equal(one.positions, two.positions)
    assert_array_equal(one.momenta, two.momenta)


def test_a_gradient_is_needed():
    assert Leapfrog().needs == {"gradient"}
    without = Limited(Quartic(), frozenset())
    with pytest.raises(CapabilityError, match="needs gradient"):
        Leapfrog().cache(Hamiltonian(potential=without, metric=IdentityMetric()), np.zeros((1, 2)))


# --- paths that are lost ---


def lost_and_safe(lengths, step_size=0.1):
    """Chains 1 and 3 run into the left half at once; the others never do."""
    q = np.array([[2.0, 0.0], [0.05, 0.0], [3.0, 0.0], [0.05, 1.0], [2.5, 0.5]])
    p = np.array([[0.5, 1.0], [-9.0, 0.0], [1.0, 0.0], [-9.0, 1.0], [0.1, 0.1]])
    with np.errstate(all="ignore"):
        return q, p, advanced(RightHalf(), IdentityMetric(), q, p, step_size, lengths)


SAFE, LOST = [0, 2, 4], [1, 3]


@pytest.mark.parametrize(
    "lengths",
    [
        [1, 1, 1, 1, 1],
        [4, 4, 4, 4, 4],
        [1, 4, 2, 3, 4],
        [4, 2, 3, 2, 4],
        [3, 1, 2, 1, 2],
        [2, 5, 2, 5, 2],
    ],
    ids=str,
)
def test_lost_chains_do_not_disturb_the_others(lengths):
    q, p, (end, status) = lost_and_safe(np.array(lengths))
    assert_array_equal(status[SAFE], Status.OK)
    assert np.isin(status[LOST], [Status.NOT_FINITE, Status.NO_DENSITY]).all()
    for i in SAFE:
        expected = textbook(RightHalf(), IdentityMetric(), q[i], p[i], 0.1, lengths[i])
        assert_allclose(end.positions[i], expected[0], rtol=1e-10)
        assert_allclose(end.momenta[i], expected[1], rtol=1e-10)
        assert end.cache["value"][i] == pytest.approx(Quartic().value(end.positions[i : i + 1])[0])


def test_lost_chains_are_not_evaluated_further():
    q = np.array([[2.0, 0.0], [0.05, 0.0]])
    p = np.array([[0.0, 0.0], [-9.0, 0.0]])
    counting = CountingPotential(RightHalf())
    advanced(counting, IdentityMetric(), q, p, 0.01, 20)
    assert counting.gradients() <= 2 + 20 + 2


def test_an_end_outside_the_support_is_lost():
    class Walled(Quartic):
        def value(self, q):
            return np.where(q[:, 0] > 0, super().value(q), np.inf)

    q, p = np.array([[0.05, 0.0], [2.0, 0.0]]), np.array([[-9.0, 0.0], [0.0, 0.0]])
    _, status = advanced(Walled(), IdentityMetric(), q, p, 0.1, 2)
    assert_array_equal(status, [Status.NO_DENSITY, Status.OK])


@pytest.mark.parametrize("lengths", [1, 4])
def test_a_path_to_a_bound_is_told_from_one_that_diverges(lengths):
    """Where gradients are NaN beyond the bound; of the quartic, steps of 80 overflow."""
    _, _, (_, status) = lost_and_safe(np.full(5, lengths))
    assert_array_equal(status[LOST], Status.NO_DENSITY)
    q, p = np.array([[3.0, 9.0]]), np.ones((1, 2))
    with np.errstate(all="ignore"):
        _, status = advanced(Quartic(), IdentityMetric(), q, p, 80.0, 12)
    assert_array_equal(status, Status.NOT_FINITE)
