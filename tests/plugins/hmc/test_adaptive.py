"""Leapfrog steps that are halved where the energy errs."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from surrokit.interfaces import Hamiltonian, Phase, Status
from surrokit.testing.targets import Banana
from surrokit_hmc.adaptive import AdaptiveLeapfrog
from surrokit_hmc.leapfrog import Leapfrog
from surrokit_hmc.metrics import DenseMetric

N, STEP, ERROR = 400, 0.9, 0.1
MASS = np.array([[1.5, 0.4], [0.4, 0.8]])  # M^-1
HAMILTONIAN = Hamiltonian(potential=Banana(), metric=DenseMetric(MASS))


@pytest.fixture(scope="module")
def start():
    rng = np.random.default_rng(2)
    q = HAMILTONIAN.potential.sample(rng, N)
    momenta = HAMILTONIAN.metric.draw(rng, N, 2)
    return Phase(positions=q, momenta=momenta, cache=Leapfrog().cache(HAMILTONIAN, q))


def step(phase, size, max_error=ERROR, **settings):
    integrator = AdaptiveLeapfrog(max_error=max_error, **settings)
    return integrator.advance(HAMILTONIAN, phase, np.full(N, size), np.ones(N, dtype=np.int64))


def in_parts(phase, size, parts):
    """Where so many leapfrog steps lead, and the range of the energy on the way."""
    energies = [HAMILTONIAN.energy(phase)]
    for _ in range(parts):
        ones = np.ones(N, dtype=np.int64)
        phase, _ = Leapfrog().advance(HAMILTONIAN, phase, np.full(N, size / parts), ones)
        energies.append(HAMILTONIAN.energy(phase))
    return phase.positions, np.ptp(energies, axis=0)


@pytest.mark.parametrize("size", [STEP, -STEP])
def test_a_step_has_the_fewest_parts_that_keep_the_energy_from_either_end(start, size):
    end, status = step(start, size)
    back = Phase(positions=end.positions, momenta=-end.momenta, cache=end.cache)
    fewest = np.zeros((2, N))
    ended = np.empty_like(end.positions)
    for parts in (64, 32, 16, 8, 4, 2, 1):
        there, error = in_parts(start, size, parts)
        fewest[0, error <= ERROR] = parts
        ended[error <= ERROR] = there[error <= ERROR]
        fewest[1, in_parts(back, size, parts)[1] <= ERROR] = parts

    assert_allclose(end.positions, ended)
    assert_array_equal(end.last_step["whole"], fewest[0] == 1)
    assert_array_equal(status == Status.OK, fewest[0] == fewest[1])
    assert len(np.unique(fewest[0])) >= 4
    assert {Status.OK, Status.NOT_REVERSIBLE} == set(status)
    displacement = (end.positions - start.positions) @ np.linalg.inv(MASS) / size
    trapezoid = end.last_step["momentum"] - 0.5 * (end.momenta - start.momenta)
    assert_allclose(trapezoid, displacement, atol=1e-10)


def test_a_step_that_takes_too_many_parts_fails(start):
    _, status = step(start, 3.0, max_error=1e-3, max_halvings=1)

    assert (status == Status.NOT_FINITE).mean() > 0.5
