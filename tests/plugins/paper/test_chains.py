"""What experiments measure with: processor time, ends of runs, fits outside a run."""

from __future__ import annotations

import time

import numpy as np
import pytest
from numpy.testing import assert_allclose

import surrokit as sk
from surrokit.progress import IterationInfo
from surrokit_paper.chains import Clock, generator, hmc, quantiles, train

HMC = {"sampler": ("hmc", {"metric": "identity", "step_size": 0.5, "n_steps": 3})}


@pytest.mark.parametrize("settings", [{"warmup": 30, "sampler": "hmc"}, {"warmup": 0, **HMC}])
def test_only_the_kept_draws_are_timed(monkeypatch, settings):
    clock = iter(range(1000))
    timed = Clock()
    monkeypatch.setattr(time, "process_time", lambda: next(clock))
    sk.sample("gaussian", draws=20, seed=1, progress=False, observers=[timed], **settings)
    assert timed.sampling == 20


def test_training_after_the_warm_up_is_not_in_the_seconds_of_sampling(monkeypatch):
    clock = [0.0]

    class Tick(Clock):
        def surrokit_surrogate_deployed(self, **told):
            clock[0] += 1000.0  # as if the fit had taken so long
            super().surrokit_surrogate_deployed(**told)

        def surrokit_transition_done(self, **told):
            clock[0] += 1.0
            super().surrokit_transition_done(**told)

    monkeypatch.setattr(time, "process_time", lambda: clock[0])
    timed = Tick()
    sizes = {"warmup": 40, "draws": 15, "chains": 1, "seed": 1, "progress": False}
    explorer = ("sampler", {"iterations": 40})
    sk.sample("gaussian", surrogate="additive", explorer=explorer, observers=[timed], **sizes)
    assert (clock[0] >= 1000.0, timed.sampling) == (True, 15.0)


def paid(value, gradient, jacobian=0):
    calls = {"value": value, "gradient": gradient, "forward": 1, "vjp": 0, "jacobian": jacobian}
    return IterationInfo(stage="sampling", iteration=1, step=None, calls=calls, seconds=9.0)


def test_a_run_ends_when_its_time_is_over_or_enough_is_paid(monkeypatch):
    now = iter([0.0, 10.0, 11.5, 12.5, 13.0, 13.0, 13.0])
    monkeypatch.setattr(time, "process_time", lambda: next(now))
    stop = Clock(seconds=2.0)
    stop.surrokit_run_started()
    stop.surrokit_transition_done(info=paid(50, 50))
    assert not stop.reached
    with pytest.raises(KeyboardInterrupt):
        stop.surrokit_transition_done(info=paid(50, 50))
    assert (stop.reached, stop.elapsed) == (True, [1.5, 2.5])
    stop = Clock(evaluations=10)
    stop.surrokit_transition_done(info=paid(4, 2, 2))
    with pytest.raises(KeyboardInterrupt):
        stop.surrokit_transition_done(info=paid(4, 2, 3))


def test_a_chain_that_somebody_else_ends_is_no_result():
    class AtTwelve(Clock):
        def surrokit_transition_done(self, info, **_):
            if info.iteration == 12:
                raise KeyboardInterrupt

    begun = sk.make("potential", "gaussian"), {"step_size": 0.1, "n_steps": 3}, np.zeros(2), 1
    with pytest.raises(KeyboardInterrupt):
        hmc(*begun, clock=AtTwelve(seconds=9), warmup=0, draws=20)
    run = hmc(*begun, clock=Clock(evaluations=30), draws=99)
    assert len(run.draws[0]) < 99


# --- fits outside a run, and rows ---


@pytest.mark.parametrize("gradients", [False, True])
def test_a_surrogate_is_fitted_to_given_evaluations_and_knows_whether_it_gets_gradients(
    monkeypatch, gradients
):
    told, real = [], sk.make("surrogate", "additive")

    class Watched:
        def learner(self, problem, rng):
            told.append(problem.capabilities)
            return real.learner(problem, rng)

    monkeypatch.setattr(sk, "make", lambda kind, name, **settings: Watched())
    positions = np.random.default_rng(2).standard_normal((40, 2))
    values = 0.5 * np.square(positions).sum(axis=1)
    data = sk.Evaluations(positions=positions, values=values, gradients=positions)
    fit, seconds = train(data, np.random.default_rng(1), gradients=gradients)
    assert_allclose(fit.value(data.positions), data.values, atol=0.1)
    assert seconds > 0
    assert told == [frozenset({"gradient"} if gradients else ())]


def test_a_generator_depends_on_seed_and_keys_only():
    draws = generator(4, "data", 3).standard_normal(5)
    np.testing.assert_array_equal(draws, generator(4, "data", 3).standard_normal(5))
    for other in (generator(4, "data", 4), generator(4, "data", "3"), generator(5, "data", 3)):
        assert not np.any(draws == other.standard_normal(5))


def test_quantiles_are_over_the_rows_that_know_a_number():
    rows = [{"x": float(i)} for i in range(11)] + [{"x": None}, {}]
    assert_allclose(quantiles(rows, "x"), [1.0, 5.0, 9.0])
    assert quantiles(rows[11:], "x") is None
