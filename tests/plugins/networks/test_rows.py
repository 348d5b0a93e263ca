"""Rows of the data as a surrogate, on a logistic regression with two rare columns."""

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import surrokit as sk
from surrokit.errors import CapabilityError, ConfigurationError
from surrokit.interfaces import Evaluations, LearningProblem
from surrokit.potentials import SummedTerms
from surrokit.testing import check_potential
from surrokit_networks.potentials import FIRST_ORDER
from surrokit_networks.rows import Rows
from surrokit_networks.training import Training

DIM, N_ROWS = 4, 600
RARE = np.arange(5)
"""Rows that alone inform the last two directions."""


def target():
    """A logistic regression; nothing but the prior keeps the rare directions from infinity."""
    rng = np.random.default_rng(3)
    x = np.column_stack([np.ones(N_ROWS), rng.standard_normal(N_ROWS), np.zeros((N_ROWS, 2))])
    x[RARE, 2 + RARE % 2] = 1.0
    events = (np.random.default_rng(4).random(N_ROWS) < 0.4).astype(float)
    events[RARE] = 0.0
    return sk.rows_potential("logistic", x, events, prior=3.0)


TARGET = target()


def mode():
    q = np.zeros((1, DIM))
    for _ in range(20):
        q = q - np.linalg.solve(TARGET.hessian(q)[0], TARGET.gradient(q)[0])
    return q[0]


MODE = mode()
FACTOR = np.linalg.cholesky(np.linalg.inv(TARGET.hessian(MODE[None])[0]))


def training(n=60, gradients=True, seed=0):
    rng = np.random.default_rng(seed)
    positions = MODE + rng.standard_normal((n, DIM)) @ FACTOR.T
    values, slopes = TARGET.value_and_gradient(positions)
    return Evaluations(positions=positions, values=values, gradients=slopes if gradients else None)


def problem(terms=True):
    return LearningProblem(
        dim=DIM, capabilities=TARGET.capabilities, terms=SummedTerms(TARGET) if terms else None
    )


def fitted(rows=None, **settings):
    learner = sk.make("surrogate", "rows", **settings).learner(problem(), np.random.default_rng(0))
    learner.observe(training() if rows is None else rows)
    assert learner.fit().capabilities == learner.provides
    return learner.fit()


def error(potential):
    """Var(V - U), in nats squared, at points that were not fitted to."""
    fresh = training(300, seed=1)
    return float(np.var(potential.value(fresh.positions) - fresh.values))


def test_rows_of_most_leverage_make_a_skewed_direction_right():
    learner = sk.make("surrogate", "quadratic").learner(problem(), np.random.default_rng(0))
    learner.observe(training())

    potential = fitted(training(200), n_rows=len(RARE))
    assert error(potential) < 0.05 * error(learner.fit())
    assert 0.2 < potential.quality.variance / error(potential) < 5.0
    assert error(fitted(training(60, gradients=False), n_rows=len(RARE))) < 0.01


def test_as_few_rows_are_copied_as_leave_little(monkeypatch):
    monkeypatch.setattr("surrokit_networks.rows.LEFT", 0.03)
    few = fitted().known
    assert few.n_rows == len(RARE)
    q = training(5, seed=3).positions
    assert_allclose(few.value(q), TARGET.select(RARE).value(q))
    monkeypatch.setattr("surrokit_networks.rows.LEFT", 0.0)
    assert fitted().known.n_rows == -(-N_ROWS // 16)
    assert fitted(n_rows=N_ROWS // 4).known.n_rows == N_ROWS // 4


def test_without_rows_worth_their_price_it_is_a_quadratic(monkeypatch):
    monkeypatch.setattr("surrokit_networks.rows.LEFT", 1e9)
    learner = sk.make("surrogate", "quadratic").learner(problem(), np.random.default_rng(0))
    learner.observe(training())
    alone, potential, q = learner.fit(), fitted(), training(5, seed=2).positions

    for name in ("value", "gradient"):
        assert_array_equal(getattr(potential, name)(q), getattr(alone, name)(q))
    assert_array_equal(potential.value_and_gradient(q)[1], alone.gradient(q))


def test_a_target_without_rows():
    target = sk.potential(lambda q: 0.5 * q @ q, lambda q: q, dim=2)
    with pytest.raises(CapabilityError, match="copies rows of data from the target, which offers "):
        sk.sample(target, sampler="hmc", surrogate="rows", progress=False)
    with pytest.raises(CapabilityError, match="but not rows; use surrogate='additive'"):
        sk.make("surrogate", "rows").learner(problem(terms=False), np.random.default_rng(0))


@pytest.mark.parametrize("wrong", [{"learns": "outputs"}, {"updates": "greville"}])
def test_settings_that_do_not_go_with_rows(wrong):
    settings = {"learns": "potential", "updates": "refit", **wrong}
    with pytest.raises(ConfigurationError, match="learns the potential and refits, got learns="):
        Rows(training=Training(**settings))


@pytest.mark.parametrize("what", ["a network twice", "rows"])
def test_a_sum_keeps_to_the_contract_of_potentials(what):
    learner = sk.make("surrogate", "additive", n_nodes=20).learner(
        problem(), np.random.default_rng(0)
    )
    learner.observe(training())
    network = learner.fit()
    twice = attrs.evolve(network, known=network, capabilities=FIRST_ORDER)
    both = twice if what != "rows" else fitted()
    assert both.capabilities == FIRST_ORDER
    results = check_potential(lambda: both)
    assert [f"{r.name}: {r.message}" for r in results if r.outcome != "passed"] == []


def test_a_number_of_rows_that_makes_no_sense():
    with pytest.raises(ConfigurationError, match="n_rows must be a whole number of at least 1, or"):
        Rows(n_rows=0)
