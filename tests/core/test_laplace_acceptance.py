"""The acceptance of independent draws of the normal approximation at a mode."""

import attrs
import numpy as np
import pytest

from surrokit.mode.search import find_mode, laplace_acceptance
from surrokit.testing.targets import Gaussian, Student
from surrokit.testing.wrappers import CountingPotential


def test_all_draws_of_a_normal_target_are_accepted_and_each_is_paid_once():
    target = CountingPotential(Gaussian())
    mode = find_mode(target, np.array([1.0, 0.5]))
    before = target.positions["value"]
    found = laplace_acceptance(target, mode, np.random.default_rng(0))
    assert found == pytest.approx(1.0, abs=1e-4)
    assert target.positions["value"] - before == 40


def test_it_is_what_independent_draws_of_a_heavier_target_get():
    target = Student()
    mode = find_mode(target, np.array([0.3, -0.2]))
    factor = np.linalg.cholesky(np.linalg.inv(mode.hessian))
    rng = np.random.default_rng(1)
    q = mode.position + rng.standard_normal((2, 20_000, 2)) @ factor.T
    h = q - mode.position
    v = 0.5 * np.einsum("kni,ij,knj->kn", h, mode.hessian, h)
    excess = v - np.stack([target.value(each) for each in q])
    expected = np.exp(np.minimum(excess[1] - excess[0], 0.0)).mean()
    found = laplace_acceptance(target, mode, np.random.default_rng(2), n=1500)
    assert expected < 0.95
    assert found == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize("hessian", [None, np.diag([1.0, -1.0])], ids=["none", "indefinite"])
def test_nothing_is_said_without_a_definite_matrix(hessian):
    mode = attrs.evolve(find_mode(Gaussian(), np.zeros(2)), hessian=hessian)
    assert laplace_acceptance(Gaussian(), mode, np.random.default_rng(0)) is None


def test_positions_that_cannot_be_evaluated_are_not_accepted():
    class Half(Gaussian):
        def value(self, positions):
            return np.where(positions[:, 0] > self.mean[0], super().value(positions), np.inf)

    mode = find_mode(Gaussian(), np.zeros(2))
    found = laplace_acceptance(Half(), mode, np.random.default_rng(0), n=400)
    assert 0.35 < found < 0.75
