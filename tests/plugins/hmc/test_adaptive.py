"""Leapfrog steps that are halved where the energy errs."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import surrokit as sk
from surrokit.compose import make
from surrokit.interfaces import ChainState, Hamiltonian, Phase, Status, Tuning
from surrokit.kernel.hamiltonian import take_rows
from surrokit.testing.targets import Banana
from surrokit_hmc.adaptive import AdaptiveLeapfrog
from surrokit_hmc.leapfrog import Leapfrog
from surrokit_hmc.metrics import DenseMetric
from surrokit_hmc.trajectories import Half

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


def test_walnuts_ends_paths_without_divergences_and_is_tuned_by_whole_steps(start):
    integrator = ("adaptive-leapfrog", {"max_error": ERROR})
    settings = {"step_size": STEP, "max_depth": 1, "metric": "identity", "integrator": integrator}
    kernel = make("sampler", "walnuts", **settings).bind(HAMILTONIAN.potential, Tuning(step_size=1))
    q, cache = start.positions, kernel.cache(start.positions)
    state = ChainState(positions=q, values=cache["value"], cache=cache)
    proposal = kernel.propose(state, np.random.default_rng(3))

    assert not proposal.divergent.any()
    shares = np.exp(proposal.log_path_ratio).round(12)
    assert set(shares) == {0.0, 1.0}


def test_paths_of_nuts_turn_by_how_far_they_got(start):
    energy = HAMILTONIAN.energy(start)
    half = Half(
        start,
        start_energy=energy,
        lowest=energy.copy(),
        highest=energy.copy(),
        log_uniforms=np.zeros((2, N)),
    )
    for _ in range(2):
        size = np.full(len(half.rows), STEP)
        half.follow(AdaptiveLeapfrog(max_error=ERROR), HAMILTONIAN, size)
        half.turn_back(HAMILTONIAN.metric)

    far = (half.point.positions - start.positions[half.rows]) @ np.linalg.inv(MASS) / STEP
    trapezoid = half.momentum_sum - 0.5 * (half.point.momenta - start.momenta[half.rows])
    assert len(half.rows) > 20
    assert_allclose(trapezoid, far, atol=1e-10)


WALLED = Hamiltonian(
    potential=sk.potential(
        lambda q: np.where(q[:, 0] > -1.0, 3.0 * q[:, 0] ** 6, np.inf),
        lambda q: np.where(q > -1.0, 18.0 * q**5, np.nan),
        dim=1,
        batched=True,
    ),
    metric=DenseMetric(np.eye(1)),
)


def led_back(integrator):
    """Of steps that end well before a bound: how many, and how many would not be led back."""
    rng, n = np.random.default_rng(1), 20_000
    q, momenta = rng.uniform(-1.0, 1.0, (n, 1)), 2.0 * rng.standard_normal((n, 1))
    begin = Phase(positions=q, momenta=momenta, cache=integrator.cache(WALLED, q))
    ones = np.ones(n, dtype=np.int64)
    end, status = integrator.advance(WALLED, begin, np.full(n, 3.0), ones)
    rows = np.flatnonzero(status == Status.OK)
    _, status = integrator.advance(
        WALLED, take_rows(end, rows), np.full(len(rows), -3.0), ones[rows]
    )
    return len(rows), np.count_nonzero(status != Status.OK)


def test_a_step_near_a_bound_is_led_back_and_bounds_are_looked_for_from_either_end(monkeypatch):
    integrator = AdaptiveLeapfrog(max_error=0.2)
    n, lost = led_back(integrator)
    assert n > 10_000
    assert lost == 0

    cut = AdaptiveLeapfrog._cut

    def blind_from_the_end(self, hamiltonian, begin, size, halvings):
        there, sound, beyond = cut(self, hamiltonian, begin, size, halvings)
        return there, sound, beyond & (size > 0.0)

    monkeypatch.setattr(AdaptiveLeapfrog, "_cut", blind_from_the_end)
    assert led_back(integrator)[0] > n + 20  # steps that cannot be undone


def test_a_bound_is_not_crossed_in_a_thousand_parts():
    """A step from near the bound, towards it, has 2 + 4 + 8 parts at most; all would be 2,047."""
    calls = 0

    def slope(q):
        nonlocal calls
        calls += 1
        return np.where(q > 0.0, 1.0, np.nan)

    target = sk.potential(
        lambda q: np.where(q[:, 0] > 0.0, q[:, 0], np.inf), slope, dim=1, batched=True
    )
    flat = Hamiltonian(potential=target, metric=DenseMetric(np.eye(1)))
    q, one = np.array([[0.8]]), np.ones(1, dtype=np.int64)
    begin = Phase(positions=q, momenta=-np.ones((1, 1)), cache=Leapfrog().cache(flat, q))
    _, status = AdaptiveLeapfrog().advance(flat, begin, one.astype(float), one)
    assert status == [Status.NOT_FINITE]
    assert calls < 20
